//! The figures that a page carries for its charts, as JSON inside a `<script>` element.
//!
//! Made here and not by a serializer for two reasons: numbers are rounded to the four digits that
//! a chart can show, which makes a page half as large, and the text is safe inside HTML whatever
//! a study calls its parts.

use std::fmt::{self, Display, Formatter, Write as _};

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    /// Absent: a gap in a line.
    Null,
    /// A flag.
    Flag(bool),
    /// A number, written with four significant digits; not finite is null.
    Number(f64),
    /// A number that has to keep all its digits.
    Exact(u64),
    /// A text.
    Text(String),
    /// An array.
    List(Vec<Json>),
    /// An object, in order.
    Object(Vec<(&'static str, Json)>),
}

impl Json {
    pub(crate) fn text(text: impl Into<String>) -> Json {
        Json::Text(text.into())
    }

    /// A series of numbers, in which an absent one is a gap.
    pub(crate) fn series(values: impl IntoIterator<Item = Option<f64>>) -> Json {
        let numbers = values.into_iter().map(|value| value.map_or(Json::Null, Json::Number));
        Json::List(numbers.collect())
    }

    /// An array of whatever becomes JSON.
    pub(crate) fn list<T>(items: impl IntoIterator<Item = T>, each: impl Fn(T) -> Json) -> Json {
        Json::List(items.into_iter().map(each).collect())
    }
}

impl Display for Json {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Flag(flag) => write!(f, "{flag}"),
            Json::Number(value) => number(*value, f),
            Json::Exact(value) => write!(f, "{value}"),
            Json::Text(text) => quoted(text, f),
            Json::List(items) => {
                f.write_char('[')?;
                for (position, item) in items.iter().enumerate() {
                    if position > 0 {
                        f.write_char(',')?;
                    }
                    item.fmt(f)?;
                }
                f.write_char(']')
            }
            Json::Object(members) => {
                f.write_char('{')?;
                for (position, (name, value)) in members.iter().enumerate() {
                    if position > 0 {
                        f.write_char(',')?;
                    }
                    write!(f, "\"{name}\":{value}")?;
                }
                f.write_char('}')
            }
        }
    }
}

fn number(value: f64, f: &mut Formatter<'_>) -> fmt::Result {
    if !value.is_finite() {
        return f.write_str("null");
    }
    if value == 0.0 {
        return f.write_char('0');
    }
    let unit = 10f64.powi(value.abs().log10().floor() as i32 - 3);
    // Division by a power of ten is exact where multiplication by its inverse is not.
    let rounded = if unit < 1.0 {
        let inverse = (1.0 / unit).round();
        (value * inverse).round() / inverse
    } else {
        (value / unit).round() * unit
    };
    write!(f, "{rounded}")
}

/// `<`, `>` and `&` are written as escapes, so that no text can end the script element; so are
/// the two separators that JavaScript, unlike JSON, takes for line ends.
fn quoted(text: &str, f: &mut Formatter<'_>) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => write!(f, "\\u{:04x}", c as u32)?,
            c if c.is_control() => write!(f, "\\u{:04x}", c as u32)?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_four_digits() {
        let check = |value, text: &str| assert_eq!(Json::Number(value).to_string(), text);
        check(0.0, "0");
        check(1.0, "1");
        check(74_123.7, "74120");
        check(0.000_123_456, "0.0001235");
        check(-12.3456, "-12.35");
        check(0.1 + 0.2, "0.3");
        check(f64::INFINITY, "null");
    }

    #[test]
    fn no_text_ends_the_script_element() {
        let json = Json::Object(vec![("a", Json::text("</script><!-- \"&\u{2028}\n"))]);
        assert_eq!(
            json.to_string(),
            r#"{"a":"\u003c/script\u003e\u003c!-- \"\u0026\u2028\u000a"}"#
        );
    }

    #[test]
    fn gaps_are_null() {
        assert_eq!(Json::series([Some(1.5), None]).to_string(), "[1.5,null]");
    }
}
