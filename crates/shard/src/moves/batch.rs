//! One batch's steps. Whatever a step did before it was cut short, it does not do twice.

use std::time::Instant;

use super::compare::Moved;
use super::replication::Rows;
use super::{ANSWER_LEAST, Event, Moves, Next, Step};
use crate::cluster::{on_node, on_proxy};
use crate::error::Error;
use crate::plan::Batch;
use crate::routines;
use crate::text::{bucket_schema, int_array};

impl Moves<'_> {
    /// Does the step that a batch is at, and gives the one after it.
    pub(super) fn advance(&mut self, number: i32, batch: &Batch) -> Result<Next, Error> {
        let step = match self.step(number)?.as_str() {
            "planned" => self.prepare(number, batch)?,
            "returning" => self.take_back(number, batch)?,
            "copying" => return self.copy(number, batch),
            "fencing" => {
                let limit = Some(self.options.fence_max.max(ANSWER_LEAST));
                self.within(limit, |me| me.fence(number, batch))?
            }
            "switching" => {
                let limit = Some(self.options.patience);
                self.within(limit, |me| me.switch(number, batch))?
            }
            _ => Step::Switched,
        };
        Ok(Next::Step(step))
    }

    pub(super) fn step(&mut self, number: i32) -> Result<String, Error> {
        let step = "SELECT step FROM pgrig_shard.batch WHERE number = $1";
        let row = self.cluster.proxy.query_one(step, &[&number]);
        Ok(row.map_err(|source| on_proxy("reading a batch", source))?.get(0))
    }

    /// Leaves the buckets where they are, unless the target may serve them already.
    pub(super) fn give_up(&mut self, number: i32, batch: &Batch) -> Result<bool, Error> {
        match self.step(number)?.as_str() {
            "planned" | "copying" => {}
            "returning" => drop(self.take_back(number, batch)?),
            "fencing" => self.lift(number, batch)?,
            _ => return Ok(false),
        }
        self.remove_copy(number, batch)?;
        self.set_step(number, "abandoned", ", done = clock_timestamp()")?;
        Ok(true)
    }

    /// Back to the first step.
    pub(super) fn begin_anew(&mut self, number: i32, batch: &Batch) -> Result<(), Error> {
        self.remove_copy(number, batch)?;
        self.set_step(number, "planned", "")
    }

    /// Ends replication and removes what has arrived. No bucket is touched that the target serves.
    fn remove_copy(&mut self, number: i32, batch: &Batch) -> Result<(), Error> {
        self.end_replication(number, batch)?;
        self.close_way_back(number)?;
        let arriving = "SELECT coalesce(array_agg(bucket), '{}') FROM pgrig_shard.bucket
                        WHERE bucket = ANY ($1) AND state = 'arriving'";
        let row = self.cluster.data_node(batch.to)?.query_one(arriving, &[&batch.buckets]);
        let row = row.map_err(|source| on_node("looking at its buckets", batch.to, source))?;
        for bucket in row.get::<_, Vec<i32>>(0) {
            let drop = format!(
                "DROP SCHEMA IF EXISTS {} CASCADE;
                 DELETE FROM pgrig_shard.bucket WHERE bucket = {bucket} AND state = 'arriving'",
                bucket_schema(bucket)
            );
            self.cluster.change_node(batch.to, "removing a copy", &drop)?;
        }
        self.did(number, "removed the copy");
        Ok(())
    }

    /// Schemas on the target, then replication from the source.
    fn prepare(&mut self, number: i32, batch: &Batch) -> Result<Step, Error> {
        let there = "SELECT coalesce(array_agg(bucket), '{}') FROM pgrig_shard.bucket";
        let client = self.cluster.data_node(batch.to)?;
        let row = client.query_one(there, &[]);
        let there: Vec<i32> =
            row.map_err(|source| on_node("looking at its buckets", batch.to, source))?.get(0);
        let missing: Vec<i32> =
            batch.buckets.iter().copied().filter(|bucket| !there.contains(bucket)).collect();
        for bucket in missing {
            let mut sql = self.cluster.bucket_sql(&[bucket]);
            sql.push_str(&format!("INSERT INTO pgrig_shard.bucket VALUES ({bucket}, 'arriving');"));
            self.cluster.change_node(batch.to, "making a bucket's schema", &sql)?;
        }
        self.did(number, "made the schemas");
        self.publish(number, batch)?;
        self.did(number, "published");
        self.subscribe(number, batch, Rows::Copied)?;
        self.did(number, "subscribed");
        self.set_step(number, "copying", "")?;
        Ok(Step::Copying)
    }

    /// Waits until the target has all rows and is close behind.
    fn copy(&mut self, number: i32, batch: &Batch) -> Result<Next, Error> {
        if let Some(why) = self.wait_for_copy(number, batch)? {
            return Ok(Next::Anew(why));
        }
        self.did(number, "copied");
        self.open_way_back(number, batch)?;
        self.set_step(number, "fencing", "")?;
        Ok(Next::Step(Step::Fencing))
    }

    /// No client writes, all that was written arrives, both sides are equal. Whatever goes wrong
    /// lifts the fence.
    fn fence(&mut self, number: i32, batch: &Batch) -> Result<Step, Error> {
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
        let set = format!(
            ", version = (SELECT version + 1 FROM pgrig_shard.cluster), rows = {}, bytes = {}, \
             fence_ms = {fence_ms}",
            moved.rows, moved.bytes,
        );
        self.set_step(number, "switching", &set)?;
        Ok(Step::Switching)
    }

    /// A server that is silent while writes are refused is not waited for any longer.
    fn too_late(&self, batch: &Batch, error: Error) -> Error {
        let Some(what) = error.silence() else { return error };
        Error::Fence { from: batch.from, to: batch.to, what, waited: self.options.fence_max }
    }

    fn fenced(&mut self, number: i32, batch: &Batch) -> Result<(Moved, f64), Error> {
        let buckets = int_array(&batch.buckets);
        let fence = format!(
            "UPDATE pgrig_shard.bucket SET state = 'fenced', since = clock_timestamp()
             WHERE bucket = ANY ({buckets}) AND state = 'owned'"
        );
        self.cluster.change_buckets(batch.from, "fencing", &fence)?;
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
        // The user's signals do not end it.
        let control = self.cluster.control.take();
        let lifted = self.within(Some(self.options.patience), |me| {
            me.cluster.change_buckets(batch.from, "lifting the fence", &lift)?;
            me.set_step(number, "copying", "")
        });
        self.cluster.control = control;
        lifted
    }

    /// The source refuses all, then the target serves, then everybody learns of it.
    fn switch(&mut self, number: i32, batch: &Batch) -> Result<Step, Error> {
        let version = "SELECT version, rows, bytes, fence_ms FROM pgrig_shard.batch
                       WHERE number = $1";
        let row = self.cluster.proxy.query_one(version, &[&number]);
        let row = row.map_err(|source| on_proxy("reading a batch", source))?;
        let (version, rows, bytes): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
        let fence_ms: f64 = row.get(3);
        let buckets = int_array(&batch.buckets);
        let node = format!("UPDATE pgrig_shard.node SET version = {version};\n");
        let leave = format!(
            "{node}UPDATE pgrig_shard.bucket SET state = 'gone', since = clock_timestamp()
             WHERE bucket = ANY ({buckets}) AND state IN ('owned', 'fenced')"
        );
        self.cluster.change_buckets(batch.from, "taking buckets from the source", &leave)?;
        self.did(number, "left the source");
        self.stop_applying(number, batch)?;
        self.skip_arrived(number, batch)?;
        let arrive = format!(
            "{node}UPDATE pgrig_shard.bucket SET state = 'owned', since = clock_timestamp()
             WHERE bucket = ANY ({buckets}) AND state = 'arriving'"
        );
        self.cluster.change_buckets(batch.to, "giving buckets to the target", &arrive)?;
        self.did(number, "arrived at the target");
        let others = self.cluster.nodes.iter().map(|node| node.number);
        for other in others.filter(|n| *n != batch.from && *n != batch.to).collect::<Vec<_>>() {
            self.cluster.change_buckets(other, "telling the new version", &node)?;
        }
        self.did(number, "told the other nodes");
        let mut owners = self.cluster.owners.clone();
        for bucket in &batch.buckets {
            owners[usize::try_from(*bucket).unwrap_or(0)] = batch.to;
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
        Ok(Step::Switched)
    }

    /// Ends replication, and drops the old rows of a switched batch when their grace is over.
    pub(super) fn drop_old_rows(&mut self, number: i32, batch: &Batch) -> Result<(), Error> {
        self.end_replication(number, batch)?;
        // A batch that was to be held has one, if it was interrupted before it was.
        self.close_way_back(number)?;
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
        for bucket in &batch.buckets {
            let drop = format!(
                "DROP SCHEMA IF EXISTS {} CASCADE;
                 DELETE FROM pgrig_shard.bucket WHERE bucket = {bucket} AND state = 'gone'",
                bucket_schema(*bucket)
            );
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
