//! Bringing servers into step that are not where the mapping believes them to be.

use super::{Event, Moves};
use crate::cluster::on_node;
use crate::error::Error;
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
                     since = clock_timestamp()
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

    /// Ends replication of batches that the proxy does not list: a proxy that was restored has lost them.
    /// Slots for the copy of single tables stay where the target could not reach the source.
    pub(super) fn end_stray_replication(&mut self) -> Result<(), Error> {
        let name = self.name(0)?;
        let prefix = name.strip_suffix('0').unwrap_or(&name).to_owned();
        let batches = self.cluster.unfinished()?;
        let known: Vec<String> =
            batches.iter().map(|(number, _)| format!("{prefix}{number}")).collect();
        let numbers: Vec<i32> = self.cluster.nodes.iter().map(|node| node.number).collect();
        for query in [SUBSCRIPTIONS, SLOTS, PUBLICATIONS] {
            for number in &numbers {
                let failed = |source| on_node("looking for replication", *number, source);
                let rows = self.cluster.data_node(*number)?.query(query, &[&prefix, &known]);
                for row in rows.map_err(failed)? {
                    let name: &str = row.get(0);
                    match query {
                        SUBSCRIPTIONS => self.drop_subscription(*number, name)?,
                        SLOTS => self.drop_slot(*number, name)?,
                        _ => self.drop_publication(*number, name)?,
                    }
                    self.mended(format!("{name} of no batch is dropped on node {number}"));
                }
            }
        }
        numbers.iter().try_for_each(|number| self.drop_table_slots(*number))
    }

    /// Drops slots by which single tables were copied, and whose subscription is gone.
    pub(super) fn drop_table_slots(&mut self, number: i32) -> Result<(), Error> {
        let failed = |source| on_node("looking for replication slots", number, source);
        let slots = self.cluster.data_node(number)?.query(TABLE_SLOTS, &[]).map_err(failed)?;
        for row in slots {
            let (slot, subscription, system): (&str, i64, &str) =
                (row.get(0), row.get(1), row.get(2));
            let (mut is_of_a_node, mut is_used) = (false, false);
            for other in self.cluster.nodes.iter().map(|node| node.number).collect::<Vec<_>>() {
                let failed = |source| on_node("looking for subscriptions", other, source);
                let client = self.cluster.data_node(other)?;
                let row =
                    client.query_one(SUBSCRIBES, &[&system, &subscription]).map_err(failed)?;
                is_of_a_node |= row.get::<_, bool>(0);
                is_used |= row.get::<_, bool>(1);
            }
            if is_of_a_node && !is_used {
                self.drop_slot(number, slot)?;
                self.mended(format!("slot {slot} of no subscription is dropped on node {number}"));
            }
        }
        Ok(())
    }
}

/// A server that is restored again and again is not waited for.
const REPAIRS_MAX: u32 = 4;

const SUBSCRIPTIONS: &str = "
    SELECT subname::text FROM pg_subscription JOIN pg_database d ON d.oid = subdbid
    WHERE datname = current_database() AND subname ~ ('^' || $1 || '[0-9]+$')
      AND NOT subname::text = ANY ($2::text[])";

const SLOTS: &str = "
    SELECT slot_name::text FROM pg_replication_slots
    WHERE database = current_database() AND slot_name ~ ('^' || $1 || '[0-9]+$')
      AND NOT slot_name::text = ANY ($2::text[])";

const PUBLICATIONS: &str = "
    SELECT pubname::text FROM pg_publication
    WHERE pubname ~ ('^' || $1 || '[0-9]+$') AND NOT pubname::text = ANY ($2::text[])";

/// PostgreSQL names them by the subscription, the table and the subscriber's system.
const TABLE_SLOTS: &str = "
    SELECT slot_name::text, split_part(slot_name::text, '_', 2)::bigint,
           split_part(slot_name::text, '_', 5)
    FROM pg_replication_slots
    WHERE database = current_database() AND slot_name ~ '^pg_[0-9]+_sync_[0-9]+_[0-9]+$'";

const SUBSCRIBES: &str = "
    SELECT system_identifier::text = $1,
           system_identifier::text = $1
           AND EXISTS (SELECT FROM pg_subscription WHERE oid::bigint = $2)
    FROM pg_control_system()";
