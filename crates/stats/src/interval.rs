//! An estimate with the interval in which the true value is expected, and how that was found.

use std::fmt;

use thiserror::Error;

/// Below this many rounds no claim gets a verdict: the smallest sample for which a 95 % interval
/// exists without assuming a distribution (2 · 2⁻⁶ < 0.05 < 2 · 2⁻⁵).
pub const HEADLINE_ROUNDS_MIN: usize = 6;

/// An estimate and its confidence interval. `low ≤ point ≤ high`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConfidenceInterval {
    /// The estimate.
    pub point: f64,
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
    /// The coverage that the method promises, 0..1. Exact methods state what they attain, which
    /// is at least what was asked for.
    pub confidence: f64,
    /// Number of independent observations (rounds, pairs) that it rests on.
    pub n: usize,
    /// Method by which the bounds were computed.
    pub method: IntervalMethod,
}

/// Method by which an interval is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntervalMethod {
    /// Nothing was estimated: a count, or a value that is the same in every round.
    Exact,
    /// Mean ± t · s/√n, which assumes normally distributed observations.
    Student,
    /// Median between order statistics, by the exact sign test.
    SignTest,
    /// Hodges–Lehmann estimate between Walsh averages, by the exact Wilcoxon signed-rank test.
    SignedRank,
    /// Difference of two means ± t · its standard error, by Welch, for samples without pairs.
    Welch,
    /// A confidence sequence: valid at any number of observations, however it was chosen.
    ConfidenceSequence,
    /// An interval at one of a few moments that were planned beforehand: group-sequential, by O'Brien and Fleming.
    PlannedLooks,
    /// The whole range that was seen, when there are too few rounds for anything else.
    Range,
}

/// Why there is no interval.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[allow(missing_docs)]
pub enum NoInterval {
    #[error("{n} observations, at least {needed} are needed")]
    TooFew { n: usize, needed: usize },
    #[error("{n} observations, at most {limit} are supported")]
    TooMany { n: usize, limit: usize },
    #[error("a value is not a finite number")]
    NotFinite,
    #[error("a value is zero or negative, which has no ratio")]
    NotPositive,
    #[error("{left} values cannot be paired with {right}")]
    Unpaired { left: usize, right: usize },
    #[error("the observations differ so much that nothing can be said")]
    SaysNothing,
    #[error("a confidence of {0} is not between 0 and 1")]
    Confidence(f64),
}

impl ConfidenceInterval {
    /// A value without uncertainty, seen in `n` rounds.
    pub fn exact(value: f64, n: usize) -> Self {
        ConfidenceInterval {
            point: value,
            low: value,
            high: value,
            confidence: 1.0,
            n,
            method: IntervalMethod::Exact,
        }
    }

    /// The whole range of `values`, where there are too few for anything else. As an interval of
    /// their median it has the confidence 1 − 2¹⁻ⁿ, whatever their distribution is. None where
    /// there is no value, or one is not finite.
    pub fn range(point: f64, values: &[f64]) -> Option<Self> {
        let n = values.len();
        let finite = !values.is_empty() && point.is_finite();
        if !finite || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let low = values.iter().copied().fold(point, f64::min);
        let high = values.iter().copied().fold(point, f64::max);
        let confidence = 1.0 - 2f64.powi(1 - n as i32);
        Some(ConfidenceInterval { point, low, high, confidence, n, method: IntervalMethod::Range })
    }

    /// The interval of a rising function of the value, such as `exp` for a log-ratio.
    pub fn map(self, rising: impl Fn(f64) -> f64) -> Self {
        let (point, low, high) = (rising(self.point), rising(self.low), rising(self.high));
        ConfidenceInterval { point, low, high, ..self }
    }

    /// The interval with either bound so many times as far from the point.
    pub fn widened(self, times: f64) -> Self {
        let from_point = |bound: f64| self.point + (bound - self.point) * times;
        ConfidenceInterval { low: from_point(self.low), high: from_point(self.high), ..self }
    }

    /// True if `value` lies within the bounds.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

impl IntervalMethod {
    /// A few words for a report.
    pub fn name(self) -> &'static str {
        match self {
            IntervalMethod::Exact => "exact",
            IntervalMethod::Student => "Student t",
            IntervalMethod::SignTest => "median, sign test",
            IntervalMethod::SignedRank => "Hodges–Lehmann, Wilcoxon signed rank",
            IntervalMethod::Welch => "Welch t",
            IntervalMethod::ConfidenceSequence => "confidence sequence",
            IntervalMethod::PlannedLooks => "planned looks",
            IntervalMethod::Range => "range of the rounds",
        }
    }
}

impl fmt::Display for IntervalMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Checks the requirements that every interval has of its input. Returns the error probability, 1 −
/// confidence.
pub(crate) fn check(values: &[f64], confidence: f64) -> Result<f64, NoInterval> {
    if !(confidence > 0.0 && confidence < 1.0) {
        return Err(NoInterval::Confidence(confidence));
    }
    if values.iter().any(|value| !value.is_finite()) {
        return Err(NoInterval::NotFinite);
    }
    Ok(1.0 - confidence)
}

/// Number of observations at which all of them lying on one side of the truth, which has the
/// probability 2 · 2⁻ⁿ, is rarer than `error`.
pub(crate) fn needed_without_distribution(error: f64) -> usize {
    (2.0 / error).log2().ceil() as usize
}
