//! One batch's steps. Whatever a step did before it was cut short, it does not do twice.
//!
//! The steps that need no mapping come last: waiting for the transactions that may have begun before the fence, and
//! comparing the rows of source and target while no client writes.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use server::{Canceller, Client, Limits};

use super::{ANSWER_LEAST, Event, Moves, Next, POLL, rest};
use crate::cluster::{connect_within, node_name, on_node, on_proxy};
use crate::error::Error;
use crate::plan::Batch;
use crate::removal::drop_bucket;
use crate::routines;
use crate::state::{BatchStep, BucketState};
use crate::text::{bucket_schema, int_array, literal};

/// A switch of a batch: the mapping's version after it, and what it has moved.
#[derive(Clone, Copy, Debug)]
struct Switch {
    version: i64,
    rows: i64,
    bytes: i64,
    fence_ms: f64,
}

impl Moves<'_> {
    /// Does the step that a batch is at, and gives the one after it. All servers are where a step leaves them
    /// when it begins.
    pub(super) fn advance(&mut self, number: i32, batch: &Batch) -> Result<Next, Error> {
        let census = self.bring_into_step()?;
        let Some(one) = census.batches.iter().find(|one| one.number == number) else {
            return Ok(Next::Over);
        };
        let is_copied = batch
            .buckets
            .iter()
            .all(|bucket| census.state(batch.to, *bucket) == Some(BucketState::Arriving));
        match one.step {
            BatchStep::Planned => self.prepare(number, batch).map(Next::Step),
            BatchStep::Copying | BatchStep::Fencing if !is_copied => {
                Ok(Next::Anew(format!("node {} has no copy any more", batch.to)))
            }
            BatchStep::Copying => self.copy(number, batch),
            BatchStep::Fencing if !self.are_tables_ready(number, batch)? => {
                self.lift(number, batch)?;
                Ok(Next::Step(BatchStep::Copying))
            }
            BatchStep::Fencing => {
                let limit = Some(self.options.fence_max.max(ANSWER_LEAST));
                let newest = census.newest();
                let moved = self.within(limit, |me| me.fence(number, batch, newest))?;
                let limit = Some(self.options.patience);
                self.within(limit, |me| me.switch(number, batch, &moved)).map(Next::Step)
            }
            BatchStep::Switching => {
                let limit = Some(self.options.patience);
                let moved = self.recorded(number)?;
                self.within(limit, |me| me.complete_switch(number, batch, &moved)).map(Next::Step)
            }
            BatchStep::Switched => Ok(Next::Step(BatchStep::Switched)),
        }
    }

    fn step(&mut self, number: i32) -> Result<Option<BatchStep>, Error> {
        let step = "SELECT step FROM pgrig_shard.batch WHERE number = $1";
        let row = self.cluster.proxy.query_one(step, &[&number]);
        let row = row.map_err(|source| on_proxy("reading a batch", source))?;
        Ok(BatchStep::of(row.get(0)))
    }

    /// Leaves the buckets where they are, unless the target may serve them already.
    pub(super) fn give_up(&mut self, number: i32, batch: &Batch) -> Result<bool, Error> {
        self.bring_into_step()?;
        match self.step(number)? {
            Some(BatchStep::Planned | BatchStep::Copying) => {}
            Some(BatchStep::Fencing) => self.lift(number, batch)?,
            Some(BatchStep::Switching | BatchStep::Switched) => return Ok(false),
            // Somebody else has overtaken it.
            None => return Ok(true),
        }
        self.remove_copy(number, batch)?;
        self.set_step(number, "abandoned", ", done = clock_timestamp()")?;
        Ok(true)
    }

    /// Back to the first step.
    pub(super) fn begin_anew(&mut self, number: i32, batch: &Batch) -> Result<(), Error> {
        if self.step(number)? == Some(BatchStep::Fencing) {
            self.lift(number, batch)?;
        }
        self.remove_copy(number, batch)?;
        self.set_step(number, "planned", "")
    }

    /// Ends replication and removes what has arrived. No bucket is touched that the target serves.
    fn remove_copy(&mut self, number: i32, batch: &Batch) -> Result<(), Error> {
        self.end_replication(number, batch)?;
        let arriving = "SELECT coalesce(array_agg(bucket), '{}') FROM pgrig_shard.bucket
                        WHERE bucket = ANY ($1) AND state = 'arriving'";
        let row = self.cluster.data_node(batch.to)?.query_one(arriving, &[&batch.buckets]);
        let row = row.map_err(|source| on_node("looking at its buckets", batch.to, source))?;
        for bucket in row.get::<_, Vec<i32>>(0) {
            self.cluster.change_node(batch.to, "removing a copy", &drop_bucket(bucket))?;
        }
        self.did(number, "removed the copy");
        Ok(())
    }

    /// Schemas on the target, then replication from the source.
    fn prepare(&mut self, number: i32, batch: &Batch) -> Result<BatchStep, Error> {
        let there = "SELECT coalesce(array_agg(bucket), '{}') FROM pgrig_shard.bucket";
        let client = self.cluster.data_node(batch.to)?;
        let row = client.query_one(there, &[]);
        let there: Vec<i32> =
            row.map_err(|source| on_node("looking at its buckets", batch.to, source))?.get(0);
        let missing: Vec<i32> =
            batch.buckets.iter().copied().filter(|bucket| !there.contains(bucket)).collect();
        for bucket in missing {
            let mut sql = self.cluster.bucket_sql(&[bucket]);
            sql.push_str(&format!(
                "INSERT INTO pgrig_shard.bucket (bucket, state) VALUES ({bucket}, 'arriving');"
            ));
            self.cluster.change_node(batch.to, "making a bucket's schema", &sql)?;
        }
        self.did(number, "made the schemas");
        self.publish(number, batch)?;
        self.did(number, "published");
        self.subscribe(number, batch)?;
        self.did(number, "subscribed");
        self.set_step(number, "copying", "")?;
        Ok(BatchStep::Copying)
    }

    /// Waits until the target has all rows and is close behind.
    fn copy(&mut self, number: i32, batch: &Batch) -> Result<Next, Error> {
        self.follow(number, batch)?;
        if let Some(why) = self.wait_for_copy(number, batch)? {
            return Ok(Next::Anew(why));
        }
        self.did(number, "copied");
        self.set_step(number, "fencing", "")?;
        Ok(Next::Step(BatchStep::Fencing))
    }

    /// No client writes, all that was written arrives, both sides are equal. Whatever goes wrong
    /// lifts the fence.
    fn fence(&mut self, number: i32, batch: &Batch, newest: i64) -> Result<Switch, Error> {
        // A node that is down would leave the buckets fenced until it is back.
        for node in self.cluster.nodes.iter().map(|node| node.number).collect::<Vec<_>>() {
            let alive = self.cluster.data_node(node)?.simple_query("SELECT");
            alive.map_err(|source| on_node("looking whether it answers", node, source))?;
        }
        let (moved, fence_ms) = match self.fenced(number, batch) {
            Ok(compared) => compared,
            Err(error) => {
                if error.is_lost_connection() {
                    self.cluster.disconnect();
                }
                // Where the source itself is away its fence stays up, and is found when it is back.
                let _ = self.patiently(|me| me.lift(number, batch));
                return Err(self.too_late(batch, error));
            }
        };
        // Greater than the number of every mapping that some server knows of.
        let version = newest.max(self.cluster.version) + 1;
        let set = format!(
            ", version = {version}, rows = {}, bytes = {}, fence_ms = {fence_ms}",
            moved.rows, moved.bytes,
        );
        self.set_step(number, "switching", &set)?;
        Ok(Switch { version, rows: moved.rows, bytes: moved.bytes, fence_ms })
    }

    /// A server that is silent while writes are refused is not waited for any longer.
    fn too_late(&self, batch: &Batch, error: Error) -> Error {
        let Some(what) = error.silence() else { return error };
        Error::Fence { from: batch.from, to: batch.to, what, waited: self.options.fence_max }
    }

    fn fenced(&mut self, number: i32, batch: &Batch) -> Result<(BatchSize, f64), Error> {
        let buckets = int_array(&batch.buckets);
        let fence = format!(
            "UPDATE pgrig_shard.bucket SET state = 'fenced', since = clock_timestamp()
             WHERE bucket = ANY ({buckets}) AND state = 'owned'"
        );
        let owned = self.cluster.owned(batch.from);
        self.cluster.change_buckets(batch.from, "fencing", &fence, &owned)?;
        self.did(number, "fenced");
        self.drain(batch)?;
        self.did(number, "drained");
        self.catch_up(number, batch)?;
        self.did(number, "caught up");
        let moved = self.compare(batch)?;
        self.did(number, "compared");
        Ok((moved, self.age_ms(batch, "fenced")?))
    }

    /// Writes go on where they were.
    fn lift(&mut self, number: i32, batch: &Batch) -> Result<(), Error> {
        let lift = format!(
            "UPDATE pgrig_shard.bucket SET state = 'owned', since = clock_timestamp()
             WHERE bucket = ANY ({}) AND state = 'fenced'",
            int_array(&batch.buckets)
        );
        let owned = self.cluster.owned(batch.from);
        // The user's signals do not end it.
        let control = self.cluster.control.take();
        let lifted = self.within(Some(self.options.patience), |me| {
            me.cluster.change_buckets(batch.from, "lifting the fence", &lift, &owned)?;
            me.set_step(number, "copying", "")
        });
        self.cluster.control = control;
        lifted
    }

    /// The source refuses all, then the target serves, then everybody learns of it. What was compared is what
    /// is given: nothing else comes between.
    fn switch(&mut self, number: i32, batch: &Batch, switch: &Switch) -> Result<BatchStep, Error> {
        let (buckets, version) = (int_array(&batch.buckets), switch.version);
        let node = format!("UPDATE pgrig_shard.node SET version = {version};\n");
        let leave = format!(
            "{node}UPDATE pgrig_shard.bucket SET state = 'gone', version = {version},
                 target = {}, since = clock_timestamp()
             WHERE bucket = ANY ({buckets}) AND state = 'fenced'",
            batch.to
        );
        let mut rest = self.cluster.owned(batch.from);
        rest.retain(|bucket| !batch.buckets.contains(bucket));
        let doing = "taking buckets from the source";
        self.cluster.change_buckets(batch.from, doing, &leave, &rest)?;
        self.did(number, "left the source");
        self.stop_applying(number, batch)?;
        let arrive = format!(
            "{node}UPDATE pgrig_shard.bucket SET state = 'owned', version = {version},
                 since = clock_timestamp()
             WHERE bucket = ANY ({buckets}) AND state = 'arriving'"
        );
        let mut all = self.cluster.owned(batch.to);
        all.extend(&batch.buckets);
        all.sort_unstable();
        self.cluster.change_buckets(batch.to, "giving buckets to the target", &arrive, &all)?;
        self.did(number, "arrived at the target");
        self.complete_switch(number, batch, switch)
    }

    /// Everybody learns of a switch after which the target serves.
    fn complete_switch(
        &mut self,
        number: i32,
        batch: &Batch,
        switch: &Switch,
    ) -> Result<BatchStep, Error> {
        let Switch { version, rows, bytes, fence_ms } = *switch;
        let buckets = int_array(&batch.buckets);
        let node = format!("UPDATE pgrig_shard.node SET version = {version};\n");
        let others = self.cluster.nodes.iter().map(|node| node.number);
        for other in others.filter(|n| *n != batch.from && *n != batch.to).collect::<Vec<_>>() {
            let own = self.cluster.owned(other);
            self.cluster.change_buckets(other, "telling the new version", &node, &own)?;
        }
        self.did(number, "told the other nodes");
        let mut owners = self.cluster.owners.clone();
        for bucket in &batch.buckets {
            let index = usize::try_from(*bucket).expect("the first bucket has the number 0");
            owners[index] = batch.to;
        }
        let took_ms = self.age_ms(batch, "gone")?;
        let flip = format!(
            "UPDATE pgrig_shard.bucket SET node = {}, version = {version}
                 WHERE bucket = ANY ({buckets});
             UPDATE pgrig_shard.cluster SET version = {version};
             {}
             UPDATE pgrig_shard.batch SET step = 'switched', switched = clock_timestamp(),
                 fence_ms = fence_ms + {took_ms} WHERE number = {number};",
            batch.to,
            routines::mapping(&owners, version)
        );
        self.cluster.change_proxy("changing the mapping", &flip)?;
        (self.cluster.owners, self.cluster.version) = (owners, version);
        let fence_ms = fence_ms + took_ms;
        (self.tell)(&Event::Switched { number, rows, bytes, fence_ms });
        Ok(BatchStep::Switched)
    }

    /// The switch that a batch is in the middle of.
    fn recorded(&mut self, number: i32) -> Result<Switch, Error> {
        let switch = "SELECT version, rows, bytes, fence_ms FROM pgrig_shard.batch
                      WHERE number = $1";
        let row = self.cluster.proxy.query_one(switch, &[&number]);
        let row = row.map_err(|source| on_proxy("reading a batch", source))?;
        let (version, rows, bytes) = (row.get(0), row.get(1), row.get(2));
        Ok(Switch { version, rows, bytes, fence_ms: row.get(3) })
    }

    /// Ends replication, and drops the old rows of a switched batch when their grace is over.
    pub(super) fn drop_old_rows(&mut self, number: i32, batch: &Batch) -> Result<(), Error> {
        self.end_replication(number, batch)?;
        self.did(number, "ended replication");
        let grace_ms = i64::try_from(self.options.grace.as_millis()).unwrap_or(i64::MAX);
        let over = "SELECT clock_timestamp() >= switched + $2 * interval '1 ms'
                    FROM pgrig_shard.batch WHERE number = $1";
        let mut said = Instant::now();
        self.poll(None, |me| {
            let row = me.cluster.proxy.query_one(over, &[&number, &(grace_ms as f64)]);
            let row = row.map_err(|source| on_proxy("waiting for the grace to end", source))?;
            me.last(number, &mut said, || "the old rows are kept for --grace".to_owned());
            Ok(row.get::<_, bool>(0).then_some(()))
        })?;
        // The target may have been restored in the meantime: then these rows are all that there is.
        let census = self.bring_into_step()?;
        if census.batches.iter().all(|one| one.number != number || one.step != BatchStep::Switched)
        {
            return Ok(());
        }
        for bucket in &batch.buckets {
            let drop = drop_bucket(*bucket);
            self.cluster.change_node(batch.from, "dropping the old rows", &drop)?;
        }
        self.did(number, "dropped the old rows");
        let done = "UPDATE pgrig_shard.batch SET step = 'done', done = clock_timestamp()
                    WHERE number = $1";
        let done = self.cluster.proxy.execute(done, &[&number]);
        done.map_err(|source| on_proxy("recording a step", source)).map(drop)
    }

    /// Time for which the source has had these buckets in a state, in milliseconds of its own
    /// clock.
    fn age_ms(&mut self, batch: &Batch, state: &str) -> Result<f64, Error> {
        let age = "SELECT coalesce(extract(epoch FROM clock_timestamp() - min(since)), 0)::float8
                   FROM pgrig_shard.bucket WHERE bucket = ANY ($1) AND state = $2";
        let row = self.cluster.data_node(batch.from)?.query_one(age, &[&batch.buckets, &state]);
        let row = row.map_err(|source| on_node("looking at the fence", batch.from, source))?;
        Ok(row.get::<_, f64>(0) * 1e3)
    }

    pub(super) fn set_step(&mut self, number: i32, step: &str, also: &str) -> Result<(), Error> {
        let set = format!("UPDATE pgrig_shard.batch SET step = '{step}'{also} WHERE number = $1");
        let set = self.cluster.proxy.execute(&set, &[&number]);
        set.map_err(|source| on_proxy("recording a step", source)).map(drop)
    }
}

impl Moves<'_> {
    /// Returns when every transaction is over that was in progress after the fence had been
    /// committed: only these can still write to the buckets. It is how PostgreSQL itself waits
    /// when it builds an index concurrently. Prepared transactions count, too.
    fn drain(&mut self, batch: &Batch) -> Result<(), Error> {
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

/// Size of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BatchSize {
    rows: i64,
    /// On the target, indexes included.
    bytes: i64,
}

/// A table's rows and the checksum of their text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sum {
    table: String,
    rows: i64,
    checksum: String,
    bytes: i64,
}

impl Moves<'_> {
    /// Compares every table of the buckets by count and checksum, both sides at the same time.
    ///
    /// The checksum is the sum of a 64-bit hash of each row's text: it does not depend on the rows' order, and
    /// equal rows do not cancel each other. A difference goes unseen with a probability of 2⁻⁶⁴.
    fn compare(&mut self, batch: &Batch) -> Result<BatchSize, Error> {
        let (from, to, limit) = (batch.from, batch.to, self.options.fence_max);
        let sides = [from, to].map(|number| (number, Running::default()));
        let places = [self.cluster.node(from)?, self.cluster.node(to)?];
        let places = places.map(|node| node.conninfo.clone());
        let deadline = Instant::now() + limit;
        let ([source, target], ended) = thread::scope(|scope| {
            let jobs: Vec<_> = sides
                .iter()
                .zip(&places)
                .map(|((number, running), place)| {
                    scope.spawn(move || sums(place, *number, &batch.buckets, running, deadline))
                })
                .collect();
            let mut ended = Ok(());
            while !jobs.iter().all(thread::ScopedJoinHandle::is_finished) {
                if ended.is_ok() && Instant::now() >= deadline {
                    let what = "the comparison of both sides did not end".to_owned();
                    ended = Err(Error::Fence { from, to, what, waited: limit });
                }
                ended = ended.and(self.pause(POLL));
                if ended.is_err() {
                    sides.iter().for_each(|(_, running)| running.cancel());
                }
            }
            let mut sums = jobs.into_iter().map(|job| {
                // Only a panic keeps a thread from giving its result.
                job.join().unwrap_or(Err(Error::Stopped))
            });
            let mut next = || sums.next().unwrap_or(Err(Error::Stopped));
            ([next(), next()], ended)
        });
        ended?;
        let (source, target) = (source?, target?);
        for (index, theirs) in source.iter().enumerate() {
            let ours = target.get(index).filter(|ours| ours.table == theirs.table);
            let same = ours
                .is_some_and(|ours| ours.rows == theirs.rows && ours.checksum == theirs.checksum);
            if !same {
                return Err(Error::Differs {
                    from,
                    to,
                    table: theirs.table.clone(),
                    source_rows: theirs.rows,
                    target_rows: ours.map(|ours| ours.rows),
                });
            }
        }
        let rows = target.iter().map(|sum| sum.rows).sum();
        Ok(BatchSize { rows, bytes: target.iter().map(|sum| sum.bytes).sum() })
    }
}

/// A session that another thread can cut short.
#[derive(Default)]
struct Running {
    is_cancelled: AtomicBool,
    canceller: OnceLock<Option<Canceller>>,
}

impl Running {
    /// The statement ends that runs now, and no other begins.
    fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
        if let Some(Some(canceller)) = self.canceller.get() {
            // Asked for again until the thread has ended.
            canceller.cancel();
        }
    }
}

fn sums(
    conninfo: &str,
    number: i32,
    buckets: &[i32],
    running: &Running,
    deadline: Instant,
) -> Result<Vec<Sum>, Error> {
    let failed = |source| on_node("comparing", number, source);
    let limits = Limits { answer: Some(rest(deadline)), ..Limits::of_administration() };
    let mut client = connect_within(conninfo, &node_name(number), &limits)?;
    running.canceller.get_or_init(|| client.canceller());
    // The same text on both sides, whatever their settings are.
    client.batch_execute(SAME_TEXT).map_err(failed)?;
    let tables = tables(&mut client, buckets).map_err(failed)?;
    let mut sums = Vec::new();
    for table in tables {
        if running.is_cancelled.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        let sum = format!(
            "SELECT count(*), coalesce(sum(hashtextextended(t::text, 0)), 0)::text,
                    pg_total_relation_size({}::regclass)
             FROM ONLY {table} AS t",
            literal(&table)
        );
        client.set_limits(|limits| limits.answer = Some(rest(deadline)));
        let row = client.query_one(&sum, &[]).map_err(failed)?;
        let (rows, checksum, bytes) = (row.get(0), row.get(1), row.get(2));
        sums.push(Sum { table, rows, checksum, bytes });
    }
    Ok(sums)
}

fn tables(client: &mut Client, buckets: &[i32]) -> Result<Vec<String>, postgres::Error> {
    let schemas: Vec<String> = buckets.iter().map(|bucket| bucket_schema(*bucket)).collect();
    let rows = client.query(TABLES, &[&schemas])?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

const TABLES: &str = "
    SELECT format('%I.%I', n.nspname, c.relname)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND n.nspname = ANY ($1)
    ORDER BY n.nspname, c.relname";

const SAME_TEXT: &str = "
    SET datestyle = 'ISO'; SET intervalstyle = 'postgres'; SET timezone = 'UTC';
    SET extra_float_digits = 3; SET bytea_output = 'hex'; SET xmloption = 'content'";
