//! From the values of an expression on resampled rounds to its interval.
//!
//! [`expanded_percentile`] is the one for claims: with the six to twenty rounds that a study has,
//! plain percentiles are too narrow (the resamples spread like √((n−1)/n) of what they should, and
//! like a normal where a t is due), and BCa's corrections are themselves estimates from as few
//! rounds. [`percentile`] and [`bias_corrected`] are there for larger samples and for comparison.
//!
//! A resample on which the expression has no value (NaN) counts against both bounds: where that
//! would move one to infinity there is no interval, and the error says how many there were.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::interval::{self, HEADLINE_ROUNDS_MIN, Interval, Method, NoInterval};
use crate::sample;
use crate::student;

/// The percentile interval: the quantiles α/2 and 1 − α/2 of `resampled` (Efron and Tibshirani,
/// §13.3). `point` is the value on the rounds as they are, `rounds` their number. Bounds are moved
/// to contain the point, where the resamples are that biased.
///
/// # Errors
/// When `point` is not finite, too many resamples have no value, there are none, or the confidence
/// is not within 0..1. Below six rounds no error: then the bounds are the whole range seen, the
/// method [`Method::Range`], and the confidence what the range of so many values attains for a
/// median, 1 − 2¹⁻ⁿ.
pub fn percentile(
    point: f64,
    resampled: &[f64],
    rounds: usize,
    confidence: f64,
) -> Result<Interval, NoInterval> {
    let tail = interval::check(&[point], confidence)? / 2.0;
    between(point, resampled, rounds, confidence, (tail, 1.0 - tail), Method::Percentile)
}

/// The expanded percentile interval: as [`percentile`], with α/2 replaced by
/// Φ(−√(n/(n−1)) · t(1−α/2, n−1)), so that for a mean of normal data it is as wide as Student's
/// (Hesterberg, "What teachers should know about the bootstrap", 2015, §5.2).
///
/// # Errors
/// As [`percentile`].
pub fn expanded_percentile(
    point: f64,
    resampled: &[f64],
    rounds: usize,
    confidence: f64,
) -> Result<Interval, NoInterval> {
    let mut tail = interval::check(&[point], confidence)? / 2.0;
    if rounds >= HEADLINE_ROUNDS_MIN {
        let freedom = (rounds - 1) as f64;
        let t = student::t_quantile(1.0 - tail, freedom);
        tail = Normal::standard().cdf(-t * (rounds as f64 / freedom).sqrt());
    }
    between(point, resampled, rounds, confidence, (tail, 1.0 - tail), Method::ExpandedPercentile)
}

/// The bias-corrected and accelerated interval, BCa (Efron, 1987; Efron and Tibshirani, §14.3).
/// `jackknife` has the value with each round left out, see [`crate::Resamples::jackknife`].
/// Falls back to [`percentile`] where a correction does not exist: constant or undefined jackknife
/// values, or a point beyond all resamples.
///
/// # Errors
/// As [`percentile`].
pub fn bias_corrected(
    point: f64,
    resampled: &[f64],
    jackknife: &[f64],
    confidence: f64,
) -> Result<Interval, NoInterval> {
    let tail = interval::check(&[point], confidence)? / 2.0;
    let rounds = jackknife.len();
    let below = resampled.iter().filter(|value| **value < point).count() as f64;
    let equal = resampled.iter().filter(|value| **value == point).count() as f64;
    let normal = Normal::standard();
    let bias = normal.inverse_cdf((below + equal / 2.0) / resampled.len().max(1) as f64);
    let acceleration = acceleration(jackknife);
    let adjusted = |p: f64| {
        let shifted = bias + normal.inverse_cdf(p);
        normal.cdf(bias + shifted / (1.0 - acceleration * shifted))
    };
    let (low, high) = (adjusted(tail), adjusted(1.0 - tail));
    let ordered = low < high;
    if !bias.is_finite() || !ordered {
        return percentile(point, resampled, rounds, confidence);
    }
    between(point, resampled, rounds, confidence, (low, high), Method::BiasCorrected)
}

/// Σ(θ̄−θᵢ)³ ÷ 6·(Σ(θ̄−θᵢ)²)^1.5, or NaN where it does not exist.
fn acceleration(jackknife: &[f64]) -> f64 {
    let mean = sample::mean(jackknife).unwrap_or(f64::NAN);
    let power = |exponent: i32| -> f64 {
        jackknife.iter().map(|value| (mean - value).powi(exponent)).sum()
    };
    power(3) / (6.0 * power(2).powf(1.5))
}

fn between(
    point: f64,
    resampled: &[f64],
    rounds: usize,
    confidence: f64,
    (low_tail, high_tail): (f64, f64),
    method: Method,
) -> Result<Interval, NoInterval> {
    if resampled.is_empty() || rounds == 0 {
        return Err(NoInterval::TooFew { n: rounds, needed: 1 });
    }
    let few = rounds < HEADLINE_ROUNDS_MIN;
    let (low_tail, high_tail) = if few { (0.0, 1.0) } else { (low_tail, high_tail) };
    let low = bound(resampled, low_tail, f64::NEG_INFINITY);
    let high = bound(resampled, high_tail, f64::INFINITY);
    if !low.is_finite() || !high.is_finite() {
        let undefined = resampled.iter().filter(|value| !value.is_finite()).count();
        return Err(NoInterval::Undefined { undefined, resamples: resampled.len() });
    }
    let (confidence, method) = if few {
        (1.0 - 2f64.powi(1 - rounds as i32), Method::Range)
    } else {
        (confidence, method)
    };
    let (low, high) = (low.min(point), high.max(point));
    Ok(Interval { point, low, high, confidence, n: rounds, method })
}

/// The quantile `q` of values among which NaN stands for `nan`.
fn bound(values: &[f64], q: f64, nan: f64) -> f64 {
    let mut sorted: Vec<f64> =
        values.iter().map(|value| if value.is_nan() { nan } else { *value }).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sample::quantile_of_sorted(&sorted, q).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::prng::Prng;
    use crate::resample::Resamples;

    fn mean_of(values: &[f64], indices: &[usize]) -> f64 {
        indices.iter().map(|&index| values[index]).sum::<f64>() / indices.len() as f64
    }

    #[test]
    fn the_three_kinds_on_a_skewed_sample() {
        let values = [1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 5.0, 7.0, 11.0, 19.0];
        let resamples = Resamples::new(values.len(), 50_000, 1);
        let statistic = |indices: &[usize]| mean_of(&values, indices);
        let resampled = resamples.evaluate(statistic);
        let plain = percentile(5.7, &resampled, 10, 0.95).expect("ten rounds");
        let expanded = expanded_percentile(5.7, &resampled, 10, 0.95).expect("ten rounds");
        let jackknife = resamples.jackknife(statistic);
        let corrected = bias_corrected(5.7, &resampled, &jackknife, 0.95).expect("ten rounds");
        // The skew moves BCa to the right of the percentiles; expansion widens both sides.
        assert!(corrected.low > plain.low && corrected.high > plain.high);
        assert!(expanded.low < plain.low && expanded.high > plain.high);
        assert!(corrected.contains(5.7) && corrected.method == Method::BiasCorrected);
    }

    #[test]
    fn the_expansion_is_hesterbergs() {
        // Two-sided 95 %, n = 10: his table gives 0.0086 beside 0.025.
        let uniform: Vec<f64> = (0..=100_000).map(|i| f64::from(i) / 100_000.0).collect();
        let interval = expanded_percentile(0.5, &uniform, 10, 0.95).expect("ten rounds");
        assert!((interval.low - 0.0086).abs() < 1e-4, "{interval:?}");
        assert!((interval.high - 0.9914).abs() < 1e-4, "{interval:?}");
    }

    #[test]
    fn few_rounds_give_the_range_and_say_so() {
        let values = [4.0, 5.0, 9.0];
        let resampled = Resamples::new(3, 0, 0).evaluate(|indices| mean_of(&values, indices));
        for interval in [
            percentile(6.0, &resampled, 3, 0.95),
            expanded_percentile(6.0, &resampled, 3, 0.95),
            bias_corrected(6.0, &resampled, &[7.0, 6.5, 4.5], 0.95),
        ] {
            let interval = interval.expect("a range");
            assert_eq!((interval.low, interval.high), (4.0, 9.0));
            assert_eq!((interval.confidence, interval.method), (0.75, Method::Range));
        }
    }

    #[test]
    fn resamples_without_a_value_count_against_both_bounds() {
        let mut resampled: Vec<f64> = (0..1_000).map(f64::from).collect();
        resampled[..20].fill(f64::NAN);
        let interval = percentile(500.0, &resampled, 10, 0.95).expect("2 % are too few to matter");
        assert!(interval.low < 26.0 && interval.high > 990.0, "{interval:?}");
        resampled[..30].fill(f64::NAN);
        let error = percentile(500.0, &resampled, 10, 0.95).expect_err("3 % reach the bound");
        assert_eq!(error.to_string(), "no finite value in 30 of 1000 resamples");
        let error = percentile(f64::NAN, &resampled, 10, 0.95).expect_err("no point");
        assert_eq!(error, NoInterval::NotFinite);
        assert!(percentile(0.0, &[f64::NAN; 27], 3, 0.95).is_err());
    }

    /// Rounds as they are in practice: a few percent of normal noise, sometimes a slow round.
    fn rounds(prng: &mut Prng, n: usize, spread: impl Fn(f64) -> f64) -> Vec<f64> {
        let normal = Normal::standard();
        (0..n).map(|_| 100.0 + spread(normal.inverse_cdf(prng.unit().max(1e-12)))).collect()
    }

    fn coverage(n: usize, truth: f64, spread: impl Fn(f64) -> f64 + Copy) -> (f64, f64) {
        const TRIALS: u64 = 800;
        let mut prng = Prng::new(99);
        let (mut expanded_hits, mut plain_hits) = (0, 0);
        for trial in 0..TRIALS {
            let values = rounds(&mut prng, n, spread);
            let point = sample::mean(&values).expect("not empty");
            let resampled =
                Resamples::new(n, 1_000, trial).evaluate(|indices| mean_of(&values, indices));
            let expanded = expanded_percentile(point, &resampled, n, 0.95).expect("finite");
            let plain = percentile(point, &resampled, n, 0.95).expect("finite");
            expanded_hits += u64::from(expanded.contains(truth));
            plain_hits += u64::from(plain.contains(truth));
        }
        (expanded_hits as f64 / TRIALS as f64, plain_hits as f64 / TRIALS as f64)
    }

    #[test]
    fn the_expanded_interval_covers_the_truth_where_plain_percentiles_do_not() {
        for n in [6, 10] {
            let (expanded, plain) = coverage(n, 100.0, |z| 3.0 * z);
            assert!((0.92..0.98).contains(&expanded), "{n}: {expanded}");
            assert!(plain < expanded, "{n}: {plain}");
        }
        // A log-normal's mean: exp(σ²/2).
        let (skewed, _) = coverage(10, 99.0 + f64::exp(0.125), |z| (0.5 * z).exp() - 1.0);
        assert!(skewed > 0.88, "{skewed}");
    }

    proptest! {
        #[test]
        fn intervals_contain_their_point(
            values in prop::collection::vec(-1e6..1e6f64, 1..15),
            seed in any::<u64>(),
        ) {
            let n = values.len();
            let resamples = Resamples::new(n, 200, seed);
            let statistic = |indices: &[usize]| mean_of(&values, indices);
            let point = sample::mean(&values).unwrap();
            let resampled = resamples.evaluate(statistic);
            let jackknife = resamples.jackknife(statistic);
            for interval in [
                percentile(point, &resampled, n, 0.95),
                expanded_percentile(point, &resampled, n, 0.95),
                bias_corrected(point, &resampled, &jackknife, 0.95),
            ] {
                let Ok(interval) = interval else { prop_assert!(n == 1); continue };
                prop_assert!(interval.contains(point));
            }
        }

        #[test]
        fn no_input_panics(
            point in any::<f64>(),
            resampled in prop::collection::vec(any::<f64>(), 0..30),
            jackknife in prop::collection::vec(any::<f64>(), 0..10),
            confidence in any::<f64>(),
            rounds in 0usize..40,
        ) {
            for confidence in [confidence, 0.95] {
                let _ = percentile(point, &resampled, rounds, confidence);
                let _ = expanded_percentile(point, &resampled, rounds, confidence);
                let _ = bias_corrected(point, &resampled, &jackknife, confidence);
            }
        }
    }
}
