//! A cluster: the proxy's connection, what it knows, and connections to the data nodes.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::{Duration, Instant};

use server::{Client, Conninfo, Limits, LoadControl};

use crate::error::Error;
use crate::function::Function;
use crate::plan::Batch;
use crate::routines::{self, ServedBuckets};
use crate::servers::{DefinedDefinitions, WantedDefinitions};
use crate::state::RecoveryDecision;
use crate::upgrade::upgrade_proxy;

/// Addresses of a data node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeConfig {
    /// By tools and by other nodes: keywords and values, as libpq reads them.
    pub conninfo: String,
    /// By the proxy, where a pooler stands between.
    pub route: Option<String>,
}

impl NodeConfig {
    /// Address by which the proxy reaches it.
    pub(crate) fn route(&self) -> &str {
        self.route.as_ref().unwrap_or(&self.conninfo)
    }
}

/// A data node as the proxy knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    /// Its number, which is its partition's.
    pub number: i32,
    /// Address by which tools and other nodes reach it.
    pub conninfo: String,
    /// Address by which the proxy reaches it.
    pub route: String,
    /// True if its buckets shall go elsewhere.
    pub is_leaving: bool,
}

/// An open cluster. While it is open no other tool can change it.
pub struct Cluster {
    pub(crate) conninfo: String,
    pub(crate) proxy: Client,
    pub(crate) id: String,
    pub(crate) buckets: i32,
    pub(crate) version: i64,
    pub(crate) template: String,
    /// The name of the parameter that says where a call goes.
    pub(crate) key: String,
    /// This tool's number: larger than that of every tool before it.
    pub(crate) tool: i64,
    pub(crate) nodes: Vec<NodeRow>,
    pub(crate) owners: Vec<i32>,
    pub(crate) functions: Vec<Function>,
    connected: BTreeMap<i32, Client>,
    /// Longest time for an answer; none for statements that may take hours.
    pub(crate) answer: Option<Duration>,
    /// The user's signals.
    pub(crate) control: Option<LoadControl>,
}

impl Cluster {
    /// Takes the cluster of a proxy, alone. Nodes that do not answer are met later.
    ///
    /// # Errors
    /// [`Error::Connect`]; [`Error::Refused`] where there is no cluster, or one whose mapping contradicts
    /// itself; [`Error::Undecided`] where servers contradict it and neither is certain to be right;
    /// [`Error::Busy`].
    pub fn open(conninfo: &str) -> Result<Self, Error> {
        Self::take(conninfo)?.certain()
    }

    /// Takes the cluster of a proxy, alone, to add this node to it. A node that the proxy has forgotten is taken
    /// back into its list before it is decided which server is right.
    ///
    /// # Errors
    /// As [`Cluster::open`]; that node's.
    pub fn open_to_add(conninfo: &str, node: &NodeConfig) -> Result<Self, Error> {
        let mut cluster = Self::take(conninfo)?;
        cluster.take_back(node)?;
        cluster.certain()
    }

    /// The cluster, unless servers contradict each other.
    fn certain(mut self) -> Result<Self, Error> {
        let cluster = &mut self;
        let census = cluster.census()?;
        match census.decide() {
            RecoveryDecision::Refuse { buckets } => {
                Err(Error::Undecided { table: census.table(&buckets) })
            }
            RecoveryDecision::InStep
            | RecoveryDecision::Wait { .. }
            | RecoveryDecision::Repair(_) => Ok(self),
        }
    }

    /// Takes the cluster of a proxy without a look at its nodes.
    pub(crate) fn take(conninfo: &str) -> Result<Self, Error> {
        let mut proxy = connect(conninfo, PROXY)?;
        lock(&mut proxy)?;
        upgrade_proxy(&mut proxy)?;
        let mut cluster = Self::read(conninfo, proxy)?;
        cluster.take_number(0)?;
        Ok(cluster)
    }

    /// The cluster of a proxy, to be looked at while others may change it.
    pub fn look(conninfo: &str) -> Result<Self, Error> {
        Self::read(conninfo, connect(conninfo, PROXY)?)
    }

    fn read(conninfo: &str, proxy: Client) -> Result<Self, Error> {
        let mut cluster = Self {
            conninfo: conninfo.to_owned(),
            proxy,
            id: String::new(),
            buckets: 0,
            version: 0,
            template: String::new(),
            key: String::new(),
            tool: 0,
            nodes: Vec::new(),
            owners: Vec::new(),
            functions: Vec::new(),
            connected: BTreeMap::new(),
            answer: None,
            control: None,
        };
        cluster.reload()?;
        cluster.check()?;
        Ok(cluster)
    }

    /// The mapping's version.
    #[must_use]
    pub fn version(&self) -> i64 {
        self.version
    }

    /// Its data nodes, by number.
    #[must_use]
    pub fn nodes(&self) -> &[NodeRow] {
        &self.nodes
    }

    /// Each bucket's node.
    #[must_use]
    pub fn owners(&self) -> &[i32] {
        &self.owners
    }

    /// The functions that the proxy offers.
    #[must_use]
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// The nodes that shall hold buckets.
    pub(crate) fn staying(&self) -> Vec<i32> {
        self.nodes.iter().filter(|node| !node.is_leaving).map(|node| node.number).collect()
    }

    /// The number that the next node gets.
    pub(crate) fn free_number(&self) -> i32 {
        let taken = |number: &i32| self.nodes.iter().any(|node| node.number == *number);
        (0..).find(|number| !taken(number)).unwrap_or(i32::MAX)
    }

    pub(crate) fn node(&self, number: i32) -> Result<&NodeRow, Error> {
        let found = self.nodes.iter().find(|node| node.number == number);
        found.ok_or_else(|| Error::Refused {
            what: format!("there is no node {number}"),
            hint: format!("the nodes are {}", self.numbers()),
        })
    }

    /// The connection to a data node, made when it is first asked for.
    pub(crate) fn data_node(&mut self, number: i32) -> Result<&mut Client, Error> {
        let conninfo = self.node(number)?.conninfo.clone();
        let limits = self.limits();
        match self.connected.entry(number) {
            Entry::Occupied(there) => Ok(there.into_mut()),
            Entry::Vacant(place) => {
                Ok(place.insert(connect_within(&conninfo, &node_name(number), &limits)?))
            }
        }
    }

    /// Lets the user's signals end statements whose time is limited.
    pub fn hear(&mut self, control: &LoadControl) {
        self.control = Some(control.clone());
    }

    /// Limits the time for which statements wait for an answer, on connections that there are and on
    /// those to come; gives the limit that there was.
    pub(crate) fn limit_answers(&mut self, answer: Option<Duration>) -> Option<Duration> {
        let before = std::mem::replace(&mut self.answer, answer);
        let limits = self.limits();
        for client in self.connected.values_mut().chain([&mut self.proxy]) {
            client.set_limits(|old| *old = limits.clone());
        }
        before
    }

    fn limits(&self) -> Limits {
        let control = self.answer.and(self.control.clone());
        Limits { answer: self.answer, control, ..Limits::of_administration() }
    }

    /// Forgets the connections to data nodes, which may be broken.
    pub(crate) fn disconnect(&mut self) {
        self.connected.clear();
    }

    /// Forgets the connection to one node.
    pub(crate) fn disconnect_from(&mut self, number: i32) {
        self.connected.remove(&number);
    }

    /// Connects to the proxy again and takes the cluster back.
    pub(crate) fn reconnect(&mut self) -> Result<(), Error> {
        self.disconnect();
        if self.proxy.is_closed() || self.proxy.simple_query("SELECT").is_err() {
            let mut opened = Self::open(&self.conninfo)?;
            opened.control = self.control.take();
            opened.limit_answers(self.answer);
            *self = opened;
        }
        Ok(())
    }

    /// Runs SQL in one transaction on a data node, unless a newer tool has been there.
    pub(crate) fn change_node(
        &mut self,
        number: i32,
        doing: &'static str,
        sql: &str,
    ) -> Result<(), Error> {
        let tool = self.tool;
        let client = self.data_node(number)?;
        let failed = |source| on_node(doing, number, source);
        let mut transaction = client.transaction().map_err(failed)?;
        transaction.execute("SELECT pgrig_shard.take($1)", &[&tool]).map_err(failed)?;
        transaction.batch_execute(sql).map_err(failed)?;
        transaction.commit().map_err(failed)
    }

    /// The buckets that the mapping has on a node.
    pub(crate) fn owned(&self, number: i32) -> Vec<i32> {
        let owned = (0..).zip(&self.owners).filter(|(_, owner)| **owner == number);
        owned.map(|(bucket, _)| bucket).collect()
    }

    /// Changes a data node's buckets and, in the same transaction, what its functions serve. The node's
    /// version certifies its buckets, so it must serve exactly these afterwards.
    pub(crate) fn change_buckets(
        &mut self,
        number: i32,
        doing: &'static str,
        sql: &str,
        expected: &[i32],
    ) -> Result<(), Error> {
        let (tool, functions) = (self.tool, self.functions.clone());
        let client = self.data_node(number)?;
        let failed = |source| on_node(doing, number, source);
        let mut transaction = client.transaction().map_err(failed)?;
        transaction.execute("SELECT pgrig_shard.take($1)", &[&tool]).map_err(failed)?;
        transaction.batch_execute(sql).map_err(failed)?;
        let row = transaction.query_one(SERVES, &[]).map_err(failed)?;
        let serves = ServedBuckets { owned: row.get(0), fenced: row.get(1), version: row.get(2) };
        if serves.readable() != expected {
            return Err(Error::Certificate { node: number, version: serves.version });
        }
        let routines = routines::on_data_node(&functions, &serves);
        transaction.batch_execute(&routines).map_err(failed)?;
        transaction.commit().map_err(failed)
    }

    /// Gives the proxy the partitions of the nodes that there are now; part of a transaction.
    pub(crate) fn define_server(
        &mut self,
        routes: &BTreeMap<i32, String>,
    ) -> Result<String, Error> {
        Ok(self.defined()?.become_sql(&WantedDefinitions::new(routes)?))
    }

    /// The partitions and the user mapping as they are.
    pub(crate) fn defined(&mut self) -> Result<DefinedDefinitions, Error> {
        let defined = DefinedDefinitions::read(&mut self.proxy);
        defined.map_err(|source| on_proxy("looking at the partitions", source))
    }

    pub(crate) fn routes(&self) -> BTreeMap<i32, String> {
        self.nodes.iter().map(|node| (node.number, node.route.clone())).collect()
    }

    /// Reads all that the proxy knows.
    pub(crate) fn reload(&mut self) -> Result<(), Error> {
        let there = "SELECT to_regclass('pgrig_shard.cluster') IS NOT NULL";
        let failed = |source| on_proxy("reading the cluster", source);
        if !self.proxy.query_one(there, &[]).map_err(failed)?.get::<_, bool>(0) {
            return Err(no_cluster(&self.conninfo));
        }
        let cluster = "SELECT id, buckets, version, template, key_name FROM pgrig_shard.cluster";
        let row = self.proxy.query_opt(cluster, &[]).map_err(failed)?;
        let row = row.ok_or_else(|| no_cluster(&self.conninfo))?;
        (self.id, self.buckets) = (row.get(0), row.get(1));
        (self.version, self.template, self.key) = (row.get(2), row.get(3), row.get(4));
        let nodes = "SELECT number, conninfo, route, leaving FROM pgrig_shard.node ORDER BY 1";
        let rows = self.proxy.query(nodes, &[]).map_err(failed)?;
        let nodes = rows.iter().map(|row| NodeRow {
            number: row.get(0),
            conninfo: row.get(1),
            route: row.get(2),
            is_leaving: row.get(3),
        });
        self.nodes = nodes.collect();
        let owners = "SELECT node FROM pgrig_shard.bucket ORDER BY bucket";
        let rows = self.proxy.query(owners, &[]).map_err(failed)?;
        self.owners = rows.iter().map(|row| row.get(0)).collect();
        let functions = "SELECT name, parameters, names, result, is_read, declared, outputs,
                                is_set, is_strict
                         FROM pgrig_shard.function ORDER BY 1, 2";
        let rows = self.proxy.query(functions, &[]).map_err(failed)?;
        self.functions = rows.iter().map(|row| function(row, &self.key)).collect();
        Ok(())
    }

    /// Batches that have been begun and on which something is left to do, oldest first.
    pub(crate) fn unfinished(&mut self) -> Result<Vec<(i32, Batch)>, Error> {
        let batches = "SELECT number, source, target, buckets FROM pgrig_shard.batch
                       WHERE done IS NULL ORDER BY number";
        let rows = self.proxy.query(batches, &[]);
        let rows = rows.map_err(|source| on_proxy("reading what is under way", source))?;
        Ok(rows.iter().map(batch).collect())
    }

    /// A mapping that names what is not there would lose rows sooner or later.
    fn check(&self) -> Result<(), Error> {
        let stray = self.owners.iter().zip(0..).find(|(owner, _)| self.node(**owner).is_err());
        if let Some((owner, bucket)) = stray {
            return Err(Error::Refused {
                what: format!(
                    "the mapping has bucket {bucket} on node {owner}, which is not there"
                ),
                hint: format!(
                    "correct the tables node and bucket in the proxy's schema pgrig_shard; \
                     the nodes are {}",
                    self.numbers()
                ),
            });
        }
        let count = i32::try_from(self.owners.len()).unwrap_or(i32::MAX);
        if count != self.buckets {
            return Err(Error::Refused {
                what: format!("the mapping has {count} of {} buckets", self.buckets),
                hint: "give every bucket a node in the table pgrig_shard.bucket of the proxy"
                    .into(),
            });
        }
        Ok(())
    }

    fn numbers(&self) -> String {
        let numbers: Vec<String> = self.nodes.iter().map(|node| node.number.to_string()).collect();
        numbers.join(", ")
    }
}

pub(crate) fn function(row: &postgres::Row, key: &str) -> Function {
    let names: Vec<String> = row.get(2);
    Function {
        name: row.get(0),
        parameters: row.get(1),
        key: names.first().filter(|name| *name == key).cloned(),
        names,
        result: row.get(3),
        is_read: row.get(4),
        declared: row.get(5),
        outputs: row.get(6),
        is_set: row.get(7),
        is_strict: row.get(8),
    }
}

/// A batch with its number.
pub(crate) fn batch(row: &postgres::Row) -> (i32, Batch) {
    (row.get(0), Batch { from: row.get(1), to: row.get(2), buckets: row.get(3) })
}

/// A connection for administration, whose statements may take any time.
pub(crate) fn connect(conninfo: &str, server: &str) -> Result<Client, Error> {
    connect_within(conninfo, server, &Limits::of_administration())
}

/// A connection whose statements have these limits, and whose first statement has an answer at once,
/// or nobody is there who gives one.
pub(crate) fn connect_within(
    conninfo: &str,
    server: &str,
    limits: &Limits,
) -> Result<Client, Error> {
    let conninfo = server::resolve_conninfo(conninfo);
    let mut conninfo =
        conninfo.map_err(|source| Error::Conninfo { server: server.to_owned(), source })?;
    conninfo.set("application_name", APPLICATION);
    let place = place(&conninfo);
    let failed =
        |source| Error::Connect { server: server.to_owned(), place: place.clone(), source };
    let least = |limit: Duration| limits.answer.map_or(limit, |answer| answer.min(limit));
    let first = Limits {
        connect: least(limits.connect),
        answer: Limits::of_questions().answer.map(least),
        ..limits.clone()
    };
    let mut client = server::connect(&conninfo, &first).map_err(failed)?;
    client.batch_execute(SESSION).map_err(|source| Error::Statement {
        doing: "preparing the session",
        server: server.to_owned(),
        source,
    })?;
    client.set_limits(|kept| *kept = limits.clone());
    Ok(client)
}

fn place(conninfo: &Conninfo) -> String {
    format!("{}, database {}", conninfo.place(), conninfo.dbname)
}

/// At most one tool at a time, for as long as its connection lives.
pub(crate) fn lock(proxy: &mut Client) -> Result<(), Error> {
    let failed = |source| on_proxy("locking the cluster", source);
    let deadline = Instant::now() + ENDING;
    loop {
        let is_late = Instant::now() >= deadline;
        let locked = proxy.query_one("SELECT pg_try_advisory_lock($1)", &[&LOCK]);
        if locked.map_err(failed)?.get(0) {
            return Ok(());
        }
        if is_late {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let holder = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted
                  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                  AND (classid::bigint << 32) | objid::bigint = $1 AND objsubid = 1";
    let row = proxy.query_opt(holder, &[&LOCK]).map_err(failed)?;
    Err(Error::Busy { pid: row.and_then(|row| row.get(0)) })
}

/// Gives the cluster back before the connection is closed, whose end a busy server notices late.
pub(crate) fn unlock(proxy: &mut Client) -> Result<(), Error> {
    let unlocked = proxy.execute("SELECT pg_advisory_unlock($1)", &[&LOCK]);
    unlocked.map(drop).map_err(|source| on_proxy("unlocking the cluster", source))
}

/// The next tool finds it free at once.
impl Drop for Cluster {
    fn drop(&mut self) {
        if self.tool > 0 && !self.proxy.is_closed() {
            self.control = None;
            self.limit_answers(Limits::of_questions().answer);
            // Without an answer the server gives it back when it sees the connection closed.
            let _ = unlock(&mut self.proxy);
        }
    }
}

fn no_cluster(conninfo: &str) -> Error {
    let resolved = server::resolve_conninfo(conninfo);
    let place = resolved.map_or_else(|_| PROXY.to_owned(), |resolved| place(&resolved));
    Error::Refused {
        what: format!("there is no cluster at {place}"),
        hint: "name the proxy's database; `pgrig-shard create` makes a cluster".into(),
    }
}

pub(crate) fn node_name(number: i32) -> String {
    format!("node {number}")
}

pub(crate) fn on_proxy(doing: &'static str, source: postgres::Error) -> Error {
    Error::Statement { doing, server: PROXY.to_owned(), source }
}

pub(crate) fn on_node(doing: &'static str, number: i32, source: postgres::Error) -> Error {
    Error::Statement { doing, server: node_name(number), source }
}

pub(crate) const PROXY: &str = "the proxy";

const APPLICATION: &str = "pgrig shard";

/// Settings of the tool's sessions. Its records must outlive a crash, whatever the server's default
/// is; and it must not wait forever for a lock that a session holds on a bucket.
const SESSION: &str = "SET synchronous_commit = on; SET lock_timeout = '5s'";

/// Longest wait for locks, in several attempts: in between, a signal is heard.
pub(crate) const LOCK_PATIENCE: Duration = Duration::from_secs(30);

/// Time for which a tool that has just ended may still hold the cluster: a busy server notices late
/// that its connection is closed.
const ENDING: Duration = Duration::from_secs(2);

/// The key of the advisory lock: "pgrig" and "shard" in eight bytes.
const LOCK: i64 = 0x7067_7269_675f_7368;

const SERVES: &str = "
    SELECT coalesce(array_agg(bucket ORDER BY bucket) FILTER (WHERE state = 'owned'), '{}'),
           coalesce(array_agg(bucket ORDER BY bucket) FILTER (WHERE state = 'fenced'), '{}'),
           (SELECT version FROM pgrig_shard.node)
    FROM pgrig_shard.bucket";
