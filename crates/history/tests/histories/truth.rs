//! What a history is, found by trying out every order of its transactions.
//!
//! A transaction of unknown outcome may have happened or not. A read is explained by what is there, and by what
//! its own transaction wrote before.

use std::collections::{BTreeMap, HashSet};

use history::{IsolationLevel, ObjectKind, TransactionOutcome};

use crate::written::{Plain, Run};

/// A transaction with the bounds of its times.
#[derive(Clone, Debug)]
pub(crate) struct Timed {
    pub(crate) run: Run,
    pub(crate) bound: u64,
}

/// The elements of each list, and the value of each register.
type State = BTreeMap<(ObjectKind, i64), Vec<i64>>;

/// Whether the transactions may come from a database that provides a level.
pub(crate) fn may_be(all: &[Timed], level: IsolationLevel) -> bool {
    let there: Vec<&Timed> =
        all.iter().filter(|one| one.run.outcome != TransactionOutcome::Failed).collect();
    let mut search = Search { level, all: &there, failed: HashSet::new() };
    search.next(0, 0, &mut vec![State::new()], &mut vec![None; there.len()])
}

struct Search<'t> {
    level: IsolationLevel,
    all: &'t [&'t Timed],
    /// What was tried from here on without success.
    failed: HashSet<(u64, u64, String)>,
}

impl Search<'_> {
    /// `begun` and `done` are sets of transactions, `past` the states from the first one to that of now, and
    /// `since` the state that each transaction's snapshot is.
    fn next(
        &mut self,
        begun: u64,
        done: u64,
        past: &mut Vec<State>,
        since: &mut Vec<Option<usize>>,
    ) -> bool {
        let is_left = |at: &usize| done >> *at & 1 == 0;
        let count = self.all.len();
        let must = |at: &usize| self.all[*at].run.outcome == TransactionOutcome::Committed;
        if !(0..count).filter(is_left).any(|at| must(&at)) {
            return true;
        }
        let seen = (begun, done, format!("{past:?} {since:?}"));
        if self.failed.contains(&seen) {
            return false;
        }
        let has_snapshots = self.level == IsolationLevel::RepeatableRead;
        for at in (0..count).filter(is_left).collect::<Vec<_>>() {
            let one = self.all[at];
            let now = past.len() - 1;
            if has_snapshots && since[at].is_none() && reads(&one.run) && writes(&one.run) {
                if applied(&one.run, &past[now], None).is_some() {
                    since[at] = Some(now);
                    if self.next(begun | 1 << at, done, past, since) {
                        return true;
                    }
                    since[at] = None;
                }
                continue;
            }
            if self.level == IsolationLevel::StrictSerializable
                && (0..count).filter(is_left).any(|other| other != at && self.precedes(other, at))
            {
                continue;
            }
            let next = match self.level {
                IsolationLevel::ReadCommitted => applied(&one.run, &past[now], Some(past)),
                IsolationLevel::RepeatableRead => {
                    let snapshot = since[at].unwrap_or(now);
                    let is_first = one
                        .run
                        .operations
                        .iter()
                        .filter_map(written)
                        .all(|(key, _)| past[snapshot].get(&key) == past[now].get(&key));
                    is_first.then(|| applied(&one.run, &past[snapshot], None)).flatten().map(|_| {
                        let mut next = past[now].clone();
                        one.run.operations.iter().filter_map(written).for_each(|(key, value)| {
                            write(&mut next, key, value);
                        });
                        next
                    })
                }
                _ => applied(&one.run, &past[now], None),
            };
            let Some(next) = next else { continue };
            past.push(next);
            let is_found = self.next(begun | 1 << at, done | 1 << at, past, since);
            past.pop();
            if is_found {
                return true;
            }
        }
        self.failed.insert(seen);
        false
    }

    /// Whether one transaction must come before another one: it was acknowledged before that one began,
    /// or to the same client.
    fn precedes(&self, one: usize, other: usize) -> bool {
        let [one, other] = [self.all[one], self.all[other]];
        let is_earlier = one.run.client == other.run.client && one.run.begun < other.run.begun;
        let ended = one.run.ended.saturating_add(one.bound);
        one.run.outcome == TransactionOutcome::Committed
            && (is_earlier || ended < other.run.begun.saturating_sub(other.bound))
    }
}

fn written(plain: &Plain) -> Option<((ObjectKind, i64), i64)> {
    match plain {
        Plain::Append(key, value) => Some(((ObjectKind::List, *key), *value)),
        Plain::Write(key, value) => Some(((ObjectKind::Register, *key), *value)),
        _ => None,
    }
}

fn read(plain: &Plain) -> Option<((ObjectKind, i64), Vec<i64>)> {
    match plain {
        Plain::ReadList(key, list) => Some(((ObjectKind::List, *key), list.clone())),
        Plain::Read(key, value) => {
            Some(((ObjectKind::Register, *key), value.iter().copied().collect()))
        }
        _ => None,
    }
}

fn reads(run: &Run) -> bool {
    run.operations.iter().any(|plain| read(plain).is_some())
}

fn writes(run: &Run) -> bool {
    run.operations.iter().any(|plain| written(plain).is_some())
}

fn write(state: &mut State, key: (ObjectKind, i64), value: i64) {
    let here = state.entry(key).or_default();
    if key.0 == ObjectKind::Register {
        here.clear();
    }
    here.push(value);
}

/// What is there after a transaction that found `state`; none where it did not find what it read. With a
/// past, it may find any state of that in a key until it writes the key.
pub(crate) fn applied(run: &Run, state: &State, past: Option<&Vec<State>>) -> Option<State> {
    let mut next = state.clone();
    let mut own: HashSet<(ObjectKind, i64)> = HashSet::new();
    let nothing = Vec::new();
    for plain in &run.operations {
        if let Some((key, value)) = written(plain) {
            write(&mut next, key, value);
            own.insert(key);
        }
        if let Some((key, seen)) = read(plain) {
            let is_there = |state: &State| state.get(&key).unwrap_or(&nothing) == &seen;
            let is_explained = match past.filter(|_| !own.contains(&key)) {
                Some(past) => past.iter().any(is_there),
                None => is_there(&next),
            };
            if !is_explained {
                return None;
            }
        }
    }
    Some(next)
}
