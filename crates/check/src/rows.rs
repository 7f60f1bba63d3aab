//! The tables of a ledger: what must be there before the load, and reading them afterwards, once
//! by sequential scan and once by index.

use std::collections::BTreeMap;

use postgres::SimpleQueryMessage;
use postgres::types::Type;
use record::ledger::LedgerRow;
use server::{Client, Limits};
use site::{SiteNode, TablePart};

use crate::error::Error;

/// A table as it was read.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) by_scan: Vec<LedgerRow>,
    /// None where it has no index that gives every row.
    pub(crate) by_index: Option<Vec<LedgerRow>>,
    /// Note for the reader on the way the rows were read.
    pub(crate) note: Option<String>,
}

impl Table {
    /// One that the server cannot read.
    pub(crate) fn unreadable() -> Table {
        Table { by_scan: Vec::new(), by_index: None, note: None }
    }

    fn add(&mut self, part: Table) {
        self.by_scan.extend(part.by_scan);
        self.by_index = self.by_index.take().zip(part.by_index).map(|(mut all, more)| {
            all.extend(more);
            all
        });
        self.note = self.note.take().or(part.note);
    }

    pub(crate) fn rows(&self) -> &[LedgerRow] {
        &self.by_scan
    }
}

/// True if the server is in recovery.
pub(crate) fn is_standby(node: &SiteNode) -> Result<bool, Error> {
    let said = node.server.value("SELECT pg_is_in_recovery()")?;
    Ok(said.as_deref() == Some("t"))
}

/// Checks that a ledger can begin with this table: it has the columns, and no row that says that it
/// is a transaction's.
pub(crate) fn prepare(part: &TablePart<'_>) -> Result<(), Error> {
    let TablePart { node, table, .. } = part;
    let mut client = connect(part)?;
    let described = describe(&mut client, &[part]).map_err(failed(node, table))?;
    let described = described.into_iter().next().expect("each name has a row of the answer");
    let name = described?.name;
    let asked = format!("SELECT EXISTS (SELECT FROM {name} WHERE seq::bigint <> 0)");
    let row = client.query_one(&asked, &[]).map_err(failed(node, table))?;
    match row.get(0) {
        false => Ok(()),
        true => Err(Error::NotEmpty { place: place(node, table) }),
    }
}

/// A table of the ledger as the catalog describes it.
struct LedgerTable {
    /// The name as SQL reads it.
    name: String,
    /// The columns of the index that reads the whole table in its order, where there is one.
    index_order: Option<String>,
}

/// Reads tables, of each of which the parts are given, by both ways. All that is on one server comes from
/// one snapshot: a transaction that commits meanwhile is in all of its tables or in none.
///
/// # Errors
/// The inner error is that of one table.
pub(crate) fn read(tables: &[Vec<TablePart<'_>>]) -> Result<Vec<Result<Table, Error>>, Error> {
    let mut places: BTreeMap<_, Vec<(usize, &TablePart<'_>)>> = BTreeMap::new();
    for (index, parts) in tables.iter().enumerate() {
        for part in parts {
            places.entry((&part.node.name, &part.conninfo)).or_default().push((index, part));
        }
    }
    let empty = || Table { by_scan: Vec::new(), by_index: Some(Vec::new()), note: None };
    let mut all: Vec<Result<Table, Error>> = tables.iter().map(|_| Ok(empty())).collect();
    for parts in places.values() {
        let Some((_, first)) = parts.first() else { continue };
        let mut client = connect(first)?;
        // A row takes little memory here, and there may be hundreds of millions.
        client.set_limits(|limits| limits.answer_bytes = ROWS_BYTES_MAX);
        let mut snapshot = client.snapshot().map_err(failed(first.node, &first.table))?;
        let described = describe_all(&mut snapshot, parts);
        for ((index, part), described) in parts.iter().zip(described) {
            if let Ok(table) = &mut all[*index] {
                let read = described.and_then(|described| {
                    undone(&mut snapshot, part, |it| read_both(it, &described, &part.table))
                });
                match read {
                    Ok(read) => table.add(read),
                    Err(error) => all[*index] = Err(error),
                }
            }
        }
    }
    Ok(all)
}

/// Does something with a part of a table, and leaves the transaction as it was before, also after an error.
fn undone<T>(
    snapshot: &mut Client,
    TablePart { node, table, .. }: &TablePart<'_>,
    act: impl FnOnce(&mut Client) -> Result<T, postgres::Error>,
) -> Result<T, Error> {
    snapshot.batch_execute("SAVEPOINT part").map_err(failed(node, table))?;
    let done = act(snapshot).map_err(failed(node, table));
    let undone = snapshot.batch_execute("ROLLBACK TO part; RELEASE part");
    let done = done?;
    undone.map_err(failed(node, table))?;
    Ok(done)
}

fn read_both(
    snapshot: &mut Client,
    LedgerTable { name, index_order }: &LedgerTable,
    table: &str,
) -> Result<Table, postgres::Error> {
    // Under names of their own: ORDER BY would take a result of the name for the column, and no
    // index has the order of what was cast.
    let columns = format!(
        "SELECT client::bigint AS ledger_client, seq::bigint AS ledger_seq, \
         chain::bigint AS ledger_chain FROM {name}"
    );
    // What is switched off counts as so expensive that small queries would be compiled first.
    snapshot.batch_execute(
        "SET LOCAL statement_timeout = 0; SET LOCAL jit = off; SET LOCAL enable_indexscan = off; \
         SET LOCAL enable_indexonlyscan = off; SET LOCAL enable_bitmapscan = off",
    )?;
    let by_scan = fetch(snapshot, &columns)?;
    let by_index = match index_order {
        None => None,
        Some(order) => {
            let query = format!("{columns} ORDER BY {order}");
            let is_indexed = is_index_scan(snapshot, &query)?;
            if is_indexed { Some(fetch(snapshot, &query)?) } else { None }
        }
    };
    let note = by_index
        .is_none()
        .then(|| format!("table {table} of the ledger has no index to be read by: only scanned"));
    Ok(Table { by_scan, by_index, note })
}

fn fetch(snapshot: &mut Client, query: &str) -> Result<Vec<LedgerRow>, postgres::Error> {
    let mut rows = Vec::new();
    snapshot.query_each(query, |row| {
        rows.push(LedgerRow { client: row.get(0), seq: row.get(1), chain: row.get(2) });
    })?;
    Ok(rows)
}

/// Has the transaction read by index from now on; true if a query does.
fn is_index_scan(snapshot: &mut Client, query: &str) -> Result<bool, postgres::Error> {
    let plan = snapshot.simple_query(&format!(
        "SET LOCAL enable_indexscan = on; SET LOCAL enable_seqscan = off; \
         SET LOCAL enable_sort = off; SET LOCAL max_parallel_workers_per_gather = 0; EXPLAIN {query}"
    ))?;
    let has = |word: &str| {
        plan.iter().any(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).is_some_and(|line| line.contains(word)),
            _ => false,
        })
    };
    Ok(has("Index") && !has("Seq Scan"))
}

/// The most that is read of one table, in bytes.
const ROWS_BYTES_MAX: u64 = 64 << 30;

fn connect(part: &TablePart<'_>) -> Result<Client, Error> {
    let doing = "reading the tables of the ledger";
    match &part.conninfo {
        None => Ok(part.node.connect()?),
        Some(conninfo) => {
            let doing = format!("{doing}, on {}", part.node.name);
            let failed = |source| Error::Connect { doing: doing.clone(), source };
            let conninfo = server::resolve_conninfo(conninfo).map_err(|why| failed(why.into()))?;
            server::connect(&conninfo, &Limits::of_administration()).map_err(failed)
        }
    }
}

/// What the catalog says of each part of a server. One question is asked about all of them; where it fails, one about
/// each, so that a name that cannot be read is the error of its own table.
fn describe_all(
    snapshot: &mut Client,
    parts: &[(usize, &TablePart<'_>)],
) -> Vec<Result<LedgerTable, Error>> {
    let tables: Vec<&TablePart<'_>> = parts.iter().map(|(_, part)| *part).collect();
    match undone(snapshot, tables[0], |it| describe(it, &tables)) {
        Ok(described) => described,
        Err(_) => {
            let alone = |part: &&TablePart<'_>| {
                let described = undone(snapshot, part, |it| describe(it, &[part]))?;
                described.into_iter().next().expect("each name has a row of the answer")
            };
            tables.iter().map(alone).collect()
        }
    }
}

/// What the catalog says of tables of one server, once it is sure that each has the columns.
fn describe(
    client: &mut Client,
    parts: &[&TablePart<'_>],
) -> Result<Vec<Result<LedgerTable, Error>>, postgres::Error> {
    let names: Vec<&str> = parts.iter().map(|part| part.table.as_str()).collect();
    let rows = client.query_typed(DESCRIBED, &[(&names, Type::TEXT_ARRAY)])?;
    let described = parts.iter().zip(rows).map(|(part, row)| {
        let place = place(part.node, &part.table);
        let Some(name) = row.get::<_, Option<String>>(0) else {
            return Err(Error::NoTable { place });
        };
        let there: Vec<String> = row.get(1);
        let missing = COLUMNS.iter().filter(|column| !there.iter().any(|name| name == *column));
        let missing: Vec<&str> = missing.copied().collect();
        match missing.is_empty() {
            true => Ok(LedgerTable { name, index_order: row.get(2) }),
            false => Err(Error::NoColumns { place, missing: missing.join(", ") }),
        }
    });
    Ok(described.collect())
}

const COLUMNS: [&str; 3] = ["client", "seq", "chain"];

/// Of each name in $1 the table's name as SQL reads it, its columns, and those of the index that reads the whole table
/// in its order: the primary key, else another unique one, else any. Indexes of a part of the table or of
/// expressions give other rows.
const DESCRIBED: &str = "\
    SELECT t.oid::text, \
      ARRAY(SELECT attname::text FROM pg_attribute \
        WHERE attrelid = t.oid AND attnum > 0 AND NOT attisdropped), \
      (SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY k.position) \
        FROM pg_index i \
        JOIN pg_class c ON c.oid = i.indexrelid \
        JOIN pg_am m ON m.oid = c.relam AND m.amname = 'btree' \
        CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY k (attnum, position) \
        JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum \
        WHERE i.indrelid = t.oid AND i.indisvalid AND i.indpred IS NULL \
          AND i.indexprs IS NULL AND k.position <= i.indnkeyatts \
        GROUP BY i.indexrelid, i.indisprimary, i.indisunique \
        ORDER BY i.indisprimary DESC, i.indisunique DESC, i.indexrelid LIMIT 1) \
    FROM (SELECT to_regclass(name) AS oid, position \
      FROM unnest($1) WITH ORDINALITY u (name, position)) t ORDER BY t.position";

fn place(node: &SiteNode, table: &str) -> String {
    format!("table {table} of the ledger, on {}", node.name)
}

fn failed(node: &SiteNode, table: &str) -> impl FnOnce(postgres::Error) -> Error {
    Error::query(place(node, table))
}

#[cfg(test)]
mod tests {
    use lab::Server;
    use testing::servers;

    use super::*;

    #[test]
    fn a_transaction_that_commits_meanwhile_is_in_no_table() {
        let (node, _lab) = servers::server(&[]);
        let mut writer = node.connect().unwrap();
        let columns = "client int, seq bigint, chain bigint";
        let slow = "SELECT * FROM log WHERE (SELECT pg_sleep(1)) IS NOT NULL";
        writer
            .batch_execute(&format!(
                "CREATE TABLE log ({columns}); CREATE TABLE state ({columns}); \
                 CREATE VIEW slow AS {slow}; \
                 CREATE VIEW broken AS SELECT 1/0 AS client, 0 AS seq, 0 AS chain; \
                 INSERT INTO log VALUES (0, 1, 1); INSERT INTO state VALUES (0, 1, 1)"
            ))
            .unwrap();
        let server = Server::Node(Box::new(node));
        let node =
            SiteNode { name: "primary".into(), server, conninfo: String::new(), schema: None };
        let writing = std::thread::spawn(move || {
            let sleeping = "SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
            testing::until("the log is read", || {
                writer.query_opt(sleeping, &[]).unwrap().is_some()
            });
            writer
                .batch_execute("INSERT INTO log VALUES (0, 2, 2); UPDATE state SET seq = 2")
                .unwrap();
        });
        let part =
            |table: &str| vec![TablePart { node: &node, table: table.to_owned(), conninfo: None }];
        let read = read(&["slow", "broken", "state"].map(part)).unwrap();
        writing.join().unwrap();
        let seqs = read.iter().map(|table| {
            let rows = table.as_ref().ok()?.rows().iter();
            Some(rows.map(|row| row.seq).collect::<Vec<_>>())
        });
        let one = Some(vec![Some(1)]);
        assert_eq!(seqs.collect::<Vec<_>>(), [one.clone(), None, one]);
        // A name that the server cannot even look up is the error of its own table.
        let read = super::read(&["state", "too.many.parts.of.it", "nowhere"].map(part)).unwrap();
        let counts = read.iter().map(|table| table.as_ref().ok().map(|it| it.rows().len()));
        assert_eq!(counts.collect::<Vec<_>>(), [Some(1), None, None]);
    }
}
