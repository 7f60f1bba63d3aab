//! The result of a search or a sweep.

use load::{LoadControl, StopUrgency};
use measure::LoadMeasurement;

use crate::complaint::Complaint;
use crate::options::RunOptions;
use crate::search::capacity::CapacityResult;
use crate::search::curve::{Curve, Tried};
use crate::search::pools::PoolResult;

/// The result of a search.
pub(super) struct SearchResult {
    /// The confirming run whose load is nearest to the answer, or the last one that was tried.
    pub(super) options: RunOptions,
    pub(super) measured: LoadMeasurement,
    pub(super) curve: Curve,
    /// In words, for the user; and whether it is an answer.
    pub(super) words: String,
    pub(super) is_answer: bool,
    /// Lines beside it, each with its name.
    pub(super) details: Vec<(String, String)>,
    /// The result of `--capacity` without `--pool-sizes`.
    pub(super) capacity: Option<CapacityResult>,
    /// The result of `--pool-sizes`, with the name of the pooler.
    pub(super) pools: Option<(PoolResult, String)>,
}

/// A window whose results may be shown.
pub(super) struct ShownWindow {
    pub(super) load: f64,
    pub(super) options: RunOptions,
    pub(super) measured: LoadMeasurement,
    /// Transactions a second; 0 where the goal did not hold.
    rate: f64,
}

/// The window of each load with the most work within the goal.
#[derive(Default)]
pub(super) struct ShownWindows(Vec<ShownWindow>);

impl ShownWindows {
    /// Keeps a window if it is the best of its load so far.
    pub(super) fn offer(&mut self, window: &Tried, options: RunOptions, measured: LoadMeasurement) {
        let (load, rate) = (window.load, if window.holds { window.achieved } else { 0.0 });
        let new = ShownWindow { load, options, measured, rate };
        match self.0.iter().position(|shown| shown.load == load) {
            None => self.0.push(new),
            Some(own) if rate > self.0[own].rate => self.0[own] = new,
            Some(_) => {}
        }
    }

    /// The window of a load; without one the last that was kept, if there is any.
    pub(super) fn take(mut self, load: Option<f64>) -> Option<ShownWindow> {
        let own = self.0.iter().position(|shown| Some(shown.load) == load);
        own.map(|own| self.0.swap_remove(own)).or_else(|| self.0.pop())
    }
}

/// Why a sweep ends with this window, which was cut short and says nothing of its load.
pub(super) fn early_end(control: &LoadControl, measured: &LoadMeasurement) -> Option<String> {
    let aborted = measured.outcome.workloads[0].counts_total.aborted_clients;
    match (control.urgency(), aborted) {
        (StopUrgency::None, 0) => None,
        (StopUrgency::None, _) => {
            let clients = terms::counted(aborted, "client");
            Some(format!("ended, as {clients} aborted: run it again, or with --reconnect,"))
        }
        _ => Some(INTERRUPTED.to_owned()),
    }
}

/// The end of a sweep that the user's signal ended.
pub(super) const INTERRUPTED: &str = "interrupted";

/// The measurement of a window after so many others. None where the user's signal came while the clients of the window
/// were still connecting: the others are told then.
///
/// # Errors
/// If the window cannot be measured for another reason, or is the first one.
pub(super) fn unless_interrupted(
    measured: Result<LoadMeasurement, Complaint>,
    control: &LoadControl,
    windows_before: usize,
) -> Result<Option<LoadMeasurement>, Complaint> {
    let is_interrupted = control.urgency() != StopUrgency::None;
    match measured {
        Err(_) if is_interrupted && windows_before > 0 => Ok(None),
        measured => measured.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_before_an_interruption_are_told() {
        let check = |is_interrupted: bool, windows_before, is_told: bool| {
            let control = LoadControl::new();
            if is_interrupted {
                control.interrupt();
            }
            let failed = Err(Complaint::error("connecting failed"));
            let measured = unless_interrupted(failed, &control, windows_before);
            assert_eq!(matches!(measured, Ok(None)), is_told, "{is_interrupted} {windows_before}");
        };
        check(true, 1, true);
        // There is nothing to tell.
        check(true, 0, false);
        check(false, 1, false);
    }
}
