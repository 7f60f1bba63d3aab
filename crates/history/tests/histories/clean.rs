//! A database that keeps its level is never accused.

use history::{Anomaly, Judgement, Level};
use stats::Prng;

use crate::simulated::{Simulation, simulate};
use crate::written::history_of;

/// Judges so many histories of a database at each level; says how often a stricter level was broken.
fn check(level: Level, histories: u64) -> usize {
    let (mut stricter, mut held) = (0, 0);
    for seed in 0..histories {
        let runs = simulate(Simulation::new(level), &mut Prng::new(seed));
        let findings = history::check(&history_of(runs));
        let words: Vec<String> = findings.witnesses.iter().map(ToString::to_string).collect();
        assert!(findings.faults.is_empty(), "seed {seed}: {:?}", findings.faults);
        let judged = findings.judge(level);
        assert_ne!(judged, Judgement::Violated, "seed {seed} at {level}: {}", words.join("\n"));
        held += usize::from(judged == Judgement::Holds);
        if level >= Level::RepeatableRead {
            for session in
                [Anomaly::MonotonicReads, Anomaly::ReadYourWrites, Anomaly::WritesFollowReads]
            {
                assert_eq!(findings.count(session), 0, "seed {seed}: {}", words.join("\n"));
            }
        }
        stricter += usize::from(findings.judge(Level::StrictSerializable) == Judgement::Violated);
    }
    // Where the order of a register's versions is a guess, it may be a wrong one.
    assert!(held as u64 * 100 >= histories * 99, "{level}: {held} of {histories} hold");
    stricter
}

#[test]
fn no_clean_history_is_accused() {
    assert_eq!(check(Level::StrictSerializable, 10_000), 0);
}

#[test]
fn snapshot_isolation_shows_write_skew_and_nothing_worse() {
    assert!(check(Level::RepeatableRead, 2_000) > 100);
}

#[test]
fn read_committed_shows_what_it_permits_and_nothing_worse() {
    assert!(check(Level::ReadCommitted, 2_000) > 1_000);
}
