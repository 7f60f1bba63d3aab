//! Steps of a search for the load at which a goal stops holding: windows at the loads that tell
//! most, then longer ones. Pure: the caller tries.
//!
//! A window may fail because of something else that the machine does, and neighbouring windows may
//! disagree. What they show together is the posterior of [`ThresholdDistribution`]. Short windows narrow its 90 %
//! interval to 10 %. A goal that holds in a short window may fail in a longer one, where more can
//! happen, so the longer windows have a threshold of their own, near that of the short ones. The
//! search ends when its 90 % interval is within 4 %. The answer is the median, or the highest load
//! below it at which a longer window held.

use stats::ThresholdDistribution;

/// Loads that are tried differ by at least this ratio; clients also by one.
const STEP: f64 = 1.01;
/// The lowest load tried is the highest one divided by this.
const RANGE: f64 = 256.0;
/// The interval is what lies between these quantiles of the posterior.
const INTERVAL: (f64, f64) = (0.05, 0.95);

/// Conditions under which windows of a length are enough.
struct Enough {
    /// The ratio of the interval's ends.
    ratio: f64,
    /// Largest number of windows.
    windows: u32,
}

const SHORT: Enough = Enough { ratio: 1.1, windows: 20 };
const LONGER: Enough = Enough { ratio: 1.041, windows: 16 };
/// More longer windows, at the answer, where none has held there.
const REPEATED: u32 = 4;

/// A search for the highest load at which a goal holds.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    /// Loads that can be tried, ascending.
    loads: Vec<f64>,
    /// The threshold of windows as long as the present ones.
    known: ThresholdDistribution,
    /// Number of windows of this length so far.
    windows: u32,
    stage: Stage,
    /// The indices of the loads at which a longer window held.
    held: Vec<usize>,
    /// Of the short windows.
    lapse_rate: f64,
}

/// The purpose of the next window, with the index of its load.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// A short one, to come near the boundary.
    Looking(usize),
    /// A longer one, to find it.
    Confirming(usize),
    Over(End),
}

/// The next step of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Next {
    /// A window at this load.
    Try(f64),
    /// A longer window at this load.
    Confirm(f64),
    /// The search is over.
    End(End),
}

/// The end of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum End {
    /// There is an answer.
    Found {
        /// A longer window held at this load or above it.
        held: f64,
        /// The boundary lies between this load …
        low: f64,
        /// … and this one with a probability of 90 %.
        high: f64,
    },
    /// Every load was tried as often.
    Swept {
        /// The load at which most was done while the goal held.
        best: Option<f64>,
    },
    /// The goal holds at the highest load that there is.
    Everywhere,
    /// It holds at no load.
    Nowhere,
    /// It holds in windows, but in no longer one.
    Unconfirmed,
}

/// An estimate of the boundary before the search is over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) load: f64,
    /// The boundary lies between this load …
    pub(crate) low: f64,
    /// … and this one with a probability of 90 %.
    pub(crate) high: f64,
}

impl Search {
    /// A search up to `highest`. Loads are whole numbers where they are clients.
    pub(crate) fn new(highest: f64, whole: bool) -> Search {
        let loads = match whole {
            true => clients(highest),
            false => rates(highest),
        };
        let known = ThresholdDistribution::new(&loads);
        let stage = Stage::Looking(known.most_informative());
        Search { loads, known, windows: 0, stage, held: Vec::new(), lapse_rate: 0.0 }
    }

    pub(crate) fn next(&self) -> Next {
        match self.stage {
            Stage::Looking(load) => Next::Try(self.loads[load]),
            Stage::Confirming(load) => Next::Confirm(self.loads[load]),
            Stage::Over(end) => Next::End(end),
        }
    }

    /// The estimate that the windows so far allow; none before the first.
    pub(crate) fn estimate(&self) -> Option<Estimate> {
        let is_first = self.windows == 0 && matches!(self.stage, Stage::Looking(_));
        let answer = self.known.quantile(0.5).checked_sub(1).filter(|_| !is_first)?;
        let (low, high) = self.interval();
        let load = self.loads[answer];
        Some(Estimate { load, low: low.min(load), high: high.max(load) })
    }

    /// Number of short and of longer windows that may follow.
    pub(crate) fn windows_left(&self) -> (u32, u32) {
        let longer = LONGER.windows + REPEATED;
        match self.stage {
            Stage::Looking(_) => (SHORT.windows.saturating_sub(self.windows), longer),
            Stage::Confirming(_) => (0, longer.saturating_sub(self.windows)),
            Stage::Over(_) => (0, 0),
        }
    }

    /// The share of the short windows that fail at loads that can be kept.
    pub(crate) fn lapse_rate(&self) -> f64 {
        self.lapse_rate
    }

    /// Takes the result of the window at the load of [`Search::next`].
    pub(crate) fn tell(&mut self, holds: bool) {
        self.windows += 1;
        self.stage = match self.stage {
            Stage::Looking(load) => {
                self.known.tell(load, holds);
                self.look_on()
            }
            Stage::Confirming(load) => {
                self.known.tell(load, holds);
                self.held.extend(holds.then_some(load));
                self.confirm_on()
            }
            Stage::Over(end) => Stage::Over(end),
        };
    }

    fn look_on(&mut self) -> Stage {
        if !self.is_enough(&SHORT) {
            return Stage::Looking(self.known.most_informative());
        }
        self.lapse_rate = self.known.lapse_rate();
        if self.known.quantile(0.5) == 0 {
            return Stage::Over(End::Nowhere);
        }
        self.known = self.known.of_longer_windows();
        self.windows = 0;
        Stage::Confirming(self.known.most_informative())
    }

    fn confirm_on(&self) -> Stage {
        if !self.is_enough(&LONGER) {
            return Stage::Confirming(self.known.most_informative());
        }
        let answer = self.known.quantile(0.5).checked_sub(1);
        let is_confirmed = |answer| self.held.iter().any(|held| *held >= answer);
        Stage::Over(match answer {
            Some(answer) if is_confirmed(answer) => self.found(answer),
            Some(answer) if self.windows < LONGER.windows + REPEATED => {
                return Stage::Confirming(answer);
            }
            _ => self.held.iter().max().map_or(End::Unconfirmed, |held| self.found(*held)),
        })
    }

    fn found(&self, answer: usize) -> End {
        let held = self.loads[answer];
        let (low, high) = self.interval();
        match answer + 1 == self.loads.len() {
            true => End::Everywhere,
            false => End::Found { held, low: low.min(held), high },
        }
    }

    fn is_enough(&self, enough: &Enough) -> bool {
        let is_one = self.known.quantile(INTERVAL.0) == self.known.quantile(INTERVAL.1);
        let (low, high) = self.interval();
        is_one || high <= low * enough.ratio || self.windows >= enough.windows
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
            assert!(windows < 35, "{truth}: {windows}");
        }
        for truth in 1..=64 {
            let (end, windows) = search(64.0, true, |load, _| load <= f64::from(truth));
            match end {
                End::Found { held, .. } => assert!((held - f64::from(truth)).abs() <= 1.0),
                End::Everywhere => assert!(truth >= 63),
                End::Nowhere | End::Unconfirmed | End::Swept { .. } => panic!("{truth}"),
            }
            assert!(windows < 35, "{truth}: {windows}");
        }
    }

    /// A lucky window at a high load is not what an interrupted search has found.
    #[test]
    fn an_estimate_is_not_the_luckiest_window() {
        let truth = 400.0;
        let mut search = Search::new(10_000.0, false);
        assert_eq!((search.estimate(), search.windows_left()), (None, (20, 20)));
        let mut highest = 0.0_f64;
        for number in 0..12 {
            let Next::Try(load) = search.next() else { break };
            let holds = load <= truth || number == 1;
            highest = if holds { highest.max(load) } else { highest };
            search.tell(holds);
        }
        let found = search.estimate().expect("windows have run");
        assert!(found.low <= found.load && found.load <= found.high, "{found:?}");
        assert!((truth / 2.0..truth * 2.0).contains(&found.load), "{found:?}, highest {highest}");
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
