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
        let failed = |source| on_node("waiting for transactions to end", from, source);
        let row = self.cluster.data_node(from)?.query_one(IN_PROGRESS, &[]).map_err(failed)?;
        let waited_for: Vec<String> = row.get(0);
        let limit = self.options.fence_max;
        let ended = self.poll(Some(limit), |me| {
            let row = me.cluster.data_node(from)?.query_one(IN_PROGRESS, &[]).map_err(failed)?;
            let now: Vec<String> = row.get(0);
            Ok((!now.iter().any(|one| waited_for.contains(one))).then_some(()))
        })?;
        if ended.is_some() {
            return Ok(());
        }
        Err(self.in_the_way(batch, limit)?)
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
/// read WAL, vacuum or apply write to no bucket that leaves.
const IN_PROGRESS: &str = "
    SELECT coalesce(array_agg(one), '{}') FROM (
        SELECT l.virtualxid AS one
        FROM pg_locks l JOIN pg_stat_activity a USING (pid)
        WHERE l.locktype = 'virtualxid' AND l.granted AND l.pid <> pg_backend_pid()
          AND a.datname = current_database()
          AND a.backend_type NOT IN ('walsender', 'autovacuum worker',
                                     'logical replication worker', 'parallel worker')
        UNION ALL
        SELECT gid FROM pg_prepared_xacts WHERE database = current_database()
    ) AS all_of_them";

const OLDEST: &str = "
    SELECT format('process %s, %s: %s', pid, state, left(query, 100))
    FROM pg_stat_activity
    WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()
      AND backend_type = 'client backend'
    ORDER BY xact_start LIMIT 1";
