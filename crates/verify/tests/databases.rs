//! Two databases of a real server, compared.

use std::thread;
use std::time::Duration;

use server::Client;
use testing::servers;
use verify::{ComparedServer, Error, PairMember, ServerPair, TableFilter};

/// A server with two databases, `old` and `new`.
struct Databases {
    node: lab::Node,
    _lab: lab::Lab,
}

impl Databases {
    fn new() -> Databases {
        let (node, lab) = servers::server(&[]);
        let databases = Databases { node, _lab: lab };
        for name in ["old", "new"] {
            databases.run("postgres", &format!("CREATE DATABASE {name}"));
        }
        databases
    }

    fn client(&self, database: &str) -> Client {
        self.node.connect_to(database).unwrap()
    }

    fn run(&self, database: &str, sql: &str) {
        self.client(database).batch_execute(sql).unwrap();
    }

    fn both(&self, sql: &str) {
        ["old", "new"].iter().for_each(|name| self.run(name, sql));
    }

    fn pair(&self) -> Result<ServerPair, Error> {
        let begin = |name| ComparedServer::begin(name, self.client(name));
        ServerPair::new([begin("old")?, begin("new")?])
    }

    /// Rows of the first database, different and extra ones; and all that is said of them.
    fn rows(
        &self,
        filter: &TableFilter,
        extra: Option<PairMember>,
    ) -> Result<([u64; 3], Vec<String>), Error> {
        let mut pair = self.pair()?;
        let tables = pair.tables(filter)?;
        assert!(pair.estimated(&tables)?.is_none_or(|time| time < Duration::from_secs(600)));
        let compared = pair.rows(&tables, extra, |_| {})?;
        let mut sums = [0, 0, 0];
        for table in &compared {
            assert!(!table.is_at_least, "{table:?}");
            for (sum, value) in sums.iter_mut().zip([table.rows[0], table.different, table.extra]) {
                *sum += value;
            }
        }
        let named = compared.into_iter().flat_map(|table| table.named);
        let mut said: Vec<String> = named.chain(tables.unlike).collect();
        said.sort();
        Ok((sums, said))
    }
}

fn only(tables: &[&str]) -> TableFilter {
    let tables = tables.iter().map(|name| (*name).to_owned()).collect();
    TableFilter { tables, schemas: Vec::new() }
}

#[test]
fn rows_that_differ_are_named() {
    let databases = Databases::new();
    let check = |filter: &TableFilter, extra, expected: [u64; 3], said: &[&str]| {
        let found = databases.rows(filter, extra).unwrap();
        let said = said.iter().map(|text| (*text).to_owned()).collect();
        assert_eq!(found, (expected, said), "{filter:?}");
    };
    let all = TableFilter::default();
    databases.both(
        "CREATE TABLE stock (id int, place text, count int, PRIMARY KEY (place, id)); \
         CREATE TABLE log (note text); CREATE UNLOGGED TABLE seen (at timestamptz); \
         CREATE SCHEMA app; CREATE TABLE app.\"Parted\" (id int) PARTITION BY RANGE (id); \
         CREATE TABLE app.low PARTITION OF app.\"Parted\" FOR VALUES FROM (0) TO (9); \
         CREATE TABLE base (a int); CREATE TABLE derived () INHERITS (base); \
         CREATE TABLE empty (); INSERT INTO derived VALUES (1); INSERT INTO app.\"Parted\" VALUES (1), (2); \
         INSERT INTO stock SELECT g, 'p' || g % 3, g FROM generate_series(1, 3000) g; \
         INSERT INTO seen VALUES ('2020-01-01 12:00+00'); SELECT lo_from_bytea(4711, '\\x00ff')",
    );
    // The order of rows and the settings of a database are no differences.
    databases.run(
        "new",
        "UPDATE stock SET count = count WHERE id < 100; ALTER DATABASE new SET timezone = 'Asia/Tokyo'; \
         ALTER DATABASE new SET datestyle = 'german'; ALTER DATABASE new SET extra_float_digits = 0",
    );
    check(&all, None, [3005, 0, 0], &[]);
    databases.run("old", "INSERT INTO log VALUES ('a'), ('a')");
    databases.run("new", "INSERT INTO log VALUES ('a'); INSERT INTO app.low VALUES (3)");
    check(&only(&["log"]), None, [2, 1, 0], &["log (a): only on old"]);
    check(&only(&["stock", "seen"]), None, [3001, 0, 0], &[]);
    let app = TableFilter { schemas: vec!["app".to_owned()], ..all.clone() };
    check(&app, None, [2, 1, 0], &["app.Parted (3): only on new"]);
    check(&app, Some(PairMember::Other), [2, 0, 1], &[]);
    check(&app, Some(PairMember::One), [2, 1, 0], &["app.Parted (3): only on new"]);
    databases.run(
        "new",
        "UPDATE stock SET count = 0 WHERE id = 7; DELETE FROM stock WHERE id = 8; TRUNCATE app.low; \
         INSERT INTO stock VALUES (9000, 'p', 1); ALTER TABLE log ADD other int; DROP TABLE seen; \
         SELECT lo_put(4711, 1, '\\x00')",
    );
    check(
        &all,
        None,
        [3004, 6, 0],
        &[
            "app.Parted (1): only on old",
            "app.Parted (2): only on old",
            "large object (4711,0): not the same",
            "new has no table seen",
            "stock (7,p1): not the same",
            "stock (8,p2): only on old",
            "stock (9000,p): only on new",
            "table log has other columns on new",
        ],
    );
    databases.run("new", "TRUNCATE stock");
    let (sums, said) = databases.rows(&only(&["stock"]), None).unwrap();
    assert_eq!((sums, said.len()), ([3000, 3000, 0], 6));
    assert!(said.contains(&"stock: further rows are not named".to_owned()), "{said:?}");
}

#[test]
fn a_comparison_that_would_not_see_everything_is_refused() {
    let databases = Databases::new();
    databases.both("CREATE TABLE stock (id serial)");
    databases.run("postgres", "CREATE ROLE clerk LOGIN; ALTER DATABASE new OWNER TO clerk");
    let check = |sql: &str, filter: &TableFilter, expected: &str| {
        databases.run("new", sql);
        let begin = |name| {
            let mut client = databases.client(name);
            if name == "new" {
                client.batch_execute("SET ROLE clerk").unwrap();
            }
            ComparedServer::begin(name, client)
        };
        let compare = || -> Result<(), Error> {
            let mut pair = ServerPair::new([begin("old")?, begin("new")?])?;
            pair.tables(filter)?;
            pair.objects(filter).map(drop)
        };
        let error = compare().unwrap_err();
        assert!(!error.is_halfway());
        assert_eq!(error.to_string(), format!("comparing rows: {expected}"));
    };
    let all = TableFilter::default();
    check("SELECT 1", &all, "new does not let the role clerk read all of stock");
    check(
        "GRANT SELECT ON stock TO clerk",
        &all,
        "new does not let the role clerk read all of public.stock_id_seq",
    );
    check(
        "ALTER TABLE stock ENABLE ROW LEVEL SECURITY",
        &all,
        "new does not let the role clerk read all of stock",
    );
    check(
        "SELECT 1",
        &only(&["stok"]),
        "neither old nor new has no table stok; name a table with its schema, unless that is public",
    );
    databases
        .run("postgres", "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'");
    let begin = |name, database| ComparedServer::begin(name, databases.client(database)).unwrap();
    let pair = |one, other| ServerPair::new([begin("a", one), begin("b", other)]).err().unwrap();
    let expected = "comparing rows: a and b are one database of one server";
    assert_eq!(pair("old", "old").to_string(), expected);
    assert!(matches!(pair("old", "latin"), Error::Encodings { .. }));
}

#[test]
fn nothing_is_locked_but_for_reading_and_a_lock_is_not_waited_for_without_end() {
    let databases = Databases::new();
    databases.both("CREATE TABLE a (id serial PRIMARY KEY); CREATE TABLE b (id int)");
    databases.both("INSERT INTO a SELECT FROM generate_series(1, 10)");
    let mut pair = databases.pair().unwrap();
    let tables = pair.tables(&TableFilter::default()).unwrap();
    // The comparison stands still at the second table, and holds what it holds.
    let mut locker = databases.client("new");
    let mut held = locker.transaction().unwrap();
    held.batch_execute("LOCK b").unwrap();
    let comparing = thread::spawn(move || {
        pair.objects(&TableFilter::default())?;
        pair.rows(&tables, None, |_| {}).map(|_| ())
    });
    let mut watcher = databases.client("new");
    let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'b'::regclass";
    testing::until("the comparison waits", || {
        watcher.query_one(waits, &[]).unwrap().get::<_, i64>(0) == 1
    });
    let locks = "SELECT DISTINCT c.relname::text, l.mode FROM pg_locks l JOIN pg_class c ON c.oid = l.relation \
                 JOIN pg_stat_activity s USING (pid) WHERE NOT s.pid IN (pg_backend_pid(), $1) \
                 AND c.relnamespace = 'public'::regnamespace ORDER BY 1, 2";
    let own: i32 = held.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
    let rows = watcher.query(locks, &[&own]).unwrap();
    let seen: Vec<(String, String)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let expected = ["a", "a_id_seq", "a_pkey", "b"];
    assert!(
        seen.iter()
            .all(|(name, mode)| expected.contains(&name.as_str()) && mode == "AccessShareLock"),
        "{seen:?}"
    );
    assert!(seen.len() >= 3, "{seen:?}");
    let error = comparing.join().unwrap().unwrap_err();
    assert!(error.is_halfway() && error.hint().unwrap().contains("pg_locks"), "{error}");
    assert!(
        error.to_string().contains("the rows of b on new: canceling statement due to lock timeout"),
        "{error}"
    );
    drop(held);
    let left = "SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation WHERE c.relname = 'a'";
    testing::until("nothing is held", || {
        watcher.query_one(left, &[]).unwrap().get::<_, i64>(0) == 0
    });
}

#[test]
fn objects_that_differ_and_sequences_that_are_behind_are_named() {
    let databases = Databases::new();
    databases.run("postgres", "CREATE ROLE clerk");
    databases.both(
        "CREATE TABLE stock (id serial PRIMARY KEY, count int CHECK (count > 0)); CREATE TABLE other (id serial); \
         GRANT SELECT ON stock TO clerk; INSERT INTO stock (count) VALUES (1), (2)",
    );
    let check = |sql: &str, different: &[&str], behind: &[&str]| {
        databases.run("new", sql);
        let found = databases.pair().unwrap().objects(&only(&["stock"])).unwrap();
        assert_eq!(found.different.len(), different.len(), "{sql}: {found:?}");
        for (said, words) in found.different.iter().zip(different) {
            assert!(said.contains(words), "{sql}: {found:?}");
        }
        assert_eq!(found.behind, behind, "{sql}");
    };
    check("DROP TABLE other", &[], &[]);
    check("INSERT INTO stock (count) VALUES (3)", &[], &[]);
    check("SELECT setval('stock_id_seq', 3, false)", &[], &[]);
    let words = "sequence public.stock_id_seq has given 2 on old, and 1 on new";
    check("SELECT setval('stock_id_seq', 1)", &[], &[words]);
    let words = "sequence public.stock_id_seq has given 2 on old, and nothing on new";
    check("SELECT setval('stock_id_seq', 2, false)", &[], &[words]);
    check("SELECT setval('stock_id_seq', 2)", &[], &[]);
    check(
        "ALTER TABLE stock REPLICA IDENTITY FULL; REVOKE SELECT ON stock FROM clerk; \
         ALTER TABLE stock DROP CONSTRAINT stock_count_check, ALTER count TYPE bigint, ALTER id DROP DEFAULT; \
         CREATE INDEX mine ON stock (count); UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'stock_pkey'::regclass",
        &[
            "column count of public.stock: integer on old, bigint on new",
            "column id of public.stock: integer, not null, default nextval",
            "constraint stock_count_check of public.stock: only on old",
            "index public.stock_pkey: ",
            "table public.stock: owner ",
            "index public.mine: only on new",
        ],
        &[],
    );
}
