//! Messages about statements: durations, texts, parameters.

use crate::sql::value_of;

/// What a message says of a statement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StatementMessage<'m> {
    /// A statement by the simple protocol.
    Statement { duration_ms: Option<f64>, text: &'m str },
    /// An execution by the extended protocol.
    Execute { duration_ms: Option<f64>, is_named: bool, text: &'m str },
    /// The end of what an earlier line has named.
    Duration(f64),
    /// Parsing or planning, which is no execution.
    Preparation,
    /// A plan of auto_explain, with the text of its statement.
    Plan { duration_ms: f64, text: &'m str },
    /// A setting by which only a part of the statements is logged was changed.
    Sampling,
    /// Something else.
    Other,
}

/// Reads a message of severity LOG.
pub(crate) fn statement_message(message: &str) -> StatementMessage<'_> {
    let (duration_ms, rest) = match message.strip_prefix("duration: ") {
        None => (None, message),
        Some(rest) => {
            let Some((number, rest)) = rest.split_once(" ms") else {
                return StatementMessage::Other;
            };
            let Ok(duration) = number.parse::<f64>() else { return StatementMessage::Other };
            if rest.trim().is_empty() {
                return StatementMessage::Duration(duration);
            }
            (Some(duration), rest.trim_start_matches(' '))
        }
    };
    if let Some(text) = rest.strip_prefix("statement: ") {
        return StatementMessage::Statement { duration_ms, text };
    }
    if let Some(execute) = rest.strip_prefix("execute ") {
        if let Some((name, text)) = execute.split_once(": ") {
            // A fetch goes on with a portal whose execution was counted.
            if name.starts_with("fetch from ") {
                return StatementMessage::Preparation;
            }
            let is_named = !name.starts_with("<unnamed>");
            return StatementMessage::Execute { duration_ms, is_named, text };
        }
        return StatementMessage::Other;
    }
    if let (Some(duration_ms), Some(plan)) = (duration_ms, rest.strip_prefix("plan:")) {
        let text = plan.trim_start().strip_prefix("Query Text: ").map(text_of_plan);
        return text
            .map_or(StatementMessage::Other, |text| StatementMessage::Plan { duration_ms, text });
    }
    if duration_ms.is_some() && (rest.starts_with("parse ") || rest.starts_with("bind ")) {
        return StatementMessage::Preparation;
    }
    let is_sampling = ["log_min_duration_s", "log_statement_sample", "log_transaction_sample"];
    if message.starts_with("parameter \"") && is_sampling.iter().any(|name| message.contains(name))
    {
        return StatementMessage::Sampling;
    }
    StatementMessage::Other
}

/// A plan stands below the text, its first line with a cost.
fn text_of_plan(text: &str) -> &str {
    let plan = text.find("  (cost=").and_then(|cost| text[..cost].rfind('\n'));
    let end = plan.unwrap_or(text.len());
    let parameters = text[..end].find("\nQuery Parameters: ");
    text[..parameters.unwrap_or(end)].trim_end()
}

/// What a DETAIL says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StatementDetail<'d> {
    /// The values of `$n`, and true if one of them was cut.
    Parameters { values: Vec<(u32, Option<String>)>, is_cut: bool },
    /// The text of a prepared statement that was executed.
    Prepared(&'d str),
    /// Nothing of use.
    Nothing,
}

/// Reads a DETAIL: `parameters: $1 = '5'` until 15, `Parameters: …` from 16 on.
pub(crate) fn statement_detail(detail: &str) -> StatementDetail<'_> {
    if let Some(text) = detail.strip_prefix("prepare: ").or(detail.strip_prefix("Prepare: ")) {
        return StatementDetail::Prepared(text);
    }
    let Some(mut rest) =
        detail.strip_prefix("parameters: ").or(detail.strip_prefix("Parameters: "))
    else {
        return StatementDetail::Nothing;
    };
    let (mut values, mut is_cut) = (Vec::new(), false);
    while let Some((number, after)) = rest.strip_prefix('$').and_then(|text| text.split_once(" = "))
    {
        let Ok(number) = number.parse::<u32>() else { break };
        let end = if after.starts_with('\'') {
            end_of_string(after)
        } else {
            after.find([',', ' ']).unwrap_or(after.len())
        };
        let written = &after[..end];
        // log_parameter_max_length cuts, and says so inside or behind the quotes.
        is_cut |= after[end..].starts_with("...") || written.ends_with("...'");
        values.push((number, value_of(written)));
        let left = after[end..].trim_start_matches('.');
        match left.strip_prefix(", ") {
            Some(next) => rest = next,
            None => break,
        }
    }
    StatementDetail::Parameters { values, is_cut }
}

/// The end of a string with doubled quotes.
fn end_of_string(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b'\'', Some(b'\'')) => at += 2,
            (b'\'', _) => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_servers_write_them() {
        use StatementMessage::{Duration, Execute, Other, Plan, Preparation, Sampling, Statement};
        let check =
            |message: &str, expected| assert_eq!(statement_message(message), expected, "{message}");
        check(
            "duration: 0.5 ms  statement: select 1",
            Statement { duration_ms: Some(0.5), text: "select 1" },
        );
        check("statement: select 1", Statement { duration_ms: None, text: "select 1" });
        check("duration: 0.5 ms", Duration(0.5));
        check("duration: 0.5 ms  parse <unnamed>: select 1", Preparation);
        check("duration: 0.5 ms  bind s1: select 1", Preparation);
        check(
            "duration: 0.5 ms  execute <unnamed>: select 1",
            Execute { duration_ms: Some(0.5), is_named: false, text: "select 1" },
        );
        check(
            "execute s1/c1: select 1",
            Execute { duration_ms: None, is_named: true, text: "select 1" },
        );
        check("duration: 1 ms  execute fetch from s1: select 1", Preparation);
        check(
            "duration: 2 ms  plan:\nQuery Text: select a\nfrom t\nSeq Scan on t  (cost=0.00..1.00 rows=1 width=4)",
            Plan { duration_ms: 2.0, text: "select a\nfrom t" },
        );
        check("parameter \"log_min_duration_statement\" changed to \"250\"", Sampling);
        check("checkpoint starting: time", Other);
        check("duration: x ms", Other);
    }

    #[test]
    fn parameters_are_read_in_both_spellings() {
        let check = |detail: &str, expected: &[(u32, Option<&str>)], cut: bool| {
            let StatementDetail::Parameters { values, is_cut } = statement_detail(detail) else {
                panic!("{detail}");
            };
            let values: Vec<(u32, Option<&str>)> =
                values.iter().map(|(number, value)| (*number, value.as_deref())).collect();
            assert_eq!((values.as_slice(), is_cut), (expected, cut), "{detail}");
        };
        check("parameters: $1 = '5'", &[(1, Some("5"))], false);
        check(
            "Parameters: $1 = '5', $2 = NULL, $3 = 'it''s, $4 = x'",
            &[(1, Some("5")), (2, None), (3, Some("it's, $4 = x"))],
            false,
        );
        check("Parameters: $1 = 'abc...', $2 = '7'", &[(1, Some("abc...")), (2, Some("7"))], true);
        check("parameters: $1 = 'open", &[(1, Some("open"))], false);
        check("parameters: nonsense", &[], false);
        assert_eq!(
            statement_detail("prepare: prepare q as select 1"),
            StatementDetail::Prepared("prepare q as select 1")
        );
        assert_eq!(statement_detail("Key exists."), StatementDetail::Nothing);
    }
}
