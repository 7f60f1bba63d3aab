//! Small histories by hand.

use std::collections::BTreeSet;

use history::{
    CycleKind, CycleOrder, IsolationAnomaly, IsolationLevel, LevelJudgement, TransactionOutcome,
};

use crate::written::{Plain, Run, history_of, judged, names};

fn check(lines: &[&str], expected: &[&str]) {
    let findings = judged(lines);
    let found: BTreeSet<String> = names(&findings).iter().map(ToString::to_string).collect();
    let expected: BTreeSet<String> = expected.iter().map(|name| (*name).to_owned()).collect();
    let words: Vec<String> = findings.witnesses.iter().map(ToString::to_string).collect();
    assert_eq!(found, expected, "{lines:?}\n{}", words.join("\n"));
    for anomaly in names(&findings) {
        let is_shown = findings.witnesses.iter().any(|witness| witness.anomaly == anomaly);
        assert!(is_shown, "no witness of {anomaly}: {lines:?}");
    }
}

#[test]
fn what_happens_one_after_another_is_clean() {
    check(&[], &[]);
    check(&["0 0-1 ok: a1=1", "1 2-3 ok: r1=1 a1=2", "0 4-5 ok: r1=1,2"], &[]);
    check(&["0 0-1 ok: w1=1", "1 2-3 ok: g1=1 w1=2", "0 4-5 ok: g1=2"], &[]);
    // A transaction sees what it did itself.
    check(&["0 0-1 ok: a1=1 r1=1 a1=2 r1=1,2 w2=1 g2=1 w2=2 g2=2"], &[]);
    // One that nobody heard of may have happened, or not.
    check(&["0 0-1 ?: a1=1", "1 2-3 ok: r1=1"], &[]);
    check(&["0 0-1 ?: a1=1", "1 2-3 ok: r1="], &[]);
    // Nobody has seen what failed.
    check(&["0 0-1 fail: a1=1 w2=1", "1 2-3 ok: r1= g2="], &[]);
    check(&["0 0-1 ok: s10=3,7"], &[]);
}

#[test]
fn values_of_aborted_and_unfinished_transactions_are_named() {
    check(&["0 0-9 fail: a1=1", "1 0-9 ok: r1=1"], &["G1a"]);
    check(&["0 0-9 fail: w1=1", "1 0-9 ok: g1=1"], &["G1a"]);
    check(&["0 0-9 ok: a1=1 a1=2", "1 0-9 ok: r1=1"], &["G1b", "G-single"]);
    check(&["0 0-9 ok: w1=1 w1=2", "1 0-9 ok: g1=1"], &["G1b", "G-single"]);
    check(&["0 0-9 fail: a1=1", "1 0-9 ok: a1=2", "2 0-9 ok: r1=1,2"], &["G1a", "dirty update"]);
    check(&["0 0-9 fail: w1=1", "1 0-9 ok: g1=1 w1=2"], &["G1a", "dirty update"]);
    check(&["0 0-9 ok: r1=7"], &["unwritten read"]);
    check(&["0 0-9 ok: g1=7"], &["unwritten read"]);
    check(&["0 0-9 ok: r1=1 a1=1"], &["future read"]);
    check(&["0 0-9 ok: g1=1 w2=2 w1=1"], &["future read"]);
}

#[test]
fn transactions_that_contradict_themselves_or_lists_that_have_no_order_are_named() {
    check(&["0 0-9 ok: a1=1 r1="], &["own write unseen"]);
    check(&["0 0-9 ok: w1=1 g1="], &["own write unseen"]);
    check(&["0 0-9 ok: a1=1", "1 0-9 ok: r1= r1=1"], &["internal", "G-single"]);
    check(&["0 0-9 ok: a1=1", "1 0-9 ok: r1=1,1"], &["duplicate elements"]);
    check(
        &["0 0-9 ok: a1=1", "1 0-9 ok: a1=2", "2 0-9 ok: r1=1,2", "3 0-9 ok: r1=2,1"],
        &["incompatible order"],
    );
    check(&["0 0-9 ok: g1=2 w1=1", "1 0-9 ok: g1=1 w1=2"], &["G1c", "cyclic versions"]);
    check(&["0 0-1 ok: s10=3,8"], &["wrong total"]);
}

#[test]
fn cycles_are_named_by_their_dependencies() {
    check(&["0 0-9 ok: a1=1 a2=1", "1 0-9 ok: a1=2 a2=2", "2 0-9 ok: r1=1,2 r2=2,1"], &["G0"]);
    check(&["0 0-9 ok: a1=1 r2=2", "1 0-9 ok: a2=2 r1=1"], &["G1c"]);
    check(&["0 0-9 ok: w1=1 g2=2", "1 0-9 ok: w2=2 g1=1"], &["G1c"]);
    check(&["0 0-9 ok: r1= r2=1", "1 0-9 ok: a1=1 a2=1"], &["G-single"]);
    check(&["0 0-9 ok: g1= g2=1", "1 0-9 ok: w1=1 w2=1"], &["G-single"]);
    check(&["0 0-9 ok: r1= a2=1", "1 0-9 ok: r2= a1=1"], &["G2-item"]);
    check(&["0 0-9 ok: g1= w2=1", "1 0-9 ok: g2= w1=1"], &["G2-item"]);
    check(
        &["0 0-9 ok: a1=1", "1 0-9 ok: a2=1", "2 0-9 ok: r1=1 r2=", "3 0-9 ok: r1= r2=1"],
        &["long fork"],
    );
    check(
        &[
            "0 0-9 ok: r1= a4=2",
            "1 0-9 ok: a1=1 a2=1",
            "2 0-9 ok: a2=2 r3=",
            "3 0-9 ok: a3=1 a4=1",
            "4 0-9 ok: r2=1,2 r4=1,2",
        ],
        &["G-nonadjacent"],
    );
    let lost = ["0 0-9 ok: r1= a1=1", "1 0-9 ok: r1= a1=2", "2 0-9 ok: r1=1,2"];
    check(&lost, &["G-single", "lost update"]);
    check(&["0 0-9 ok: g1= w1=1", "1 0-9 ok: g1= w1=2"], &["G2-item", "lost update"]);
}

#[test]
fn what_only_time_or_a_client_forbids_is_named_so() {
    check(&["0 0-1 ok: a1=1", "1 2-3 ok: r1="], &["G-single-realtime"]);
    check(&["0 0-1 ok: w1=1", "1 2-3 ok: g1="], &["G-single-realtime"]);
    check(
        &["0 0-1 ok: a1=1", "0 2-3 ok: r1="],
        &["G-single-process", "G-single-realtime", "read your writes"],
    );
    check(
        &["0 0-9 ok: a1=1", "1 0-1 ok: r1=1", "1 2-3 ok: r1="],
        &["G-single-process", "monotonic reads", "G-single-realtime"],
    );
    check(
        &["0 0-9 ok: w1=1", "1 0-1 ok: g1=1", "1 2-3 ok: g1="],
        &["G-single-process", "monotonic reads", "G-single-realtime"],
    );
    check(
        &["0 0-9 ok: a1=1", "1 0-1 ok: r1=1", "1 2-9 ok: a2=1", "2 0-9 ok: r1= r2=1"],
        &["G-single-process", "G-single-realtime", "writes follow reads"],
    );
}

#[test]
fn levels_forbid_what_their_definitions_forbid() {
    let check = |lines: &[&str], expected: [LevelJudgement; 4]| {
        let findings = judged(lines);
        assert_eq!(IsolationLevel::ALL.map(|level| findings.judge(level)), expected, "{lines:?}");
    };
    let (holds, violated) = (LevelJudgement::Holds, LevelJudgement::Violated);
    check(&[], [LevelJudgement::CannotTell; 4]);
    check(&["0 0-1 ok: a1=1", "1 0-1 ok: r1=1"], [holds; 4]);
    check(&["0 0-9 ok: a1=1 r2=2", "1 0-9 ok: a2=2 r1=1"], [violated; 4]);
    check(&["0 0-9 ok: r1= r2=1", "1 0-9 ok: a1=1 a2=1"], [holds, violated, violated, violated]);
    let skew = ["0 0-9 ok: r1= a2=1", "1 0-9 ok: r2= a1=1", "2 0-9 ok: r1=1 r2=1"];
    check(&skew, [holds, holds, violated, violated]);
    let stale = ["0 0-1 ok: a1=1", "1 2-3 ok: r1=", "1 4-5 ok: r1=1"];
    check(&stale, [holds, holds, holds, violated]);
}

#[test]
fn a_witness_is_the_smallest_and_says_who_when_and_why() {
    let findings = judged(&[
        "0 1000-9000 ok: r1= a2=1",
        "1 2000-9000 ok: r2= a3=1",
        "2 3000-9000 ok: r3= a1=1",
        "7 4000-9000 ok: r8= a9=1",
        "8 5000-9000 ok: r9= a8=1",
    ]);
    let skew = IsolationAnomaly::Cycle(CycleKind::G2Item, CycleOrder::Data);
    assert_eq!(findings.count(skew), 2);
    let first = findings.witnesses.iter().find(|witness| witness.anomaly == skew).unwrap();
    let expected = "\
G2-item: a cycle with adjacent anti-dependencies (write skew)
  T1 is client 7 transaction 1 on primary, 0.000004 s to 0.000009 s, committed: read 8 = [], append 1 to 9
  T2 is client 8 transaction 1 on primary, 0.000005 s to 0.000009 s, committed: read 9 = [], append 1 to 8
  T1 -rw-> T2: T1 read [] in list 8, which lacks [1] of T2
  T2 -rw-> T1: T2 read [] in list 9, which lacks [1] of T1";
    assert_eq!(first.to_string(), expected);
}

/// Each transaction reads what the one before it wrote, and the last one had ended before the first began.
#[test]
fn a_cycle_of_an_order_is_found_however_long_it_is() {
    const LENGTH: u64 = 25_000;
    let judge = |client_of_last: u32| {
        let runs = (0..LENGTH).map(|number| {
            let key = number as i64;
            let (client, begun, ended) = match number {
                0 => (0, 100, 200),
                number if number == LENGTH - 1 => (client_of_last, 0, 50),
                number => (number as u32, 0, 200),
            };
            let read = (number > 0).then(|| Plain::ReadList(key - 1, vec![key - 1]));
            let operations = read.into_iter().chain([Plain::Append(key, key)]).collect();
            Run { client, begun, ended, outcome: TransactionOutcome::Committed, operations }
        });
        history::check(&history_of(runs.collect()))
    };
    let cycle = |order| IsolationAnomaly::Cycle(CycleKind::G1c, order);
    let findings = judge(0);
    assert_eq!(findings.count(cycle(CycleOrder::Process)), 1);
    for findings in [findings, judge(LENGTH as u32)] {
        assert_eq!(findings.count(cycle(CycleOrder::Realtime)), 1);
        assert_eq!(findings.judge(IsolationLevel::Serializable), LevelJudgement::Holds);
        assert_eq!(findings.judge(IsolationLevel::StrictSerializable), LevelJudgement::Violated);
    }
}
