//! The search for damage on a server: amcheck, every page that it does not look at, and every column of every
//! row, by heap and by index.

use std::collections::BTreeMap;

use postgres::SimpleQueryMessage;
use postgres::types::{ToSql, Type};
use server::Client;
use server::message::with_detail;
use site::SiteNode;
use spec::StateExploration;

use crate::error::Error;
use crate::explore::place::BaseFiles;
use crate::explore::spent::{ExplorationPhase, ExplorationTime};

/// The study's own queries, each row of whose answers is damage.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DamageQueries<'e> {
    /// A query about anything.
    pub(super) complaints: Option<&'e str>,
    /// Queries about one table each.
    pub(super) followed: Option<&'e BTreeMap<String, String>>,
}

impl<'e> DamageQueries<'e> {
    /// Those of an exploration.
    pub(super) fn of(explore: &'e StateExploration) -> DamageQueries<'e> {
        DamageQueries {
            complaints: explore.complaints.as_deref(),
            followed: Some(&explore.followed),
        }
    }

    pub(super) fn followed(&self) -> impl Iterator<Item = (&str, &str)> {
        let each = self.followed.into_iter().flatten();
        each.map(|(table, sql)| (table.as_str(), sql.as_str()))
    }
}

/// The first damage of a server. Relations whose files nobody can have written since the log began are
/// as they were then, and are not looked at again.
pub(super) fn damage(
    node: &SiteNode,
    untouched: &BaseFiles,
    asked: DamageQueries<'_>,
    spent: &mut ExplorationTime,
) -> Option<String> {
    let mut client = match node.connect() {
        Ok(client) => client,
        Err(error) => return Some(error.to_string()),
    };
    let found = find(&mut client, untouched, asked, spent);
    found.unwrap_or_else(|error| Some(with_detail(&error)))
}

fn find(
    client: &mut Client,
    untouched: &BaseFiles,
    asked: DamageQueries<'_>,
    spent: &mut ExplorationTime,
) -> Result<Option<String>, postgres::Error> {
    client.batch_execute(QUIET)?;
    if let Some(complaints) = asked.complaints
        && let Some(complaint) = spent.time(ExplorationPhase::Rows, || first(client, complaints))?
    {
        return Ok(Some(complaint));
    }
    for (table, sql) in asked.followed() {
        if let Some(complaint) = spent.time(ExplorationPhase::Rows, || first(client, sql))? {
            return Ok(Some(format!("{table}: {complaint}")));
        }
    }
    let known: [(&(dyn ToSql + Sync), Type); 2] =
        [(&untouched.paths, Type::TEXT_ARRAY), (&untouched.since_s, Type::FLOAT8)];
    let changed = client.query_typed(CHANGED, &known)?;
    let changed: Vec<u32> = changed.iter().map(|row| row.get(0)).collect();
    spent.time(ExplorationPhase::Indexes, || {
        about(client, INDEXES, &changed)?;
        read_others(client, &changed)
    })?;
    let complaint = spent.time(ExplorationPhase::Tables, || about(client, TABLES, &changed))?;
    if let Some(row) = complaint.first() {
        return Ok(Some(row.get(0)));
    }
    spent.time(ExplorationPhase::Rows, || read_tables(client, &changed))
}

/// The rows of a query about relations.
fn about(
    client: &mut Client,
    sql: &str,
    relations: &[u32],
) -> Result<Vec<postgres::Row>, postgres::Error> {
    client.query_typed(sql, &[(&relations, Type::OID_ARRAY)])
}

/// Reads every page of what amcheck does not know. The first complaint is an error.
fn read_others(client: &mut Client, changed: &[u32]) -> Result<(), postgres::Error> {
    match first(client, HAS_PREWARM)?.as_deref() {
        Some("there") => {}
        Some("available") => client.batch_execute("CREATE EXTENSION pg_prewarm")?,
        _ => return Ok(()),
    }
    about(client, OTHERS, changed).map(drop)
}

/// The first row of a query of the study.
fn first(client: &mut Client, sql: &str) -> Result<Option<String>, postgres::Error> {
    let said = client.simple_query(sql)?;
    let row = said.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or("NULL").to_owned()),
        _ => None,
    });
    Ok(row)
}

/// Reads every column of every row, and so every value that a table keeps apart. The first table that cannot be
/// read, or that has other rows by heap than by index.
fn read_tables(client: &mut Client, changed: &[u32]) -> Result<Option<String>, postgres::Error> {
    let tables = about(client, READ_TABLES, changed)?;
    let tables: Vec<ReadTable> = tables.iter().map(ReadTable::of).collect();
    let indexed: Vec<&ReadTable> = tables.iter().filter(|table| table.has_index).collect();
    // All in one message: a round trip for each statement would take longer than reading most tables.
    let mut all = BY_HEAP.to_owned();
    all.extend(tables.iter().map(ReadTable::by_heap));
    all.push_str(BY_INDEX);
    all.extend(indexed.iter().map(|table| table.by_index()));
    let said = match client.simple_query(&all) {
        Ok(said) => said,
        Err(error) => {
            let mut each = tables.iter().filter_map(|table| table.unreadable(client).transpose());
            return each.next().unwrap_or(Err(error)).map(Some);
        }
    };
    let counts = row_counts(&said);
    let (by_heap, by_index) = counts[SETTINGS..].split_at(tables.len());
    let by_heap = tables.iter().zip(by_heap).filter(|(table, _)| table.has_index);
    let mut both = by_heap.zip(&by_index[SETTINGS..]);
    let differs = both.find(|((_, by_heap), by_index)| by_heap != by_index);
    Ok(differs.map(|((table, by_heap), by_index)| {
        format!("{} has {by_heap} rows by heap, {by_index} by index", table.name)
    }))
}

/// The number of rows that each statement has counted or copied.
fn row_counts(said: &[SimpleQueryMessage]) -> Vec<u64> {
    let (mut counts, mut counted) = (Vec::new(), None);
    for message in said {
        match message {
            SimpleQueryMessage::Row(row) => {
                counted = row.get(0).and_then(|count| count.parse::<u64>().ok());
            }
            SimpleQueryMessage::CommandComplete(rows) => {
                counts.push(counted.take().unwrap_or(*rows));
            }
            _ => {}
        }
    }
    counts
}

/// A table that is read.
struct ReadTable {
    name: String,
    /// The columns whose values may fail to be read, and the last one, which is found behind all others.
    columns: String,
    /// True if one of them is of variable length or of a type with a table of its values.
    has_values_to_copy: bool,
    is_binary: bool,
    /// True if an index gives every row.
    has_index: bool,
}

impl ReadTable {
    fn of(row: &postgres::Row) -> ReadTable {
        let columns: Option<String> = row.get(1);
        ReadTable {
            name: row.get(0),
            // A table may have no column.
            columns: columns.unwrap_or_default(),
            has_values_to_copy: row.get(2),
            is_binary: row.get(3),
            has_index: row.get(4),
        }
    }

    /// Statement that reads every column of every row. A number of fixed length has no form that cannot be
    /// read, and takes much longer to be written than to be found.
    fn by_heap(&self) -> String {
        let ReadTable { name, columns, has_values_to_copy, is_binary, has_index: _ } = self;
        match (has_values_to_copy, columns.is_empty()) {
            (true, _) => {
                let form = if *is_binary { BINARY } else { "" };
                format!("COPY (SELECT {columns} FROM ONLY {name}) TO '/dev/null'{form};")
            }
            (false, true) => format!("SELECT count(*) FROM ONLY {name};"),
            (false, false) => format!("SELECT count(*), count({columns}) FROM ONLY {name};"),
        }
    }

    fn by_index(&self) -> String {
        format!("SELECT count(*) FROM ONLY {};", self.name)
    }

    /// Why it cannot be read, if it cannot.
    fn unreadable(&self, client: &mut Client) -> Result<Option<String>, postgres::Error> {
        let by_index = if self.has_index { self.by_index() } else { String::new() };
        let both = format!("{BY_HEAP}{}{BY_INDEX}{by_index}", self.by_heap());
        match client.simple_query(&both) {
            Ok(_) => Ok(None),
            Err(error) if error.as_db_error().is_none() => Err(error),
            Err(error) => {
                let why = with_detail(&error);
                Ok(Some(format!("reading every column of {}: {why}", self.name)))
            }
        }
    }
}

/// The followed tables whose query does not complain when no row of the table is left: it follows nothing.
pub(super) fn blind(node: &SiteNode, asked: DamageQueries<'_>) -> Result<Vec<String>, Error> {
    let mut blind = Vec::new();
    let mut client = node.connect()?;
    for (table, sql) in asked.followed() {
        let doing = || format!("finding out whether the query of {table} follows it");
        let mut ask = || {
            client.batch_execute(&format!("BEGIN; {NO_TRIGGERS}; DELETE FROM {table}"))?;
            let complaint = first(&mut client, sql);
            client.batch_execute("ROLLBACK")?;
            complaint
        };
        if ask().map_err(Error::query(doing()))?.is_none() {
            blind.push(table.to_owned());
        }
    }
    Ok(blind)
}

const NO_TRIGGERS: &str = "SET LOCAL session_replication_role = replica";

const BINARY: &str = " WITH (FORMAT binary)";

const QUIET: &str = "SET jit = off; SET max_parallel_workers_per_gather = 0";

/// The relations whose files may have changed: all but those in $1 that were not written since $2, and
/// those with more than one file. A relation that was dropped a moment ago has no file. Where the values that a
/// table keeps apart may have changed, the table may have.
const CHANGED: &str = "\
    WITH changed AS ( \
      SELECT c.oid, i.indrelid FROM pg_class c LEFT JOIN pg_index i ON i.indexrelid = c.oid \
      LEFT JOIN unnest($1) AS known (path) ON known.path = pg_relation_filepath(c.oid) \
      CROSS JOIN LATERAL pg_stat_file(known.path, true) AS file \
      WHERE c.relpersistence = 'p' AND c.relkind IN ('r', 't', 'm', 'i', 'S') \
        AND NOT coalesce(file.size < 1073741824 AND file.modification < to_timestamp($2), false)) \
    SELECT oid FROM changed UNION \
    SELECT c.oid FROM pg_class c JOIN changed ON c.reltoastrelid IN (changed.oid, changed.indrelid) \
    WHERE c.relkind IN ('r', 'm') AND c.relpersistence = 'p' AND c.reltoastrelid <> 0";

/// Every btree index: whether each row of its table is in it, and whether each page is where its parent says, and
/// ends where its parent says. So a search from the root finds each entry; amcheck's own search for each of them
/// (`rootdescend`) finds nothing more, and takes twice as long as all the rest. The first complaint is an error.
const INDEXES: &str = "\
    SELECT bt_index_parent_check(c.oid, true) FROM pg_class c JOIN pg_am m ON m.oid = c.relam \
    JOIN pg_index i ON i.indexrelid = c.oid \
    WHERE c.relkind = 'i' AND m.amname = 'btree' AND i.indisvalid AND c.relpersistence = 'p' \
      AND (c.oid = ANY ($1) OR i.indrelid = ANY ($1))";

/// Whether the server has the extension that reads the pages of relations of every kind, or could make it. The list of
/// all that it could be given is made from hundreds of files, and is read only where the extension is not there yet.
const HAS_PREWARM: &str = "\
    SELECT CASE WHEN EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_prewarm') THEN 'there' \
      WHEN EXISTS (SELECT FROM pg_available_extensions WHERE name = 'pg_prewarm') THEN 'available' END";

/// Reads indexes that are no btree, sequences, and the visibility maps of tables. Tables themselves are read as rows.
/// The relations are found first: their sizes are asked of files.
const OTHERS: &str = "\
    WITH others AS MATERIALIZED ( \
      SELECT c.oid, CASE WHEN c.relkind IN ('r', 't', 'm') THEN 'vm' ELSE 'main' END AS fork \
      FROM pg_class c LEFT JOIN pg_am m ON m.oid = c.relam LEFT JOIN pg_index i ON i.indexrelid = c.oid \
      WHERE (c.relkind IN ('S', 'r', 't', 'm') OR c.relkind = 'i' AND m.amname <> 'btree' AND i.indisvalid) \
        AND c.relpersistence = 'p' AND c.oid = ANY ($1)) \
    SELECT pg_prewarm(oid, 'buffer', fork) FROM others WHERE pg_relation_size(oid, fork) > 0";

/// The first complaint about a table, and about the values that it keeps apart.
const TABLES: &str = "\
    SELECT format('heap table %s, block %s, offset %s: %s', c.oid::regclass, v.blkno, v.offnum, v.msg) \
    FROM pg_class c JOIN pg_am m ON m.oid = c.relam AND m.amname = 'heap' \
    CROSS JOIN LATERAL verify_heapam(c.oid, on_error_stop => true, check_toast => true) v \
    WHERE c.relkind IN ('r', 't', 'm') AND c.relpersistence = 'p' AND c.oid = ANY ($1) LIMIT 1";

/// Every table with its stored columns of variable length or with a list of values, and its last column; whether
/// there is one of the former; whether each of them has a binary form, which is made faster; and whether an index
/// gives every row of it. amcheck alone compares the indexes of the system's catalogs.
const READ_TABLES: &str = "\
    SELECT c.oid::regclass::text, \
      string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum), \
      coalesce(bool_or(a.may_fail), false), \
      coalesce(bool_and(a.typsend <> 0 AND a.typtype IN ('b', 'e') AND coalesce(e.typsend <> 0, true)), true), \
      EXISTS (SELECT FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid \
        JOIN pg_am m ON m.oid = x.relam AND m.amname = 'btree' \
        WHERE i.indrelid = c.oid AND i.indisvalid AND i.indpred IS NULL \
          AND (c.relnamespace <> 'pg_catalog'::regnamespace)) \
    FROM pg_class c \
    LEFT JOIN LATERAL (SELECT attname, attnum, typtype, typsend, typelem, \
        attlen < 0 OR typtype IN ('e', 'd') AS may_fail, max(attnum) OVER () AS last \
      FROM pg_attribute JOIN pg_type t ON t.oid = atttypid \
      WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated <> 'v') a \
      ON a.may_fail OR a.attnum = a.last \
    LEFT JOIN pg_type e ON e.oid = a.typelem AND a.typelem <> 0 \
    WHERE c.relkind IN ('r', 't', 'm') AND c.relpersistence = 'p' AND (c.oid = ANY ($1) \
      OR EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indexrelid = ANY ($1))) \
    GROUP BY c.oid ORDER BY c.oid";

const BY_HEAP: &str =
    "SET enable_seqscan = on; SET enable_indexscan = off; SET enable_indexonlyscan = off;";
const BY_INDEX: &str =
    "SET enable_seqscan = off; SET enable_indexscan = on; SET enable_indexonlyscan = on;";

/// Statements of each of these.
const SETTINGS: usize = 3;

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::path::Path;

    use lab::{Server, StopMode};
    use testing::servers;

    use super::*;

    fn asked(followed: &BTreeMap<String, String>) -> DamageQueries<'_> {
        DamageQueries { complaints: None, followed: Some(followed) }
    }

    #[test]
    fn values_that_a_table_keeps_apart_and_the_queries_of_the_study_are_looked_at() {
        let (mut node, _lab) = servers::server(&[]);
        let mut client = node.connect().unwrap();
        client
            .batch_execute(
                "CREATE EXTENSION amcheck; \
                 CREATE TABLE docs (id int PRIMARY KEY, body text, doubled int GENERATED ALWAYS AS (id * 2) STORED); \
                 ALTER TABLE docs ALTER body SET STORAGE EXTERNAL; \
                 INSERT INTO docs SELECT i, repeat('x', 5000) FROM generate_series(1, 9) AS i; \
                 CREATE TABLE \"No column\" (); INSERT INTO \"No column\" DEFAULT VALUES; \
                 CREATE TABLE log (id int); INSERT INTO log SELECT id FROM docs; CHECKPOINT",
            )
            .unwrap();
        let row = client
            .query_one(
                "SELECT current_setting('data_directory'), pg_relation_filepath(reltoastrelid) \
                 FROM pg_class WHERE relname = 'docs'",
                &[],
            )
            .unwrap();
        let path = Path::new(row.get::<_, &str>(0)).join(row.get::<_, &str>(1));
        client.close();
        let lacks = "SELECT 'document ' || id FROM log WHERE id NOT IN (SELECT id FROM docs)";
        let followed = [("docs", lacks), ("log", "SELECT 1 WHERE false")];
        let followed: BTreeMap<String, String> =
            followed.map(|(table, sql)| (table.to_owned(), sql.to_owned())).into();
        let site_node = |node: lab::Node| SiteNode {
            name: "primary".into(),
            server: Server::Node(Box::new(node)),
            conninfo: String::new(),
            schema: None,
        };
        let look = |node: &SiteNode| {
            let everything = BaseFiles::default();
            damage(node, &everything, asked(&followed), &mut ExplorationTime::default())
        };
        let mut whole = site_node(node);
        assert_eq!(look(&whole), None);
        // A query that does not miss the rows of its table follows nothing.
        assert_eq!(blind(&whole, asked(&followed)).unwrap(), ["log"]);
        assert_eq!(look(&whole), None, "what was deleted is there again");
        let mut client = whole.connect().unwrap();
        client.batch_execute("DELETE FROM docs WHERE id = 3").unwrap();
        assert_eq!(look(&whole).as_deref(), Some("docs: document 3"));
        client.batch_execute("DELETE FROM log WHERE id = 3; CHECKPOINT").unwrap();
        client.close();
        assert_eq!(look(&whole), None);
        // As a lost flush of these values leaves it; every row of the table itself is there.
        node = match whole.server {
            Server::Node(node) => *node,
            _ => unreachable!("it was made of one"),
        };
        node.stop(StopMode::Fast).unwrap();
        File::options().write(true).open(path).unwrap().set_len(0).unwrap();
        node.start().unwrap();
        whole = site_node(node);
        let counted = whole.server.value("SELECT count(*) FROM docs").unwrap();
        assert_eq!(counted.as_deref(), Some("8"));
        assert!(look(&whole).is_some());
    }

    #[test]
    fn rows_that_an_index_lacks_are_missed_whatever_the_columns_are() {
        let (node, _lab) = servers::server(&[]);
        let mut client = node.connect().unwrap();
        client
            .batch_execute(
                "CREATE TYPE colour AS ENUM ('red', 'blue'); \
                 CREATE TABLE numbers (id int PRIMARY KEY, at timestamp); \
                 CREATE TABLE texts (id int PRIMARY KEY, body text, size int); \
                 CREATE TABLE colours (id int PRIMARY KEY, colour colour, size int); \
                 CREATE TABLE nothing ()",
            )
            .unwrap();
        let tables = "SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace";
        let changed: Vec<u32> =
            client.query(tables, &[]).unwrap().iter().map(|row| row.get(0)).collect();
        let mut check = |spoil: &str, expected: Option<&str>| {
            client.batch_execute(spoil).unwrap();
            let found = read_tables(&mut client, &changed).unwrap();
            assert_eq!(found.as_deref(), expected, "{spoil}");
        };
        check(
            "INSERT INTO numbers VALUES (1, now()), (2, NULL); INSERT INTO nothing DEFAULT VALUES; \
             INSERT INTO texts VALUES (1, 'a', 1); INSERT INTO colours VALUES (1, 'red', 1)",
            None,
        );
        for (table, row, has) in [
            ("colours", "(2, 'blue', 2)", "colours has 2 rows by heap, 1 by index"),
            ("texts", "(2, 'b', 2)", "texts has 2 rows by heap, 1 by index"),
            ("numbers", "(3, now())", "numbers has 3 rows by heap, 2 by index"),
        ] {
            let ready = |is: bool| {
                format!(
                    "UPDATE pg_index SET indisready = {is} WHERE indrelid = '{table}'::regclass"
                )
            };
            let (off, on) = (ready(false), ready(true));
            check(&format!("{off}; INSERT INTO {table} VALUES {row}; {on}"), Some(has));
            check(&format!("REINDEX TABLE {table}"), None);
        }
        let no_colour = "INSERT INTO colours VALUES (4, 'red', 4); \
                         DELETE FROM pg_enum WHERE enumlabel = 'red'";
        client.batch_execute(no_colour).unwrap();
        let found = read_tables(&mut client, &changed).unwrap();
        assert!(found.is_some_and(|why| why.starts_with("reading every column of colours")));
    }

    /// Bytes of a page, of its header, and of the identifier of a line.
    const PAGE: usize = 8192;
    const HEADER: usize = 24;
    const LINE: usize = 4;

    /// The number of two bytes of a page.
    fn u16_at(page: &[u8], at: usize) -> usize {
        usize::from(u16::from_ne_bytes([page[at], page[at + 1]]))
    }

    /// Has the second entry of a btree's root lead where the third one leads: no search comes to the page between, which
    /// its neighbours lead to all the same.
    fn skip_a_leaf(path: &Path) {
        let mut file = fs::read(path).unwrap();
        // The root's number follows the magic number and the version.
        let meta = &file[HEADER + 8..HEADER + 12];
        let root = u32::from_ne_bytes(meta.try_into().unwrap()) as usize * PAGE;
        let page = &mut file[root..root + PAGE];
        let entry = |page: &[u8], number: usize| u16_at(page, HEADER + number * LINE) & 0x7fff;
        let (second, third) = (entry(page, 1), entry(page, 2));
        // The number of a block has four bytes.
        page.copy_within(third..third + 4, second);
        fs::write(path, file).unwrap();
    }

    #[test]
    fn an_index_in_which_a_search_misses_rows_is_damaged() {
        let (mut node, _lab) = servers::server(&[]);
        let mut client = node.connect().unwrap();
        client
            .batch_execute(
                "CREATE EXTENSION amcheck; CREATE TABLE t (id int PRIMARY KEY); \
                 INSERT INTO t SELECT generate_series(1, 3000); CHECKPOINT",
            )
            .unwrap();
        let place =
            "SELECT current_setting('data_directory') || '/' || pg_relation_filepath('t_pkey')";
        let path: String = client.query_one(place, &[]).unwrap().get(0);
        client.close();
        node.stop(StopMode::Fast).unwrap();
        skip_a_leaf(Path::new(&path));
        node.start().unwrap();
        let searched = "SET enable_seqscan = off; SELECT count(*) FROM t WHERE id = 500";
        let searched = node.run_client("psql", &["-AtXqc", searched], &[]).unwrap().1;
        assert_eq!(searched.trim(), "0", "the planted fault hides a row from a search");
        let node = SiteNode {
            name: "primary".into(),
            server: Server::Node(Box::new(node)),
            conninfo: String::new(),
            schema: None,
        };
        let (everything, followed) = (BaseFiles::default(), BTreeMap::new());
        let found = damage(&node, &everything, asked(&followed), &mut ExplorationTime::default());
        assert!(found.is_some_and(|why| why.contains("t_pkey")));
    }

    #[test]
    fn a_page_that_amcheck_does_not_know_is_read() {
        let (mut node, _lab) = servers::server(&[]);
        let mut client = node.connect().unwrap();
        client
            .batch_execute(
                "CREATE EXTENSION amcheck; CREATE SEQUENCE numbers; CREATE TABLE t (id int); \
                 INSERT INTO t SELECT generate_series(1, 3000); CREATE INDEX hashed ON t USING hash (id)",
            )
            .unwrap();
        client.batch_execute("VACUUM t").unwrap();
        let files = "SELECT current_setting('data_directory') || '/' || pg_relation_filepath(name) || suffix \
                     FROM (VALUES ('numbers', ''), ('hashed', ''), ('t', '_vm')) AS f (name, suffix)";
        let files = client.query(files, &[]).unwrap();
        let files: Vec<String> = files.iter().map(|row| row.get(0)).collect();
        client.close();
        for path in files {
            node.stop(StopMode::Fast).unwrap();
            let whole = fs::read(&path).unwrap();
            let mut spoiled = whole.clone();
            spoiled[..HEADER].fill(0xff);
            fs::write(&path, spoiled).unwrap();
            node.start().unwrap();
            let one = SiteNode {
                name: "primary".into(),
                server: Server::Node(Box::new(node)),
                conninfo: String::new(),
                schema: None,
            };
            let (everything, followed) = (BaseFiles::default(), BTreeMap::new());
            let found =
                damage(&one, &everything, asked(&followed), &mut ExplorationTime::default());
            assert!(
                found.as_ref().is_some_and(|why| why.contains("invalid page")),
                "{path}: {found:?}"
            );
            node = match one.server {
                Server::Node(node) => *node,
                _ => unreachable!("it was made of one"),
            };
            fs::write(&path, whole).unwrap();
        }
    }
}
