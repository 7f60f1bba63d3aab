//! Workloads in turn: blocks of time, in each of which the clients of one side's workloads alone begin
//! transactions. The others keep their connections and wait.

use serde::{Deserialize, Serialize};

use crate::grid::{Grid, NEVER};

/// A sequence of blocks of equal length, counted from the beginning of the load. After the last one
/// no transaction begins.
/// The schedule of a workload with a rate stands still outside its blocks: what is due and has no
/// client yet waits for the next one, and the time between does not count as waiting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockSchedule {
    /// From the beginning of one block to that of the next, in milliseconds.
    pub length_ms: u64,
    /// The part at the end of each block in which no transaction begins, so that those under way
    /// end before the next block begins. In milliseconds, less than the length.
    pub rest_ms: u64,
    /// The side that each workload belongs to.
    pub sides: Vec<usize>,
    /// Side and draws of each block.
    pub order: Vec<ScheduledBlock>,
}

/// One block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduledBlock {
    /// The side whose clients begin transactions.
    pub side: usize,
    /// Number of the sequence from which they draw. Clients of the same rank on their sides draw the same
    /// random numbers in all blocks with the same sequence.
    pub draws: u64,
}

impl BlockSchedule {
    /// True if clients of a workload may begin a transaction.
    pub(crate) fn is_on(&self, workload: usize, grid: &Grid, now: u64) -> bool {
        let (_, within) = self.block(grid, now);
        self.turn(grid, now).is_some_and(|turn| self.is_of(turn, workload))
            && within < self.active_ns()
    }

    /// The block under way; none after the last one.
    pub(crate) fn turn(&self, grid: &Grid, now: u64) -> Option<ScheduledBlock> {
        self.order.get(self.block(grid, now).0).copied()
    }

    /// Time at which clients of a workload that may begin nothing now may do so again; [`NEVER`] if
    /// no later block is theirs.
    pub(crate) fn next(&self, workload: usize, grid: &Grid, now: u64) -> u64 {
        let (block, _) = self.block(grid, now);
        let later = self.order.iter().enumerate().skip(block + 1);
        let mut own =
            later.filter(|(_, turn)| self.is_of(**turn, workload)).map(|(index, _)| index);
        own.next().map_or(NEVER, |index| grid.began + index as u64 * self.length_ns())
    }

    /// Time for which clients of a workload could begin transactions until now, in nanoseconds: the
    /// clock of its schedule.
    pub(crate) fn active_until(&self, workload: usize, grid: &Grid, now: u64) -> u64 {
        let (block, within) = self.block(grid, now);
        let own = |turn: &&ScheduledBlock| self.is_of(**turn, workload);
        let whole = self.order.iter().take(block).filter(own).count();
        let part = match self.order.get(block).filter(own) {
            Some(_) => within.min(self.active_ns()),
            None => 0,
        };
        whole as u64 * self.active_ns() + part
    }

    /// True if a block is that of a workload.
    fn is_of(&self, turn: ScheduledBlock, workload: usize) -> bool {
        self.sides.get(workload) == Some(&turn.side)
    }

    /// The block that a moment lies in, and how far.
    fn block(&self, grid: &Grid, now: u64) -> (usize, u64) {
        let since = now.saturating_sub(grid.began);
        ((since / self.length_ns()) as usize, since % self.length_ns())
    }

    fn length_ns(&self) -> u64 {
        self.length_ms.max(1) * 1_000_000
    }

    fn active_ns(&self) -> u64 {
        self.length_ns().saturating_sub(self.rest_ms * 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(order: &[usize]) -> BlockSchedule {
        let turn = |side: &usize| ScheduledBlock { side: *side, draws: 0 };
        BlockSchedule {
            length_ms: 10,
            rest_ms: 2,
            sides: vec![0, 1],
            order: order.iter().map(turn).collect(),
        }
    }

    #[test]
    fn one_workload_at_a_time_and_a_rest_after_each_block() {
        let blocks = blocks(&[0, 1, 1, 0]);
        let grid = Grid { began: 5_000_000, ..Grid::UNDECIDED };
        let check = |ms: u64, on: [bool; 2], next: [u64; 2]| {
            let now = grid.began + ms * 1_000_000;
            for workload in [0, 1] {
                assert_eq!(blocks.is_on(workload, &grid, now), on[workload], "{workload} at {ms}");
                let next_ns = match next[workload] {
                    NEVER => NEVER,
                    ms => grid.began + ms * 1_000_000,
                };
                assert_eq!(blocks.next(workload, &grid, now), next_ns, "{workload} at {ms}");
            }
        };
        check(0, [true, false], [30, 10]);
        check(7, [true, false], [30, 10]);
        check(8, [false, false], [30, 10]);
        check(10, [false, true], [30, 20]);
        check(25, [false, true], [30, NEVER]);
        check(37, [true, false], [NEVER, NEVER]);
        check(40, [false, false], [NEVER, NEVER]);
    }

    #[test]
    fn all_workloads_of_a_side_have_its_blocks() {
        let blocks = BlockSchedule { sides: vec![0, 0, 1], ..blocks(&[0, 1]) };
        let grid = Grid { began: 0, ..Grid::UNDECIDED };
        let on = |ms: u64| [0, 1, 2].map(|workload| blocks.is_on(workload, &grid, ms * 1_000_000));
        assert_eq!((on(3), on(13)), ([true, true, false], [false, false, true]));
    }

    #[test]
    fn the_clock_of_a_schedule_stands_still_outside_its_blocks() {
        let blocks = blocks(&[0, 1, 1, 0]);
        let grid = Grid { began: 5_000_000, ..Grid::UNDECIDED };
        let check = |ms: u64, expected_ms: [u64; 2]| {
            let now = grid.began + ms * 1_000_000;
            let active = [0, 1].map(|workload| blocks.active_until(workload, &grid, now));
            assert_eq!(active, expected_ms.map(|ms| ms * 1_000_000), "at {ms} ms");
        };
        check(0, [0, 0]);
        check(7, [7, 0]);
        check(9, [8, 0]);
        check(10, [8, 0]);
        check(15, [8, 5]);
        check(24, [8, 12]);
        check(35, [13, 16]);
        check(99, [16, 16]);
    }
}
