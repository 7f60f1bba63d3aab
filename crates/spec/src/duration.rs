//! Durations as people write them: `200us`, `500ms`, `20s`, `2min`, `1h`.

/// Milliseconds of a duration.
pub fn parse_ms(text: &str) -> Result<u64, String> {
    parse_us(text).map(|us| (us as f64 / 1e3).round() as u64)
}

/// The microseconds of a duration, or why the text is no duration.
pub(crate) fn parse_us(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim() {
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        "min" => 60e6,
        "h" => 3600e6,
        _ => return Err(format!("\"{text}\" is not a duration")),
    };
    let number: f64 = number.parse().map_err(|_| format!("\"{text}\" is not a duration"))?;
    let us = number * factor;
    if us > LONGEST_US {
        return Err(format!("\"{text}\" is longer than 30 days"));
    }
    Ok(us.round() as u64)
}

/// Nothing that a person waits for takes longer; beyond it a unit was mistaken.
const LONGEST_US: f64 = 30.0 * 24.0 * 3600e6;

/// Syntax of a duration, as a hint.
pub(crate) const HINT: &str = "write a number with a unit: 500ms, 20s, 2min, 1h";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_a_number_and_a_unit() {
        let check = |text, expected: Option<u64>| assert_eq!(parse_ms(text).ok(), expected);
        check("500ms", Some(500));
        check("1.5s", Some(1500));
        check("2 min", Some(120_000));
        check("0s", Some(0));
        check("20", None);
        check("s", None);
        check("-1s", None);
        check("1000h", None);
        check("", None);
        assert_eq!(parse_us("0.2ms"), Ok(200));
    }
}
