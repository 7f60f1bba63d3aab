//! The checker and one that tries out every order agree on small histories of every sort.

use history::{Judgement, Level, Outcome};
use stats::Prng;

use crate::written::{Plain, Run, history_of};

/// Keys of the lists of a small history.
const KEYS: i64 = 2;

/// A small history of committed transactions, of which the last one, after all others, reads all lists.
/// What they read is random, but lists have an order: every read is a prefix.
fn random(prng: &mut Prng) -> Vec<Run> {
    let count = 2 + prng.below(3);
    let mut appends: Vec<(i64, i64)> = Vec::new();
    let mut operations: Vec<Vec<Plain>> = vec![Vec::new(); count];
    for own in &mut operations {
        for key in 0..KEYS {
            if prng.below(2) == 0 {
                let value = appends.len() as i64 + 1;
                appends.push((key, value));
                own.push(Plain::Append(key, value));
            }
        }
    }
    prng.shuffle(&mut appends);
    let list = |key: i64| -> Vec<i64> {
        appends.iter().filter(|append| append.0 == key).map(|append| append.1).collect()
    };
    for own in &mut operations {
        for key in 0..KEYS {
            if prng.below(3) > 0 {
                let mut read = list(key);
                read.truncate(prng.below(read.len() + 1));
                // Before its own append, which it must not see.
                let mine = own.iter().find_map(|plain| match plain {
                    Plain::Append(other, value) if *other == key => Some(*value),
                    _ => None,
                });
                if let Some(at) = read.iter().position(|value| Some(*value) == mine) {
                    read.truncate(at);
                }
                own.insert(0, Plain::ReadList(key, read));
            }
        }
    }
    let mut runs: Vec<Run> = (0..)
        .zip(operations)
        .map(|(client, operations)| {
            let begun = prng.below(8) as u64;
            let ended = begun + 1 + prng.below(8) as u64;
            Run { client, begun, ended, outcome: Outcome::Committed, operations }
        })
        .collect();
    let operations = (0..KEYS).map(|key| Plain::ReadList(key, list(key))).collect();
    let outcome = Outcome::Committed;
    runs.push(Run { client: count as u32, begun: 100, ended: 101, outcome, operations });
    runs
}

/// Every order of so many things.
fn orders(count: usize) -> Vec<Vec<usize>> {
    match count {
        0 => vec![Vec::new()],
        _ => orders(count - 1)
            .into_iter()
            .flat_map(|order| {
                (0..count).map(move |at| {
                    let mut order = order.clone();
                    order.insert(at, count - 1);
                    order
                })
            })
            .collect(),
    }
}

type Lists = Vec<Vec<i64>>;

/// What is there after a transaction that found `lists`. None where it did not find what it read.
fn applied(run: &Run, lists: &Lists) -> Option<Lists> {
    let mut lists = lists.clone();
    for plain in &run.operations {
        match plain {
            Plain::Append(key, value) => lists[*key as usize].push(*value),
            Plain::ReadList(key, list) if lists[*key as usize] != *list => return None,
            _ => {}
        }
    }
    Some(lists)
}

fn empty() -> Lists {
    vec![Vec::new(); KEYS as usize]
}

/// Whether some order of whole transactions explains what they read.
fn is_serializable(runs: &[Run], is_strict: bool) -> bool {
    orders(runs.len()).iter().any(|order| {
        let agrees = |before: usize, after: usize| runs[after].ended >= runs[before].begun;
        let in_time = (0..order.len())
            .all(|at| order[at + 1..].iter().all(|later| agrees(order[at], *later)));
        let explained =
            || order.iter().try_fold(empty(), |lists, at| applied(&runs[*at], &lists)).is_some();
        (!is_strict || in_time) && explained()
    })
}

/// Whether there are snapshots and commits, in some order, that explain what the transactions read:
/// a snapshot is before its commit, and no transaction that wrote one of its keys committed between.
fn is_snapshot(runs: &[Run]) -> bool {
    let count = runs.len();
    let writes = |at: usize, key: i64| {
        runs[at].operations.iter().any(|plain| matches!(plain, Plain::Append(k, _) if *k == key))
    };
    let clash =
        |one: usize, other: usize| (0..KEYS).any(|key| writes(one, key) && writes(other, key));
    // Event 2n is the snapshot of n, event 2n + 1 its commit. Each is put where it may be.
    fn next(
        runs: &[Run],
        placed: &mut Vec<usize>,
        lists: &Lists,
        snapshots: &mut Vec<Option<usize>>,
        clash: &dyn Fn(usize, usize) -> bool,
    ) -> bool {
        let count = runs.len();
        if placed.len() == 2 * count {
            return true;
        }
        for at in 0..count {
            let commits = placed.contains(&(2 * at + 1));
            if commits {
                continue;
            }
            let (event, mut after) = match snapshots[at] {
                None => {
                    // What it reads is read from here.
                    if applied(&runs[at], lists).is_none() {
                        continue;
                    }
                    (2 * at, lists.clone())
                }
                Some(since) => {
                    let wins =
                        placed[since..].iter().all(|event| event % 2 == 0 || !clash(at, event / 2));
                    if !wins {
                        continue;
                    }
                    (2 * at + 1, lists.clone())
                }
            };
            if event % 2 == 1 {
                for plain in &runs[at].operations {
                    if let Plain::Append(key, value) = plain {
                        after[*key as usize].push(*value);
                    }
                }
            }
            let before = snapshots[at];
            placed.push(event);
            if event % 2 == 0 {
                snapshots[at] = Some(placed.len());
            }
            let is_found = next(runs, placed, &after, snapshots, clash);
            placed.pop();
            snapshots[at] = before;
            if is_found {
                return true;
            }
        }
        false
    }
    next(runs, &mut Vec::new(), &empty(), &mut vec![None; count], &clash)
}

/// Whether some order of commits explains what they read, if every read may be of any earlier moment.
fn is_read_committed(runs: &[Run]) -> bool {
    orders(runs.len()).iter().any(|order| {
        let mut past = vec![empty()];
        order.iter().all(|at| {
            let mut now = past[past.len() - 1].clone();
            let explained = runs[*at].operations.iter().all(|plain| match plain {
                Plain::Append(key, value) => {
                    now[*key as usize].push(*value);
                    true
                }
                Plain::ReadList(key, list) => past.iter().any(|then| then[*key as usize] == *list),
                _ => true,
            });
            past.push(now);
            explained
        }) && (0..KEYS).all(|key| {
            // The order of the versions is that of the last read.
            runs[runs.len() - 1]
                .operations
                .contains(&Plain::ReadList(key, past[past.len() - 1][key as usize].clone()))
        })
    })
}

#[test]
fn the_checker_agrees_with_trying_out_every_order() {
    let mut counts = [[0; 2]; 4];
    for seed in 0..6_000 {
        let runs = random(&mut Prng::new(seed));
        let findings = history::check(&history_of(runs.clone()));
        let tried = [
            is_read_committed(&runs),
            is_snapshot(&runs),
            is_serializable(&runs, false),
            is_serializable(&runs, true),
        ];
        for (at, level) in Level::ALL.into_iter().enumerate() {
            // A transaction that reads a key twice is not made here, so that nothing is internal.
            let judged = findings.judge(level) == Judgement::Holds;
            let words: Vec<String> = findings.witnesses.iter().map(ToString::to_string).collect();
            assert_eq!(
                judged,
                tried[at],
                "seed {seed} at {level}: {runs:#?}\n{}",
                words.join("\n")
            );
            counts[at][usize::from(judged)] += 1;
        }
    }
    // Both answers are frequent enough to mean something.
    for (level, [violated, holds]) in Level::ALL.into_iter().zip(counts) {
        assert!(violated > 300 && holds > 300, "{level}: {counts:?}");
    }
}
