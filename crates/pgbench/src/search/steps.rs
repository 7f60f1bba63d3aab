//! Where a goal stops holding: bracket it, halve the bracket, confirm. Pure: the caller tries.
//!
//! A goal that holds at some load is taken to hold below it, and one that fails to fail above it.
//! Windows are noisy, so near the boundary two of up to three windows decide, and what was found
//! must also hold in a longer window.

/// Loads whose ratio is less than this are not told apart.
const RESOLUTION: f64 = 1.02;
/// Closer to the boundary than this, one window does not decide.
const CLOSE: f64 = 1.3;
/// A load that is not confirmed is lowered by so much, at most so often.
const STEP_DOWN: f64 = 0.97;
const CONFIRMATIONS: u32 = 12;
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
    confirming: u32,
    end: Option<End>,
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
            confirming: 0,
            end: None,
        };
        search.at = search.rounded(first);
        search
    }

    pub(crate) fn next(&self) -> Next {
        match self.end {
            Some(end) => Next::End(end),
            None if self.confirming > 0 => Next::Confirm(self.at),
            None => Next::Try(self.at),
        }
    }

    /// What the window at the load of [`Search::next`] has shown.
    pub(crate) fn tell(&mut self, holds: bool) {
        if self.confirming > 0 {
            self.told_of_confirmation(holds);
            return;
        }
        let needed = if self.is_close() { 2 } else { 1 };
        let votes = if holds { &mut self.votes.0 } else { &mut self.votes.1 };
        *votes += 1;
        if *votes < needed {
            return;
        }
        self.votes = (0, 0);
        *(if holds { &mut self.held } else { &mut self.failed }) = Some(self.at);
        self.advance();
    }

    fn told_of_confirmation(&mut self, holds: bool) {
        if holds {
            self.end = Some(match self.failed {
                Some(failed) => End::Found { held: self.at, failed },
                None => End::Everywhere,
            });
            return;
        }
        self.failed = Some(self.at);
        let lower = match self.whole {
            true => (self.at * STEP_DOWN).floor().min(self.at - 1.0),
            false => self.at * STEP_DOWN,
        };
        self.confirming += 1;
        if self.confirming > CONFIRMATIONS || lower < self.lowest() {
            self.end = Some(End::Nowhere);
        }
        self.at = lower;
    }

    fn advance(&mut self) {
        match (self.held, self.failed) {
            (Some(held), Some(failed)) => {
                let middle = self.rounded((held * failed).sqrt());
                let told_apart = failed / held > RESOLUTION && middle > held && middle < failed;
                if told_apart {
                    self.at = middle;
                } else {
                    (self.at, self.confirming) = (held, 1);
                }
            }
            (Some(held), None) if held >= self.highest => {
                (self.at, self.confirming) = (held, 1);
            }
            (Some(held), None) => self.at = self.rounded(held * 2.0),
            (None, Some(failed)) => {
                self.at = self.rounded(failed / 2.0);
                if self.at < self.lowest() || self.at >= failed {
                    self.end = Some(End::Nowhere);
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
}
