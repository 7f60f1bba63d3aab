//! The rate of failures that counted trials prove: its upper bound, and its interval.

use statrs::distribution::{Beta, ContinuousCDF};

/// The rate of failures that n trials without a failure rule out at 95 %: 3/n, the rule of three
/// (Hanley and Lippman-Hand, "If nothing goes wrong, is everything all right?", 1983; because
/// −ln 0.05 ≈ 3). 1 for fewer than three trials.
pub fn rule_of_three(trials: u64) -> f64 {
    3.0 / (trials.max(3) as f64)
}

/// The one-sided upper bound of Clopper and Pearson ("The use of confidence or fiducial limits",
/// 1934) for the rate of failures, after `failures` in `trials`: the quantile `confidence` of
/// Beta(failures + 1, trials − failures). 1 when there were no trials or all failed. `None` when
/// there were more failures than trials or the confidence is not within 0..1.
pub fn rate_upper_bound(failures: u64, trials: u64, confidence: f64) -> Option<f64> {
    if failures > trials || !(confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    if failures == trials {
        return Some(1.0);
    }
    if failures == 0 {
        // (1 − p)ⁿ = 1 − confidence, solved without cancellation.
        return Some(-((1.0 - confidence).ln() / trials as f64).exp_m1());
    }
    let beta = Beta::new(failures as f64 + 1.0, (trials - failures) as f64).ok()?;
    Some(beta.inverse_cdf(confidence))
}

/// The rates of failures that `failures` in `trials` do not rule out at 95 %, lowest and highest: the two-sided
/// interval of Clopper and Pearson, and for no failure 0 and the one-sided bound of [`rule_of_three`]. All rates
/// where there were no trials, or more failures than trials.
pub fn rates(failures: u64, trials: u64) -> (f64, f64) {
    if failures == 0 {
        return (0.0, rule_of_three(trials));
    }
    let tail = (1.0 - CONFIDENCE) / 2.0;
    // The lowest rate of failures is the highest one of successes.
    let successes = trials.checked_sub(failures);
    let low = successes.and_then(|successes| rate_upper_bound(successes, trials, 1.0 - tail));
    let high = rate_upper_bound(failures, trials, 1.0 - tail);
    // Without a trial, any rate from 0 to 1 is possible.
    (low.map_or(0.0, |rate| 1.0 - rate), high.unwrap_or(1.0))
}

/// The confidence of [`rates`].
pub const CONFIDENCE: f64 = 0.95;

#[cfg(test)]
mod tests {
    use statrs::distribution::{Binomial, DiscreteCDF};

    use super::*;

    #[test]
    fn no_failures() {
        assert_eq!(rule_of_three(0), 1.0);
        assert_eq!(rule_of_three(300), 0.01);
        let exact = rate_upper_bound(0, 300, 0.95).expect("valid");
        assert!((exact - 0.009_936).abs() < 1e-6, "{exact}");
    }

    #[test]
    fn the_bound_is_where_so_few_failures_become_rare() {
        for (failures, trials) in [(0, 10), (1, 10), (3, 40), (9, 10), (17, 1_000)] {
            let bound = rate_upper_bound(failures, trials, 0.95).expect("valid");
            let rare = Binomial::new(bound, trials).expect("a rate").cdf(failures);
            assert!((rare - 0.05).abs() < 1e-4, "{failures} of {trials}: {bound} {rare}");
        }
    }

    #[test]
    fn rates_have_two_bounds_once_something_failed() {
        let check = |failures, trials, low: f64, high: f64| {
            let found = rates(failures, trials);
            let is_near = (found.0 - low).abs() < 5e-4 && (found.1 - high).abs() < 5e-4;
            assert!(is_near, "{failures} of {trials}: {found:?}");
        };
        check(0, 0, 0.0, 1.0);
        check(0, 12, 0.0, 0.25);
        // Tables of Clopper and Pearson.
        check(3, 12, 0.0549, 0.5719);
        check(9, 12, 0.4281, 0.9451);
        check(12, 12, 0.7354, 1.0);
    }

    #[test]
    fn the_ends() {
        assert_eq!(rate_upper_bound(0, 0, 0.95), Some(1.0));
        assert_eq!(rate_upper_bound(5, 5, 0.95), Some(1.0));
        assert_eq!(rate_upper_bound(6, 5, 0.95), None);
        assert_eq!(rate_upper_bound(0, 5, f64::NAN), None);
    }
}
