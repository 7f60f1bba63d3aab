//! Text of strangers, for people.

use std::borrow::Cow;

/// The text with every character that commands a terminal, or hides what a line says, replaced by one
/// that is seen: a control character by its picture (ESC is `␛`), the controls beyond ASCII and those
/// that turn the direction of writing by `�`. Tabs and ends of lines stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(|c| picture(c).is_some()) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| picture(c).unwrap_or(c)).collect())
}

/// JSON in which such characters are escapes. Every reader gets the same text from it, and no terminal that
/// shows the file obeys it.
pub fn escaped(json: &str) -> Cow<'_, str> {
    // Ends of lines are the layout's; those of texts, and the controls of ASCII, are escapes already.
    let is_raw = |c: char| !c.is_ascii_control() && picture(c).is_some() || c == '\u{7f}';
    // The runner of a GitHub job obeys such a mark wherever it stands in a log.
    if json.contains("##[") {
        return Cow::Owned(escaped(&json.replace("##[", "#\\u0023[")).into_owned());
    }
    if !json.contains(is_raw) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        match is_raw(c) {
            true => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// The text with each such character replaced by a plain one that has as many bytes, for texts in which
/// places are counted.
pub fn visible_in_place(text: &str) -> Cow<'_, str> {
    if !text.contains(|c| picture(c).is_some()) {
        return Cow::Borrowed(text);
    }
    let plain = |c: char| match (picture(c), c.len_utf8()) {
        (None, _) => c,
        (_, 1) => '?',
        (_, 2) => '¿',
        _ => char::REPLACEMENT_CHARACTER,
    };
    Cow::Owned(text.chars().map(plain).collect())
}

/// Character that is shown instead of another one.
fn picture(c: char) -> Option<char> {
    match c {
        '\n' | '\t' => None,
        '\0'..='\u{1f}' => char::from_u32(0x2400 + c as u32),
        '\u{7f}' => Some('\u{2421}'),
        // The controls beyond ASCII, then marks, embeddings, overrides and isolates, then separators.
        '\u{80}'..='\u{9f}'
        | '\u{61c}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}'
        | '\u{2028}'
        | '\u{2029}' => Some(char::REPLACEMENT_CHARACTER),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_commands_a_terminal_is_seen() {
        let check = |text: &str, expected: &str| assert_eq!(visible(text), expected, "{text:?}");
        check("ERROR:  division by zero", "ERROR:  division by zero");
        check("one\n\ttwo", "one\n\ttwo");
        check("żółć 漢字 🐘 e\u{301}", "żółć 漢字 🐘 e\u{301}");
        check("\u{1b}]0;title\u{7}", "␛]0;title␇");
        check("\u{1b}[2J\u{9b}2J", "␛[2J\u{fffd}2J");
        check("back\u{8}space \r \u{7f} \0", "back␈space ␍ ␡ ␀");
        check("user\u{202e}lqs\u{2066}", "user\u{fffd}lqs\u{fffd}");
    }

    #[test]
    fn json_keeps_its_text_and_shows_what_is_in_it() {
        let check = |json: &str, expected: &str| assert_eq!(escaped(json), expected);
        check("{\n\t\"a\": \"żółć 🐘\"}", "{\n\t\"a\": \"żółć 🐘\"}");
        check("\"\u{9b}2J\u{7f}\u{202e}\u{2028}\"", r#""\u009b2J\u007f\u202e\u2028""#);
        check("\"##[group]\"", "\"#\\u0023[group]\"");
    }

    #[test]
    fn places_stay_where_they_are() {
        let check = |text: &str, expected: &str| {
            assert_eq!(visible_in_place(text), expected);
            assert_eq!(text.len(), expected.len());
        };
        check("one\n\ttwo 🐘", "one\n\ttwo 🐘");
        check("a\u{1b}[31m\u{9b}\u{202e}", "a?[31m¿\u{fffd}");
    }
}
