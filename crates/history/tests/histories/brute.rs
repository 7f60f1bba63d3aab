//! The checker and one that tries out every order agree on small histories of every sort.

use std::io::Write;

use history::{HistoryFindings, IsolationLevel, LevelDoubt, LevelJudgement, TransactionOutcome};
use stats::Prng;

use crate::small::{self, Loss, runs_of, told};
use crate::truth::{Timed, may_be};
use crate::written::{Plain, Run, history_of};

/// Keys of the lists of a small history.
const KEYS: i64 = 2;

/// A small history of committed transactions, of which the last one, after all others, reads all lists.
/// What they read is random, but lists have an order: every read is a prefix.
fn lists(prng: &mut Prng) -> Vec<Run> {
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
            Run { client, begun, ended, outcome: TransactionOutcome::Committed, operations }
        })
        .collect();
    let operations = (0..KEYS).map(|key| Plain::ReadList(key, list(key))).collect();
    let outcome = TransactionOutcome::Committed;
    runs.push(Run { client: count as u32, begun: 100, ended: 101, outcome, operations });
    runs
}

fn timed(runs: &[Run]) -> Vec<Timed> {
    runs.iter().map(|run| Timed { run: run.clone(), bound: 0 }).collect()
}

fn words(findings: &HistoryFindings) -> String {
    let words: Vec<String> = findings.witnesses.iter().map(ToString::to_string).collect();
    words.join("\n")
}

/// Lists of which everything was read at the end have an order that is known: it can always be told.
#[test]
fn of_lists_that_were_read_at_the_end_every_level_is_told() {
    let mut counts = [[0; 2]; 4];
    for seed in 0..6_000 {
        let runs = lists(&mut Prng::new(seed));
        let has_writes = |run: &Run| run.operations.iter().any(|x| matches!(x, Plain::Append(..)));
        let findings = history::check(&history_of(runs.clone()));
        for (at, level) in IsolationLevel::ALL.into_iter().enumerate() {
            let truth = may_be(&timed(&runs), level);
            let expected = match truth {
                false => LevelJudgement::Violated,
                true if runs.iter().any(has_writes) => LevelJudgement::Holds,
                true => LevelJudgement::CannotTell,
            };
            let judged = findings.judge(level);
            // A value may be read here before it was written, which is blamed on the clocks.
            let doubts = findings.doubts(level);
            let expected = match doubts.contains(&LevelDoubt::ClocksApart) {
                true if !truth && judged == LevelJudgement::CannotTell => judged,
                _ => expected,
            };
            assert_eq!(judged, expected, "seed {seed} at {level}: {runs:#?}\n{}", words(&findings));
            counts[at][usize::from(truth)] += 1;
        }
    }
    // Both answers are frequent enough to mean something.
    for (level, [violated, holds]) in IsolationLevel::ALL.into_iter().zip(counts) {
        assert!(violated > 300 && holds > 300, "{level}: {counts:?}");
    }
}

/// How often each answer was given at each level: for histories that may be at the level, and for those
/// that may not.
#[derive(Clone, Copy, Debug, Default)]
struct Answers {
    may: [u64; 3],
    may_not: [u64; 3],
    /// Those of the first that cannot be told for no other reason than that no order of versions was found.
    no_order: u64,
}

/// Judges small histories of which something is lost, or nothing; no answer may be wrong.
fn check(seeds: std::ops::Range<u64>) -> [[Answers; 4]; 2] {
    let mut counts = [[Answers::default(); 4]; 2];
    for seed in seeds {
        let prng = &mut Prng::new(seed);
        let runs = small::random(prng);
        let loss = match prng.below(8) {
            0 | 1 => Loss::Garbled,
            2 => Loss::CutOff,
            3 => Loss::File,
            _ => Loss::Nothing,
        };
        let history = told(&runs, loss, prng);
        let findings = history::check(&history);
        for (at, level) in IsolationLevel::ALL.into_iter().enumerate() {
            let judged = findings.judge(level);
            let say = || {
                let doubts = findings.doubts(level);
                format!(
                    "seed {seed}, {loss:?}, {judged:?} at {level}, {doubts:?}: {runs:#?}\n{:#?}\n{}",
                    findings.faults,
                    words(&findings)
                )
            };
            // What happened, and of that what the files tell.
            let happened = may_be(&timed(&runs), level);
            let is_lost = !history.faults().is_empty();
            let may = match judged == LevelJudgement::Violated || is_lost {
                true => happened,
                false => may_be(&runs_of(&history), level),
            };
            assert!(
                judged != LevelJudgement::Violated || !may,
                "wrong \"does not hold\": {}",
                say()
            );
            assert!(judged != LevelJudgement::Holds || may, "wrong \"holds\": {}", say());
            assert!(
                judged != LevelJudgement::Holds || !is_lost,
                "holds by what is left: {}",
                say()
            );
            let count = &mut counts[usize::from(loss != Loss::Nothing)][at];
            let answers = if may { &mut count.may } else { &mut count.may_not };
            answers[judged as usize] += 1;
            let is_unordered = matches!(findings.doubts(level)[..], [LevelDoubt::NoOrder { .. }]);
            count.no_order +=
                u64::from(may && judged == LevelJudgement::CannotTell && is_unordered);
        }
    }
    counts
}

#[test]
fn no_small_history_is_judged_wrong() {
    let [whole, _] = check(0..4_000);
    for (level, count) in IsolationLevel::ALL.into_iter().zip(whole) {
        // Each answer is frequent enough to mean something.
        let [holds, _, _] = count.may;
        let [_, violated, _] = count.may_not;
        assert!(holds > 300 && violated > 100, "{level}: {count:?}");
        // An order that is there is nearly always found.
        assert!(count.no_order * 20 < holds, "{level}: {count:?}");
    }
}

/// `cargo test --release -p history --test histories a_million_small -- --ignored --nocapture`
#[test]
#[ignore = "minutes: a million small histories"]
fn none_of_a_million_small_histories_is_judged_wrong() {
    let out = &mut std::io::stdout().lock();
    writeln!(out, "holds, does not hold, cannot tell").unwrap();
    for (name, counts) in ["whole", "with a loss"].into_iter().zip(check(10_000..1_010_000)) {
        for (level, Answers { may, may_not, no_order }) in
            IsolationLevel::ALL.into_iter().zip(counts)
        {
            writeln!(out, "{name}, {level}: may be {may:?}, may not be {may_not:?}; no order found for {no_order}").unwrap();
        }
    }
}
