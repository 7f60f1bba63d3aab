//! The rows of two servers, compared: a digest of each table, of the parts of those that differ, and the rows
//! of these parts, which are named.
//!
//! Each server is read in one snapshot by a thread of its own. Nothing but SELECT is sent, whose lock is ACCESS
//! SHARE. What is kept here is a digest for each table and part, and the row that each server has given last.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use lab::wait_until;
use server::Client;
use site::{Site, SiteNode};
use spec::{Check, SameRows, metrics};

use crate::error::Error;
use crate::outcome::{CheckOutcome, TrialFacts};

/// Compares the rows of the pairs of servers that the point names. The figures are of all pairs together.
pub(crate) fn check(site: &mut Site, before: &TrialFacts<'_>) -> Result<CheckOutcome, Error> {
    let mut outcome = CheckOutcome::default();
    let asked = before.point.checks.iter().filter_map(|check| match check {
        Check::SameRows(asked) => Some(asked),
        _ => None,
    });
    let mut all: Option<FoundRows> = None;
    let began = Instant::now();
    for asked in asked {
        let found = compare(site, asked)?;
        found.notes.iter().for_each(|note| outcome.note(note.clone()));
        let sum = all.get_or_insert_default();
        sum.rows += found.rows;
        sum.bytes += found.bytes;
        sum.different += found.different;
        sum.extra += found.extra;
    }
    if let Some(all) = all {
        outcome.set(&metrics::ROWS_COMPARED, "", all.rows as f64);
        outcome.set(&metrics::ROWS_COMPARED_BYTES, "", all.bytes as f64);
        outcome.set(&metrics::ROWS_COMPARE_S, "", began.elapsed().as_secs_f64());
        outcome.set(&metrics::ROWS_DIFFERENT, "", all.different as f64);
        outcome.set(&metrics::ROWS_EXTRA, "", all.extra as f64);
    }
    Ok(outcome)
}

/// What a comparison has found.
#[derive(Debug, Default, PartialEq)]
struct FoundRows {
    rows: u64,
    bytes: u64,
    different: u64,
    extra: u64,
    notes: Vec<String>,
}

/// A table as a server describes it.
#[derive(Clone, Debug, PartialEq)]
struct ComparedTable {
    /// The name in messages.
    name: String,
    /// The name in SQL.
    sql: String,
    /// The columns, as SQL has them.
    columns: Vec<String>,
    /// The columns of the primary key; empty without one.
    key: Vec<String>,
    bytes: u64,
}

impl ComparedTable {
    /// The row as text.
    fn row(&self) -> String {
        format!("ROW({})::text", self.columns.join(", "))
    }

    /// The text by which a row is found on the other server: its primary key, or the whole row.
    fn key(&self) -> String {
        match self.key.as_slice() {
            [] => self.row(),
            key => format!("ROW({})::text", key.join(", ")),
        }
    }
}

fn compare(site: &Site, asked: &SameRows) -> Result<FoundRows, Error> {
    wait_for_subscriber(site, &asked.nodes);
    compare_servers([node(site, &asked.nodes[0])?, node(site, &asked.nodes[1])?], asked)
}

fn compare_servers(nodes: [&SiteNode; 2], asked: &SameRows) -> Result<FoundRows, Error> {
    let mut clients = [nodes[0].connect()?, nodes[1].connect()?];
    let [one, other] = &mut clients;
    begin(one, nodes[0])?;
    begin(other, nodes[1])?;
    let tables = [tables(one, nodes[0])?, tables(other, nodes[1])?];
    let mut found = FoundRows::default();
    let chosen = chosen(&tables, asked, &mut found)?;
    let digest = |table: &ComparedTable| {
        format!("SELECT 0, count(*), {} FROM {}", sum(&table.row()), table.sql)
    };
    let queries: Vec<String> = chosen.iter().map(digest).collect();
    let digests = on_both(&mut clients, nodes, &queries)?;
    for (index, table) in chosen.iter().enumerate() {
        let whole = [&digests[0][index], &digests[1][index]];
        found.bytes += table.bytes;
        found.rows += whole[0].values().map(|part| part.0).sum::<u64>();
        if whole[0] == whole[1] {
            continue;
        }
        let part = format!("{} & {}", hash(&table.key(), 1), PARTS - 1);
        let parts = format!(
            "SELECT ({part})::int, count(*), {} FROM {} GROUP BY 1",
            sum(&table.row()),
            table.sql
        );
        let parts = on_both(&mut clients, nodes, &[parts])?;
        let unlike: BTreeSet<i32> = parts[0][0]
            .keys()
            .chain(parts[1][0].keys())
            .filter(|part| parts[0][0].get(*part) != parts[1][0].get(*part))
            .copied()
            .collect();
        let unlike = unlike.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let rows = format!(
            "SELECT place, key, content FROM (SELECT {order} AS place, {key} AS key, {row} AS content FROM {table} \
             WHERE {part} IN ({unlike})) unlike ORDER BY place, key COLLATE \"C\", content",
            order = hash(&table.key(), 1),
            key = table.key(),
            row = hash(&table.row(), 0),
            table = table.sql
        );
        name_rows(&mut clients, nodes, &rows, (table, asked), &mut found)?;
    }
    Ok(found)
}

/// A subscriber that still gets changes has them before it is compared; one that does not get them in time has
/// other rows, which the comparison finds.
fn wait_for_subscriber(site: &Site, nodes: &[String; 2]) {
    for name in nodes {
        let is_enabled = "SELECT EXISTS (SELECT FROM pg_subscription WHERE subenabled)";
        let is_enabled = site.node(name).and_then(|node| node.server.value(is_enabled).ok()?);
        if is_enabled.as_deref() != Some("t") {
            continue;
        }
        let Ok(mut catching_up) = site.caught_up(name) else { continue };
        let reached = || Ok::<_, Error>(catching_up.is_reached().unwrap_or(false).then_some(()));
        // Whether it was reached in time is told by the rows.
        _ = wait_until(CATCHES_UP_WITHIN, reached);
    }
}

fn node<'s>(site: &'s Site, name: &str) -> Result<&'s SiteNode, Error> {
    Ok(site.node(name).ok_or_else(|| site::Error::NoServer(name.to_owned()))?)
}

fn failed(node: &SiteNode) -> impl FnOnce(postgres::Error) -> Error {
    Error::query(format!("comparing the rows of {}", node.name))
}

fn begin(client: &mut Client, node: &SiteNode) -> Result<(), Error> {
    client.batch_execute(SESSION).map_err(failed(node))
}

fn tables(client: &mut Client, node: &SiteNode) -> Result<Vec<ComparedTable>, Error> {
    let rows = client.query(TABLES, &[]).map_err(failed(node))?;
    let table = |row: &postgres::Row| ComparedTable {
        name: row.get(0),
        sql: row.get(1),
        columns: row.get(2),
        key: row.get(3),
        bytes: u64::try_from(row.get::<_, i64>(4)).expect("a size is not negative"),
    };
    Ok(rows.iter().map(table).collect())
}

/// The tables that both servers have with the same columns; others are differences.
fn chosen(
    tables: &[Vec<ComparedTable>; 2],
    asked: &SameRows,
    found: &mut FoundRows,
) -> Result<Vec<ComparedTable>, Error> {
    let by_name = |side: usize| {
        let named = tables[side].iter().map(|table| (table.name.as_str(), table));
        named.collect::<BTreeMap<_, _>>()
    };
    let both = [by_name(0), by_name(1)];
    let names: BTreeSet<&str> = match asked.tables.as_slice() {
        [] => both.iter().flat_map(|side| side.keys().copied()).collect(),
        named => named.iter().map(String::as_str).collect(),
    };
    let mut chosen = Vec::new();
    for name in names {
        match (both[0].get(name), both[1].get(name)) {
            (None, None) => {
                let (table, node) = (name.to_owned(), asked.nodes.join(" and "));
                return Err(Error::NoComparedTable { table, node });
            }
            (Some(one), Some(other)) => {
                let columns = |table: &ComparedTable| -> BTreeSet<String> {
                    table.columns.iter().cloned().collect()
                };
                if columns(one) == columns(other) {
                    chosen.push((*one).clone());
                    continue;
                }
                found.different += 1;
                found.notes.push(format!("table {name} has other columns on {}", asked.nodes[1]));
            }
            (one, _) => {
                let lacks = &asked.nodes[usize::from(one.is_some())];
                found.different += 1;
                found.notes.push(format!("{lacks} has no table {name}"));
            }
        }
    }
    Ok(chosen)
}

/// The digests of one query: number of rows and sum of their hashes, by part.
type Digests = BTreeMap<i32, (u64, String)>;

/// The answers of both servers, which work at the same time.
fn on_both(
    clients: &mut [Client; 2],
    nodes: [&SiteNode; 2],
    queries: &[String],
) -> Result<[Vec<Digests>; 2], Error> {
    let read = |client: &mut Client, node: &SiteNode| {
        let digests = queries.iter().map(|query| {
            let rows = client.query(query, &[]).map_err(failed(node))?;
            let digest = |row: &postgres::Row| {
                let count = u64::try_from(row.get::<_, i64>(1)).expect("a count is not negative");
                (row.get(0), (count, row.get(2)))
            };
            Ok(rows.iter().map(digest).collect())
        });
        digests.collect::<Result<Vec<Digests>, Error>>()
    };
    let [one, other] = clients;
    thread::scope(|scope| {
        let beside = scope.spawn(|| read(other, nodes[1]));
        let one = read(one, nodes[0]);
        let other = beside.join().unwrap_or_else(|it| std::panic::resume_unwind(it));
        Ok([one?, other?])
    })
}

/// A row on its way: its place in the order, its key, and its hash.
type Passing = (i64, String, i64);

/// Reads the rows of both servers in one order, side by side, and names those that differ.
fn name_rows(
    clients: &mut [Client; 2],
    nodes: [&SiteNode; 2],
    query: &str,
    (table, asked): (&ComparedTable, &SameRows),
    found: &mut FoundRows,
) -> Result<(), Error> {
    let read = |client: &mut Client, node: &SiteNode, to: SyncSender<Passing>| {
        let pass = |row: postgres::Row| {
            // Whoever does not listen any more has failed itself.
            _ = to.send((row.get(0), row.get(1), row.get(2)));
        };
        client.query_each(query, pass).map_err(failed(node))
    };
    let [one, other] = clients;
    thread::scope(|scope| {
        let (to_one, from_one) = sync_channel(ROWS_AHEAD);
        let (to_other, from_other) = sync_channel(ROWS_AHEAD);
        let readers = [
            scope.spawn(|| read(one, nodes[0], to_one)),
            scope.spawn(|| read(other, nodes[1], to_other)),
        ];
        merge(&from_one, &from_other, table, asked, found);
        for reader in readers {
            reader.join().unwrap_or_else(|it| std::panic::resume_unwind(it))?;
        }
        Ok(())
    })
}

fn merge(
    one: &Receiver<Passing>,
    other: &Receiver<Passing>,
    table: &ComparedTable,
    asked: &SameRows,
    found: &mut FoundRows,
) {
    let mut named = 0;
    let mut note = |key: &str, what: &str, found: &mut FoundRows| {
        found.different += 1;
        named += 1;
        match named {
            1..=ROWS_NAMED => {
                let key: String = key.chars().filter(|c| !c.is_control()).take(KEY_SHOWN).collect();
                found.notes.push(format!("{} {key}: {what}", table.name));
            }
            _ if named == ROWS_NAMED + 1 => {
                found.notes.push(format!("{}: further rows are not named", table.name));
            }
            _ => {}
        }
    };
    let only = |name: &str| format!("only on {name}");
    let (mut left, mut right) = (one.recv().ok(), other.recv().ok());
    loop {
        let order = match (&left, &right) {
            (None, None) => break,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            // Rows without a key are their own key, so that equal ones pair off one by one.
            (Some(a), Some(b)) => (a.0, &a.1).cmp(&(b.0, &b.1)),
        };
        let (alone, name) = match order {
            Ordering::Less => (left.take(), &asked.nodes[0]),
            Ordering::Greater => (right.take(), &asked.nodes[1]),
            Ordering::Equal => {
                let (a, b) = (left.take(), right.take());
                if let (Some(a), Some(b)) = (&a, &b)
                    && a.2 != b.2
                {
                    note(&a.1, "not the same", found);
                }
                (left, right) = (one.recv().ok(), other.recv().ok());
                continue;
            }
        };
        if let Some((_, key, _)) = alone {
            match asked.extra.as_ref() == Some(name) {
                true => found.extra += 1,
                false => note(&key, &only(name), found),
            }
        }
        match order {
            Ordering::Less => left = one.recv().ok(),
            _ => right = other.recv().ok(),
        }
    }
}

fn hash(text: &str, seed: u32) -> String {
    format!("hashtextextended({text}, {seed})")
}

/// The sum of the hashes of rows, which does not depend on their order.
fn sum(row: &str) -> String {
    format!("coalesce(sum({}), 0)::text", hash(row, 0))
}

/// Has both servers write values the same way, in one state of their databases.
const SESSION: &str = "\
    SET statement_timeout = 0; SET jit = off; SET datestyle = 'ISO, YMD'; SET timezone = 'UTC'; \
    SET intervalstyle = 'iso_8601'; SET extra_float_digits = 3; SET bytea_output = 'hex'; \
    SET search_path = ''; SET max_parallel_workers_per_gather = 0; \
    BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";

/// The tables of users. Columns and keys are in an order that does not depend on their place.
const TABLES: &str = "\
    SELECT CASE WHEN n.nspname = 'public' THEN '' ELSE n.nspname || '.' END || c.relname, \
           format('%I.%I', n.nspname, c.relname), \
           ARRAY(SELECT quote_ident(a.attname) FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid \
                 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attname COLLATE \"C\"), \
           ARRAY(SELECT quote_ident(a.attname) FROM pg_catalog.pg_index i \
                 JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey) \
                 WHERE i.indrelid = c.oid AND i.indisprimary ORDER BY a.attname COLLATE \"C\"), \
           pg_catalog.pg_relation_size(c.oid) \
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence <> 't' \
      AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' \
      AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_class'::regclass \
                      AND d.objid = c.oid AND d.deptype = 'e')";

/// Parts of a table, by the hash of the key; a power of two.
const PARTS: u32 = 1024;
/// Rows of a table that are named.
const ROWS_NAMED: u64 = 5;
/// Characters of a key that are shown.
const KEY_SHOWN: usize = 80;
/// Rows of one server that are read before those of the other one.
const ROWS_AHEAD: usize = 1024;
/// The time for a subscriber to get what its publisher has.
const CATCHES_UP_WITHIN: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use lab::Server;
    use testing::servers;

    use super::*;

    fn site_node(name: &str, node: lab::Node) -> SiteNode {
        let server = Server::Node(Box::new(node));
        SiteNode { name: name.to_owned(), server, conninfo: String::new(), schema: None }
    }

    #[test]
    fn rows_that_differ_are_named_and_nothing_is_locked_but_for_reading() {
        let (old, _lab) = servers::server(&[]);
        let (new, _other_lab) = servers::server(&[]);
        let both = "CREATE TABLE stock (id int, place text, count int, PRIMARY KEY (place, id)); \
                    CREATE TABLE log (note text); CREATE UNLOGGED TABLE seen (at timestamptz); \
                    INSERT INTO stock SELECT g, 'p' || g % 3, g FROM generate_series(1, 3000) g; \
                    INSERT INTO seen VALUES ('2020-01-01 12:00+00')";
        let nodes = [site_node("old", old), site_node("new", new)];
        let run = |at: usize, sql: &str| nodes[at].connect().unwrap().batch_execute(sql).unwrap();
        (0..2).for_each(|at| run(at, both));
        // The order of the rows and the time zone of the server do not count as a difference.
        run(
            1,
            "UPDATE stock SET count = count WHERE id < 100; ALTER ROLE ALL SET timezone = 'Asia/Tokyo'",
        );
        run(0, "INSERT INTO log VALUES ('a'), ('a')");
        run(1, "INSERT INTO log VALUES ('a')");
        let mut locker = nodes[1].connect().unwrap();
        let mut held = locker.transaction().unwrap();
        // Everything but ACCESS SHARE would wait for it.
        held.batch_execute("LOCK stock, log, seen IN EXCLUSIVE MODE").unwrap();
        let check = |tables: &[&str], extra: Option<&str>, expected: (u64, u64, u64, &[&str])| {
            let asked = SameRows {
                nodes: ["old".to_owned(), "new".to_owned()],
                tables: tables.iter().map(|name| (*name).to_owned()).collect(),
                extra: extra.map(str::to_owned),
            };
            let found = compare_servers([&nodes[0], &nodes[1]], &asked).unwrap();
            let (rows, different, extra, notes) = expected;
            let notes: Vec<String> = notes.iter().map(|note| (*note).to_owned()).collect();
            assert_eq!(
                (found.rows, found.different, found.extra),
                (rows, different, extra),
                "{found:?}"
            );
            assert_eq!(found.notes, notes);
        };
        check(&["stock", "seen"], None, (3001, 0, 0, &[]));
        check(&["log"], None, (2, 1, 0, &["log (a): only on old"]));
        drop(held);
        run(
            1,
            "UPDATE stock SET count = 0 WHERE id = 7; DELETE FROM stock WHERE id = 8; \
                INSERT INTO stock VALUES (9000, 'p', 1); ALTER TABLE log ADD other int; DROP TABLE seen",
        );
        let notes = ["stock (7,p1): not the same", "stock (8,p2): only on old"];
        let (new_only, mut sorted) = ("stock (9000,p): only on new", Vec::from(notes));
        sorted.push(new_only);
        let asked = |extra: Option<&str>| SameRows {
            nodes: ["old".to_owned(), "new".to_owned()],
            tables: Vec::new(),
            extra: extra.map(str::to_owned),
        };
        let mut found = compare_servers([&nodes[0], &nodes[1]], &asked(None)).unwrap();
        found.notes.sort();
        let whole = ["new has no table seen", "table log has other columns on new"];
        let expected: Vec<&str> = sorted.iter().copied().chain(whole).collect();
        let mut expected: Vec<String> = expected.into_iter().map(str::to_owned).collect();
        expected.sort();
        assert_eq!((found.different, found.extra), (5, 0));
        assert_eq!(found.notes, expected);
        let found = compare_servers([&nodes[0], &nodes[1]], &asked(Some("new"))).unwrap();
        assert_eq!((found.different, found.extra), (4, 1));
        let missing = SameRows { tables: vec!["stok".to_owned()], ..asked(None) };
        let error = compare_servers([&nodes[0], &nodes[1]], &missing).unwrap_err();
        assert!(error.is_of_study(), "{error}");
        objects(&nodes);
    }

    /// The catalogs of the same two servers.
    fn objects(nodes: &[SiteNode; 2]) {
        use crate::same_objects::between;
        let run = |at: usize, sql: &str| nodes[at].connect().unwrap().batch_execute(sql).unwrap();
        let again = "DROP TABLE IF EXISTS log, seen, stock; CREATE ROLE clerk; \
                     CREATE TABLE stock (id serial PRIMARY KEY, count int CHECK (count > 0)); \
                     GRANT SELECT ON stock TO clerk; INSERT INTO stock (count) VALUES (1), (2)";
        (0..2).for_each(|at| run(at, again));
        let found = || between([&nodes[0], &nodes[1]]).unwrap();
        assert_eq!(found(), (Vec::new(), Vec::new()));
        run(1, "INSERT INTO stock (count) VALUES (3)");
        assert_eq!(found(), (Vec::new(), Vec::new()), "a sequence may be ahead");
        run(
            1,
            "ALTER TABLE stock REPLICA IDENTITY FULL; REVOKE SELECT ON stock FROM clerk; \
                ALTER TABLE stock DROP CONSTRAINT stock_count_check; SELECT setval('stock_id_seq', 1)",
        );
        let (different, behind) = found();
        assert_eq!(different.len(), 2, "{different:?}");
        assert_eq!(different[0], "constraint stock_count_check of public.stock: only on old");
        assert!(different[1].contains("replica identity full"), "{different:?}");
        let words = "sequence public.stock_id_seq has given 2 on old, and 1 on new";
        assert_eq!(behind, [words]);
    }
}
