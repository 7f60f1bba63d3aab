//! Messages, waits and counts of a session, against a scripted server in virtual time.

mod client;
mod errors;
mod history;
mod ledger;
mod retries;

use client::{Client, workload};
use errors::with_errors;
use script::Pipeline;

use super::{Block, SessionState, Wait};
use crate::{Protocol, grid::Grid};

const MS: u64 = 1_000_000;

#[test]
fn the_protocols_send_what_pgbench_sends() {
    let script = "\\set a 5\nSELECT :a;\nSELECT :a + 1;\n";
    Client::simple(script)
        .connects()
        .waits(Wait::Next)
        .begins(0)
        .sends("Query SELECT 5;")
        .hears(1, "T:x D:5 C Z:I")
        .sends("Query SELECT 5 + 1;")
        .hears(2, "T:x D:6 C Z:I")
        .is_done();

    let whole = "| Describe | Execute | Sync";
    Client::new(&workload(Protocol::Extended, script))
        .connects()
        .begins(0)
        .sends(&format!("Parse SELECT $1; | Bind [5] {whole}"))
        .hears(1, "1 2 T:x D:5 C Z:I")
        .sends(&format!("Parse SELECT $1 + 1; | Bind [5] {whole}"))
        .hears(2, "1 2 T:x D:6 C Z:I")
        .is_done();

    Client::new(&workload(Protocol::Prepared, script))
        .connects()
        .sends("Parse P_0 SELECT $1; | Sync | Parse P_1 SELECT $1 + 1; | Sync")
        .hears(0, "1 Z:I")
        .waits(Wait::Server)
        .hears(0, "1 Z:I")
        .waits(Wait::Next)
        .begins(0)
        .sends(&format!("Bind P_0 [5] {whole}"))
        .hears(1, "2 T:x D:5 C Z:I")
        .sends(&format!("Bind P_1 [5] {whole}"))
        .hears(2, "2 T:x D:6 C Z:I")
        .is_done();
}

#[test]
fn a_statement_that_cannot_be_prepared_early_is_prepared_where_it_is_used() {
    let mut client =
        Client::new(&workload(Protocol::Prepared, "CREATE TABLE t ();\nSELECT FROM t;\n"));
    client
        .connects()
        .sends("Parse P_0 CREATE TABLE t (); | Sync | Parse P_1 SELECT FROM t; | Sync")
        .hears(0, "1 Z:I E:42P01 Z:I")
        .waits(Wait::Next)
        .begins(1)
        .sends("Bind P_0 [] | Describe | Execute | Sync")
        .hears(2, "2 n C Z:I")
        .sends("Parse P_1 SELECT FROM t; | Sync")
        .hears(3, "1 Z:I")
        .sends("Bind P_1 [] | Describe | Execute | Sync")
        .hears(3, "2 T:x C Z:I")
        .is_done()
        .begins(4)
        .sends("Bind P_0 [] | Describe | Execute | Sync")
        .hears(5, "2 n C Z:I")
        .sends("Bind P_1 [] | Describe | Execute | Sync");
    assert_eq!(client.counts().errors.len(), 0, "nobody asked for it to be prepared");
}

/// The effect of `SET`, `DISCARD` and the like is there when a statement is prepared.
#[test]
fn nothing_is_prepared_early_in_a_session_that_changes() {
    let script = "discard all;\nSELECT 1;\n";
    Client::new(&workload(Protocol::Prepared, script))
        .connects()
        .waits(Wait::Next)
        .begins(0)
        .sends("Parse P_0 discard all; | Sync")
        .hears(1, "1 Z:I")
        .sends("Bind P_0 [] | Describe | Execute | Sync")
        .hears(2, "2 C Z:I")
        .sends("Parse P_1 SELECT 1; | Sync");
}

/// As in pgbench: told, then executed all the same.
#[test]
fn a_statement_that_cannot_be_prepared_is_executed_all_the_same() {
    let mut client = Client::new(&workload(Protocol::Prepared, "SELEC 1;\n"));
    client
        .connects()
        .hears(0, "E:42601 Z:I")
        .begins(1)
        .sends("Parse P_0 SELEC 1; | Sync")
        .hears(2, "E:42601 Z:I")
        .sends("Bind P_0 [] | Describe | Execute | Sync");
    client.hears(3, "E:26000 Z:I");
    let errors = &client.counts().errors;
    assert_eq!((errors["42601"], errors["26000"]), (1, 1));
}

#[test]
fn results_become_variables() {
    let mut client = Client::simple("SELECT 1 AS a, NULL AS b \\gset p_\nSELECT :p_a, '(:p_b)';\n");
    client.begins(0).hears(1, "T:a,b D:42,NULL C Z:I").sends_last("Query SELECT 42, '()';");

    let mut client = Client::simple("SELECT 1 AS a \\; SELECT 2 AS b \\aset\nSELECT :a, :b;\n");
    client.begins(0).hears(1, "T:a D:1 C T:b D:2 D:3 C Z:I").sends_last("Query SELECT 1, 3;");

    let check = |answer: &str, why: &str| {
        let mut client = Client::simple("SELECT a FROM t \\gset\n");
        client.begins(0).hears(1, answer).has_aborted(why);
        assert_eq!(client.counts().aborted_clients, 1);
    };
    let place = "client 0 script 0 command 0 query 0:";
    check("T:a C Z:I", &format!("{place} expected one row, got 0"));
    check("T:a D:1 D:2 C Z:I", &format!("{place} expected one row, got 2"));
    check("T:?column? D:1 C Z:I", &format!("{place} error storing into variable ?column?"));
    // The last result counts, also one without rows.
    let place = "client 0 script 0 command 0 query 1:";
    check("T:a D:1 C C Z:I", &format!("{place} expected one row, got 0"));

    let mut client = Client::simple("SELECT 1 AS \"?a\" \\aset\n");
    let why = "client 0 script 0 command 0 query 0: error storing into variable ?a";
    client.begins(0).hears(1, "T:?a D:1 C Z:I").has_aborted(why);
}

#[test]
fn results_become_variables_even_where_descriptions_are_left_out() {
    let mut workload = workload(Protocol::Prepared, "SELECT 1 AS a \\gset\nSELECT :a;\n");
    workload.describe = false;
    Client::new(&workload)
        .connects()
        .hears(0, "1 Z:I 1 Z:I")
        .begins(0)
        .sends_last("Bind P_0 [] | Describe | Execute | Sync")
        .hears(1, "2 T:a D:7 C Z:I")
        .sends("Bind P_1 [7] | Execute | Sync");
}

#[test]
fn conditions_choose_and_sleeps_take_their_time() {
    let script = "\\set a 2\n\\if :a = 1\nSELECT 1;\n\\elif :a = 2\nSELECT 2;\n\\else\nSELECT 3;\n\
                  \\endif\n\\sleep 5 ms\nSELECT 4;\n";
    let mut client = Client::simple(script);
    client
        .begins(10)
        .sends("Query SELECT 2;")
        .hears(12, "C Z:I")
        .waits(Wait::Until(17 * MS))
        .sends("")
        .wakes(17)
        .sends("Query SELECT 4;")
        .hears(18, "C Z:I")
        .is_done();
    let latency = client.tally.finish(0, &client.grid).cells.remove(0).latency;
    assert_eq!(latency.max_ns(), Some(8 * MS), "a sleep is part of its transaction");
}

#[test]
fn what_the_server_says_during_a_sleep_does_not_end_it() {
    let mut client = Client::simple("\\sleep 5 ms\nSELECT 1;\n");
    client.begins(0).waits(Wait::Until(5 * MS)).hears(1, "N S").waits(Wait::Server);
    assert_eq!(client.session.state, SessionState::Sleeping);
    client.step(5, |session, cx| session.wake(cx, 5 * MS));
    client.sends("Query SELECT 1;");
}

#[test]
fn pipelines_wait_once() {
    let script = "\\startpipeline\nSELECT 1;\n\\syncpipeline\nSELECT 2;\n\\endpipeline\n";
    let flight = "Parse SELECT 1; | Bind [] | Describe | Execute | Sync | \
                  Parse SELECT 2; | Bind [] | Describe | Execute | Sync";
    let mut client = with_errors(Protocol::Extended, script, 1, true);
    client
        .begins(0)
        .sends(flight)
        .hears(1, "1 2 T:x D:1 C Z:I")
        .waits(Wait::Server)
        .hears(2, "1 2 T:x D:2 C Z:I")
        .is_done();
    assert_eq!(client.session.pipeline, Pipeline::Off);

    // An error in the first part is the transaction's, whatever becomes of the second.
    client.begins(3).sends(flight).hears(4, "1 2 E:22012 Z:I 1 2 T:x D:2 C Z:I").is_done();
    let counts = client.counts();
    assert_eq!((counts.transactions, counts.other_failures), (1, 1));

    let mut client = Client::new(&workload(Protocol::Extended, script));
    client.begins(0).hears(1, "1 2 T:x D:1 C Z:I 1 2 E:22012 1 2 C Z:I");
    client.has_aborted("client 0 script 0 aborted in command 4 query 1: ERROR:  why");

    let slow = "\\startpipeline\nSELECT 1;\n\\syncpipeline\n\\sleep 5 ms\n\\endpipeline\n";
    let mut client = Client::new(&workload(Protocol::Extended, slow));
    client
        .begins(0)
        .sends("Parse SELECT 1; | Bind [] | Describe | Execute | Sync")
        .waits(Wait::Until(5 * MS))
        .hears(1, "1 2 T:x D:1 C Z:I")
        .waits(Wait::Server);
    client.step(5, |session, cx| session.wake(cx, 5 * MS));
    client.sends("Sync").hears(6, "Z:I").is_done();

    let open = "\\startpipeline\nSELECT 1;\n";
    let mut client = Client::new(&workload(Protocol::Extended, open));
    client.begins(0).has_aborted("client 0 aborted: end of script reached with pipeline open");
}

#[test]
fn frames_may_arrive_byte_by_byte() {
    let mut client = Client::simple("SELECT 1 AS a \\gset\nSELECT :a;\n");
    client.byte_by_byte = true;
    client
        .begins(0)
        .hears(1, "N T:a D:41 C Z:I")
        .sends_last("Query SELECT 41;")
        .hears(2, "T:x D:1 C Z:I")
        .is_done();
    assert!(client.session.carry.capacity() == 0, "an idle session keeps no buffer");
}

#[test]
fn garbage_ends_the_client() {
    let check = |bytes: &[u8]| {
        let mut client = Client::simple("SELECT 1;\n");
        client.begins(0).hears_bytes(1, bytes).waits(Wait::Gone);
        let counts = client.counts();
        assert_eq!(counts.errors["08P01"], 1, "{bytes:?}");
        assert_eq!(counts.aborted_clients, 1);
    };
    check(b"HTTP/1.1 400 Bad Request\r\n");
    check(b"Z\0\0\0\x01I");
    check(b"Z\0\0\0\x05?");
    check(&[b'E', 0, 0, 0, 5, b'S']);
    check(&[0xff; 64]);
}

#[test]
fn copy_is_refused() {
    let mut client = Client::simple("COPY t FROM STDIN;\n");
    client.begins(0).hears(1, "G").has_aborted("COPY is not supported in pgbench, aborting");
}

#[test]
fn scripts_that_leave_a_block_open_or_fail_in_an_expression_abort() {
    let mut client = Client::simple("BEGIN;\n");
    client.begins(0).hears(1, "C Z:T").has_aborted(
        "client 0 aborted: end of script reached without completing the last transaction",
    );
    assert_eq!(client.counts().transactions, 1, "pgbench counts it before it looks");
    let mut client = Client::simple("\\set a 1 / 0\n");
    client.begins(0).has_aborted(
        "client 0 aborted in command 0 (set) of script 0; evaluation of meta-command failed",
    );
    assert!(client.said().contains(&"division by zero"), "{:?}", client.said());
}

#[test]
fn outcomes_are_unknown_only_where_a_commit_may_have_happened() {
    let check = |script: &str, answers: &[&str], unknown: bool| {
        let mut client = Client::simple(script);
        client.begins(0);
        for (at, answer) in answers.iter().enumerate() {
            client.hears(at as u64, answer);
        }
        client.loses_its_connection(9, unknown)
    };
    let text = check("UPDATE t SET a = 1;\n", &[], true);
    assert_eq!(
        text,
        "client 0 aborted in command 0 (SQL) of script 0; perhaps the backend died while processing"
    );
    check("BEGIN;\nUPDATE t SET a = 1;\nEND;\n", &["C Z:T"], false);
    check("BEGIN;\nUPDATE t SET a = 1;\nEND;\n", &["C Z:T", "C Z:T"], true);
    check("BEGIN;\nUPDATE t SET a = 1;\nCOMMIT;\n", &["C Z:T", "C Z:T"], true);
    check("BEGIN;\nUPDATE t SET a = 1 \\; COMMIT;\n", &["C Z:T"], true);
    let text = check("BEGIN;\n\\sleep 1 s\nEND;\n", &["C Z:T", "F:57P05"], false);
    let noticed = "client 0 script 0 aborted in command 2 query 0: FATAL:  why";
    assert_eq!(text, noticed, "pgbench notices when it sends the next command");
    check("BEGIN;\nSELECT 1/0;\nEND;\n", &["C Z:T", "E:22012 Z:E"], false);

    let text = check("SELECT 1;\n", &["F:57P01"], true);
    assert_eq!(text, "client 0 script 0 aborted in command 0 query 0: FATAL:  why");
}

#[test]
fn a_new_connection_begins_from_nothing() {
    let mut client = with_errors(Protocol::Prepared, "BEGIN;\nSELECT 1;\nEND;\n", 1, false);
    client.connects().hears(0, "1 Z:I 1 Z:I 1 Z:I").begins(1).hears(2, "2 n C Z:T");
    let _ = client.loses_its_connection(3, false);
    client.session.connected();
    assert_eq!((client.session.block, client.session.state), (Block::Outside, SessionState::Idle));
    client.begins(4).sends_last("Parse P_0 BEGIN; | Sync").hears(5, "1 Z:I");
    client.sends("Bind P_0 [] | Describe | Execute | Sync");
}

#[test]
fn slots_that_are_too_late_are_skipped_and_slow_transactions_counted_late() {
    let mut workload = workload(Protocol::Simple, "SELECT 1;\n");
    workload.pace = crate::Pace::Constant(1_000.0);
    workload.latency_limit_us = Some(5_000);
    let mut client = Client::new(&workload);
    client.step(20, |session, cx| {
        session.skip(cx, 20 * MS, 10 * MS);
        session.skip(cx, 20 * MS, 11 * MS);
        Wait::Next
    });
    client.begins_late(20, 16).hears(22, "C Z:I").is_done();
    let cell = client.tally.finish(0, &client.grid).cells.remove(0);
    assert_eq!((cell.counts.skipped, cell.counts.transactions, cell.counts.late), (2, 1, 1));
    assert_eq!(cell.latency.max_ns(), Some(6 * MS), "from the intended start");
    assert_eq!(cell.service.max_ns(), Some(2 * MS), "from the send");
    assert_eq!(cell.lag.max_ns(), Some(4 * MS));
    assert_eq!(client.session.transactions, 3);
}

#[test]
fn every_statement_has_its_own_time() {
    let mut client = with_errors(Protocol::Simple, "SELECT 1;\n\\sleep 4 ms\nSELECT 2;\n", 1, true);
    client.begins(0).hears(3, "C Z:I").wakes(7).hears(8, "C Z:I").is_done();
    client.begins(10).hears(15, "E:22012 Z:I").is_done();
    let statements = &client.tally.totals[0].statements[0];
    let times: Vec<_> = statements.iter().map(|s| s.latency.max_ns().unwrap_or(0) / MS).collect();
    assert_eq!(times, [3, 4, 1]);
    assert_eq!(statements.iter().map(|s| s.failures).collect::<Vec<_>>(), [1, 0, 0]);

    let mut client = with_errors(Protocol::Simple, "SELECT 1;\n", 3, false);
    client.begins(0);
    for at in 1..=3 {
        client.hears(at, "E:40001 Z:I");
    }
    let statement = &client.tally.totals[0].statements[0][0];
    assert_eq!((statement.failures, statement.retries), (1, 2));
}

#[test]
fn a_transaction_belongs_to_the_interval_in_which_it_ends() {
    let mut client = Client::simple("SELECT 1;\n");
    client.grid = Grid { open: 1_000 * MS, close: 2_500 * MS, ..client.grid };
    let mut intervals = Vec::new();
    for (begun, ended) in [(900, 999), (999, 1_000), (1_900, 1_999), (2_000, 2_499), (2_499, 2_500)]
    {
        client.begins(begun).hears_rolled(ended, "C Z:I", &mut intervals).is_done();
    }
    intervals.push(client.tally.finish(2_600 * MS, &client.grid));
    let counted = intervals.iter().map(|interval| {
        let cell = &interval.cells[0];
        (cell.start.0 / MS, cell.length_ns / MS, cell.counts.transactions)
    });
    let expected = [(0, 1_000, 1), (1_000, 1_000, 2), (2_000, 500, 1), (2_500, 100, 1)];
    assert_eq!(counted.collect::<Vec<_>>(), expected);
    assert_eq!(client.session.in_window, 3, "two and one, neither before nor after");
    assert_eq!(client.tally.totals[0].longest_ns, 499 * MS);
}

#[test]
fn what_ends_after_the_close_counts_as_pgbench_counts() {
    let check = |warm_up: u64, due: u64, began: u64, ended: u64, expected: [u64; 3]| {
        let mut workload = workload(Protocol::Simple, "SELECT 1;\n");
        workload.pace = crate::Pace::Poisson(1.0);
        let mut client = Client::new(&workload);
        client.tally.totals[0].scripts.push(crate::ScriptOutcome::default());
        client.grid = Grid { open: warm_up * MS, close: 10 * MS, ..client.grid };
        client.begins_late(began, due).hears(ended, "C Z:I").is_done();
        let totals = &client.tally.totals[0];
        let (script, statement) = (&totals.scripts[0], &totals.statements[0][0]);
        let longest = |times: &stats::LatencyHistogram| times.max_ns().unwrap_or(0) / MS;
        let told = [&script.latency, &script.lag, &statement.latency].map(longest);
        assert_eq!(told, expected, "{warm_up} {due} {began} {ended}");
        assert_eq!(script.counts.transactions, u64::from(expected != [0; 3]));
    };
    check(0, 2, 5, 9, [7, 3, 4]);
    check(0, 2, 5, 30, [28, 3, 25]);
    check(1, 2, 5, 9, [7, 3, 4]);
    // pgbench has no warm-up: after one, the window counts.
    check(1, 2, 5, 30, [0, 0, 0]);
}

#[test]
fn a_query_that_the_load_itself_cancels_is_no_failure() {
    let mut client = Client::simple("SELECT pg_sleep(60);\n");
    client.grid = Grid { close: 10 * MS, cancel: 10 * MS, ..client.grid };
    client.begins(0).hears(11, "E:57014 Z:I").waits(Wait::Next);
    let counts = client.counts();
    assert_eq!((counts.aborted_clients, counts.failed(), counts.transactions), (0, 0, 0));
    assert!(counts.errors.is_empty(), "{:?}", counts.errors);

    let mut client = Client::simple("SELECT pg_sleep(60);\n");
    client.begins(0).hears(11, "E:57014 Z:I").waits(Wait::Gone);
}

#[test]
fn an_idle_session_is_small() {
    assert!(size_of::<super::Session>() <= 512, "{}", size_of::<super::Session>());
    assert!(size_of::<crate::lane::Slot>() <= 768, "{}", size_of::<crate::lane::Slot>());
}

#[test]
fn a_transaction_allocates_nothing() {
    let script = "\\set a random(1, 100000)\nBEGIN;\nSELECT :a;\nUPDATE t SET a = :a;\nEND;\n";
    let allocations = |protocol| {
        let mut client = Client::new(&workload(protocol, script));
        client.connects().hears(0, "1 Z:I 1 Z:I 1 Z:I 1 Z:I");
        let answers = ["2 n C Z:T", "2 T:x D:1 C Z:T", "2 n C Z:T", "2 n C Z:I"];
        let answers = answers.map(client::messages);
        let mut transaction = |at| {
            client.begins(at);
            for answer in &answers {
                client.hears_bytes(at, answer);
            }
            client.waits(Wait::Next);
        };
        // Histograms and buffers grow once.
        transaction(1);
        allocation_counter::measure(|| (0..100).for_each(|_| transaction(1))).count_total
    };
    assert_eq!(allocations(Protocol::Prepared), 0);
    assert_eq!(allocations(Protocol::Extended), 0);
    assert_eq!(allocations(Protocol::Simple), 0);
}

#[test]
fn no_answer_makes_a_session_panic() {
    let script = "SELECT 1 AS a \\gset\nBEGIN;\nSELECT :a;\nEND;\n";
    let tags = b"RK23CdcGHWDIEVvnNAtS1sZTZZCC";
    let mut prng = script::Xoroshiro128::from_seed(11);
    for round in 0..5_000 {
        let protocol = if round % 2 == 0 { Protocol::Simple } else { Protocol::Prepared };
        let mut client = with_errors(protocol, script, 2, round % 3 == 0);
        client.connects();
        if round % 5 != 0 {
            client.hears(0, "1 Z:I 1 Z:I 1 Z:I 1 Z:I").begins(0);
        }
        for _ in 0..8 {
            let tag = tags[prng.uniform(0, tags.len() as i64 - 1) as usize];
            let length = if tag == b'Z' { 1 } else { prng.uniform(0, 12) as u32 };
            let mut bytes = vec![tag];
            bytes.extend((length + 4).to_be_bytes());
            for _ in 0..length {
                let byte = if tag == b'Z' {
                    b"ITEI"[prng.uniform(0, 3) as usize]
                } else {
                    prng.uniform(0, 3) as u8
                };
                bytes.push(byte);
            }
            client.hears_bytes(1, &bytes);
            if client.session.state == SessionState::Aborted {
                break;
            }
        }
    }
}

#[test]
fn a_new_connection_does_not_wait_for_the_shell_command_of_the_lost_one() {
    let mut client = Client::simple("\\sleep 1 ms\nSELECT 1;\n\\shell sleep 1\n");
    client.connects().begins(0).wakes(1).sends("Query SELECT 1;").hears(1, "C Z:I");
    client.waits(Wait::Until(2 * MS)).gives_up(2);
    client.begins(3).wakes(4).sends("Query SELECT 1;");
}

#[test]
fn a_client_keeps_no_more_of_a_message_than_its_share() {
    let long = |tag: u8, body: u32| [&[tag], &(body + 4).to_be_bytes()[..], &[b'x'; 100]].concat();
    // Rows that nobody looks at are not kept, however long.
    let mut client = Client::simple("SELECT 1;\n");
    client.begins(0).hears_bytes(1, &long(b'D', 1 << 29)).waits(Wait::Server);
    assert_eq!(
        (client.session.carry.capacity(), client.session.unread_bytes),
        (0, (1 << 29) - 100)
    );
    client.session.unread_bytes = 1;
    client.hears_bytes(2, b"x").hears(2, "C Z:I").is_done();

    let check = |script: &str, bytes: &[u8], expected: &str| {
        let mut client = Client::simple(script);
        client.begins(0).hears_bytes(1, bytes).waits(Wait::Gone);
        assert!(client.said().iter().any(|said| said.contains(expected)), "{:?}", client.said());
        assert_eq!(client.counts().errors["08P01"], 1);
        assert_eq!(client.session.carry.capacity(), 0);
    };
    let kept = "SELECT 1 AS a \\gset\n";
    check(kept, &long(b'D', 1 << 29), "more than the 1048576 that a client");
    check(kept, &long(b'T', 1 << 29), "a RowDescription message of 536870917 bytes");
    check("SELECT 1;\n", &long(b'E', 1 << 20), "more than the 262144 that a client");
    check("SELECT 1;\n", &long(b'N', 1 << 29), "a NoticeResponse message of 536870917 bytes");
    let share = crate::program::message_bytes_max;
    assert_eq!((share(1), share(1024), share(1 << 20)), (64 << 20, 1 << 20, 8 << 10));
}
