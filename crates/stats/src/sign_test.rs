//! The median's interval between order statistics: valid for any distribution, symmetric or not.

use std::cmp::Ordering;

use statrs::distribution::{Binomial, DiscreteCDF};

use crate::interval::{self, ConfidenceInterval, IntervalMethod, NoInterval};
use crate::sample;

/// The median with the interval from the exact sign test: the order statistics of rank c+1 from
/// either end, with the largest c for which P(Binomial(n, ½) ≤ c) ≤ α/2 (Hollander, Wolfe and
/// Chicken, §3.6). `confidence` of the result is the attained one.
///
/// # Errors
/// When there are too few values for the confidence (six for 95 %), when one is not finite, or
/// when the confidence is not within 0..1.
pub fn median_interval(values: &[f64], confidence: f64) -> Result<ConfidenceInterval, NoInterval> {
    let error = interval::check(values, confidence)?;
    let n = values.len();
    let too_few = NoInterval::TooFew { n, needed: interval::needed_without_distribution(error) };
    let heads = Binomial::new(0.5, n as u64).map_err(|_| too_few)?;
    let tail = |cut: usize| heads.cdf(cut as u64);
    // The tolerance keeps a tail that equals α/2 but for rounding.
    let allowed = error / 2.0 * (1.0 + 1e-9);
    if n == 0 || tail(0) > allowed {
        return Err(too_few);
    }
    let (mut fits, mut exceeds) = (0, n / 2 + 1);
    while exceeds - fits > 1 {
        let middle = fits.midpoint(exceeds);
        if tail(middle) <= allowed { fits = middle } else { exceeds = middle }
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let point = sample::quantile_of_sorted(&sorted, 0.5).ok_or(too_few)?;
    let (low, high) = (sorted[fits], sorted[n - 1 - fits]);
    let confidence = 1.0 - 2.0 * tail(fits);
    Ok(ConfidenceInterval { point, low, high, confidence, n, method: IntervalMethod::SignTest })
}

/// The two-sided p-value of the hypothesis that the median is `value`, by the exact sign test. Values equal
/// to it count as less or as greater, as `equal` says. It is never below 2¹⁻ⁿ ([`least_p`]). Student's test would go
/// below, and be wrong: of noise with two peaks, all of n values lie in the same one, close together,
/// that often. 1 where there is no value or one is not finite.
pub fn median_p(values: &[f64], value: f64, equal: Ordering) -> f64 {
    if values.iter().any(|value| !value.is_finite()) {
        return 1.0;
    }
    let above =
        values.iter().filter(|one| **one > value || (**one == value && equal.is_gt())).count();
    let below = values.len() - above;
    let heads = Binomial::new(0.5, values.len() as u64);
    heads.map_or(1.0, |heads| (2.0 * heads.cdf(above.min(below) as u64)).min(1.0))
}

/// The smallest p-value that n values can have in [`median_p`].
pub fn least_p(n: usize) -> f64 {
    2f64.powi(1 - n as i32).min(1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The ranks of the classic table (Conover, "Practical nonparametric statistics").
    #[test]
    fn the_ranks_are_the_tables() {
        let check = |n: usize, low: f64, high: f64| {
            let values: Vec<f64> = (1..=n).rev().map(|value| value as f64).collect();
            let interval = median_interval(&values, 0.95).expect("enough values");
            assert_eq!((interval.low, interval.high), (low, high), "{n}");
        };
        check(6, 1.0, 6.0);
        check(8, 1.0, 8.0);
        check(9, 2.0, 8.0);
        check(20, 6.0, 15.0);
        check(25, 8.0, 18.0);
    }

    #[test]
    fn too_few() {
        let five = median_interval(&[1.0; 5], 0.95);
        assert_eq!(five, Err(NoInterval::TooFew { n: 5, needed: 6 }));
        assert_eq!(median_interval(&[], 0.95), Err(NoInterval::TooFew { n: 0, needed: 6 }));
    }

    #[test]
    fn p_values() {
        let check = |values: &[f64], expected: f64| {
            assert!((median_p(values, 0.0, Ordering::Less) - expected).abs() < 1e-12, "{values:?}");
        };
        check(&[1.0, 1.0, 1.0, 1.0, 1.0, 99.0], 2.0 / 64.0);
        check(&[1.0; 6], least_p(6));
        check(&[-1.0, -1.0, -1.0, -1.0, -1.0, 1.0], 14.0 / 64.0);
        check(&[1.0, -1.0], 1.0);
        check(&[0.0, 0.0], 0.5);
        check(&[], 1.0);
        check(&[1.0, f64::NAN], 1.0);
    }

    proptest! {
        #[test]
        fn the_interval_contains_its_point(values in prop::collection::vec(-1e9..1e9f64, 6..80)) {
            let interval = median_interval(&values, 0.95).expect("enough values");
            prop_assert!(interval.contains(interval.point) && interval.confidence >= 0.95);
        }
    }
}
