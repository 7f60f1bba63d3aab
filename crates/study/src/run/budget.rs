//! Time for pairs: what some leave of theirs is for the ones after them.
//!
//! The length of an interval shrinks with the root of the time, and the distance to its bound is known of no claim
//! beforehand. A claim that is far from its bound is judged early; what it leaves is for one that is near. Intervals of
//! pairs are valid at any moment, so that more time takes nothing from them.

use spec::{Pairing, Study};

/// The time that pairs before have left, of the longest time that the study gives each of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SpareTime {
    spare_ms: u64,
}

impl SpareTime {
    /// The pairing with the time that it may take: its own, and what was left, if it ends as soon as its claims are
    /// judged.
    pub(crate) fn give(self, pairing: &Pairing) -> Pairing {
        let mut longer = *pairing;
        if pairing.pairs.until_judged {
            longer.pairs.max_ms = longer.pairs.max_ms.saturating_add(self.spare_ms);
        }
        longer
    }

    /// What is left after a pairing that took so long.
    pub(crate) fn after(self, pairing: &Pairing, took_ms: u64) -> SpareTime {
        let had_ms = self.spare_ms.saturating_add(pairing.pairs.max_ms);
        SpareTime { spare_ms: had_ms.saturating_sub(took_ms) }
    }

    /// What is left, in seconds.
    pub(crate) fn seconds(self) -> f64 {
        self.spare_ms as f64 / 1e3
    }
}

/// Pairings in the order in which they are measured: those of headlines last, for which others may leave time.
pub(crate) fn in_order(study: &Study, mut pairings: Vec<Pairing>) -> Vec<Pairing> {
    pairings.sort_by_key(|pairing| study.is_of_headline(pairing));
    pairings
}

#[cfg(test)]
mod tests {
    use spec::PairSettings;
    use stats::{Prng, sequence};

    use super::*;

    /// From one restart to the next, in milliseconds, and the spread of its ratio.
    const SEGMENT_MS: u64 = 10_000;
    const SPREAD: f64 = 0.05;

    fn pairing(number: usize, max_ms: u64, until_judged: bool) -> Pairing {
        let pairs =
            PairSettings { block_ms: None, precision: 0.01, max_ms, until_judged, threshold: None };
        Pairing { number, above: 0, below: 1, pairs }
    }

    /// Whether a claim that a ratio is at least `bound` is judged within the time, and the time that it took.
    fn measured(ratio: f64, bound: f64, max_ms: u64, prng: &mut Prng) -> (bool, u64) {
        let (mut above, mut below): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
        let mut took_ms = 0;
        while took_ms + SEGMENT_MS <= max_ms {
            took_ms += SEGMENT_MS;
            // Nearly normal: the sum of twelve.
            let noise: f64 = (0..12).map(|_| prng.unit()).sum::<f64>() - 6.0;
            above.push(ratio * (1.0 + SPREAD * noise));
            below.push(1.0);
            let interval = sequence::mean_ratio(&above, &below, 0.95);
            if interval.is_ok_and(|interval| interval.low >= bound || interval.high < bound) {
                return (true, took_ms);
            }
        }
        (false, took_ms)
    }

    /// Seven claims far from their bound and one near it: in the same time in all, the near one is judged far more often
    /// if it gets what the others leave.
    #[test]
    fn what_far_claims_leave_judges_the_near_one_in_no_more_time() {
        const RUNS: u64 = 400;
        const MAX_MS: u64 = 90_000;
        let run = |seed: u64, gives: bool| {
            let mut prng = Prng::new(seed);
            let (mut spare, mut total_ms) = (SpareTime::default(), 0);
            let mut is_last_judged = false;
            for number in 1..=8 {
                let ratio = if number == 8 { 1.0 } else { 1.2 };
                let own = pairing(number, MAX_MS, true);
                let given = if gives { spare.give(&own) } else { own };
                let (is_judged, took_ms) = measured(ratio, 0.96, given.pairs.max_ms, &mut prng);
                spare = spare.after(&own, took_ms);
                (total_ms, is_last_judged) = (total_ms + took_ms, is_judged);
            }
            assert!(total_ms <= 8 * MAX_MS);
            is_last_judged
        };
        let judged = |gives| (0..RUNS).filter(|seed| run(*seed, gives)).count() as f64;
        let [alone, given] = [false, true].map(|gives| judged(gives) / RUNS as f64);
        assert!(alone < 0.4 && given > 0.7, "{alone} by itself, {given} with what was left");
    }

    #[test]
    fn time_is_given_to_those_that_end_when_they_are_judged() {
        let check = |until_judged, spare_ms, took_ms, expected: (u64, u64)| {
            let (own, spare) = (pairing(1, 60_000, until_judged), SpareTime { spare_ms });
            let given = spare.give(&own).pairs.max_ms;
            let left = spare.after(&own, took_ms).spare_ms;
            assert_eq!((given, left), expected, "{until_judged} {spare_ms} {took_ms}");
        };
        check(true, 0, 20_000, (60_000, 40_000));
        check(true, 40_000, 95_000, (100_000, 5_000));
        // A precise one is measured for its own time, and spares what it does not need.
        check(false, 40_000, 50_000, (60_000, 50_000));
        // One that ran over leaves nothing, and owes nothing.
        check(true, 0, 61_000, (60_000, 0));
    }
}
