//! Several settings measured in the same rounds, beside the best of them: each one's ratio to the best, with intervals
//! that hold together (multiple comparisons with the best: Hsu, "Multiple Comparisons", 1996, chapters 4 and 5).
//!
//! A round measures every setting once, and its own level (a drift of the machine) is no error. The intervals are those
//! of all pairs at once, by Bonferroni: which setting is the best is not known beforehand. A pair's error is the pooled
//! one or its own, whichever is larger, since one setting may vary more than others.

use crate::interval::{ConfidenceInterval, IntervalMethod};
use crate::sample;
use crate::student::t_quantile;

/// Rounds that the error of a pair needs.
pub const ROUNDS_MIN: usize = 3;

/// Settings that were measured in the same rounds.
#[derive(Clone, Debug)]
pub struct RankedSettings {
    /// The logarithm of the geometric mean of each.
    means: Vec<f64>,
    /// Half of the simultaneous interval of each pair's difference.
    halves: Vec<Vec<f64>>,
    confidence: f64,
    rounds: usize,
}

impl RankedSettings {
    /// The settings with these values, which are positive: one list for each setting, whose n-th value is of round n.
    /// None with fewer than [`ROUNDS_MIN`] rounds, with a value that is not positive, or with lists of different lengths.
    pub fn of(values: &[Vec<f64>], confidence: f64) -> Option<RankedSettings> {
        let rounds = values.first()?.len();
        let is_right = |list: &Vec<f64>| list.len() == rounds && list.iter().all(|one| *one > 0.0);
        if rounds < ROUNDS_MIN || !values.iter().all(is_right) {
            return None;
        }
        let logs: Vec<Vec<f64>> =
            values.iter().map(|list| list.iter().map(|one| one.ln()).collect()).collect();
        let means: Vec<f64> = logs.iter().filter_map(|list| sample::mean(list)).collect();
        let (count, n) = (logs.len() as f64, rounds as f64);
        let whole = sample::mean(&means)?;
        let levels = (0..rounds)
            .map(|round| logs.iter().map(|list| list[round]).sum::<f64>() / count - whole);
        let levels: Vec<f64> = levels.collect();
        let residual = |(list, mean): (&Vec<f64>, &f64)| -> f64 {
            list.iter().zip(&levels).map(|(one, level)| (one - level - mean).powi(2)).sum()
        };
        let freedom = ((count - 1.0) * (n - 1.0)).max(1.0);
        let pooled = logs.iter().zip(&means).map(residual).sum::<f64>() / freedom;
        let error = 1.0 - confidence;
        let pairs = (count * (count - 1.0) / 2.0).max(1.0);
        let t = t_quantile(1.0 - error / (2.0 * pairs), freedom);
        let half = |one: &Vec<f64>, other: &Vec<f64>| {
            let apart: Vec<f64> = one.iter().zip(other).map(|(a, b)| a - b).collect();
            let own = sample::stddev(&apart).expect("there are rounds").powi(2);
            t * (own.max(2.0 * pooled) / n).sqrt()
        };
        let halves = logs.iter().map(|one| logs.iter().map(|other| half(one, other)).collect());
        let halves: Vec<Vec<f64>> = halves.collect();
        Some(RankedSettings { means, halves, confidence, rounds })
    }

    /// A setting divided by another one.
    pub fn ratio(&self, setting: usize, other: usize) -> ConfidenceInterval {
        let (apart, half) = (self.means[setting] - self.means[other], self.halves[setting][other]);
        self.interval(apart, apart - half, apart + half)
    }

    /// A setting divided by the best one; 1 where it may be the best itself.
    pub fn of_best(&self, setting: usize) -> ConfidenceInterval {
        let others = (0..self.means.len()).filter(|other| *other != setting);
        let bound = |sign: f64| {
            let apart = |other: usize| {
                self.means[setting] - self.means[other] + sign * self.halves[setting][other]
            };
            others.clone().map(apart).fold(0.0, f64::min)
        };
        self.interval(bound(0.0), bound(-1.0), bound(1.0))
    }

    fn interval(&self, point: f64, low: f64, high: f64) -> ConfidenceInterval {
        ConfidenceInterval {
            point: point.exp(),
            low: low.exp(),
            high: high.exp(),
            confidence: self.confidence,
            n: self.rounds,
            method: IntervalMethod::Student,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prng;

    /// A normal deviate by Box and Muller.
    fn normal(random: &mut Prng) -> f64 {
        let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * random.unit()).cos()
    }

    /// The share of sets of intervals that contain every true ratio to the best. Each setting has its own deviation, and
    /// each round a level.
    fn coverage(truth: &[f64], deviations: &[f64], rounds: usize, sets: u32) -> f64 {
        let mut random = Prng::new(3);
        let best = truth.iter().copied().fold(0.0, f64::max);
        let mut covered = 0;
        for _ in 0..sets {
            let levels: Vec<f64> = (0..rounds).map(|_| 0.1 * normal(&mut random)).collect();
            let values = truth.iter().zip(deviations).map(|(one, deviation)| {
                levels
                    .iter()
                    .map(|level| one * (level + deviation * normal(&mut random)).exp())
                    .collect()
            });
            let values: Vec<Vec<f64>> = values.collect();
            let ranked = RankedSettings::of(&values, 0.95).expect("rounds");
            covered += u32::from(truth.iter().enumerate().all(|(at, one)| {
                let found = ranked.of_best(at);
                found.low <= one / best + 1e-12 && one / best <= found.high + 1e-12
            }));
        }
        f64::from(covered) / f64::from(sets)
    }

    #[test]
    fn intervals_contain_all_ratios_to_the_best_at_once() {
        let check = |truth: &[f64], deviations: &[f64]| {
            let share = coverage(truth, deviations, 8, 400);
            assert!(share >= 0.94, "{truth:?} {deviations:?}: {share}");
        };
        check(&[1.0; 7], &[0.03; 7]);
        check(&[0.2, 0.4, 0.8, 1.0, 0.99, 0.97, 0.9], &[0.03; 7]);
        check(&[0.2, 0.4, 0.8, 1.0, 0.99, 0.97, 0.9], &[0.005, 0.01, 0.02, 0.03, 0.04, 0.06, 0.1]);
        check(&[1.0; 4], &[0.01, 0.01, 0.01, 0.1]);
        check(&[1.0, 0.9], &[0.05, 0.01]);
    }

    #[test]
    fn a_level_of_a_round_is_no_error() {
        let values = [vec![10.0, 20.0, 5.0, 40.0], vec![5.0, 10.0, 2.5, 20.0]];
        let ranked = RankedSettings::of(&values, 0.95).unwrap();
        let half = ranked.of_best(1);
        assert!((half.low - 0.5).abs() < 1e-9 && (half.high - 0.5).abs() < 1e-9, "{half:?}");
        assert_eq!((ranked.of_best(0).low, ranked.of_best(0).high), (1.0, 1.0));
        assert!((ranked.ratio(0, 1).point - 2.0).abs() < 1e-9);
    }

    #[test]
    fn what_cannot_be_ranked_is_not() {
        let check = |values: &[Vec<f64>]| assert!(RankedSettings::of(values, 0.95).is_none());
        check(&[]);
        check(&[vec![1.0, 1.0], vec![1.0, 1.0]]);
        check(&[vec![1.0, 1.0, 1.0], vec![1.0, 1.0]]);
        check(&[vec![1.0, 0.0, 1.0]]);
        let alone = RankedSettings::of(&[vec![1.0, 2.0, 4.0]], 0.95).unwrap();
        assert_eq!(alone.of_best(0).low, 1.0);
    }
}
