//! Waiting for the transactions that may have begun before the fence.

use std::time::Duration;

use super::Moves;
use crate::cluster::on_node;
use crate::error::Error;
use crate::plan::Batch;

impl Moves<'_> {
    /// Returns when every transaction is over that was in progress after the fence had been
    /// committed: only these can still write to the buckets. It is how PostgreSQL itself waits
    /// when it builds an index concurrently. Prepared transactions count, too.
    pub(super) fn drain(&mut self, batch: &Batch) -> Result<(), Error> {
        let from = batch.from;
        let mut waited_for = self.transactions(from, IN_PROGRESS)?;
        let mut are_prepared = false;
        let ended = self.poll_fenced(|me| {
            let now = me.transactions(from, IN_PROGRESS)?;
            if now.iter().any(|one| waited_for.contains(one)) {
                return Ok(None);
            }
            if are_prepared {
                return Ok(Some(()));
            }
            // One that was prepared meanwhile has a new name.
            are_prepared = true;
            waited_for = me.transactions(from, PREPARED)?;
            Ok(waited_for.is_empty().then_some(()))
        })?;
        if ended.is_some() {
            return Ok(());
        }
        Err(self.in_the_way(batch, self.options.fence_max)?)
    }

    fn transactions(&mut self, number: i32, which: &str) -> Result<Vec<String>, Error> {
        let row = self.cluster.data_node(number)?.query_one(which, &[]);
        let row = row.map_err(|source| on_node("looking at transactions", number, source))?;
        Ok(row.get(0))
    }

    /// Names the oldest transaction of the source, which is what did not end.
    pub(super) fn in_the_way(&mut self, batch: &Batch, waited: Duration) -> Result<Error, Error> {
        let (from, to) = (batch.from, batch.to);
        let row = self.cluster.data_node(from)?.query_opt(OLDEST, &[]);
        let row = row.map_err(|source| on_node("looking at transactions", from, source))?;
        let who = row.map_or_else(String::new, |row| format!(" ({})", row.get::<_, String>(0)));
        let what = format!("a transaction on node {from} did not end{who}");
        Ok(Error::Fence { from, to, what, waited })
    }
}

/// Every transaction holds a lock on its own virtual identifier until it ends. Workers that only
/// read WAL, vacuum or apply write to no bucket that leaves; since PostgreSQL 17 each kind of worker of
/// logical replication has a name of its own.
const IN_PROGRESS: &str = "
    SELECT coalesce(array_agg(one), '{}') FROM (
        SELECT l.virtualxid AS one
        FROM pg_locks l JOIN pg_stat_activity a USING (pid)
        WHERE l.locktype = 'virtualxid' AND l.granted AND l.pid <> pg_backend_pid()
          AND a.datname = current_database()
          AND a.backend_type NOT IN ('walsender', 'autovacuum worker', 'parallel worker')
          AND a.backend_type NOT LIKE 'logical replication %'
        UNION ALL
        SELECT gid FROM pg_prepared_xacts WHERE database = current_database()
    ) AS all_of_them";

const PREPARED: &str = "
    SELECT coalesce(array_agg(gid), '{}') FROM pg_prepared_xacts
    WHERE database = current_database()";

const OLDEST: &str = "
    SELECT who FROM (
        SELECT format('process %s, %s: %s', pid, state, left(query, 100)) AS who, xact_start
        FROM pg_stat_activity
        WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()
          AND backend_type = 'client backend'
        UNION ALL
        SELECT format('prepared transaction %L', gid), prepared
        FROM pg_prepared_xacts WHERE database = current_database()
    ) AS all_of_them
    ORDER BY xact_start LIMIT 1";
