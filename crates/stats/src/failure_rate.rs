//! Upper bound on the rate of failures that "no failure in n trials" proves.

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
    fn the_ends() {
        assert_eq!(rate_upper_bound(0, 0, 0.95), Some(1.0));
        assert_eq!(rate_upper_bound(5, 5, 0.95), Some(1.0));
        assert_eq!(rate_upper_bound(6, 5, 0.95), None);
        assert_eq!(rate_upper_bound(0, 5, f64::NAN), None);
    }
}
