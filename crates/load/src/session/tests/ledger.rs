//! Notes of a client on its transactions, and when they are made.

use super::super::Wait;
use super::MS;
use super::client::{Client, workload};
use crate::{OnError, Protocol, grid::Grid};

const ONE: &str = "INSERT INTO log VALUES (:ledger_client, :ledger_seq, :ledger_chain);\n";

const BLOCK: &str = "BEGIN;\nINSERT INTO log VALUES (:ledger_seq);\nCOMMIT;\n";

/// The content of the ledger after `does`, chains and moments left out: `i1 a1 i2 f2:40001`.
fn noted(script: &str, does: impl FnOnce(&mut Client)) -> String {
    noted_by(Protocol::Simple, script, does)
}

fn noted_by(protocol: Protocol, script: &str, does: impl FnOnce(&mut Client)) -> String {
    let mut workload = workload(protocol, script);
    workload.on_error = OnError { tries_max: 2, go_on: true };
    let directory = tempfile::tempdir().unwrap();
    let mut client = Client::new(&workload);
    client.keeps_a_ledger(directory.path()).connects();
    does(&mut client);
    written(&mut client, directory.path())
}

/// The content of a client's ledger.
pub(super) fn written(client: &mut Client, directory: &std::path::Path) -> String {
    client.ledger.as_mut().unwrap().write().unwrap();
    let text = std::fs::read_to_string(directory.join("0.ledger")).unwrap();
    let lines = text.lines().skip(1).map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let state = words.get(4).map(|state| format!(":{state}")).unwrap_or_default();
        format!("{}{}{state}", words[0], words[2])
    });
    lines.collect::<Vec<_>>().join(" ")
}

#[test]
fn the_outcome_of_a_transaction_is_what_the_server_said() {
    let check = |script: &str, answers: &[&str], expected: &str| {
        let noted = noted(script, |client| {
            client.begins(0).hears_all(1, answers);
        });
        assert_eq!(noted, expected, "{script:?} {answers:?}");
    };
    check(ONE, &[], "i1");
    check(ONE, &["C Z:I"], "i1 a1");
    check(ONE, &["W C Z:I"], "i1 w1");
    check(ONE, &["N C Z:I"], "i1 a1");
    check(ONE, &["E:23505 Z:I"], "i1 f1:23505");
    check(BLOCK, &["C:BEGIN Z:T", "C Z:T", "C:COMMIT Z:I"], "i1 a1");
    check(BLOCK, &["C:BEGIN Z:T", "C Z:T", "W C:COMMIT Z:I"], "i1 w1");
    check(BLOCK, &["C:BEGIN Z:T", "E:23505 Z:E", "C:ROLLBACK Z:I"], "i1 f1:23505");
    check(BLOCK, &["C:BEGIN Z:T", "C Z:T", "E:23505 Z:I"], "i1 f1:23505");
    // A COMMIT that is answered with ROLLBACK.
    check(BLOCK, &["C:BEGIN Z:T", "C Z:T", "C:ROLLBACK Z:I"], "i1 f1");
    // Tried again under the same number.
    check(ONE, &["E:40001 Z:I", "C Z:I"], "i1 a1");
    check(ONE, &["E:40001 Z:I", "E:40001 Z:I"], "i1 f1:40001");
    let block_again = ["C:BEGIN Z:T", "E:40P01 Z:E", "C:ROLLBACK Z:I", "C Z:T", "C Z:T"];
    check(BLOCK, &block_again, "i1");
    // The row that it has read; a row of no transaction is none.
    let reads =
        "SELECT 4 AS ledger_read_client, 21 AS ledger_read_seq FROM log LIMIT :ledger_seq \\gset\n";
    check(reads, &["T:ledger_read_client,ledger_read_seq D:4,21 C Z:I"], "i1 r1:4 a1");
    check(reads, &["T:ledger_read_client,ledger_read_seq D:4,0 C Z:I"], "i1 a1");
    // An error after something was committed takes nothing back.
    let tail = format!("{ONE}SELECT 1/0;\n");
    check(&tail, &["C Z:I", "E:22012 Z:I"], "i1 u1");
    let combined = "BEGIN\\; INSERT INTO log VALUES (:ledger_seq)\\; COMMIT\\; SELECT 1/0;\n";
    check(combined, &["C:BEGIN C C:COMMIT E:22012 Z:I"], "i1 u1");
    check(combined, &["C:BEGIN E:23505 Z:E", "C:ROLLBACK Z:I"], "i1 f1:23505");
    // A script that decides to roll back, or to send nothing.
    check(
        "BEGIN;\nSELECT :ledger_seq;\nROLLBACK;\n",
        &["C Z:T", "C Z:T", "C:ROLLBACK Z:I"],
        "i1 f1",
    );
    check("\\if false\nSELECT :ledger_seq;\n\\endif\n", &[], "i1 n1");
    // Nothing that it sent has written its row.
    check(&format!("\\if false\n{ONE}\\endif\nSELECT 1;\n"), &["C Z:I"], "i1 n1");
    check(ONE, &["C:INSERT_0_0 Z:I"], "i1 n1");
    check(BLOCK, &["C:BEGIN Z:T", "C:INSERT_0_0 Z:T", "C:COMMIT Z:I"], "i1 n1");
    check(BLOCK, &["C:BEGIN Z:T", "C:INSERT_0_0 Z:T", "W C:COMMIT Z:I"], "i1 n1");
    check(ONE, &["C:INSERT_0_2 Z:I"], "i1 p1:2 a1");
    // It rolls back its rows after something else was committed.
    let reads = format!("SELECT 4 AS x \\gset\n{}", BLOCK.replace("COMMIT", "ROLLBACK"));
    let read = "T:x D:4 C Z:I";
    check(&reads, &[read, "C:BEGIN Z:T", "C Z:T", "C:ROLLBACK Z:I"], "i1 u1");
    check(&reads, &[read, "C:BEGIN Z:T", "C Z:T", "C:COMMIT Z:I"], "i1 a1");
    // A block without a row of the ledger may be rolled back, and a part of one with it.
    let asks = format!("BEGIN;\nSELECT 4;\nROLLBACK;\n{ONE}");
    check(&asks, &["C:BEGIN Z:T", "C Z:T", "C:ROLLBACK Z:I", "C Z:I"], "i1 a1");
    let part = BLOCK.replace("COMMIT", "ROLLBACK TO a;\nCOMMIT");
    check(&part, &["C:BEGIN Z:T", "C Z:T", "C:ROLLBACK Z:T", "C:COMMIT Z:I"], "i1 a1");
    // A two-phase commit.
    let prepares = BLOCK.replace("COMMIT", "PREPARE TRANSACTION 'a';\nSELECT 1");
    let check_end = |end: &str, expected: &str| {
        let answers = ["C:BEGIN Z:T", "C Z:T", "C:PREPARE_TRANSACTION Z:I", end];
        check(&prepares, &answers, expected);
    };
    check_end("C:COMMIT_PREPARED Z:I", "i1 a1");
    check_end("C:ROLLBACK_PREPARED Z:I", "i1 f1");
    check_end("E:42704 Z:I", "i1 u1");
    check_end("C Z:I", "i1 u1");
    check("SELECT :client_id;\n", &["C Z:I"], "");
}

/// A proxy answers for a server that may have committed before the proxy lost it.
#[test]
fn an_error_of_a_connection_behind_a_proxy_tells_no_outcome() {
    let check = |script: &str, answers: &[&str], expected: &str| {
        let noted = noted(script, |client| {
            client.begins(0).hears_all(1, answers);
        });
        assert_eq!(noted, expected, "{script:?} {answers:?}");
    };
    for sqlstate in ["08006", "08007", "40003", "XX000"] {
        check(ONE, &[&format!("E:{sqlstate} Z:I")], "i1 u1");
        check(BLOCK, &["C:BEGIN Z:T", "C Z:T", &format!("E:{sqlstate} Z:I")], "i1 u1");
        let failed = format!("i1 f1:{sqlstate}");
        let answers = ["C:BEGIN Z:T", &format!("E:{sqlstate} Z:E"), "C:ROLLBACK Z:I"];
        check(BLOCK, &answers, &failed);
    }
}

/// Each part of a pipeline is committed, or not, by its own Sync.
#[test]
fn an_error_in_one_part_of_a_pipeline_says_nothing_of_the_others() {
    let script = format!("\\startpipeline\nSELECT 1;\n\\syncpipeline\n{ONE}\\endpipeline\n");
    let check = |answers: &[&str], expected: &str| {
        let noted = noted_by(Protocol::Extended, &script, |client| {
            client.begins(0).hears_all(1, answers);
        });
        assert_eq!(noted, expected, "{answers:?}");
    };
    let (good, bad) = ("1 2 n C Z:I", "E:23505 Z:I");
    check(&[good, good], "i1 a1");
    check(&[bad, good], "i1 u1");
    check(&[good, bad], "i1 u1");
    check(&[bad, bad], "i1 f1:23505");
    // Tried again, and committed in the end.
    check(&["E:40001 Z:I", good, good, good], "i1 p1:2 a1");
    check(&["E:40001 Z:I", good, bad, bad], "i1 u1");
    // The second part rolls its row back.
    let script = script.replace("INSERT", "BEGIN;\nINSERT").replace("\\end", "ROLLBACK;\n\\end");
    let noted = noted_by(Protocol::Extended, &script, |client| {
        client.begins(0).hears_all(1, &[good, "1 2 n C:BEGIN 1 2 n C 1 2 n C:ROLLBACK Z:I"]);
    });
    assert_eq!(noted, "i1 u1");
}

#[test]
fn a_transaction_that_was_given_up_is_unknown_if_the_server_owed_an_answer() {
    let check = |script: &str, answers: &[&str], expected: &str| {
        let noted = noted(script, |client| {
            client.begins(0).hears_all(1, answers);
            client.gives_up(2);
        });
        assert_eq!(noted, expected, "{script:?} {answers:?}");
    };
    check(ONE, &[], "i1 u1 l1");
    check(ONE, &["F:57P01"], "i1 u1 l1");
    check(ONE, &["W"], "i1 u1 l1");
    check(ONE, &["C Z:I"], "i1 a1 l1");
    check(BLOCK, &["C:BEGIN Z:T", "C Z:T"], "i1 u1 l1");
    // No COMMIT was sent: nothing of it may be there.
    check(BLOCK, &[], "i1 f1 l1");
    check(BLOCK, &["C:BEGIN Z:T"], "i1 f1 l1");
    check(BLOCK, &["C:BEGIN Z:T", "F:57P01"], "i1 f1 l1");
    let comment = BLOCK.replace("COMMIT", "/* it */ -- is\n COMMIT");
    check(&comment, &["C:BEGIN Z:T"], "i1 f1 l1");
    check(&comment, &["C:BEGIN Z:T", "C Z:T"], "i1 u1 l1");
    let joined = BLOCK.replace(";\nCOMMIT", "\\; COMMIT");
    check(&joined, &["C:BEGIN Z:T"], "i1 u1 l1");
    check(BLOCK, &["C:BEGIN Z:T", "E:23505 Z:E"], "i1 f1:23505 l1");
    check(&format!("BEGIN;\n{ONE}\\sleep 9 s\nCOMMIT;\n"), &["C:BEGIN Z:T", "C Z:T"], "i1 f1 l1");
    check(&format!("\\sleep 9 s\n{ONE}"), &[], "i1 f1 l1");
    check(&format!("{ONE}\\sleep 9 s\n"), &["C Z:I"], "i1 u1 l1");
    // The simple protocol knows no pipeline: nothing is sent.
    check(&format!("\\startpipeline\n{ONE}\\endpipeline\n"), &[], "i1 f1 l1");
}

/// A commit that no longer waits for its standby looks like any other where warnings are not sent.
#[test]
fn whatever_may_have_been_committed_when_the_rig_cancels_it_is_unknown() {
    let check = |script: &str, answers: &[&str], expected: &str| {
        let noted = noted(script, |client| {
            client.grid = Grid { close: 5 * MS, cancel: 5 * MS, ..client.grid };
            client.begins(0).hears_all(6, answers);
            client.is_done();
            let counts = client.counts();
            let ends = (counts.transactions, counts.failed(), counts.aborted_clients);
            assert_eq!(ends, (0, 0, 0), "{script:?} {answers:?}");
            assert_eq!(counts.errors.len(), 0, "{script:?} {answers:?}");
            assert_eq!(client.tally.totals[0].unknown, 1, "{script:?} {answers:?}");
            assert!(client.said().iter().all(|said| !said.contains("client")));
        });
        assert_eq!(noted, expected, "{script:?} {answers:?}");
    };
    check(ONE, &["W C Z:I"], "i1 u1");
    check(ONE, &["C Z:I"], "i1 u1");
    check(ONE, &["E:57014 Z:I"], "i1 u1");
    // Another server's word for it.
    check(ONE, &["E:XX000 Z:I"], "i1 u1");
    check(BLOCK, &["C:BEGIN Z:T", "C Z:T", "W C:COMMIT Z:I"], "i1 u1");
    check(BLOCK, &["C:BEGIN Z:T", "C Z:T", "E:57014 Z:I"], "i1 u1");
    // Its COMMIT was never sent.
    check(BLOCK, &["C:BEGIN Z:T", "E:57014 Z:E"], "i1 f1");
}

/// The cancel may meet a ROLLBACK or a Parse.
#[test]
fn a_cancel_in_between_is_no_error_of_the_client() {
    let mut workload = workload(Protocol::Prepared, "SET a = 1;\nSELECT 1;\n");
    workload.on_error = OnError { tries_max: 2, go_on: true };
    let mut client = Client::new(&workload);
    client.connects().begins(0).sends("Parse P_0 SET a = 1; | Sync");
    client.grid = Grid { close: 5 * MS, cancel: 5 * MS, ..client.grid };
    client.hears(6, "E:57014 Z:I").is_done();
    assert_eq!(client.said(), Vec::<&str>::new());

    let noted = noted(BLOCK, |client| {
        client.begins(0).hears(1, "C:BEGIN Z:T").hears(1, "E:40001 Z:E");
        client.grid = Grid { close: 5 * MS, cancel: 5 * MS, ..client.grid };
        client.hears(6, "E:57014 Z:E").waits(Wait::Next);
        assert_eq!(client.said(), Vec::<&str>::new());
    });
    assert_eq!(noted, "i1 f1:40001");
}

#[test]
fn numbers_and_links_go_on_over_retries_errors_and_lost_connections() {
    let link = |seed_of: fn(&mut record::ledger::HashChain)| {
        let mut chain = record::ledger::HashChain::new(42, 0);
        seed_of(&mut chain);
        chain
    };
    let noted = noted(ONE, |client| {
        let first = link(|_| {}).value(1);
        let second = link(|chain| chain.acknowledged(chain.value(1)));
        let third = link(|chain| chain.unknown()).value(3);
        let row = |seq, chain| format!("Query INSERT INTO log VALUES (0, {seq}, {chain});");
        client.begins(0).sends(&row(1, first));
        client.hears(1, "E:40001 Z:I").sends(&row(1, first)).hears(2, "C Z:I");
        client.begins(3).sends(&row(2, second.value(2))).gives_up(4);
        client.begins(5).sends(&row(3, third)).hears(6, "E:23505 Z:I");
        // What failed is no link.
        let fourth = link(|chain| chain.unknown()).value(4);
        client.begins(7).sends(&row(4, fourth));
    });
    assert_eq!(noted, "i1 a1 i2 u2 l2 i3 f3:23505 i4");
}

/// A server says which one it is, together with the first statement that writes a row.
#[test]
fn the_server_of_a_transaction_is_known() {
    const ROW: &str = "T:pid,cluster,started,timeline,address,port,awaits";
    let check = |script: &str, answers: &[&str], expected: &str| {
        let noted = noted(script, |client| {
            client.session.hears_backend(4711);
            client.begins(0).hears_all(1, answers);
        });
        assert_eq!(noted, expected, "{script:?} {answers:?}");
    };
    let own = format!("{ROW} D:4711,9,71,1,NULL,5432,1 C:SELECT_1");
    let pooled = own.replace("4711", "4712");
    let standby = own.replace("71,1,NULL", "71,NULL,NULL");
    let [in_block, outside] = ["Z:T", "Z:I"].map(|ready| format!("{own} {ready}"));
    check(BLOCK, &["C:BEGIN Z:T", &in_block, "C Z:T", "C:COMMIT Z:I"], "i1 s1:9 a1");
    check(ONE, &[&outside, "C Z:I"], "i1 s1:9 a1");
    // Behind a pooler, the next statement may go to another server, unless there is a block.
    let answers = ["C:BEGIN Z:T", &format!("{pooled} Z:T"), "C Z:T", "C:COMMIT Z:I"];
    check(BLOCK, &answers, "i1 t1:9 a1");
    check(ONE, &[&format!("{pooled} Z:I"), "C Z:I"], "i1 a1");
    check(ONE, &[&format!("{standby} Z:I"), "E:25006 Z:I"], "i1 f1:25006");
    // It is no PostgreSQL: outside of a block nothing comes of it, inside of one this error is the cause.
    check(ONE, &["E:42883 Z:I", "C Z:I"], "i1 a1");
    let answers = ["C:BEGIN Z:T", "E:42883 Z:E", "E:25P02 Z:E", "C:ROLLBACK Z:I"];
    check(BLOCK, &answers, "i1 f1:42883");
    check(BLOCK, &["C:BEGIN Z:T", "F:57P01"], "i1");
    // A script that says itself for whom a commit waits: nobody knows, but the server is known.
    let sets = BLOCK.replace("INSERT", "SET LOCAL synchronous_commit = off;\nINSERT");
    let answers = ["C:BEGIN Z:T", "C:SET Z:T", &in_block, "C Z:T", "C:COMMIT Z:I"];
    check(&sets, &answers, "i1 s1:9 a1");
}

#[test]
fn a_connection_looks_now_and_then_and_again_once_it_is_another_one() {
    let answer = |pid: u32, ready: &str| format!("D:{pid},9,71,1,10.0.0.3,5432,0 C {ready}");
    let (own, pooled) = (answer(4711, "Z:T"), answer(4712, "Z:T"));
    let check = |looks: &[(u64, Option<&str>)], expected: &str| {
        let noted = noted(BLOCK, |client| {
            client.session.hears_backend(4711);
            for (at_ms, answer) in looks {
                client.begins(*at_ms).hears(*at_ms, "C:BEGIN Z:T");
                if let Some(answer) = answer {
                    client.hears(*at_ms, answer);
                }
                client.hears(*at_ms, "C Z:T").hears(*at_ms, "C:COMMIT Z:I");
            }
        });
        assert_eq!(noted, expected, "{looks:?}");
    };
    check(&[(0, Some(&own)), (100, None), (201, Some(&own))], "i1 s1:9 a1 i2 a2 i3 s3:9 a3");
    check(&[(0, Some(&pooled)), (1, Some(&pooled))], "i1 t1:9 a1 i2 t2:9 a2");
    let again = noted(ONE, |client| {
        client.session.hears_backend(4711);
        client.begins(0).hears(0, &answer(4711, "Z:I")).gives_up(1);
        client.connects().session.hears_backend(4712);
        client.begins(2).hears(2, &answer(4712, "Z:I")).hears(3, "C Z:I");
    });
    assert_eq!(again, "i1 s1:9 u1 l1 i2 s2:9 a2");
}
