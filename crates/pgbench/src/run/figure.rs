//! Figures as `pgrig bench` prints its own.

/// A duration in milliseconds with three significant digits.
pub(super) fn short_ms(ns: u64) -> String {
    terms::figure(ns as f64 / 1e6)
}

/// A count, thousands in groups.
pub(super) fn grouped(value: f64) -> String {
    terms::grouped(value.round() as u64)
}
