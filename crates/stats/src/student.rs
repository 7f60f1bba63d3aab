//! Student's t interval of a mean: the textbook reference beside the methods that assume less.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::interval::{self, Interval, Method, NoInterval};
use crate::sample;

/// The mean and its t interval, x̄ ± t(1−α/2, n−1) · s/√n (Student, 1908).
///
/// # Errors
/// Below two values, when one is not finite, or when the confidence is not within 0..1.
pub fn mean_interval(values: &[f64], confidence: f64) -> Result<Interval, NoInterval> {
    let error = interval::check(values, confidence)?;
    let n = values.len();
    let too_few = NoInterval::TooFew { n, needed: 2 };
    let mean = sample::mean(values).ok_or(too_few)?;
    let stddev = sample::stddev(values).ok_or(too_few)?;
    let half = t_quantile(1.0 - error / 2.0, (n - 1) as f64) * stddev / (n as f64).sqrt();
    let (low, high) = (mean - half, mean + half);
    Ok(Interval { point: mean, low, high, confidence, n, method: Method::Student })
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
