//! Figures as `pgrig bench` prints its own.

/// A duration in milliseconds with three significant digits.
pub(super) fn short_ms(ns: u64) -> String {
    terms::figure(ns as f64 / 1e6)
}

/// Transactions a second, or another load: three digits, and from 100 up all before the point.
pub(super) fn rate(value: f64) -> String {
    terms::figure(value)
}
