//! stderr logs: lines that begin with log_line_prefix, and lines that go on with a tab.

use super::{LogEntry, moment};
use crate::error::WorkloadError;

/// A part of log_line_prefix.
#[derive(Clone, Debug, PartialEq)]
enum PrefixPart {
    Text(String),
    Field(char),
    /// `%q`: what follows is written for sessions only.
    SessionsOnly,
}

/// log_line_prefix, as the server has it.
#[derive(Clone, Debug, PartialEq)]
pub struct LinePrefix(Vec<PrefixPart>);

/// A line that begins with the prefix.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StderrLine {
    /// An entry.
    Entry(Box<LogEntry>),
    /// DETAIL of the entry before it.
    Detail(String),
    /// HINT, CONTEXT, STATEMENT of the entry before it.
    Other,
}

impl LinePrefix {
    /// Reads log_line_prefix. The process or the session must be in it, to join lines.
    pub fn parse(prefix: &str) -> Result<LinePrefix, WorkloadError> {
        let failed = |why| WorkloadError::Prefix { prefix: prefix.to_owned(), why };
        let mut parts = Vec::new();
        let mut text = String::new();
        let mut chars = prefix.chars();
        while let Some(c) = chars.next() {
            if c != '%' {
                text.push(c);
                continue;
            }
            let mut field = chars.next().ok_or_else(|| failed("it ends with %"))?;
            // A width, as in %-5p.
            while field == '-' || field.is_ascii_digit() {
                field = chars.next().ok_or_else(|| failed("it ends within a field"))?;
            }
            if field == '%' {
                text.push('%');
                continue;
            }
            if !text.is_empty() {
                parts.push(PrefixPart::Text(std::mem::take(&mut text)));
            }
            parts.push(match field {
                'q' => PrefixPart::SessionsOnly,
                field if "abcdehilmnpPrsStuvxLQ".contains(field) => PrefixPart::Field(field),
                _ => return Err(failed("it has a field that PostgreSQL does not know")),
            });
        }
        if !text.is_empty() {
            parts.push(PrefixPart::Text(text));
        }
        let has_session = parts.iter().any(|part| matches!(part, PrefixPart::Field('p' | 'c')));
        if !has_session {
            return Err(failed(
                "neither %p nor %c is in it, so that lines of one session cannot be joined",
            ));
        }
        Ok(LinePrefix(parts))
    }

    /// Reads a line; nothing if it does not begin with the prefix.
    pub(crate) fn read(&self, line: &str) -> Option<StderrLine> {
        let mut entry = LogEntry::default();
        let mut rest = line;
        for (at, part) in self.0.iter().enumerate() {
            match part {
                // A process without a session writes no more of the prefix.
                PrefixPart::SessionsOnly if severity_of(rest).is_some() => break,
                PrefixPart::SessionsOnly => {}
                PrefixPart::Text(text) => match rest.strip_prefix(text.as_str()) {
                    Some(left) => rest = left,
                    None => return None,
                },
                PrefixPart::Field(field) => {
                    let next = self.0[at + 1..].iter().find_map(|part| match part {
                        PrefixPart::Text(text) => Some(text.as_str()),
                        PrefixPart::Field(_) | PrefixPart::SessionsOnly => None,
                    });
                    let end = end_of_field(*field, rest, next)?;
                    take(*field, &rest[..end], &mut entry)?;
                    rest = &rest[end..];
                }
            }
        }
        let (severity, text) = severity_of(rest)?;
        Some(match severity {
            "DETAIL" => StderrLine::Detail(text.to_owned()),
            "HINT" | "CONTEXT" | "STATEMENT" | "QUERY" | "LOCATION" => StderrLine::Other,
            _ => {
                entry.severity = severity.to_owned();
                entry.message = text.to_owned();
                StderrLine::Entry(Box::new(entry))
            }
        })
    }
}

/// The severity with which a message begins, and its text.
fn severity_of(rest: &str) -> Option<(&str, &str)> {
    let is_severity = |word: &str| {
        (1..=10).contains(&word.len())
            && word.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
    };
    rest.split_once(":  ").filter(|(severity, _)| is_severity(severity))
}

/// The bytes of a field: times and numbers by their form, names up to what follows them.
fn end_of_field(field: char, rest: &str, next: Option<&str>) -> Option<usize> {
    let by_form = |is_part: fn(u8) -> bool| rest.bytes().take_while(|b| is_part(*b)).count();
    Some(match field {
        't' | 'm' | 's' => {
            let stamp = by_form(|b| b.is_ascii_digit() || b"-:. ".contains(&b));
            let zone = rest[stamp..]
                .bytes()
                .take_while(|b| b.is_ascii_alphanumeric() || b"+-_/".contains(b));
            let end = stamp + zone.count();
            // The blank behind a zone that is a number belongs to what follows.
            if rest[..end].ends_with(' ') { rest[..end].trim_end().len() } else { end }
        }
        'p' | 'P' | 'l' | 'x' | 'L' => by_form(|b| b.is_ascii_digit()),
        'n' => by_form(|b| b.is_ascii_digit() || b == b'.'),
        'c' | 'v' => by_form(|b| b.is_ascii_hexdigit() || b"./".contains(&b)),
        'Q' => by_form(|b| b.is_ascii_digit() || b == b'-'),
        'e' => by_form(|b| b.is_ascii_alphanumeric()),
        _ => match next {
            Some(next) => rest.find(next)?,
            None => rest.find("LOG:  ").or_else(|| rest.find("DETAIL:  "))?,
        },
    })
}

fn take(field: char, text: &str, entry: &mut LogEntry) -> Option<()> {
    match field {
        't' | 'm' => entry.at = Some(moment(text)?),
        'p' if entry.session.is_empty() => {
            text.parse::<u32>().ok()?;
            entry.session = text.to_owned();
        }
        'c' => entry.session = text.to_owned(),
        'u' => entry.role = text.to_owned(),
        'd' => entry.database = text.to_owned(),
        'a' => entry.application = text.to_owned(),
        'v' => entry.transaction = text.to_owned(),
        _ => {}
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_by_their_prefix() {
        let check = |prefix: &str, line: &str, expected: Option<[&str; 4]>| {
            let prefix = LinePrefix::parse(prefix).expect(prefix);
            let found = match prefix.read(line) {
                Some(StderrLine::Entry(entry)) => Some(entry),
                _ => None,
            };
            let found = found
                .as_ref()
                .map(|entry| [&*entry.session, &*entry.role, &*entry.database, &*entry.message]);
            assert_eq!(found, expected, "{line}");
        };
        check(
            "%m [%p] ",
            "2026-03-01 09:00:00.123 UTC [77] LOG:  hello",
            Some(["77", "", "", "hello"]),
        );
        check(
            "%m [%p] %q%u@%d ",
            "2026-03-01 09:00:00.123 UTC [77] app@shop LOG:  hello",
            Some(["77", "app", "shop", "hello"]),
        );
        check(
            "%m [%p] %q%u@%d ",
            "2026-03-01 09:00:00.123 UTC [77] LOG:  hello",
            Some(["77", "", "", "hello"]),
        );
        check(
            "%t:%c:%v:",
            "2026-03-01 09:00:00 CET:65e1.4d:3/17:LOG:  x:  y",
            Some(["65e1.4d", "", "", "x:  y"]),
        );
        check("%m [%p] ", "\tFROM t", None);
        check("%m [%p] ", "no log", None);
        for prefix in ["%m ", "%", "%p %z"] {
            assert!(LinePrefix::parse(prefix).is_err(), "{prefix}");
        }
    }
}
