//! The file of a history: what is written is read again, and what is wrong with one is told.

use history::file::{HistoryWriter, ReadError, list_of, read};
use history::{
    FaultKind, History, HistoryFault, HistoryWorkload, IsolationLevel, LevelJudgement, Operation,
    TransactionOutcome, check as judge,
};
use proptest::prelude::*;

fn group() -> HistoryWorkload {
    let [server, isolation, workload] = ["primary", "repeatable read", "mixed"].map(str::to_owned);
    HistoryWorkload { server, isolation, workload }
}

/// What is done to a list, over and over: enough lists that a file forgets them.
#[derive(Clone, Debug)]
struct Did {
    key: i64,
    length: usize,
    outcome: TransactionOutcome,
}

fn did() -> impl Strategy<Value = Did> {
    let outcomes =
        [TransactionOutcome::Committed, TransactionOutcome::Failed, TransactionOutcome::Unknown];
    (-3..3i64, 0..9usize, prop::sample::select(outcomes.to_vec()))
        .prop_map(|(key, length, outcome)| Did { key, length, outcome })
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(all in prop::collection::vec(did(), 0..40)) {
        let mut recorder = HistoryWriter::default();
        let mut out = HistoryWriter::header([&group()], 1);
        recorder.connected(&mut out, 3, 0, 4711, 5);
        let list = |did: &Did| (0..did.length as i64).map(|at| at * did.key).collect::<Vec<_>>();
        for (number, did) in (1..).zip(&all) {
            recorder.begins(&mut out, 3, number, number * 10);
            recorder.appends(&mut out, 3, did.key, i64::MIN + number as i64);
            recorder.writes(&mut out, 3, did.key, i64::MAX);
            recorder.has_read_list(&mut out, 3, did.key, &list(did));
            recorder.has_read(&mut out, 3, did.key, None);
            recorder.has_read(&mut out, 3, did.key, Some(-1));
            recorder.has_read_accounts(&mut out, 3, 10, &list(did));
            recorder.ends(&mut out, 3, did.outcome, number * 10 + 5);
        }
        recorder.finishes(&mut out);
        let mut history = History::default();
        read(&mut history, "0.history", out.as_slice()).unwrap();
        prop_assert_eq!(history.faults(), &[]);
        prop_assert_eq!(history.transactions().len(), all.len());
        for (number, (transaction, did)) in (1..).zip(history.transactions().iter().zip(&all)) {
            prop_assert_eq!(transaction.number, number);
            prop_assert_eq!(transaction.begun, number * 10);
            prop_assert_eq!(transaction.outcome, did.outcome);
            let is_unknown = did.outcome == TransactionOutcome::Unknown;
            prop_assert_eq!(transaction.ended, if is_unknown { u64::MAX } else { number * 10 + 5 });
            prop_assert_eq!(history.group(transaction), &group());
            prop_assert_eq!(history.session(transaction).backend, 4711);
            let operations = history.operations(transaction);
            let [append, write, read_list, nothing, value, accounts] = operations else {
                panic!("{operations:?}")
            };
            let is_append =
                matches!(append, Operation::Append { value, .. } if *value == i64::MIN + number as i64);
            prop_assert!(is_append);
            let is_write = matches!(write, Operation::Write { value: i64::MAX, .. });
            prop_assert!(is_write);
            let Operation::ReadList { key, list: read } = read_list else { panic!("{read_list:?}") };
            prop_assert_eq!(history.key(*key).1, did.key);
            prop_assert_eq!(history.elements(*read), &list(did)[..]);
            let is_nothing = matches!(nothing, Operation::ReadNothing { .. });
            let is_value = matches!(value, Operation::Read { value: -1, .. });
            prop_assert!(is_nothing && is_value);
            let Operation::ReadAccounts { total, balances } = accounts else { panic!("{accounts:?}") };
            prop_assert_eq!((*total, history.elements(*balances)), (10, &list(did)[..]));
        }
    }

    #[test]
    fn nothing_that_a_file_holds_stops_the_reader(lines in prop::collection::vec("[a-z] [0-9 -]{0,12}", 0..30)) {
        let text = format!("history 1\ng 0\tp\ti\tw\nc 1 0 1 1\n{}\n", lines.join("\n"));
        let mut history = History::default();
        read(&mut history, "0.history", text.as_bytes()).unwrap();
        let _ = judge(&history);
    }
}

#[test]
fn a_file_forgets_lists_before_it_knows_too_many() {
    let mut recorder = HistoryWriter::default();
    let mut out = HistoryWriter::header([&group()], 1);
    recorder.connected(&mut out, 0, 0, 1, 1);
    recorder.begins(&mut out, 0, 1, 1);
    for round in 0..3 {
        for key in 0..6_000 {
            recorder.has_read_list(&mut out, 0, key, &[key, key + round]);
        }
    }
    recorder.ends(&mut out, 0, TransactionOutcome::Committed, 2);
    recorder.finishes(&mut out);
    assert!(out.windows(3).any(|window| window == b"\nx\n"));
    let mut history = History::default();
    read(&mut history, "0.history", out.as_slice()).unwrap();
    assert_eq!(history.faults(), &[]);
    let operations = history.operations(&history.transactions()[0]);
    for (at, operation) in (0..).zip(operations) {
        let Operation::ReadList { list, .. } = operation else { panic!("{operation:?}") };
        assert_eq!(history.elements(*list), [at % 6_000, at % 6_000 + at / 6_000]);
    }
}

#[test]
fn a_history_of_another_version_or_none_is_refused() {
    let check = |text: &str, expected: &str| {
        let error = read(&mut History::default(), "0.history", text.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    let none = "0.history is not a history: its first line must be \"history 3\"";
    check("", none);
    check("ledger 2 seed 42\n", none);
    check(
        "history 4\n",
        "0.history has version 4, this pgrig reads 1 to 3; read it with the pgrig that wrote it",
    );
    let mut broken = std::io::BufReader::new(Broken);
    let error = read(&mut History::default(), "0.history", &mut broken).unwrap_err();
    assert!(matches!(error, ReadError::Io { line: 1, .. }), "{error}");
}

struct Broken;

impl std::io::Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Err(std::io::Error::other("the disk is gone"))
    }
}

/// The faults of a file whose first lines tell of one workload and two clients, and how it is judged as
/// strict serializable.
fn faults(lines: &str) -> (Vec<String>, LevelJudgement, History) {
    let text = format!("history 1\ng 0\tprimary\tserializable\tw\nc 1 0 1 1\nc 2 0 2 1\n{lines}");
    let mut history = History::default();
    read(&mut history, "0.history", text.as_bytes()).unwrap();
    let findings = judge(&history);
    let words = findings.faults.iter().map(HistoryFault::to_string).collect();
    (words, findings.judge(IsolationLevel::StrictSerializable), history)
}

/// A read of what the first client has appended.
const SEEN: &str = "b 2 1 50\nl 2 5 0 1\no 2 60\n";

#[test]
fn what_is_wrong_is_told_at_its_line_and_the_rest_is_judged() {
    let check = |lines: &str, expected: &[&str], judged: LevelJudgement| {
        let (words, found, _) = faults(lines);
        assert_eq!(words.len(), expected.len(), "{lines}: {words:?}");
        for (words, expected) in words.iter().zip(expected) {
            assert!(words.starts_with(expected), "{lines}: {words}, not {expected}");
        }
        assert_eq!(found, judged, "{lines}");
    };
    let (holds, cannot) = (LevelJudgement::Holds, LevelJudgement::CannotTell);
    let clean = "b 1 1 10\na 1 5 1\no 1 20\n";
    check(&format!("{clean}{SEEN}"), &[], holds);
    // Cut off: nobody knows what the lost lines told.
    check(
        &format!("{clean}{SEEN}b 2 2 70\na 2 5 2"),
        &["0.history, line 12: the file ends"],
        cannot,
    );
    check(&format!("{clean}{SEEN}b 2 2 70\na 2 5 2\n"), &[], holds);
    check(&format!("{clean}what\n"), &["0.history, line 8: \"what\": "], cannot);
    check(&format!("{clean}b 7 1 30\n"), &["0.history, line 8: \"b 7 1 30\": no line"], cannot);
    check(&format!("{clean}o 1 30\n"), &["0.history, line 8: \"o 1 30\": client 1 has no"], cannot);
    check(
        &format!("{clean}b 1 1 30\n"),
        &["0.history, line 8: \"b 1 1 30\": client 1 begins 1"],
        cannot,
    );
    check(
        &format!("{clean}b 1 2 15\n"),
        &["0.history, line 8: \"b 1 2 15\": client 1 begins at"],
        cannot,
    );
    check(
        &format!("{clean}b 1 2 30\no 1 25\n"),
        &["0.history, line 9: \"o 1 25\": it ended"],
        cannot,
    );
    check(
        &format!("{clean}b 1 2 30\nl 1 5 3\n"),
        &["0.history, line 9: \"l 1 5 3\": the file"],
        cannot,
    );
    // A transaction that the numbers lack.
    check(
        &format!("{clean}b 1 3 30\n"),
        &["0.history, line 8: client 1 begins transaction 3, and not 2"],
        cannot,
    );
    // Something between the letter and the first blank.
    check(&format!("{clean}bad 1 2 30\n"), &["0.history, line 8: \"bad 1 2 30\""], cannot);
    // The same value twice: the key is not judged.
    check(
        &format!("{clean}b 2 1 30\na 2 5 1\no 2 40\n"),
        &["0.history, line 8: 1 was written to key 5 twice"],
        cannot,
    );
    // A value is read before it is written: only order in time is not judged.
    check(
        &format!("{clean}b 2 1 3\nl 2 5 0 1\no 2 4\n"),
        &["0.history, line 8: a value was read 0.000 ms before"],
        cannot,
    );
    let (_, _, history) = faults(&format!("{clean}b 2 1 3\nl 2 5 0 1\no 2 4\n"));
    assert_eq!(judge(&history).judge(IsolationLevel::Serializable), holds);
    // An anomaly is one, whatever else is wrong.
    let aborted = "what\nb 1 1 10\na 1 5 1\nf 1 20\nb 2 1 30\nl 2 5 0 1\no 2 40\n";
    check(aborted, &["0.history, line 5: \"what\""], LevelJudgement::Violated);
}

#[test]
fn a_line_that_cannot_be_read_spoils_no_other_transaction() {
    // The line may have said what list 5 was: the read after it that builds on it is not believed.
    let lines = "b 1 1 10\nl 1 5 0\nb 2 1 10\na 2 5 1\no 2 20\nl 1 5 zero\nl 1 5 0 1\no 1 30\n\
                 b 2 2 40\nl 2 5 0 1\no 2 50\n";
    let (words, _, history) = faults(lines);
    assert_eq!(words.len(), 1, "{words:?}");
    let outcomes: Vec<TransactionOutcome> =
        history.transactions().iter().map(|one| one.outcome).collect();
    assert_eq!(
        outcomes,
        [TransactionOutcome::Committed, TransactionOutcome::Unknown, TransactionOutcome::Committed]
    );
    assert!(matches!(history.faults()[0].what, FaultKind::Line(_)));
}

#[test]
fn a_write_that_was_taken_back_did_not_happen() {
    let check = |lines: &str, expected: &[&str]| {
        let text = format!("history 3\nn 1\ng 0\tp\ti\tw\nc 1 0 1 1\nb 1 1 10\n{lines}o 1 20\nz\n");
        let mut history = History::default();
        read(&mut history, "0.history", text.as_bytes()).unwrap();
        assert_eq!(history.faults(), &[], "{lines}");
        let told = history.operations(&history.transactions()[0]).iter().map(|one| match one {
            Operation::Append { value, .. } => format!("a{value}"),
            Operation::Write { value, .. } => format!("w{value}"),
            Operation::ReadList { list, .. } => format!("l{:?}", history.elements(*list)),
            Operation::Read { value, .. } => format!("r{value}"),
            other => format!("{other:?}"),
        });
        assert_eq!(told.collect::<Vec<_>>(), expected, "{lines}");
    };
    check("a 1 5 1\na 1 5 2\nd 1 1\n", &["a1"]);
    check("r 1 9 7\na 1 5 1\nw 1 9 8\nd 1 2\nw 1 9 9\n", &["r7", "w9"]);
    // What is read between a write and the savepoint before it may be that write.
    check("a 1 5 1\na 1 5 2\nl 1 5 0 1 2\nd 1 1\nl 1 5 1\n", &["a1", "l[1]"]);

    let (words, _, history) = faults("b 1 1 10\na 1 5 1\nd 1 2\no 1 20\nb 1 2 30\nd 1 0\no 1 40\n");
    assert!(words[0].contains("client 1 has not written so often"), "{words:?}");
    assert!(words[1].contains("it takes no write back"), "{words:?}");
    assert_eq!(history.transactions()[0].outcome, TransactionOutcome::Unknown);
}

#[test]
fn a_file_that_lacks_its_last_line_was_cut_off() {
    let check = |lines: &str, expected: &[&str]| {
        let text = format!("history 2\nn 1\ng 0\tp\ti\tw\nc 1 0 1 1\n{lines}");
        let mut history = History::default();
        read(&mut history, "0.history", text.as_bytes()).unwrap();
        let words: Vec<String> = history.faults().iter().map(HistoryFault::to_string).collect();
        assert_eq!(words.len(), expected.len(), "{lines}: {words:?}");
        for (words, expected) in words.iter().zip(expected) {
            assert!(words.starts_with(expected), "{lines}: {words}");
        }
        assert_eq!(history.files_written(), Some(1));
    };
    check("b 1 1 10\no 1 20\nz\n", &[]);
    check("b 1 1 10\no 1 20\n", &["0.history, line 6: the file ends before"]);
    check("b 1 1 10\no 1 2", &["0.history, line 6: the file ends before"]);
    check("z\nb 1 1 10\n", &["0.history, line 6: \"b 1 1 10\": it stands behind"]);
}

#[test]
fn a_client_of_two_files_is_refused_in_the_second() {
    let text = "history 1\ng 0\tp\ti\tw\nc 1 0 1 1\nb 1 1 10\no 1 20\n";
    let mut history = History::default();
    read(&mut history, "0.history", text.as_bytes()).unwrap();
    read(&mut history, "1.history", text.as_bytes()).unwrap();
    assert_eq!(history.transactions().len(), 1);
    assert!(history.faults()[0].to_string().starts_with("1.history, line 3"), "{history:?}");
}

#[test]
fn lists_of_a_database_are_read_as_it_shows_them() {
    let check = |text: &str, expected: Option<&[i64]>| {
        let mut elements = Vec::new();
        let read = list_of(text.as_bytes(), &mut elements).ok().map(|()| elements.as_slice());
        assert_eq!(read, expected, "{text}");
    };
    check("", Some(&[]));
    check("{}", Some(&[]));
    check("{1,-2,3}", Some(&[1, -2, 3]));
    check("[1, 2]", Some(&[1, 2]));
    check("1 2 9223372036854775807", Some(&[1, 2, i64::MAX]));
    check("1,two", None);
    check("9223372036854775808", None);
}
