//! `pgrig bench --tail` against servers whose slow transactions have a planted cause.
//!
//! One cause is tested always. The others, each repeated, are a bench: `make tail`, or
//! `cargo test --test tail -- --ignored --nocapture`; `PGRIG_TAIL_RUNS` says how often (20).

mod plant;

use plant::{Plant, World};

/// Runs of the bench of which the planted cause must be named first.
const RIGHT_MIN: f64 = 0.95;

#[test]
fn of_what_a_server_does_a_lock_that_another_session_holds_is_named_first() {
    if plant::is_impossible() {
        return;
    }
    let world = World::start(Plant::Lock);
    let found = world.bench(5);
    let (cause, detail) = found.first_of_server();
    assert_eq!(cause, "lock", "{found:#?}");
    assert!(detail.contains("nightly report"), "{found:#?}");
    let by_cause = found.line("pgrig: tail by cause");
    assert!(by_cause.contains("lock held by SELECT pg_sleep(?) (nightly report)"), "{by_cause}");
    assert!(found.words.contains("/s from shared memory\n"), "{}", found.words);
    // The shares are those of all slow transactions, and what they rest on is told.
    assert!((found.sum() - found.seconds()).abs() < 1e-6 * found.seconds(), "{found:#?}");
    assert!(found.words.contains(" samples in them, "), "{}", found.words);
}

#[test]
fn a_lock_that_is_held_at_the_end_is_named_first() {
    if plant::is_impossible() {
        return;
    }
    // The transactions that wait for it have not ended at the close: they are the slowest.
    let found = World::start(Plant::LastLock).bench(4);
    assert_eq!(found.first(), "lock", "{found:#?}");
}

#[test]
fn behind_a_pooler_the_sessions_of_other_programs_are_blamed_for_nothing() {
    if plant::is_impossible() {
        return;
    }
    if let Err(error) = lab::find::pgbouncer(None) {
        testing::skip::because(error);
        return;
    }
    let found = World::start(Plant::Pooler).bench(5);
    assert_eq!(found.first_of_server().0, "pooler_queue", "{found:#?}");
    assert!(!found.has_cause("lock"), "{found:#?}");
    assert!(found.words.contains("behind a pooler, "), "{}", found.words);
    assert!(found.matched() > 0.9, "{found:#?}");
}

#[test]
#[ignore = "minutes: each planted cause, twenty times"]
fn planted_causes_are_named_first() {
    let runs: u32 = std::env::var("PGRIG_TAIL_RUNS").map_or(20, |runs| runs.parse().unwrap());
    let only = std::env::var("PGRIG_TAIL_ONLY").ok();
    let mut missed = Vec::new();
    for plant in Plant::ALL {
        if only.as_deref().is_some_and(|only| only != plant.expected()) {
            continue;
        }
        let world = World::start(plant);
        let mut right = 0;
        for run in 1..=runs {
            let found = world.bench(8);
            let is_right = found.first() == plant.expected();
            right += u32::from(is_right);
            println!("{plant:?} {run}: {}", found.line("pgrig: tail"));
        }
        println!("{plant:?}: {right} of {runs}");
        if f64::from(right) < RIGHT_MIN * f64::from(runs) {
            missed.push(format!("{plant:?}: {right} of {runs}"));
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}
