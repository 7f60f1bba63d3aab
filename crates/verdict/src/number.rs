//! Figures as people read them.

/// Three significant digits, thousands in groups: `1.31`, `0.740`, `5,873`, `0.00210`.
#[must_use]
pub fn number(value: f64) -> String {
    if value.is_nan() {
        return "–".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "∞" } else { "-∞" }.to_owned();
    }
    let magnitude = value.abs();
    if magnitude >= 1000.0 {
        return grouped(value);
    }
    let decimals = match magnitude {
        m if m >= 99.95 => 0,
        m if m >= 9.995 => 1,
        m if m >= 0.9995 || m == 0.0 => 2,
        m => 2 - (m.log10().floor() as i32).max(-9),
    };
    format!("{value:.*}", usize::try_from(decimals).unwrap_or(0))
}

fn grouped(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}", words::grouped(value.abs().round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_significant_digits() {
        let check = |value: f64, expected: &str| assert_eq!(number(value), expected);
        check(1.3149, "1.31");
        check(0.74, "0.740");
        check(0.0021, "0.00210");
        check(0.0, "0.00");
        check(12.34, "12.3");
        check(99.96, "100");
        check(123.4, "123");
        check(5873.4, "5,873");
        check(1_234_567.0, "1,234,567");
        check(-1234.0, "-1,234");
        check(f64::NAN, "–");
        check(f64::INFINITY, "∞");
        check(f64::NEG_INFINITY, "-∞");
    }
}
