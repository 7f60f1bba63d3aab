//! A plain sample of numbers, such as the rounds of a trial: where it lies and how it spreads.

/// Arithmetic mean. `None` when empty.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Standard deviation of the population that the sample was drawn from: √(Σ(x−x̄)²/(n−1)).
/// `None` below two values.
pub fn stddev(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() >= 2).then(|| (squares / (values.len() - 1) as f64).sqrt())
}

/// Standard deviation ÷ |mean|. `None` below two values or when the mean is 0.
pub fn coefficient_of_variation(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?.abs();
    let stddev = stddev(values)?;
    (mean > 0.0).then(|| stddev / mean)
}

/// A value is unlike the others if it is this many standard deviations away from their median, as the median of all
/// deviations tells them, and this far away at least, as a logarithm.
const UNLIKE: f64 = 6.0;
const UNLIKE_LN: f64 = 0.1;

/// The standard deviation of a normal distribution, in median deviations (Hampel, "The influence curve and its role in
/// robust estimation", 1974).
const OF_MEDIAN_DEVIATION: f64 = 1.4826;

/// The logarithms that are unlike the others: the index of each, and its distance from the median. None where a value is
/// NaN.
pub fn unlike(logarithms: &[f64]) -> Vec<(usize, f64)> {
    let Some(middle) = median(logarithms) else { return Vec::new() };
    let apart: Vec<f64> = logarithms.iter().map(|one| (one - middle).abs()).collect();
    let Some(usual) = median(&apart) else { return Vec::new() };
    let least = (UNLIKE * usual * OF_MEDIAN_DEVIATION).max(UNLIKE_LN);
    apart.into_iter().enumerate().filter(|(_, apart)| *apart > least).collect()
}

/// The middle value; of an even number, the mean of the two in the middle. `None` when empty or
/// when a value is NaN.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The quantile `q` (0..1) with linear interpolation between the order statistics at
/// (n−1)·q: type 7 of Hyndman and Fan, "Sample quantiles in statistical packages", 1996; the
/// default of R and NumPy. `None` when empty, when a value is NaN, or when `q` is outside 0..1.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    if values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    quantile_of_sorted(&sorted, q)
}

/// As [`quantile`], for values in ascending order and without NaN.
pub fn quantile_of_sorted(sorted: &[f64], q: f64) -> Option<f64> {
    if sorted.is_empty() || !(0.0..=1.0).contains(&q) {
        return None;
    }
    let position = (sorted.len() - 1) as f64 * q;
    let below = sorted[position.floor() as usize];
    let above = sorted[position.ceil() as usize];
    // Between equal neighbours nothing is interpolated: ∞ − ∞ would be NaN.
    if below == above {
        return Some(below);
    }
    Some(below + (above - below) * position.fract())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use statrs::statistics::{Data, OrderStatistics, Statistics};

    use super::*;

    #[test]
    fn quantiles_are_those_of_r() {
        // quantile(c(1, 2, 4, 8, 16, 32), type = 7)
        let values = [8.0, 1.0, 32.0, 2.0, 16.0, 4.0];
        let check = |q: f64, expected: f64| assert_eq!(quantile(&values, q), Some(expected));
        check(0.0, 1.0);
        check(0.25, 2.5);
        check(0.5, 6.0);
        check(0.75, 14.0);
        check(0.9, 24.0);
        check(1.0, 32.0);
    }

    #[test]
    fn what_has_no_answer_is_none() {
        assert_eq!((mean(&[]), stddev(&[1.0]), median(&[])), (None, None, None));
        assert_eq!(median(&[1.0, f64::NAN]), None);
        assert_eq!(quantile(&[1.0], 1.5), None);
        assert_eq!(coefficient_of_variation(&[0.0, 0.0]), None);
        assert_eq!(median(&[f64::INFINITY, f64::INFINITY]), Some(f64::INFINITY));
    }

    proptest! {
        #[test]
        fn agrees_with_statrs(values in prop::collection::vec(-1e6..1e6f64, 2..50)) {
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * (1.0 + a.abs());
            prop_assert!(close(mean(&values).unwrap(), (&values).mean()));
            prop_assert!(close(stddev(&values).unwrap(), (&values).std_dev()));
            prop_assert!(close(median(&values).unwrap(), Data::new(values.clone()).median()));
        }

        #[test]
        fn quantiles_rise(values in prop::collection::vec(any::<f64>(), 0..20), q in 0.0..1.0f64) {
            let (low, high) = (quantile(&values, q / 2.0), quantile(&values, q));
            prop_assert!(low.is_none() || high.is_none() || low <= high || high.unwrap().is_nan());
        }
    }
}
