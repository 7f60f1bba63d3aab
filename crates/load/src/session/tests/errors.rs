//! Transactions that fail: tried again, given up, counted, or the end of their client.

use super::super::Wait;
use super::MS;
use super::client::{Client, workload};
use crate::{OnError, Protocol, grid::Grid};

pub(super) fn with_errors(protocol: Protocol, script: &str, tries_max: u32, go_on: bool) -> Client {
    let mut workload = workload(protocol, script);
    workload.on_error = OnError { tries_max, go_on };
    Client::new(&workload)
}

#[test]
fn retries_draw_the_same_numbers_and_keep_the_first_start() {
    let script = "\\set a random(1, 1000000)\nBEGIN;\nSELECT :a;\nEND;\n";
    let mut client = with_errors(Protocol::Simple, script, 3, false);
    client.begins(0).sends("Query BEGIN;").hears(1, "C Z:T");
    let number = client.variable("a");
    let query = format!("Query SELECT {number};");
    client
        .sends(&query)
        .hears(2, "E:40001 Z:E")
        .sends("Query ROLLBACK")
        .hears(3, "C Z:I")
        .sends("Query BEGIN;")
        .hears(4, "C Z:T")
        .sends(&query)
        .hears(5, "E:40P01 Z:E")
        .sends("Query ROLLBACK")
        .hears(6, "C Z:I")
        .sends("Query BEGIN;")
        .hears(7, "C Z:T")
        .sends(&query)
        .hears(8, "T:x D:1 C Z:T")
        .sends("Query END;")
        .hears(9, "C Z:I")
        .is_done();
    assert_eq!(client.session.began, 0);
    let cell = client.tally.finish(0, &client.grid).cells.remove(0);
    assert_eq!((cell.counts.transactions, cell.counts.retried, cell.counts.retries), (1, 1, 2));
    assert_eq!(cell.latency.max_ns(), Some(9 * MS));
    let errors: Vec<_> = cell.counts.errors.into_iter().collect();
    assert_eq!(errors, [("40001".to_owned(), 1), ("40P01".to_owned(), 1)]);

    client.begins(20).sends("Query BEGIN;");
    assert_ne!(client.variable("a"), number, "the next transaction draws on");
}

#[test]
fn a_transaction_is_given_up_after_its_last_try() {
    let check = |state: &str, tries: u32, expected: (u64, u64, u64)| {
        let mut client = with_errors(Protocol::Simple, "UPDATE t SET a = 1;\n", tries, false);
        client.begins(0);
        for at in 1..=u64::from(tries) {
            client.sends("Query UPDATE t SET a = 1;").hears(at, &format!("E:{state} Z:I"));
        }
        client.is_done();
        let counts = client.counts();
        let failures = (counts.serialization_failures, counts.deadlock_failures, counts.retries);
        assert_eq!(failures, expected, "{state} with {tries} tries");
        assert_eq!((counts.transactions, counts.aborted_clients), (0, 0));
    };
    check("40001", 1, (1, 0, 0));
    check("40001", 4, (1, 0, 3));
    check("40P01", 2, (0, 1, 1));
}

#[test]
fn a_transaction_that_fails_when_time_is_over_is_neither_processed_nor_failed() {
    let block = "BEGIN;\nSELECT 1;\nEND;\n";
    let check = |script: &str, tries, go_on, answers: &[&str]| {
        let mut client = with_errors(Protocol::Simple, script, tries, go_on);
        client.grid = Grid { close: 10 * MS, ..client.grid };
        client.begins(0);
        for (at, answer) in (11 - answers.len() as u64..).zip(answers) {
            client.hears(at, answer);
        }
        client.waits(Wait::Next);
        let counts = client.counts();
        let context = format!("{script:?} {tries} {answers:?}");
        assert_eq!((counts.transactions, counts.failed()), (0, 0), "{context}");
        assert_eq!((counts.retried, counts.retries), (0, 0), "{context}");
        let statements = client.tally.totals[0].statements.iter().flatten();
        let told: u64 = statements.map(|one| one.failures + one.retries).sum();
        assert_eq!(told, 0, "{context}");
    };
    check("SELECT 1;\n", 0, false, &["E:40001 Z:I", "E:40001 Z:I"]);
    check("SELECT 1;\n", 1, false, &["E:40001 Z:I"]);
    check("SELECT 1;\n", 1, true, &["E:22012 Z:I"]);
    check(block, 0, false, &["C:BEGIN Z:T", "E:40P01 Z:E", "C:ROLLBACK Z:I"]);
}

#[test]
fn nobody_tries_again_past_the_latency_limit() {
    let mut workload = workload(Protocol::Simple, "SELECT 1;\n");
    workload.on_error.tries_max = 0;
    workload.latency_limit_us = Some(5_000);
    let mut client = Client::new(&workload);
    client.begins(0).hears(5, "E:40001 Z:I").waits(Wait::Server).hears(6, "E:40001 Z:I");
    client.waits(Wait::Next);
    assert_eq!(client.counts().serialization_failures, 1);
}

#[test]
fn other_errors_abort_the_client_or_are_counted() {
    let mut client = Client::simple("SELECT 1/0;\n");
    client.begins(0).hears(1, "E:22012 Z:I");
    client.has_aborted("client 0 script 0 aborted in command 0 query 0: ERROR:  why");
    let counts = client.counts();
    assert_eq!((counts.aborted_clients, counts.other_failures), (1, 0));
    assert_eq!(counts.errors["22012"], 1);

    let mut client = with_errors(Protocol::Simple, "BEGIN;\nSELECT 1/0;\nEND;\n", 1, true);
    client
        .begins(0)
        .hears(1, "C Z:T")
        .sends_last("Query SELECT 1/0;")
        .hears(2, "E:22012 Z:E")
        .sends("Query ROLLBACK")
        .hears(3, "C Z:I")
        .is_done();
    let counts = client.counts();
    assert_eq!((counts.aborted_clients, counts.other_failures, counts.retries), (0, 1, 0));
}
