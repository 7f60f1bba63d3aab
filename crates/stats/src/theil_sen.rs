//! The trend of a series: its Theil–Sen slope.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::sample;

/// The pairs of this many points are 180,000; a longer series is averaged down to so many.
const POINTS_MAX: usize = 600;

/// A slope, per step of the series, and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Slope {
    /// The median of the slopes of all pairs.
    pub point: f64,
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
}

/// The median of the slopes between all pairs of points, robust against up to 29 % of outliers
/// such as the seconds of a checkpoint, with the interval from Kendall's statistic in its normal
/// approximation (Sen, "Estimates of the regression coefficient based on Kendall's tau", 1968).
/// The points are one step apart. `None` below three points, when a value is not finite, or when
/// the confidence is not within 0..1.
pub(crate) fn theil_sen(values: &[f64], confidence: f64) -> Option<Slope> {
    let usable = confidence > 0.0 && confidence < 1.0 && values.iter().all(|v| v.is_finite());
    if !usable || values.len() < 3 {
        return None;
    }
    let group = values.len().div_ceil(POINTS_MAX);
    let means: Vec<f64> = values.chunks_exact(group).filter_map(sample::mean).collect();
    let mut slopes = Vec::with_capacity(means.len() * (means.len() - 1) / 2);
    for (i, left) in means.iter().enumerate() {
        let later = means[i + 1..].iter().enumerate();
        slopes.extend(later.map(|(gap, right)| (right - left) / (gap + 1) as f64));
    }
    slopes.sort_unstable_by(f64::total_cmp);
    let n = means.len() as f64;
    let deviation = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    let reach = Normal::standard().inverse_cdf((1.0 + confidence) / 2.0) * deviation;
    let pairs = slopes.len() as f64;
    let low = ((pairs - reach) / 2.0).floor().max(0.0) as usize;
    let high = ((pairs + reach) / 2.0).ceil().min(pairs - 1.0) as usize;
    let per_step = 1.0 / group as f64;
    Some(Slope {
        point: sample::quantile_of_sorted(&slopes, 0.5)? * per_step,
        low: slopes[low] * per_step,
        high: slopes[high] * per_step,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_with_outliers() {
        let mut values: Vec<f64> = (0..30).map(|x| 5.0 + 2.0 * f64::from(x)).collect();
        (values[3], values[17], values[29]) = (500.0, 0.0, -70.0);
        let slope = theil_sen(&values, 0.95).expect("thirty points");
        assert_eq!(slope.point, 2.0);
        assert!(slope.low <= 2.0 && slope.high >= 2.0 && slope.low > 1.0 && slope.high < 3.0);
    }

    #[test]
    fn a_long_series_is_averaged() {
        let values: Vec<f64> = (0..5_000).map(|x| 0.5 * f64::from(x)).collect();
        let slope = theil_sen(&values, 0.95).expect("many points");
        assert!((slope.point - 0.5).abs() < 1e-9, "{slope:?}");
    }

    #[test]
    fn what_has_no_trend() {
        assert_eq!(theil_sen(&[1.0, 2.0], 0.95), None);
        assert_eq!(theil_sen(&[1.0, 2.0, f64::NAN], 0.95), None);
        assert_eq!(theil_sen(&[1.0; 5], 1.5), None);
        assert_eq!(theil_sen(&[7.0; 9], 0.99).map(|slope| slope.point), Some(0.0));
    }

    proptest! {
        #[test]
        fn the_interval_contains_its_point(values in prop::collection::vec(any::<f64>(), 0..40)) {
            if let Some(slope) = theil_sen(&values, 0.95) {
                let undefined = slope.point.is_nan();
                prop_assert!(undefined || (slope.low <= slope.point && slope.point <= slope.high));
            }
        }
    }
}
