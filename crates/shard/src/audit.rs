//! Check that every row is where its key's hash and the mapping say.

use std::collections::BTreeMap;

use crate::cluster::{Cluster, on_node};
use crate::error::Error;
use crate::text::{bucket_schema, identifier};

/// The rows of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterAudit {
    /// Rows of each table, over all buckets where the mapping has them.
    pub rows: BTreeMap<String, i64>,
    /// Rows in another bucket than their key's hash says, or on a node that the mapping does not
    /// name.
    pub misplaced: i64,
}

impl Cluster {
    /// Counts all rows on all nodes. `key` is the column with the key; tables without it are
    /// counted only. Copies that serve no call, on their way or left behind,
    /// are not rows of the cluster.
    pub fn audit(&mut self, key: &str) -> Result<ClusterAudit, Error> {
        let mut audit = ClusterAudit::default();
        for number in self.nodes.iter().map(|node| node.number).collect::<Vec<_>>() {
            let failed = |source| on_node("counting rows", number, source);
            let owners = self.owners.clone();
            let client = self.data_node(number)?;
            for row in client.query(TABLES, &[&key]).map_err(failed)? {
                let (bucket, table): (i32, String) = (row.get(0), row.get(1));
                let is_keyed: bool = row.get(2);
                let misplaced = match is_keyed {
                    true => format!("pgrig_shard.bucket_of({}) <> {bucket}", identifier(key)),
                    false => "false".to_owned(),
                };
                let count = format!(
                    "SELECT count(*), count(*) FILTER (WHERE {misplaced}) FROM {}.{}",
                    bucket_schema(bucket),
                    identifier(&table)
                );
                let row = client.query_one(&count, &[]).map_err(failed)?;
                let (rows, misplaced): (i64, i64) = (row.get(0), row.get(1));
                let owner = usize::try_from(bucket).ok().and_then(|bucket| owners.get(bucket));
                match owner == Some(&number) {
                    true => {
                        *audit.rows.entry(table).or_default() += rows;
                        audit.misplaced += misplaced;
                    }
                    false => audit.misplaced += rows,
                }
            }
        }
        Ok(audit)
    }
}

const TABLES: &str = r"
    SELECT substr(n.nspname, 8)::int, c.relname::text,
           EXISTS (SELECT FROM pg_attribute a
                   WHERE a.attrelid = c.oid AND a.attname = $1 AND NOT a.attisdropped)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND n.nspname ~ '^bucket_[0-9]+$'
      AND NOT EXISTS (SELECT FROM pgrig_shard.bucket b
                      WHERE b.bucket = substr(n.nspname, 8)::int AND b.state IN ('gone', 'arriving'))
    ORDER BY 1, 2";
