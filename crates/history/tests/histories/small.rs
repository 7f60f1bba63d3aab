//! Small histories of every sort: legal ones of each level, and ones in which something is wrong.

use std::collections::BTreeMap;

use history::file::{HistoryWriter, read};
use history::{
    FaultKind, History, HistoryFault, HistoryWorkload, ObjectKind, Operation, TransactionOutcome,
};
use stats::Prng;

use crate::truth::Timed;
use crate::written::{Plain, Run};

/// Transactions of a small history, at most.
const MOST: usize = 6;

type State = BTreeMap<(bool, i64), Vec<i64>>;

/// How what a transaction reads is made up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reads {
    /// From the state before its commit.
    Serial,
    /// From an earlier state, all of it.
    Snapshot,
    /// From an earlier state, each read from one of its own.
    Committed,
}

/// A small history: transactions that commit one after another and read from states before, at times that
/// agree with that order or not. In one of three, something that was read is exchanged.
pub(crate) fn random(prng: &mut Prng) -> Vec<Run> {
    let count = 2 + prng.below(MOST - 1);
    let clients = 1 + prng.below(count);
    let keys = 1 + prng.below(2) as i64;
    let sort = prng.below(3); // Lists, registers, or both.
    let mode = [Reads::Serial, Reads::Serial, Reads::Snapshot, Reads::Committed][prng.below(4)];
    let is_in_time = prng.below(3) > 0;
    let mut states: Vec<State> = vec![State::new()];
    let mut runs: Vec<Run> = Vec::new();
    let mut free = vec![0_u64; clients];
    let mut value = 0;
    for place in 0..count as u64 {
        let client = prng.below(clients);
        let outcome = match prng.below(10) {
            0 | 1 => TransactionOutcome::Unknown,
            2 => TransactionOutcome::Failed,
            _ => TransactionOutcome::Committed,
        };
        let is_applied = match outcome {
            TransactionOutcome::Committed => true,
            TransactionOutcome::Unknown => prng.below(2) == 0,
            TransactionOutcome::Failed => prng.below(20) == 0,
        };
        let now = states.len() - 1;
        let snapshot = if mode == Reads::Serial { now } else { now - prng.below(now.min(2) + 1) };
        let mut own: Vec<((bool, i64), i64)> = Vec::new();
        let mut operations = Vec::new();
        for _ in 0..1 + prng.below(3) {
            let is_list = sort == 0 || (sort == 2 && prng.below(2) == 0);
            let key = prng.below(keys as usize) as i64;
            if prng.below(2) == 0 {
                value += 1;
                own.push(((is_list, key), value));
                operations.push(match is_list {
                    true => Plain::Append(key, value),
                    false => Plain::Write(key, value),
                });
                continue;
            }
            let from = match mode {
                Reads::Committed => now - prng.below(now.min(2) + 1),
                _ => snapshot,
            };
            let mut state = states[from].clone();
            apply(&mut state, own.iter().copied());
            let seen = state.remove(&(is_list, key)).unwrap_or_default();
            operations.push(match is_list {
                true => Plain::ReadList(key, seen),
                false => Plain::Read(key, seen.first().copied()),
            });
        }
        if is_applied {
            let mut state = states[now].clone();
            apply(&mut state, own);
            states.push(state);
        }
        // The commit is at 10 × its place, between the beginning and the end.
        let commit =
            if is_in_time { 10 * (place + 1) } else { 10 * (1 + prng.below(count)) as u64 };
        let commit = commit.max(free[client] + 1);
        let begun = commit.saturating_sub(1 + prng.below(25) as u64).max(free[client]);
        let ended = commit + prng.below(25) as u64;
        // The client's next transaction may begin at the moment at which this one ends, and not before its
        // commit: one of unknown outcome is given up at any time.
        let gives_up = begun + 1 + prng.below((ended - begun) as usize + 1) as u64;
        let ended = if outcome == TransactionOutcome::Unknown { gives_up } else { ended };
        free[client] = ended;
        runs.push(Run { client: client as u32, begun, ended, outcome, operations });
    }
    if prng.below(3) == 0 {
        exchange(&mut runs, prng);
    }
    runs
}

fn apply(state: &mut State, writes: impl IntoIterator<Item = ((bool, i64), i64)>) {
    for ((is_list, key), value) in writes {
        let here = state.entry((is_list, key)).or_default();
        if !is_list {
            here.clear();
        }
        here.push(value);
    }
}

/// Gives one read something else: less, another value, or one that nobody wrote.
fn exchange(runs: &mut [Run], prng: &mut Prng) {
    let at = prng.below(runs.len());
    let operations = &mut runs[at].operations;
    let at = prng.below(operations.len());
    match &mut operations[at] {
        Plain::ReadList(_, list) => match prng.below(4) {
            0 => _ = list.pop(),
            1 => list.push(1 + prng.below(12) as i64),
            2 => list.reverse(),
            _ => list.truncate(prng.below(list.len() + 1)),
        },
        Plain::Read(_, value) => {
            *value = (prng.below(4) > 0).then(|| 1 + prng.below(12) as i64);
        }
        _ => {}
    }
}

/// What is lost of the files of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    Nothing,
    /// Some bytes are something else: of one line, or of several that become one.
    Garbled,
    /// A file ends early.
    CutOff,
    /// A file is not there.
    File,
}

/// A history of these transactions as two files tell it of which something is lost. The clock of the second
/// file is apart from that of the run by up to a bound, which it tells.
pub(crate) fn told(runs: &[Run], loss: Loss, prng: &mut Prng) -> History {
    let mut history = History::default();
    let bound = if prng.below(4) == 0 { 1 + prng.below(15) as i64 } else { 0 };
    let missing = prng.below(2);
    for file in 0..2 {
        let name = format!("{file}.history");
        let bound = if file == 1 { bound } else { 0 };
        let offset = bound - prng.below(2 * bound as usize + 1) as i64;
        let mine = runs.iter().filter(|run| run.client % 2 == file);
        let mut text = text_of(mine, bound as u64, offset, prng);
        if file as usize == missing {
            match loss {
                Loss::File => {
                    history.blame(HistoryFault {
                        file: name,
                        line: 0,
                        what: FaultKind::FileMissing,
                    });
                    continue;
                }
                Loss::CutOff => text.truncate(12 + prng.below(text.len() - 12)),
                Loss::Garbled => {
                    let from = 12 + prng.below(text.len() - 12);
                    let to = text.len().min(from + 1 + prng.below(30));
                    text[from..to].fill(b'#');
                }
                Loss::Nothing => {}
            }
        }
        read(&mut history, &name, text.as_slice()).unwrap();
    }
    history
}

/// The lines of one file, in the order of time.
fn text_of<'r>(
    runs: impl Iterator<Item = &'r Run>,
    bound: u64,
    offset: i64,
    prng: &mut Prng,
) -> Vec<u8> {
    let mut recorder = HistoryWriter::default();
    let mut out = HistoryWriter::header([&HistoryWorkload::default()], 2);
    if bound > 0 {
        recorder.moments_within(&mut out, bound);
    }
    let mut runs: Vec<&Run> = runs.collect();
    runs.sort_by_key(|run| (run.begun, run.client));
    let mut clients: BTreeMap<u32, u64> = BTreeMap::new();
    // The moment, whether it is no end (which is noted first), the transaction, and its operation.
    let mut events: Vec<(u64, bool, usize, usize)> = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        events.push((run.begun, true, number, 0));
        let mut at = run.begun;
        for operation in 1..=run.operations.len() {
            at += prng.below((run.ended - at) as usize + 1) as u64;
            events.push((at, true, number, operation));
        }
        events.push((run.ended, at == run.begun, number, run.operations.len() + 1));
    }
    // What one transaction does stays in its order; another one of the same client begins behind its end.
    events.sort_by_key(|(at, _, number, operation)| (*at, *number, *operation));
    for (at, _, number, operation) in events {
        let run = runs[number];
        let at = (at as i64 + 100 + offset).cast_unsigned();
        match operation {
            0 => {
                let last = clients.entry(run.client).or_insert_with(|| {
                    recorder.connected(&mut out, run.client, 0, 1, at);
                    0
                });
                *last += 1;
                recorder.begins(&mut out, run.client, *last, at);
            }
            end if end > run.operations.len() => {
                recorder.ends(&mut out, run.client, run.outcome, at);
            }
            operation => note(&mut recorder, &mut out, run.client, &run.operations[operation - 1]),
        }
    }
    recorder.finishes(&mut out);
    out
}

fn note(recorder: &mut HistoryWriter, out: &mut Vec<u8>, client: u32, plain: &Plain) {
    match plain {
        Plain::Append(key, value) => recorder.appends(out, client, *key, *value),
        Plain::ReadList(key, list) => recorder.has_read_list(out, client, *key, list),
        Plain::Write(key, value) => recorder.writes(out, client, *key, *value),
        Plain::Read(key, value) => recorder.has_read(out, client, *key, *value),
        Plain::Accounts(total, all) => recorder.has_read_accounts(out, client, *total, all),
    }
}

/// The transactions that a history has, as it was read.
pub(crate) fn runs_of(history: &History) -> Vec<Timed> {
    let plain = |operation: &Operation| match *operation {
        Operation::Append { key, value } => Plain::Append(history.key(key).1, value),
        Operation::Write { key, value } => Plain::Write(history.key(key).1, value),
        Operation::ReadList { key, list } => {
            assert_eq!(history.key(key).0, ObjectKind::List);
            Plain::ReadList(history.key(key).1, history.elements(list).to_vec())
        }
        Operation::Read { key, value } => Plain::Read(history.key(key).1, Some(value)),
        Operation::ReadNothing { key } => Plain::Read(history.key(key).1, None),
        Operation::ReadAccounts { total, balances } => {
            Plain::Accounts(total, history.elements(balances).to_vec())
        }
    };
    let timed = history.transactions().iter().map(|one| Timed {
        run: Run {
            client: history.session(one).client,
            begun: one.begun,
            ended: one.ended,
            outcome: one.outcome,
            operations: history.operations(one).iter().map(plain).collect(),
        },
        bound: one.bound,
    });
    timed.collect()
}
