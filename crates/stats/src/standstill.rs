//! Times in which nothing ended, where something would have been expected to.

use std::ops::Range;

use crate::sample;

/// Neighbouring intervals, by their places.
pub(crate) type Stretch = Range<usize>;

/// A standstill lasts at least so long, in seconds.
const STANDSTILL_S: f64 = 1.0;

/// So many usual gaps are a standstill where intervals without a transaction are usual: of gaps that are
/// random (exponential), one in a thousand is longer than three times their 90th percentile.
const GAPS: f64 = 3.0;

/// The share of gaps that are usual.
const USUAL: f64 = 0.9;

/// Probability that a window of random transactions contains what is called a standstill.
const CHANCE: f64 = 0.01;

/// Random counts with a median of 1 have a mean of this and more.
const MEAN_OF_MEDIAN: f64 = 0.7;

/// The stretches of `counts`, each of an interval of `interval_s` seconds, without any transaction which
/// last a second or longer and are longer than chance and the length of the transactions explain.
/// Transactions that are longer than an interval leave gaps between the intervals in which they end: what is usual is no
/// standstill.
pub(crate) fn standstills(counts: &[f64], interval_s: f64) -> Vec<Stretch> {
    let busy: Vec<f64> = counts.iter().copied().filter(|count| *count > 0.0).collect();
    let Some(typical) = sample::median(&busy) else {
        return std::iter::once(0..counts.len()).collect();
    };
    let least = match usual_gap(counts) {
        1 => (counts.len() as f64 / CHANCE).ln() / (MEAN_OF_MEDIAN * typical),
        gap => GAPS * gap as f64,
    };
    let least = least.max(STANDSTILL_S / interval_s * (1.0 - f64::EPSILON));
    let mut stretches = Vec::new();
    let mut from = 0;
    for place in 0..=counts.len() {
        if counts.get(place).is_none_or(|count| *count > 0.0) {
            if (place - from) as f64 >= least && place > from {
                stretches.push(from..place);
            }
            from = place + 1;
        }
    }
    stretches
}

/// The number of intervals from one with transactions to the next one, as nine of ten are or shorter; 1 where nothing ended.
pub(crate) fn usual_gap(counts: &[f64]) -> usize {
    let busy: Vec<usize> = (0..counts.len()).filter(|place| counts[*place] > 0.0).collect();
    let gaps: Vec<f64> = busy.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    sample::quantile(&gaps, USUAL).map_or(1, |gap| gap.round().max(1.0) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unusual_is_a_standstill() {
        let check = |counts: &[f64], interval_s: f64, expected: &[(usize, usize)]| {
            let found = standstills(counts, interval_s);
            let found: Vec<_> = found.iter().map(|one| (one.start, one.end)).collect();
            assert_eq!(found, expected, "{counts:?}");
        };
        let with = |from: usize, to: usize| {
            let mut counts = [100.0; 40];
            counts[from..to].fill(0.0);
            counts
        };
        check(&with(0, 0), 1.0, &[]);
        check(&with(30, 31), 1.0, &[(30, 31)]);
        check(&with(30, 40), 1.0, &[(30, 40)]);
        check(&with(0, 35), 1.0, &[(0, 35)]);
        check(&[0.0; 40], 1.0, &[(0, 40)]);
        // Half a second is no standstill.
        check(&with(10, 15), 0.1, &[]);
        check(&with(10, 20), 0.1, &[(10, 20)]);
        // One client with transactions of 2.5 s: seconds without an end are usual; a gap of 12 s is not.
        let ends = |at: fn(usize) -> f64| {
            let mut counts = [0.0; 60];
            (1..24).map(at).filter(|at| *at < 60.0).for_each(|at| counts[at as usize] += 1.0);
            counts
        };
        check(&ends(|n| 2.5 * n as f64), 1.0, &[]);
        check(&ends(|n| 2.5 * n as f64 + if n > 10 { 10.0 } else { 0.0 }), 1.0, &[(26, 37)]);
    }

    #[test]
    fn random_transactions_rarely_stand_still() {
        let mut prng = crate::prng::Prng::new(3);
        for rate in [0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 20.0] {
            let alarms = (0..500).filter(|_| {
                let mut counts = [0.0; 60];
                let mut at = 0.0;
                loop {
                    at -= prng.unit().max(1e-300).ln() / rate;
                    if at >= 60.0 {
                        break;
                    }
                    counts[at as usize] += 1.0;
                }
                !standstills(&counts, 1.0).is_empty()
            });
            let share = alarms.count() as f64 / 500.0;
            assert!(share < 0.05, "{rate} a second: {share}");
        }
    }
}
