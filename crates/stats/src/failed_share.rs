//! The difference of two shares of failures that come in clusters.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// What one cluster of trials has shown: a segment between two restarts, in which failures may come together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrialCluster {
    /// Trials that failed.
    pub failures: u64,
    /// All trials.
    pub trials: u64,
}

/// A share with the number of independent trials that say as much of it.
struct Share {
    value: f64,
    trials: f64,
}

/// Bounds of the share of `b`'s failures less that of `a`'s, −1 to 1, at this confidence (0 to 1).
///
/// The bounds of each share are Wilson's (1927) for as many independent trials as the clusters are worth: the
/// number of trials divided by the design effect, the variance between clusters over the binomial one (Rao and
/// Scott, "A simple method for the analysis of clustered binary data", 1992), and corrected for few clusters by
/// the squared quotient of the normal quantile and Student's (Korn and Graubard, "Confidence intervals for proportions
/// with small expected number of positive counts estimated from survey data", 1998). Both sides have the larger design effect of the two. The bounds are put together as
/// Newcombe's method 10 does ("Interval estimation for the difference between independent proportions", 1998).
/// What both sides of a cluster have in common makes these bounds wider than need be, never narrower. They are for
/// one look, at a moment that failures do not choose.
///
/// None where a side has no trials, where failures are of fewer than two clusters, and for a
/// confidence that is not within 0..1.
pub fn difference(a: &[TrialCluster], b: &[TrialCluster], confidence: f64) -> Option<[f64; 2]> {
    if !(confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    let upper = (1.0 + confidence) / 2.0;
    let z = Normal::standard().inverse_cdf(upper);
    let [of_a, of_b] = [worth(a, z, upper)?, worth(b, z, upper)?];
    // A side without failures does not show how they come together: they would as on the other one.
    let worth = of_a.min(of_b);
    let [a, b] = [a, b].map(|side| Share::of(side, worth));
    let ([a_low, a_high], [b_low, b_high]) = (a.wilson(z), b.wilson(z));
    let (difference, a, b) = (b.value - a.value, a.value, b.value);
    Some([difference - (b - b_low).hypot(a_high - a), difference + (b_high - b).hypot(a - a_low)])
}

fn sums(clusters: &[TrialCluster]) -> [f64; 2] {
    let sum = |of: fn(&TrialCluster) -> u64| clusters.iter().map(of).sum::<u64>() as f64;
    [sum(|one| one.failures), sum(|one| one.trials)]
}

/// The part of the trials of a side that says as much as independent ones; all where none or all failed.
fn worth(clusters: &[TrialCluster], z: f64, upper: f64) -> Option<f64> {
    let [failures, trials] = sums(clusters);
    if failures == 0.0 || failures == trials {
        return (trials > 0.0).then_some(1.0);
    }
    let value = failures / trials;
    let k = clusters.iter().filter(|one| one.trials > 0).count() as f64;
    let t = StudentsT::new(0.0, 1.0, k - 1.0).ok()?.inverse_cdf(upper);
    let off = clusters.iter().map(|one| one.failures as f64 - value * one.trials as f64);
    let squares: f64 = off.map(|off| off * off).sum();
    let between = k / (k - 1.0) * squares / (trials * trials);
    let effect = (between / (value * (1.0 - value) / trials)).max(1.0);
    Some((z / t).powi(2) / effect)
}

impl Share {
    fn of(clusters: &[TrialCluster], worth: f64) -> Share {
        let [failures, trials] = sums(clusters);
        Share { value: failures / trials, trials: trials * worth }
    }

    /// Wilson's score interval.
    fn wilson(&self, z: f64) -> [f64; 2] {
        let Share { value, trials } = *self;
        let squared = z * z;
        let middle = value + squared / (2.0 * trials);
        let half = z * (value * (1.0 - value) / trials + squared / (4.0 * trials * trials)).sqrt();
        [middle - half, middle + half].map(|bound| bound / (1.0 + squared / trials))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prng;

    fn clusters(n: usize, failures: u64, trials: u64) -> Vec<TrialCluster> {
        vec![TrialCluster { failures, trials }; n]
    }

    #[test]
    fn bounds_are_newcombes_where_clusters_do_not_matter() {
        // 56 of 70 and 48 of 80, his first example: 0.2000, 0.0524 to 0.3339.
        let z = 1.959_964;
        let share = |failures: f64, trials: f64| Share { value: failures / trials, trials };
        let (a, b) = (share(48.0, 80.0), share(56.0, 70.0));
        let ([a_low, a_high], [b_low, b_high]) = (a.wilson(z), b.wilson(z));
        let low = 0.2 - (0.8 - b_low).hypot(a_high - 0.6);
        let high = 0.2 + (b_high - 0.8).hypot(0.6 - a_low);
        assert!((low - 0.0524).abs() < 1e-4 && (high - 0.3339).abs() < 1e-4, "{low} {high}");
    }

    #[test]
    fn a_difference_is_shown_by_its_interval() {
        let check = |a: &[TrialCluster], b: &[TrialCluster], expected: Option<bool>| {
            let found = difference(a, b, 0.99).map(|[low, _]| low > 0.0);
            assert_eq!(found, expected, "{:?}", difference(a, b, 0.99));
        };
        let none = clusters(6, 0, 1_000);
        // 0.9 % in each restart, and as many failures in one of six.
        check(&none, &clusters(6, 9, 1_000), Some(true));
        let one =
            [vec![TrialCluster { failures: 54, trials: 1_000 }], clusters(5, 0, 1_000)].concat();
        check(&none, &one, Some(false));
        check(&none, &none, Some(false));
        check(&clusters(6, 9, 1_000), &clusters(6, 9, 1_000), Some(false));
        // Fewer than two clusters do not show whether failures come together.
        check(&none, &clusters(1, 9, 1_000), None);
        check(&none, &clusters(1, 0, 1_000), Some(false));
        check(&none, &[], None);
    }

    /// Identical sides whose failures come in bursts: too rarely is one said to fail more.
    #[test]
    fn identical_sides_seldom_differ() {
        let mut prng = Prng::new(17);
        let mut side = |n: usize, share: f64, bursts: f64| -> Vec<TrialCluster> {
            let mut one = || {
                // A cluster has none of the failures, or all of those of 1 / bursts clusters.
                let share = if prng.unit() < bursts { share / bursts } else { 0.0 };
                let failures = (0..400).filter(|_| prng.unit() < share).count() as u64;
                TrialCluster { failures, trials: 400 }
            };
            (0..n).map(|_| one()).collect()
        };
        for (n, share, bursts) in [
            (5, 0.01, 1.0),
            (20, 0.001, 1.0),
            (5, 0.05, 0.5),
            (10, 0.02, 0.3),
            (20, 0.01, 0.1),
            (20, 0.05, 0.5),
        ] {
            let runs = 2_000;
            let differ = (0..runs)
                .filter(|_| {
                    let (a, b) = (side(n, share, bursts), side(n, share, bursts));
                    difference(&a, &b, 0.99).is_some_and(|[low, high]| low > 0.0 || high < 0.0)
                })
                .count();
            let rate = differ as f64 / f64::from(runs);
            assert!(rate <= 0.015, "{n} clusters, {share} in {bursts}: {rate}");
        }
    }
}
