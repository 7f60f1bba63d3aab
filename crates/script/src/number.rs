//! Numbers as text: written as PostgreSQL's printf writes them, read as C's strtod reads them.
//!
//! Writing appends to a buffer and does not allocate.

use std::fmt::{self, Write as _};

/// Append `number` in decimal.
pub(crate) fn write_int(number: i64, out: &mut Vec<u8>) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    let mut rest = number.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

/// Append `number` as `%.15g`. PostgreSQL's own printf spells what is not finite `NaN`,
/// `Infinity` and `-Infinity`.
pub(crate) fn write_double(number: f64, out: &mut Vec<u8>) {
    const SIGNIFICANT: i32 = 15;
    if number.is_nan() {
        return out.extend_from_slice(b"NaN");
    }
    if number.is_sign_negative() {
        out.push(b'-');
    }
    let number = number.abs();
    if number.is_infinite() {
        return out.extend_from_slice(b"Infinity");
    }
    let mut text = Stack::default();
    write!(text, "{number:.14e}").expect("22 bytes fit");
    let (mantissa, exponent) = text.as_str().split_once('e').expect("an exponent");
    let exponent: i32 = exponent.parse().expect("a decimal exponent");
    let mut digits = [0_u8; SIGNIFICANT as usize];
    let kept = mantissa.bytes().filter(u8::is_ascii_digit);
    digits.iter_mut().zip(kept).for_each(|(digit, byte)| *digit = byte);
    let significant = digits.iter().rposition(|digit| *digit != b'0').map_or(1, |last| last + 1);
    let digits = &digits[..significant];

    if !(-4..SIGNIFICANT).contains(&exponent) {
        write_fraction(&digits[..1], &digits[1..], out);
        out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
        if exponent.abs() < 10 {
            out.push(b'0');
        }
        write_int(i64::from(exponent.abs()), out);
    } else if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', (-exponent - 1) as usize));
        out.extend_from_slice(digits);
    } else {
        let whole = exponent as usize + 1;
        if digits.len() <= whole {
            out.extend_from_slice(digits);
            out.extend(std::iter::repeat_n(b'0', whole - digits.len()));
        } else {
            write_fraction(&digits[..whole], &digits[whole..], out);
        }
    }
}

/// `number` as `%.Nf`, for error messages.
pub(crate) fn fixed(number: f64, decimals: usize) -> String {
    match number {
        _ if number.is_nan() => "NaN".to_owned(),
        _ if number.is_infinite() && number < 0.0 => "-Infinity".to_owned(),
        _ if number.is_infinite() => "Infinity".to_owned(),
        _ => format!("{number:.decimals$}"),
    }
}

/// Read a double as C's strtod would, the whole of `text`; leading white space is allowed. `None`
/// where it is no number or out of a double's range.
pub(crate) fn parse_double(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?.trim_start_matches(is_c_space);
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned.starts_with(['+', '-']) {
        return None;
    }
    if let Some(hexadecimal) = unsigned.strip_prefix("0x").or(unsigned.strip_prefix("0X")) {
        let magnitude = parse_hexadecimal(hexadecimal)?;
        return Some(if text.starts_with('-') { -magnitude } else { magnitude });
    }
    let number: f64 = text.parse().ok()?;
    let spelled_as_digits = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let nonzero = || {
        unsigned.bytes().take_while(|c| !matches!(c, b'e' | b'E')).any(|c| matches!(c, b'1'..=b'9'))
    };
    let out_of_range =
        number.is_infinite() || number.is_subnormal() || (number == 0.0 && nonzero());
    if spelled_as_digits && out_of_range { None } else { Some(number) }
}

fn is_c_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

/// Whole hexadecimal numbers; strtod's hexadecimal fractions have no use in a benchmark's options.
fn parse_hexadecimal(digits: &str) -> Option<f64> {
    if digits.is_empty() || digits.len() > 64 {
        return None;
    }
    digits.chars().try_fold(0.0, |sum, digit| Some(sum * 16.0 + f64::from(digit.to_digit(16)?)))
}

fn write_fraction(whole: &[u8], fraction: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(whole);
    if !fraction.is_empty() {
        out.push(b'.');
        out.extend_from_slice(fraction);
    }
}

/// A small text buffer on the stack.
#[derive(Default)]
struct Stack {
    bytes: [u8; 32],
    len: usize,
}

impl Stack {
    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).expect("only whole strings are written")
    }
}

impl fmt::Write for Stack {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.get_mut(self.len..self.len + text.len()).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn double(number: f64) -> String {
        let mut out = Vec::new();
        write_double(number, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn doubles_print_as_percent_15_g() {
        for (number, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (100000.0, "100000"),
            (0.1, "0.1"),
            (1.0 / 3.0, "0.333333333333333"),
            (2.0 / 3.0, "0.666666666666667"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (123456789012345.0, "123456789012345"),
            (1234567890123456.0, "1.23456789012346e+15"),
            (999999999999999.9, "1e+15"),
            (1e15, "1e+15"),
            (1e100, "1e+100"),
            (5e-324, "4.94065645841247e-324"),
            (f64::MAX, "1.79769313486232e+308"),
            (-1.5e-7, "-1.5e-07"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(double(number), expected);
        }
    }

    #[test]
    fn doubles_are_read_as_strtod_reads_them() {
        for (text, expected) in [
            ("1.5", Some(1.5)),
            (" \t-2e3", Some(-2000.0)),
            ("5.", Some(5.0)),
            (".5", Some(0.5)),
            ("0x10", Some(16.0)),
            ("inf", Some(f64::INFINITY)),
            ("-Infinity", Some(f64::NEG_INFINITY)),
            ("1e400", None),
            ("1e-400", None),
            ("0e400", Some(0.0)),
            ("1 ", None),
            ("1e", None),
            ("+-1", None),
            ("", None),
            ("abc", None),
        ] {
            assert_eq!(parse_double(text.as_bytes()), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn ints_print_as_format_does(number: i64) {
            let mut out = Vec::new();
            write_int(number, &mut out);
            prop_assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }

        #[test]
        fn fifteen_digits_are_close_to_the_number(number in -1e300..1e300_f64) {
            let read: f64 = double(number).parse().unwrap();
            prop_assert!((read - number).abs() <= number.abs() * 1e-14);
        }
    }
}
