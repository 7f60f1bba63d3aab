//! A database that keeps its level is never accused.

use history::{IsolationAnomaly, IsolationLevel, LevelJudgement};
use stats::Prng;

use crate::simulated::{Simulation, simulate};
use crate::written::history_of;

/// Judges so many histories of a database at each level; says how often a stricter level was broken.
fn check(level: IsolationLevel, histories: u64) -> usize {
    let (mut stricter, mut held) = (0, 0);
    for seed in 0..histories {
        let runs = simulate(Simulation::new(level), &mut Prng::new(seed));
        let findings = history::check(&history_of(runs));
        let words: Vec<String> = findings.witnesses.iter().map(ToString::to_string).collect();
        assert!(findings.faults.is_empty(), "seed {seed}: {:?}", findings.faults);
        let judged = findings.judge(level);
        assert_ne!(
            judged,
            LevelJudgement::Violated,
            "seed {seed} at {level}: {}",
            words.join("\n")
        );
        held += usize::from(judged == LevelJudgement::Holds);
        if level >= IsolationLevel::RepeatableRead {
            for session in [
                IsolationAnomaly::MonotonicReads,
                IsolationAnomaly::ReadYourWrites,
                IsolationAnomaly::WritesFollowReads,
            ] {
                assert_eq!(findings.count(session), 0, "seed {seed}: {}", words.join("\n"));
            }
        }
        stricter += usize::from(
            findings.judge(IsolationLevel::StrictSerializable) == LevelJudgement::Violated,
        );
    }
    // Where the order of a register's versions is a guess, it may be a wrong one.
    assert!(held as u64 * 100 >= histories * 99, "{level}: {held} of {histories} hold");
    stricter
}

#[test]
fn no_clean_history_is_accused() {
    assert_eq!(check(IsolationLevel::StrictSerializable, 10_000), 0);
}

#[test]
fn snapshot_isolation_shows_write_skew_and_nothing_worse() {
    assert!(check(IsolationLevel::RepeatableRead, 2_000) > 100);
}

#[test]
fn read_committed_shows_what_it_permits_and_nothing_worse() {
    assert!(check(IsolationLevel::ReadCommitted, 2_000) > 1_000);
}
