//! `host=localhost dbname='my db'`: read, and written so that it reads the same again.

use super::error::shown;
use super::option::{is_secret, is_space};
use super::{ConninfoError, Values};

/// Reads a string of keywords and values.
pub(super) fn parse(text: &str) -> Result<Values, ConninfoError> {
    let mut values = Values::default();
    each_pair(text, |keyword, value| values.set(keyword, &value))?;
    Ok(values)
}

/// Passes on each pair as it is read, so that the first thing wrong is the one reported.
pub(super) fn each_pair(
    text: &str,
    mut take: impl FnMut(&str, String) -> Result<(), ConninfoError>,
) -> Result<(), ConninfoError> {
    let mut rest = text.trim_start_matches(is_space);
    // A password with blanks and without quotes goes on as the next keyword.
    let mut is_behind_secret = false;
    while !rest.is_empty() {
        let end = rest.find(|c| c == '=' || is_space(c)).unwrap_or(rest.len());
        let keyword = &rest[..end];
        let Some(after) = rest[end..].trim_start_matches(is_space).strip_prefix('=') else {
            let error = ConninfoError::MissingEquals(shown(keyword));
            return Err(if is_behind_secret { error.behind_secret() } else { error });
        };
        let after = after.trim_start_matches(is_space);
        let (value, left) = match after.strip_prefix('\'') {
            Some(quoted) => quoted_value(quoted)?,
            None => bare_value(after),
        };
        take(keyword, value)
            .map_err(|error| if is_behind_secret { error.behind_secret() } else { error })?;
        is_behind_secret = is_secret(keyword);
        rest = left.trim_start_matches(is_space);
    }
    Ok(())
}

/// Appends ` keyword=value`, quoted where it must be.
pub(super) fn write(text: &mut String, keyword: &str, value: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(keyword);
    text.push('=');
    let plain = |c: char| !is_space(c) && c != '\'' && c != '\\';
    if !value.is_empty() && value.chars().all(plain) {
        text.push_str(value);
        return;
    }
    text.push('\'');
    for c in value.chars() {
        if c == '\'' || c == '\\' {
            text.push('\\');
        }
        text.push(c);
    }
    text.push('\'');
}

fn bare_value(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            _ if is_space(c) => return (value, &text[at..]),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            _ => value.push(c),
        }
    }
    (value, "")
}

fn quoted_value(text: &str) -> Result<(String, &str), ConninfoError> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '\'' => return Ok((value, &text[at + 1..])),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            _ => value.push(c),
        }
    }
    Err(ConninfoError::UnterminatedQuote)
}
