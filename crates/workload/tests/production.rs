//! A workload from a real server's pg_stat_statements: what is covered, and that nothing of its content is written.

use std::fs;
use std::path::{Path, PathBuf};

use testing::servers::{server, socket_directory};
use testing::skip;
use workload::{CallFilter, WorkloadRequest, WorkloadSource, make};

/// A word that stands in literals, comments, passwords and settings of the server, and must stand nowhere else.
const SECRET: &str = "plantedsecret";

const TABLES: &str = "
CREATE TABLE customer (id serial PRIMARY KEY, email text UNIQUE, name text, active bool, data jsonb);
CREATE TABLE orders (id bigserial PRIMARY KEY, customer_id int REFERENCES customer, day date, total numeric);
INSERT INTO customer (email, name, active, data) SELECT 'u' || i, 'n' || i, true, '{\"a\": 1}' FROM generate_series(1, 100) i;
INSERT INTO orders (customer_id, day, total) SELECT i, '2024-01-01', i FROM generate_series(1, 100) i;
ANALYZE;
SELECT pg_stat_statements_reset();";

/// Statements and whether a load covers them.
const STATEMENTS: [(&str, bool); 18] = [
    ("select /* plantedsecret */ name from customer where id = 5", true),
    ("select id from customer where lower(email) = 'plantedsecret'", true),
    (
        "select c.name from orders o join customer c on c.id = o.customer_id where o.day > '2024-03-01' limit 10",
        true,
    ),
    ("select day from orders where id in (1, 2, 3)", true),
    ("select total from orders where id = any('{1,2}'::bigint[])", true),
    ("select count(*) from orders where day between '2024-01-01' and '2024-02-01'", true),
    ("select email from customer where name like 'plantedsecret%'", true),
    (
        "select date_trunc('month', day), sum(total) from orders group by date_trunc('month', day)",
        true,
    ),
    ("insert into orders (customer_id, day, total) values (3, '2024-05-05', 5)", true),
    ("insert into customer (email, name) values ('plantedsecret', 'plantedsecret')", true),
    (
        "insert into customer (email, name) values ('u1', 'z') on conflict (email) do update set name = 'plantedsecret'",
        true,
    ),
    ("update customer set name = 'plantedsecret' where id = 9", true),
    ("delete from orders where id = 77", true),
    ("select data ->> 'plantedsecret' from customer", false),
    ("select extract(year from day) from orders", false),
    ("select pg_sleep(0.001)", false),
    ("create user plant password 'plantedsecret'", false),
    ("do $$ begin perform 'plantedsecret'; end $$", false),
];

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn statements_of_a_server_become_scripts_without_its_content() {
    let preload = [("shared_preload_libraries", "pg_stat_statements")];
    let (node, _lab) = server(&preload);
    let conninfo =
        format!("host={} user=postgres dbname=postgres", socket_directory(&node).display());
    let limits = server::Limits::of_administration();
    let at = server::resolve_conninfo(&conninfo).expect("a connection string");
    let mut client = server::connect(&at, &limits).expect("a session");
    if client.batch_execute("CREATE EXTENSION pg_stat_statements").is_err() {
        return skip::because("needs the extension pg_stat_statements");
    }
    client.batch_execute(TABLES).expect("tables");
    for (sql, _) in STATEMENTS {
        client.batch_execute(sql).expect(sql);
    }
    let folder = tempfile::tempdir().expect("a directory");
    let request = WorkloadRequest {
        out: folder.path().join("made"),
        source: WorkloadSource::Server(conninfo),
        like: None,
        filter: CallFilter::default(),
        has_values: false,
    };
    let made = make(&request).expect("a workload");
    let covered = STATEMENTS.iter().filter(|(_, is_covered)| *is_covered).count();
    // The reset is a statement of its own, and is not covered.
    assert_eq!(made.scripts, covered, "{}", made.files["coverage.md"]);
    for path in files(&request.out) {
        let text = fs::read_to_string(&path).expect("a text");
        assert!(!text.contains(SECRET), "{} has it", path.display());
        // Each value query runs on the copy.
        if path.parent().is_some_and(|parent| parent.ends_with("values")) {
            client.batch_execute(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        }
    }
}
