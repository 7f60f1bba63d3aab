//! Figures as `pgrig bench` prints its own.

/// A duration in milliseconds with three significant digits.
pub(super) fn short_ms(ns: u64) -> String {
    short(ns as f64 / 1e6)
}

/// Three significant digits, no exponent.
pub(super) fn short(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = 2 - value.abs().log10().floor() as i32;
    if digits <= 0 { grouped(value) } else { format!("{value:.*}", digits.min(6) as usize) }
}

/// A count, thousands in groups.
pub(super) fn grouped(value: f64) -> String {
    words::grouped(value.round() as u64)
}
