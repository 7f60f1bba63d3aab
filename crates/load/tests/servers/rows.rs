//! Rows that scripts draw from: what the server stores is what it gave, whatever is in it.

use std::collections::BTreeSet;

use load::{LoadLimit, Protocol, ScriptRows, fetch_rows};
use script::{RowSource, RowSourceKind};

use crate::support::{Server, plan, run, workload};

const HOSTILE: &str = r#"
    DROP TABLE IF EXISTS rows_src, rows_got;
    CREATE TABLE rows_src (id int PRIMARY KEY, body text, n numeric, weight float8);
    INSERT INTO rows_src VALUES (1, 'it''s', 1, 1), (2, 'a\b''\', 2.50, 1), (3, NULL, NULL, 1),
        (4, '', -7, 1), (5, 'NULL', 0, 1), (6, 'snowman ☃ 𝄞 é', 1e30, 1),
        (7, E'\r\n\t"",", $1 $$ :id :''id'' -- /* ', 3, 1), (8, repeat('x''\"é', 200000), 4, 1),
        (9, E'\\', 5, 1), (10, 'null', 6, 1), (11, ' ''; DROP TABLE rows_got; --', 7, 1),
        (12, 'never', 8, 0);
    CREATE TABLE rows_got (client int, id int, body text, n numeric);"#;

fn source(kind: RowSourceKind, path: &str) -> RowSource {
    RowSource { kind, path: path.to_owned() }
}

#[test]
fn what_is_stored_is_the_row() {
    let server = Server::start(&[]);
    let csv = |query: &str| {
        let mut workload = workload(&server.conninfo(), "SELECT 1;\n", 1);
        workload.rows.push(ScriptRows::new(source(RowSourceKind::Query, "q.sql"), query));
        fetch_rows(std::slice::from_mut(&mut workload), &load::LoadControl::new()).expect(query);
        let load::RowsContent::Csv(text) = &workload.rows[0].content else { panic!("no rows") };
        text.to_string()
    };
    let query = "SELECT id, body, n, weight FROM rows_src; -- all of them";
    for protocol in [Protocol::Simple, Protocol::Extended, Protocol::Prepared] {
        for kind in [RowSourceKind::Query, RowSourceKind::File] {
            server.execute(HOSTILE);
            let word = if kind == RowSourceKind::Query { "query" } else { "file" };
            let script = format!(
                "\\set c :client_id + 0\n\\setrow id, body, n {word} rows weighted weight\n\
                 INSERT INTO rows_got VALUES (:'c', :'id', :'body', :'n');\n"
            );
            let mut workload = workload(&server.conninfo(), &script, 4);
            workload.protocol = protocol;
            let text = if kind == RowSourceKind::Query { query.to_owned() } else { csv(query) };
            workload.rows.push(ScriptRows::new(source(kind, "rows"), &text));
            let plan = plan(workload, LoadLimit::Transactions(60));
            let drawn = || {
                server.execute("TRUNCATE rows_got");
                let outcome = run(&plan).expect("a load");
                assert_eq!(outcome.workloads[0].counts_total.failed(), 0, "{protocol:?} {kind:?}");
                let differing = server.number(
                    "SELECT count(*) FROM rows_got g LEFT JOIN rows_src s USING (id)
                     WHERE s.id IS NULL OR g.body IS DISTINCT FROM s.body OR g.n IS DISTINCT FROM s.n",
                );
                assert_eq!(differing, 0, "{protocol:?} {kind:?}");
                let ids = server.value("SELECT string_agg(DISTINCT id::text, ' ') FROM rows_got");
                let all: BTreeSet<u32> = ids.split(' ').map(|id| id.parse().unwrap()).collect();
                assert_eq!(all, (1..=11).collect(), "{protocol:?} {kind:?}");
                server.value(
                    "SELECT string_agg(l, ';' ORDER BY l) FROM (SELECT client || ' ' || id || ' ' || count(*)
                     FROM rows_got GROUP BY client, id) AS t(l)",
                )
            };
            assert_eq!(drawn(), drawn(), "a seed draws the same rows");
        }
    }
}

#[test]
fn queries_that_give_no_rows_are_told_before_a_client_comes() {
    let server = Server::shared();
    let check = |script: &str, query: &str, expected: &str, hint: &str| {
        let mut workload = workload(&server.conninfo(), script, 1);
        workload.session.push(("search_path".to_owned(), "pg_catalog".to_owned()));
        workload.rows.push(ScriptRows::new(source(RowSourceKind::Query, "q.sql"), query));
        let error = run(&plan(workload, LoadLimit::Transactions(1))).expect_err(query);
        assert_eq!(error.to_string(), expected);
        let found = error.hint().expect("a hint");
        assert!(found.contains(hint), "{found}");
    };
    let one = "\\setrow a query q.sql\nSELECT :'a';\n";
    let place = "test.sql:1: q.sql: ";
    check(
        one,
        "SELECT 1 WHERE false",
        &format!("{place}there are no rows to draw from"),
        "one row",
    );
    check(
        one,
        "SELECT 1 AS x, 2 AS y",
        &format!("{place}\\setrow names 1 variables, but there are 2 columns: x, y"),
        "name a variable for each column",
    );
    check(
        one,
        "SELECT nowhere",
        "q.sql: the query of its rows fails: column \"nowhere\" does not exist",
        "psql -f",
    );
    check(
        one,
        "SELECT generate_series(1, 1000001)",
        "q.sql: its rows cannot be read: more than 1000000 rows",
        "LIMIT or TABLESAMPLE",
    );
    check(
        one,
        "SELECT repeat('x', 1000000) FROM generate_series(1, 1000)",
        "q.sql: its rows cannot be read: more than 256 MiB",
        "LIMIT or TABLESAMPLE",
    );
    // The session has the settings of the load's sessions.
    let path = "SELECT 1 / (current_setting('search_path') <> 'pg_catalog')::int";
    check(one, path, "q.sql: the query of its rows fails: division by zero", "psql -f");
}
