//! The way back after a switch: a batch in the other direction, which replicates what clients write to
//! the target, until the move is confirmed or rolled back.
//!
//! Its slot on the target is made before the fence, because that waits for transactions, and skips
//! what the target has received from the source before the target's clients can write. Its
//! subscription on the source begins when that of the move itself has ended, so nothing goes in a
//! circle. A rollback is then a move whose rows are there already: fence, comparison, switch.

use super::replication::Rows;
use super::{Event, Moves, Step};
use crate::cluster::{batch, on_node, on_proxy};
use crate::error::Error;
use crate::plan::Batch;
use crate::text::int_array;

impl Moves<'_> {
    /// Ends the replication to the sources of all batches that are held, and drops their old rows.
    /// Batches that have not been switched stay as they are.
    ///
    /// # Errors
    /// Whatever stops it. Running it again goes on from there.
    pub fn confirm(&mut self) -> Result<(), Error> {
        for (number, _) in self.patiently(|me| me.batches_at("held"))? {
            self.patiently(|me| {
                me.close_way_back(number)?;
                me.set_step(number, "switched", "")
            })?;
            (self.tell)(&Event::Confirmed { number });
        }
        self.tidy()?;
        self.let_go()
    }

    /// Returns the buckets of all batches that are held to their sources, the newest batch first.
    /// Batches that have not been switched are given up. Nodes that were to be emptied stay.
    ///
    /// # Errors
    /// Whatever stops it. Running it again goes on from there.
    pub fn rollback(&mut self) -> Result<(), Error> {
        for (number, batch) in self.cluster.unfinished()? {
            if self.patiently(|me| me.is_way_back(number))? {
                continue;
            }
            match self.patiently(|me| me.give_up(number, &batch))? {
                true => (self.tell)(&Event::Abandoned { number, batch: &batch }),
                false => self.complete(number, &batch)?,
            }
        }
        for (number, batch) in self.patiently(|me| me.batches_at("held"))?.into_iter().rev() {
            self.patiently(|me| match me.cluster.node(batch.from)?.is_leaving {
                true => me.cluster.set_leaving(batch.from, false),
                false => Ok(()),
            })?;
            if !self.patiently(|me| me.turn_round(number))? {
                (self.tell)(&Event::Kept { number });
            }
        }
        for (number, batch) in self.cluster.unfinished()?.into_iter().rev() {
            if self.patiently(|me| me.is_way_back(number))? {
                self.complete(number, &batch)?;
            }
        }
        self.tidy()
    }

    /// Makes the way back of a batch that shall be held, without its subscription.
    pub(super) fn open_way_back(&mut self, number: i32, batch: &Batch) -> Result<(), Error> {
        let held = "SELECT is_held FROM pgrig_shard.batch WHERE number = $1";
        let row = self.cluster.proxy.query_one(held, &[&number]).map_err(reading)?;
        if !row.get::<_, bool>(0) {
            return Ok(());
        }
        let (back, reverse) = match self.way_back(number)? {
            Some(found) => found,
            None => {
                let insert = format!(
                    "INSERT INTO pgrig_shard.batch (source, target, buckets, step, reverts)
                     VALUES ({}, {}, {}, 'reverse', {number}) RETURNING number",
                    batch.to,
                    batch.from,
                    int_array(&batch.buckets)
                );
                let row = self.cluster.proxy.query_one(&insert, &[]);
                let row = row.map_err(|source| on_proxy("recording a batch", source))?;
                let buckets = batch.buckets.clone();
                (row.get(0), Batch { from: batch.to, to: batch.from, buckets })
            }
        };
        self.publish(back, &reverse)?;
        self.did(number, "opened the way back");
        Ok(())
    }

    /// Lets the way back skip everything that the target has received from the source. Once the target
    /// serves, nothing is skipped any more.
    pub(super) fn skip_arrived(&mut self, number: i32, batch: &Batch) -> Result<(), Error> {
        let Some((back, _)) = self.way_back(number)? else { return Ok(()) };
        let name = self.name(back)?;
        // It reads the WAL since the slot was made.
        self.within(None, |me| {
            let skipped = me.cluster.data_node(batch.to)?.execute(SKIP, &[&name, &batch.buckets]);
            skipped.map_err(|source| on_node("advancing a replication slot", batch.to, source))
        })?;
        self.did(number, "skipped what had arrived");
        Ok(())
    }

    /// Begins to keep the source of a switched batch up to date, if it has a way back.
    pub(super) fn hold(&mut self, number: i32) -> Result<(), Error> {
        let Some((back, reverse)) = self.way_back(number)? else { return Ok(()) };
        self.subscribe(back, &reverse, Rows::There)?;
        self.did(number, "followed the target");
        self.set_step(number, "held", "")?;
        (self.tell)(&Event::Held { number });
        Ok(())
    }

    /// Removes the way back of a batch, if it has one.
    pub(super) fn close_way_back(&mut self, number: i32) -> Result<(), Error> {
        let Some((back, reverse)) = self.way_back(number)? else { return Ok(()) };
        self.end_replication(back, &reverse)?;
        self.did(number, "closed the way back");
        self.set_step(back, "closed", ", done = clock_timestamp()")
    }

    /// First step of a batch that returns: its target has the rows, and they are up to date.
    pub(super) fn take_back(&mut self, number: i32, batch: &Batch) -> Result<Step, Error> {
        let arrive = format!(
            "UPDATE pgrig_shard.bucket SET state = 'arriving', since = clock_timestamp()
             WHERE bucket = ANY ({}) AND state = 'gone'",
            int_array(&batch.buckets)
        );
        self.cluster.change_node(batch.to, "taking buckets back", &arrive)?;
        self.did(number, "turned round");
        self.set_step(number, "copying", "")?;
        Ok(Step::Copying)
    }

    /// From here on the way back of a batch is a move like others, and the batch itself is over.
    /// False where the way back is closed, by a `confirm` that was interrupted.
    fn turn_round(&mut self, number: i32) -> Result<bool, Error> {
        let turned = self.cluster.proxy.execute(TURN_ROUND, &[&number]);
        let turned = turned.map_err(|source| on_proxy("rolling a batch back", source))?;
        Ok(turned > 0)
    }

    /// Batches that are at a step, oldest first.
    pub(super) fn batches_at(&mut self, step: &str) -> Result<Vec<(i32, Batch)>, Error> {
        let rows = self.cluster.proxy.query(AT, &[&step]).map_err(reading)?;
        Ok(rows.iter().map(batch).collect())
    }

    /// The batch that is another's way back, until it is taken or closed.
    fn way_back(&mut self, number: i32) -> Result<Option<(i32, Batch)>, Error> {
        let row = self.cluster.proxy.query_opt(WAY_BACK, &[&number]).map_err(reading)?;
        Ok(row.as_ref().map(batch))
    }

    fn is_way_back(&mut self, number: i32) -> Result<bool, Error> {
        let reverts = "SELECT reverts IS NOT NULL FROM pgrig_shard.batch WHERE number = $1";
        Ok(self.cluster.proxy.query_one(reverts, &[&number]).map_err(reading)?.get(0))
    }
}

fn reading(source: postgres::Error) -> Error {
    on_proxy("reading a batch", source)
}

const AT: &str = "
    SELECT number, source, target, buckets FROM pgrig_shard.batch
    WHERE step = $1 ORDER BY number";

const WAY_BACK: &str = "
    SELECT number, source, target, buckets FROM pgrig_shard.batch
    WHERE reverts = $1 AND step = 'reverse'";

const TURN_ROUND: &str = "
    WITH back AS (
        UPDATE pgrig_shard.batch SET step = 'returning'
        WHERE reverts = $1 AND step = 'reverse' RETURNING reverts)
    UPDATE pgrig_shard.batch SET step = 'undone', done = clock_timestamp()
    WHERE number IN (SELECT reverts FROM back)";

/// A slot that the server has given up is left as it is: a rollback then copies the rows.
const SKIP: &str = "
    SELECT pg_replication_slot_advance(slot_name, pg_current_wal_lsn())
    FROM pg_replication_slots
    WHERE slot_name = $1 AND wal_status <> 'lost' AND NOT active
      AND EXISTS (SELECT FROM pgrig_shard.bucket WHERE bucket = ANY ($2) AND state = 'arriving')";
