//! The intervals of a load: which one a moment lies in.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// Not decided yet.
pub(crate) const NEVER: u64 = u64::MAX;

/// The moments of a load that lanes must know, in nanoseconds since the run began; [`NEVER`] while
/// undecided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Grid {
    /// The first transactions begin.
    pub(crate) began: u64,
    /// Intervals are counted from here. It lies at the window's opening where that is known
    /// beforehand, so that the window is made of whole intervals.
    pub(crate) anchor: u64,
    pub(crate) open: u64,
    /// The window closes: no transaction begins any more.
    pub(crate) close: u64,
    /// Queries that still run are cancelled.
    pub(crate) cancel: u64,
    /// No session waits for an answer any more.
    pub(crate) abandon: u64,
}

/// The [`Grid`] as the conductor decides it and the lanes of this process see it.
///
/// No locking: each moment is written by one thread alone, and a lane that sees a change one wake
/// later is no worse off than one that woke a moment earlier.
#[derive(Debug)]
pub(crate) struct SharedGrid([AtomicU64; 6]);

impl SharedGrid {
    pub(crate) fn new() -> Self {
        SharedGrid(std::array::from_fn(|_| AtomicU64::new(NEVER)))
    }

    pub(crate) fn write(&self, grid: &Grid) {
        let Grid { began, anchor, open, close, cancel, abandon } = *grid;
        // The beginning goes last: a lane that sees it sees the rest.
        for (cell, moment) in self.0.iter().zip([anchor, open, close, cancel, abandon, began]) {
            cell.store(moment, Ordering::Release);
        }
    }

    pub(crate) fn read(&self) -> Grid {
        let at = |i: usize| self.0[i].load(Ordering::Acquire);
        let began = at(5);
        Grid { began, anchor: at(0), open: at(1), close: at(2), cancel: at(3), abandon: at(4) }
    }
}

/// The interval after the window: clients finish what they are doing.
pub(crate) const DRAIN: i64 = i64::MAX;

impl Grid {
    /// Nothing is decided.
    pub(crate) const UNDECIDED: Grid = Grid {
        began: NEVER,
        anchor: NEVER,
        open: NEVER,
        close: NEVER,
        cancel: NEVER,
        abandon: NEVER,
    };

    /// The interval in which `now` lies: negative before the anchor, [`DRAIN`] after the close.
    pub(crate) fn interval(&self, now: u64, length: u64) -> i64 {
        if now >= self.close {
            return DRAIN;
        }
        (now as i64).wrapping_sub(self.anchor as i64).div_euclid(length as i64)
    }

    /// Time at which interval `index` begins: never before the load itself.
    pub(crate) fn start(&self, index: i64, length: u64) -> u64 {
        if index == DRAIN {
            return self.close;
        }
        let start = (self.anchor as i64).saturating_add(index.saturating_mul(length as i64));
        (start.max(0) as u64).max(self.began)
    }

    /// Time at which interval `index` ends: the close cuts the last one short.
    pub(crate) fn end(&self, index: i64, length: u64) -> u64 {
        if index == DRAIN {
            return NEVER;
        }
        self.start(index + 1, length).min(self.close)
    }

    /// True if a transaction that ends now counts for its scripts and commands: those of the window
    /// do, and without a warm-up, as in pgbench, all.
    pub(crate) fn is_told(&self, now: u64) -> bool {
        self.in_window(now) || self.open == self.began
    }

    pub(crate) fn in_window(&self, now: u64) -> bool {
        now >= self.open && now < self.close
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_made_of_whole_intervals_whatever_the_warm_up() {
        let grid =
            Grid { began: 1_000, anchor: 1_250, open: 1_250, close: 1_520, ..Grid::UNDECIDED };
        let check = |now, expected| assert_eq!(grid.interval(now, 100), expected, "at {now}");
        check(1_000, -3);
        check(1_149, -2);
        check(1_249, -1);
        check(1_250, 0);
        check(1_449, 1);
        check(1_519, 2);
        check(1_520, DRAIN);
        assert_eq!(grid.start(-3, 100), 1_000, "the first one is cut by the beginning");
        assert_eq!(grid.end(-3, 100), 1_050);
        assert_eq!(grid.end(2, 100), 1_520, "the last one is cut by the close");
    }
}
