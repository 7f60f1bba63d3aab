//! What was tried of a space, and what was not.

use std::collections::BTreeMap;

use crate::schedule::FaultSchedule;
use crate::space::FaultSpace;

/// A fault and its victim, by their indices.
pub type FaultOnVictim = (usize, usize);

/// Counts of trials: of each fault with each victim, and of each such pair of which one began while the other lasted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultCoverage {
    /// Trials in which the fault was done.
    done: BTreeMap<FaultOnVictim, u64>,
    /// Trials in which it was due and there was no such victim.
    skipped: BTreeMap<FaultOnVictim, u64>,
    /// Trials in which the second cell's fault began while the first one's lasted.
    overlapped: BTreeMap<(FaultOnVictim, FaultOnVictim), u64>,
}

impl FaultCoverage {
    /// Takes down a trial. `skipped` are the indices of the steps that were not done.
    pub fn note(&mut self, space: &FaultSpace, schedule: &FaultSchedule, skipped: &[usize]) {
        let is_done = |index: usize| !skipped.contains(&index);
        for (index, step) in schedule.steps.iter().enumerate() {
            let counts = if is_done(index) { &mut self.done } else { &mut self.skipped };
            *counts.entry(step.cell()).or_default() += 1;
        }
        for (earlier, later) in schedule.overlaps(space) {
            if is_done(earlier) && is_done(later) {
                let pair = (schedule.steps[earlier].cell(), schedule.steps[later].cell());
                *self.overlapped.entry(pair).or_default() += 1;
            }
        }
    }

    /// Trials in which the fault of this cell was done.
    pub fn done(&self, cell: FaultOnVictim) -> u64 {
        self.done.get(&cell).copied().into_iter().sum()
    }

    /// Trials in which it was due and was left out, for there was no such victim.
    pub fn skipped(&self, cell: FaultOnVictim) -> u64 {
        self.skipped.get(&cell).copied().into_iter().sum()
    }

    /// Trials in which the fault of `later` began while that of `earlier` lasted.
    pub fn overlapped(&self, earlier: FaultOnVictim, later: FaultOnVictim) -> u64 {
        self.overlapped.get(&(earlier, later)).copied().into_iter().sum()
    }

    /// Every ordered pair of cells that can overlap: the first one lasts, and both are not the same named victim.
    pub fn pairs(space: &FaultSpace) -> Vec<(FaultOnVictim, FaultOnVictim)> {
        let cells = space.cells();
        let lasts = |cell: &&FaultOnVictim| space.faults[cell.0].length_ms.is_some();
        let of = |first: &FaultOnVictim| {
            let first = *first;
            let others = cells.iter().filter(move |other| !space.is_one_victim(first, **other));
            others.map(move |other| (first, *other)).collect::<Vec<_>>()
        };
        cells.iter().filter(lasts).flat_map(of).collect()
    }
}
