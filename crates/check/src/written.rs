//! The tables that a load writes, and those of them that nothing follows: what was acknowledged there may be
//! missing, and no check would see it.

use std::collections::BTreeMap;

use site::SiteNode;
use spec::{StateExploration, TrialPoint};

use crate::error::Error;

/// Rows that were written to the tables of users, as the server has counted them, by the tables' OIDs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WrittenRows(BTreeMap<u32, WrittenTable>);

#[derive(Clone, Debug, PartialEq)]
struct WrittenTable {
    name: String,
    rows: i64,
    /// The number of its file, which TRUNCATE replaces.
    file: Option<u32>,
}

impl WrittenRows {
    /// Asks a server.
    pub(crate) fn of(node: &SiteNode) -> Result<WrittenRows, Error> {
        let mut client = node.connect()?;
        let doing = || format!("counting the rows that were written on {}", node.name);
        let rows = client.query(WRITTEN, &[]).map_err(Error::query(doing()))?;
        let table = |row: &postgres::Row| WrittenTable {
            name: row.get(1),
            rows: row.get(2),
            file: row.get(3),
        };
        Ok(WrittenRows(rows.iter().map(|row| (row.get(0), table(row))).collect()))
    }

    /// The tables that were written since then and that are not among those or parts of them, with the number
    /// of rows; none where the server does not count them. A table whose file was replaced, as by TRUNCATE, is
    /// there with 0 rows if nothing else was done to it. A table that was made since then counts from its
    /// beginning, as does one whose count is smaller than it was: a server that crashed begins to count anew. A
    /// table that is not there any more is not known.
    pub(crate) fn unfollowed(
        &self,
        node: &SiteNode,
        followed: &[String],
    ) -> Result<Option<BTreeMap<String, i64>>, Error> {
        let now = WrittenRows::of(node)?;
        let mut client = node.connect()?;
        let doing = || format!("looking for the parts of tables on {}", node.name);
        let counts = "SELECT current_setting('track_counts')::boolean";
        let counts = client.query_one(counts, &[]).map_err(Error::query(doing()))?;
        if !counts.get::<_, bool>(0) {
            return Ok(None);
        }
        let parts = client.query(PARTS, &[&followed]).map_err(Error::query(doing()))?;
        let parts: Vec<u32> = parts.iter().map(|row| row.get(0)).collect();
        let since = now.0.into_iter().filter_map(|(oid, WrittenTable { name, rows, file })| {
            let before = self.0.get(&oid);
            let is_replaced = before.is_some_and(|before| before.file != file);
            // A table that is new had no rows.
            let before = before.map_or(0, |before| before.rows);
            let since = if rows < before { rows } else { rows - before };
            ((since > 0 || is_replaced) && !parts.contains(&oid)).then_some((name, since))
        });
        Ok(Some(since.collect()))
    }
}

/// The tables that a point's ledgers and an exploration's own queries follow.
pub(crate) fn followed(point: &TrialPoint, explore: &StateExploration) -> Vec<String> {
    let ledgers = point.workloads.iter().filter_map(|workload| workload.ledger.as_ref());
    let ledgers = ledgers.flat_map(|ledger| [&ledger.insert, &ledger.update, &ledger.read]);
    ledgers.flatten().chain(explore.followed.keys()).cloned().collect()
}

/// Tables that a crash must leave as they were, with the rows that were written to them.
const WRITTEN: &str = "\
    SELECT s.relid, s.relid::regclass::text, s.n_tup_ins + s.n_tup_upd + s.n_tup_del, \
      pg_relation_filenode(s.relid) \
    FROM pg_stat_all_tables s JOIN pg_class c ON c.oid = s.relid \
    WHERE c.relpersistence = 'p' AND (s.relid = 'pg_largeobject'::regclass \
      OR s.schemaname NOT LIKE 'pg\\_%' AND s.schemaname <> 'information_schema')";

/// Tables and their partitions and heirs.
const PARTS: &str = "\
    WITH RECURSIVE part AS ( \
        SELECT to_regclass(name)::oid AS oid FROM unnest($1::text[]) AS name \
        UNION SELECT i.inhrelid FROM pg_inherits i JOIN part ON i.inhparent = part.oid) \
    SELECT oid FROM part WHERE oid IS NOT NULL";

#[cfg(test)]
mod tests {
    use lab::Server;
    use testing::servers;

    use super::*;

    #[test]
    fn what_is_written_and_not_followed_is_named() {
        let (node, _lab) = servers::server(&[]);
        let mut client = node.connect().unwrap();
        client
            .batch_execute(
                "CREATE TABLE log (client int); CREATE TABLE \"Other one\" (i int); \
                 CREATE TABLE whole (i int) PARTITION BY RANGE (i); \
                 CREATE TABLE part PARTITION OF whole DEFAULT; \
                 CREATE UNLOGGED TABLE promised_nothing (i int); \
                 CREATE TABLE before (i int); INSERT INTO before VALUES (1); \
                 CREATE TABLE emptied (i int)",
            )
            .unwrap();
        let server = Server::Node(Box::new(node));
        let node =
            SiteNode { name: "primary".into(), server, conninfo: String::new(), schema: None };
        client.close();
        let counted = |name: &str| {
            let text = format!("SELECT n_tup_ins FROM pg_stat_all_tables WHERE relname = '{name}'");
            node.server.value(&text).unwrap().unwrap_or_default() != "0"
        };
        testing::until("the rows are counted", || counted("before"));
        let written = WrittenRows::of(&node).unwrap();
        let mut client = node.connect().unwrap();
        client
            .batch_execute(
                "INSERT INTO log VALUES (1); INSERT INTO whole VALUES (1); \
                 INSERT INTO promised_nothing VALUES (1); INSERT INTO \"Other one\" VALUES (1), (2); \
                 SELECT lo_from_bytea(0, 'large'); TRUNCATE emptied",
            )
            .unwrap();
        client.close();
        testing::until("the rows are counted", || counted("Other one"));
        let check = |followed: &[&str], expected: &[(&str, i64)]| {
            let followed: Vec<String> = followed.iter().map(|name| (*name).to_owned()).collect();
            let expected = expected.iter().map(|(name, rows)| ((*name).to_owned(), *rows));
            assert_eq!(written.unfollowed(&node, &followed).unwrap(), Some(expected.collect()));
        };
        let (large, emptied) = (("pg_largeobject", 1), ("emptied", 0));
        check(&["log", "whole"], &[("\"Other one\"", 2), large, emptied]);
        check(&["whole", "\"Other one\"", "no_such_table"], &[("log", 1), large, emptied]);
        check(&["log", "\"Other one\"", "pg_largeobject", "emptied"], &[("part", 1)]);

        // As a crash leaves it: the server has counted more before than it does since.
        let mut client = node.connect().unwrap();
        client.batch_execute("SELECT pg_stat_reset()").unwrap();
        client.batch_execute("INSERT INTO before VALUES (2)").unwrap();
        client.close();
        testing::until("the rows are counted", || counted("before"));
        let mut more = WrittenRows::of(&node).unwrap();
        more.0.get_mut(&oid_of(&node, "before")).unwrap().rows = 5;
        let unfollowed = more.unfollowed(&node, &[]).unwrap().unwrap();
        assert_eq!(unfollowed, [("before".to_owned(), 1)].into());
        // A server that counts nothing says nothing.
        node.server.value("ALTER SYSTEM SET track_counts = off").unwrap();
        node.server.value("SELECT pg_reload_conf()").unwrap();
        let setting = || node.server.value("SHOW track_counts").unwrap();
        testing::until("the setting is off", || setting().as_deref() == Some("off"));
        assert_eq!(written.unfollowed(&node, &[]).unwrap(), None);
    }

    fn oid_of(node: &SiteNode, table: &str) -> u32 {
        let oid = node.server.value(&format!("SELECT '{table}'::regclass::oid")).unwrap();
        oid.and_then(|oid| oid.parse().ok()).expect("the table is there")
    }
}
