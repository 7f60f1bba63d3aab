//! By how much the same thing, measured twice, differs: which differences a machine cannot resolve.
//!
//! Two figures, for they answer different questions: by how much one measurement differs from
//! another, and by how much the means of n rounds do.

use crate::interval::{self, NoInterval};
use crate::ratio;
use crate::sample;
use crate::student;

/// Resolution of an A/A comparison, as factors above 1: 1.05 means that b/a lies between 1/1.05 and
/// 1.05 with the confidence asked for, although both are the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resolution {
    /// One measurement against another.
    pub one: f64,
    /// The mean of n rounds against another.
    pub means: f64,
    /// The rounds, n.
    pub n: usize,
}

/// The resolution from pairs of the same thing, measured in the same rounds: a true A/A. With d
/// the root of the mean square of ln(bᵢ/aᵢ), whose true mean is zero, one measurement differs from
/// another by t(1−α/2, n) · d, and means of n rounds by that over √n. What two copies lastingly
/// differ by counts as noise.
///
/// # Errors
/// Below two pairs, when the sides differ in length, a value is not above zero or not finite, or
/// the confidence is not within 0..1.
pub fn of_pairs(first: &[f64], second: &[f64], confidence: f64) -> Result<Resolution, NoInterval> {
    let logs = ratio::log_ratios(second, first)?;
    let error = interval::check(&logs, confidence)?;
    let n = logs.len();
    if n < 2 {
        return Err(NoInterval::TooFew { n, needed: 2 });
    }
    let square = logs.iter().map(|log| log * log).sum::<f64>() / n as f64;
    let one = student::t_quantile(1.0 - error / 2.0, n as f64) * square.sqrt();
    Ok(Resolution { one: one.exp(), means: (one / (n as f64).sqrt()).exp(), n })
}

/// The resolution from the spread between rounds, where nothing was measured twice: of each
/// variant's logarithms the standard deviation s within the variant, pooled; one measurement
/// differs from another by t(1−α/2) · s · √2, and means of n rounds by that over √n. n is the
/// smallest number of rounds of a variant with at least two. What whole rounds have in common
/// counts as noise here, so this errs on the large side for what is compared within rounds.
///
/// # Errors
/// When no variant has two rounds, a value is not above zero or not finite, or the confidence is
/// not within 0..1.
pub fn of_rounds(variants: &[&[f64]], confidence: f64) -> Result<Resolution, NoInterval> {
    let error = interval::check(&[], confidence)?;
    let (mut squares, mut freedom, mut n) = (0.0, 0, usize::MAX);
    for rounds in variants {
        let logs = ratio::logs(rounds)?;
        let Some(stddev) = sample::stddev(&logs) else { continue };
        squares += stddev.powi(2) * (logs.len() - 1) as f64;
        freedom += logs.len() - 1;
        n = n.min(logs.len());
    }
    if freedom == 0 {
        return Err(NoInterval::TooFew { n: 1, needed: 2 });
    }
    let spread = (squares / freedom as f64 * 2.0).sqrt();
    let one = student::t_quantile(1.0 - error / 2.0, freedom as f64) * spread;
    Ok(Resolution { one: one.exp(), means: (one / (n as f64).sqrt()).exp(), n })
}

#[cfg(test)]
mod tests {
    use statrs::distribution::{ContinuousCDF, Normal};

    use super::*;
    use crate::prng::Prng;

    #[test]
    fn a_machine_without_noise_resolves_everything() {
        let same = [100.0; 12];
        let pairs = of_pairs(&same, &same, 0.95);
        assert_eq!(pairs, Ok(Resolution { one: 1.0, means: 1.0, n: 12 }));
        let rounds = of_rounds(&[&same, &[5.0, 5.0]], 0.95);
        assert!(rounds.is_ok_and(|rounds| rounds.one - 1.0 < 1e-9 && rounds.n == 2));
    }

    #[test]
    fn the_spread_between_rounds_is_pooled() {
        // Two variants of different speed, each ± 1 % around its own: s ≈ 1.41 %, 2 degrees of
        // freedom, t = 4.303: one differs from another by 4.303 · 1.41 % · √2 = 8.97 %, and means
        // of two rounds by 6.3 %.
        let rounds = of_rounds(&[&[99.0, 101.0], &[990.0, 1010.0]], 0.95).expect("rounds");
        assert!((rounds.one.ln() - 0.0861).abs() < 5e-4, "{rounds:?}");
        assert!((rounds.means - 1.0627).abs() < 5e-4, "{rounds:?}");
    }

    /// The purpose of a resolution: of two further measurements of the same thing, and of the means
    /// of as many rounds, no more than one in twenty differs by more.
    #[test]
    fn what_is_measured_next_stays_within_the_resolution() {
        const SAMPLES: usize = 4_000;
        let mut prng = Prng::new(5);
        let mut normal = || 0.03 * Normal::standard().inverse_cdf(prng.unit().max(1e-12));
        let mut beyond = [0; 4];
        for _ in 0..SAMPLES {
            // A round disturbs both of its trials alike; pairs do not see it.
            let mut pairs = || -> (Vec<f64>, Vec<f64>) {
                let pair = (0..6).map(|_| {
                    let round = 3.0 * normal();
                    ((round + normal()).exp(), (round + normal()).exp())
                });
                pair.unzip()
            };
            let ((a, b), (c, d)) = (pairs(), pairs());
            let of_pairs = of_pairs(&a, &b, 0.95).expect("pairs");
            let logs = ratio::log_ratios(&d, &c).expect("pairs");
            beyond[0] += usize::from(logs[0].abs() > of_pairs.one.ln());
            let mean = sample::mean(&logs).expect("six");
            beyond[1] += usize::from(mean.abs() > of_pairs.means.ln());
            let of_rounds = of_rounds(&[&a], 0.95).expect("rounds");
            beyond[2] += usize::from((c[1] / d[0]).ln().abs() > of_rounds.one.ln());
            let apart =
                [&a, &c].map(|rounds| sample::mean(&ratio::logs(rounds).expect("positive")));
            let apart = apart[0].expect("six") - apart[1].expect("six");
            beyond[3] += usize::from(apart.abs() > of_rounds.means.ln());
        }
        for beyond in beyond {
            let share = beyond as f64 / SAMPLES as f64;
            assert!((0.03..0.075).contains(&share), "{share}");
        }
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
        assert_eq!(of_pairs(&[1.0], &[1.0], 0.95), Err(NoInterval::TooFew { n: 1, needed: 2 }));
    }
}
