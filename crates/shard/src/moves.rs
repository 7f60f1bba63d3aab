//! Moving buckets: batch after batch, each in steps that can be repeated.
//!
//! | step | what has happened when it is recorded |
//! |---|---|
//! | planned | nothing, or a part of what follows |
//! | copying | the target has the schemas; publication, slot and subscription exist |
//! | fencing | the source may refuse writes to the buckets |
//! | switching | source and target were equal while nothing wrote; buckets leave the source, then they come to the target |
//! | switched | the target serves them, every node and the proxy have the new mapping |
//! | done | the old rows are gone |
//! | abandoned | the buckets are on the source as before, and nothing of them on the target |
//!
//! Every step begins with a look at all servers ([`crate::state`]). A batch in the middle of its switch is
//! completed if the target serves it; it returns to the source if the target never did. At no moment do two nodes accept a write to the
//! same bucket: the source refuses before the target accepts.

mod batch;
mod replication;

use std::time::{Duration, Instant};

use server::Client;

use crate::cluster::{Cluster, LOCK_PATIENCE, on_node, on_proxy};
use crate::error::Error;
use crate::logical::{DROP_SLOT, END_WALSENDER, SLOT, drop_subscription};
use crate::plan::{Batch, plan};
use crate::remnant::{RemnantKind, RemnantPlace, ReplicationRemnant, remnants};
use crate::removal::drop_bucket;
use crate::routines;
use crate::state::{BatchStep, ClusterState, RecoveryDecision, Repair};
use crate::text::int_array;

/// Options for moving buckets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Buckets that are fenced together, at most.
    pub batch_max: usize,
    /// Time for which a source keeps rows that have moved away, for reads that began before.
    pub grace: Duration,
    /// Largest lag of the copy, in bytes of WAL, at which the fence goes up.
    pub lag_bytes_max: i64,
    /// Longest time for which writes are refused before the fence is lifted again.
    pub fence_max: Duration,
    /// Longest wait for a server that does not answer.
    pub patience: Duration,
    /// Bytes that must stay free on a node's disk.
    pub keep_free_bytes: i64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            batch_max: 8,
            grace: Duration::from_secs(10),
            // About what a server that works hard writes between two flushes.
            lag_bytes_max: 4 << 20,
            fence_max: Duration::from_secs(10),
            patience: Duration::from_secs(60),
            keep_free_bytes: 256 << 20,
        }
    }
}

/// Change of the nodes for which a plan is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeChange {
    /// The nodes that there are.
    None,
    /// One more.
    Add,
    /// All but this one.
    Remove(i32),
}

/// Event of a move that is reported while it runs.
#[derive(Debug)]
pub enum Event<'a> {
    /// A batch begins, or goes on.
    Batch {
        /// Its number in the table of batches.
        number: i32,
        /// The batch.
        batch: &'a Batch,
    },
    /// A part of a step is done.
    Did {
        /// The batch.
        number: i32,
        /// The part that is done, as in "fenced the source".
        what: &'static str,
    },
    /// A batch is served by its target.
    Switched {
        /// The batch.
        number: i32,
        /// Rows that moved.
        rows: i64,
        /// Bytes that they take on the target, indexes included.
        bytes: i64,
        /// Time for which writes were refused, in milliseconds.
        fence_ms: f64,
    },
    /// Something has lasted for a while.
    Lasting {
        /// The batch.
        number: i32,
        /// The event that is awaited, and its progress.
        what: String,
    },
    /// A server was not where the mapping believed it to be, and is brought into step.
    Mended {
        /// What was changed.
        what: String,
    },
    /// A copy cannot be continued; it begins anew.
    Anew {
        /// The batch.
        number: i32,
        /// The reason.
        why: &'a str,
    },
    /// A batch was given up: its buckets are where they were.
    Abandoned {
        /// Its number.
        number: i32,
        /// The batch that was to move.
        batch: &'a Batch,
    },
    /// A batch cannot be given up any more: its target may serve it already.
    Kept {
        /// Its number.
        number: i32,
    },
    /// A server does not answer; it is waited for.
    Waiting {
        /// The reason.
        why: &'a Error,
    },
    /// A node has left the cluster.
    Left {
        /// Its number.
        number: i32,
    },
}

/// Moves whatever has to move.
pub struct Moves<'a> {
    cluster: &'a mut Cluster,
    options: Options,
    tell: &'a mut dyn FnMut(&Event<'_>),
    is_stopped: &'a dyn Fn() -> bool,
    /// Moment at which a long wait last had an answer.
    answered: Instant,
}

impl Cluster {
    /// The batches that [`Moves::run`] would move after a change: those that were begun before, and
    /// new ones after them. Nothing is changed.
    pub fn planned(
        &mut self,
        options: &Options,
        change: NodeChange,
    ) -> Result<(Vec<Batch>, Vec<Batch>), Error> {
        let begun: Vec<Batch> = self.unfinished()?.into_iter().map(|(_, batch)| batch).collect();
        let mut owners = self.owners.clone();
        for batch in &begun {
            for bucket in &batch.buckets {
                if let Some(owner) = usize::try_from(*bucket).ok().and_then(|b| owners.get_mut(b)) {
                    *owner = batch.to;
                }
            }
        }
        let mut nodes = self.staying();
        match change {
            NodeChange::None => {}
            NodeChange::Add => nodes.push(self.free_number()),
            NodeChange::Remove(number) => nodes.retain(|node| *node != number),
        }
        Ok((begun, plan(&owners, &nodes, options.batch_max)))
    }
}

impl<'a> Moves<'a> {
    /// Moves of a cluster. `tell` hears of them, `is_stopped` is asked whether to stop early.
    pub fn new(
        cluster: &'a mut Cluster,
        options: Options,
        tell: &'a mut dyn FnMut(&Event<'_>),
        is_stopped: &'a dyn Fn() -> bool,
    ) -> Self {
        Self { cluster, options, tell, is_stopped, answered: Instant::now() }
    }

    /// Completes what was begun, then moves as few buckets as it takes until every node holds its
    /// share, then lets nodes that are leaving go.
    ///
    /// # Errors
    /// Whatever stops it. Running it again goes on from there.
    pub fn run(&mut self) -> Result<(), Error> {
        self.patiently(|me| me.bring_into_step().map(drop))?;
        self.patiently(Self::end_stray_replication)?;
        for (number, batch) in self.cluster.unfinished()? {
            self.complete(number, &batch)?;
        }
        self.tidy()?;
        self.patiently(|me| {
            let options = me.options.clone();
            me.cluster.check_movable(&options, NodeChange::None)
        })?;
        let new = plan(&self.cluster.owners, &self.cluster.staying(), self.options.batch_max);
        let mut numbered = Vec::new();
        for batch in new {
            numbered.push((self.record(&batch)?, batch));
        }
        for (number, batch) in numbered {
            self.complete(number, &batch)?;
        }
        self.tidy()?;
        self.let_go()?;
        // A server may have been restored meanwhile.
        self.patiently(Self::end_stray_replication)
    }

    /// Gives up every batch that was begun and that its target does not serve yet: lifts the fence,
    /// ends replication, removes the copy. Nodes that were to be emptied by these batches stay.
    /// Nodes that hold nothing any more leave, even if they do not answer.
    ///
    /// # Errors
    /// Whatever stops it. Running it again goes on from there.
    pub fn abandon(&mut self) -> Result<(), Error> {
        self.patiently(|me| me.bring_into_step().map(drop))?;
        for (number, batch) in self.cluster.unfinished()? {
            if self.patiently(|me| me.give_up(number, &batch))? {
                if self.cluster.node(batch.from)?.is_leaving {
                    self.cluster.set_leaving(batch.from, false)?;
                }
                (self.tell)(&Event::Abandoned { number, batch: &batch });
            } else {
                (self.tell)(&Event::Kept { number });
            }
        }
        for number in self.patiently(|me| me.cluster.departing())? {
            match self.patiently(|me| me.cluster.depart(number)) {
                // Whatever is left there stays there.
                Err(error) if error.is_lost_connection() => self.cluster.strike_off(number)?,
                other => other?,
            }
            (self.tell)(&Event::Left { number });
        }
        self.patiently(Self::end_stray_replication)
    }

    /// Takes a batch through its steps until its target serves it.
    fn complete(&mut self, number: i32, batch: &Batch) -> Result<(), Error> {
        (self.tell)(&Event::Batch { number, batch });
        let mut begun_anew = 0;
        loop {
            match self.patiently(|me| me.advance(number, batch))? {
                Next::Step(BatchStep::Switched) => break,
                Next::Step(_) => {}
                Next::Over => return Ok(()),
                Next::Anew(why) if begun_anew == ANEW_MAX => {
                    let (from, to) = (batch.from, batch.to);
                    return Err(Error::GivenUp { from, to, times: begun_anew, why });
                }
                Next::Anew(why) => {
                    begun_anew += 1;
                    (self.tell)(&Event::Anew { number, why: &why });
                    self.patiently(|me| me.begin_anew(number, batch))?;
                }
            }
        }
        self.patiently(|me| me.end_replication(number, batch))
    }

    /// Removes what batches that were switched have left, each when its grace is over.
    fn tidy(&mut self) -> Result<(), Error> {
        let census = self.patiently(Self::bring_into_step)?;
        for one in census.batches.iter().filter(|one| one.step == BatchStep::Switched) {
            self.patiently(|me| me.drop_old_rows(one.number, &one.batch))?;
        }
        Ok(())
    }

    /// Lets nodes go that hold nothing any more.
    fn let_go(&mut self) -> Result<(), Error> {
        for number in self.patiently(|me| me.cluster.departing())? {
            self.patiently(|me| me.cluster.depart(number))?;
            (self.tell)(&Event::Left { number });
        }
        Ok(())
    }

    /// Repeats something as long as servers do not answer and patience lasts. It lasts from the first
    /// failure; from the next one, if a long wait had answers in between.
    fn patiently<T>(
        &mut self,
        mut act: impl FnMut(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut failing: Option<Instant> = None;
        loop {
            let error = match act(self) {
                Err(error) if error.is_lock() || error.is_lost_connection() => error,
                other => return other,
            };
            let limit = if error.is_lock() { LOCK_PATIENCE } else { self.options.patience };
            let since = failing.filter(|since| *since > self.answered);
            let since = *failing.insert(since.unwrap_or_else(Instant::now));
            if since.elapsed() >= limit {
                return Err(error);
            }
            (self.tell)(&Event::Waiting { why: &error });
            self.pause(RETRY)?;
            if error.is_lost_connection() {
                // A failure here is found again by the next attempt.
                let _ = self.cluster.reconnect();
            }
        }
    }

    /// Does something in which every statement has an answer within a time.
    fn within<T>(
        &mut self,
        answer: Option<Duration>,
        act: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let before = self.cluster.limit_answers(answer);
        let done = act(self);
        self.cluster.limit_answers(before);
        done
    }

    /// Polls while writes are refused: for --fence-max, answers included.
    fn poll_fenced<T>(
        &mut self,
        mut look: impl FnMut(&mut Self) -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        let limit = self.options.fence_max;
        let deadline = Instant::now() + limit;
        self.poll(Some(limit), |me| me.within(Some(rest(deadline)), &mut look))
    }

    /// Polls until something is given, the time is up or it is stopped.
    fn poll<T>(
        &mut self,
        limit: Option<Duration>,
        mut look: impl FnMut(&mut Self) -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        let deadline = limit.map(|limit| Instant::now() + limit);
        loop {
            let found = look(self)?;
            if limit.is_none() {
                self.answered = Instant::now();
            }
            if found.is_some() {
                return Ok(found);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(None);
            }
            self.pause(POLL)?;
        }
    }

    fn pause(&self, length: Duration) -> Result<(), Error> {
        if (self.is_stopped)() {
            return Err(Error::Stopped);
        }
        std::thread::sleep(length);
        Ok(())
    }

    /// Tells what is waited for, now and then.
    fn last(&mut self, number: i32, said: &mut Instant, what: impl FnOnce() -> String) {
        if said.elapsed() >= SAY_EVERY {
            *said = Instant::now();
            (self.tell)(&Event::Lasting { number, what: what() });
        }
    }

    fn did(&mut self, number: i32, what: &'static str) {
        (self.tell)(&Event::Did { number, what });
    }

    /// Writes a new batch into the table.
    fn record(&mut self, batch: &Batch) -> Result<i32, Error> {
        let insert = format!(
            "INSERT INTO pgrig_shard.batch (source, target, buckets)
             VALUES ({}, {}, {}) RETURNING number",
            batch.from,
            batch.to,
            int_array(&batch.buckets)
        );
        let row = self.cluster.proxy.query_one(&insert, &[]);
        Ok(row.map_err(|source| on_proxy("recording a batch", source))?.get(0))
    }
}

impl Moves<'_> {
    /// Looks at all servers, and brings them into step: forward where the target serves, back where the
    /// source does. Every step begins with this.
    ///
    /// # Errors
    /// [`Error::Undecided`] where neither is certain; a node's that has to answer first.
    fn bring_into_step(&mut self) -> Result<ClusterState, Error> {
        let mut census = self.cluster.census()?;
        // A repair is looked at again: it may have been a server's that was restored meanwhile.
        for _ in 0..REPAIRS_MAX {
            match census.decide() {
                RecoveryDecision::InStep => return Ok(census),
                RecoveryDecision::Refuse { buckets } => {
                    return Err(Error::Undecided { table: census.table(&buckets) });
                }
                RecoveryDecision::Wait { node } => drop(self.cluster.data_node(node)?),
                RecoveryDecision::Repair(repair) => self.repair(&census, &repair)?,
            }
            census = self.cluster.census()?;
        }
        let out = census.out_of_step();
        Err(Error::OutOfStep { table: census.table(&out), version: census.version })
    }

    /// The nodes, then the proxy, then the copies: whoever is cut short leaves what is repaired again.
    fn repair(&mut self, census: &ClusterState, repair: &Repair) -> Result<(), Error> {
        for number in &repair.strangers {
            self.cluster.deploy_node(*number, NO_VERSION, &[])?;
            self.mended(format!("node {number} is made anew, without buckets"));
        }
        if !repair.strangers.is_empty() {
            return Ok(());
        }
        for number in &repair.renumbered {
            let sql = format!("UPDATE pgrig_shard.node SET number = {number}");
            self.cluster.change_node(*number, "giving a node its number", &sql)?;
            self.mended(format!("node {number} knows its number"));
        }
        if !repair.renumbered.is_empty() {
            return Ok(());
        }
        let version = repair.version;
        let fenced: Vec<i32> = repair.fenced.iter().copied().collect();
        for number in &repair.nodes {
            let owned: Vec<i32> = (0..)
                .zip(&repair.owners)
                .filter(|(_, (owner, _))| owner == number)
                .map(|(bucket, _)| bucket)
                .collect();
            let (own, fenced) = (int_array(&owned), int_array(&fenced));
            let sql = format!(
                "UPDATE pgrig_shard.node SET version = {version};
                 UPDATE pgrig_shard.bucket SET state = 'owned', version = {version},
                     target = NULL, since = clock_timestamp()
                     WHERE state = 'gone' AND bucket = ANY ({own});
                 UPDATE pgrig_shard.bucket SET state = 'owned', since = clock_timestamp()
                     WHERE state = 'fenced' AND bucket = ANY ({own})
                       AND NOT bucket = ANY ({fenced});
                 UPDATE pgrig_shard.bucket SET state = 'gone', since = clock_timestamp()
                     WHERE state IN ('owned', 'fenced') AND NOT bucket = ANY ({own})"
            );
            self.cluster.change_buckets(*number, "bringing a node into step", &sql, &owned)?;
            self.mended(format!("node {number} has version {version} of the mapping"));
        }
        self.correct_proxy(census, repair)?;
        for (number, buckets) in &repair.copies {
            for bucket in buckets {
                let drop = drop_bucket(*bucket);
                self.cluster.change_node(*number, "dropping an old copy", &drop)?;
                self.mended(format!("the old copy of bucket {bucket} on node {number} is dropped"));
            }
        }
        Ok(())
    }

    fn correct_proxy(&mut self, census: &ClusterState, repair: &Repair) -> Result<(), Error> {
        let version = repair.version;
        let owners: Vec<i32> = repair.owners.iter().map(|(owner, _)| *owner).collect();
        if repair.steps.is_empty() && version == census.version {
            return Ok(());
        }
        let mut sql = format!("UPDATE pgrig_shard.cluster SET version = {version};\n");
        for ((bucket, new), old) in (0..).zip(&repair.owners).zip(&census.owners) {
            if new != old {
                let (node, since) = new;
                sql.push_str(&format!(
                    "UPDATE pgrig_shard.bucket SET node = {node}, version = {since}
                         WHERE bucket = {bucket};\n"
                ));
                self.mended(format!("bucket {bucket} is on node {node}"));
            }
        }
        sql.push_str(&routines::mapping(&owners, version));
        for (number, step) in &repair.steps {
            let (word, also) = match step {
                Some(BatchStep::Switched) => ("switched", ", switched = clock_timestamp()"),
                Some(step) => (step.word(), ""),
                None => ("abandoned", ", done = clock_timestamp()"),
            };
            sql.push_str(&format!(
                "UPDATE pgrig_shard.batch SET step = '{word}'{also} WHERE number = {number};\n"
            ));
            self.mended(format!("batch {number} is {word}"));
        }
        self.cluster.change_proxy("bringing the proxy into step", &sql)?;
        self.cluster.reload()
    }

    fn mended(&mut self, what: String) {
        (self.tell)(&Event::Mended { what });
    }

    /// Drops what belongs to no move under way: that of moves which the proxy has lost, and what came back
    /// with a server that was restored, even if it has left the cluster.
    fn end_stray_replication(&mut self) -> Result<(), Error> {
        // A subscription that is gone leaves the slots by which it has copied tables.
        for _ in 0..2 {
            let batches = self.cluster.unfinished()?;
            let mut servers = Vec::new();
            for number in self.numbers() {
                servers.push(self.cluster.replication(number)?);
            }
            let mut former = self.cluster.former_nodes()?;
            servers.extend(former.iter().map(|(_, replication)| replication.clone()));
            let found = remnants(&servers, &batches, &self.cluster.prefix(), true);
            if found.is_empty() {
                break;
            }
            for remnant in found {
                match &remnant.place {
                    RemnantPlace::Node(number) => self.drop_remnant(*number, &remnant)?,
                    place => {
                        let mut of_place = former.iter_mut().filter(|(_, one)| one.place == *place);
                        if let Some((client, _)) = of_place.next() {
                            self.drop_on_former(client, &remnant)?;
                        }
                    }
                }
                self.mended(format!("{remnant} of no batch is dropped"));
            }
        }
        Ok(())
    }

    /// Drops slots of a node by which single tables were copied, and whose subscription is gone.
    fn drop_table_slots(&mut self, number: i32) -> Result<(), Error> {
        let batches = self.cluster.unfinished()?;
        let mut servers = Vec::new();
        for number in self.numbers() {
            servers.push(self.cluster.replication(number)?);
        }
        let place = RemnantPlace::Node(number);
        for remnant in remnants(&servers, &batches, &self.cluster.prefix(), true) {
            if remnant.kind == RemnantKind::TableSlot && remnant.place == place {
                self.drop_remnant(number, &remnant)?;
                self.mended(format!("{remnant} of no subscription is dropped"));
            }
        }
        Ok(())
    }

    fn numbers(&self) -> Vec<i32> {
        self.cluster.nodes.iter().map(|node| node.number).collect()
    }

    fn drop_remnant(&mut self, number: i32, remnant: &ReplicationRemnant) -> Result<(), Error> {
        match remnant.kind {
            RemnantKind::Subscription => self.drop_subscription(number, &remnant.name),
            RemnantKind::Slot => self.drop_slot(number, &remnant.name),
            // Somebody may have begun to use it: then it is no remnant.
            RemnantKind::TableSlot => {
                let failed = |source| on_node("dropping the slot", number, source);
                let dropped = self.cluster.data_node(number)?.execute(DROP_SLOT, &[&remnant.name]);
                dropped.map(drop).map_err(failed)
            }
            RemnantKind::Publication => self.drop_publication(number, &remnant.name),
        }
    }

    /// A server that has left has none of the cluster's functions, so no tool is refused there.
    fn drop_on_former(
        &self,
        client: &mut Client,
        remnant: &ReplicationRemnant,
    ) -> Result<(), Error> {
        let name = &remnant.name;
        let dropped = match remnant.kind {
            RemnantKind::Subscription => client.batch_execute(&drop_subscription(name)),
            RemnantKind::Slot => drop_slot_at_once(client, name),
            RemnantKind::TableSlot => client.execute(DROP_SLOT, &[name]).map(drop),
            RemnantKind::Publication => {
                client.batch_execute(&format!("DROP PUBLICATION IF EXISTS {name}"))
            }
        };
        dropped.map_err(|source| Error::Refused {
            what: format!(
                "{remnant} of no batch is not dropped: {}",
                server::message::chain(&source)
            ),
            hint:
                "drop it there; if that server is no concern of this cluster any more, delete its \
                   line from the table pgrig_shard.former_node of the proxy"
                    .into(),
        })
    }
}

/// Time that is left for an answer.
fn rest(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now()).max(ANSWER_LEAST)
}

/// The continuation after a step.
enum Next {
    /// The next one.
    Step(BatchStep),
    /// The first one again, for this reason.
    Anew(String),
    /// None: the batch is over, because something else has overtaken it.
    Over,
}

/// More in one run would go on for ever.
const ANEW_MAX: u32 = 3;

/// Time between two reports of a wait.
const SAY_EVERY: Duration = Duration::from_secs(5);

/// A healthy server answers within that, however little time is left.
const ANSWER_LEAST: Duration = Duration::from_secs(1);

/// Short against the fence, long against what a look costs.
const POLL: Duration = Duration::from_millis(5);

/// A server that was restarted needs a moment.
const RETRY: Duration = Duration::from_millis(200);

/// Ends the walsender that uses a slot, if there is one, and drops the slot.
fn drop_slot_at_once(client: &mut Client, name: &str) -> Result<(), postgres::Error> {
    for _ in 0..WALSENDERS_MAX {
        client.execute(END_WALSENDER, &[&name])?;
        if client.execute(DROP_SLOT, &[&name])? > 0 || client.query_opt(SLOT, &[&name])?.is_none() {
            return Ok(());
        }
        std::thread::sleep(RETRY);
    }
    // In use all the same: the server says so.
    client.execute("SELECT pg_drop_replication_slot($1)", &[&name]).map(drop)
}

/// Below that of every mapping: it certifies nothing.
const NO_VERSION: i64 = 0;

/// A subscriber that nobody knows connects again and again.
const WALSENDERS_MAX: u32 = 25;

/// A server that is restored again and again is not waited for.
const REPAIRS_MAX: u32 = 4;
