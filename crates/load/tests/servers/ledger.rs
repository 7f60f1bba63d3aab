//! What a ledger says of scripts of every kind, against the rows that they leave on a real server. Nothing
//! breaks here: nothing may be lost or invented.

use load::{LedgerPlan, LedgerTables, LoadLimit, OnError, Protocol};
use record::ledger::{self, Ledger, LedgerFindings, LedgerRow, LedgerRows};

use crate::support::{Server, plan, run, workload};

/// The value of a script's row, and the row that every script may write.
const ROW: &str = "(:ledger_client, :ledger_seq, :ledger_chain)";

/// Functions, views and triggers through which scripts write.
const WAYS: &str = "
CREATE FUNCTION write_log(c int, s bigint, h bigint) RETURNS void LANGUAGE sql
    AS 'INSERT INTO log VALUES (c, s, h)';
CREATE FUNCTION write_both(c int, s bigint, h bigint) RETURNS int LANGUAGE sql
    AS 'INSERT INTO log VALUES (c, s, h);
        INSERT INTO state VALUES (c, s, h) ON CONFLICT (client) DO UPDATE SET seq = s, chain = h; SELECT 1';
CREATE FUNCTION write_even(c int, s bigint, h bigint) RETURNS int LANGUAGE plpgsql
    AS 'BEGIN IF s % 2 = 1 THEN RETURN 0; END IF; INSERT INTO log VALUES (c, s, h); RETURN 1; END';
CREATE FUNCTION write_rows(c int, s bigint, h bigint) RETURNS SETOF int LANGUAGE sql
    AS 'INSERT INTO log SELECT c, s, h WHERE s % 2 = 0 RETURNING 1';
CREATE PROCEDURE call_log(c int, s bigint, h bigint) LANGUAGE plpgsql
    AS 'BEGIN INSERT INTO log VALUES (c, s, h); END';
CREATE PROCEDURE call_and_commit(c int, s bigint, h bigint) LANGUAGE plpgsql
    AS 'BEGIN INSERT INTO log VALUES (c, s, h); COMMIT; END';
CREATE TABLE inbox (client int, seq bigint, chain bigint);
CREATE FUNCTION pass_on() RETURNS trigger LANGUAGE plpgsql
    AS 'BEGIN INSERT INTO log VALUES (NEW.client, NEW.seq, NEW.chain); RETURN NULL; END';
CREATE TRIGGER pass_on AFTER INSERT ON inbox FOR EACH ROW EXECUTE FUNCTION pass_on();
CREATE VIEW log_view AS SELECT * FROM log;
";

/// A script, and which share of its transactions writes into the tables.
struct Kind {
    name: &'static str,
    script: String,
    protocol: Protocol,
    writes: Writes,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Writes {
    /// Every transaction, into each table that the workload has.
    All,
    /// Some of them; the others write nothing.
    Some,
    /// All of them, some into one table only.
    Parts,
    /// None.
    None,
}

/// Scripts for the insert table alone. `{row}` is the row, `{odd}` is true for half of the transactions.
const INSERTS: &[(&str, Writes, &str)] = &[
    ("plain", Writes::All, "INSERT INTO log VALUES {row};"),
    ("block", Writes::All, "BEGIN;\nINSERT INTO log VALUES {row};\nCOMMIT;"),
    ("end", Writes::All, "BEGIN;\nINSERT INTO log VALUES {row};\nEND;"),
    ("combined", Writes::All, "BEGIN\\; INSERT INTO log VALUES {row}\\; COMMIT;"),
    (
        "combined without a block",
        Writes::All,
        "SELECT 1\\; INSERT INTO log VALUES {row}\\; SELECT 2;",
    ),
    ("schema and quotes", Writes::All, "INSERT INTO public.\"log\" VALUES {row};"),
    ("returning", Writes::All, "INSERT INTO log VALUES {row} RETURNING seq AS back \\gset"),
    ("from a select", Writes::All, "INSERT INTO log SELECT * FROM (VALUES {row}) AS one;"),
    (
        "from a select of nothing",
        Writes::Some,
        "INSERT INTO log SELECT * FROM (VALUES {row}) AS one(c, s, h) WHERE s % 2 = 0;",
    ),
    ("if", Writes::Some, "\\if {odd}\nINSERT INTO log VALUES {row};\n\\endif\nSELECT 1;"),
    (
        "if in a block",
        Writes::Some,
        "BEGIN;\n\\if {odd}\nINSERT INTO log VALUES {row};\n\\endif\nCOMMIT;",
    ),
    ("if around everything", Writes::Some, "\\if {odd}\nINSERT INTO log VALUES {row};\n\\endif"),
    ("never", Writes::None, "\\if false\nINSERT INTO log VALUES {row};\n\\endif\nSELECT 1;"),
    (
        "else",
        Writes::All,
        "\\if {odd}\nINSERT INTO log VALUES {row};\n\\else\nINSERT INTO log SELECT * FROM (VALUES {row}) AS one;\n\\endif",
    ),
    (
        "else of nothing",
        Writes::Some,
        "\\if {odd}\nINSERT INTO log VALUES {row};\n\\else\nUPDATE other SET n = 1 WHERE n = :ledger_seq;\n\\endif",
    ),
    (
        "rolls back",
        Writes::Some,
        "BEGIN;\nINSERT INTO log VALUES {row};\n\\if {odd}\nCOMMIT;\n\\else\nROLLBACK;\n\\endif",
    ),
    (
        "do nothing",
        Writes::Some,
        "INSERT INTO log SELECT * FROM (VALUES {row}) AS one(c, s, h) WHERE s = 1 ON CONFLICT DO NOTHING;",
    ),
    (
        "conflict",
        Writes::Some,
        "INSERT INTO once VALUES (:ledger_client, 7) ON CONFLICT DO NOTHING;\nINSERT INTO log SELECT * FROM (VALUES {row}) AS one(c, s, h) WHERE s < 5 ON CONFLICT DO NOTHING;",
    ),
    (
        "audit beside it",
        Writes::Some,
        "INSERT INTO audit VALUES (:ledger_seq);\nINSERT INTO log SELECT * FROM (VALUES {row}) AS one(c, s, h) WHERE s % 2 = 0;",
    ),
    (
        "audit in the same command",
        Writes::Some,
        "INSERT INTO audit VALUES (:ledger_seq)\\; INSERT INTO log SELECT * FROM (VALUES {row}) AS one(c, s, h) WHERE s % 2 = 0;",
    ),
    (
        "a reading beside it",
        Writes::Some,
        "\\if {odd}\nINSERT INTO log VALUES {row};\n\\endif\nSELECT count(*) FROM log WHERE seq = :ledger_seq;",
    ),
    (
        "for update",
        Writes::Some,
        "BEGIN;\nSELECT * FROM other FOR UPDATE;\n\\if {odd}\nINSERT INTO log SELECT :ledger_client, :ledger_seq, :ledger_chain FROM other LIMIT 1 FOR UPDATE;\n\\endif\nCOMMIT;",
    ),
    (
        "merge",
        Writes::All,
        "MERGE INTO log USING (VALUES {row}) AS one(c, s, h) ON seq = s AND client = c WHEN NOT MATCHED THEN INSERT VALUES (c, s, h);",
    ),
    (
        "merge of some",
        Writes::Some,
        "MERGE INTO log USING (VALUES {row}) AS one(c, s, h) ON seq = s AND client = c WHEN NOT MATCHED AND s % 2 = 0 THEN INSERT VALUES (c, s, h) WHEN NOT MATCHED THEN DO NOTHING;",
    ),
    ("two rows", Writes::All, "INSERT INTO log VALUES {row}, {row};"),
    (
        "two statements",
        Writes::All,
        "BEGIN;\nINSERT INTO log VALUES {row};\nINSERT INTO log VALUES {row};\nCOMMIT;",
    ),
    (
        "several rows of others",
        Writes::All,
        "INSERT INTO audit SELECT :ledger_seq FROM generate_series(1, 3);\nINSERT INTO log VALUES {row};",
    ),
    (
        "with, and its rows",
        Writes::All,
        "WITH one AS (INSERT INTO log VALUES {row} RETURNING 1) SELECT count(*) FROM one;",
    ),
    (
        "with, and some rows",
        Writes::Some,
        "WITH one AS (INSERT INTO log SELECT * FROM (VALUES {row}) AS x(c, s, h) WHERE s % 2 = 0 RETURNING 1) SELECT count(*) FROM one;",
    ),
    (
        "with in front",
        Writes::Some,
        "WITH one AS (SELECT * FROM (VALUES {row}) AS x(c, s, h) WHERE s % 2 = 0) INSERT INTO log SELECT * FROM one;",
    ),
    (
        "savepoint",
        Writes::All,
        "BEGIN;\nINSERT INTO log VALUES {row};\nSAVEPOINT a;\nUPDATE other SET n = n + 1;\nROLLBACK TO a;\nCOMMIT;",
    ),
    (
        "savepoint takes it back",
        Writes::None,
        "BEGIN;\nSAVEPOINT a;\nINSERT INTO log VALUES {row};\nROLLBACK TO SAVEPOINT a;\nCOMMIT;",
    ),
    (
        "savepoint of some",
        Writes::Some,
        "BEGIN;\nSAVEPOINT a;\nINSERT INTO log VALUES {row};\n\\if {odd}\nROLLBACK TO a;\n\\endif\nRELEASE a;\nCOMMIT;",
    ),
    (
        "savepoints in each other",
        Writes::All,
        "BEGIN;\nSAVEPOINT a;\nINSERT INTO log VALUES {row};\nSAVEPOINT b;\nINSERT INTO log VALUES {row};\nROLLBACK TO b;\nRELEASE a;\nCOMMIT;",
    ),
    (
        "savepoints in one command",
        Writes::None,
        "BEGIN\\; SAVEPOINT a\\; INSERT INTO log VALUES {row}\\; ROLLBACK TO a\\; COMMIT;",
    ),
    (
        "prepare and commit",
        Writes::All,
        "BEGIN;\nINSERT INTO log VALUES {row};\nPREPARE TRANSACTION 't:client_id';\nCOMMIT PREPARED 't:client_id';",
    ),
    (
        "prepare and roll back",
        Writes::None,
        "BEGIN;\nINSERT INTO log VALUES {row};\nPREPARE TRANSACTION 't:client_id';\nROLLBACK PREPARED 't:client_id';",
    ),
    ("function", Writes::All, "SELECT write_log{row};"),
    ("function that may write", Writes::Some, "SELECT write_even{row} AS ledger_wrote \\gset"),
    ("function of rows", Writes::Some, "SELECT * FROM write_rows{row};"),
    ("procedure", Writes::All, "CALL call_log{row};"),
    ("procedure that commits", Writes::All, "CALL call_and_commit{row};"),
    ("trigger", Writes::All, "INSERT INTO inbox VALUES {row};"),
    ("view", Writes::All, "INSERT INTO log_view VALUES {row};"),
    (
        "retries",
        Writes::All,
        "BEGIN ISOLATION LEVEL REPEATABLE READ;\nUPDATE other SET n = n + 1;\nINSERT INTO log VALUES {row};\nCOMMIT;",
    ),
    (
        "retries behind a commit",
        Writes::All,
        "INSERT INTO log VALUES {row};\nBEGIN ISOLATION LEVEL REPEATABLE READ;\nUPDATE other SET n = n + 1;\nSELECT pg_sleep(0.001);\nCOMMIT;",
    ),
    (
        "delete and insert",
        Writes::All,
        "BEGIN;\nDELETE FROM log WHERE client = :ledger_client AND seq = :ledger_seq;\nINSERT INTO log VALUES {row};\nCOMMIT;",
    ),
];

/// Scripts for both tables.
const BOTH: &[(&str, Writes, &str)] = &[
    (
        "both",
        Writes::All,
        "BEGIN;\nINSERT INTO log VALUES {row};\nINSERT INTO state VALUES {row} ON CONFLICT (client) DO UPDATE SET seq = excluded.seq, chain = excluded.chain;\nCOMMIT;",
    ),
    (
        "both in one command",
        Writes::All,
        "INSERT INTO log VALUES {row}\\; INSERT INTO state VALUES {row} ON CONFLICT (client) DO UPDATE SET seq = excluded.seq, chain = excluded.chain;",
    ),
    (
        "the second one at times",
        Writes::Parts,
        "BEGIN;\nINSERT INTO log VALUES {row};\n\\if {odd}\nINSERT INTO state VALUES {row} ON CONFLICT (client) DO UPDATE SET seq = excluded.seq, chain = excluded.chain;\n\\endif\nCOMMIT;",
    ),
    (
        "the first one at times",
        Writes::Parts,
        "BEGIN;\nINSERT INTO log SELECT * FROM (VALUES {row}) AS x(c, s, h) WHERE s % 2 = 0;\nINSERT INTO state VALUES {row} ON CONFLICT (client) DO UPDATE SET seq = excluded.seq, chain = excluded.chain;\nCOMMIT;",
    ),
    (
        "do nothing after the first",
        Writes::Parts,
        "BEGIN;\nINSERT INTO log VALUES {row};\nINSERT INTO state VALUES {row} ON CONFLICT DO NOTHING;\nCOMMIT;",
    ),
    (
        "update of no row",
        Writes::Parts,
        "BEGIN;\nINSERT INTO log VALUES {row};\nUPDATE state SET seq = :ledger_seq, chain = :ledger_chain WHERE client = :ledger_client AND :ledger_seq % 2 = 0;\nCOMMIT;",
    ),
    ("function for both", Writes::All, "SELECT write_both{row};"),
    (
        "merge into the second",
        Writes::All,
        "BEGIN;\nINSERT INTO log VALUES {row};\nMERGE INTO state USING (VALUES {row}) AS x(c, s, h) ON client = c WHEN MATCHED THEN UPDATE SET seq = s, chain = h WHEN NOT MATCHED THEN INSERT VALUES (c, s, h);\nCOMMIT;",
    ),
];

/// Scripts that need the extended protocol.
const PIPELINES: &[(&str, Writes, &str)] = &[
    (
        "pipeline",
        Writes::All,
        "\\startpipeline\nBEGIN;\nINSERT INTO log VALUES {row};\nCOMMIT;\n\\endpipeline",
    ),
    (
        "pipeline of some",
        Writes::Some,
        "\\startpipeline\nSELECT 1;\nINSERT INTO log SELECT * FROM (VALUES (:ledger_client::int, :ledger_seq::bigint, :ledger_chain::bigint)) AS x(c, s, h) WHERE s % 2 = 0;\nSELECT 2;\n\\endpipeline",
    ),
    (
        "pipeline of several parts",
        Writes::Some,
        "\\startpipeline\nSELECT 1;\n\\syncpipeline\nSELECT 2;\nINSERT INTO log SELECT * FROM (VALUES (:ledger_client::int, :ledger_seq::bigint, :ledger_chain::bigint)) AS x(c, s, h) WHERE s % 2 = 0;\n\\endpipeline",
    ),
    ("prepared", Writes::Some, "\\if {odd}\nINSERT INTO log VALUES {row};\n\\endif\nSELECT 1;"),
];

fn kinds() -> Vec<Kind> {
    let of = |(name, writes, script): &(&'static str, Writes, &str), protocol| {
        let script = script.replace("{row}", ROW).replace("{odd}", ":ledger_seq % 2 = 0") + "\n";
        Kind { name, script, protocol, writes: *writes }
    };
    let simple = INSERTS.iter().chain(BOTH).map(|one| of(one, Protocol::Simple));
    simple.chain(PIPELINES.iter().map(|one| of(one, Protocol::Prepared))).collect()
}

const CLIENTS: u32 = 3;

/// Transactions of each client and kind: few in the suite, `PGRIG_LEDGER_TRANSACTIONS` in a campaign.
fn transactions() -> u64 {
    let asked = std::env::var("PGRIG_LEDGER_TRANSACTIONS").ok();
    asked.map_or(6, |number| number.parse().expect("a number of transactions"))
}

/// The findings after a load of one script on a server whose tables are empty.
fn findings(server: &Server, kind: &Kind) -> LedgerFindings {
    server.execute("TRUNCATE log, state, audit, inbox, once");
    let mut workload = workload(&server.conninfo(), &kind.script, CLIENTS);
    workload.protocol = kind.protocol;
    workload.on_error = OnError { tries_max: 0, go_on: true };
    let updates = kind.script.contains("state") || kind.script.contains("write_both");
    workload.ledger = Some(LedgerTables {
        insert: Some("log".to_owned()),
        update: updates.then(|| "state".to_owned()),
    });
    let mut plan = plan(workload, LoadLimit::Transactions(transactions()));
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().display().to_string();
    plan.ledger = Some(LedgerPlan { directory: place, seed: 7 });
    run(&plan).unwrap_or_else(|error| panic!("{}: {error}", kind.name));
    let ledger = Ledger::read(directory.path()).unwrap().about(0..CLIENTS);
    let mut client = server.node.connect().unwrap();
    let mut rows = |table: &str| -> Vec<LedgerRow> {
        let sql = format!("SELECT client::bigint, seq, chain FROM {table}");
        let rows = client.query(&sql, &[]).unwrap();
        rows.iter()
            .map(|row| LedgerRow { client: row.get(0), seq: row.get(1), chain: row.get(2) })
            .collect()
    };
    let rows = LedgerRows { insert: Some(rows("log")), update: updates.then(|| rows("state")) };
    ledger::check(&ledger, &rows, &[])
}

#[test]
fn no_kind_of_script_loses_or_invents_anything_without_a_fault() {
    let server = Server::start(&[("max_prepared_transactions", "10")]);
    server.execute(
        "CREATE TABLE log (client int, seq bigint, chain bigint);
         CREATE TABLE state (client int PRIMARY KEY, seq bigint, chain bigint);
         CREATE TABLE audit (seq bigint);
         CREATE TABLE once (client int PRIMARY KEY, n int);
         CREATE TABLE other (n int); INSERT INTO other VALUES (1)",
    );
    server.execute(WAYS);
    let kinds = kinds();
    assert!(kinds.len() >= 50, "{} kinds", kinds.len());
    let mut wrong = Vec::new();
    for kind in &kinds {
        let found = findings(&server, kind);
        let all = u64::from(CLIENTS) * transactions();
        let told =
            (found.acknowledged, found.acknowledged_in_part, found.wrote_nothing, found.failed);
        let is_right = match kind.writes {
            Writes::All => told == (all, 0, 0, 0) && found.present == all,
            Writes::None => told.0 == 0 && told.2 + told.3 == all && found.present == 0,
            Writes::Some => told.0 < all && told.0 + told.2 + told.3 == all && told.1 == 0,
            Writes::Parts => told.0 == all && told.1 > 0,
        };
        if found.anomalies() > 0 || found.unknown > 0 || found.unjudged > 0 || !is_right {
            wrong.push(format!(
                "{} ({:?}): {told:?} {:?}",
                kind.name,
                kind.writes,
                found.examples.first()
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {} kinds:\n{}", wrong.len(), kinds.len(), wrong.join("\n"));
}
