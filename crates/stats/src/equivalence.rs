//! Is a difference large enough to matter? A region of practical equivalence around "no change".

use std::fmt;

use crate::interval::Interval;

/// Ratios that count as "the same", for all practical purposes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Region {
    /// The smallest such ratio.
    pub low: f64,
    /// The largest such ratio.
    pub high: f64,
}

/// Conclusion from the interval of a ratio about the region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// Wholly above: more, by an amount that matters.
    More,
    /// Wholly below: less, by an amount that matters.
    Less,
    /// Wholly inside: the same, for all practical purposes.
    Equal,
    /// Across a bound: measure longer.
    CannotTell,
}

impl Region {
    /// A ratio within 2 % of 1 either way: a difference that no PostgreSQL user would act on, and
    /// near what a quiet machine can resolve.
    pub const DEFAULT: Region = Region { low: 1.0 / 1.02, high: 1.02 };

    /// The region of ratios up to `share` away from 1: 0.02 gives 1/1.02 .. 1.02, so that b/a and
    /// a/b are judged alike.
    pub fn within(share: f64) -> Self {
        Region { low: 1.0 / (1.0 + share), high: 1.0 + share }
    }

    /// True if the whole interval between these bounds lies in the region.
    pub fn contains(&self, low: f64, high: f64) -> bool {
        self.low <= low && high <= self.high
    }

    /// Position of the interval of a ratio relative to the region (Kruschke, "Rejecting or
    /// accepting parameter values in Bayesian estimation", 2018: decide by region, not by
    /// significance).
    pub fn judge(&self, ratio: &Interval) -> Difference {
        if ratio.low > self.high {
            Difference::More
        } else if ratio.high < self.low {
            Difference::Less
        } else if self.contains(ratio.low, ratio.high) {
            Difference::Equal
        } else {
            Difference::CannotTell
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Difference::More => "more",
            Difference::Less => "less",
            Difference::Equal => "equal",
            Difference::CannotTell => "cannot tell",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_and_the_region() {
        let check = |low: f64, high: f64, expected: Difference| {
            let ratio = Interval { low, high, ..Interval::exact(low.midpoint(high), 8) };
            assert_eq!(Region::within(0.02).judge(&ratio), expected, "{low}..{high}");
            let inverse = Interval { low: 1.0 / high, high: 1.0 / low, ..ratio };
            let mirrored = match expected {
                Difference::More => Difference::Less,
                Difference::Less => Difference::More,
                same => same,
            };
            assert_eq!(Region::DEFAULT.judge(&inverse), mirrored, "1/({low}..{high})");
        };
        check(1.03, 1.08, Difference::More);
        check(0.90, 0.97, Difference::Less);
        check(0.99, 1.01, Difference::Equal);
        check(0.99, 1.03, Difference::CannotTell);
        check(1.01, 1.08, Difference::CannotTell);
        check(0.50, 2.00, Difference::CannotTell);
        check(f64::NAN, f64::NAN, Difference::CannotTell);
    }
}
