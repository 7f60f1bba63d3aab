//! Numbers on the command line, read as pgbench reads them.
//!
//! pgbench reads some options strictly and others with C's `atof` and `atoi`, which take the
//! number that a text begins with and ignore the rest. Scripts in the field rely on either.

use crate::complaint::Complaint;

/// A whole number within bounds: C's `strtol` in base 10, with nothing but space after it.
pub(crate) fn bounded_int<T: TryFrom<i32>>(
    text: &str,
    option: &str,
    min: i32,
    max: i32,
) -> Result<T, Complaint> {
    let (value, rest) = leading_int(text);
    // An empty argument is 0 to strtol; a text that begins with no digit is left over whole.
    if !rest.trim_start_matches(is_space).is_empty() {
        return Err(Complaint::error(format_args!("invalid value \"{text}\" for option {option}")));
    }
    let within = i32::try_from(value).ok().filter(|value| (min..=max).contains(value));
    within
        .and_then(|value| T::try_from(value).ok())
        .ok_or_else(|| Complaint::error(format_args!("{option} must be in range {min}..{max}")))
}

/// C's `atoi`: the whole number that the text begins with, 0 for none.
pub(crate) fn prefix_int(text: &str) -> i32 {
    leading_int(text).0.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
}

/// C's `atof` for decimal numbers: the number that the text begins with, 0 for none.
pub(crate) fn prefix_float(text: &str) -> f64 {
    let text = text.trim_start_matches(is_space);
    // Rust's own syntax is the decimal part of strtod's, so the longest prefix that it takes is
    // the number. NaN, which it takes too, is no sensible value of any option.
    (1..=text.len())
        .rev()
        .filter(|&end| text.is_char_boundary(end))
        .find_map(|end| text[..end].parse::<f64>().ok())
        .filter(|value| !value.is_nan())
        .unwrap_or(0.0)
}

/// `strtol`: the number, which stays at the ends of 64 bits, and what follows it.
fn leading_int(text: &str) -> (i64, &str) {
    let trimmed = text.trim_start_matches(is_space);
    let (negative, digits) = match trimmed.as_bytes().first() {
        Some(b'-') => (true, &trimmed[1..]),
        Some(b'+') => (false, &trimmed[1..]),
        _ => (false, trimmed),
    };
    let length = digits.bytes().take_while(u8::is_ascii_digit).count();
    if length == 0 {
        return (0, text);
    }
    let magnitude = digits[..length].parse::<i64>().unwrap_or(i64::MAX);
    (if negative { -magnitude } else { magnitude }, &digits[length..])
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounded_ints_are_strict() {
        let check = |text: &str, expected: Result<i32, &str>| {
            let result = bounded_int::<i32>(text, "-c/--client", 1, i32::MAX);
            let result = result.map_err(|complaint| complaint.to_string());
            let expected = expected.map_err(|text| format!("pgbench: error: {text}"));
            assert_eq!(result, expected, "{text:?}");
        };
        let range = Err("-c/--client must be in range 1..2147483647");
        check("1", Ok(1));
        check(" +12 ", Ok(12));
        check("2147483647", Ok(2_147_483_647));
        check("2147483648", range);
        check("99999999999999999999", range);
        check("0", range);
        check("-1", range);
        check("", range);
        check("three", Err("invalid value \"three\" for option -c/--client"));
        check("1x", Err("invalid value \"1x\" for option -c/--client"));
        check("1.5", Err("invalid value \"1.5\" for option -c/--client"));
    }

    #[test]
    fn loose_numbers_take_what_they_can() {
        let float = |text: &str, expected: f64| assert_eq!(prefix_float(text), expected, "{text}");
        float("1.5", 1.5);
        float("1e3x", 1000.0);
        float(" 7ms", 7.0);
        float(".5", 0.5);
        float("1é", 1.0);
        float("1e", 1.0);
        float("", 0.0);
        float("x", 0.0);
        float("inf", f64::INFINITY);
        float("1e400", f64::INFINITY);
        float("nan", 0.0);
        let int = |text: &str, expected: i32| assert_eq!(prefix_int(text), expected, "{text}");
        int("12abc", 12);
        int("-3", -3);
        int("abc", 0);
        int("99999999999", i32::MAX);
    }
}
