//! Logical replication of a batch: publication and slot on its source, subscription on its target.

use std::time::{Duration, Instant};

use postgres::error::SqlState;

use super::Moves;
use crate::cluster::{LOCK_PATIENCE, on_node};
use crate::error::Error;
use crate::logical::{DROP_SLOT, END_WALSENDER, PROGRESS, SLOT, SUBSCRIPTION, drop_subscription};
use crate::plan::Batch;
use crate::secret;
use crate::text::{bucket_schema, literal};

impl Moves<'_> {
    /// The publication of the buckets' schemas, and the slot.
    pub(super) fn publish(&mut self, number: i32, batch: &Batch) -> Result<(), Error> {
        let name = self.name(number);
        let schemas: Vec<String> = batch.buckets.iter().map(|b| bucket_schema(*b)).collect();
        let publish =
            format!("CREATE PUBLICATION {name} FOR TABLES IN SCHEMA {}", schemas.join(", "));
        let failed = |source| on_node("publishing", batch.from, source);
        let is_there = |row: postgres::Row| row.get::<_, bool>(0);
        let there = "SELECT EXISTS (SELECT FROM pg_publication WHERE pubname = $1)";
        let client = self.cluster.data_node(batch.from)?;
        if !client.query_one(there, &[&name]).map(is_there).map_err(failed)? {
            self.cluster.change_node(batch.from, "publishing", &publish)?;
        }
        // Made here and not by CREATE SUBSCRIPTION, which waits for itself where source and
        // target are databases of the same server.
        let there = "SELECT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = $1)";
        let client = self.cluster.data_node(batch.from)?;
        if !client.query_one(there, &[&name]).map(is_there).map_err(failed)? {
            let make = "SELECT pg_create_logical_replication_slot($1, 'pgoutput')";
            let made = self.poll(Some(LOCK_PATIENCE), |me| {
                match me.cluster.data_node(batch.from)?.execute(make, &[&name]) {
                    // It begins where no transaction is under way that began before it.
                    Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => Ok(None),
                    made => made.map(Some).map_err(failed),
                }
            })?;
            if made.is_none() {
                return Err(self.in_the_way(batch, LOCK_PATIENCE)?);
            }
        }
        Ok(())
    }

    /// The subscription, which follows the source once the rows are there.
    pub(super) fn subscribe(&mut self, number: i32, batch: &Batch) -> Result<(), Error> {
        let name = self.name(number);
        let source = self.cluster.node(batch.from)?.conninfo.clone();
        let failed = |source| on_node("subscribing", batch.to, source);
        let client = self.cluster.data_node(batch.to)?;
        if client.query_opt(SUBSCRIPTION, &[&name]).map_err(failed)?.is_some() {
            return Ok(());
        }
        let subscribe = format!(
            "CREATE SUBSCRIPTION {name} CONNECTION {} PUBLICATION {name}
             WITH (create_slot = false, slot_name = {name}, copy_data = true)",
            literal(&source)
        );
        let tool = self.cluster.tool;
        let mut transaction = self.cluster.data_node(batch.to)?.transaction().map_err(failed)?;
        transaction.execute("SELECT pgrig_shard.take($1)", &[&tool]).map_err(failed)?;
        secret::hide(&mut transaction).map_err(failed)?;
        transaction.batch_execute(&subscribe).map_err(failed)?;
        transaction.commit().map_err(failed)
    }

    /// Lets a subscription go on that a switch has stopped before it returned.
    pub(super) fn follow(&mut self, number: i32, batch: &Batch) -> Result<(), Error> {
        let name = self.name(number);
        let failed = |source| on_node("looking at the subscription", batch.to, source);
        let is_stopped = "SELECT NOT subenabled FROM pg_subscription
                          JOIN pg_database d ON d.oid = subdbid
                          WHERE subname = $1 AND datname = current_database()";
        let row = self.cluster.data_node(batch.to)?.query_opt(is_stopped, &[&name]);
        match row.map_err(failed)?.is_some_and(|row| row.get(0)) {
            false => Ok(()),
            true => {
                let enable = format!("ALTER SUBSCRIPTION {name} ENABLE");
                self.cluster.change_node(batch.to, "going on with the subscription", &enable)
            }
        }
    }

    /// Returns when every table is copied and little is left to apply; or with the reason why
    /// waiting on is of no use and the copy has to begin anew.
    pub(super) fn wait_for_copy(
        &mut self,
        number: i32,
        batch: &Batch,
    ) -> Result<Option<String>, Error> {
        let name = self.name(number);
        let (from, to, lag_max) = (batch.from, batch.to, self.options.lag_bytes_max);
        // Failures that are overcome are none: PostgreSQL tries again by itself.
        let (mut failures_before, mut least) = (self.failures(&name, to)?, i64::MAX);
        let mut said = Instant::now();
        let ended = self.poll(None, |me| {
            let failed = |source| on_node("looking at the replication slot", from, source);
            let row = me.cluster.data_node(from)?.query_opt(LAG, &[&name]).map_err(failed)?;
            let slot = row.map(|row| (row.get::<_, i64>(0), row.get::<_, bool>(1)));
            let Some((lag, false)) = slot else {
                return Ok(Some(Some(format!(
                    "node {from} has given up replication slot {name}: more WAL was written there \
                     than max_slot_wal_keep_size keeps, or the slot was dropped"
                ))));
            };
            if me.is_ahead(&name, batch)? {
                return Ok(Some(Some(format!(
                    "node {to} has received what node {from} has lost since: node {from} was \
                     restored, or was a standby that had not received it"
                ))));
            }
            let failed = |source| on_node("waiting for the copy", to, source);
            let row = me.cluster.data_node(to)?.query_opt(PROGRESS, &[&name]).map_err(failed)?;
            let Some(row) = row else {
                return Ok(Some(Some(format!("node {to} has no subscription {name} any more"))));
            };
            let (tables, not_ready): (i64, i64) = (row.get(0), row.get(1));
            let (is_enabled, workers): (bool, i64) = (row.get(2), row.get(3));
            me.last(number, &mut said, || {
                let trouble = match (is_enabled, workers) {
                    (false, _) => format!("; the subscription on node {to} is disabled"),
                    (true, 0) => format!(
                        "; no worker of the subscription runs on node {to}, whose log says why"
                    ),
                    _ => String::new(),
                };
                let behind = terms::size(lag.max(0).unsigned_abs());
                let copied = tables - not_ready;
                format!(
                    "{copied} of {tables} tables are copied, node {to} is {behind} behind{trouble}"
                )
            });
            let failures_now = me.failures(&name, to)?;
            if not_ready < least {
                (least, failures_before) = (not_ready, failures_now);
            }
            let failures = failures_now - failures_before;
            if failures >= FAILURES_MAX {
                return Err(Error::Copy { from, to, failures });
            }
            if not_ready > 0 {
                let why = || {
                    format!(
                        "node {to} has lost in a crash that a table was copied, and node {from} has \
                         dropped the table's slot"
                    )
                };
                let is_lost = failures >= FAILURES_SEVERAL && me.has_lost_a_table(&name, batch)?;
                return Ok(is_lost.then(why).map(Some));
            }
            // The workers' commits are asynchronous. A crash of the target must not undo what they did
            // to a table, nor that it is ready: changes that they have applied are not sent again.
            let failed = |source| on_node("flushing", to, source);
            me.cluster.data_node(to)?.execute(FLUSH, &[]).map_err(failed)?;
            Ok((lag <= lag_max).then_some(None))
        })?;
        Ok(ended.flatten())
    }

    /// True if a crash of the target has undone that a table was copied, after the source had dropped the slot by
    /// which it was: its worker asks for that slot for ever. For a moment it looks so in every copy, as the worker
    /// drops the slot just before it commits that the table is done; nothing fails there.
    fn has_lost_a_table(&mut self, name: &str, batch: &Batch) -> Result<bool, Error> {
        let failed = |source| on_node("looking at the subscription", batch.to, source);
        let slots = self.cluster.data_node(batch.to)?.query(SLOTS_OF_COPIED, &[&name]);
        for row in slots.map_err(failed)? {
            let slot: String = row.get(0);
            let failed = |source| on_node("looking for slots", batch.from, source);
            if self
                .cluster
                .data_node(batch.from)?
                .query_opt(SLOT, &[&slot])
                .map_err(failed)?
                .is_none()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// True if every table is copied. A crash of the target may undo it.
    pub(super) fn are_tables_ready(&mut self, number: i32, batch: &Batch) -> Result<bool, Error> {
        let name = self.name(number);
        let failed = |source| on_node("looking at the subscription", batch.to, source);
        let row = self.cluster.data_node(batch.to)?.query_opt(PROGRESS, &[&name]);
        Ok(row.map_err(failed)?.is_some_and(|row| row.get::<_, i64>(1) == 0))
    }

    /// True if the target has applied WAL that the source has not written any more.
    fn is_ahead(&mut self, name: &str, batch: &Batch) -> Result<bool, Error> {
        let failed = |source| on_node("looking at the subscription", batch.to, source);
        let row = self.cluster.data_node(batch.to)?.query_opt(APPLIED, &[&name]).map_err(failed)?;
        let Some(applied) = row.and_then(|row| row.get::<_, Option<String>>(0)) else {
            return Ok(false);
        };
        let failed = |source| on_node("looking at its WAL", batch.from, source);
        let is_ahead = "SELECT $1::text::pg_lsn > pg_current_wal_lsn()";
        let row = self.cluster.data_node(batch.from)?.query_one(is_ahead, &[&applied]);
        Ok(row.map_err(failed)?.get(0))
    }

    /// Returns when the target has applied all that was committed on the source until now. The
    /// target's commits are asynchronous, and only what it has flushed is confirmed: a commit of
    /// the tool flushes them.
    pub(super) fn catch_up(&mut self, number: i32, batch: &Batch) -> Result<(), Error> {
        let name = self.name(number);
        let (from, to, limit) = (batch.from, batch.to, self.options.fence_max);
        let failed = |source| on_node("flushing", from, source);
        // Flushes commits that were asynchronous: walsenders send only what is on disk.
        let row = self.cluster.data_node(from)?.query_one(FLUSH, &[]).map_err(failed)?;
        let end: String = row.get(0);
        let caught_up = self.poll_fenced(|me| {
            let failed = |source| on_node("flushing", to, source);
            me.cluster.data_node(to)?.execute(FLUSH, &[]).map_err(failed)?;
            let failed = |source| on_node("looking at the lag", from, source);
            let client = me.cluster.data_node(from)?;
            let row = client.query_one(CONFIRMED, &[&name, &end]).map_err(failed)?;
            Ok(row.get::<_, bool>(0).then_some(()))
        })?;
        let what = "the copy did not catch up".to_owned();
        caught_up.ok_or(Error::Fence { from, to, what, waited: limit })
    }

    /// From here on nothing but the target's own clients writes to its buckets.
    pub(super) fn stop_applying(&mut self, number: i32, batch: &Batch) -> Result<(), Error> {
        let name = self.name(number);
        let failed = |source| on_node("stopping the subscription", batch.to, source);
        let client = self.cluster.data_node(batch.to)?;
        if client.query_opt(SUBSCRIPTION, &[&name]).map_err(failed)?.is_some() {
            let disable = format!("ALTER SUBSCRIPTION {name} DISABLE");
            self.cluster.change_node(batch.to, "stopping the subscription", &disable)?;
        }
        Ok(())
    }

    /// Removes subscription, slots and publication.
    pub(super) fn end_replication(&mut self, number: i32, batch: &Batch) -> Result<(), Error> {
        let name = self.name(number);
        let failed = |source| on_node("looking at the subscription", batch.to, source);
        let client = self.cluster.data_node(batch.to)?;
        let of_tables = client.query_opt(TABLE_SLOTS_OF, &[&name]).map_err(failed)?;
        self.drop_subscription(batch.to, &name)?;
        self.drop_slot(batch.from, &name)?;
        // A target that cannot reach the source leaves those by which it copied single tables, and their
        // walsenders there.
        if let Some(row) = of_tables {
            let failed = |source| on_node("looking for slots", batch.from, source);
            let pattern: String = row.get(0);
            let client = self.cluster.data_node(batch.from)?;
            for row in client.query(SLOTS_LIKE, &[&pattern]).map_err(failed)? {
                self.drop_slot(batch.from, row.get(0))?;
            }
        }
        self.drop_table_slots(batch.from)?;
        self.drop_publication(batch.from, &name)
    }

    /// Drops a subscription, if it is there, without its slot: so no node waits for another.
    pub(super) fn drop_subscription(&mut self, number: i32, name: &str) -> Result<(), Error> {
        let failed = |source| on_node("dropping the subscription", number, source);
        let client = self.cluster.data_node(number)?;
        match client.query_opt(SUBSCRIPTION, &[&name]).map_err(failed)?.is_some() {
            false => Ok(()),
            true => {
                let drop = drop_subscription(name);
                self.cluster.change_node(number, "dropping the subscription", &drop)
            }
        }
    }

    /// Drops a slot, if it is there. Its subscription is gone, which its walsender may not have noticed.
    pub(super) fn drop_slot(&mut self, number: i32, name: &str) -> Result<(), Error> {
        let failed = |source| on_node("dropping the slot", number, source);
        let (began, limit) = (Instant::now(), self.options.patience);
        let dropped = self.poll(Some(limit), |me| {
            let client = me.cluster.data_node(number)?;
            let gone = client.execute(DROP_SLOT, &[&name]).map_err(failed)?;
            let left = client.query_opt(SLOT, &[&name]).map_err(failed)?;
            if left.is_some() && began.elapsed() >= ENDING {
                client.execute(END_WALSENDER, &[&name]).map_err(failed)?;
            }
            Ok((gone > 0 || left.is_none()).then_some(()))
        })?;
        match dropped {
            Some(()) => Ok(()),
            None => Err(Error::SlotInUse { from: number, slot: name.to_owned(), waited: limit }),
        }
    }

    pub(super) fn drop_publication(&mut self, number: i32, name: &str) -> Result<(), Error> {
        let drop = format!("DROP PUBLICATION IF EXISTS {name}");
        self.cluster.change_node(number, "dropping the publication", &drop)
    }

    /// The name that publication, slot and subscription of a batch have.
    pub(super) fn name(&self, number: i32) -> String {
        format!("{}{number}", self.cluster.prefix())
    }

    fn failures(&mut self, name: &str, to: i32) -> Result<i64, Error> {
        let row = self.cluster.data_node(to)?.query_opt(FAILURES, &[&name]);
        let row = row.map_err(|source| on_node("looking at the subscription", to, source))?;
        // The server's statistics have a row of a subscription from its first failure on.
        Ok(row.map_or(0, |row| row.get(0)))
    }
}

/// The names of the slots by which a subscription copies tables, as a regular expression.
const TABLE_SLOTS_OF: &str = "
    SELECT format('^pg_%s_sync_[0-9]+_%s$', s.oid, (SELECT system_identifier FROM pg_control_system()))
    FROM pg_subscription s JOIN pg_database d ON d.oid = s.subdbid
    WHERE subname = $1 AND datname = current_database()";

/// The slots of the tables whose rows are there and that have not caught up.
const SLOTS_OF_COPIED: &str = "
    SELECT format('pg_%s_sync_%s_%s', srsubid, srrelid, (SELECT system_identifier FROM pg_control_system()))
    FROM pg_subscription_rel JOIN pg_subscription s ON s.oid = srsubid JOIN pg_database d ON d.oid = subdbid
    WHERE subname = $1 AND datname = current_database() AND srsubstate = 'f'";

const SLOTS_LIKE: &str = "
    SELECT slot_name::text FROM pg_replication_slots
    WHERE database = current_database() AND slot_name ~ $1";

/// A few may be a restart that interfered, or more tables at once than there are origins for
/// (max_replication_slots); more without any progress do not go away by themselves.
const FAILURES_MAX: i64 = 10;

/// One may be a restart of the source in the moment in which a slot is dropped.
const FAILURES_SEVERAL: i64 = 2;

const FAILURES: &str = "
    SELECT apply_error_count + sync_error_count FROM pg_stat_subscription_stats
    WHERE subname = $1";

/// What the subscription has applied, or one of its tables has by itself until the others go on with it: a table waits
/// for that position for ever where the source has lost it.
const APPLIED: &str = "
    SELECT greatest(
        (SELECT remote_lsn FROM pg_replication_origin_status WHERE external_id = 'pg_' || s.oid),
        (SELECT max(srsublsn) FROM pg_subscription_rel WHERE srsubid = s.oid))::text
    FROM pg_subscription s JOIN pg_database d ON d.oid = s.subdbid
    WHERE subname = $1 AND datname = current_database()";

const LAG: &str = "
    SELECT coalesce(pg_current_wal_lsn() - confirmed_flush_lsn, 0)::bigint,
           coalesce(wal_status = 'lost', false)
    FROM pg_replication_slots WHERE slot_name = $1";

/// Flushes all commits before it: the message belongs to a transaction, whose commit is synchronous in the tool's
/// sessions. A transaction that has written nothing but its commit is not waited for, whatever synchronous_commit is.
const FLUSH: &str = "
    SELECT pg_logical_emit_message(true, 'pgrig_shard', 'flush')::text";

const CONFIRMED: &str = "
    SELECT coalesce(bool_and(confirmed_flush_lsn >= $2::text::pg_lsn), false)
    FROM pg_replication_slots WHERE slot_name = $1";

/// A walsender whose subscription is dropped ends well within that.
const ENDING: Duration = Duration::from_secs(2);
