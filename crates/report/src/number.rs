//! Numbers as a reader wants them: three significant digits, thousands grouped, units beside them.
//!
//! Limits: presentation only; whatever is compared or stored keeps its full precision.

/// A figure with three significant digits; whole and grouped from 100 up: `74,120`, `12.3`,
/// `0.0123`.
pub(crate) fn figure(value: f64) -> String {
    decimals(value, places(value, 3))
}

/// A figure with its unit: `5,873/s`, `3.1 ms`, `21 %`. Without a unit the bare figure.
pub(crate) fn with_unit(value: f64, unit: &str) -> String {
    match unit {
        "" => figure(value),
        "1/s" => format!("{}/s", figure(value)),
        "B" | "B/s" => bytes(value, unit),
        _ => format!("{} {unit}", figure(value)),
    }
}

/// A figure with an interval, all three with the same decimals: as many as the middle needs for
/// three digits, or as many as it takes to show that the interval has a width.
pub(crate) fn with_interval(middle: f64, low: f64, high: f64) -> (String, String) {
    let half_width = (high - low).abs() / 2.0;
    let places = places(middle, 3).max(places(half_width, 1)).min(6);
    let range = format!("[{}, {}]", decimals(low, places), decimals(high, places));
    (decimals(middle, places), range)
}

/// A duration, scaled to the unit in which it reads well.
pub(crate) fn duration_ns(ns: f64) -> String {
    let (value, unit) = match ns.abs() {
        v if v < 1e3 => (ns, "ns"),
        v if v < 1e6 => (ns / 1e3, "µs"),
        v if v < 1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    format!("{} {unit}", figure(value))
}

/// A count, whole and grouped.
pub(crate) fn count(value: u64) -> String {
    group(&value.to_string())
}

/// A share of 0 to 1 as a percentage.
pub(crate) fn percent(share: f64) -> String {
    format!("{} %", decimals(share * 100.0, places(share * 100.0, 2)))
}

/// A value with the digits that it was published with: shortest form that reads back the same.
pub(crate) fn as_written(value: f64) -> String {
    let text = value.to_string();
    match text.split_once('.') {
        Some((whole, fraction)) => format!("{}.{fraction}", group(whole)),
        None => group(&text),
    }
}

fn bytes(value: f64, unit: &str) -> String {
    let per = if unit.ends_with("/s") { "/s" } else { "" };
    let (scaled, unit) = words::scaled(value);
    format!("{} {unit}{per}", figure(scaled))
}

/// Decimals that show `digits` significant digits of a value.
fn places(value: f64, digits: i32) -> usize {
    if value == 0.0 || !value.is_finite() {
        return 0;
    }
    // 9.996 rounds to 10.0, so the magnitude is that of the rounded value.
    let magnitude = value.abs().log10().floor() as i32;
    let unit = 10f64.powi(magnitude - digits + 1);
    let rounded = (value.abs() / unit).round() * unit;
    let magnitude = (rounded.log10() + 1e-9).floor() as i32;
    (digits - 1 - magnitude).clamp(0, 9) as usize
}

fn decimals(value: f64, places: usize) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let text = format!("{:.places$}", value.abs());
    let negative = value < 0.0 && text.chars().any(|c| c.is_ascii_digit() && c != '0');
    let sign = if negative { "−" } else { "" };
    match text.split_once('.') {
        Some((whole, fraction)) => format!("{sign}{}.{fraction}", group(whole)),
        None => format!("{sign}{}", group(&text)),
    }
}

fn group(whole: &str) -> String {
    let (sign, digits) = match whole.strip_prefix('-') {
        Some(digits) => ("−", digits),
        None => ("", whole),
    };
    let grouped = digits.parse().map_or_else(|_| digits.to_owned(), words::grouped);
    format!("{sign}{grouped}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_kept_and_thousands_grouped() {
        let check = |value, text: &str| assert_eq!(figure(value), text);
        check(0.0, "0");
        check(74_120.3, "74,120");
        check(1_234_567.0, "1,234,567");
        check(123.4, "123");
        check(12.34, "12.3");
        check(9.996, "10.0");
        check(1.0, "1.00");
        check(0.01234, "0.0123");
        check(-0.5, "−0.500");
        check(f64::NAN, "–");
    }

    #[test]
    fn an_interval_keeps_its_width_visible() {
        let check = |m, l, h, middle: &str, range: &str| {
            assert_eq!(with_interval(m, l, h), (middle.to_owned(), range.to_owned()));
        };
        check(1.31, 1.27, 1.35, "1.31", "[1.27, 1.35]");
        check(1.0001, 0.9997, 1.0004, "1.0001", "[0.9997, 1.0004]");
        check(5873.4, 5712.0, 6010.0, "5,873", "[5,712, 6,010]");
        check(0.0, 0.0, 0.0, "0", "[0, 0]");
    }

    #[test]
    fn units_stand_beside_the_figure() {
        assert_eq!(with_unit(5873.0, "1/s"), "5,873/s");
        assert_eq!(with_unit(3.21, "ms"), "3.21 ms");
        assert_eq!(with_unit(12_300_000.0, "B/s"), "11.7 MiB/s");
        assert_eq!(duration_ns(812_000.0), "812 µs");
        assert_eq!(percent(0.213), "21 %");
        assert_eq!(as_written(57296.0), "57,296");
        assert_eq!(as_written(1.144), "1.144");
    }
}
