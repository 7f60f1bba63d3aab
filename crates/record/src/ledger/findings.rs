//! Findings of a check, in numbers and in words.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use super::check::{LedgerRow, differences};
use super::cover::CommitCover;
use super::look::AcknowledgingServer;
use crate::Moment;

/// The fate of every transaction of a ledger.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LedgerFindings {
    /// Transactions that clients were about to send.
    pub intended: u64,
    /// How many of them the server acknowledged.
    pub acknowledged: u64,
    /// How many of those the primary acknowledged alone: the server warned, commits waited for no standby, or it may
    /// have been while the primary was exposed.
    pub acknowledged_alone: u64,
    /// How many of the acknowledged ones may or may not have been confirmed by a standby.
    pub acknowledged_cover_unknown: u64,
    /// How many of those wrote into one table only, as the server said.
    pub acknowledged_in_part: u64,
    /// Those that ended well and wrote no row.
    pub wrote_nothing: u64,
    /// How many of them have rows all the same: what their statements write cannot be told.
    pub wrote_nothing_present: u64,
    /// Those that failed for certain.
    pub failed: u64,
    /// Those with an unknown outcome.
    pub unknown: u64,
    /// Transactions that the rows account for.
    pub present: u64,
    /// How many of the unknown ones have their rows.
    pub unknown_present: u64,
    /// Acknowledged transactions that are not there.
    pub lost: u64,
    /// How many of the lost ones the primary acknowledged alone.
    pub lost_alone: u64,
    /// How many of the lost ones may or may not have been confirmed by a standby.
    pub lost_cover_unknown: u64,
    /// Most acknowledged transactions of one client lost in a row.
    pub lost_max_run: u64,
    /// The servers that had acknowledged the lost ones, where they are known, and how many.
    pub lost_of: BTreeMap<AcknowledgingServer, u64>,
    /// Times at which the first and the last of the lost ones were acknowledged.
    pub lost_span: Option<(Moment, Moment)>,
    /// Of the lost ones, those whose client has later ones of the same connection in the insert
    /// table.
    pub holes: u64,
    /// Rows of transactions that failed.
    pub failed_present: u64,
    /// Rows too many of one transaction, or of one client in the update table.
    pub doubled: u64,
    /// Rows that no client intended.
    pub invented: u64,
    /// Rows whose value is not the one that was sent.
    pub broken: u64,
    /// Clients whose two tables end with different transactions.
    pub torn: u64,
    /// Rows that only one of two ways of reading a table gave.
    pub scan_differences: u64,
    /// Clients whose entries are not all there.
    pub unjudged: u64,
    /// Rows of these clients that are not judged, because nothing is known of their transactions.
    pub unjudged_rows: u64,
    /// Rows that clients have read.
    pub seen: u64,
    /// How many of these rows are not there any more.
    pub vanished: u64,
    /// The first few of each kind.
    pub examples: Vec<LedgerExample>,
}

/// Anomaly that a database must not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LedgerAnomaly {
    /// Acknowledged, and not there.
    Lost,
    /// Lost, although later transactions of the same connection are there.
    Hole,
    /// Failed, and there all the same.
    FailedPresent,
    /// There more than once.
    Doubled,
    /// There, and not intended.
    Invented,
    /// There with another value than the one that was sent.
    Broken,
    /// There in one table and not in the other.
    Torn,
    /// Seen by one way of reading and not by another.
    ScansDiffer,
    /// Read by a client, and not there any more.
    Vanished,
}

impl LedgerAnomaly {
    /// Every anomaly.
    pub const ALL: [LedgerAnomaly; 9] = [
        LedgerAnomaly::Lost,
        LedgerAnomaly::Hole,
        LedgerAnomaly::FailedPresent,
        LedgerAnomaly::Doubled,
        LedgerAnomaly::Invented,
        LedgerAnomaly::Broken,
        LedgerAnomaly::Torn,
        LedgerAnomaly::ScansDiffer,
        LedgerAnomaly::Vanished,
    ];

    /// Name of the anomaly.
    pub fn word(self) -> &'static str {
        match self {
            LedgerAnomaly::Lost => "lost",
            LedgerAnomaly::Hole => "hole",
            LedgerAnomaly::FailedPresent => "failed, but present",
            LedgerAnomaly::Doubled => "doubled",
            LedgerAnomaly::Invented => "invented",
            LedgerAnomaly::Broken => "broken",
            LedgerAnomaly::Torn => "torn",
            LedgerAnomaly::ScansDiffer => "scans differ",
            LedgerAnomaly::Vanished => "vanished",
        }
    }
}

/// One thing that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerExample {
    /// Kind of the anomaly.
    pub anomaly: LedgerAnomaly,
    /// The client of the transaction; none if a row names no client.
    pub client: Option<u32>,
    /// Sequence number of the transaction; 0 for none.
    pub seq: u64,
    /// Time at which its client heard of its end; 0 if it was not intended.
    pub at: Moment,
    /// The state that the ledger expects.
    pub expected: String,
    /// The state in the database.
    pub found: String,
}

/// Subject of a finding.
#[derive(Clone, Copy, Debug)]
pub(super) struct About {
    pub(super) client: Option<u32>,
    pub(super) seq: u64,
    pub(super) at: Moment,
}

impl About {
    /// The transaction that a row names.
    pub(super) fn row(row: &LedgerRow) -> About {
        About {
            client: row.client.and_then(|client| u32::try_from(client).ok()),
            // No transaction has the number 0: the row names none.
            seq: row.seq.and_then(|seq| u64::try_from(seq).ok()).unwrap_or(0),
            at: Moment(0),
        }
    }
}

impl fmt::Display for LedgerExample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.anomaly.word())?;
        match self.client {
            Some(client) => write!(f, "client {client} seq {}", self.seq)?,
            None => write!(f, "a row of no client")?,
        }
        if self.at != Moment(0) {
            write!(f, " at {:.6} s", self.at.as_secs_f64())?;
        }
        write!(f, ": expected {}, found {}", self.expected, self.found)
    }
}

impl LedgerFindings {
    /// Examples kept of each kind.
    pub const EXAMPLES: usize = 5;

    /// Number of findings of a kind.
    pub fn count(&self, anomaly: LedgerAnomaly) -> u64 {
        match anomaly {
            LedgerAnomaly::Lost => self.lost,
            LedgerAnomaly::Hole => self.holes,
            LedgerAnomaly::FailedPresent => self.failed_present,
            LedgerAnomaly::Doubled => self.doubled,
            LedgerAnomaly::Invented => self.invented,
            LedgerAnomaly::Broken => self.broken,
            LedgerAnomaly::Torn => self.torn,
            LedgerAnomaly::ScansDiffer => self.scan_differences,
            LedgerAnomaly::Vanished => self.vanished,
        }
    }

    /// How many of the lost ones a standby had confirmed.
    pub fn lost_covered(&self) -> u64 {
        self.lost - self.lost_alone - self.lost_cover_unknown
    }

    /// Everything that must not be, counted once: a hole is lost already.
    pub fn anomalies(&self) -> u64 {
        let counted = LedgerAnomaly::ALL.iter().filter(|anomaly| **anomaly != LedgerAnomaly::Hole);
        counted.map(|anomaly| self.count(*anomaly)).sum()
    }

    /// Compares what two ways of reading one table gave; sorts both.
    pub fn compare_scans(
        &mut self,
        table: &str,
        first: &mut [LedgerRow],
        second: &mut [LedgerRow],
    ) {
        for (row, order) in differences(first, second) {
            let (has, lacks) = match order {
                Ordering::Less => ("the sequential scan", "the index scan"),
                _ => ("the index scan", "the sequential scan"),
            };
            self.note(LedgerAnomaly::ScansDiffer, About::row(&row), || {
                (
                    format!("the same rows of {table} whichever way it is read"),
                    format!("one that {has} gives and {lacks} does not"),
                )
            });
        }
    }

    /// Adds what the check of another part of the same load has found.
    pub fn merge(&mut self, other: &LedgerFindings) {
        self.intended += other.intended;
        self.acknowledged += other.acknowledged;
        self.acknowledged_alone += other.acknowledged_alone;
        self.acknowledged_in_part += other.acknowledged_in_part;
        self.wrote_nothing += other.wrote_nothing;
        self.wrote_nothing_present += other.wrote_nothing_present;
        self.unjudged += other.unjudged;
        self.unjudged_rows += other.unjudged_rows;
        self.failed += other.failed;
        self.unknown += other.unknown;
        self.present += other.present;
        self.unknown_present += other.unknown_present;
        self.seen += other.seen;
        for (giver, count) in &other.lost_of {
            *self.lost_of.entry(*giver).or_default() += count;
        }
        self.acknowledged_cover_unknown += other.acknowledged_cover_unknown;
        self.lost_alone += other.lost_alone;
        self.lost_cover_unknown += other.lost_cover_unknown;
        self.lost_max_run = self.lost_max_run.max(other.lost_max_run);
        if let Some((first, last)) = other.lost_span {
            self.extend_lost_span(first);
            self.extend_lost_span(last);
        }
        for anomaly in LedgerAnomaly::ALL {
            *self.counter(anomaly) += other.count(anomaly);
        }
        self.examples.extend(other.examples.iter().cloned());
    }

    /// Counts one, and keeps it if it is among the first of its kind. What is `expected` and
    /// `found` is only put into words then.
    pub(super) fn note(
        &mut self,
        anomaly: LedgerAnomaly,
        about: About,
        words: impl FnOnce() -> (String, String),
    ) {
        let count = self.counter(anomaly);
        *count += 1;
        if *count > LedgerFindings::EXAMPLES as u64 {
            return;
        }
        let About { client, seq, at } = about;
        let (expected, found) = words();
        self.examples.push(LedgerExample { anomaly, client, seq, at, expected, found });
    }

    pub(super) fn lose(&mut self, at: Moment, cover: CommitCover) {
        self.lost_alone += u64::from(cover == CommitCover::Alone);
        self.lost_cover_unknown += u64::from(cover == CommitCover::Unknown);
        self.extend_lost_span(at);
    }

    fn counter(&mut self, anomaly: LedgerAnomaly) -> &mut u64 {
        match anomaly {
            LedgerAnomaly::Lost => &mut self.lost,
            LedgerAnomaly::Hole => &mut self.holes,
            LedgerAnomaly::FailedPresent => &mut self.failed_present,
            LedgerAnomaly::Doubled => &mut self.doubled,
            LedgerAnomaly::Invented => &mut self.invented,
            LedgerAnomaly::Broken => &mut self.broken,
            LedgerAnomaly::Torn => &mut self.torn,
            LedgerAnomaly::ScansDiffer => &mut self.scan_differences,
            LedgerAnomaly::Vanished => &mut self.vanished,
        }
    }

    fn extend_lost_span(&mut self, at: Moment) {
        let (first, last) = self.lost_span.unwrap_or((at, at));
        self.lost_span = Some((first.min(at), last.max(at)));
    }
}
