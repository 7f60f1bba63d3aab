//! PL/Proxy clusters in a site: deployed and filled with the data, reached through poolers or
//! without, rebalanced, audited.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use lab::{Node, Server};
use postgres::Client;
use shard::{Audit, Cluster, Event, Moves, NodeConfig, Options};
use spec::{Buckets, NodeKind, Plproxy, Point, Topology};

use crate::data::Failure;
use crate::error::server_words;
use crate::rows::Part;
use crate::site::{Site, lab_settings};
use crate::site_node::SiteNode;

/// What was moved in a trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Moved {
    pub(crate) buckets: usize,
    pub(crate) rows: i64,
    pub(crate) bytes: i64,
    /// Of each batch, in milliseconds.
    pub(crate) fences_ms: Vec<f64>,
    pub(crate) seconds: f64,
}

/// Where rows are that should be in their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placement {
    pub(crate) misplaced: i64,
    pub(crate) lost: i64,
}

impl Moved {
    /// In a mark's words.
    pub(crate) fn words(&self) -> String {
        let longest = self.fence_ms().map_or(0.0, |(longest, _)| longest);
        format!(
            "{} buckets with {} rows moved in {} batches, {:.1} s, longest fence {longest:.0} ms",
            self.buckets,
            self.rows,
            self.fences_ms.len(),
            self.seconds
        )
    }

    /// The longest fence, and the one that 99 of 100 are not longer than.
    pub(crate) fn fence_ms(&self) -> Option<(f64, f64)> {
        let mut sorted = self.fences_ms.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = (sorted.len() as f64 * 0.99).ceil() as usize;
        Some((*sorted.last()?, *sorted.get(rank.max(1) - 1)?))
    }
}

/// The proxy of a topology, if it has one.
pub(crate) fn proxy(topology: &Topology) -> Option<(&str, &Plproxy)> {
    topology.nodes.iter().find_map(|node| match &node.kind {
        NodeKind::Plproxy(proxy) => Some((node.name.as_str(), proxy)),
        _ => None,
    })
}

/// The tables, functions and rows of a server that is not sharded: one bucket, in schema public.
///
/// # Errors
/// What the server said.
pub(crate) fn build_single(client: &mut Client, buckets: &Buckets) -> Result<(), Failure> {
    let keys = format!("(SELECT generate_series(1, {}) AS key)", buckets.keys);
    run(client, &shard::in_bucket(&buckets.template.text, "public", 0), &buckets.template.name)?;
    run(client, &filled(buckets, "public", 0, &keys), &buckets.fill.name)?;
    run(client, "VACUUM (ANALYZE)", "VACUUM")
}

impl Site {
    /// Makes the cluster of the site's proxy and fills its buckets. Servers that are spare are left
    /// as they are.
    ///
    /// # Errors
    /// What a server said.
    pub(crate) fn deploy_cluster(&mut self) -> Result<(), Failure> {
        let topology = self.plan.topology.clone();
        let Some((name, proxy)) = proxy(&topology) else { return Ok(()) };
        let Some(buckets) = self.plan.data.buckets.clone() else { return Ok(()) };
        for server in proxy.to.iter().map(String::as_str).chain([name]) {
            let mut settings =
                topology.node(server).map(|node| lab_settings(&node.settings)).unwrap_or_default();
            // Nothing is lost if the machine dies while data are built: they are built again.
            settings.extend([("fsync", "off"), ("full_page_writes", "off"), ("autovacuum", "off")]);
            let Some(node) = self.node_mut(server) else { continue };
            node.configure(settings)?;
            if !node.is_running()? {
                node.start()?;
            }
        }
        self.claim_hosts()?;
        let configs = self.partitions(proxy)?;
        let count = i32::try_from(proxy.buckets).unwrap_or(i32::MAX);
        let Some(conninfo) = self.address(name) else { return Ok(()) };
        let cluster = Cluster::create(&conninfo, &configs, count, &buckets.template.text);
        let cluster = cluster.map_err(said)?;
        for (number, config) in (0..).zip(&configs) {
            let owned = (0..).zip(cluster.owners()).filter(|(_, owner)| **owner == number);
            let owned: Vec<i32> = owned.map(|(bucket, _)| bucket).collect();
            fill(config, &owned, &buckets)?;
        }
        drop(cluster);
        self.rows_built = self.audit().map_err(|why| Failure::Said { why, hint: None })?;
        Ok(())
    }

    /// The databases that are the proxy's partitions: each server's own, or as many as the study
    /// says, dealt out to the servers in turn.
    fn partitions(&self, proxy: &Plproxy) -> Result<Vec<NodeConfig>, Failure> {
        let servers =
            proxy.to.iter().filter_map(|to| self.nodes.iter().position(|n| n.name == *to));
        let servers: Vec<usize> = servers.collect();
        if proxy.partitions.is_none() {
            return Ok(proxy.to.iter().filter_map(|to| self.config(to)).collect());
        }
        let mut configs = Vec::new();
        for (number, index) in (0..proxy.partitions()).zip(servers.iter().cycle()) {
            let Some(server) = self.server(*index) else { continue };
            let database = format!("partition{number}");
            let create = format!("CREATE DATABASE {database}");
            run(&mut server.connect()?, &create, "making a partition")?;
            let conninfo = server.endpoint().with_database(database).to_string();
            configs.push(NodeConfig { conninfo, route: None });
        }
        Ok(configs)
    }

    /// Whether a proxy stands before its data.
    pub(crate) fn is_sharded(&self) -> bool {
        proxy(&self.plan.topology).is_some()
    }

    /// Has the proxy reach its servers as the point says, now that poolers run.
    ///
    /// # Errors
    /// What the proxy said.
    pub(crate) fn route_cluster(&self, point: &Point) -> Result<(), String> {
        let Some((name, proxy)) = proxy(&point.topology) else { return Ok(()) };
        if proxy.through.is_empty() || self.plan.data.buckets.is_none() {
            return Ok(());
        }
        let poolers = self.fronts.iter().map(|front| (front.name.as_str(), front));
        let poolers: BTreeMap<_, _> = poolers.collect();
        let routes = proxy.through.iter().map(|pooler| poolers.get(pooler.as_str())?.route());
        let routes = (0..).zip(routes).filter_map(|(number, route)| Some((number, route?)));
        let Some(conninfo) = self.address(name) else { return Ok(()) };
        let mut cluster = Cluster::open(&conninfo).map_err(words)?;
        cluster.set_routes(&routes.collect()).map_err(words)
    }

    /// Moves buckets until these servers hold them and no others, and gives what was moved.
    ///
    /// # Errors
    /// What stopped it.
    pub(crate) fn rebalance(&self, name: &str, to: &[String]) -> Result<Moved, String> {
        let began = Instant::now();
        let conninfo = self.address(name).ok_or("the proxy is not ours")?;
        let mut cluster = Cluster::open(&conninfo).map_err(words)?;
        let configs: Vec<NodeConfig> = to.iter().filter_map(|to| self.config(to)).collect();
        for config in &configs {
            cluster.add(config).map_err(words)?;
        }
        let stays = |conninfo: &String| configs.iter().any(|one| one.conninfo == *conninfo);
        let leaving = cluster.nodes().iter().filter(|node| !stays(&node.conninfo));
        for number in leaving.map(|node| node.number).collect::<Vec<_>>() {
            cluster.remove(number).map_err(words)?;
        }
        let mut moved = Moved::default();
        let mut tell = |event: &Event<'_>| match event {
            Event::Batch { batch, .. } => moved.buckets += batch.buckets.len(),
            Event::Switched { rows, bytes, fence_ms, .. } => {
                (moved.rows, moved.bytes) = (moved.rows + rows, moved.bytes + bytes);
                moved.fences_ms.push(*fence_ms);
            }
            _ => {}
        };
        let options = Options { grace: GRACE, ..Options::default() };
        Moves::new(&mut cluster, options, &mut tell, &|| false).run().map_err(words)?;
        moved.seconds = began.elapsed().as_secs_f64();
        Ok(moved)
    }

    /// Whether every row that was built is still there, and every row in its place.
    ///
    /// # Errors
    /// What a server said.
    pub(crate) fn placement(&self) -> Result<Option<Placement>, String> {
        let (Some(built), Some(now)) = (&self.rows_built, self.audit()?) else { return Ok(None) };
        let lost = built.rows.iter().map(|(table, rows)| {
            let left = now.rows.get(table).copied().unwrap_or(0);
            (rows - left).max(0)
        });
        Ok(Some(Placement { misplaced: now.misplaced, lost: lost.sum() }))
    }

    /// Where a table is: on the server; or, where its rows are a cluster's, in the buckets of all
    /// nodes, as the mapping has them.
    ///
    /// # Errors
    /// What the proxy said.
    pub(crate) fn parts<'s>(
        &'s self,
        node: &'s SiteNode,
        table: &str,
    ) -> Result<Vec<Part<'s>>, String> {
        let (Some((name, _)), Some(_)) = (proxy(&self.plan.topology), &self.plan.data.buckets)
        else {
            return Ok(vec![Part { node, table: table.to_owned(), conninfo: None }]);
        };
        let Some(conninfo) = self.address(name) else { return Ok(Vec::new()) };
        let cluster = Cluster::look(&conninfo).map_err(words)?;
        let mut parts = Vec::new();
        for (bucket, owner) in (0..).zip(cluster.owners()) {
            let Some(row) = cluster.nodes().iter().find(|node| node.number == *owner) else {
                continue;
            };
            parts.push(Part {
                node: self.node_at(&row.conninfo).unwrap_or(node),
                table: format!("{}.{table}", shard::bucket_schema(bucket)),
                conninfo: Some(row.conninfo.clone()),
            });
        }
        Ok(parts)
    }

    /// The server that a node of the cluster is on.
    fn node_at(&self, conninfo: &str) -> Option<&SiteNode> {
        self.nodes.iter().find(|node| {
            let own = self.address(&node.name);
            own.is_some_and(|own| {
                conninfo.starts_with(own.split(" dbname=").next().unwrap_or(&own))
            })
        })
    }

    /// Counts the rows of the site's cluster, if it has one.
    fn audit(&self) -> Result<Option<Audit>, String> {
        let Some((name, _)) = proxy(&self.plan.topology) else { return Ok(None) };
        let Some(buckets) = &self.plan.data.buckets else { return Ok(None) };
        let Some(conninfo) = self.address(name) else { return Ok(None) };
        let mut cluster = Cluster::look(&conninfo).map_err(words)?;
        cluster.audit(&buckets.key).map(Some).map_err(words)
    }

    fn config(&self, name: &str) -> Option<NodeConfig> {
        // PL/Proxy reads what libpq reads, the tool less than that.
        let route = match &self.node(name)?.server {
            Server::Node(_) => None,
            Server::Target(host) => Some(host.conninfo().to_owned()),
        };
        Some(NodeConfig { conninfo: self.address(name)?, route })
    }

    fn address(&self, name: &str) -> Option<String> {
        Some(match &self.node(name)?.server {
            Server::Node(node) => node.endpoint().to_string(),
            Server::Target(host) => crate::outside::probe_form(host),
        })
    }

    fn node_mut(&mut self, name: &str) -> Option<&mut Node> {
        self.nodes.iter_mut().find(|node| node.name == name)?.server.node()
    }
}

/// Fills the buckets of one server. Its keys are looked for once, not once for each bucket.
fn fill(config: &NodeConfig, owned: &[i32], buckets: &Buckets) -> Result<(), Failure> {
    let mut client = Client::connect(&config.conninfo, postgres::NoTls).map_err(|error| {
        let why = format!("connecting to fill the buckets: {}", server_words(&error));
        Failure::Said { why, hint: None }
    })?;
    let numbers: Vec<String> = owned.iter().map(i32::to_string).collect();
    let keys = format!(
        "CREATE TEMPORARY TABLE pgrig_keys AS
             SELECT key, bucket FROM generate_series(1, {}) AS key,
                    pgrig_shard.bucket_of(key) AS bucket
             WHERE bucket = ANY ('{{{}}}');
         CREATE INDEX ON pgrig_keys (bucket);
         ANALYZE pgrig_keys",
        buckets.keys,
        numbers.join(",")
    );
    run(&mut client, &keys, "finding keys")?;
    for bucket in owned {
        let keys = format!("(SELECT key FROM pgrig_keys WHERE bucket = {bucket})");
        let schema = shard::bucket_schema(*bucket);
        run(&mut client, &filled(buckets, &schema, *bucket, &keys), &buckets.fill.name)?;
    }
    run(&mut client, "VACUUM (ANALYZE)", "VACUUM")
}

fn filled(buckets: &Buckets, schema: &str, number: i32, keys: &str) -> String {
    let text = shard::in_bucket(&buckets.fill.text, schema, number);
    text.replace("{keys}", keys).replace("{key_max}", &buckets.keys.to_string())
}

fn run(client: &mut Client, sql: &str, name: &str) -> Result<(), Failure> {
    client.batch_execute(sql).map_err(|error| {
        let why = format!("{name}: {}", server_words(&error));
        Failure::Said { why, hint: None }
    })
}

fn said(error: shard::Error) -> Failure {
    Failure::Said { why: error.to_string(), hint: error.hint() }
}

fn words(error: shard::Error) -> String {
    error.to_string()
}

/// Reads of a study are short.
const GRACE: Duration = Duration::from_secs(1);
