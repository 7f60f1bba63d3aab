//! The judgement of a commit by its comparison with the good one.

use crate::search::CommitVerdict;

/// Between the good commit and the bad one, in the middle of both on a scale of ratios: a commit whose
/// interval is on one side of it is as good as the good one or as bad as the bad one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioThreshold {
    effect: f64,
}

/// Position of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntervalPosition {
    /// On one side of the threshold.
    Decided(CommitVerdict),
    /// On both.
    Open,
}

impl RatioThreshold {
    /// The threshold for a bad commit that is `effect` times as fast as the good one (or takes so many times
    /// as long).
    pub fn of_effect(effect: f64) -> RatioThreshold {
        RatioThreshold { effect }
    }

    /// The ratio at the threshold.
    pub fn ratio(self) -> f64 {
        self.effect.sqrt()
    }

    /// Judges a commit by the interval of commit ÷ good.
    pub fn judge(self, low: f64, high: f64) -> IntervalPosition {
        let ratio = self.ratio();
        let (is_below, is_above) = (high < ratio, low > ratio);
        match (is_below, is_above, self.effect < 1.0) {
            (true, _, true) | (_, true, false) => IntervalPosition::Decided(CommitVerdict::Bad),
            (_, true, true) | (true, _, false) => IntervalPosition::Decided(CommitVerdict::Good),
            (false, false, _) => IntervalPosition::Open,
        }
    }
}

/// The error of each step's interval (1 − its confidence), so that all steps of a search and of its
/// preflight together are wrong with at most this probability. A step is wrong where its interval misses
/// the truth on the side of the threshold. An interval misses on either side equally often, and only one
/// is a wrong verdict: its error may be twice the step's.
pub fn error_per_step(error: f64, steps: u32) -> f64 {
    2.0 * error / f64::from(steps.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_on_one_side_or_on_none() {
        let check = |effect: f64, low: f64, high: f64, expected| {
            let seen = RatioThreshold::of_effect(effect).judge(low, high);
            assert_eq!(seen, expected, "{effect}: [{low}, {high}]");
        };
        let (good, bad) = (
            IntervalPosition::Decided(CommitVerdict::Good),
            IntervalPosition::Decided(CommitVerdict::Bad),
        );
        check(0.95, 0.98, 1.02, good);
        check(0.95, 0.93, 0.97, bad);
        check(0.95, 0.96, 0.99, IntervalPosition::Open);
        check(1.10, 1.08, 1.12, bad);
        check(1.10, 0.99, 1.03, good);
    }
}
