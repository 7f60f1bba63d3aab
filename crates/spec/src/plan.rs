//! Order of the trials: every point once a round, in balanced order.

use stats::{Prng, mix};

use crate::order;
use crate::study::Study;

/// One trial to come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Position in the order of execution, from 1.
    pub number: usize,
    /// Round, from 1.
    pub round: u32,
    /// Index of the point in the study.
    pub point: usize,
    /// Seed of the load: the same for all points of a round, so that what is compared with each
    /// other draws the same keys.
    pub seed: u64,
    /// Time of each action of the point's timeline, in milliseconds since the window opened.
    pub at_ms: Vec<u64>,
}

impl Study {
    /// The plan: every point that fits the pattern, in each of its rounds. The order within a
    /// round is balanced (a Williams design), so that neither its place nor what ran before it favours a
    /// point. It depends on nothing but the study, the seed and the pattern.
    #[must_use]
    pub fn trials(&self, only: Option<&str>) -> Vec<Planned> {
        let rounds = self.points.iter().map(|point| point.rounds).max().unwrap_or(0);
        let fits = |point: &crate::Point| only.is_none_or(|pattern| point.name.fits(pattern));
        let points = self.points.iter().enumerate().filter(|(_, point)| fits(point));
        let points: Vec<usize> = points.map(|(index, _)| index).collect();
        let mut random = Prng::new(self.seed);
        let orders = order::orders(&points, rounds as usize, &mut random);
        let mut trials = Vec::new();
        for (round, order) in (1..=rounds).zip(orders) {
            let mut random = Prng::new(self.seed ^ mix(u64::from(round)));
            for point in order.into_iter().filter(|point| round <= self.points[*point].rounds) {
                let timeline = self.points[point].timeline.iter();
                let at_ms = timeline.map(|timed| {
                    let width = timed.latest_ms - timed.earliest_ms + 1;
                    timed.earliest_ms + random.below(width as usize) as u64
                });
                let at_ms = at_ms.collect();
                let number = trials.len() + 1;
                let seed = mix(self.seed.wrapping_add(u64::from(round))) >> 1;
                trials.push(Planned { number, round, point, seed, at_ms });
            }
        }
        trials
    }
}
