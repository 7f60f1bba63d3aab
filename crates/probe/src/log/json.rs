//! One line of PostgreSQL's jsonlog (15 and later): a flat object of strings and numbers.
//!
//! Limits: nested values are skipped over, none of the fields that matter has any. Text that is
//! not such an object gives nothing.

use super::entry::{Entry, WallClock};

/// The entry that `line` holds.
pub(crate) fn parse(line: &str) -> Option<Entry> {
    let mut entry = Entry::default();
    let mut at = None;
    let mut rest = line.trim().strip_prefix('{')?.trim_start();
    if rest == "}" {
        return None;
    }
    loop {
        let (key, after_key) = string(rest)?;
        let after_colon = after_key.trim_start().strip_prefix(':')?.trim_start();
        let (value, after_value) = value(after_colon)?;
        match key.as_str() {
            "timestamp" => at = WallClock::parse(&value),
            "error_severity" => entry.severity = value,
            "state_code" => entry.sqlstate = value,
            "message" => entry.message = value,
            "detail" => entry.detail = value,
            "application_name" => entry.application = value,
            "backend_type" => entry.backend_type = value,
            _ => {}
        }
        rest = after_value.trim_start();
        match rest.strip_prefix(',') {
            Some(more) => rest = more.trim_start(),
            None => break,
        }
    }
    (rest == "}").then_some(())?;
    Some(Entry { at: at?, ..entry })
}

/// A value as text, and what follows it.
fn value(text: &str) -> Option<(String, &str)> {
    if text.starts_with('"') {
        return string(text);
    }
    let end = text.find([',', '}'])?;
    let word = text[..end].trim_end();
    let plain =
        !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    plain.then(|| (word.to_owned(), &text[end..]))
}

/// The string that `text` begins with, unescaped, and what follows it.
fn string(text: &str) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix('"')?;
    let mut out = String::new();
    loop {
        let stop = rest.find(['"', '\\'])?;
        out.push_str(&rest[..stop]);
        if rest.as_bytes()[stop] == b'"' {
            return Some((out, &rest[stop + 1..]));
        }
        let (character, after) = escaped(&rest[stop + 1..])?;
        out.push(character);
        rest = after;
    }
}

/// The character behind a backslash, and what follows it. Half of a surrogate pair becomes the
/// replacement character.
fn escaped(text: &str) -> Option<(char, &str)> {
    let character = text.chars().next()?;
    let after = &text[character.len_utf8()..];
    let character = match character {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'u' => return unicode(after),
        '"' | '\\' | '/' => character,
        _ => return None,
    };
    Some((character, after))
}

fn unicode(text: &str) -> Option<(char, &str)> {
    let (first, after) = hex(text)?;
    if (0xD800..0xDC00).contains(&first)
        && let Some((second, after)) = after.strip_prefix("\\u").and_then(hex)
        && (0xDC00..0xE000).contains(&second)
    {
        let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
        return Some((char::from_u32(code)?, after));
    }
    Some((char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), after))
}

fn hex(text: &str) -> Option<(u32, &str)> {
    let digits = text.get(..4).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))?;
    Some((u32::from_str_radix(digits, 16).ok()?, &text[4..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REAL: &str = r#"{"timestamp":"2026-11-21 23:11:33.123 UTC","user":"postgres","dbname":"postgres","pid":4242,"remote_host":"[local]","session_id":"6561c0f5.1092","line_num":1,"ps":"SELECT","session_start":"2026-11-21 23:11:33 UTC","vxid":"3/2","txid":0,"error_severity":"ERROR","state_code":"22012","message":"division by zero","statement":"select 1/0 -- \"\\\n\t","application_name":"psql","backend_type":"client backend","query_id":0}"#;

    #[test]
    fn a_real_line() {
        let entry = parse(REAL).unwrap();
        assert_eq!(
            entry,
            Entry {
                at: WallClock(1_795_302_693_123_000),
                severity: "ERROR".into(),
                sqlstate: "22012".into(),
                message: "division by zero".into(),
                detail: String::new(),
                application: "psql".into(),
                backend_type: "client backend".into(),
            }
        );
    }

    #[test]
    fn a_line_cut_anywhere_gives_nothing() {
        for end in 0..REAL.len() {
            assert_eq!(parse(&REAL[..end]), None, "cut at {end}");
        }
    }

    #[test]
    fn what_is_no_such_object_gives_nothing() {
        for text in ["", "{}", "[]", "null", "{\"a\":[1]}", "{\"a\":1}", "{\"a\" 1}", "{,}"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn messages_come_through_as_another_parser_reads_them(message in "\\PC{0,40}|.{0,40}") {
            let line = serde_json::json!({
                "timestamp": "2026-11-21 23:11:33.123 UTC",
                "pid": 1, "query_id": -5, "error_severity": "LOG", "message": message,
            });
            prop_assert_eq!(parse(&line.to_string()).map(|entry| entry.message), Some(message));
        }

        #[test]
        fn escapes_come_through_as_another_parser_reads_them(
            escapes in "(\\\\u[0-9a-fA-F]{4}|\\\\[nrtbf/]|[a-z ]){0,12}"
        ) {
            let line = format!(
                "{{\"timestamp\":\"2026-11-21 23:11:33.123 UTC\",\"message\":\"{escapes}\"}}"
            );
            if let Ok(value) = serde_json::from_str::<serde_json::Value>(&line) {
                let expected = value["message"].as_str().map(str::to_owned);
                prop_assert_eq!(parse(&line).map(|entry| entry.message), expected);
            }
        }

        #[test]
        fn no_line_makes_it_panic(line in ".{0,80}", at in 0..REAL.len(), junk in ".{0,3}") {
            let _ = parse(&line);
            let _ = parse(&format!("{}{junk}{}", &REAL[..at], &REAL[at..]));
        }
    }
}
