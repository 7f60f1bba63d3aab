//! Figures: as many digits as are read, thousands in groups.

/// A share in percent, with two significant digits: `21 %`, `0.14 %`.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    format!("{} %", decimals(value, places(value, 2)))
}

/// Three significant digits; whole and grouped from 100 up: `74,120`, `12.3`, `0.0123`. `–` is no number.
pub fn figure(value: f64) -> String {
    decimals(value, places(value, 3))
}

/// A middle and its interval with the same decimals: as many as the middle needs for three digits, or
/// as many as it takes to show that the interval has a width.
pub fn figure_with_interval(middle: f64, low: f64, high: f64) -> (String, String) {
    let half_width = (high - low).abs() / 2.0;
    let places = places(middle, 3).max(places(half_width, 1)).min(6);
    let range = format!("[{}, {}]", decimals(low, places), decimals(high, places));
    (decimals(middle, places), range)
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
    if value.is_nan() {
        return "–".to_owned();
    }
    let text = match value.is_finite() {
        true => format!("{:.places$}", value.abs()),
        false => "∞".to_owned(),
    };
    let is_negative = value < 0.0 && text.chars().any(|c| c != '0' && c != '.');
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), crate::grouped);
    format!("{}{whole}{fraction}", if is_negative { "−" } else { "" })
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
        check(99.96, "100");
        check(12.34, "12.3");
        check(9.996, "10.0");
        check(1.0, "1.00");
        check(0.74, "0.740");
        check(0.01234, "0.0123");
        check(-0.5, "−0.500");
        check(-1234.0, "−1,234");
        check(f64::NAN, "–");
        check(f64::INFINITY, "∞");
        check(f64::NEG_INFINITY, "−∞");
    }

    #[test]
    fn an_interval_keeps_its_width_visible() {
        let check = |m, l, h, middle: &str, range: &str| {
            assert_eq!(figure_with_interval(m, l, h), (middle.to_owned(), range.to_owned()));
        };
        check(1.31, 1.27, 1.35, "1.31", "[1.27, 1.35]");
        check(1.0001, 0.9997, 1.0004, "1.0001", "[0.9997, 1.0004]");
        check(5873.4, 5712.0, 6010.0, "5,873", "[5,712, 6,010]");
        check(0.0, 0.0, 0.0, "0", "[0, 0]");
    }
}
