//! Bringing servers into step that are not where the mapping believes them to be.

use server::Client;

use super::{Event, Moves, RETRY};
use crate::cluster::on_node;
use crate::error::Error;
use crate::logical::{DROP_SLOT, END_WALSENDER, SLOT, drop_subscription};
use crate::remnant::{RemnantKind, RemnantPlace, ReplicationRemnant, remnants};
use crate::removal::drop_bucket;
use crate::routines;
use crate::state::{BatchStep, ClusterState, RecoveryDecision, Repair};
use crate::text::int_array;

impl Moves<'_> {
    /// Looks at all servers, and brings them into step: forward where the target serves, back where the
    /// source does. Every step begins with this.
    ///
    /// # Errors
    /// [`Error::Undecided`] where neither is certain; a node's that has to answer first.
    pub(super) fn bring_into_step(&mut self) -> Result<ClusterState, Error> {
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
    pub(super) fn end_stray_replication(&mut self) -> Result<(), Error> {
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
    pub(super) fn drop_table_slots(&mut self, number: i32) -> Result<(), Error> {
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
