//! Which trial runs when: every point once a round, in random order.

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
    /// When each action of the point's timeline happens, in milliseconds since the window opened.
    pub at_ms: Vec<u64>,
}

impl Study {
    /// The plan: every point that fits the pattern, in each of its rounds. The order within a
    /// round is drawn anew from the study's seed, so that drift of the machine falls on all points
    /// alike. It depends on nothing but the study, the seed and the pattern.
    #[must_use]
    pub fn trials(&self, only: Option<&str>) -> Vec<Planned> {
        let rounds = self.points.iter().map(|point| point.rounds).max().unwrap_or(0);
        let mut trials = Vec::new();
        for round in 1..=rounds {
            let in_round = |(_, point): &(usize, &crate::Point)| {
                round <= point.rounds && only.is_none_or(|pattern| point.name.fits(pattern))
            };
            let points = self.points.iter().enumerate().filter(in_round);
            let mut points: Vec<usize> = points.map(|(index, _)| index).collect();
            let mut random = Random(mix(self.seed ^ mix(u64::from(round))));
            random.shuffle(&mut points);
            for point in points {
                let timeline = self.points[point].timeline.iter();
                let at_ms = timeline
                    .map(|timed| random.within(timed.earliest_ms, timed.latest_ms))
                    .collect();
                let number = trials.len() + 1;
                let seed = mix(self.seed.wrapping_add(u64::from(round))) >> 1;
                trials.push(Planned { number, round, point, seed, at_ms });
            }
        }
        trials
    }
}

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): a few dozen draws need no more.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number from `low` to `high`, both included. The bias of the remainder is below 2⁻³² for
    /// any span that a study can have.
    fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// Fisher and Yates.
    fn shuffle(&mut self, items: &mut [usize]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.within(0, last as u64) as usize);
        }
    }
}

fn mix(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
