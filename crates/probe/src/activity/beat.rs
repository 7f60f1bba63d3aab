//! Random moments at which a server is looked at.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use stats::Prng;

/// Gaps between looks: exponential, so that looks keep step with nothing, and so long on average
/// that they cost a fixed share of a CPU at most.
#[derive(Debug)]
pub(crate) struct Beat {
    prng: Prng,
    shortest: Duration,
    share: u32,
    /// Cost of a look: a moving mean.
    cost: Duration,
}

/// A gap is at most so many times the mean.
const GAP_MAX: f64 = 6.0;

impl Beat {
    /// Looks `shortest` apart on average, or `share` times as long as a look takes.
    pub(crate) fn new(shortest: Duration, share: u32) -> Beat {
        let seed = RandomState::new().hash_one(0);
        Beat { prng: Prng::new(seed), shortest, share, cost: Duration::ZERO }
    }

    /// Takes in what a look has cost.
    pub(crate) fn cost(&mut self, cost: Duration) {
        self.cost = (self.cost * 7 + cost) / 8;
    }

    /// Looks half as often from now on.
    pub(crate) fn halve(&mut self) {
        self.shortest *= 2;
    }

    /// The time until the next look.
    pub(crate) fn gap(&mut self) -> Duration {
        self.sooner(self.shortest)
    }

    /// The time until the next look where looks are wanted `shortest` apart for the moment.
    pub(crate) fn sooner(&mut self, shortest: Duration) -> Duration {
        let mean = shortest.max(self.cost * self.share);
        let factor = -(1.0 - self.prng.unit()).ln();
        mean.mul_f64(factor.min(GAP_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_differ_and_have_the_mean_that_the_cost_allows() {
        let mut beat = Beat::new(Duration::from_millis(1), 100);
        let mean = |beat: &mut Beat| {
            let gaps: Vec<Duration> = (0..20_000).map(|_| beat.gap()).collect();
            assert!(gaps.windows(2).any(|two| two[0] != two[1]));
            gaps.iter().sum::<Duration>().as_secs_f64() / gaps.len() as f64
        };
        assert!((0.9e-3..1.1e-3).contains(&mean(&mut beat)));
        (0..200).for_each(|_| beat.cost(Duration::from_micros(50)));
        assert!((4.5e-3..5.5e-3).contains(&mean(&mut beat)));
    }
}
