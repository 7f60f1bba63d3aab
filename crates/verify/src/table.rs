//! The tables of a server, and which of them are compared.

use std::collections::{BTreeMap, BTreeSet};

use server::quote::identifier;

use crate::error::Error;
use crate::session::ComparedServer;

/// The tables that are compared; all of them where nothing is named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableFilter {
    /// Tables, with their schema unless it is public.
    pub tables: Vec<String>,
    /// Schemas.
    pub schemas: Vec<String>,
}

impl TableFilter {
    /// True if everything is compared.
    pub fn is_open(&self) -> bool {
        self.tables.is_empty() && self.schemas.is_empty()
    }

    pub(crate) fn has(&self, schema: &str, table: &str) -> bool {
        self.is_open()
            || self.schemas.iter().any(|named| named == schema)
            || self.tables.contains(&shown(schema, table))
    }
}

/// A table without the schema where that is public.
fn shown(schema: &str, table: &str) -> String {
    match schema {
        "public" => table.to_owned(),
        _ => format!("{schema}.{table}"),
    }
}

/// A table as a server describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedTable {
    /// The name in messages.
    pub name: String,
    /// Size with values stored out of line and partitions, without indexes.
    pub bytes: u64,
    /// The number of rows that the planner assumes; none before the first ANALYZE.
    pub rows: Option<f64>,
    schema: String,
    /// The FROM clause: without the tables that inherit from it, which are compared for themselves.
    pub(crate) from: String,
    /// The names of the columns.
    columns: Vec<String>,
    /// The columns of the primary key; empty without one.
    key: Vec<String>,
    /// False if the role may not read all rows.
    is_readable: bool,
}

impl ComparedTable {
    /// The row as text.
    pub(crate) fn row(&self) -> String {
        row_of(&self.columns)
    }

    /// The text by which a row is found on the other server: its primary key, or the whole row.
    pub(crate) fn key(&self) -> String {
        match self.key.as_slice() {
            [] => self.row(),
            key => row_of(key),
        }
    }
}

fn row_of(columns: &[String]) -> String {
    let columns = columns.iter().map(|name| identifier(name)).collect::<Vec<_>>();
    format!("ROW({})::text", columns.join(", "))
}

/// The tables of two servers.
#[derive(Debug, Default)]
pub struct TableList {
    /// Tables that both have with the same columns, as each of them describes it.
    pub both: Vec<[ComparedTable; 2]>,
    /// What is said of tables that one lacks, or that have other columns.
    pub unlike: Vec<String>,
    /// What is not compared, and why.
    pub left_out: Vec<String>,
}

impl TableList {
    /// The size of the tables on each server.
    pub fn bytes(&self) -> [u64; 2] {
        [0, 1].map(|at| self.both.iter().map(|table: &[ComparedTable; 2]| table[at].bytes).sum())
    }
}

/// The tables of both servers that the filter has.
pub(crate) fn list(
    servers: &mut [ComparedServer; 2],
    filter: &TableFilter,
) -> Result<TableList, Error> {
    let [one, other] = servers;
    let mut tables = [tables(one, filter)?, tables(other, filter)?];
    for table in &filter.tables {
        if !tables.iter().flatten().any(|found| &found.name == table) {
            return Err(Error::NoTable { table: table.clone(), servers: names(servers) });
        }
    }
    for schema in &filter.schemas {
        if !tables.iter().flatten().any(|found| &found.schema == schema) {
            return Err(Error::NoSchema { schema: schema.clone(), servers: names(servers) });
        }
    }
    let mut list = TableList::default();
    if filter.is_open() {
        large_objects(servers, &mut tables, &mut list)?;
    }
    for (server, tables) in servers.iter().zip(&tables) {
        let hidden = tables.iter().filter(|table| !table.is_readable);
        refuse_unreadable(server, hidden.map(|table| table.name.as_str()))?;
    }
    matched(servers, &tables, &mut list);
    Ok(list)
}

/// Refuses a comparison that would not see everything.
pub(crate) fn refuse_unreadable<'n>(
    server: &ComparedServer,
    names: impl Iterator<Item = &'n str>,
) -> Result<(), Error> {
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        return Ok(());
    }
    let more = match names.len().checked_sub(NAMED_MAX) {
        None | Some(0) => String::new(),
        Some(more) => format!(" and {more} more"),
    };
    let what = format!("{}{more}", names[..names.len().min(NAMED_MAX)].join(", "));
    Err(Error::Unreadable { server: server.name.clone(), role: server.is.role.clone(), what })
}

/// Objects that are named in an error.
const NAMED_MAX: usize = 5;

fn names(servers: &[ComparedServer; 2]) -> String {
    format!("neither {} nor {}", servers[0].name, servers[1].name)
}

fn tables(server: &mut ComparedServer, filter: &TableFilter) -> Result<Vec<ComparedTable>, Error> {
    let table = |row: postgres::Row| {
        let (schema, table): (String, String) = (row.get(0), row.get(1));
        filter.has(&schema, &table).then(|| ComparedTable {
            name: shown(&schema, &table),
            schema,
            from: row.get(2),
            columns: row.get(3),
            key: row.get(4),
            bytes: u64::try_from(row.get::<_, i64>(5)).expect("a size is not negative"),
            rows: Some(row.get(6)).filter(|rows: &f64| *rows >= 0.0),
            is_readable: row.get(7),
        })
    };
    Ok(server.rows(TABLES)?.into_iter().filter_map(table).collect())
}

/// Adds the large objects, which are compared as a table where both roles may read it.
fn large_objects(
    servers: &mut [ComparedServer; 2],
    tables: &mut [Vec<ComparedTable>; 2],
    list: &mut TableList,
) -> Result<(), Error> {
    let [one, other] = servers;
    let [one, other] = [one.rows(LARGE_OBJECTS)?, other.rows(LARGE_OBJECTS)?];
    let [one, other] = [&one[0], &other[0]];
    if !(one.get::<_, bool>(0) || other.get::<_, bool>(0)) {
        return Ok(()); // Neither server has one.
    }
    let is_readable = one.get(1) && other.get(1);
    let name = |columns: &[&str]| columns.iter().map(|name| (*name).to_owned()).collect();
    let (from, columns, key): (&str, Vec<String>, Vec<String>) = match is_readable {
        true => ("pg_largeobject", name(&["loid", "pageno", "data"]), name(&["loid", "pageno"])),
        false => ("pg_largeobject_metadata", name(&["oid"]), name(&["oid"])),
    };
    if !is_readable {
        let text = "large objects are compared by their numbers only: a role needs SELECT on pg_largeobject";
        list.left_out.push(text.to_owned());
    }
    for (tables, row) in tables.iter_mut().zip([one, other]) {
        tables.push(ComparedTable {
            name: "large object".to_owned(),
            schema: "pg_catalog".to_owned(),
            from: format!("pg_catalog.{from}"),
            columns: columns.clone(),
            key: key.clone(),
            bytes: u64::try_from(row.get::<_, i64>(2)).expect("a size is not negative"),
            rows: None,
            is_readable: true,
        });
    }
    Ok(())
}

/// Pairs the tables that both servers have with the same columns; others are differences.
fn matched(servers: &[ComparedServer; 2], tables: &[Vec<ComparedTable>; 2], list: &mut TableList) {
    let by_name = |side: usize| {
        let named = tables[side].iter().map(|table| (table.name.as_str(), table));
        named.collect::<BTreeMap<_, _>>()
    };
    let both = [by_name(0), by_name(1)];
    let names: BTreeSet<&str> = both.iter().flat_map(|side| side.keys().copied()).collect();
    for name in names {
        match (both[0].get(name), both[1].get(name)) {
            (Some(one), Some(other)) if one.columns == other.columns => {
                list.both.push([(*one).clone(), (*other).clone()]);
            }
            (Some(_), Some(_)) => {
                list.unlike.push(format!("table {name} has other columns on {}", servers[1].name));
            }
            (one, _) => {
                let lacks = &servers[usize::from(one.is_some())].name;
                list.unlike.push(format!("{lacks} has no table {name}"));
            }
        }
    }
}

/// The tables of users. Columns and keys are in an order that does not depend on their place.
const TABLES: &str = "\
    SELECT n.nspname::text, c.relname::text, \
           format('%s%I.%I', CASE c.relkind WHEN 'p' THEN '' ELSE 'ONLY ' END, n.nspname, c.relname), \
           ARRAY(SELECT a.attname::text FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid \
                 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attname), \
           ARRAY(SELECT a.attname::text FROM pg_catalog.pg_index i \
                 JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid \
                  AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1]) \
                 WHERE i.indrelid = c.oid AND i.indisprimary ORDER BY a.attname), \
           coalesce(CASE c.relkind WHEN 'p' THEN (SELECT sum(pg_catalog.pg_table_size(t.relid))::bigint \
                                                  FROM pg_catalog.pg_partition_tree(c.oid) t) \
                    ELSE pg_catalog.pg_table_size(c.oid) END, 0), \
           coalesce(CASE c.relkind WHEN 'p' THEN (SELECT sum(nullif(l.reltuples, -1)) \
                        FROM pg_catalog.pg_partition_tree(c.oid) t JOIN pg_catalog.pg_class l ON l.oid = t.relid \
                        WHERE t.isleaf) ELSE c.reltuples END, -1)::float8, \
           has_table_privilege(c.oid, 'SELECT') AND NOT row_security_active(c.oid) \
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence <> 't' \
      AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' \
      AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_class'::regclass \
                      AND d.objid = c.oid AND d.deptype = 'e')";

const LARGE_OBJECTS: &str = "\
    SELECT EXISTS (SELECT FROM pg_catalog.pg_largeobject_metadata), \
           has_table_privilege('pg_catalog.pg_largeobject', 'SELECT'), \
           pg_catalog.pg_table_size('pg_catalog.pg_largeobject')";
