//! Where a goal stops holding: windows at the loads that tell most, then a longer one that
//! confirms. Pure: the caller tries.
//!
//! A window may fail because of something else that the machine does, and neighbouring windows may
//! disagree. What the windows show together is the posterior of [`Threshold`]. The search ends when
//! 90 % of it lie within 3 %, or after 40 windows. The median is the answer if two of up to three
//! longer windows hold there, or the first one does. Else the load is lowered.

use stats::Threshold;

/// Loads that are tried differ by at least this ratio; clients also by one.
const STEP: f64 = 1.01;
/// The lowest load tried is the highest one divided by this.
const RANGE: f64 = 256.0;
/// The interval is what lies between these quantiles of the posterior.
const INTERVAL: (f64, f64) = (0.05, 0.95);
/// An interval whose ends have at most this ratio is not narrowed: four steps.
const NARROW: f64 = 1.041;
/// So many windows at most look for the boundary.
const WINDOWS: u32 = 40;
/// Longer windows that decide where the first one has failed.
const MAJORITY: u32 = 2;
/// A load that is not confirmed is lowered by so much, at most so often.
const STEP_DOWN: f64 = 0.97;
const CONFIRMATIONS: u32 = 12;

/// A search for the highest load at which a goal holds.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    /// What can be tried, ascending.
    loads: Vec<f64>,
    known: Threshold,
    windows: u32,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// To find the boundary, with a window at the load with this index.
    Looking(usize),
    /// To confirm what was found.
    Confirming {
        /// The index of the load.
        load: usize,
        /// Windows there that held, and that did not.
        votes: (u32, u32),
        /// Loads that were not confirmed.
        refuted: u32,
    },
    Over(End),
}

/// What to try next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Next {
    /// A window at this load.
    Try(f64),
    /// A longer window at this load.
    Confirm(f64),
    /// The search is over.
    End(End),
}

/// How a search ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum End {
    /// A longer window held at this load, and the boundary lies between two others with a probability
    /// of 90 %.
    Found { held: f64, low: f64, high: f64 },
    /// The goal holds at the highest load that there is.
    Everywhere,
    /// It holds at no load.
    Nowhere,
    /// It holds in windows, but in no longer one.
    Unconfirmed,
}

impl Search {
    /// A search up to `highest`. Loads are whole numbers where they are clients.
    pub(crate) fn new(highest: f64, whole: bool) -> Search {
        let loads = match whole {
            true => clients(highest),
            false => rates(highest),
        };
        let known = Threshold::new(&loads);
        let stage = Stage::Looking(known.most_informative());
        Search { loads, known, windows: 0, stage }
    }

    pub(crate) fn next(&self) -> Next {
        match self.stage {
            Stage::Looking(load) => Next::Try(self.loads[load]),
            Stage::Confirming { load, .. } => Next::Confirm(self.loads[load]),
            Stage::Over(end) => Next::End(end),
        }
    }

    /// The share of the windows that fail at loads that can be kept.
    pub(crate) fn lapse_rate(&self) -> f64 {
        self.known.lapse_rate()
    }

    /// What the window at the load of [`Search::next`] has shown.
    pub(crate) fn tell(&mut self, holds: bool) {
        match self.stage {
            Stage::Looking(load) => {
                self.windows += 1;
                self.known.tell(load, holds);
                self.look_on();
            }
            Stage::Confirming { load, mut votes, refuted } => {
                *(if holds { &mut votes.0 } else { &mut votes.1 }) += 1;
                match votes {
                    (_, 0) => self.end(load),
                    (held, _) if held == MAJORITY => self.end(load),
                    (_, failed) if failed == MAJORITY => self.step_down(load, refuted + 1),
                    _ => self.stage = Stage::Confirming { load, votes, refuted },
                }
            }
            Stage::Over(_) => {}
        }
    }

    fn look_on(&mut self) {
        if !self.is_narrow() && self.windows < WINDOWS {
            self.stage = Stage::Looking(self.known.most_informative());
            return;
        }
        self.stage = match self.known.quantile(0.5).checked_sub(1) {
            None => Stage::Over(End::Nowhere),
            Some(load) => Stage::Confirming { load, votes: (0, 0), refuted: 0 },
        };
    }

    fn step_down(&mut self, load: usize, refuted: u32) {
        let lower = self.loads[load] * STEP_DOWN;
        let below = self.loads[..load].iter().rposition(|load| *load <= lower);
        self.stage = match below {
            Some(load) if refuted < CONFIRMATIONS => {
                Stage::Confirming { load, votes: (0, 0), refuted }
            }
            _ => Stage::Over(End::Unconfirmed),
        };
    }

    fn end(&mut self, load: usize) {
        let held = self.loads[load];
        let (low, high) = self.interval();
        self.stage = Stage::Over(match load + 1 == self.loads.len() {
            true => End::Everywhere,
            false => End::Found { held, low: low.min(held), high },
        });
    }

    fn is_narrow(&self) -> bool {
        let is_one = self.known.quantile(INTERVAL.0) == self.known.quantile(INTERVAL.1);
        let (low, high) = self.interval();
        is_one || high <= low * NARROW
    }

    /// A load that can be kept and one that cannot, each with a probability of 95 %: the lowest and
    /// the highest load where there is none.
    fn interval(&self) -> (f64, f64) {
        let (low, high) = (self.known.quantile(INTERVAL.0), self.known.quantile(INTERVAL.1));
        (self.loads[low.saturating_sub(1)], self.loads[high.min(self.loads.len() - 1)])
    }
}

fn rates(highest: f64) -> Vec<f64> {
    let steps = (RANGE.ln() / STEP.ln()).ceil() as i32;
    (0..=steps).rev().map(|step| highest / STEP.powi(step)).collect()
}

fn clients(highest: f64) -> Vec<f64> {
    let next = |clients: &f64| {
        let more = (clients * STEP).round().max(clients + 1.0).min(highest);
        (more > *clients).then_some(more)
    };
    std::iter::successors(Some(1.0), next).collect()
}

#[cfg(test)]
mod tests {
    use stats::Prng;

    use super::*;

    /// Searches where `holds` says what a window shows; how many windows that took.
    fn search(highest: f64, whole: bool, mut holds: impl FnMut(f64, bool) -> bool) -> (End, u32) {
        let mut search = Search::new(highest, whole);
        for windows in 0.. {
            let shown = match search.next() {
                Next::Try(load) => holds(load, false),
                Next::Confirm(load) => holds(load, true),
                Next::End(end) => return (end, windows),
            };
            search.tell(shown);
        }
        unreachable!("a search ends")
    }

    fn held(end: End) -> f64 {
        let End::Found { held, low, high } = end else { panic!("{end:?}") };
        assert!(low <= held && held < high, "{end:?}");
        held
    }

    #[test]
    fn a_sharp_boundary_is_found() {
        for truth in [60.0, 410.0, 1_000.0, 5_300.0, 9_700.0] {
            let (end, windows) = search(10_000.0, false, |load, _| load <= truth);
            let End::Found { held, low, high } = end else { panic!("{truth}: {end:?}") };
            assert!((held / truth - 1.0).abs() < 0.02, "{truth}: {end:?}");
            assert!(low <= truth && truth <= high && high / low < 1.041, "{truth}: {end:?}");
            assert!(windows < 25, "{truth}: {windows}");
        }
        for truth in 1..=64 {
            let (end, windows) = search(64.0, true, |load, _| load <= f64::from(truth));
            match end {
                End::Found { held, .. } => assert!((held - f64::from(truth)).abs() <= 1.0),
                End::Everywhere => assert!(truth >= 63),
                End::Nowhere | End::Unconfirmed => panic!("{truth}"),
            }
            assert!(windows < 25, "{truth}: {windows}");
        }
    }

    #[test]
    fn a_goal_may_hold_nowhere_or_everywhere() {
        for (highest, whole) in [(1_000.0, false), (8.0, true), (1.0, true)] {
            assert_eq!(search(highest, whole, |_, _| true).0, End::Everywhere);
            assert_eq!(search(highest, whole, |_, _| false).0, End::Nowhere);
            let (end, _) = search(highest, whole, |_, confirms| !confirms);
            assert_eq!(end, End::Unconfirmed);
        }
    }

    /// A queue whose p99 is ln(100) / (capacity − rate), seen with noise of 8 % in a short window
    /// and 3 % in a long one.
    #[test]
    fn noise_moves_the_answer_by_little() {
        let (capacity, limit_s) = (10_000.0_f64, 0.005);
        let truth = capacity - 100_f64.ln() / limit_s;
        let found: Vec<f64> = (0..100)
            .map(|seed| {
                let mut prng = Prng::new(seed);
                let mut normal = move || (0..12).map(|_| prng.unit()).sum::<f64>() - 6.0;
                let end = search(capacity, false, |load, long| {
                    let noise = (normal() * if long { 0.03 } else { 0.08 }).exp();
                    100_f64.ln() / (capacity - load).max(1.0) * noise < limit_s
                });
                held(end.0)
            })
            .collect();
        let near = found.iter().filter(|held| (*held / truth - 1.0).abs() < 0.035).count();
        assert!(near >= 95, "{near} of 100 within 3.5 % of {truth}: {found:?}");
    }

    /// A machine that spoils some windows, whatever the load, and half as many of the longer ones.
    #[test]
    fn windows_that_the_machine_has_spoiled_do_not_decide() {
        let truth = 3_000.0;
        for (lapse, enough) in [(0.15, 95), (0.3, 85)] {
            let (mut near, mut covered, mut lapses) = (0, 0, 0.0);
            for seed in 0..100 {
                let mut prng = Prng::new(seed);
                let mut holds = |load: f64, long: bool| {
                    load <= truth && prng.unit() > if long { lapse / 2.0 } else { lapse }
                };
                let mut search = Search::new(10_000.0, false);
                let end = loop {
                    let shown = match search.next() {
                        Next::Try(load) => holds(load, false),
                        Next::Confirm(load) => holds(load, true),
                        Next::End(end) => break end,
                    };
                    search.tell(shown);
                };
                let End::Found { held, low, high } = end else { panic!("{seed}: {end:?}") };
                near += u32::from((held / truth - 1.0).abs() < 0.05);
                covered += u32::from(low <= truth && truth <= high);
                lapses += search.lapse_rate() / 100.0;
            }
            assert!(near >= enough, "{lapse}: {near} of 100 within 5 %");
            assert!(covered >= 90, "{lapse}: {covered} of 100 intervals contain it");
            assert!((lapses / lapse - 1.0).abs() < 0.5, "{lapse}: taken for {lapses}");
        }
    }
}
