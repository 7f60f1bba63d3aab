//! Order of the trials: every point once a round, in balanced order.

use std::collections::BTreeMap;

use stats::{Prng, mix};

use crate::data::DataReset;
use crate::order;
use crate::study::Study;

/// One trial to come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledTrial {
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
    pub fn trials(&self, only: Option<&str>) -> Vec<ScheduledTrial> {
        // Without a point there is no round.
        let rounds = self.points.iter().map(|point| point.rounds).max().unwrap_or(0);
        let fits = |point: &crate::TrialPoint| only.is_none_or(|pattern| point.name.fits(pattern));
        let points = self.points.iter().enumerate().filter(|(_, point)| fits(point));
        let points: Vec<usize> = points.map(|(index, _)| index).collect();
        let mut random = Prng::new(self.seed);
        let orders = order::orders(&points, rounds as usize, &mut random);
        let mut trials = Vec::new();
        for (round, order) in (1..=rounds).zip(orders) {
            let mut random = Prng::new(self.seed ^ mix(u64::from(round)));
            let order = self.one_after_another(order);
            for point in order.into_iter().filter(|point| round <= self.points[*point].rounds) {
                let timeline = self.points[point].timeline.iter();
                let mut before = 0;
                let at_ms = timeline.map(|timed| {
                    // One that waits for a state is behind the one that is written before it.
                    if timed.when.is_some() {
                        return before;
                    }
                    let width = timed.latest_ms - timed.earliest_ms + 1;
                    before = timed.earliest_ms + random.below(width as usize) as u64;
                    before
                });
                let at_ms = at_ms.collect();
                let number = trials.len() + 1;
                let seed = mix(self.seed.wrapping_add(u64::from(round))) >> 1;
                trials.push(ScheduledTrial { number, round, point, seed, at_ms });
            }
        }
        trials
    }

    /// The points of a round, with those side by side that go on with the machines of one another: a
    /// cluster that stands serves them all.
    fn one_after_another(&self, mut order: Vec<usize>) -> Vec<usize> {
        let goes_on = |point: usize| self.points[point].data.reset == DataReset::Whole;
        let first_of = order.iter().enumerate().map(|(place, point)| {
            let topology = &self.points[*point].topology;
            let is_same = |other: &&usize| self.points[**other].topology == *topology;
            let first = order.iter().filter(|_| goes_on(*point)).find(is_same);
            let first = first.and_then(|first| order.iter().position(|other| other == first));
            (*point, first.unwrap_or(place))
        });
        let first_of: BTreeMap<usize, usize> = first_of.collect();
        order.sort_by_key(|point| first_of[point]);
        order
    }
}

#[cfg(test)]
mod tests {
    use crate::{Study, StudyFolder, StudyProfile};

    #[test]
    fn points_that_go_on_with_machines_of_one_another_stand_side_by_side() {
        let node = "{ kind = \"machine\", server = {}, processes.p = { command = [\"x\"] }, variables = { v = 1 } }";
        let study = |reset: &str| {
            let text = format!(
                "question = \"?\"\ndata = {{ reset = \"{reset}\" }}\ntopologies.t.nodes.db = {node}\n\
                 variants.a = {{ topology = \"t\" }}\n\
                 variants.b = {{ topology = \"t\", variables = {{ v = 2 }} }}\n\
                 workloads.w = {{ script = \"w.sql\" }}\n\
                 scenarios.one = {{ run = \"w\" }}\nscenarios.two = {{ run = \"w\" }}\n\
                 scenarios.three = {{ run = \"w\" }}\nrounds = 4\n"
            );
            let files = [(StudyFolder::STUDY, text.as_str()), ("w.sql", "SELECT 1;")];
            let files = files.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
            let folder = StudyFolder { files, ..StudyFolder::default() };
            Study::parse(&folder, StudyProfile::Quick).unwrap()
        };
        // Changes of the variant inside the rounds.
        let changes = |study: &Study| {
            let variant = |point: usize| study.points[point].name.variant.clone();
            let trials = study.trials(None);
            let is_change = |pair: &&[crate::ScheduledTrial]| {
                pair[0].round == pair[1].round && variant(pair[0].point) != variant(pair[1].point)
            };
            trials.windows(2).filter(is_change).count()
        };
        assert_eq!(changes(&study("whole")), 4);
        assert!(changes(&study("clone")) > 4);
    }
}
