//! The Hodges–Lehmann estimate with its exact interval, which inverts Wilcoxon's signed-rank test,
//! and the test's exact p-value.
//!
//! The method of choice for a few rounds: it assumes independent observations that spread
//! symmetrically, not that they are normal (Hollander, Wolfe and Chicken, "Nonparametric
//! statistical methods", §3.1–3.3). The null distribution is computed, not approximated.

use crate::interval::{self, ConfidenceInterval, IntervalMethod, NoInterval};
use crate::sample;

/// Walsh averages grow with the square of the sample, the null distribution's computation with
/// its cube. A study has dozens of rounds.
pub const OBSERVATIONS_MAX: usize = 300;

/// The Hodges–Lehmann estimate, the median of all Walsh averages (xᵢ + xⱼ)/2, i ≤ j, with its exact
/// interval: the Walsh averages of rank c+1 from either end, with the largest c for which P(W ≤ c) ≤ α/2. `confidence` of the result is the
/// attained 1 − 2·P(W ≤ c): 96.9 % for six values at 95 %.
///
/// # Errors
/// When there are too few values for the confidence (six for 95 %) or more than
/// [`OBSERVATIONS_MAX`], when one is not finite, or when the confidence is not within 0..1.
pub fn hodges_lehmann_interval(
    values: &[f64],
    confidence: f64,
) -> Result<ConfidenceInterval, NoInterval> {
    let error = interval::check(values, confidence)?;
    let n = values.len();
    if n > OBSERVATIONS_MAX {
        return Err(NoInterval::TooMany { n, limit: OBSERVATIONS_MAX });
    }
    let mut tail = 0.0;
    let mut cut = 0;
    for probability in null_distribution(&(1..=n).collect::<Vec<_>>()) {
        // The tolerance keeps a tail that equals α/2 but for rounding.
        if tail + probability > error / 2.0 * (1.0 + 1e-12) {
            break;
        }
        tail += probability;
        cut += 1;
    }
    if cut == 0 || n == 0 {
        let needed = interval::needed_without_distribution(error);
        return Err(NoInterval::TooFew { n, needed });
    }
    let walsh = walsh_averages(values);
    let point = sample::quantile_of_sorted(&walsh, 0.5).ok_or(NoInterval::NotFinite)?;
    let (low, high) = (walsh[cut - 1], walsh[walsh.len() - cut]);
    let confidence = 1.0 - 2.0 * tail;
    Ok(ConfidenceInterval { point, low, high, confidence, n, method: IntervalMethod::SignedRank })
}

/// The two-sided p-value of the hypothesis that `differences` lie symmetrically around zero.
/// Zeros are left out and ties share their mean rank (Wilcoxon, 1945); the distribution is that
/// of the ranks at hand, so it is exact with ties too. `None` when a value is not finite or more
/// than [`OBSERVATIONS_MAX`] remain; 1 when none remains.
pub fn signed_rank_p(differences: &[f64]) -> Option<f64> {
    if differences.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut values: Vec<f64> = differences.iter().copied().filter(|value| *value != 0.0).collect();
    if values.len() > OBSERVATIONS_MAX {
        return None;
    }
    values.sort_unstable_by(|a, b| a.abs().total_cmp(&b.abs()));
    let ranks = doubled_ranks(&values);
    let positive: usize =
        ranks.iter().zip(&values).filter(|(_, value)| **value > 0.0).map(|(rank, _)| rank).sum();
    let distribution = null_distribution(&ranks);
    let at_most: f64 = distribution[..=positive].iter().sum();
    let at_least: f64 = distribution[positive..].iter().sum();
    Some((2.0 * at_most.min(at_least)).min(1.0))
}

fn walsh_averages(values: &[f64]) -> Vec<f64> {
    let mut averages = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
    for (index, left) in values.iter().enumerate() {
        // Halves first: the sum of two large values may overflow.
        averages.extend(values[index..].iter().map(|right| left / 2.0 + right / 2.0));
    }
    averages.sort_unstable_by(f64::total_cmp);
    averages
}

/// The probabilities of each sum of `ranks` when every rank counts with probability 1/2.
fn null_distribution(ranks: &[usize]) -> Vec<f64> {
    let mut probabilities = vec![0.0; ranks.iter().sum::<usize>() + 1];
    probabilities[0] = 1.0;
    let mut reached = 0;
    for &rank in ranks {
        reached += rank;
        for sum in (0..=reached).rev() {
            let with = if sum >= rank { probabilities[sum - rank] } else { 0.0 };
            probabilities[sum] = (probabilities[sum] + with) / 2.0;
        }
    }
    probabilities
}

/// Twice the mid-ranks of values sorted by magnitude: ties share the mean of their ranks, and
/// doubling keeps that an integer.
fn doubled_ranks(sorted: &[f64]) -> Vec<usize> {
    let mut ranks = Vec::with_capacity(sorted.len());
    for tied in sorted.chunk_by(|a, b| a.abs() == b.abs()) {
        let first = ranks.len() + 1;
        let last = ranks.len() + tied.len();
        ranks.extend(std::iter::repeat_n(first + last, tied.len()));
    }
    ranks
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::prng::Prng;

    #[test]
    fn six_values_are_the_fewest_for_95_percent() {
        let values = [3.0, 1.0, 6.0, 2.0, 5.0, 4.0];
        let interval = hodges_lehmann_interval(&values, 0.95).expect("six values");
        assert_eq!((interval.low, interval.point, interval.high), (1.0, 3.5, 6.0));
        assert_eq!(interval.confidence, 1.0 - 2.0 / 64.0);
        let few = hodges_lehmann_interval(&values[..5], 0.95);
        assert_eq!(few, Err(NoInterval::TooFew { n: 5, needed: 6 }));
        assert_eq!(hodges_lehmann_interval(&[], 0.9), Err(NoInterval::TooFew { n: 0, needed: 5 }));
    }

    /// P(W ≤ c) from the tables in Hollander and Wolfe, A.4.
    #[test]
    fn the_null_distribution_is_the_tables() {
        let check = |n: usize, cut: usize, expected: f64| {
            let tail: f64 = null_distribution(&(1..=n).collect::<Vec<_>>())[..=cut].iter().sum();
            assert!((tail - expected).abs() < 5e-4, "{n} {cut}: {tail}");
        };
        check(4, 0, 0.0625);
        check(7, 2, 0.0234);
        check(10, 8, 0.0244);
        check(15, 25, 0.0240);
        check(20, 52, 0.0242);
    }

    #[test]
    fn p_values() {
        let check = |values: &[f64], expected: Option<f64>| {
            assert_eq!(signed_rank_p(values), expected, "{values:?}");
        };
        check(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], Some(2.0 / 64.0));
        check(&[-1.0, -2.0, -3.0, -4.0, -5.0, -6.0], Some(2.0 / 64.0));
        check(&[1.0, 1.0, 1.0, -1.0], Some(10.0 / 16.0));
        check(&[0.0, 0.0], Some(1.0));
        check(&[], Some(1.0));
        check(&[1.0, f64::NAN], None);
    }

    #[test]
    fn more_than_the_limit_is_refused() {
        let values = vec![1.0; OBSERVATIONS_MAX + 1];
        let error = hodges_lehmann_interval(&values, 0.95).expect_err("too many");
        assert_eq!(error.to_string(), "301 observations, at most 300 are supported");
    }

    /// A symmetric, heavy-tailed distribution: the exact interval must cover at least as often
    /// as it promises, whatever the shape.
    #[test]
    fn the_interval_covers_as_often_as_it_promises() {
        const TRIALS: usize = 4_000;
        for n in [6, 9, 14] {
            let mut prng = Prng::new(n as u64);
            let mut covered = 0;
            let mut promised = 0.0;
            for _ in 0..TRIALS {
                let values: Vec<f64> = (0..n)
                    .map(|_| 10.0 + (std::f64::consts::PI * (prng.unit() - 0.5)).tan())
                    .collect();
                let interval = hodges_lehmann_interval(&values, 0.95).expect("enough values");
                covered += usize::from(interval.contains(10.0));
                promised = interval.confidence;
            }
            let coverage = covered as f64 / TRIALS as f64;
            // Three standard errors of a share of 95 % in 4,000.
            assert!((coverage - promised).abs() < 0.0105, "{n}: {coverage} for {promised}");
        }
    }

    proptest! {
        #[test]
        fn the_interval_contains_its_point(values in prop::collection::vec(-1e9..1e9f64, 6..40)) {
            let interval = hodges_lehmann_interval(&values, 0.95).expect("enough values");
            prop_assert!(interval.contains(interval.point));
            prop_assert!(interval.confidence >= 0.95);
        }

        #[test]
        fn zero_outside_the_interval_means_a_small_p(
            values in prop::collection::vec(-1.0..2.0f64, 6..20),
        ) {
            let interval = hodges_lehmann_interval(&values, 0.95).expect("enough values");
            let p = signed_rank_p(&values).expect("finite");
            prop_assert_eq!(!interval.contains(0.0), p <= 0.05);
        }

        #[test]
        fn p_is_that_of_all_sign_patterns(values in prop::collection::vec(-4i32..5, 1..9)) {
            let values = values.into_iter().filter(|value| *value != 0);
            let values: Vec<f64> = values.map(f64::from).collect();
            let p = signed_rank_p(&values).expect("finite");
            prop_assert!((p - brute_force_p(&values)).abs() < 1e-12);
        }

        #[test]
        fn no_input_panics(
            values in prop::collection::vec(any::<f64>(), 0..12),
            c in any::<f64>(),
        ) {
            let _ = signed_rank_p(&values);
            let _ = hodges_lehmann_interval(&values, c);
            let _ = hodges_lehmann_interval(&values, 0.95);
        }
    }

    /// The definition: among all 2ⁿ ways to give the magnitudes signs, how many are as extreme.
    fn brute_force_p(values: &[f64]) -> f64 {
        let rank = |value: f64| -> f64 {
            let smaller = values.iter().filter(|v| v.abs() < value.abs()).count() as f64;
            let equal = values.iter().filter(|v| v.abs() == value.abs()).count() as f64;
            smaller + (equal + 1.0) / 2.0
        };
        let ranks: Vec<f64> = values.iter().map(|&value| rank(value)).collect();
        let seen: f64 =
            values.iter().zip(&ranks).filter(|(v, _)| **v > 0.0).map(|(_, rank)| rank).sum();
        let patterns = 1u32 << values.len();
        let sum = |pattern: u32| -> f64 {
            (0..values.len()).filter(|bit| pattern >> bit & 1 == 1).map(|bit| ranks[bit]).sum()
        };
        let low = (0..patterns).filter(|&pattern| sum(pattern) <= seen).count() as f64;
        let high = (0..patterns).filter(|&pattern| sum(pattern) >= seen).count() as f64;
        (2.0 * low.min(high) / f64::from(patterns)).min(1.0)
    }
}
