//! The noise of this machine: by how much the same thing differs from itself.
//!
//! A comparison (A/A) of a variant with itself shows which differences the machine cannot resolve.
//! It is printed beside every comparison of two variants.

use crate::interval::{Interval, Method, NoInterval};
use crate::ratio;
use crate::sample;
use crate::student;

/// What an A/A comparison resolves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resolution {
    /// The ratio of the thing to itself, with its interval; ideally around 1.
    pub ratio: Interval,
}

impl Resolution {
    /// "The same thing twice differs by ± x %": the bound of the interval that is further from
    /// 1, in percent.
    pub fn percent(&self) -> f64 {
        let furthest = self.ratio.low.ln().abs().max(self.ratio.high.ln().abs());
        furthest.exp_m1() * 100.0
    }
}

/// The resolution from pairs of the same variant, measured next to each other: the paired ratio
/// and its exact interval. For studies that run an A/A pair in each round.
///
/// # Errors
/// As [`ratio::paired_ratio`]: six pairs for 95 %.
pub fn of_pairs(first: &[f64], second: &[f64], confidence: f64) -> Result<Resolution, NoInterval> {
    Ok(Resolution { ratio: ratio::paired_ratio(second, first, confidence)? })
}

/// The values of one variant in the order of its rounds, dealt to two halves in turn: an A/A
/// comparison for [`of_pairs`] from rounds that were run anyway. An odd last one is left out.
pub fn interleaved_halves(rounds: &[f64]) -> (Vec<f64>, Vec<f64>) {
    rounds.chunks_exact(2).map(|pair| (pair[0], pair[1])).unzip()
}

/// The resolution from the spread between rounds, for studies with too few rounds to deal in
/// halves: each variant's rounds, of logarithms the standard deviation s within variants, pooled,
/// and then t(1−α/2) · s · √(2/n), the half-width of Student's interval for two means of n rounds
/// each that are equal. n is the smallest number of rounds of a variant with at least two. Drift
/// between rounds counts as noise here, so this errs on the large side.
///
/// # Errors
/// When no variant has two rounds, a value is not above zero or not finite, or the confidence is
/// not within 0..1.
pub fn of_rounds(variants: &[&[f64]], confidence: f64) -> Result<Resolution, NoInterval> {
    let error = crate::interval::check(&[], confidence)?;
    let mut squares = 0.0;
    let mut freedom = 0;
    let mut n = usize::MAX;
    for rounds in variants {
        let logs = rounds.iter().map(|value| ratio::log(*value)).collect::<Result<Vec<_>, _>>()?;
        let Some(stddev) = sample::stddev(&logs) else { continue };
        squares += stddev.powi(2) * (logs.len() - 1) as f64;
        freedom += logs.len() - 1;
        n = n.min(logs.len());
    }
    if freedom == 0 {
        return Err(NoInterval::TooFew { n: 1, needed: 2 });
    }
    let spread = (squares / freedom as f64 * 2.0 / n as f64).sqrt();
    let half = student::t_quantile(1.0 - error / 2.0, freedom as f64) * spread;
    let logs =
        Interval { point: 0.0, low: -half, high: half, confidence, n, method: Method::Student };
    Ok(Resolution { ratio: logs.map(f64::exp) })
}

#[cfg(test)]
mod tests {
    use statrs::distribution::{ContinuousCDF, Normal};

    use super::*;
    use crate::prng::Prng;

    #[test]
    fn a_machine_without_noise_resolves_everything() {
        let same = [100.0; 12];
        let (first, second) = interleaved_halves(&same);
        let resolution = of_pairs(&first, &second, 0.95).expect("six pairs");
        assert_eq!((resolution.ratio.point, resolution.percent()), (1.0, 0.0));
        let pooled = of_rounds(&[&same, &[5.0, 5.0]], 0.95).expect("rounds");
        assert!(pooled.percent() < 1e-9);
    }

    #[test]
    fn the_further_bound_counts() {
        let first = [100.0, 100.0, 100.0, 100.0, 100.0, 100.0];
        let second = [96.0, 99.0, 100.0, 101.0, 102.0, 101.0];
        let resolution = of_pairs(&first, &second, 0.95).expect("six pairs");
        assert!((resolution.percent() - (100.0 / 96.0 - 1.0) * 100.0).abs() < 1e-9);
    }

    #[test]
    fn the_spread_between_rounds_is_pooled() {
        // Two variants of different speed, each ± 1 % around its own: s ≈ 1.41 %, 2 degrees of
        // freedom, t = 4.303, n = 2, so the same thing twice differs by 4.303 · 1.41 % = 6.3 %.
        let resolution = of_rounds(&[&[99.0, 101.0], &[990.0, 1010.0]], 0.95).expect("rounds");
        assert!((resolution.percent() - 6.27).abs() < 0.05, "{}", resolution.percent());
    }

    #[test]
    fn differences_of_the_same_thing_stay_within_the_resolution() {
        const TRIALS: usize = 2_000;
        let normal = Normal::standard();
        let mut prng = Prng::new(5);
        let mut rounds = || -> Vec<f64> {
            let mut round = || (0.03 * normal.inverse_cdf(prng.unit().max(1e-12))).exp();
            (0..6).map(|_| 1_000.0 * round()).collect()
        };
        let mean = |rounds: &[f64]| sample::mean(rounds).expect("six rounds");
        let mut beyond = 0;
        for _ in 0..TRIALS {
            let (a, b) = (rounds(), rounds());
            let resolution = of_rounds(&[&a, &b], 0.95).expect("rounds");
            beyond += usize::from(!resolution.ratio.contains(mean(&b) / mean(&a)));
        }
        let share = beyond as f64 / TRIALS as f64;
        assert!((0.035..0.065).contains(&share), "{share}");
    }

    #[test]
    fn reasons_for_no_resolution() {
        let check = |variants: &[&[f64]], expected| {
            assert_eq!(of_rounds(variants, 0.95), Err(expected), "{variants:?}");
        };
        check(&[], NoInterval::TooFew { n: 1, needed: 2 });
        check(&[&[1.0], &[2.0]], NoInterval::TooFew { n: 1, needed: 2 });
        check(&[&[1.0, 0.0]], NoInterval::NotPositive);
        check(&[&[1.0, f64::NAN]], NoInterval::NotFinite);
        assert_eq!(interleaved_halves(&[1.0, 2.0, 3.0]), (vec![1.0], vec![2.0]));
    }
}
