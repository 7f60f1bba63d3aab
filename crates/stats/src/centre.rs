//! The centre of a sample of differences: Student's interval, or the signed-rank interval if one
//! round stands apart.
//!
//! The rule is fixed before anything is measured: a value further from the median than
//! [`OUTLYING`] scaled median absolute deviations makes it the signed-rank interval. Choosing a
//! method by the data costs coverage; how much was simulated with the choice inside (see
//! `the_interval_covers`): for noise that is symmetric around the truth, as the difference of two
//! sides under the same disturbances is, the interval covers at least 94 % at 6, 10 and 20 rounds,
//! whether the noise is normal, has outliers, two peaks or heavy tails. With six rounds the
//! signed-rank interval is the range of the rounds; from ten on it is much the narrower one where
//! there are outliers. Of noise that disturbs one side only, both find the median rather than the
//! mean.

use crate::interval::{ConfidenceInterval, HEADLINE_ROUNDS_MIN, NoInterval};
use crate::sample;
use crate::signed_rank::{self, OBSERVATIONS_MAX};
use crate::student;

/// A value is an outlier beyond so many scaled median absolute deviations from the median. Of six
/// normal values, one is in six samples of a hundred.
pub const OUTLYING: f64 = 5.0;

/// The median absolute deviation of a normal sample times this is its standard deviation.
const MAD_SCALE: f64 = 1.4826;

/// The centre of `values` and its interval, by the rule above; above [`OBSERVATIONS_MAX`] values
/// always Student's. Below six values too few for the signed-rank interval at 95 %: Student's.
///
/// # Errors
/// Below two values, when one is not finite, or when the confidence is not within 0..1.
pub fn interval(values: &[f64], confidence: f64) -> Result<ConfidenceInterval, NoInterval> {
    let student = student::mean_interval(values, confidence)?;
    if values.len() > OBSERVATIONS_MAX || !has_outlier(values) {
        return Ok(student);
    }
    Ok(signed_rank::hodges_lehmann_interval(values, confidence).unwrap_or(student))
}

/// Evidence against a centre of `value`: the two-sided p-value that goes with [`interval`]. A rank
/// test of n values cannot go below 2¹⁻ⁿ, and so could never pass a correction for several claims;
/// where it stands at that limit, Student's p-value counts if it is smaller still. (Outliers make
/// Student's test cautious, not rash.) 1 below two values, or where one is not finite.
pub fn p_value(values: &[f64], value: f64) -> f64 {
    let student = student::mean_p(values, value);
    if values.len() > OBSERVATIONS_MAX || values.len() < HEADLINE_ROUNDS_MIN || !has_outlier(values)
    {
        return student;
    }
    let differences: Vec<f64> = values.iter().map(|one| one - value).collect();
    let rank = signed_rank::signed_rank_p(&differences).unwrap_or(1.0);
    at_least_rank(rank, values.len(), student)
}

/// A rank test's p-value, or Student's where the former is at its limit, 2¹⁻ⁿ, and larger.
fn at_least_rank(rank: f64, n: usize, student: f64) -> f64 {
    let limit = 2f64.powi(1 - n as i32) * (1.0 + 1e-9);
    if rank <= limit { rank.min(student) } else { rank }
}

/// True if a value stands apart from the rest.
fn has_outlier(values: &[f64]) -> bool {
    let Some(median) = sample::median(values) else { return false };
    let deviations: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
    let Some(mad) = sample::median(&deviations) else { return false };
    // What is the same but for rounding does not stand apart.
    let limit = (OUTLYING * MAD_SCALE * mad).max(median.abs() * 1e-9 + 1e-12);
    deviations.iter().any(|deviation| *deviation > limit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use statrs::distribution::{ContinuousCDF, Normal};

    use super::*;
    use crate::interval::IntervalMethod;
    use crate::prng::Prng;

    #[test]
    fn the_rule() {
        let check = |values: &[f64], expected: IntervalMethod| {
            assert_eq!(interval(values, 0.95).map(|one| one.method), Ok(expected), "{values:?}");
        };
        check(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], IntervalMethod::Student);
        check(&[1.0, 2.0, 3.0, 4.0, 5.0, 60.0], IntervalMethod::SignedRank);
        check(&[3.0; 6], IntervalMethod::Student);
        check(&[3.0, 3.0, 3.0, 3.0, 3.0, 4.0], IntervalMethod::SignedRank);
        check(&[1.0, 2.0, 300.0], IntervalMethod::Student);
        check(&[1.0; OBSERVATIONS_MAX + 1], IntervalMethod::Student);
        assert_eq!(interval(&[1.0], 0.95), Err(NoInterval::TooFew { n: 1, needed: 2 }));
    }

    #[test]
    fn p_goes_with_the_interval() {
        let outlying = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 900.0];
        for values in [&outlying[..9], &outlying] {
            let interval = interval(values, 0.95).expect("enough values");
            let [inside, outside] = [interval.low + 0.01, interval.low - 0.01];
            assert!(p_value(values, inside) > 0.05 && p_value(values, outside) <= 0.05);
        }
        // Six of six above: a rank test stops at 1/32. How far above, Student's knows.
        let far = [10.0, 10.1, 9.9, 10.0, 10.1, 11.5];
        assert!(p_value(&far, 0.0) < 1e-4 && p_value(&far, 9.5) <= 1.0 / 32.0);
        assert_eq!((p_value(&[1.0], 0.0), p_value(&[], 0.0)), (1.0, 1.0));
    }

    /// Noise of one measurement, in logarithms, for a kind of machine.
    type Noise = fn(&mut Prng) -> f64;

    fn normal(prng: &mut Prng) -> f64 {
        Normal::standard().inverse_cdf(prng.unit().max(1e-12))
    }

    fn slow(prng: &mut Prng, share: f64, by: f64) -> f64 {
        if prng.unit() < share { -by } else { 0.0 }
    }

    const MACHINES: [(&str, Noise); 8] = [
        ("log-normal, 3 %", |prng| 0.03 * normal(prng)),
        ("log-normal, 30 %", |prng| 0.3 * normal(prng)),
        ("outliers", |prng| 0.03 * normal(prng) + slow(prng, 0.1, 0.5)),
        ("rare, far outliers", |prng| 0.03 * normal(prng) + slow(prng, 0.05, 1.5)),
        ("two peaks", |prng| 0.02 * normal(prng) + slow(prng, 0.5, 0.3)),
        ("two unequal peaks", |prng| 0.02 * normal(prng) + slow(prng, 0.2, 0.3)),
        ("skewed", |prng| 0.1 * prng.unit().max(1e-12).ln()),
        ("Cauchy", |prng| 0.02 * (std::f64::consts::PI * (prng.unit() - 0.5)).tan()),
    ];

    /// Five standard errors below 94 % at this number of samples: a right program fails once in
    /// three million runs of one line, and the seed is fixed.
    #[test]
    fn the_interval_covers() {
        const SAMPLES: usize = 4_000;
        let least = 0.94 - 5.0 * (0.94f64 * 0.06 / SAMPLES as f64).sqrt();
        for (machine, noise) in MACHINES {
            for n in [6, 10, 20] {
                let mut prng = Prng::new(n as u64);
                let covered = (0..SAMPLES).filter(|_| {
                    let differences: Vec<f64> =
                        (0..n).map(|_| noise(&mut prng) - noise(&mut prng)).collect();
                    interval(&differences, 0.95).expect("enough values").contains(0.0)
                });
                let coverage = covered.count() as f64 / SAMPLES as f64;
                assert!(coverage > least, "{machine}, {n} rounds: {coverage}");
            }
        }
    }

    proptest! {
        #[test]
        fn the_interval_contains_its_point(values in prop::collection::vec(-1e9..1e9f64, 2..40)) {
            let interval = interval(&values, 0.95).expect("two values");
            prop_assert!(interval.contains(interval.point));
        }

        #[test]
        fn no_input_panics(values in prop::collection::vec(any::<f64>(), 0..12), c in any::<f64>()) {
            let _ = (interval(&values, c), interval(&values, 0.95));
        }
    }
}
