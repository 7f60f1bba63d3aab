//! The search for damage on a server: amcheck, every page that it does not look at, and every row by heap
//! and by index.

use postgres::SimpleQueryMessage;
use server::Client;
use server::message::with_detail;
use site::SiteNode;

use crate::explore::place::Untouched;
use crate::explore::spent::{Phase, Spent};

/// The first damage of a server. Relations whose files nobody can have written since the log began are
/// as they were then, and are not looked at again.
pub(super) fn damage(
    node: &SiteNode,
    untouched: &Untouched,
    complaints: Option<&str>,
    spent: &mut Spent,
) -> Option<String> {
    let mut client = match node.connect() {
        Ok(client) => client,
        Err(error) => return Some(error.to_string()),
    };
    let found = find(&mut client, untouched, complaints, spent);
    found.unwrap_or_else(|error| Some(with_detail(&error)))
}

fn find(
    client: &mut Client,
    untouched: &Untouched,
    complaints: Option<&str>,
    spent: &mut Spent,
) -> Result<Option<String>, postgres::Error> {
    client.batch_execute(QUIET)?;
    if let Some(complaints) = complaints
        && let Some(complaint) = spent.time(Phase::Rows, || first(client, complaints))?
    {
        return Ok(Some(complaint));
    }
    let changed = client.query(CHANGED, &[&untouched.paths, &untouched.since_s])?;
    let changed: Vec<u32> = changed.iter().map(|row| row.get(0)).collect();
    spent.time(Phase::Indexes, || {
        client.query(INDEXES, &[&changed])?;
        read_others(client, &changed)
    })?;
    if let Some(row) = spent.time(Phase::Tables, || client.query_opt(TABLES, &[&changed]))? {
        return Ok(Some(row.get(0)));
    }
    spent.time(Phase::Rows, || differing(client, &changed))
}

/// Reads every page of what amcheck does not know. The first complaint is an error.
fn read_others(client: &mut Client, changed: &[u32]) -> Result<(), postgres::Error> {
    let others = client.query(OTHERS, &[&changed])?;
    if others.is_empty() {
        return Ok(());
    }
    let others: Vec<u32> = others.iter().map(|row| row.get(0)).collect();
    client.batch_execute("CREATE EXTENSION IF NOT EXISTS pg_prewarm")?;
    client.query("SELECT pg_prewarm(oid, 'buffer') FROM unnest($1::oid[]) oid", &[&others])?;
    Ok(())
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

/// The first table that has other rows by heap than by index.
fn differing(client: &mut Client, changed: &[u32]) -> Result<Option<String>, postgres::Error> {
    for row in client.query(READ_TABLES, &[&changed])? {
        let table: String = row.get(0);
        let mut count = |ways: &str| -> Result<i64, postgres::Error> {
            client.batch_execute(ways)?;
            Ok(client.query_one(&format!("SELECT count(*) FROM {table}"), &[])?.get(0))
        };
        let (by_heap, by_index) = (count(BY_HEAP)?, count(BY_INDEX)?);
        if by_heap != by_index {
            return Ok(Some(format!("{table} has {by_heap} rows by heap, {by_index} by index")));
        }
    }
    Ok(None)
}

const QUIET: &str = "SET jit = off; SET max_parallel_workers_per_gather = 0";

/// The relations whose files may have changed: all but those in $1 that were not written since $2, and
/// those with more than one file. A relation that was dropped a moment ago has no file.
const CHANGED: &str = "\
    SELECT c.oid FROM pg_class c WHERE c.relpersistence = 'p' AND c.relkind IN ('r', 't', 'm', 'i', 'S') \
    AND NOT coalesce(pg_relation_filepath(c.oid) = ANY ($1) \
        AND (pg_stat_file(pg_relation_filepath(c.oid), true)).size < 1073741824 \
        AND (pg_stat_file(pg_relation_filepath(c.oid), true)).modification < to_timestamp($2), false)";

/// Every btree index, and whether each row of its table is in it. The first complaint is an error.
const INDEXES: &str = "\
    SELECT bt_index_check(c.oid, true) FROM pg_class c JOIN pg_am m ON m.oid = c.relam \
    JOIN pg_index i ON i.indexrelid = c.oid \
    WHERE c.relkind = 'i' AND m.amname = 'btree' AND i.indisvalid AND c.relpersistence = 'p' \
      AND (c.oid = ANY ($1) OR i.indrelid = ANY ($1))";

/// Indexes that are no btree, and sequences. None where the extension that reads them is not installed.
const OTHERS: &str = "\
    SELECT c.oid FROM pg_class c LEFT JOIN pg_am m ON m.oid = c.relam \
    LEFT JOIN pg_index i ON i.indexrelid = c.oid \
    WHERE (c.relkind = 'S' OR c.relkind = 'i' AND m.amname <> 'btree' AND i.indisvalid) \
      AND c.relpersistence = 'p' AND c.oid = ANY ($1) \
      AND EXISTS (SELECT FROM pg_available_extensions WHERE name = 'pg_prewarm')";

/// The first complaint about a table.
const TABLES: &str = "\
    SELECT format('heap table %s, block %s, offset %s: %s', c.oid::regclass, v.blkno, v.offnum, v.msg) \
    FROM pg_class c JOIN pg_am m ON m.oid = c.relam AND m.amname = 'heap' \
    CROSS JOIN LATERAL verify_heapam(c.oid) v \
    WHERE c.relkind IN ('r', 't', 'm') AND c.relpersistence = 'p' AND c.oid = ANY ($1) LIMIT 1";

/// Tables of users that an index gives every row of.
const READ_TABLES: &str = "\
    SELECT DISTINCT c.oid::regclass::text FROM pg_class c \
    JOIN pg_namespace n ON n.oid = c.relnamespace \
    JOIN pg_index i ON i.indrelid = c.oid AND i.indisvalid AND i.indpred IS NULL \
    JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_am m ON m.oid = x.relam AND m.amname = 'btree' \
    WHERE c.relkind = 'r' AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema' \
      AND (c.oid = ANY ($1) OR x.oid = ANY ($1)) \
    ORDER BY 1";

const BY_HEAP: &str =
    "SET enable_seqscan = on; SET enable_indexscan = off; SET enable_indexonlyscan = off";
const BY_INDEX: &str =
    "SET enable_seqscan = off; SET enable_indexscan = on; SET enable_indexonlyscan = on";
