//! The smallest loss that still fails.

use crash::{DiskState, LostSectors, StateCursor, reduce};

use crate::error::Error;
use crate::explore::fate::StateFate;
use crate::explore::{Explored, Seen};

/// A state that fails, and the least that has to be lost for it.
pub(super) struct MinimalLoss {
    /// The number in the plan.
    pub(super) number: usize,
    pub(super) state: DiskState,
    pub(super) fate: StateFate,
}

impl Explored<'_> {
    /// The first states that failed in each manner.
    pub(super) fn witnesses(&self, node: &str, seen: &[Seen]) -> Result<Vec<MinimalLoss>, Error> {
        let mut chosen: Vec<&Seen> = Vec::new();
        for one in seen.iter().filter(|one| one.fate.has_failed()) {
            if chosen.len() < WITNESSES_MAX
                && !chosen.iter().any(|other| other.fate.is_like(&one.fate))
            {
                chosen.push(one);
            }
        }
        let mut replica = self.replica(node, WITNESS_WORKER)?;
        let mut witnesses = Vec::new();
        for one in chosen {
            let cut = one.planned.state.cut;
            let mut cursor = StateCursor::new(self.log, self.flushes);
            let (mut failure, mut fate) = (None, one.fate.clone());
            let left = reduce(&one.planned.state.lost, ATTEMPTS_MAX, |lost: &[LostSectors]| {
                if self.is_over() {
                    return false;
                }
                let state = DiskState { cut, lost: lost.to_vec() };
                let (patch, ledger) = self.state(&mut cursor, &state);
                match replica.look(self, &patch, &ledger, &self.untouched) {
                    Ok(found) if found.is_like(&one.fate) => {
                        fate = found;
                        true
                    }
                    Ok(_) => false,
                    Err(error) => {
                        failure = Some(error);
                        false
                    }
                }
            });
            if let Some(error) = failure {
                return Err(error);
            }
            let state = DiskState { cut, lost: left };
            witnesses.push(MinimalLoss { number: one.number, state, fate });
        }
        Ok(witnesses)
    }

    /// The writes that are lost in a state, in words, a line for each.
    pub(super) fn loss(&self, state: &DiskState) -> Vec<String> {
        let mut words: Vec<String> = state
            .lost
            .iter()
            .take(LINES_MAX)
            .map(|lost| {
                let what = self.map.words(self.log, lost.write, &lost.sectors);
                format!("lost: {what} (request {})", lost.write)
            })
            .collect();
        let more = state.lost.len().saturating_sub(LINES_MAX);
        if more > 0 {
            words.push(format!("lost: {more} more writes"));
        }
        let pending = self.flushes.pending(self.log, state.cut);
        let is_whole = |write: &usize| !state.lost.iter().any(|lost| lost.write == *write);
        let kept: Vec<usize> = pending.into_iter().filter(is_whole).collect();
        for write in kept.iter().take(LINES_MAX) {
            let sectors = 0..self.log.entries[*write].sectors();
            let what = self.map.words(self.log, *write, &sectors);
            words.push(format!("kept: {what} (request {write})"));
        }
        if kept.len() > LINES_MAX {
            words.push(format!("kept: {} more unflushed writes", kept.len() - LINES_MAX));
        }
        if state.lost.is_empty() {
            words.push(
                "lost: none of the disk's writes; what is missing had not been handed to the disk"
                    .to_owned(),
            );
        }
        words
    }
}

/// More than these say nothing new.
const WITNESSES_MAX: usize = 3;

/// States that are recovered for one witness.
const ATTEMPTS_MAX: usize = 24;

const LINES_MAX: usize = 6;

/// It has a replica of its own.
const WITNESS_WORKER: usize = 999;
