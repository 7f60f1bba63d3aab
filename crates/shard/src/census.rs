//! Reading what the proxy and every node say about the buckets.

use std::collections::BTreeMap;

use postgres::Row;
use server::Limits;

use crate::cluster::{Cluster, on_node, on_proxy};
use crate::error::Error;
use crate::plan::Batch;
use crate::state::{
    BatchState, BatchStep, BucketState, ClusterState, NodeState, RecoveryDecision, Reply,
};

impl Cluster {
    /// The states of the proxy and of all nodes. Where a node has seen a newer tool than this one, the
    /// proxy has lost some of its numbers, and this tool takes a greater one: it still holds the lock.
    ///
    /// # Errors
    /// The proxy's; a node's, unless it does not answer. [`Error::Refused`] for two servers that are the
    /// same node of the cluster, and for a batch at a step of another version of the program.
    pub(crate) fn census(&mut self) -> Result<ClusterState, Error> {
        let census = self.census_to_show()?;
        match census.same_number() {
            None => Ok(census),
            Some(what) => Err(Error::Refused {
                what,
                hint: "correct the column conninfo of pgrig_shard.node on the proxy; if the proxy was restored \
                       to a moment before one of them got that number, restore it to a later one"
                    .into(),
            }),
        }
    }

    /// The same for those who only show it: two servers that are the same node are a part of it.
    ///
    /// # Errors
    /// As of [`Cluster::census`], but for these.
    pub(crate) fn census_to_show(&mut self) -> Result<ClusterState, Error> {
        let questions = Limits::of_questions().answer;
        let least = self.answer.into_iter().chain(questions).min();
        let before = self.limit_answers(least);
        let census = self.read_all();
        self.limit_answers(before);
        census
    }

    /// Refuses to go on with servers that contradict each other, or that a move has left so that it has to
    /// be completed first.
    ///
    /// # Errors
    /// [`Error::Undecided`], [`Error::OutOfStep`]; a server's.
    pub fn check_in_step(&mut self) -> Result<(), Error> {
        let census = self.census()?;
        match census.decide() {
            RecoveryDecision::InStep => Ok(()),
            RecoveryDecision::Refuse { buckets } => {
                Err(Error::Undecided { table: census.table(&buckets) })
            }
            RecoveryDecision::Wait { node } => self.data_node(node).map(drop),
            RecoveryDecision::Repair(_) => {
                let out = census.out_of_step();
                Err(Error::OutOfStep { table: census.table(&out), version: census.version })
            }
        }
    }

    fn read_all(&mut self) -> Result<ClusterState, Error> {
        let failed = |source| on_proxy("reading the mapping", source);
        let version = "SELECT version FROM pgrig_shard.cluster";
        let version: i64 = self.proxy.query_one(version, &[]).map_err(failed)?.get(0);
        let owners = "SELECT node, version FROM pgrig_shard.bucket ORDER BY bucket";
        let rows = self.proxy.query(owners, &[]).map_err(failed)?;
        let owners: Vec<(i32, i64)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        let rows = self.proxy.query(BATCHES, &[]).map_err(failed)?;
        let batches = rows.iter().map(batch_state).collect::<Result<Vec<_>, _>>()?;
        let mut nodes = BTreeMap::new();
        for number in self.nodes.iter().map(|node| node.number).collect::<Vec<_>>() {
            let reply = match self.ask(number, &owners) {
                Err(error) if error.is_lost_connection() => {
                    self.disconnect_from(number);
                    Reply::Silent
                }
                reply => reply?,
            };
            nodes.insert(number, reply);
        }
        Ok(ClusterState { version, owners, batches, nodes })
    }

    fn ask(&mut self, number: i32, owners: &[(i32, i64)]) -> Result<Reply, Error> {
        let failed = |source| on_node("asking for its buckets", number, source);
        let (id, tool) = (self.id.clone(), self.tool);
        let client = self.data_node(number)?;
        if !client.query_one(THERE, &[]).map_err(failed)?.get::<_, bool>(0) {
            return Ok(Reply::Stranger);
        }
        let node = "SELECT number, version, tool FROM pgrig_shard.node WHERE cluster = $1";
        let Some(row) = client.query_opt(node, &[&id]).map_err(failed)? else {
            return Ok(Reply::Stranger);
        };
        let (says, version, its_tool): (i32, i64, i64) = (row.get(0), row.get(1), row.get(2));
        if tool > 0 {
            self.upgrade_node(number, owners)?;
        }
        let (mut buckets, mut targets) = (BTreeMap::new(), BTreeMap::new());
        let client = self.data_node(number)?;
        for row in client.query(STATES, &[]).map_err(failed)? {
            let (bucket, word): (i32, &str) = (row.get(0), row.get(1));
            let state = BucketState::of(word).ok_or_else(|| Error::Refused {
                what: format!("bucket {bucket} of node {number} is in the state {word:?}"),
                hint: "use the version of pgrig that has made this cluster".into(),
            })?;
            // A node of an earlier version of the program does not say by which switch it came.
            let mapped = usize::try_from(bucket).ok().and_then(|at| owners.get(at));
            let by_mapping = mapped.filter(|(owner, _)| *owner == number).map(|(_, since)| *since);
            // Where neither says it, the bucket came before every switch that is known.
            let since = row.get::<_, Option<i64>>(2).or(by_mapping).unwrap_or(0);
            buckets.insert(bucket, (state, since));
            let target = row.get::<_, Option<i32>>(3).filter(|_| state == BucketState::Gone);
            targets.extend(target.map(|target| (bucket, target)));
        }
        if tool > 0 && its_tool > tool {
            self.take_number(its_tool)?;
        }
        Ok(Reply::Member(NodeState { says, version, buckets, targets }))
    }

    /// Takes the next tool's number: greater than the proxy's and than this one.
    pub(crate) fn take_number(&mut self, seen: i64) -> Result<(), Error> {
        let take = "UPDATE pgrig_shard.cluster SET tool = greatest(tool, $1) + 1 RETURNING tool";
        let row = self.proxy.query_one(take, &[&seen]);
        self.tool = row.map_err(|source| on_proxy("taking the cluster", source))?.get(0);
        Ok(())
    }
}

fn batch_state(row: &Row) -> Result<BatchState, Error> {
    let (number, word): (i32, &str) = (row.get(0), row.get(4));
    let step = BatchStep::of(word).ok_or_else(|| Error::Refused {
        what: format!("batch {number} is at the step {word:?}"),
        hint: "end it by the version of pgrig that has begun it: `pgrig-shard confirm` or \
               `pgrig-shard rollback`"
            .into(),
    })?;
    let batch = Batch { from: row.get(1), to: row.get(2), buckets: row.get(3) };
    Ok(BatchState { number, batch, step, version: row.get(5) })
}

const BATCHES: &str = "
    SELECT number, source, target, buckets, step, version FROM pgrig_shard.batch
    WHERE done IS NULL ORDER BY number";

const THERE: &str = "SELECT to_regclass('pgrig_shard.node') IS NOT NULL";

const STATES: &str = "
    SELECT bucket, state, (to_jsonb(b) ->> 'version')::bigint, (to_jsonb(b) ->> 'target')::int
    FROM pgrig_shard.bucket b";
