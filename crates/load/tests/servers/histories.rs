//! What a history says of scripts of every kind, against the values that they write on a real server.

use std::collections::BTreeSet;

use history::{History, IsolationLevel, LevelJudgement, Operation, TransactionOutcome};
use load::{HistoryGroup, HistoryPlan, LoadError, LoadLimit, OnError};

use crate::support::{Server, plan, run, workload};

/// A table whose trigger keeps each value that was written into it and committed.
const TABLES: &str = "
CREATE TABLE registers (key bigint PRIMARY KEY, value bigint);
INSERT INTO registers VALUES (1, NULL), (2, NULL);
CREATE TABLE written (value bigint);
CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql
    AS 'BEGIN INSERT INTO written VALUES (NEW.value); RETURN NULL; END';
CREATE TRIGGER keep AFTER INSERT OR UPDATE ON registers FOR EACH ROW EXECUTE FUNCTION keep();
CREATE FUNCTION write_register(k bigint, v bigint) RETURNS SETOF int LANGUAGE sql
    AS 'UPDATE registers SET value = v WHERE key = k RETURNING 1';
";

/// `{write KEY}` is a note and a statement that writes a new value into a register; there are 1 and 2.
const SCRIPTS: &[(&str, &str)] = &[
    ("a statement", "{write 1}"),
    ("a block", "BEGIN;\n{write 1}{write 2}COMMIT;"),
    ("a row that is not there", "{write 3}"),
    ("one of two rows", "BEGIN;\n{write 1}{write 3}COMMIT;"),
    ("a function", "{note 1}SELECT * FROM write_register(1, :history_value);"),
    ("a function without a row", "{note 3}SELECT * FROM write_register(3, :history_value);"),
    (
        "an insertion in conflict",
        "{note 1}INSERT INTO registers VALUES (1, :history_value) ON CONFLICT DO NOTHING;",
    ),
    (
        "an insertion that updates",
        "{note 1}INSERT INTO registers VALUES (1, :history_value) ON CONFLICT (key) DO UPDATE SET value = excluded.value;",
    ),
    (
        "MERGE of nothing",
        "{note 1}MERGE INTO registers USING (VALUES (1)) AS one(k) ON key = k WHEN MATCHED THEN DO NOTHING;",
    ),
    (
        "WITH in front",
        "{note 1}WITH one AS (SELECT 3 AS k) UPDATE registers SET value = :history_value FROM one WHERE key = k;",
    ),
    ("a savepoint taken back", "BEGIN;\nSAVEPOINT a;\n{write 1}ROLLBACK TO a;\n{write 2}COMMIT;"),
    ("a savepoint released", "BEGIN;\nSAVEPOINT a;\n{write 1}RELEASE a;\nCOMMIT;"),
    (
        "savepoints in each other",
        "BEGIN;\nSAVEPOINT a;\n{write 1}SAVEPOINT b;\n{write 2}ROLLBACK TO SAVEPOINT a;\nCOMMIT;",
    ),
    (
        "a read of what is taken back",
        "BEGIN;\nSAVEPOINT a;\n{write 1}{read 1}ROLLBACK TO a;\n{read 1}COMMIT;",
    ),
    ("a block that is rolled back", "BEGIN;\n{write 1}ROLLBACK;"),
];

/// The script, in which each `{write KEY}` has a value of its own.
fn script(short: &str) -> String {
    let mut parts = short.split('{');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for (number, part) in parts.enumerate() {
        let (word, rest) = part.split_once('}').unwrap();
        let (kind, key) = word.split_once(' ').unwrap();
        text += &match kind {
            "write" => format!(
                "\\set value{number} :history_value + {number}\n-- \\history write {key} :value{number}\n\
                 UPDATE registers SET value = :value{number} WHERE key = {key};\n"
            ),
            "note" => format!("-- \\history write {key} :history_value\n"),
            _ => format!(
                "-- \\history register {key}\nSELECT value FROM registers WHERE key = {key};\n"
            ),
        };
        text += rest;
    }
    text + "\n"
}

fn load(server: &Server, text: &str, clients: u32) -> Result<History, LoadError> {
    let mut workload = workload(&server.conninfo(), text, clients);
    workload.on_error = OnError { tries_max: 3, go_on: true };
    let mut plan = plan(workload, LoadLimit::Transactions(5));
    let directory = tempfile::tempdir().unwrap();
    let group = HistoryGroup {
        server: "primary".to_owned(),
        isolation: "read committed".to_owned(),
        workload: "test".to_owned(),
    };
    let place = directory.path().display().to_string();
    plan.history = Some(HistoryPlan { directory: place, groups: vec![group] });
    run(&plan)?;
    let mut history = History::default();
    let mut files: Vec<_> =
        std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files {
        let text = std::fs::read(&file).unwrap();
        history::file::read(&mut history, &file.display().to_string(), text.as_slice()).unwrap();
    }
    Ok(history)
}

#[test]
fn a_history_has_the_writes_that_happened() {
    let server = Server::start(&[]);
    server.execute(TABLES);
    for (name, short) in SCRIPTS {
        server.execute("UPDATE registers SET value = NULL; TRUNCATE written");
        let history = load(&server, &script(short), 2).unwrap();
        assert_eq!(history.faults(), &[], "{name}");
        let committed = history
            .transactions()
            .iter()
            .filter(|one| one.outcome == TransactionOutcome::Committed);
        let told: BTreeSet<i64> = committed
            .flat_map(|one| history.operations(one))
            .filter_map(|one| match one {
                Operation::Write { value, .. } => Some(*value),
                _ => None,
            })
            .collect();
        let mut client = server.node.connect().unwrap();
        let rows = client.query("SELECT value FROM written", &[]).unwrap();
        let written: BTreeSet<i64> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(told, written, "{name}: told, and written");
        let unknown = history
            .transactions()
            .iter()
            .filter(|one| one.outcome == TransactionOutcome::Unknown)
            .count();
        assert_eq!(unknown, 0, "{name}");
        let findings = history::check(&history);
        assert_ne!(
            findings.judge(IsolationLevel::ReadCommitted),
            LevelJudgement::Violated,
            "{name}"
        );
    }
}

#[test]
fn a_script_whose_writes_cannot_be_told_is_refused() {
    let server = Server::start(&[]);
    server.execute(TABLES);
    let check = |text: &str, expected: &str| {
        let error = load(&server, text, 1).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    };
    let note = "-- \\history write 1 :history_value\n";
    let update = "UPDATE registers SET value = :history_value WHERE key = 1";
    check(
        &format!("BEGIN;\n{note}SAVEPOINT a\\; {update};\nCOMMIT;\n"),
        "test.sql:3: a statement with a note and one with SAVEPOINT",
    );
    check(
        &format!("{note}WITH one AS ({update} RETURNING 1) SELECT count(*) FROM one;\n"),
        "the number of rows that it returns does not say",
    );
    check(
        &format!(
            "BEGIN;\nSAVEPOINT a;\n{note}{update};\n\\startpipeline\nROLLBACK TO a;\n\\endpipeline\nCOMMIT;\n"
        ),
        "a savepoint in a pipeline",
    );
}
