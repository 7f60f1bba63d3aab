//! Student's t: the interval of a mean, that of the difference of two means, and how much speaks
//! against a given value (two-sided p).

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::interval::{self, ConfidenceInterval, IntervalMethod, NoInterval};
use crate::sample;

/// The mean and its t interval, x̄ ± t(1−α/2, n−1) · s/√n (Student, 1908).
///
/// # Errors
/// Below two values, when one is not finite, or when the confidence is not within 0..1.
pub fn mean_interval(values: &[f64], confidence: f64) -> Result<ConfidenceInterval, NoInterval> {
    let error = interval::check(values, confidence)?;
    let n = values.len();
    let too_few = NoInterval::TooFew { n, needed: 2 };
    let mean = sample::mean(values).ok_or(too_few)?;
    let stddev = sample::stddev(values).ok_or(too_few)?;
    let half = t_quantile(1.0 - error / 2.0, (n - 1) as f64) * stddev / (n as f64).sqrt();
    let (low, high) = (mean - half, mean + half);
    Ok(ConfidenceInterval {
        point: mean,
        low,
        high,
        confidence,
        n,
        method: IntervalMethod::Student,
    })
}

/// The difference of the means, `left` − `right`, of samples that are not paired, with its t
/// interval and Welch's degrees of freedom ("The generalization of Student's problem", 1947).
///
/// # Errors
/// Below two values on a side, when one is not finite, or when the confidence is not within 0..1.
pub fn difference_interval(
    left: &[f64],
    right: &[f64],
    confidence: f64,
) -> Result<ConfidenceInterval, NoInterval> {
    let error = interval::check(left, confidence)?;
    interval::check(right, confidence)?;
    let n = left.len().min(right.len());
    let (point, spread, freedom) =
        difference(left, right).ok_or(NoInterval::TooFew { n, needed: 2 })?;
    let half = t_quantile(1.0 - error / 2.0, freedom) * spread;
    let (low, high) = (point - half, point + half);
    Ok(ConfidenceInterval { point, low, high, confidence, n, method: IntervalMethod::Welch })
}

/// Evidence against a mean of `value`: the two-sided p-value of Student's test.
pub fn mean_p(values: &[f64], value: f64) -> f64 {
    let (Some(mean), Some(stddev)) = (sample::mean(values), sample::stddev(values)) else {
        return 1.0;
    };
    let n = values.len() as f64;
    p_of(mean - value, stddev / n.sqrt(), n - 1.0)
}

/// Evidence against a difference of the means, `left` − `right`, of `value`: the two-sided p-value
/// of Welch's test.
pub fn difference_p(left: &[f64], right: &[f64], value: f64) -> f64 {
    difference(left, right)
        .map_or(1.0, |(point, spread, freedom)| p_of(point - value, spread, freedom))
}

/// The difference of the means, its standard error, and Welch's degrees of freedom.
fn difference(left: &[f64], right: &[f64]) -> Option<(f64, f64, f64)> {
    let point = sample::mean(left)? - sample::mean(right)?;
    let variance = |values: &[f64]| Some(sample::stddev(values)?.powi(2) / values.len() as f64);
    let (a, b) = (variance(left)?, variance(right)?);
    let (m, n) = ((left.len() - 1) as f64, (right.len() - 1) as f64);
    let freedom = (a + b).powi(2) / (a * a / m + b * b / n);
    // Two constant samples: any number of degrees gives the same interval, of no width.
    Some((point, (a + b).sqrt(), if freedom.is_finite() { freedom } else { m + n }))
}

/// The two-sided p-value of a deviation in units of its standard error.
fn p_of(deviation: f64, spread: f64, freedom: f64) -> f64 {
    if !deviation.is_finite() || !spread.is_finite() {
        return 1.0;
    }
    if spread == 0.0 {
        return if deviation == 0.0 { 1.0 } else { 0.0 };
    }
    let t = StudentsT::new(0.0, 1.0, freedom);
    t.map_or(1.0, |t| 2.0 * t.cdf(-(deviation / spread).abs()))
}

/// The share of a t distribution with these degrees of freedom that lies below a value.
pub(crate) fn t_below(value: f64, freedom: f64) -> f64 {
    let t = StudentsT::new(0.0, 1.0, freedom).expect("degrees of freedom are positive");
    t.cdf(value)
}

/// The quantile `p` of Student's t with `freedom` degrees of freedom.
pub(crate) fn t_quantile(p: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::NAN, |t| t.inverse_cdf(p))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_quantiles_are_those_of_the_tables() {
        let check = |freedom: f64, expected: f64| {
            let t = t_quantile(0.975, freedom);
            assert!((t - expected).abs() < 5e-4, "{freedom}: {t}");
        };
        check(1.0, 12.706);
        check(5.0, 2.571);
        check(30.0, 2.042);
        check(1000.0, 1.962);
    }

    #[test]
    fn mean_and_bounds() {
        let interval = mean_interval(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.95).expect("five values");
        assert_eq!(interval.point, 3.0);
        assert!((interval.low - 1.0368).abs() < 1e-3 && (interval.high - 4.9632).abs() < 1e-3);
        assert_eq!(mean_interval(&[4.0; 3], 0.95).map(|i| (i.low, i.high)), Ok((4.0, 4.0)));
    }

    /// By hand: variances 2.5 ÷ 5 and 4 ÷ 3, standard error 1.354, 3.53 degrees of freedom, t 2.93.
    #[test]
    fn two_means() {
        let (left, right) = ([1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 4.0, 6.0]);
        let interval = difference_interval(&left, &right, 0.95).expect("two samples");
        assert_eq!((interval.point, interval.n), (-1.0, 3));
        assert!((interval.low + 4.966).abs() < 2e-2 && (interval.high - 2.966).abs() < 2e-2);
        assert!((difference_p(&left, &right, 0.0) - 0.507).abs() < 5e-3);
        let constant = difference_interval(&[3.0; 4], &[1.0; 4], 0.95).expect("two samples");
        assert_eq!((constant.low, constant.high), (2.0, 2.0));
        assert_eq!(
            difference_interval(&left, &[1.0], 0.95),
            Err(NoInterval::TooFew { n: 1, needed: 2 })
        );
    }

    #[test]
    fn p_is_small_exactly_where_the_interval_excludes() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0];
        let interval = mean_interval(&values, 0.95).expect("five values");
        assert!((mean_p(&values, interval.low) - 0.05).abs() < 1e-9);
        assert!((mean_p(&values, interval.high) - 0.05).abs() < 1e-9);
        assert_eq!((mean_p(&[2.0; 6], 2.0), mean_p(&[2.0; 6], 1.0)), (1.0, 0.0));
        assert_eq!((mean_p(&[1.0], 9.0), mean_p(&[1.0, f64::NAN], 9.0)), (1.0, 1.0));
    }

    #[test]
    fn reasons_for_no_interval() {
        let check = |values: &[f64], confidence, expected| {
            assert_eq!(mean_interval(values, confidence), Err(expected));
        };
        check(&[], 0.95, NoInterval::TooFew { n: 0, needed: 2 });
        check(&[1.0], 0.95, NoInterval::TooFew { n: 1, needed: 2 });
        check(&[1.0, f64::NAN], 0.95, NoInterval::NotFinite);
        check(&[1.0, 2.0], 1.0, NoInterval::Confidence(1.0));
    }
}
