//! How much of a log the states that were looked at are about.

use std::collections::{BTreeMap, BTreeSet};

use crate::epochs::Epochs;
use crate::log::DiskLog;
use crate::map::WriteKind;
use crate::plan::{LossPattern, PlannedState, StatePlan};
use crate::state::FlushEffect;

/// What a log has, and what of it the states that were looked at are about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LogCoverage {
    /// Writes of the log.
    pub writes: usize,
    /// How many of them some state is about.
    pub writes_met: usize,
    /// Intervals between two flushes of a disk that have a write.
    pub intervals: usize,
    /// In how many of them some state cuts the power.
    pub intervals_met: usize,
    /// The number of states by the kind of the write and by each possible pattern of loss.
    pub states: BTreeMap<WriteKind, BTreeMap<LossPattern, usize>>,
    /// The logarithm, to the base of 10, of the number of states that the log has where each write that is
    /// not durable is lost or kept as a whole.
    pub states_log10: f64,
}

impl LogCoverage {
    /// That of some states of a plan.
    pub fn of<'p>(
        log: &DiskLog,
        flushes: FlushEffect,
        plan: &StatePlan,
        looked_at: impl Iterator<Item = &'p PlannedState>,
    ) -> LogCoverage {
        let epochs = Epochs::of(log, flushes, crate::log::SECTOR_BYTES);
        let mut states: BTreeMap<WriteKind, BTreeMap<LossPattern, usize>> = BTreeMap::new();
        for (kind, way) in &plan.possible {
            states.entry(*kind).or_default().insert(*way, 0);
        }
        let mut met = BTreeSet::new();
        for planned in looked_at {
            let Some(write) = planned.write else { continue };
            met.insert(write);
            *states.entry(planned.kind).or_default().entry(planned.way).or_default() += 1;
        }
        let interval = |write: usize| (log.entries[write].disk, epochs.interval(write));
        let writes = (0..log.entries.len()).filter(|number| !log.entries[*number].is_flush());
        let intervals: BTreeSet<_> = writes.map(interval).collect();
        let intervals_met: BTreeSet<_> = met.iter().copied().map(interval).collect();
        LogCoverage {
            writes: log.writes(),
            writes_met: met.len(),
            intervals: intervals.len(),
            intervals_met: intervals_met.len(),
            states,
            states_log10: states_log10(log, flushes, &epochs),
        }
    }

    /// Kinds of write that the log has, in the ways that are possible, and those that some state has.
    pub fn kinds_and_ways(&self) -> (usize, usize) {
        let counts = || self.states.values().flat_map(BTreeMap::values);
        (counts().count(), counts().filter(|count| **count > 0).count())
    }

    /// The ways that no state has, each with the kinds of which it would have been possible.
    pub fn ways_not_met(&self) -> BTreeMap<LossPattern, Vec<WriteKind>> {
        let mut missing: BTreeMap<LossPattern, Vec<WriteKind>> = BTreeMap::new();
        for (kind, ways) in &self.states {
            for (way, _) in ways.iter().filter(|(_, count)| **count == 0) {
                missing.entry(*way).or_default().push(*kind);
            }
        }
        missing
    }

    /// The ways that the log does not have.
    pub fn ways_impossible(&self) -> Vec<LossPattern> {
        let is_possible =
            |way: &LossPattern| self.states.values().any(|ways| ways.contains_key(way));
        LossPattern::ALL.into_iter().filter(|way| !is_possible(way)).collect()
    }
}

/// Two to the number of writes that are not durable, added up over all cuts.
fn states_log10(log: &DiskLog, flushes: FlushEffect, epochs: &Epochs) -> f64 {
    let mut pending = flushes.pending(log, log.first_cut).len();
    // Writes that become durable at each request.
    let mut durable = vec![0_usize; log.entries.len() + 1];
    for (number, entry) in log.entries.iter().enumerate() {
        if !entry.is_flush() {
            durable[epochs.interval(number).min(log.entries.len())] += 1;
        }
    }
    let mut sum = pending as f64;
    for (number, entry) in log.entries.iter().enumerate().skip(log.first_cut) {
        pending = match entry.is_flush() {
            true => pending.saturating_sub(durable[number]),
            // Another content for every cut after a write; after a flush there is no new one.
            false => {
                let one = pending as f64;
                let (large, small) = (sum.max(one), sum.min(one));
                sum = large + (1.0 + (small - large).exp2()).log2();
                pending + 1
            }
        };
    }
    sum * std::f64::consts::LOG10_2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{StatePlanRequest, plan};
    use crate::state::tests::log;

    #[test]
    fn what_no_state_is_about_is_told() {
        // Three writes, a flush, and one more.
        let write = |sector, byte| Some((sector, 8, byte));
        let steps = [write(0, 1), write(8, 2), write(0, 3), None, None, write(16, 4), None, None];
        let (log, _) = log(&steps);
        let kinds = |number: usize| match log.entries[number].is_flush() {
            true => Vec::new(),
            false => vec![WriteKind::Heap],
        };
        let kinds: Vec<Vec<WriteKind>> = (0..log.entries.len()).map(kinds).collect();
        let (flushes, sector_bytes) = (FlushEffect::Honest, 4096);
        let request = StatePlanRequest { states: 100, seed: 1, flushes, sector_bytes };
        let plan = plan(&log, &kinds, &request);
        let all = LogCoverage::of(&log, flushes, &plan, plan.states.iter());
        assert_eq!((all.writes, all.intervals), (4, 2));
        // Every state whose content differs: 1 + 1 + 2 + 4, and 1 more.
        assert!((all.states_log10 - 9_f64.log10()).abs() < 1e-9, "{all:?}");
        let one =
            [PlannedState { way: LossPattern::None, write: Some(5), ..plan.states[0].clone() }];
        let one = LogCoverage::of(&log, flushes, &plan, one.iter());
        assert_eq!((one.writes_met, one.intervals_met), (1, 1));
        assert_eq!(one.kinds_and_ways(), (7, 1));
        assert_eq!(one.ways_not_met().len(), 6);
        assert_eq!(
            one.ways_impossible(),
            [LossPattern::Torn, LossPattern::DuringFlush, LossPattern::OneDisk]
        );
    }
}
