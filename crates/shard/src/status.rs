//! State of a cluster.

use std::time::Duration;

use server::Limits;

use crate::cluster::{Cluster, on_node, on_proxy};
use crate::error::Error;
use crate::remnant::{ServerReplication, remnants};
use crate::state::{BatchStep, ClusterState, RecoveryDecision};

/// A cluster at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The mapping's version on the proxy.
    pub version: i64,
    /// Number of buckets.
    pub buckets: i32,
    /// Its nodes, by number.
    pub nodes: Vec<NodeStatus>,
    /// Batches under way: number, source, target, buckets, step.
    pub batches: Vec<BatchStatus>,
    /// True if a tool is at work.
    pub is_busy: bool,
    /// Words of all servers about buckets that are not where the mapping or a step of a move has them.
    pub out_of_step: Vec<String>,
    /// Subscriptions, slots and publications of this cluster that belong to no move under way, on nodes and on
    /// servers that have left it. They are not looked for while a tool is at work.
    pub remnants: Vec<String>,
    /// True if it is not certain which server is right about them.
    pub is_undecided: bool,
}

impl Status {
    /// The interrupted batches whose buckets refuse writes, or all calls, until a tool goes on with them.
    pub fn interrupted_without_service(&self) -> impl Iterator<Item = &BatchStatus> {
        let refuses = |batch: &&BatchStatus| {
            !self.is_busy
                && matches!(
                    BatchStep::of(&batch.step),
                    Some(BatchStep::Fencing | BatchStep::Switching)
                )
        };
        self.batches.iter().filter(refuses)
    }
}

/// A batch under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchStatus {
    /// Its number.
    pub number: i32,
    /// The node that it leaves.
    pub from: i32,
    /// The node that it goes to.
    pub to: i32,
    /// Number of buckets that it moves.
    pub buckets: usize,
    /// Its step.
    pub step: String,
}

/// A data node at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeStatus {
    /// Its number.
    pub number: i32,
    /// Its server and database, without user and password.
    pub place: String,
    /// True if its buckets shall go elsewhere.
    pub is_leaving: bool,
    /// Buckets that the proxy sends to it.
    pub mapped: usize,
    /// Its answer, or the reason why there is none.
    pub says: Result<NodeAnswer, String>,
}

/// Answer of a data node about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeAnswer {
    /// The mapping's version there.
    pub version: i64,
    /// Buckets that it reads and writes.
    pub owned: i64,
    /// Buckets that it only reads, because they are about to move.
    pub fenced: i64,
    /// Buckets that are being copied to it.
    pub arriving: i64,
    /// Buckets that have left, whose rows are still there.
    pub gone: i64,
    /// Disk space of its buckets in bytes.
    pub bytes: i64,
}

impl Status {
    /// Looks at a cluster. It changes nothing, and may be done while a tool is at work.
    ///
    /// # Errors
    /// [`Error::Connect`] for the proxy; [`Error::Refused`] where there is no cluster. A node that
    /// does not answer is a part of the status.
    pub fn of(proxy: &str) -> Result<Self, Error> {
        let mut cluster = Cluster::look(proxy)?;
        cluster.limit_answers(Limits::of_questions().answer);
        let failed = |source| on_proxy("reading what is under way", source);
        let rows = cluster.proxy.query(BATCHES, &[]).map_err(failed)?;
        let batch = |row: &postgres::Row| BatchStatus {
            number: row.get(0),
            from: row.get(1),
            to: row.get(2),
            buckets: usize::try_from(row.get::<_, i32>(3))
                .expect("an array has no negative length"),
            step: row.get(4),
        };
        let batches = rows.iter().map(batch).collect();
        let is_busy: bool = cluster.proxy.query_one(BUSY, &[]).map_err(failed)?.get(0);
        let mut census = cluster.census_to_show()?;
        // A tool that is at work changes one server after the other.
        for _ in 0..LOOKS_MAX {
            if !is_busy || !is_out_of_step(&census) {
                break;
            }
            std::thread::sleep(BETWEEN_LOOKS);
            census = cluster.census_to_show()?;
        }
        let (version, buckets) = (cluster.version, cluster.buckets);
        let mut nodes = Vec::new();
        for node in cluster.nodes.clone() {
            nodes.push(NodeStatus {
                number: node.number,
                place: place(&node.conninfo),
                is_leaving: node.is_leaving,
                mapped: cluster.owners.iter().filter(|owner| **owner == node.number).count(),
                says: answer(&mut cluster, node.number).map_err(|error| error.to_string()),
            });
        }
        let mut out_of_step = census.table(&census.out_of_step());
        out_of_step.extend(census.lagging().into_iter().map(|(node, its)| {
            format!("node {node} has version {its} of the mapping, the proxy {version}")
        }));
        out_of_step.extend(census.strangers().into_iter().map(|node| {
            format!("node {node} is in the list of the proxy, and its server holds nothing of the cluster")
        }));
        let same_number = census.same_number();
        match &same_number {
            Some(what) => out_of_step.push(what.clone()),
            None => out_of_step.extend(census.renumbered().map(|(node, says)| {
                format!(
                    "node {node} says that it is node {says}, as it was later than the proxy knows"
                )
            })),
        }
        let remnants = match is_busy {
            true => Vec::new(),
            false => remnants_of(&mut cluster)?,
        };
        let is_undecided =
            same_number.is_some() || matches!(census.decide(), RecoveryDecision::Refuse { .. });
        Ok(Self { version, buckets, nodes, batches, is_busy, out_of_step, remnants, is_undecided })
    }
}

/// The remnants of the servers that answer, in words.
fn remnants_of(cluster: &mut Cluster) -> Result<Vec<String>, Error> {
    let batches = cluster.unfinished()?;
    let numbers: Vec<i32> = cluster.nodes.iter().map(|node| node.number).collect();
    let mut servers: Vec<ServerReplication> =
        numbers.iter().filter_map(|number| cluster.replication(*number).ok()).collect();
    let have_all_answered = servers.len() == numbers.len();
    servers.extend(cluster.former_nodes()?.into_iter().map(|(_, replication)| replication));
    let found = remnants(&servers, &batches, &cluster.prefix(), have_all_answered);
    Ok(found.iter().map(ToString::to_string).collect())
}

fn is_out_of_step(census: &ClusterState) -> bool {
    !matches!(census.decide(), RecoveryDecision::InStep | RecoveryDecision::Wait { .. })
}

/// The server and the database that a connection string names.
pub(crate) fn place(conninfo: &str) -> String {
    match server::resolve_conninfo(conninfo) {
        Ok(resolved) => format!("{}/{}", resolved.place(), resolved.dbname),
        // A service file that is not here, for example: the text may contain a password.
        Err(_) => "unknown".to_owned(),
    }
}

fn answer(cluster: &mut Cluster, number: i32) -> Result<NodeAnswer, Error> {
    let row = cluster.data_node(number)?.query_one(ANSWER, &[]);
    let row = row.map_err(|source| on_node("asking for its buckets", number, source))?;
    Ok(NodeAnswer {
        version: row.get(0),
        owned: row.get(1),
        fenced: row.get(2),
        arriving: row.get(3),
        gone: row.get(4),
        bytes: row.get(5),
    })
}

/// Longer than a tool takes from the first server to the last.
const LOOKS_MAX: u32 = 5;

const BETWEEN_LOOKS: Duration = Duration::from_millis(300);

const BATCHES: &str = "
    SELECT number, source, target, cardinality(buckets), step FROM pgrig_shard.batch
    WHERE done IS NULL ORDER BY number";

const BUSY: &str = "
    SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_stat_activity a USING (pid)
                   WHERE l.locktype = 'advisory' AND l.granted
                     AND a.application_name = 'pgrig shard'
                     AND a.datname = current_database())";

const ANSWER: &str = "
    SELECT (SELECT version FROM pgrig_shard.node),
           count(*) FILTER (WHERE state = 'owned'), count(*) FILTER (WHERE state = 'fenced'),
           count(*) FILTER (WHERE state = 'arriving'), count(*) FILTER (WHERE state = 'gone'),
           (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE c.relkind = 'r' AND n.nspname ~ '^bucket_[0-9]+$')
    FROM pgrig_shard.bucket";
