//! Where a goal stops holding: bracket it, halve the bracket, confirm. Pure: the caller tries.
//!
//! A goal that holds at some load is taken to hold below it, and one that fails to fail above it.
//! What else the machine does makes goals fail and hardly ever makes them hold. A load therefore
//! fails only if two of up to three windows fail, and one that has failed once holds only if two of
//! three hold. What was found must also hold in a longer window, and the load above it, which failed
//! in short windows, is tried once more in the end.

/// Loads whose ratio is less than this are not told apart.
const RESOLUTION: f64 = 1.02;
/// Closer to the boundary than this, one window that holds does not decide either.
const CLOSE: f64 = 1.3;
/// Windows that decide where one does not.
const MAJORITY: u32 = 2;
/// A load that is not confirmed is lowered by so much, at most so often.
const STEP_DOWN: f64 = 0.97;
const CONFIRMATIONS: u32 = 12;
/// Where the load above the one that was confirmed holds after all, the search goes on this much
/// higher, at most so often.
const CLIMB: f64 = 1.15;
const CLIMBS: u32 = 4;
/// The lowest load tried is the highest one divided by this.
const RANGE: f64 = 256.0;

/// A search for the highest load at which a goal holds.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    highest: f64,
    /// Loads are whole numbers: clients, not rates.
    whole: bool,
    held: Option<f64>,
    failed: Option<f64>,
    /// Windows at the load under way that held, and that did not.
    votes: (u32, u32),
    at: f64,
    stage: Stage,
    confirmations: u32,
    climbs: u32,
    /// The highest load that held in a longer window.
    confirmed: Option<f64>,
}

/// What a window is for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// To find the boundary.
    Bracketing,
    /// To confirm what was found.
    Confirming,
    /// To see whether the load above this one, which was confirmed, fails indeed.
    LookingAbove,
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
    /// The highest load that was confirmed, and the lowest one that failed.
    Found { held: f64, failed: f64 },
    /// The goal holds at the highest load that there is.
    Everywhere,
    /// It fails at the lowest one that was tried.
    Nowhere,
}

impl Search {
    /// A search up to `highest`, beginning at `first`.
    pub(crate) fn new(first: f64, highest: f64, whole: bool) -> Search {
        let mut search = Search {
            highest,
            whole,
            held: None,
            failed: None,
            votes: (0, 0),
            at: 0.0,
            stage: Stage::Bracketing,
            confirmations: 0,
            climbs: 0,
            confirmed: None,
        };
        search.at = search.rounded(first);
        search
    }

    pub(crate) fn next(&self) -> Next {
        match self.stage {
            Stage::Bracketing | Stage::LookingAbove => Next::Try(self.at),
            Stage::Confirming => Next::Confirm(self.at),
            Stage::Over(end) => Next::End(end),
        }
    }

    /// What the window at the load of [`Search::next`] has shown.
    pub(crate) fn tell(&mut self, holds: bool) {
        let one_is_enough = match self.stage {
            Stage::Bracketing => holds && !self.is_close() && self.votes.1 == 0,
            Stage::Confirming => holds && self.votes.1 == 0,
            Stage::LookingAbove | Stage::Over(_) => false,
        };
        let votes = if holds { &mut self.votes.0 } else { &mut self.votes.1 };
        *votes += 1;
        if *votes < MAJORITY && !one_is_enough {
            return;
        }
        self.votes = (0, 0);
        match self.stage {
            Stage::Bracketing => {
                *(if holds { &mut self.held } else { &mut self.failed }) = Some(self.at);
                self.advance();
            }
            Stage::Confirming if holds => self.confirm(),
            Stage::Confirming => self.step_down(),
            Stage::LookingAbove if holds => {
                (self.held, self.failed) = (Some(self.at), None);
                self.stage = Stage::Bracketing;
                self.climbs += 1;
                self.advance();
            }
            Stage::LookingAbove => self.end(),
            Stage::Over(_) => {}
        }
    }

    fn confirm(&mut self) {
        self.confirmed = Some(self.at);
        match self.failed {
            // It failed in no longer window, and was not looked at often enough.
            Some(failed) if self.confirmations == 0 && self.climbs < CLIMBS => {
                self.at = failed;
                self.stage = Stage::LookingAbove;
            }
            _ => self.end(),
        }
    }

    fn step_down(&mut self) {
        self.failed = Some(self.at);
        self.at = match self.whole {
            true => (self.at * STEP_DOWN).floor().min(self.at - 1.0),
            false => self.at * STEP_DOWN,
        };
        self.confirmations += 1;
        // What was confirmed before a climb needs no other window.
        let is_low = match self.confirmed {
            Some(confirmed) => self.at <= confirmed,
            None => self.at < self.lowest(),
        };
        if is_low || self.confirmations == CONFIRMATIONS {
            self.end();
        }
    }

    fn end(&mut self) {
        self.stage = Stage::Over(match (self.confirmed, self.failed) {
            (None, _) => End::Nowhere,
            (Some(_), None) => End::Everywhere,
            (Some(held), Some(failed)) => End::Found { held, failed },
        });
    }

    fn advance(&mut self) {
        match (self.held, self.failed) {
            (Some(held), Some(failed)) => {
                let middle = self.rounded((held * failed).sqrt());
                let told_apart = failed / held > RESOLUTION && middle > held && middle < failed;
                if told_apart {
                    self.at = middle;
                } else {
                    (self.at, self.stage) = (held, Stage::Confirming);
                }
            }
            (Some(held), None) if held >= self.highest => {
                (self.at, self.stage) = (held, Stage::Confirming);
            }
            (Some(held), None) if self.climbs > 0 => {
                let higher = self.rounded(held * CLIMB);
                self.at = if higher > held { higher } else { self.rounded(held + 1.0) };
            }
            (Some(held), None) => self.at = self.rounded(held * 2.0),
            (None, Some(failed)) => {
                self.at = self.rounded(failed / 2.0);
                if self.at < self.lowest() || self.at >= failed {
                    self.stage = Stage::Over(End::Nowhere);
                }
            }
            (None, None) => {}
        }
    }

    fn is_close(&self) -> bool {
        match (self.held, self.failed) {
            (Some(held), Some(failed)) => failed / held < CLOSE,
            _ => false,
        }
    }

    fn lowest(&self) -> f64 {
        if self.whole { 1.0 } else { self.highest / RANGE }
    }

    fn rounded(&self, load: f64) -> f64 {
        let load = load.min(self.highest);
        if self.whole { load.round().max(1.0) } else { load }
    }
}

#[cfg(test)]
mod tests {
    use stats::Prng;

    use super::*;

    /// Searches where `holds` says what a window shows; how many windows that took.
    fn search(highest: f64, whole: bool, mut holds: impl FnMut(f64, bool) -> bool) -> (End, u32) {
        let mut search = Search::new(highest / 2.0, highest, whole);
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

    #[test]
    fn a_sharp_boundary_is_found() {
        for truth in [60.0, 410.0, 1_000.0, 5_300.0, 9_700.0] {
            let (end, windows) = search(10_000.0, false, |load, _| load <= truth);
            let End::Found { held, failed } = end else { panic!("{truth}: {end:?}") };
            assert!(held <= truth && truth < failed && failed / held < 1.025, "{truth}: {end:?}");
            assert!(windows < 30, "{truth}: {windows}");
        }
        for truth in 1..=64 {
            let (end, _) = search(64.0, true, |load, _| load <= f64::from(truth));
            match end {
                End::Found { held, .. } => assert_eq!(held, f64::from(truth)),
                End::Everywhere => assert_eq!(truth, 64),
                End::Nowhere => panic!("{truth}"),
            }
        }
    }

    #[test]
    fn a_goal_may_hold_nowhere_or_everywhere() {
        assert_eq!(search(1_000.0, false, |_, _| true).0, End::Everywhere);
        assert_eq!(search(1_000.0, false, |_, _| false).0, End::Nowhere);
        assert_eq!(search(8.0, true, |_, _| false).0, End::Nowhere);
    }

    /// A queue whose p99 is ln(100) / (capacity − rate), seen with noise of 8 % in a short window
    /// and 3 % in a long one.
    #[test]
    fn noise_moves_the_answer_by_little() {
        let (capacity, limit_s) = (10_000.0_f64, 0.005);
        let truth = capacity - 100_f64.ln() / limit_s;
        let found: Vec<f64> = (0..200)
            .map(|seed| {
                let mut prng = Prng::new(seed);
                let mut normal = move || (0..12).map(|_| prng.unit()).sum::<f64>() - 6.0;
                let end = search(capacity, false, |load, long| {
                    let noise = (normal() * if long { 0.03 } else { 0.08 }).exp();
                    100_f64.ln() / (capacity - load).max(1.0) * noise < limit_s
                });
                let End::Found { held, .. } = end.0 else { panic!("{end:?}") };
                held
            })
            .collect();
        let near = found.iter().filter(|held| (*held / truth - 1.0).abs() < 0.035).count();
        assert!(near >= 190, "{near} of 200 within 3.5 % of {truth}: {found:?}");
    }

    /// A machine that spoils one window in six, whatever the load.
    #[test]
    fn windows_that_the_machine_has_spoiled_do_not_decide() {
        let truth = 3_000.0;
        let found = |seed| {
            let mut prng = Prng::new(seed);
            let holds = |load: f64, _| load <= truth && prng.unit() > 1.0 / 6.0;
            match search(10_000.0, false, holds).0 {
                End::Found { held, .. } => held,
                end => panic!("{end:?}"),
            }
        };
        let near = (0..200).map(found).filter(|held| held / truth > 0.95).count();
        assert!(near >= 190, "{near} of 200 within 5 %");
    }
}
