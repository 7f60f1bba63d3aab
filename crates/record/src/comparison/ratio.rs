//! A ratio with its interval.

use serde::{Deserialize, Serialize};
use stats::equivalence::EquivalenceRegion;

/// A ratio with its interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricRatio {
    /// The estimate.
    pub value: f64,
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
    /// The coverage that the method promises, 0..1.
    pub confidence: f64,
    /// Observations that it rests on.
    pub n: usize,
    /// The method by which the bounds were found.
    pub method: String,
}

impl MetricRatio {
    /// Half the width of the interval, as a share of 1.
    pub fn half_width(&self) -> f64 {
        (self.high / self.low).ln() / 2.0
    }

    /// True if the whole interval is within this share of 1.
    #[must_use]
    pub fn is_within(&self, threshold: f64) -> bool {
        EquivalenceRegion::within(threshold).contains(self.low, self.high)
    }

    /// `0.968× [0.957, 0.979]`: two digits of the interval's width are told, and no more.
    pub fn words(&self) -> String {
        let width = (self.high - self.low).max(self.value.abs() * 1e-4).max(f64::MIN_POSITIVE);
        let digits = (1.0 - width.log10().floor()).clamp(0.0, 9.0) as usize;
        let MetricRatio { value, low, high, .. } = self;
        format!("{value:.digits$}× [{low:.digits$}, {high:.digits$}]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_follow_the_interval() {
        let check = |value, low, high, expected: &str| {
            let (confidence, n, method) = (0.95, 9, String::new());
            assert_eq!(MetricRatio { value, low, high, confidence, n, method }.words(), expected);
        };
        check(0.968, 0.957, 0.979, "0.968× [0.957, 0.979]");
        check(0.99812, 0.99712, 0.99912, "0.9981× [0.9971, 0.9991]");
        check(0.005274, 0.005111, 0.005442, "0.00527× [0.00511, 0.00544]");
        check(189.6, 171.2, 210.0, "190× [171, 210]");
    }
}
