//! An interval that stays valid however often one looks at it: a confidence sequence.
//!
//! An ordinary 95 % interval covers the truth in 95 % of measurements of a length that was fixed
//! beforehand. A measurement that stops as soon as its interval says what is hoped for covers
//! it less often. A confidence sequence covers the truth at every moment at once, so any rule may
//! decide when to stop.
//!
//! The observations are what a comparison sees between two restarts of its servers, and not the blocks or octets
//! within, which share one instance of each server. Where neighbours resemble each other, the standard error is larger by
//! what [`crate::serial::dependence`] estimates.
//!
//! A measurement whose length is fixed beforehand may have [`LookSchedule::Planned`] instead: an interval at a few moments that
//! are fixed as well, which is a third narrower in the end.

use crate::interval::{ConfidenceInterval, IntervalMethod, NoInterval};
use crate::planned;
use crate::serial;

/// The fewest observations that have an interval at an error of 2.5 %.
pub const OBSERVATIONS_MIN: usize = 5;

/// The precision of the normal distribution of effects over which the sequence is mixed, in units of
/// one observation's: 0 would be narrowest for ever more observations. With this the sequence is
/// within a tenth of the narrowest one from 6 to 40 observations. It is fixed here, and so before
/// anything is measured: a sequence whose mixture depends on what was seen covers less.
const MIXTURE: f64 = 0.5;

/// Half of the widest interval around 1 that says something, as a logarithm: of one that is wider, the bounds are a
/// hundred times apart.
const HALF_MAX: f64 = std::f64::consts::LN_10;

/// The moments at which an interval is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LookSchedule {
    /// At any moment, as often as one likes.
    #[default]
    Any,
    /// At this one of so many that were planned beforehand at equal distances, from 1.
    Planned {
        /// The number.
        number: u32,
        /// How many were planned.
        of: u32,
    },
}

/// One term of a [`product of totals`](totals): what is summed up, and whether it is above or below
/// the fraction line.
#[derive(Clone, Copy, Debug)]
pub struct TotalTerm<'a> {
    /// One value for each observation, not negative.
    pub values: &'a [f64],
    /// Place of the total in the fraction: it multiplies or divides.
    pub place: FractionPlace,
}

/// Place of a total in the fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FractionPlace {
    /// Above the fraction line.
    Above,
    /// Below it.
    Below,
}

/// A quotient of totals over observations, such as `Σb / Σa`, or `(Σcpu_b / Σtx_b) / (Σcpu_a /
/// Σtx_a)`, with an interval that is valid at any number of observations.
///
/// Totals weigh each observation by the time that it stands for: a second in which one side stood
/// still counts as a second without work, where the mean of ratios would have no value.
///
/// The bounds are the confidence sequence that belongs to the t test (Lai, "On confidence
/// sequences", Annals of Statistics 1976; Wang and Ramdas, "Anytime-valid t-tests and confidence
/// sequences for Gaussian means with unknown variance", 2023) for the logarithm of the quotient,
/// which is linearized (delta method): the values at which the likelihood ratio, mixed over effects
/// of the normal distribution, is below 1/α. It is exact for normal observations of unknown
/// variance, however few they are, and 1.6 to 1.7 times as wide as Student's interval for a
/// fixed number.
///
/// # Errors
/// With fewer than [`OBSERVATIONS_MIN`] observations, terms of different lengths, a negative or
/// infinite value, a total of zero, a confidence that is not within 0..1, or an interval around 1 that says nothing:
/// its bounds are more than a hundred times apart.
pub fn totals(terms: &[TotalTerm<'_>], confidence: f64) -> Result<ConfidenceInterval, NoInterval> {
    totals_at(LookSchedule::Any, terms, confidence)
}

/// The same, valid at these looks.
pub fn totals_at(
    looks: LookSchedule,
    terms: &[TotalTerm<'_>],
    confidence: f64,
) -> Result<ConfidenceInterval, NoInterval> {
    Quotient::of(terms)?.interval(confidence, looks)
}

/// The geometric mean of the quotients of pairs, `(Πabove / Πbelow)^(1/n)`, with an interval as that of [`totals`]. What
/// both values of a pair have in common cancels out, and one that is extreme weighs no more than another.
///
/// # Errors
/// As [`totals`]; and where a value is 0.
pub fn mean_ratio(
    above: &[f64],
    below: &[f64],
    confidence: f64,
) -> Result<ConfidenceInterval, NoInterval> {
    Quotient::of_pairs(above, below)?.interval(confidence, LookSchedule::Any)
}

/// The logarithm of a quotient of totals, with its standard error.
struct Quotient {
    logarithm: f64,
    error_of_mean: f64,
    n: usize,
}

impl Quotient {
    fn interval(
        &self,
        confidence: f64,
        looks: LookSchedule,
    ) -> Result<ConfidenceInterval, NoInterval> {
        let error = crate::interval::check(&[], confidence)?;
        let Quotient { logarithm, error_of_mean, n } = *self;
        let half = error_of_mean
            * match looks {
                LookSchedule::Any => t_bound(n, error),
                LookSchedule::Planned { number, of } => planned::t_bound(n, error, number, of),
            };
        if !half.is_finite() {
            return Err(NoInterval::TooFew { n, needed: needed(error) });
        }
        if half > HALF_MAX && logarithm.abs() <= half {
            return Err(NoInterval::SaysNothing);
        }
        let method = match looks {
            LookSchedule::Any => IntervalMethod::ConfidenceSequence,
            LookSchedule::Planned { .. } => IntervalMethod::PlannedLooks,
        };
        let (low, high) = (logarithm - half, logarithm + half);
        Ok(ConfidenceInterval { point: logarithm, low, high, confidence, n, method }.map(f64::exp))
    }

    fn of_pairs(above: &[f64], below: &[f64]) -> Result<Quotient, NoInterval> {
        let n = above.len();
        if n < OBSERVATIONS_MIN {
            return Err(NoInterval::TooFew { n, needed: OBSERVATIONS_MIN });
        }
        let logs = crate::ratio::log_ratios(above, below)?;
        let logarithm = logs.iter().sum::<f64>() / n as f64;
        let squares: f64 = logs.iter().map(|log| (log - logarithm).powi(2)).sum();
        let error_of_mean = (squares / ((n - 1) * n) as f64).sqrt();
        Ok(Quotient { logarithm, error_of_mean, n })
    }

    fn of(terms: &[TotalTerm<'_>]) -> Result<Quotient, NoInterval> {
        let (logarithm, pulls) = Quotient::pulls(terms)?;
        Ok(Quotient { logarithm, error_of_mean: error_of_mean(&pulls), n: pulls.len() })
    }

    /// The logarithm, and by how much each observation pulls it.
    fn pulls(terms: &[TotalTerm<'_>]) -> Result<(f64, Vec<f64>), NoInterval> {
        // Without a term there is no observation.
        let n = terms.first().map_or(0, |term| term.values.len());
        if n < OBSERVATIONS_MIN {
            return Err(NoInterval::TooFew { n, needed: OBSERVATIONS_MIN });
        }
        let mut logarithm = 0.0;
        let mut pulls = vec![0.0; n];
        for term in terms {
            if term.values.len() != n {
                return Err(NoInterval::Unpaired { left: n, right: term.values.len() });
            }
            if term.values.iter().any(|value| !value.is_finite()) {
                return Err(NoInterval::NotFinite);
            }
            let mean = term.values.iter().sum::<f64>() / n as f64;
            if mean <= 0.0 || term.values.iter().any(|value| *value < 0.0) {
                return Err(NoInterval::NotPositive);
            }
            let sign = match term.place {
                FractionPlace::Above => 1.0,
                FractionPlace::Below => -1.0,
            };
            logarithm += sign * mean.ln();
            for (pull, value) in pulls.iter_mut().zip(term.values) {
                *pull += sign * (value / mean - 1.0);
            }
        }
        Ok((logarithm, pulls))
    }
}

/// The standard error of the mean of deviations from it, in their order of time.
fn error_of_mean(deviations: &[f64]) -> f64 {
    let n = deviations.len();
    let squares: f64 = deviations.iter().map(|one| one * one).sum();
    (squares / ((n - 1) * n) as f64).sqrt() * serial::widening(serial::dependence(deviations))
}

/// The quotient of two totals, `Σabove / Σbelow`.
pub fn ratio(
    above: &[f64],
    below: &[f64],
    confidence: f64,
) -> Result<ConfidenceInterval, NoInterval> {
    ratio_at(LookSchedule::Any, above, below, confidence)
}

/// The same, valid at these looks.
pub fn ratio_at(
    looks: LookSchedule,
    above: &[f64],
    below: &[f64],
    confidence: f64,
) -> Result<ConfidenceInterval, NoInterval> {
    totals_at(looks, &of_two(above, below), confidence)
}

/// The smallest error (1 − confidence) at which the interval of [`ratio`] leaves out `bound`: an
/// anytime-valid p-value for "the quotient is `bound`". 1 where no interval does.
pub fn ratio_p(above: &[f64], below: &[f64], bound: f64) -> Result<f64, NoInterval> {
    ratio_p_at(LookSchedule::Any, above, below, bound)
}

/// The same for the interval of [`ratio_at`].
pub fn ratio_p_at(
    looks: LookSchedule,
    above: &[f64],
    below: &[f64],
    bound: f64,
) -> Result<f64, NoInterval> {
    let Quotient { logarithm, error_of_mean, n } = Quotient::of(&of_two(above, below))?;
    let distance = if bound > 0.0 { (logarithm - bound.ln()).abs() } else { f64::INFINITY };
    let t_squared = match (distance, error_of_mean) {
        (0.0, _) => 0.0,
        (_, 0.0) => f64::INFINITY,
        (distance, error) => (distance / error).powi(2),
    };
    Ok(match looks {
        LookSchedule::Any => (1.0 / likelihood_ratio(n, t_squared)).min(1.0),
        LookSchedule::Planned { number, of } => planned::p_value(n, t_squared.sqrt(), number, of),
    })
}

/// The probability that an interval over n observations leaves out a value that their mean is `effect` away from, in
/// standard deviations of one observation: at the last of so many planned looks, or of any.
#[must_use]
pub fn power(n: usize, effect: f64, error: f64, planned: Option<u32>) -> f64 {
    let t = match planned {
        Some(of) => planned::t_bound(n, error, of, of),
        None => t_bound(n, error),
    };
    if !t.is_finite() {
        return 0.0;
    }
    // The noncentral t, by its normal approximation (Johnson and Kotz, "Continuous univariate distributions", 1970).
    let freedom = n as f64 - 1.0;
    let shift = effect.abs() * (n as f64).sqrt();
    let z = (t * (1.0 - 1.0 / (4.0 * freedom)) - shift) / (1.0 + t * t / (2.0 * freedom)).sqrt();
    planned::tail(z)
}

/// The correlation of neighbours in the observations of a quotient: see [`serial::dependence`].
///
/// # Errors
/// As [`ratio`].
pub fn neighbours(
    above: &[f64],
    below: &[f64],
) -> Result<serial::NeighbourCorrelation, NoInterval> {
    let logs = Quotient::pulls(&of_two(above, below))?;
    Ok(serial::NeighbourCorrelation::of(&logs.1))
}

/// The evidence that the quotient of [`mean_ratio`] is above `bound`: an e-value of "it is `bound` or less", which may be looked
/// at any time. Where that is true, it is 20 or more in at most one of 20 comparisons.
///
/// # Errors
/// As [`mean_ratio`].
pub fn evidence_above(above: &[f64], below: &[f64], bound: f64) -> Result<f64, NoInterval> {
    let Quotient { logarithm, error_of_mean, n } = Quotient::of_pairs(above, below)?;
    let distance = logarithm - bound.ln();
    // A quotient below the bound says nothing for one above it.
    Ok(match distance > 0.0 {
        true => likelihood_ratio(n, (distance / error_of_mean).powi(2)),
        false => 0.0,
    })
}

fn of_two<'v>(above: &'v [f64], below: &'v [f64]) -> [TotalTerm<'v>; 2] {
    [
        TotalTerm { values: above, place: FractionPlace::Above },
        TotalTerm { values: below, place: FractionPlace::Below },
    ]
}

/// Likelihood of n observations with this t² under the mixture of effects, relative to no effect.
fn likelihood_ratio(n: usize, t_squared: f64) -> f64 {
    let n = n as f64;
    let shrunk = MIXTURE / (n + MIXTURE);
    let growth = match t_squared.is_finite() {
        true => (n - 1.0 + t_squared) / (n - 1.0 + t_squared * shrunk),
        false => 1.0 / shrunk,
    };
    shrunk.sqrt() * growth.powf(n / 2.0)
}

/// The t at which [`likelihood_ratio`] is 1/error; infinite where n observations cannot reach it.
fn t_bound(n: usize, error: f64) -> f64 {
    let n = n as f64;
    let shrunk = MIXTURE / (n + MIXTURE);
    let growth = (1.0 / (error * shrunk.sqrt())).powf(2.0 / n);
    if growth * shrunk >= 1.0 {
        return f64::INFINITY;
    }
    ((n - 1.0) * (growth - 1.0) / (1.0 - growth * shrunk)).sqrt()
}

/// The number of observations from which on there is an interval at this error.
fn needed(error: f64) -> usize {
    (OBSERVATIONS_MIN..10_000).find(|n| t_bound(*n, error).is_finite()).unwrap_or(10_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(b: &[f64], a: &[f64]) -> Result<ConfidenceInterval, NoInterval> {
        super::ratio(b, a, 0.95)
    }

    #[test]
    fn a_p_value_is_the_error_at_which_the_interval_ends_at_the_bound() {
        let a: Vec<f64> = (0..60).map(|i| 100.0 + f64::from(i % 7)).collect();
        let b: Vec<f64> = (0..60).map(|i| 96.0 + f64::from(i % 5)).collect();
        let interval = ratio(&b, &a).expect("60 pairs");
        let p = |bound| ratio_p(&b, &a, bound).expect("60 pairs");
        assert!((p(interval.high) - 0.05).abs() < 1e-3, "{}", p(interval.high));
        assert!((p(interval.low) - 0.05).abs() < 1e-3, "{}", p(interval.low));
        assert!(p(interval.high * 1.01) < 0.05 && p(interval.point) == 1.0);
        assert!(p(3.0) <= 1e-14);
    }

    #[test]
    fn a_constant_factor_is_found_whatever_pairs_have_in_common() {
        let a: Vec<f64> = (0..20).map(|i| 100.0 + f64::from(i)).collect();
        let b: Vec<f64> = a.iter().map(|a| a * 0.9).collect();
        let found = ratio(&b, &a).expect("20 pairs");
        for bound in [found.low, found.point, found.high] {
            assert!((bound - 0.9).abs() < 1e-12, "{found:?}");
        }
    }

    #[test]
    fn a_side_that_stood_still_for_a_while_loses_that_time() {
        let a = vec![100.0; 40];
        let mut b = a.clone();
        b[7] = 0.0;
        let found = ratio(&b, &a).expect("40 pairs");
        assert!((found.point - 39.0 / 40.0).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn a_quotient_of_quotients() {
        let (ones, twos, threes) = (vec![1.0; 10], vec![2.0; 10], vec![3.0; 10]);
        let term = |values, place| TotalTerm { values, place };
        let terms = [
            term(threes.as_slice(), FractionPlace::Above),
            term(&twos, FractionPlace::Below),
            term(&twos, FractionPlace::Below),
            term(&ones, FractionPlace::Above),
        ];
        let found = totals(&terms, 0.95).expect("10 observations");
        assert!((found.point - 0.75).abs() < 1e-12);
    }

    #[test]
    fn reasons_for_no_interval() {
        let check = |b: &[f64], a: &[f64], expected| assert_eq!(ratio(b, a), Err(expected));
        let (ones, zeros) = ([1.0; 10], [0.0; 10]);
        check(&[1.0; 4], &[1.0; 4], NoInterval::TooFew { n: 4, needed: 5 });
        let unlike: Vec<f64> = (0..5).map(|i| 100f64.powi(i)).collect();
        let reverse: Vec<f64> = unlike.iter().rev().copied().collect();
        check(&unlike, &reverse, NoInterval::SaysNothing);
        check(&ones, &[1.0; 11], NoInterval::Unpaired { left: 10, right: 11 });
        check(&ones, &zeros, NoInterval::NotPositive);
        check(&[-1.0; 10], &ones, NoInterval::NotPositive);
        check(&[f64::NAN; 10], &ones, NoInterval::NotFinite);
    }
}
