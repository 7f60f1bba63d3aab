//! The rows that a transaction has written into the tables of its ledger, as the tags of its statements say.

use std::collections::VecDeque;

use record::ledger::LedgerWrite;

use crate::ledger_statements::{LedgerStatement, TableSet};
use crate::work::rows_of_tag;

/// The rows of the transaction under way.
#[derive(Debug, Default)]
pub(super) struct Writes {
    /// Committed, as far as the server has said.
    committed: Rows,
    /// The rows of the block under way.
    block: Rows,
    /// The rows of blocks that are prepared for a two-phase commit.
    prepared: Rows,
    /// The savepoints of the block, and what had been written when each was set.
    savepoints: Vec<(String, Rows)>,
    /// Statements without an answer, in the order in which they were sent.
    sent: VecDeque<Sent>,
    /// A statement that writes `:ledger_seq` was sent.
    is_marked: bool,
}

/// Rows written into each table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Rows {
    insert: u32,
    update: u32,
}

impl Rows {
    fn add(&mut self, other: Rows) {
        self.insert = self.insert.saturating_add(other.insert);
        self.update = self.update.saturating_add(other.update);
    }
}

#[derive(Debug)]
enum Sent {
    Statement(LedgerStatement),
    /// The end of what one ReadyForQuery answers.
    Sync,
}

impl Writes {
    /// A command of these statements is sent.
    pub(super) fn sends(&mut self, statements: &[LedgerStatement]) {
        self.is_marked |= statements
            .iter()
            .any(|one| matches!(one, LedgerStatement::Writes(_) | LedgerStatement::MayWrite(_)));
        self.sent.extend(statements.iter().cloned().map(Sent::Statement));
    }

    /// A Sync is sent, or a Query, which has one of its own.
    pub(super) fn syncs(&mut self) {
        self.sent.push_back(Sent::Sync);
    }

    /// A statement is complete, with this tag.
    pub(super) fn complete(&mut self, tag: &[u8]) {
        let statement = match self.sent.front() {
            Some(Sent::Statement(_)) => self.sent.pop_front(),
            // A rollback of the rig's own, or more answers than statements: a rule has made two of one.
            Some(Sent::Sync) | None => None,
        };
        match statement {
            Some(Sent::Statement(LedgerStatement::Writes(tables))) => {
                self.block.add(written(tag, tables));
            }
            Some(Sent::Statement(LedgerStatement::Savepoint(name))) => {
                self.savepoints.push((name, self.block));
            }
            Some(Sent::Statement(LedgerStatement::RollsBackTo(name))) => {
                if let Some(at) = self.savepoints.iter().rposition(|(known, _)| *known == name) {
                    self.savepoints.truncate(at + 1);
                    self.block = self.savepoints[at].1;
                }
                return;
            }
            Some(Sent::Statement(LedgerStatement::Releases(name))) => {
                if let Some(at) = self.savepoints.iter().rposition(|(known, _)| *known == name) {
                    self.savepoints.truncate(at);
                }
            }
            _ => {}
        }
        match tag {
            b"COMMIT\0" => self.commit(),
            b"ROLLBACK\0" => self.roll_back(),
            b"PREPARE TRANSACTION\0" => {
                let block = std::mem::take(&mut self.block);
                self.prepared.add(block);
                self.savepoints.clear();
            }
            b"COMMIT PREPARED\0" => {
                let prepared = std::mem::take(&mut self.prepared);
                self.committed.add(prepared);
            }
            b"ROLLBACK PREPARED\0" => self.prepared = Rows::default(),
            _ => {}
        }
    }

    /// The server is ready; `is_outside` of a block.
    pub(super) fn ready(&mut self, is_outside: bool, has_failed: bool) {
        // What stands before the Sync was skipped after an error.
        while let Some(sent) = self.sent.pop_front() {
            if matches!(sent, Sent::Sync) {
                break;
            }
        }
        match (is_outside, has_failed) {
            (true, true) => self.roll_back(),
            (true, false) => self.commit(),
            (false, _) => {}
        }
    }

    fn commit(&mut self) {
        let block = std::mem::take(&mut self.block);
        self.committed.add(block);
        self.savepoints.clear();
    }

    fn roll_back(&mut self) {
        self.block = Rows::default();
        self.savepoints.clear();
    }

    /// True if a statement that writes `:ledger_seq` was sent.
    pub(super) fn is_marked(&self) -> bool {
        self.is_marked
    }

    /// The rows that are committed.
    pub(super) fn committed(&self) -> LedgerWrite {
        LedgerWrite { insert: self.committed.insert, update: self.committed.update > 0 }
    }

    /// The rows that may be committed: what was written, and what was sent and is not answered.
    pub(super) fn possible(&self) -> LedgerWrite {
        let mut rows = self.committed;
        rows.add(self.block);
        rows.add(self.prepared);
        for sent in &self.sent {
            if let Sent::Statement(
                LedgerStatement::Writes(tables) | LedgerStatement::MayWrite(tables),
            ) = sent
            {
                rows.add(one_row(*tables));
            }
        }
        LedgerWrite { insert: rows.insert, update: rows.update > 0 }
    }
}

fn one_row(tables: TableSet) -> Rows {
    Rows { insert: u32::from(tables.insert), update: u32::from(tables.update) }
}

/// The rows that a statement with this tag has written.
fn written(tag: &[u8], tables: TableSet) -> Rows {
    let counts_new_rows = [&b"INSERT "[..], b"MERGE "].iter().any(|word| tag.starts_with(word));
    let counts_rows = counts_new_rows
        || [&b"UPDATE "[..], b"SELECT ", b"DELETE "].iter().any(|word| tag.starts_with(word));
    // CALL and DO say nothing of rows.
    let rows = if counts_rows { rows_of_tag(tag) } else { 1 };
    let one = one_row(tables);
    match (rows, counts_new_rows) {
        (0, _) => Rows::default(),
        (_, false) => one,
        (rows, true) => {
            let rows = u32::try_from(rows).unwrap_or(u32::MAX);
            Rows { insert: one.insert * rows, ..one }
        }
    }
}
