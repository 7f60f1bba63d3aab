//! A fast reading of a text: a key that does not depend on its literals, and where they stand, so that PostgreSQL's
//! parser reads a text with other literals once only.
//!
//! Two texts with the same masked bytes have the same tokens but for the values of literals, and so the same tree.

use twox_hash::XxHash3_128;

use crate::sql::{TextLiteral, value_of};

/// A text whose literals are masked.
#[derive(Debug, PartialEq)]
pub(crate) struct MaskedText {
    /// Digest of everything but literals and comments.
    pub(crate) digest: u128,
    /// First and last byte of each literal.
    pub(crate) literals: Vec<(usize, usize)>,
}

/// The place of a value in a text whose mask is known.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum KnownPlace {
    /// The literal with this ordinal, with a minus sign before it or not.
    Literal { ordinal: usize, is_negated: bool },
    /// A keyword: true, false, NULL.
    Keyword(Option<String>),
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// Masks a text.
pub(crate) fn masked(text: &str) -> MaskedText {
    let bytes = text.as_bytes();
    let mut digest = XxHash3_128::new();
    let mut literals = Vec::new();
    let (mut at, mut kept) = (0, 0);
    while at < bytes.len() {
        let previous = at.checked_sub(1).map(|before| bytes[before]);
        let end = match bytes[at] {
            b'\'' => {
                let is_escaped = matches!(previous, Some(b'e' | b'E'))
                    && !at.checked_sub(2).is_some_and(|before| is_word(bytes[before]));
                end_of_quoted(bytes, at, is_escaped)
            }
            b'$' if !previous.is_some_and(is_word) => match end_of_dollars(bytes, at) {
                Some(end) => end,
                None => {
                    at += 1;
                    // The number of a parameter is no literal.
                    while at < bytes.len() && bytes[at].is_ascii_digit() {
                        at += 1;
                    }
                    continue;
                }
            },
            b'0'..=b'9' if !previous.is_some_and(is_word) => end_of_number(bytes, at),
            b'"' => {
                at = end_of_quoted_name(bytes, at);
                continue;
            }
            b'-' if bytes.get(at + 1) == Some(&b'-') => {
                digest.write(&bytes[kept..at]);
                at = bytes[at..].iter().position(|b| *b == b'\n').map_or(bytes.len(), |n| at + n);
                kept = at;
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                digest.write(&bytes[kept..at]);
                at = end_of_comment(bytes, at);
                kept = at;
                // A comment separates words.
                digest.write(b" ");
                continue;
            }
            _ => {
                at += 1;
                continue;
            }
        };
        digest.write(&bytes[kept..at]);
        // What no text has: strings and numbers are of different types.
        digest.write(if bytes[at].is_ascii_digit() { b"\0n" } else { b"\0s" });
        literals.push((at, end));
        at = end;
        kept = end;
    }
    digest.write(&bytes[kept..]);
    MaskedText { digest: digest.finish_128(), literals }
}

fn end_of_quoted(bytes: &[u8], start: usize, is_escaped: bool) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if is_escaped => at += 2,
            b'\'' if bytes.get(at + 1) == Some(&b'\'') => at += 2,
            b'\'' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn end_of_quoted_name(bytes: &[u8], start: usize) -> usize {
    bytes[start + 1..].iter().position(|b| *b == b'"').map_or(bytes.len(), |n| start + n + 2)
}

fn end_of_number(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    while at < bytes.len() {
        let is_sign = matches!(bytes[at], b'+' | b'-') && matches!(bytes[at - 1], b'e' | b'E');
        if !(bytes[at].is_ascii_alphanumeric()
            || bytes[at] == b'.'
            || bytes[at] == b'_'
            || at > start && is_sign)
        {
            break;
        }
        at += 1;
    }
    at
}

/// The end of `$tag$…$tag$`; nothing where no such string begins.
fn end_of_dollars(bytes: &[u8], start: usize) -> Option<usize> {
    let rest = &bytes[start + 1..];
    let tag = rest.iter().position(|b| *b == b'$')?;
    let is_tag = !rest[..tag].first().is_some_and(u8::is_ascii_digit)
        && rest[..tag].iter().all(|b| is_word(*b) && *b != b'$');
    let delimiter = &bytes[start..start + tag + 2];
    let inner = start + delimiter.len();
    is_tag.then(|| {
        let end = bytes[inner..].windows(delimiter.len()).position(|window| window == delimiter);
        end.map_or(bytes.len(), |n| inner + n + delimiter.len())
    })
}

fn end_of_comment(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start + 2, 1_u32);
    while at < bytes.len() && depth > 0 {
        match (bytes[at], bytes.get(at + 1)) {
            (b'*', Some(b'/')) => (at, depth) = (at + 2, depth - 1),
            (b'/', Some(b'*')) => (at, depth) = (at + 2, depth + 1),
            _ => at += 1,
        }
    }
    at.min(bytes.len())
}

/// The places of the constants that the parser found, as this mask counts them; nothing if the two disagree.
pub(crate) fn places(
    masked: &MaskedText,
    constants: &[TextLiteral],
) -> Option<Vec<(u32, KnownPlace)>> {
    let place = |constant: &TextLiteral| {
        let ordinal = masked.literals.partition_point(|(start, _)| *start < constant.start);
        let is_keyword = match constant.value.as_deref() {
            None | Some("true" | "false" | "TRUE" | "FALSE") => true,
            Some(value) => {
                value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("false")
            }
        };
        // A literal begins where the constant does, or behind its sign or the letter before its quote.
        let near = masked.literals.get(ordinal).filter(|(start, _)| *start <= constant.start + 8);
        match (near, is_keyword) {
            (Some((start, _)), _) if *start == constant.start => {
                Some(KnownPlace::Literal { ordinal, is_negated: false })
            }
            (_, true) => Some(KnownPlace::Keyword(constant.value.clone())),
            (Some(_), false) => {
                let is_negated =
                    constant.value.as_ref().is_some_and(|value| value.starts_with('-'));
                Some(KnownPlace::Literal { ordinal, is_negated })
            }
            (None, false) => None,
        }
    };
    constants.iter().map(|constant| Some((constant.parameter, place(constant)?))).collect()
}

/// The values of a text at known places.
pub(crate) fn values(
    text: &str,
    masked: &MaskedText,
    places: &[(u32, KnownPlace)],
) -> Vec<(u32, Option<String>)> {
    let value = |place: &KnownPlace| match place {
        KnownPlace::Keyword(value) => value.clone(),
        KnownPlace::Literal { ordinal, is_negated } => {
            let (start, end) = *masked.literals.get(*ordinal)?;
            let is_escaped = start > 0 && matches!(text.as_bytes()[start - 1], b'e' | b'E');
            let from =
                if is_escaped && text.as_bytes()[start] == b'\'' { start - 1 } else { start };
            let value = value_of(text.get(from..end)?)?;
            Some(if *is_negated { format!("-{value}") } else { value })
        }
    };
    places.iter().map(|(parameter, place)| (*parameter, value(place))).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sql::{ReadStatement, read};

    #[test]
    fn texts_that_differ_in_literals_have_one_key() {
        let check = |one: &str, other: &str, is_same: bool| {
            assert_eq!(masked(one).digest == masked(other).digest, is_same, "{one} | {other}");
        };
        check("select 1", "select 22.5e-3", true);
        check("select 'a'", "select 'it''s'", true);
        check("select 'a'", "select 1", false);
        check("select E'a\\'b', 1", "select E'', 2", true);
        check("select $$a$$", "select $$b'$$", true);
        check("select a1", "select a2", false);
        check("select $1", "select $2", false);
        check("select \"a'1\"", "select \"a'2\"", false);
        check("select 1 /* a */", "select 2 /* 'b */", true);
        check("select 1 -- 'a\n", "select 2 -- b\n", true);
        check("select 'unclosed", "select 'also", true);
    }

    /// A text that is read by its mask has the values that the parser finds.
    #[test]
    fn values_are_those_of_the_parser() {
        let texts = [
            (
                "select a from t where b = 'it''s' and c = -5",
                "select a from t where b = '' and c = -77",
            ),
            (
                "select a from t where b in (1, 2.5) and d = true",
                "select a from t where b in (3, 4) and d = true",
            ),
            (
                "update t set a = E'x\\'y', b = $$q$$ where c = null",
                "update t set a = E'\\n', b = $$r'$$ where c = null",
            ),
            (
                "select interval '1' day, varchar(10) 'x' limit 3",
                "select interval '5' day, varchar(10) 'y' limit 4",
            ),
        ];
        for (first, second) in texts {
            let parsed = |text: &str| match read(text).expect(text).remove(0) {
                ReadStatement::Query(query) => query,
                other => panic!("{other:?}"),
            };
            let (one, two) = (masked(first), masked(second));
            assert_eq!(one.digest, two.digest, "{first}");
            let known = places(&one, &parsed(first).constants).expect(first);
            let found = values(second, &two, &known);
            let expected = parsed(second).constants;
            let expected: Vec<_> =
                expected.into_iter().map(|one| (one.parameter, one.value)).collect();
            assert_eq!(found, expected, "{second}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_masked(text in "[-'\"$/*eE a0.é\\\\\n]{0,60}") {
            let masked = masked(&text);
            for (start, end) in masked.literals {
                prop_assert!(start < end && end <= text.len());
            }
        }
    }
}
