//! Does a value lie where it is expected? Holds, does not hold, or cannot tell.
//!
//! The value's interval decides: inside the expected range the claim holds, outside it does not,
//! and where the interval straddles a bound, or too few rounds stand behind it, it cannot be told.

use std::cmp::Ordering;
use std::fmt;

use crate::interval::{ConfidenceInterval, NoInterval};

/// Range in which a value is expected.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Expectation {
    /// ≥ the bound.
    AtLeast(f64),
    /// > the bound.
    MoreThan(f64),
    /// ≤ the bound.
    AtMost(f64),
    /// < the bound.
    LessThan(f64),
    /// Exactly this. An estimate with a width can never be, so this is for counts.
    Equal(f64),
    /// Within both bounds, which belong to it.
    Between { low: f64, high: f64 },
    /// At most `tolerance` away, as a share of the value: 0.05 means ± 5 %.
    Approximately {
        value: f64,
        /// The share it may be off.
        tolerance: f64,
    },
}

/// Conclusion about an expectation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ExpectationVerdict {
    /// The interval lies inside what is expected.
    Holds,
    /// The interval lies outside.
    DoesNotHold,
    /// Neither; why.
    CannotTell(UndecidedReason),
}

/// Why it cannot be told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum UndecidedReason {
    /// The interval reaches across a bound of what is expected.
    Straddles,
    /// Fewer rounds than a verdict takes.
    TooFewRounds {
        /// Number of observations.
        n: usize,
        /// Number that is needed.
        needed: usize,
    },
    /// The value has no interval.
    NoInterval(NoInterval),
    /// The value or the expectation is NaN.
    NotANumber,
}

impl Expectation {
    /// The verdict on a measured value, from at least `rounds_min` rounds:
    /// [`crate::HEADLINE_ROUNDS_MIN`] for a claim about an estimate; 1 for an invariant, whose
    /// value is counted and not estimated.
    pub fn judge(
        &self,
        measured: Result<&ConfidenceInterval, NoInterval>,
        rounds_min: usize,
    ) -> ExpectationVerdict {
        let interval = match measured {
            Ok(interval) => interval,
            Err(reason) => {
                return ExpectationVerdict::CannotTell(UndecidedReason::NoInterval(reason));
            }
        };
        if interval.n < rounds_min {
            let doubt = UndecidedReason::TooFewRounds { n: interval.n, needed: rounds_min };
            return ExpectationVerdict::CannotTell(doubt);
        }
        if interval.low.is_nan() || interval.high.is_nan() || self.is_nan() {
            return ExpectationVerdict::CannotTell(UndecidedReason::NotANumber);
        }
        let (inside, outside) = self.sides(interval.low, interval.high);
        match (inside, outside) {
            (true, _) => ExpectationVerdict::Holds,
            (_, true) => ExpectationVerdict::DoesNotHold,
            _ => ExpectationVerdict::CannotTell(UndecidedReason::Straddles),
        }
    }

    /// Smallest error probability at which the verdict would stand: that with which an interval
    /// around `point` still lies wholly inside or wholly outside. `p_at` gives the two-sided
    /// p-value of a bound, and is told on which side of it a value counts that is equal to it: inside where
    /// the bound belongs to the range. To be corrected where several claims are judged at once
    /// ([`crate::holm()`]).
    pub fn p_value(&self, point: f64, p_at: impl Fn(f64, Ordering) -> f64) -> f64 {
        let (from, to) = self.range();
        let belongs = !matches!(self, Expectation::MoreThan(_) | Expectation::LessThan(_));
        let p_at = |bound: f64, inside: Ordering| match bound.is_infinite() {
            true => 0.0,
            false => p_at(bound, if belongs { inside } else { inside.reverse() }),
        };
        let (p_from, p_to) = (|| p_at(from, Ordering::Greater), || p_at(to, Ordering::Less));
        if point < from {
            p_from()
        } else if point > to {
            p_to()
        } else if point.is_nan() || self.is_nan() {
            1.0
        } else {
            // Inside: both bounds must be excluded.
            p_from().max(p_to())
        }
    }

    /// The bounds of the expectation; infinite on a side without a bound.
    pub fn range(&self) -> (f64, f64) {
        match *self {
            Expectation::AtLeast(bound) | Expectation::MoreThan(bound) => (bound, f64::INFINITY),
            Expectation::AtMost(bound) | Expectation::LessThan(bound) => (f64::NEG_INFINITY, bound),
            Expectation::Equal(value) => (value, value),
            Expectation::Between { low, high } => (low, high),
            Expectation::Approximately { value, tolerance } => {
                let off = (value * tolerance).abs();
                (value - off, value + off)
            }
        }
    }

    /// True if low..high lies wholly inside what is expected, and true if it lies wholly outside.
    fn sides(&self, low: f64, high: f64) -> (bool, bool) {
        match *self {
            Expectation::MoreThan(bound) => (low > bound, high <= bound),
            Expectation::LessThan(bound) => (high < bound, low >= bound),
            _ => {
                let (from, to) = self.range();
                (from <= low && high <= to, high < from || to < low)
            }
        }
    }

    fn is_nan(&self) -> bool {
        let (from, to) = self.range();
        from.is_nan() || to.is_nan()
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expectation::AtLeast(bound) => write!(f, "≥ {bound}"),
            Expectation::MoreThan(bound) => write!(f, "> {bound}"),
            Expectation::AtMost(bound) => write!(f, "≤ {bound}"),
            Expectation::LessThan(bound) => write!(f, "< {bound}"),
            Expectation::Equal(value) => write!(f, "= {value}"),
            Expectation::Between { low, high } => write!(f, "{low} … {high}"),
            Expectation::Approximately { value, tolerance } => {
                write!(f, "{value} ± {} %", tolerance * 100.0)
            }
        }
    }
}

impl fmt::Display for ExpectationVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ExpectationVerdict::Holds => "holds",
            ExpectationVerdict::DoesNotHold => "does not hold",
            ExpectationVerdict::CannotTell(_) => "cannot tell",
        })
    }
}

impl fmt::Display for UndecidedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UndecidedReason::Straddles => write!(f, "the interval reaches across the bound"),
            UndecidedReason::TooFewRounds { n, needed } => {
                let rounds = if *n == 1 { "round was" } else { "rounds were" };
                let [n, needed] = [*n, *needed].map(in_words);
                write!(f, "{n} {rounds} measured; a verdict needs {needed}")
            }
            UndecidedReason::NoInterval(reason) => write!(f, "no interval: {reason}"),
            UndecidedReason::NotANumber => write!(f, "a value is not a number"),
        }
    }
}

/// Small numbers as a sentence has them.
fn in_words(number: usize) -> String {
    const SMALL: [&str; 7] = ["no", "one", "two", "three", "four", "five", "six"];
    SMALL.get(number).map_or_else(|| number.to_string(), |word| (*word).to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Expectation::{self, *};
    use super::*;
    use crate::interval::{HEADLINE_ROUNDS_MIN, IntervalMethod};

    fn interval(low: f64, high: f64, n: usize) -> ConfidenceInterval {
        let point = low.midpoint(high);
        ConfidenceInterval {
            point,
            low,
            high,
            confidence: 0.95,
            n,
            method: IntervalMethod::Student,
        }
    }

    #[test]
    fn the_interval_decides() {
        let check = |expected: Expectation, low: f64, high: f64, verdict: &str| {
            let found = expected.judge(Ok(&interval(low, high, 6)), HEADLINE_ROUNDS_MIN);
            assert_eq!(found.to_string(), verdict, "{expected} for {low}..{high}");
        };
        check(AtLeast(0.9), 0.9, 1.1, "holds");
        check(AtLeast(0.9), 0.8, 0.89, "does not hold");
        check(AtLeast(0.9), 0.8, 1.1, "cannot tell");
        check(AtMost(2.0), 1.0, 2.0, "holds");
        check(AtMost(2.0), 2.1, 3.0, "does not hold");
        check(MoreThan(1.0), 1.0, 1.2, "cannot tell");
        check(MoreThan(1.0), 1.01, 1.2, "holds");
        check(MoreThan(1.0), 0.8, 1.0, "does not hold");
        check(LessThan(1.0), 1.0, 1.2, "does not hold");
        check(LessThan(1.0), 0.8, 0.99, "holds");
        check(Between { low: 1.0, high: 2.0 }, 1.0, 2.0, "holds");
        check(Between { low: 1.0, high: 2.0 }, 0.5, 2.5, "cannot tell");
        check(Between { low: 1.0, high: 2.0 }, 2.5, 3.0, "does not hold");
        check(Approximately { value: 1.144, tolerance: 0.1 }, 1.05, 1.2, "holds");
        check(Approximately { value: 1.144, tolerance: 0.1 }, 1.27, 1.35, "does not hold");
        check(Approximately { value: -10.0, tolerance: 0.1 }, -10.5, -9.5, "holds");
        check(Equal(0.0), 0.0, 0.0, "holds");
        check(Equal(0.0), 0.0, 1.0, "cannot tell");
        check(Equal(0.0), 1.0, 2.0, "does not hold");
        check(AtLeast(f64::NAN), 1.0, 2.0, "cannot tell");
    }

    /// A verdict that stands by a 95 % interval has a p-value of at most 5 %.
    #[test]
    fn p_is_that_of_the_bound_in_question() {
        let p_at = |bound: f64, _| 0.01 * bound;
        let check = |expected: Expectation, point: f64, p: f64| {
            assert!((expected.p_value(point, p_at) - p).abs() < 1e-12, "{expected} for {point}");
        };
        check(AtLeast(2.0), 3.0, 0.02);
        check(AtLeast(2.0), 1.0, 0.02);
        check(AtMost(2.0), 1.0, 0.02);
        check(Between { low: 1.0, high: 4.0 }, 2.0, 0.04);
        check(Between { low: 1.0, high: 4.0 }, 0.5, 0.01);
        check(Between { low: 1.0, high: 4.0 }, 9.0, 0.04);
        check(AtLeast(2.0), f64::NAN, 1.0);
    }

    #[test]
    fn a_value_on_a_bound_is_where_the_bound_is() {
        let check = |expected: Expectation, value: f64, p: f64| {
            let values = [value; 6];
            let seen = expected
                .p_value(value, |bound, equal| crate::sign_test::median_p(&values, bound, equal));
            assert!((seen - p).abs() < 1e-12, "{expected} for {value}: {seen}");
        };
        let least = crate::sign_test::least_p(6);
        check(Equal(0.0), 0.0, least);
        check(AtMost(0.0), 0.0, least);
        check(AtLeast(0.0), 0.0, least);
        check(Between { low: 0.0, high: 1.0 }, 1.0, least);
        check(AtMost(0.0), 1.0, least);
        // It does not hold, and that is as sure.
        check(MoreThan(0.0), 0.0, least);
        check(LessThan(0.0), 0.0, least);
    }

    #[test]
    fn the_doubt_is_stated() {
        let check = |measured: Result<&ConfidenceInterval, NoInterval>, expected: &str| {
            let ExpectationVerdict::CannotTell(doubt) =
                AtLeast(1.0).judge(measured, HEADLINE_ROUNDS_MIN)
            else {
                panic!("{measured:?} got a verdict")
            };
            assert_eq!(doubt.to_string(), expected);
        };
        check(Ok(&interval(2.0, 3.0, 1)), "one round was measured; a verdict needs six");
        check(Ok(&interval(2.0, 3.0, 3)), "three rounds were measured; a verdict needs six");
        check(Ok(&interval(0.5, 3.0, 6)), "the interval reaches across the bound");
        check(Err(NoInterval::NotFinite), "no interval: a value is not a finite number");
        check(Ok(&interval(f64::NAN, 3.0, 6)), "a value is not a number");
    }

    fn expectations() -> impl Strategy<Value = Expectation> {
        let bound = -10.0..10.0f64;
        prop_oneof![
            bound.clone().prop_map(AtLeast),
            bound.clone().prop_map(MoreThan),
            bound.clone().prop_map(AtMost),
            bound.clone().prop_map(LessThan),
            bound.clone().prop_map(Equal),
            (bound.clone(), 0.0..5.0f64).prop_map(|(low, w)| Between { low, high: low + w }),
            (bound, 0.0..0.5f64).prop_map(|(value, tolerance)| Approximately { value, tolerance }),
        ]
    }

    proptest! {
        /// More rounds narrow the interval. That may turn doubt into a verdict, never a verdict
        /// into doubt or into its opposite.
        #[test]
        fn a_narrower_interval_keeps_the_verdict(
            expected in expectations(),
            low in -12.0..12.0f64,
            width in 0.0..6.0f64,
            (a, b) in (0.0..1.0f64, 0.0..1.0f64),
        ) {
            let wide = expected.judge(Ok(&interval(low, low + width, 6)), 6);
            let (from, to) = (low + width * a.min(b), low + width * a.max(b));
            let narrow = expected.judge(Ok(&interval(from, to, 12)), 6);
            prop_assert!(wide == narrow || matches!(wide, ExpectationVerdict::CannotTell(_)));
        }
    }
}
