//! Histories in short: a line for each transaction.
//!
//! `CLIENT BEGUN-ENDED OUTCOME: OPERATIONS`, where an operation is `a1=5` (append 5 to list 1), `r1=5,6`
//! (read list 1), `w1=5` (write register 1), `g1=5` or `g1=` (read register 1), or `s10=3,7` (read
//! balances that are to be 10 in all). The outcome is `ok`, `fail` or `?`.

use std::collections::{BTreeMap, BTreeSet};

use history::{
    History, HistoryFindings, HistorySession, HistoryTransaction, HistoryWorkload,
    IsolationAnomaly, ObjectKind, Operation, TransactionOutcome, check,
};

/// An operation whose keys and lists are not in a history yet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Plain {
    Append(i64, i64),
    ReadList(i64, Vec<i64>),
    Write(i64, i64),
    Read(i64, Option<i64>),
    Accounts(i64, Vec<i64>),
}

/// A transaction that is not in a history yet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Run {
    pub(crate) client: u32,
    pub(crate) begun: u64,
    pub(crate) ended: u64,
    pub(crate) outcome: TransactionOutcome,
    pub(crate) operations: Vec<Plain>,
}

/// A history of these transactions; each client has one session, and its transactions are in the order
/// in which they began.
pub(crate) fn history_of(mut runs: Vec<Run>) -> History {
    runs.sort_by_key(|run| (run.begun, run.client));
    let mut history = History::default();
    let group = HistoryWorkload { server: "primary".to_owned(), ..HistoryWorkload::default() };
    let group = history.add_group(group);
    let file = history.add_file("here");
    let mut clients: BTreeMap<u32, (u32, u64)> = BTreeMap::new();
    for run in runs {
        let session = HistorySession { client: run.client, group, backend: 0, file };
        let (session, number) =
            clients.entry(run.client).or_insert_with(|| (history.add_session(session), 0));
        *number += 1;
        let (session, number) = (*session, *number);
        let operations: Vec<Operation> =
            run.operations.iter().map(|plain| operation(&mut history, plain)).collect();
        let ended = if run.outcome == TransactionOutcome::Unknown { u64::MAX } else { run.ended };
        let Run { begun, outcome, .. } = run;
        let transaction = HistoryTransaction {
            session,
            first: 0,
            operations: 0,
            outcome,
            line: number as u32,
            number,
            begun,
            ended,
            bound: 0,
        };
        history.add(transaction, &operations).unwrap();
    }
    history
}

fn operation(history: &mut History, plain: &Plain) -> Operation {
    match plain {
        Plain::Append(key, value) => {
            Operation::Append { key: history.intern(ObjectKind::List, *key), value: *value }
        }
        Plain::ReadList(key, list) => {
            let key = history.intern(ObjectKind::List, *key);
            Operation::ReadList { key, list: history.add_read(key, None, 0, list).unwrap() }
        }
        Plain::Write(key, value) => {
            Operation::Write { key: history.intern(ObjectKind::Register, *key), value: *value }
        }
        Plain::Read(key, value) => {
            let key = history.intern(ObjectKind::Register, *key);
            value.map_or(Operation::ReadNothing { key }, |value| Operation::Read { key, value })
        }
        Plain::Accounts(total, balances) => {
            let balances = history.add_list(balances).unwrap();
            Operation::ReadAccounts { total: *total, balances }
        }
    }
}

pub(crate) fn runs(lines: &[&str]) -> Vec<Run> {
    lines.iter().map(|line| run(line).unwrap_or_else(|| panic!("no transaction: {line}"))).collect()
}

fn run(line: &str) -> Option<Run> {
    let (head, operations) = line.split_once(':')?;
    let words: Vec<&str> = head.split_whitespace().collect();
    let [client, times, outcome] = words[..] else { return None };
    let (begun, ended) = times.split_once('-')?;
    let outcome = match outcome {
        "ok" => TransactionOutcome::Committed,
        "fail" => TransactionOutcome::Failed,
        "?" => TransactionOutcome::Unknown,
        _ => return None,
    };
    let operations: Option<Vec<Plain>> = operations.split_whitespace().map(plain).collect();
    Some(Run {
        client: client.parse().ok()?,
        begun: begun.parse().ok()?,
        ended: ended.parse().ok()?,
        outcome,
        operations: operations?,
    })
}

fn plain(word: &str) -> Option<Plain> {
    let (letter, rest) = word.split_at_checked(1)?;
    let (key, values) = rest.split_once('=')?;
    let key = key.parse().ok()?;
    let values = values.split(',').filter(|value| !value.is_empty());
    let values: Option<Vec<i64>> = values.map(|value| value.parse().ok()).collect();
    let values = values?;
    match letter {
        "a" => Some(Plain::Append(key, *values.first()?)),
        "r" => Some(Plain::ReadList(key, values)),
        "w" => Some(Plain::Write(key, *values.first()?)),
        "g" => Some(Plain::Read(key, values.first().copied())),
        "s" => Some(Plain::Accounts(key, values)),
        _ => None,
    }
}

pub(crate) fn judged(lines: &[&str]) -> HistoryFindings {
    check(&history_of(runs(lines)))
}

/// The anomalies that were found.
pub(crate) fn names(findings: &HistoryFindings) -> BTreeSet<IsolationAnomaly> {
    findings.anomalies.keys().copied().collect()
}
