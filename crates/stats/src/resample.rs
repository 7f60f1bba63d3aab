//! Rounds drawn with replacement, as indices, so that any expression over rounds can be evaluated
//! on them: the bootstrap of a claim (Efron and Tibshirani, "An introduction to the bootstrap").
//!
//! All values of a claim must be taken from the same rounds of a resample, which keeps what a
//! round has in common; hence indices and not values are drawn. Below
//! [`HEADLINE_ROUNDS_MIN`] rounds every possible resample is listed instead: there are at most
//! 5⁵ = 3,125.

use crate::interval::HEADLINE_ROUNDS_MIN;
use crate::prng::Prng;

/// How many resamples a 95 % interval takes: the 2.5 % points of 10,000 stand on 250 resamples.
pub const RESAMPLES: usize = 10_000;

/// Resamples of rounds: each as many indices into the rounds as there are rounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resamples {
    rounds: usize,
    indices: Vec<usize>,
}

impl Resamples {
    /// Draws `resamples` resamples of `rounds` rounds; the same seed draws the same ones. Below
    /// six rounds: all that exist, whatever `resamples` and `seed` are. None for no rounds.
    pub fn new(rounds: usize, resamples: usize, seed: u64) -> Self {
        let indices = if rounds < HEADLINE_ROUNDS_MIN {
            every_resample(rounds)
        } else {
            let mut prng = Prng::new(seed);
            (0..rounds * resamples).map(|_| prng.below(rounds)).collect()
        };
        Resamples { rounds, indices }
    }

    /// How many rounds there are.
    pub fn rounds(&self) -> usize {
        self.rounds
    }

    /// How many resamples there are.
    pub fn len(&self) -> usize {
        self.indices.len() / self.rounds.max(1)
    }

    /// Whether there is nothing to draw from.
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// The resamples, each a list of round indices.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[usize]> {
        self.indices.chunks_exact(self.rounds.max(1))
    }

    /// The value of `statistic` on every resample, for [`crate::bootstrap`].
    pub fn evaluate(&self, statistic: impl FnMut(&[usize]) -> f64) -> Vec<f64> {
        self.iter().map(statistic).collect()
    }

    /// The value of `statistic` with each round left out in turn, for the acceleration of
    /// [`crate::bootstrap::bias_corrected`]. Empty below two rounds.
    pub fn jackknife(&self, mut statistic: impl FnMut(&[usize]) -> f64) -> Vec<f64> {
        if self.rounds < 2 {
            return Vec::new();
        }
        let without = |out: usize| (0..self.rounds).filter(move |&round| round != out);
        (0..self.rounds).map(|out| statistic(&without(out).collect::<Vec<_>>())).collect()
    }
}

fn every_resample(rounds: usize) -> Vec<usize> {
    if rounds == 0 {
        return Vec::new();
    }
    let digit = |number: usize, place: usize| number / rounds.pow(place as u32) % rounds;
    let numbers = 0..rounds.pow(rounds as u32);
    numbers.flat_map(|number| (0..rounds).map(move |place| digit(number, place))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_rounds() {
        let draw = |seed| Resamples::new(8, 100, seed);
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert_eq!(draw(1).len(), 100);
        assert!(draw(1).iter().all(|rounds| rounds.len() == 8 && rounds.iter().all(|r| *r < 8)));
    }

    #[test]
    fn few_rounds_are_resampled_in_every_way() {
        let check = |rounds: usize, expected: usize| {
            let resamples = Resamples::new(rounds, 10, 0);
            assert_eq!(resamples.len(), expected, "{rounds}");
            let distinct: std::collections::BTreeSet<_> = resamples.iter().collect();
            assert_eq!(distinct.len(), expected, "{rounds}");
        };
        check(0, 0);
        check(1, 1);
        check(2, 4);
        check(3, 27);
        check(5, 3_125);
    }

    #[test]
    fn the_jackknife_leaves_each_round_out_once() {
        let left_out =
            Resamples::new(4, 0, 0).jackknife(|rounds| (6 - rounds.iter().sum::<usize>()) as f64);
        assert_eq!(left_out, [0.0, 1.0, 2.0, 3.0]);
        assert!(Resamples::new(1, 0, 0).jackknife(|_| 0.0).is_empty());
    }
}
