//! Check that nodes have room for the buckets that are to come to them, before anything moves.
//!
//! PostgreSQL does not tell how full its disk is; a superuser may have the server run `df` in its
//! data directory. Where that cannot be done, the room is unknown, and moves go on.

use std::collections::BTreeMap;

use server::Client;

use crate::cluster::{Cluster, NodeConfig, connect, node_name, on_node};
use crate::error::Error;
use crate::moves::{NodeChange, Options};
use crate::text::bucket_schema;

/// The load that is to come to a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Coming {
    buckets: usize,
    bytes: i64,
}

impl Cluster {
    /// Refuses a change after which a node's disk would be full; `new` is the node that it adds.
    /// Gives the numbers of nodes that do not say how much room they have.
    ///
    /// # Errors
    /// [`Error::Refused`] for a node that is too full; a node's.
    pub fn check_room(
        &mut self,
        options: &Options,
        change: NodeChange,
        new: Option<&NodeConfig>,
    ) -> Result<Vec<i32>, Error> {
        let (_, batches) = self.planned(options, change)?;
        let mut coming: BTreeMap<i32, Coming> = BTreeMap::new();
        for batch in &batches {
            let bytes = self.bytes(batch.from, &batch.buckets)?;
            let sum = coming.entry(batch.to).or_default();
            (sum.buckets, sum.bytes) = (sum.buckets + batch.buckets.len(), sum.bytes + bytes);
        }
        let mut silent = Vec::new();
        for (number, coming) in coming {
            let mut client = match (self.node(number), new) {
                (Ok(node), _) => connect(&node.conninfo, &node_name(number))?,
                (Err(_), Some(new)) => connect(&new.conninfo, &node_name(number))?,
                (Err(error), None) => return Err(error),
            };
            let Some(free) = free_bytes(&mut client) else {
                silent.push(number);
                continue;
            };
            let failed = |source| on_node("looking at its settings", number, source);
            let wal_max: i64 = client.query_one(WAL_MAX, &[]).map_err(failed)?.get(0);
            // Rows that are copied are written to the WAL, too.
            let needed = coming.bytes + coming.bytes.min(wal_max);
            if free.saturating_sub(options.keep_free_bytes) < needed {
                return Err(too_full(number, coming, needed, free, options.keep_free_bytes));
            }
        }
        Ok(silent)
    }

    /// Disk space of buckets on a node, indexes included.
    fn bytes(&mut self, number: i32, buckets: &[i32]) -> Result<i64, Error> {
        let schemas: Vec<String> = buckets.iter().map(|bucket| bucket_schema(*bucket)).collect();
        let row = self.data_node(number)?.query_one(BYTES, &[&schemas]);
        Ok(row.map_err(|source| on_node("asking how large buckets are", number, source))?.get(0))
    }
}

fn too_full(number: i32, coming: Coming, needed: i64, free: i64, keep_free: i64) -> Error {
    let size = |bytes: i64| terms::size(bytes.max(0).unsigned_abs());
    Error::Refused {
        what: format!(
            "node {number} is too full: {} buckets with {} are to go there, which takes {} with \
             the WAL; its disk has {} free, of which {} stay so",
            coming.buckets,
            size(coming.bytes),
            size(needed),
            size(free),
            size(keep_free)
        ),
        hint: "make room there, add another node, or leave less free: --keep-free".into(),
    }
}

/// Bytes that the server's user can still write in the file system of the data directory.
fn free_bytes(client: &mut Client) -> Option<i64> {
    // Another shell's locale may translate df's header, never its figures.
    let mut transaction = client.transaction().ok()?;
    transaction.batch_execute(DF).ok()?;
    let rows = transaction.query("SELECT line FROM pgrig_df", &[]).ok()?;
    let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    available(lines.last()?)
}

/// The fourth figure of `df -Pk`: file system, blocks, used, available, share, place. Names may
/// contain blanks, so it is counted from the share.
fn available(line: &str) -> Option<i64> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let share = words.iter().position(|word| word.ends_with('%'))?;
    words.get(share.checked_sub(1)?)?.parse::<i64>().ok()?.checked_mul(1024)
}

const DF: &str = "
    CREATE TEMPORARY TABLE pgrig_df (line text) ON COMMIT DROP;
    COPY pgrig_df FROM PROGRAM 'df -Pk .'";

const BYTES: &str = "
    SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND n.nspname = ANY ($1)";

const WAL_MAX: &str = "SELECT pg_size_bytes(current_setting('max_wal_size'))";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_is_read_from_df() {
        let check = |line, expected| assert_eq!(available(line), expected, "{line}");
        check("/dev/vda  263174212 14680064 81788928  16% /", Some(81_788_928 << 10));
        check("my disk 10 2 8 20% /data dir", Some(8 << 10));
        check("Filesystem 1024-blocks Used Available Capacity Mounted on", None);
        check("", None);
    }
}
