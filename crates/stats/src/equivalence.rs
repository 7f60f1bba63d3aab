//! Is a difference large enough to matter? A region of practical equivalence around "no change".

use std::fmt;

use crate::interval::ConfidenceInterval;

/// Ratios that count as "the same", for all practical purposes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EquivalenceRegion {
    /// The smallest such ratio.
    pub low: f64,
    /// The largest such ratio.
    pub high: f64,
}

/// Conclusion from the interval of a ratio about the region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RatioConclusion {
    /// Wholly above: more, by an amount that matters.
    More,
    /// Wholly below: less, by an amount that matters.
    Less,
    /// Wholly inside: the same, for all practical purposes.
    Equal,
    /// Across a bound: measure longer.
    CannotTell,
}

impl EquivalenceRegion {
    /// A ratio within 2 % of 1 either way: a difference that no PostgreSQL user would act on, and
    /// near what a quiet machine can resolve.
    pub const DEFAULT: EquivalenceRegion = EquivalenceRegion { low: 1.0 / 1.02, high: 1.02 };

    /// The region of ratios up to `share` away from 1: 0.02 gives 1/1.02 .. 1.02, so that b/a and
    /// a/b are judged alike.
    pub fn within(share: f64) -> Self {
        EquivalenceRegion { low: 1.0 / (1.0 + share), high: 1.0 + share }
    }

    /// True if the whole interval between these bounds lies in the region.
    pub fn contains(&self, low: f64, high: f64) -> bool {
        self.low <= low && high <= self.high
    }

    /// Position of the interval of a ratio relative to the region (Kruschke, "Rejecting or
    /// accepting parameter values in Bayesian estimation", 2018: decide by region, not by
    /// significance).
    pub fn judge(&self, ratio: &ConfidenceInterval) -> RatioConclusion {
        if ratio.low > self.high {
            RatioConclusion::More
        } else if ratio.high < self.low {
            RatioConclusion::Less
        } else if self.contains(ratio.low, ratio.high) {
            RatioConclusion::Equal
        } else {
            RatioConclusion::CannotTell
        }
    }
}

impl fmt::Display for RatioConclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RatioConclusion::More => "more",
            RatioConclusion::Less => "less",
            RatioConclusion::Equal => "equal",
            RatioConclusion::CannotTell => "cannot tell",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_and_the_region() {
        let check = |low: f64, high: f64, expected: RatioConclusion| {
            let ratio = ConfidenceInterval {
                low,
                high,
                ..ConfidenceInterval::exact(low.midpoint(high), 8)
            };
            assert_eq!(EquivalenceRegion::within(0.02).judge(&ratio), expected, "{low}..{high}");
            let inverse = ConfidenceInterval { low: 1.0 / high, high: 1.0 / low, ..ratio };
            let mirrored = match expected {
                RatioConclusion::More => RatioConclusion::Less,
                RatioConclusion::Less => RatioConclusion::More,
                same => same,
            };
            assert_eq!(EquivalenceRegion::DEFAULT.judge(&inverse), mirrored, "1/({low}..{high})");
        };
        check(1.03, 1.08, RatioConclusion::More);
        check(0.90, 0.97, RatioConclusion::Less);
        check(0.99, 1.01, RatioConclusion::Equal);
        check(0.99, 1.03, RatioConclusion::CannotTell);
        check(1.01, 1.08, RatioConclusion::CannotTell);
        check(0.50, 2.00, RatioConclusion::CannotTell);
        check(f64::NAN, f64::NAN, RatioConclusion::CannotTell);
    }
}
