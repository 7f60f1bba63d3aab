//! Notes of a client on its transactions in a history.

use super::super::Wait;
use super::client::{Client, workload};
use crate::{OnError, Protocol};

const LIST: &str = "BEGIN;\n-- \\history append 7 :history_value\nUPDATE lists;\n\
                    -- \\history list 7\nSELECT elements;\nCOMMIT;\n";

/// What a history has of the first client after `does`, moments left out.
fn noted(script: &str, does: impl FnOnce(&mut Client)) -> String {
    let mut workload = workload(Protocol::Simple, script);
    workload.on_error = OnError { tries_max: 2, go_on: true };
    let directory = tempfile::tempdir().unwrap();
    let mut client = Client::new(&workload);
    client.keeps_a_history(directory.path()).connects();
    client.session.hears_backend(4711);
    does(&mut client);
    client.history.as_mut().unwrap().write_all().unwrap();
    let text = std::fs::read_to_string(directory.path().join("0.history")).unwrap();
    let lines = text.lines().skip_while(|line| !line.starts_with("c ")).map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let words = match words[0] {
            "c" | "b" | "o" | "f" | "u" => &words[..words.len() - 1],
            _ => &words[..],
        };
        words.join(" ")
    });
    lines.collect::<Vec<_>>().join(", ")
}

#[test]
fn what_a_transaction_writes_and_reads_is_noted() {
    let check = |script: &str, answers: &[&str], expected: &str| {
        let noted = noted(script, |client| {
            client.begins(0).hears_all(1, answers);
        });
        assert_eq!(noted, expected, "{script:?} {answers:?}");
    };
    let begins = "c 0 0 4711, b 0 1";
    let writes = format!("{begins}, a 0 7 48");
    check(LIST, &[], begins);
    // The write is noted before anything of it is sent.
    check(LIST, &["C:BEGIN Z:T"], &writes);
    let all = ["C:BEGIN Z:T", "C Z:T", "T:v D:48 C Z:T", "C:COMMIT Z:I"];
    check(LIST, &all, &format!("{writes}, l 0 7 0 48, o 0"));
    let none = ["C:BEGIN Z:T", "C Z:T", "T:v C Z:T", "C:ROLLBACK Z:I"];
    check(LIST, &none, &format!("{writes}, l 0 7 0, f 0"));
    let after = format!("SELECT 1;\n{LIST}");
    check(
        &after,
        &["C Z:I", all[0], all[1], all[2], "C:ROLLBACK Z:I"],
        &format!("{writes}, l 0 7 0 48, u 0"),
    );
    // What is tried again is another transaction, with another value.
    let again = ["C:BEGIN Z:T", "E:40001 Z:E", "C:ROLLBACK Z:I", "C:BEGIN Z:T"];
    check(LIST, &again, &format!("{writes}, f 0, b 0 2, a 0 7 96"));
    let register = "-- \\history register 3\nSELECT x;\n";
    check(register, &["T:v D:12 C Z:I"], &format!("{begins}, r 0 3 12, o 0"));
    check(register, &["T:v C Z:I"], &format!("{begins}, r 0 3, o 0"));
    let accounts = "-- \\history accounts 10\nSELECT x;\n";
    check(accounts, &["T:v D:{10} C Z:I"], &format!("{begins}, s 0 10 10, o 0"));
}

#[test]
fn a_write_that_changed_no_row_or_was_taken_back_is_withdrawn() {
    let check = |script: &str, answers: &[&str], expected: &str| {
        let noted = noted(script, |client| {
            client.begins(0).hears_all(1, answers);
        });
        assert_eq!(noted, format!("c 0 0 4711, b 0 1, {expected}"), "{script:?} {answers:?}");
    };
    let one = "-- \\history append 7 1\nUPDATE lists;\n";
    for (tag, is_written) in [
        ("UPDATE 1", true),
        ("UPDATE 0", false),
        ("INSERT 0 1", true),
        ("INSERT 0 0", false),
        ("MERGE 0", false),
        ("DELETE 0", false),
        ("SELECT 1", true),
        ("SELECT 0", false),
        // They say nothing of rows.
        ("CALL", true),
        ("DO", true),
    ] {
        let tag = tag.replace(' ', "_");
        let expected = if is_written { "a 0 7 1, o 0" } else { "a 0 7 1, d 0 1, o 0" };
        check(one, &[&format!("C:{tag} Z:I")], expected);
    }
    // Of several statements of a command, those that change rows count.
    let joined = "-- \\history append 7 1\nSELECT 1\\; UPDATE lists;\n";
    check(joined, &["C:SELECT_1 C:UPDATE_0 Z:I"], "a 0 7 1, d 0 1, o 0");
    check(joined, &["C:SELECT_0 C:UPDATE_1 Z:I"], "a 0 7 1, o 0");
    // What the statement returns of a row that it has not changed is nothing that was read.
    let returned =
        "-- \\history append 7 1\n-- \\history list 7\nUPDATE lists RETURNING elements;\n";
    check(returned, &["T:v C:UPDATE_0 Z:I"], "a 0 7 1, l 0 7 0, d 0 1, o 0");

    let savepoints = format!(
        "BEGIN;\n{one}SAVEPOINT a;\n{one}SAVEPOINT b;\n{one}ROLLBACK TO b;\n{one}ROLLBACK TO a;\nCOMMIT;\n"
    );
    let (wrote, done) = ("C:UPDATE_1 Z:T", "C:SAVEPOINT Z:T");
    let answers = [
        "C:BEGIN Z:T",
        wrote,
        done,
        wrote,
        done,
        wrote,
        "C:ROLLBACK Z:T",
        wrote,
        "C:ROLLBACK Z:T",
        "C:COMMIT Z:I",
    ];
    check(&savepoints, &answers, "a 0 7 1, a 0 7 1, a 0 7 1, d 0 1, a 0 7 1, d 0 2, o 0");
}

#[test]
fn what_nobody_heard_of_is_unknown_and_the_next_connection_is_another_session() {
    let lost = noted(LIST, |client| {
        client.begins(0).hears(1, "C:BEGIN Z:T").hears(1, "C Z:T").hears(1, "T:v D:48 C Z:T");
        client.gives_up(2).begins(3);
    });
    assert_eq!(lost, "c 0 0 4711, b 0 1, a 0 7 48, l 0 7 0 48, u 0, c 0 0 0, b 0 2");
}

#[test]
fn what_is_read_must_be_a_list() {
    let text = noted(LIST, |client| {
        client.begins(0).hears(1, "C:BEGIN Z:T").hears(1, "C Z:T").hears(1, "T:v D:one C Z:T");
        client.waits(Wait::Gone);
    });
    assert!(text.starts_with("c 0 0 4711, b 0 1, a 0 7 48"), "{text}");
}
