//! The rows of a table on two servers: a digest of the table, of the parts of one that differs, and the rows of these
//! parts, which are named.
//!
//! What is kept here is a digest for each part, and the row that each server has given last.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use crate::error::Error;
use crate::pair::{PairMember, on_both};
use crate::session::ComparedServer;
use crate::table::ComparedTable;

/// The rows of a table on two servers.
#[derive(Clone, Debug, PartialEq)]
pub struct TableComparison {
    /// The name of the table.
    pub name: String,
    /// Size on the first server.
    pub bytes: u64,
    /// Rows on each server.
    pub rows: [u64; 2],
    /// Rows that are on one server only, or are not the same.
    pub different: u64,
    /// Rows that only the server has that may have some of its own.
    pub extra: u64,
    /// True if `different` is the least number: too many rows differ to be looked at one by one.
    pub is_at_least: bool,
    /// The first rows that differ, in words.
    pub named: Vec<String>,
}

/// A digest: number of rows and sum of their hashes.
type PartDigest = (u64, String);

/// The digests of one query by part.
type Digests = BTreeMap<i32, PartDigest>;

/// Compares a table, as each server describes it.
pub(crate) fn compare(
    servers: &mut [ComparedServer; 2],
    tables: &[ComparedTable; 2],
    extra: Option<PairMember>,
) -> Result<TableComparison, Error> {
    let whole = on_both(servers, |at, server| {
        let table = &tables[at];
        let sql = format!("SELECT 0, count(*), {} FROM {}", sum(&table.row()), table.from);
        digests(server, table, &sql)
    })?;
    let mut found = TableComparison {
        name: tables[0].name.clone(),
        bytes: tables[0].bytes,
        rows: whole.each_ref().map(|parts| parts.values().map(|part| part.0).sum()),
        different: 0,
        extra: 0,
        is_at_least: false,
        named: Vec::new(),
    };
    if whole[0] == whole[1] {
        return Ok(found);
    }
    match found.rows {
        [0, _] => alone(servers, 1, tables, extra, &mut found)?,
        [_, 0] => alone(servers, 0, tables, extra, &mut found)?,
        _ => by_parts(servers, tables, extra, &mut found)?,
    }
    Ok(found)
}

/// Rows of a table that is empty on the other server.
fn alone(
    servers: &mut [ComparedServer; 2],
    at: usize,
    tables: &[ComparedTable; 2],
    extra: Option<PairMember>,
    found: &mut TableComparison,
) -> Result<(), Error> {
    let (table, server) = (&tables[at], &mut servers[at]);
    if extra.is_some_and(|extra| at == place(extra)) {
        found.extra = found.rows[at];
        return Ok(());
    }
    found.different = found.rows[at];
    let sql = format!("SELECT {} FROM {} LIMIT {}", table.key(), table.from, ROWS_NAMED + 1);
    for row in read(server, table, &sql)? {
        let key: String = row.get(0);
        let what = format!("only on {}", servers[at].name);
        note(found, &key, &what);
    }
    Ok(())
}

/// Finds the parts that differ, and names the rows of as many of them as can be sorted.
fn by_parts(
    servers: &mut [ComparedServer; 2],
    tables: &[ComparedTable; 2],
    extra: Option<PairMember>,
    found: &mut TableComparison,
) -> Result<(), Error> {
    let part = |table: &ComparedTable| format!("{} & {}", hash(&table.key(), 1), PARTS - 1);
    let parts = on_both(servers, |at, server| {
        let table = &tables[at];
        let (part, sum) = (part(table), sum(&table.row()));
        let sql = format!("SELECT ({part})::int, count(*), {sum} FROM {} GROUP BY 1", table.from);
        digests(server, table, &sql)
    })?;
    let mut looked_at = Vec::new();
    let mut sorted = 0;
    for number in 0..PARTS {
        let unlike = parts.each_ref().map(|parts| parts.get(&number));
        if unlike[0] == unlike[1] {
            continue;
        }
        // A server without rows in that part has no digest of it.
        let counts = unlike.map(|part| part.map_or(0, |part| part.0));
        sorted += counts[0].max(counts[1]);
        if looked_at.is_empty() || sorted <= ROWS_SORTED_MAX {
            looked_at.push(number.to_string());
            continue;
        }
        found.is_at_least = true;
        match extra.map(place) {
            Some(at) if counts[at] > counts[1 - at] => found.extra += counts[at] - counts[1 - at],
            _ => found.different += counts[0].abs_diff(counts[1]).max(1),
        }
    }
    let sql = tables.each_ref().map(|table| {
        format!(
            "SELECT place, key, content FROM (SELECT {order} AS place, {key} AS key, {row} AS content FROM {from} \
             WHERE {part} IN ({looked_at})) unlike ORDER BY place, key COLLATE \"C\", content",
            order = hash(&table.key(), 1),
            key = table.key(),
            row = hash(&table.row(), 0),
            from = table.from,
            part = part(table),
            looked_at = looked_at.join(", "),
        )
    });
    name_rows(servers, &sql, extra, found)
}

fn read(
    server: &mut ComparedServer,
    table: &ComparedTable,
    sql: &str,
) -> Result<Vec<postgres::Row>, Error> {
    let doing = format!("comparing the rows of {} on {}", table.name, server.name);
    server.client.query(sql, &[]).map_err(Error::query(doing))
}

fn digests(
    server: &mut ComparedServer,
    table: &ComparedTable,
    sql: &str,
) -> Result<Digests, Error> {
    let digest = |row: &postgres::Row| {
        let count = u64::try_from(row.get::<_, i64>(1)).expect("a count is not negative");
        (row.get(0), (count, row.get(2)))
    };
    Ok(read(server, table, sql)?.iter().map(digest).collect())
}

/// Computes the digest of the first rows of a table; the number of these rows.
pub(crate) fn sampled(server: &mut ComparedServer, table: &ComparedTable) -> Result<f64, Error> {
    let sql = format!(
        "SELECT count(*), {} FROM (SELECT * FROM {} LIMIT {ROWS_SAMPLED}) sample",
        sum(&table.row()),
        table.from
    );
    let rows = read(server, table, &sql)?;
    Ok(rows[0].get::<_, i64>(0) as f64)
}

/// A row on its way: its place in the order, its key, and its hash.
type Passing = (i64, String, i64);

/// Reads the rows of both servers in one order, side by side, and names those that differ.
fn name_rows(
    servers: &mut [ComparedServer; 2],
    sql: &[String; 2],
    extra: Option<PairMember>,
    found: &mut TableComparison,
) -> Result<(), Error> {
    let names = servers.each_ref().map(|server| server.name.clone());
    let read = |server: &mut ComparedServer, sql: &str, to: SyncSender<Passing>| {
        let pass = |row: postgres::Row| {
            // Whoever does not listen any more has failed itself.
            _ = to.send((row.get(0), row.get(1), row.get(2)));
        };
        let doing = format!("naming rows of {}", server.name);
        server.client.query_each(sql, pass).map_err(Error::query(doing))
    };
    let [one, other] = servers;
    thread::scope(|scope| {
        let (to_one, from_one) = sync_channel(ROWS_AHEAD);
        let (to_other, from_other) = sync_channel(ROWS_AHEAD);
        let readers = [
            scope.spawn(|| read(one, &sql[0], to_one)),
            scope.spawn(|| read(other, &sql[1], to_other)),
        ];
        merge([&from_one, &from_other], &names, extra, found);
        for reader in readers {
            reader.join().unwrap_or_else(|it| std::panic::resume_unwind(it))?;
        }
        Ok(())
    })
}

fn merge(
    from: [&Receiver<Passing>; 2],
    names: &[String; 2],
    extra: Option<PairMember>,
    found: &mut TableComparison,
) {
    let next = |at: usize| from[at].recv().ok();
    let mut rows = [next(0), next(1)];
    loop {
        let order = match &rows {
            [None, None] => return,
            [Some(_), None] => Ordering::Less,
            [None, Some(_)] => Ordering::Greater,
            // Rows without a key are their own key, so that equal ones pair off one by one.
            [Some(a), Some(b)] => (a.0, &a.1).cmp(&(b.0, &b.1)),
        };
        let at = match order {
            Ordering::Less => 0,
            Ordering::Greater => 1,
            Ordering::Equal => {
                if let [Some(a), Some(b)] = &rows
                    && a.2 != b.2
                {
                    found.different += 1;
                    note(found, &a.1, "not the same");
                }
                rows = [next(0), next(1)];
                continue;
            }
        };
        if let Some((_, key, _)) = &rows[at] {
            match extra.is_some_and(|extra| at == place(extra)) {
                true => found.extra += 1,
                false => {
                    found.different += 1;
                    note(found, key, &format!("only on {}", names[at]));
                }
            }
        }
        rows[at] = next(at);
    }
}

fn place(side: PairMember) -> usize {
    match side {
        PairMember::One => 0,
        PairMember::Other => 1,
    }
}

/// Names a row, unless enough are named.
fn note(found: &mut TableComparison, key: &str, what: &str) {
    match found.named.len() {
        named if named < ROWS_NAMED => {
            let key: String = key.chars().filter(|c| !c.is_control()).take(KEY_SHOWN).collect();
            found.named.push(format!("{} {key}: {what}", found.name));
        }
        ROWS_NAMED => found.named.push(format!("{}: further rows are not named", found.name)),
        _ => {}
    }
}

fn hash(text: &str, seed: u32) -> String {
    format!("hashtextextended({text}, {seed})")
}

/// The sum of the hashes of rows, which does not depend on their order.
fn sum(row: &str) -> String {
    format!("coalesce(sum({}), 0)::text", hash(row, 0))
}

/// Parts of a table, by the hash of the key; a power of two.
const PARTS: i32 = 1024;
/// Rows of a table that are named.
const ROWS_NAMED: usize = 5;
/// Characters of a key that are shown.
const KEY_SHOWN: usize = 80;
/// Rows of one server that are read before those of the other one.
const ROWS_AHEAD: usize = 1024;
/// Rows of the sample by which the time is estimated.
const ROWS_SAMPLED: u32 = 20_000;
/// Rows of a table that a server sorts in order to name those that differ.
pub const ROWS_SORTED_MAX: u64 = 5_000_000;
