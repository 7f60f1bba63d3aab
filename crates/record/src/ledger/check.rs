//! Compares what is in the database with what the clients know.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::cover::{CommitCover, CoverEvidence, UncoveredCommits};
use super::findings::{About, LedgerAnomaly, LedgerFindings};
use super::{Ledger, LedgerOutcome, LedgerTransaction, LedgerWrite};
use crate::Moment;

/// A row as it was read; any of it may be NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LedgerRow {
    /// The client that wrote it.
    pub client: Option<i64>,
    /// Sequence number of the client's transaction.
    pub seq: Option<i64>,
    /// The value of the chain.
    pub chain: Option<i64>,
}

/// Rows of the tables that a load writes; none for a table that it does not write.
#[derive(Clone, Debug, Default)]
pub struct LedgerRows {
    /// The rows of the table with a row for each transaction.
    pub insert: Option<Vec<LedgerRow>>,
    /// The rows of the table with one row for each client, which holds its last transaction.
    pub update: Option<Vec<LedgerRow>>,
}

/// Holds rows to a ledger. Per client: last acknowledged ≤ last present ≤ last intended, no hole,
/// no failed row, no doubled row, none that was not intended, and every value as it was sent.
/// `exposed` are the stretches in which the primary was alone.
pub fn check(ledger: &Ledger, rows: &LedgerRows, exposed: &[UncoveredCommits]) -> LedgerFindings {
    check_unless(ledger, rows, exposed, &|| false)
        .expect("a check that is never over comes to its end")
}

/// [`check()`], given up as soon as `is_over`; none then.
pub fn check_unless(
    ledger: &Ledger,
    rows: &LedgerRows,
    exposed: &[UncoveredCommits],
    is_over: &dyn Fn() -> bool,
) -> Option<LedgerFindings> {
    let mut findings =
        LedgerFindings { unjudged: ledger.cut().count() as u64, ..LedgerFindings::default() };
    let inserted = rows.insert.as_ref().map(|rows| inserted(ledger, rows, &mut findings));
    let updated = rows.update.as_ref().map(|rows| updated(ledger, rows, &mut findings));
    let covers = CoverEvidence::of(ledger, exposed);
    for (client, history) in ledger.clients() {
        if is_over() {
            return None;
        }
        let counts = inserted.as_ref().map(|all| all.get(&client).map_or(&[][..], Vec::as_slice));
        let found = ClientRows {
            counts,
            last_inserted: counts.map(last_inserted),
            // 0 is before the first transaction: no row of the client is in the table.
            last_updated: updated.as_ref().map(|all| all.get(&client).copied().unwrap_or(0)),
        };
        one_client((client, history), ledger, &found, &covers, &mut findings);
    }
    Some(findings)
}

/// Rows of one client in the tables; none for a table that the load does not write.
struct ClientRows<'a> {
    /// Number of rows of each of its transactions in the insert table.
    counts: Option<&'a [u32]>,
    /// The last of them; 0 for none.
    last_inserted: Option<u64>,
    /// The transaction that its row in the update table holds; 0 for none.
    last_updated: Option<u64>,
}

fn last_inserted(counts: &[u32]) -> u64 {
    let last = counts.iter().rposition(|count| *count > 0);
    // 0 is before the first transaction: no row of the client is in the table.
    last.map_or(0, |index| index as u64 + 1)
}

impl ClientRows<'_> {
    fn is_inserted(&self, seq: u64) -> Option<bool> {
        Some(self.counts?.get(seq as usize - 1).is_some_and(|count| *count > 0))
    }

    /// True if a transaction is there, or was until a later one took its place.
    fn accounts_for(&self, seq: u64, transaction: &LedgerTransaction) -> bool {
        let is_acknowledged = transaction.outcome.is_acknowledged();
        let inserted = self.is_inserted(seq);
        let updated = self.last_updated.map(|last| seq == last || is_acknowledged && seq < last);
        if !is_acknowledged {
            return inserted.or(updated).unwrap_or(false);
        }
        // A client that only reads has done what it was told.
        let wrote = transaction.wrote;
        inserted.is_none_or(|is_there| is_there || wrote.insert == 0)
            && updated.is_none_or(|is_there| is_there || !wrote.update)
    }

    /// Transactions that the insert table lacks, although it has a later one of the same
    /// connection. The WAL has an order: what a crash loses are the last ones of each connection.
    fn holes(&self, history: &[LedgerTransaction]) -> BTreeSet<u64> {
        let mut holes = BTreeSet::new();
        let mut has_later = false;
        for (index, transaction) in history.iter().enumerate().rev() {
            let seq = index as u64 + 1;
            has_later &= !transaction.is_last;
            match self.is_inserted(seq) {
                Some(true) => has_later = true,
                Some(false) if has_later && transaction.wrote.insert > 0 => {
                    holes.insert(seq);
                }
                _ => {}
            }
        }
        holes
    }

    /// Why an acknowledged transaction is not there.
    fn lacks(&self, seq: u64, wrote: LedgerWrite) -> String {
        let mut words = Vec::new();
        if wrote.insert > 0 && self.is_inserted(seq) == Some(false) {
            let last =
                self.last_inserted.expect("the insert table was read: is_inserted has an answer");
            words.push(format!("no row in the insert table, the client's last there is {last}"));
        }
        if let Some(last) = self.last_updated.filter(|last| wrote.update && *last < seq) {
            words.push(format!("the client's row in the update table holds {last}"));
        }
        words.join("; ")
    }
}

fn one_client(
    (client, history): (u32, &[LedgerTransaction]),
    ledger: &Ledger,
    found: &ClientRows<'_>,
    covers: &CoverEvidence<'_>,
    findings: &mut LedgerFindings,
) {
    let holes = found.holes(history);
    let mut run = 0;
    for (seq, transaction) in (1..).zip(history) {
        let outcome = transaction.outcome;
        let is_there = found.accounts_for(seq, transaction);
        findings.intended += 1;
        findings.present += u64::from(is_there);
        match outcome {
            LedgerOutcome::Failed => findings.failed += 1,
            LedgerOutcome::WroteNothing => {
                findings.wrote_nothing += 1;
                findings.wrote_nothing_present += u64::from(is_there);
            }
            LedgerOutcome::Unknown => {
                findings.unknown += 1;
                findings.unknown_present += u64::from(is_there);
            }
            LedgerOutcome::Acknowledged | LedgerOutcome::AcknowledgedAlone => {
                let cover = covers.cover(transaction);
                findings.acknowledged += 1;
                let is_in_part = found.counts.is_some() && transaction.wrote.insert == 0
                    || found.last_updated.is_some() && !transaction.wrote.update;
                findings.acknowledged_in_part += u64::from(is_in_part);
                findings.acknowledged_alone += u64::from(cover == CommitCover::Alone);
                findings.acknowledged_cover_unknown += u64::from(cover == CommitCover::Unknown);
                run = if is_there { 0 } else { run + 1 };
                findings.lost_max_run = findings.lost_max_run.max(run);
                if !is_there {
                    lost((client, seq, transaction), found, cover, findings);
                    if let Some(giver) = ledger.giver(transaction) {
                        *findings.lost_of.entry(giver).or_default() += 1;
                    }
                    if holes.contains(&seq) {
                        hole((client, seq, transaction), findings);
                    }
                }
            }
        }
    }
    if let (Some(inserted), Some(updated)) = (found.last_inserted, found.last_updated)
        && inserted != updated
        // Of a client that is cut off, or of a transaction that wrote into one table, both may be right.
        && let seq = inserted.max(updated)
        && let Some(last) = history.get(seq as usize - 1)
        && last.wrote.insert > 0
        && last.wrote.update
    {
        let at = last.ended;
        findings.note(LedgerAnomaly::Torn, About { client: Some(client), seq, at }, || {
            (
                "the same last transaction in both tables".to_owned(),
                format!("{inserted} in the insert table, {updated} in the update table"),
            )
        });
    }
}

fn lost(
    (client, seq, transaction): (u32, u64, &LedgerTransaction),
    found: &ClientRows<'_>,
    cover: CommitCover,
    findings: &mut LedgerFindings,
) {
    let about = About { client: Some(client), seq, at: transaction.ended };
    findings.lose(transaction.ended, cover);
    findings.note(LedgerAnomaly::Lost, about, || {
        let by = match cover {
            CommitCover::Covered => "when a standby had confirmed it",
            CommitCover::Alone => "by the primary alone",
            CommitCover::Unknown => "without a warning",
        };
        (format!("what was acknowledged {by}"), found.lacks(seq, transaction.wrote))
    });
}

fn hole((client, seq, transaction): (u32, u64, &LedgerTransaction), findings: &mut LedgerFindings) {
    let about = About { client: Some(client), seq, at: transaction.ended };
    findings.note(LedgerAnomaly::Hole, about, || {
        let expected = "its row, since the same connection has later ones";
        (expected.to_owned(), "no row in the insert table".to_owned())
    });
}

/// The transaction that a row claims to be.
fn intended<'l>(ledger: &'l Ledger, row: &LedgerRow) -> Option<(u32, u64, &'l LedgerTransaction)> {
    let client = u32::try_from(row.client?).ok()?;
    let seq = u64::try_from(row.seq?).ok()?;
    let transaction = ledger.client(client)?.get((seq as usize).checked_sub(1)?)?;
    Some((client, seq, transaction))
}

/// Number of rows of each transaction of each client in the insert table; rows that must not be
/// there are noted.
fn inserted(
    ledger: &Ledger,
    rows: &[LedgerRow],
    findings: &mut LedgerFindings,
) -> BTreeMap<u32, Vec<u32>> {
    let counts = ledger.clients().map(|(client, history)| (client, vec![0; history.len()]));
    let mut counts: BTreeMap<u32, Vec<u32>> = counts.collect();
    for row in rows {
        let Some((client, seq, transaction)) = intended(ledger, row) else {
            invent(ledger, row, findings);
            continue;
        };
        if let Some(counts) = counts.get_mut(&client) {
            let count = &mut counts[seq as usize - 1];
            *count += 1;
            let count = *count;
            if count > transaction.wrote.insert.max(1) {
                let about = About { client: Some(client), seq, at: transaction.ended };
                findings.note(LedgerAnomaly::Doubled, about, || {
                    ("one row".to_owned(), format!("it stands there {count} times"))
                });
            }
        }
        content(row, client, seq, transaction, findings);
    }
    counts
}

/// The transaction that each client's row in the update table holds; rows that must not be there
/// are noted.
fn updated(
    ledger: &Ledger,
    rows: &[LedgerRow],
    findings: &mut LedgerFindings,
) -> BTreeMap<u32, u64> {
    let mut last: BTreeMap<u32, u64> = BTreeMap::new();
    for row in rows {
        let is_blank = row.seq.is_none_or(|seq| seq == 0);
        let known = row.client.and_then(|client| u32::try_from(client).ok());
        let (client, seq, at) = match (intended(ledger, row), known) {
            (Some((client, seq, transaction)), _) => {
                content(row, client, seq, transaction, findings);
                (client, seq, transaction.ended)
            }
            // As the study made it, for a client that has written nothing, or never ran.
            (None, Some(client)) if is_blank => (client, 0, Moment(0)),
            // It holds what came after the last entry that is there.
            (None, Some(client)) if ledger.is_cut(client) => {
                findings.unjudged_rows += 1;
                // A row of a client whose ledger was cut is not judged: its number is only shown.
                (client, row.seq.and_then(|seq| u64::try_from(seq).ok()).unwrap_or(0), Moment(0))
            }
            _ => {
                invent(ledger, row, findings);
                continue;
            }
        };
        match last.get_mut(&client) {
            None => drop(last.insert(client, seq)),
            Some(last) => {
                *last = (*last).max(seq);
                let about = About { client: Some(client), seq, at };
                findings.note(LedgerAnomaly::Doubled, about, || {
                    ("one row of the client".to_owned(), format!("another one, which holds {seq}"))
                });
            }
        }
    }
    last
}

/// Notes a row that no client intended, unless nothing is known of its client.
fn invent(ledger: &Ledger, row: &LedgerRow, findings: &mut LedgerFindings) {
    let client = row.client.and_then(|client| u32::try_from(client).ok());
    if client.is_some_and(|client| ledger.is_cut(client)) {
        findings.unjudged_rows += 1;
        return;
    }
    let shown = |value: Option<i64>| value.map_or("NULL".to_owned(), |value| value.to_string());
    findings.note(LedgerAnomaly::Invented, About::row(row), || {
        let (client, seq, chain) = (shown(row.client), shown(row.seq), shown(row.chain));
        let found = format!("client {client}, seq {seq}, chain {chain}");
        ("no row that no client intended".to_owned(), found)
    });
}

/// Notes a row that must not be there, or does not hold what was sent.
fn content(
    row: &LedgerRow,
    client: u32,
    seq: u64,
    transaction: &LedgerTransaction,
    findings: &mut LedgerFindings,
) {
    let about = About { client: Some(client), seq, at: transaction.ended };
    if transaction.outcome == LedgerOutcome::Failed {
        findings.note(LedgerAnomaly::FailedPresent, about, || {
            ("nothing of a transaction that failed".to_owned(), "its row".to_owned())
        });
    }
    if row.chain != Some(transaction.chain) {
        findings.note(LedgerAnomaly::Broken, about, || {
            let found = row.chain.map_or("NULL".to_owned(), |chain| chain.to_string());
            (format!("chain {}", transaction.chain), found)
        });
    }
}

/// Compares the rows that two ways of reading one table gave. What only one of them gave is noted
/// as what `first` expects and `second` found, or the other way round. Sorts both.
pub(super) fn differences(
    first: &mut [LedgerRow],
    second: &mut [LedgerRow],
) -> Vec<(LedgerRow, Ordering)> {
    first.sort_unstable();
    second.sort_unstable();
    let (mut i, mut j) = (0, 0);
    let mut differences = Vec::new();
    while i < first.len() || j < second.len() {
        let order = match (first.get(i), second.get(j)) {
            (Some(one), Some(other)) => one.cmp(other),
            (Some(_), None) => Ordering::Less,
            _ => Ordering::Greater,
        };
        match order {
            Ordering::Less => differences.push((first[i], order)),
            Ordering::Greater => differences.push((second[j], order)),
            Ordering::Equal => {}
        }
        i += usize::from(order != Ordering::Greater);
        j += usize::from(order != Ordering::Less);
    }
    differences
}
