//! Deadlines, and retries by the client's own rule: when, with which numbers, and what a ledger is told of each.

use super::super::{SessionState, Wait};
use super::MS;
use super::client::{Client, workload};
use super::ledger::written;
use crate::{ClientGroup, GiveUp, OnError, Pace, Protocol, RetryPause, RetryPolicy, grid::Grid};

const INSERT: &str =
    "BEGIN;\nINSERT INTO log VALUES (:ledger_client, :ledger_seq, :ledger_chain);\nCOMMIT;\n";

/// A workload that tries again 10 ms after the errors of these SQLSTATEs.
fn retrying(script: &str, errors: &[&str], give_up: GiveUp) -> ClientGroup {
    let errors = errors.iter().map(|state| (*state).to_owned()).collect();
    let pause = Some(RetryPause::Fixed(10_000));
    ClientGroup {
        on_error: OnError { tries_max: 1, go_on: true },
        retry: Some(RetryPolicy { pause, errors, give_up }),
        ..workload(Protocol::Simple, script)
    }
}

#[test]
fn an_answer_after_the_deadline_is_no_good() {
    let check = |due: u64, began: u64, ended: u64, expected_missed: u64| {
        let mut workload = workload(Protocol::Simple, "SELECT 1;\n");
        (workload.pace, workload.deadline_us) = (Pace::Poisson(1.0), Some(5_000));
        let mut client = Client::new(&workload);
        client.begins_late(began, due).hears(ended, "C Z:I").is_done();
        let counts = client.counts();
        assert_eq!((counts.transactions, counts.missed), (1, expected_missed), "{due} {ended}");
        assert_eq!(counts.good(), 1 - expected_missed);
        let session = &client.session;
        assert_eq!((session.in_window, session.good_in_window), (1, 1 - expected_missed));
    };
    check(1, 1, 6, 0);
    check(1, 1, 7, 1);
    // It waits since it was due, whenever it began.
    check(1, 6, 7, 1);
}

#[test]
fn a_refusal_is_tried_again_after_its_pause_with_the_same_numbers() {
    let script = "\\set a random(1, 1000000)\nBEGIN;\nSELECT :a;\nEND;\n";
    let mut client = Client::new(&retrying(script, &["53", "40001"], GiveUp::default()));
    client.begins(0).sends("Query BEGIN;").hears(1, "C Z:T");
    let query = format!("Query SELECT {};", client.variable("a"));
    client
        .sends(&query)
        .hears(2, "E:53G02 Z:E")
        .sends("Query ROLLBACK")
        .hears(3, "C Z:I")
        .waits(Wait::Until(13 * MS))
        .wakes(13)
        .sends("Query BEGIN;")
        .hears(14, "C Z:T")
        .sends(&query)
        .hears(15, "C Z:T")
        .hears(16, "C Z:I")
        .is_done();
    let cell = client.tally.finish(0, &client.grid).cells.remove(0);
    assert_eq!((cell.counts.transactions, cell.counts.retried, cell.counts.retries), (1, 1, 1));
    assert_eq!(cell.latency.max_ns(), Some(16 * MS), "since it was due");
}

#[test]
fn a_transaction_is_given_up_by_tries_by_time_and_by_error() {
    let check = |give_up: GiveUp, state: &str, expected_tries: u32| {
        let mut client = Client::new(&retrying("SELECT 1;\n", &["53"], give_up));
        client.begins(0);
        let mut at = 5;
        for _ in 1..expected_tries {
            client.hears(at, &format!("E:{state} Z:I")).wakes(at + 10);
            at += 15;
        }
        client.hears(at, &format!("E:{state} Z:I")).is_done();
        let counts = client.counts();
        let failed = (counts.other_failures, counts.retries);
        assert_eq!(failed, (1, u64::from(expected_tries) - 1), "{give_up:?} {state}");
    };
    let tries = |tries| GiveUp { tries: Some(tries), after_us: None };
    check(tries(1), "53G01", 1);
    check(tries(4), "53300", 4);
    check(GiveUp { tries: None, after_us: Some(30_000) }, "53G01", 3);
    check(tries(4), "22012", 1);
}

#[test]
fn nothing_is_tried_again_after_the_close() {
    let mut client = Client::new(&retrying("SELECT 1;\n", &["53"], GiveUp::default()));
    client.grid = Grid { close: 10 * MS, ..client.grid };
    client.begins(0).hears(10, "E:53300 Z:I").is_done();
    assert_eq!((client.counts().failed(), client.counts().retries), (0, 0));
}

#[test]
fn each_try_is_a_transaction_of_its_own_in_the_ledger() {
    let directory = tempfile::tempdir().unwrap();
    let mut client = Client::new(&retrying(INSERT, &["40001"], GiveUp::default()));
    client.keeps_a_ledger(directory.path());
    client
        .begins(0)
        .hears_all(1, &["C:BEGIN Z:T"])
        .hears(2, "E:40001 Z:E")
        .hears(3, "C:ROLLBACK Z:I")
        .wakes(13)
        .hears(14, "C:BEGIN Z:T")
        .hears(15, "C:INSERT_0_1 Z:T")
        .hears(16, "C:COMMIT Z:I")
        .is_done();
    assert_eq!(written(&mut client, directory.path()), "i1 f1:40001 i2 a2");
}

#[test]
fn a_commit_whose_answer_is_lost_is_tried_again_under_another_number() {
    let directory = tempfile::tempdir().unwrap();
    let mut client = Client::new(&retrying(INSERT, &["08"], GiveUp::default()));
    client.keeps_a_ledger(directory.path());
    client.begins(0).hears(1, "C:BEGIN Z:T").hears(2, "C:INSERT_0_1 Z:T").sends("Query COMMIT;");
    client.step(3, |session, cx| {
        session.fails_with("08006");
        session.is_unserved(cx, 3 * MS);
        session.note_unfinished(cx, 3 * MS);
        assert!(session.is_tried_after_loss(cx, 3 * MS));
        session.connected();
        Wait::Until(13 * MS)
    });
    assert_eq!(client.session.state, SessionState::Retrying(13 * MS), "it outlives the connection");
    client
        .wakes(13)
        .sends("Query BEGIN;")
        .hears(14, "C:BEGIN Z:T")
        .hears(15, "C:INSERT_0_1 Z:T")
        .hears(16, "C:COMMIT Z:I")
        .is_done();
    assert_eq!(written(&mut client, directory.path()), "i1 u1 i2 a2");
    let served = &client.tally.totals[0].served;
    assert_eq!((served.count(), served.max_ns()), (1, Some(13 * MS)), "served again after 13 ms");
}
