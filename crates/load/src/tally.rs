//! Counts of one lane.
//!
//! Everything here belongs to one lane, so nothing is locked. Each finished interval is handed
//! over whole and its histograms start anew: a lane keeps the same few histograms however long it
//! runs and however many sessions it has.

use std::collections::BTreeMap;

use record::{BlockCycles, LoadInterval, Moment, TransactionCounts, histogram_text};
use serde::{Deserialize, Serialize};
use stats::LatencyHistogram;
use tail::{SlowTransaction, SlowestTransactions};

use crate::grid::{DRAIN, Grid};
use crate::standstill::LaneStandstills;
use crate::work::WorkLog;
use crate::{CommandPlace, ScriptOutcome};

/// The interval before the first. A connection can be lost between the conductor's word and the
/// load's first moment; nothing is handed over then, least of all all intervals since the beginning
/// of time.
const NOT_BEGUN: i64 = i64::MIN;

pub(crate) struct Tally {
    length_ns: u64,
    interval: i64,
    cells: Vec<Cell>,
    /// The close has been noticed.
    is_closed: bool,
    /// Per workload, what only the whole load knows.
    pub(crate) totals: Vec<Totals>,
}

/// The process of a transaction that never reached a server.
const NO_BACKEND: i32 = 0;

/// One workload's counters within the current interval.
#[derive(Default)]
struct Cell {
    counts: TransactionCounts,
    latency: LatencyHistogram,
    service: LatencyHistogram,
    lag: LatencyHistogram,
    cycles: BlockCycles,
}

/// One workload's counters over the whole load.
pub(crate) struct Totals {
    /// True if due times differ from start times.
    pub(crate) open_loop: bool,
    /// Successful transactions in the intervals handed over.
    pub(crate) transactions: u64,
    /// Transactions with an unknown outcome; those that the rig itself ended are in no other count.
    pub(crate) unknown: u64,
    pub(crate) aborted: u64,
    /// The first error of each kind: when and where it was.
    pub(crate) first_errors: FirstErrors,
    /// Stretches in which nothing succeeded; none where they were not asked for.
    pub(crate) standstills: Option<LaneStandstills>,
    /// Longest latency inside the window, in nanoseconds.
    pub(crate) longest_ns: u64,
    /// Time from the loss of a connection, in the window, until its client's next success.
    pub(crate) served: LatencyHistogram,
    /// Time at the close since the losses that no success of their client has followed.
    pub(crate) unserved: LatencyHistogram,
    /// The slowest transactions of the window; none where they were not asked for.
    pub(crate) slowest: Option<SlowestTransactions>,
    /// The transactions that had not ended at the close.
    pub(crate) open: Open,
    /// Per script, per command; empty where it was not asked for.
    pub(crate) statements: Vec<Vec<Statement>>,
    /// What the statements did; none where it was not asked for.
    pub(crate) work: Option<WorkLog>,
    /// Per script, what is told: see [`Grid::is_told`].
    pub(crate) scripts: Vec<ScriptOutcome>,
}

/// The first error of each kind: when it was, in nanoseconds since the run began, and where.
pub(crate) type FirstErrors = BTreeMap<String, (u64, CommandPlace)>;

/// Transactions of one workload that had not ended at the close.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Open {
    /// Their ages at the close.
    #[serde(with = "histogram_text")]
    pub(crate) ages: LatencyHistogram,
    /// Open loop: those that were due and never started.
    pub(crate) never_started: u64,
    /// The longest of those that ended well afterwards, ns.
    pub(crate) drained_ns: u64,
    /// Some were under way until the rig waited no longer.
    pub(crate) gave_up: bool,
}

impl Open {
    pub(crate) fn merge(&mut self, other: &Open) {
        self.ages.merge(&other.ages);
        self.never_started += other.never_started;
        self.drained_ns = self.drained_ns.max(other.drained_ns);
        self.gave_up |= other.gave_up;
    }
}

/// One command's counters.
#[derive(Clone, Default)]
pub(crate) struct Statement {
    /// Failures that ended the transaction.
    pub(crate) failures: u64,
    /// Failures after which it was tried again.
    pub(crate) retries: u64,
    pub(crate) latency: LatencyHistogram,
}

/// The way in which a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Good,
    Skipped,
    Serialization,
    Deadlock,
    Other,
}

impl Ending {
    /// True if it is one of the failures.
    pub(crate) fn is_failure(self) -> bool {
        matches!(self, Ending::Serialization | Ending::Deadlock | Ending::Other)
    }
}

/// A finished transaction. Times are nanoseconds since the run began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finished {
    pub(crate) workload: usize,
    /// Process id of its server session.
    pub(crate) backend: i32,
    pub(crate) script: usize,
    pub(crate) ending: Ending,
    /// The moment at which it should have started.
    pub(crate) scheduled: u64,
    /// The moment at which it did.
    pub(crate) began: u64,
    pub(crate) ended: u64,
    pub(crate) retries: u32,
    pub(crate) late: bool,
    /// It ended after its deadline.
    pub(crate) missed: bool,
    pub(crate) cycle: CycleEnd,
}

/// The end of a transaction among those of its client in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CycleEnd {
    /// There are no blocks.
    None,
    /// It was the first one in the block.
    First,
    /// Time since the end of the one before, in nanoseconds.
    After(u64),
}

/// An interval of one lane, with its index on the grid.
pub(crate) struct LaneInterval {
    pub(crate) index: i64,
    pub(crate) cells: Vec<LoadInterval>,
}

impl Tally {
    pub(crate) fn new(length_ns: u64, totals: Vec<Totals>) -> Self {
        let cells = totals.iter().map(|_| Cell::default()).collect();
        Tally { length_ns, interval: NOT_BEGUN, cells, is_closed: false, totals }
    }

    /// Begins at the first interval of the grid.
    pub(crate) fn begin(&mut self, grid: &Grid) {
        self.interval = grid.interval(grid.began, self.length_ns);
        for totals in &mut self.totals {
            if let Some(standstills) = &mut totals.standstills {
                standstills.begin(grid.began);
            }
        }
    }

    /// The end of the current interval: a lane wakes then, even if nothing happens.
    pub(crate) fn interval_end(&self, grid: &Grid) -> u64 {
        grid.end(self.interval, self.length_ns)
    }

    /// Moves to the interval of `now`. Returns the one that is over, if one is; intervals in which
    /// nothing happened are handed over by further calls.
    pub(crate) fn roll(
        &mut self,
        now: u64,
        grid: &Grid,
        backlog: impl Fn(usize, u64) -> u64,
    ) -> Option<LaneInterval> {
        if self.interval == NOT_BEGUN || self.interval == DRAIN || now < self.interval_end(grid) {
            return None;
        }
        let over = self.take(grid, self.interval_end(grid), backlog);
        self.interval =
            if self.interval_end(grid) >= grid.close { DRAIN } else { self.interval + 1 };
        Some(over)
    }

    /// Hands over the interval under way, which ends at `now`: the lane is done.
    pub(crate) fn finish(&mut self, now: u64, grid: &Grid) -> LaneInterval {
        for totals in &mut self.totals {
            if let Some(standstills) = &mut totals.standstills {
                standstills.ends(now);
            }
        }
        self.take(grid, now, |_, _| 0)
    }

    /// Counts a finished transaction; [`Tally::roll`] has been called for its end before.
    pub(crate) fn count(&mut self, done: Finished, grid: &Grid) {
        let cell = &mut self.cells[done.workload];
        let totals = &mut self.totals[done.workload];
        add(&mut cell.counts, &done);
        // A client with a schedule waits for the schedule as well as for its server.
        if !totals.open_loop {
            match done.cycle {
                CycleEnd::None => {}
                CycleEnd::First => cell.cycles.first += 1,
                CycleEnd::After(ns) => cell.cycles.note(ns, done.ending == Ending::Good),
            }
        }
        let latency = done.ended.saturating_sub(done.scheduled);
        // A single script is the whole workload; only several are counted apart.
        if let Some(script) = totals.scripts.get_mut(done.script)
            && grid.is_told(done.ended)
        {
            add(&mut script.counts, &done);
            if done.ending == Ending::Good {
                script.latency.record_ns(latency);
                if totals.open_loop {
                    script.lag.record_ns(done.began.saturating_sub(done.scheduled));
                }
            }
        }
        if done.ending != Ending::Good {
            return;
        }
        cell.latency.record_ns(latency);
        if let Some(standstills) = &mut totals.standstills {
            standstills.ends(done.ended);
        }
        if totals.open_loop {
            cell.service.record_ns(done.ended.saturating_sub(done.began));
            cell.lag.record_ns(done.began.saturating_sub(done.scheduled));
        }
        if latency > totals.longest_ns && grid.in_window(done.ended) {
            totals.longest_ns = latency;
        }
        // One that ends after the close, before that is noticed, was open at the close.
        let is_slow =
            |slowest: &SlowestTransactions| latency > slowest.floor_ns() && !self.is_closed;
        if let Some(slowest) = totals.slowest.as_mut().filter(|slowest| is_slow(slowest))
            && done.ended >= grid.open
        {
            let Finished { backend, scheduled, began, .. } = done;
            slowest.take(SlowTransaction {
                backend,
                scheduled,
                began,
                ended: done.ended.min(grid.close),
            });
        }
    }

    /// The close has been noticed: what ended since then was open at the close. Only the latency of
    /// those that ended well is known.
    pub(crate) fn closed(&mut self) {
        self.is_closed = true;
        for (cell, totals) in self.cells.iter().zip(&mut self.totals) {
            totals.open.ages.merge(&cell.latency);
        }
    }

    /// A transaction is under way at the close, at which it counts as ended.
    pub(crate) fn still_open(&mut self, workload: usize, open: SlowTransaction) {
        let totals = &mut self.totals[workload];
        totals.open.ages.record_ns(open.latency_ns());
        if let Some(slowest) = &mut totals.slowest {
            slowest.take(open);
        }
    }

    /// Transactions of these ages were due at the close and never started.
    pub(crate) fn none_started(&mut self, workload: usize, close: u64, ages: &LatencyHistogram) {
        let totals = &mut self.totals[workload];
        totals.open.ages.merge(ages);
        totals.open.never_started += ages.count();
        // The plan does not ask for the slowest transactions.
        let Some(slowest) = &mut totals.slowest else { return };
        for (age_ns, count) in ages.buckets() {
            let scheduled = close.saturating_sub(age_ns);
            for _ in 0..count {
                slowest.take(SlowTransaction {
                    backend: NO_BACKEND,
                    scheduled,
                    began: close,
                    ended: close,
                });
            }
        }
    }

    /// Counts an error, retried or not: its SQLSTATE, or the command of a script that failed by itself,
    /// as in `\gset`. Keeps the place of the first one.
    pub(crate) fn error(
        &mut self,
        workload: usize,
        kind: &str,
        at: u64,
        place: impl FnOnce() -> Option<CommandPlace>,
    ) {
        let errors = &mut self.cells[workload].counts.errors;
        match errors.get_mut(kind) {
            Some(n) => *n += 1,
            None => {
                errors.insert(kind.to_owned(), 1);
            }
        }
        if self.is_first(workload, kind)
            && let Some(place) = place()
        {
            self.totals[workload].first_errors.insert(kind.to_owned(), (at, place));
        }
    }

    /// True if no place of an error of this kind is known.
    pub(crate) fn is_first(&self, workload: usize, kind: &str) -> bool {
        !self.totals[workload].first_errors.contains_key(kind)
    }

    pub(crate) fn reconnected(&mut self, workload: usize) {
        self.cells[workload].counts.reconnects += 1;
    }

    pub(crate) fn aborted(&mut self, workload: usize) {
        self.cells[workload].counts.aborted_clients += 1;
        self.totals[workload].aborted += 1;
    }

    fn take(&mut self, grid: &Grid, end: u64, backlog: impl Fn(usize, u64) -> u64) -> LaneInterval {
        let start = grid.start(self.interval, self.length_ns);
        let totals = &mut self.totals;
        let cells = self.cells.iter_mut().enumerate().map(|(workload, cell)| {
            let cell = std::mem::take(cell);
            totals[workload].transactions += cell.counts.transactions;
            if self.interval == DRAIN {
                // Without a transaction that ended after the close, none of them took any time.
                totals[workload].open.drained_ns = cell.latency.max_ns().unwrap_or(0);
            }
            LoadInterval {
                start: Moment(start),
                length_ns: end.saturating_sub(start),
                workload,
                counts: cell.counts,
                latency: cell.latency,
                service: cell.service,
                lag: cell.lag,
                backlog: backlog(workload, end),
                cycles: cell.cycles,
            }
        });
        LaneInterval { index: self.interval, cells: cells.collect() }
    }
}

/// Counts how a transaction ended.
fn add(counts: &mut TransactionCounts, done: &Finished) {
    if done.retries > 0 {
        counts.retried += 1;
        counts.retries += u64::from(done.retries);
    }
    match done.ending {
        Ending::Good => {
            counts.transactions += 1;
            counts.late += u64::from(done.late);
            counts.missed += u64::from(done.missed);
        }
        Ending::Skipped => counts.skipped += 1,
        Ending::Serialization => counts.serialization_failures += 1,
        Ending::Deadlock => counts.deadlock_failures += 1,
        Ending::Other => counts.other_failures += 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_handed_over_before_the_load_begins() {
        let mut tally = Tally::new(1_000, Vec::new());
        let grid = Grid { began: 5_000, anchor: 5_000, open: 5_000, ..Grid::UNDECIDED };
        assert!(tally.roll(4_999, &grid, |_, _| 0).is_none());
        tally.begin(&grid);
        assert!(tally.roll(5_999, &grid, |_, _| 0).is_none());
        assert!(tally.roll(6_000, &grid, |_, _| 0).is_some());
        assert!(tally.roll(6_000, &grid, |_, _| 0).is_none());
    }
}
