//! PL/Proxy clusters in a site: deployed and filled with the data, reached through poolers or
//! without, rebalanced, audited.

use std::time::{Duration, Instant};

use lab::{Node, Server};
use server::{Client, Limits};
use shard::{Cluster, ClusterAudit, Event, Moves, NodeConfig, Options};
use spec::{BucketedData, PlproxyNode, TrialPoint};

use crate::data::DataError;
use crate::error::Error;
use crate::hosts;
use crate::node::SiteNode;
use crate::plan::proxy;
use crate::site::Site;

/// The buckets that were moved in a trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MovedBuckets {
    /// Buckets that moved to another node.
    pub buckets: usize,
    /// Rows in them.
    pub rows: i64,
    /// Bytes that they take on their new nodes.
    pub bytes: i64,
    /// Time for which writes to the moving buckets were refused, of each batch, in milliseconds.
    pub fences_ms: Vec<f64>,
    /// From the decision to move buckets until the last old row was dropped.
    pub seconds: f64,
}

/// A proxy is a server of the rig's, as the preflight demands.
const PROXY_IS_THERE: &str = "the proxy of a topology is one of its servers";

/// The place of a table, or of a part of it.
#[derive(Clone, Debug)]
pub struct TablePart<'s> {
    /// The server, as messages call it.
    pub node: &'s SiteNode,
    /// The table's name there, as the study or a bucket has it.
    pub table: String,
    /// Its database, where that is not the server's own.
    pub conninfo: Option<String>,
}

impl MovedBuckets {
    /// In a mark's words.
    pub fn words(&self) -> String {
        let fence = self.fence_ms();
        let fence =
            fence.map_or(String::new(), |(longest, _)| format!(", longest fence {longest:.0} ms"));
        format!(
            "{} buckets with {} rows moved in {} batches, {:.1} s{fence}",
            self.buckets,
            self.rows,
            self.fences_ms.len(),
            self.seconds
        )
    }

    /// The longest fence, and the one that 99 of 100 are not longer than.
    pub fn fence_ms(&self) -> Option<(f64, f64)> {
        let mut sorted = self.fences_ms.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = (sorted.len() as f64 * 0.99).ceil() as usize;
        Some((*sorted.last()?, *sorted.get(rank.max(1) - 1)?))
    }
}

/// The tables, functions and rows of a server that is not sharded: one bucket, in schema public.
pub(crate) fn build_single(client: &mut Client, buckets: &BucketedData) -> Result<(), DataError> {
    let keys = format!("(SELECT generate_series(1, {}) AS key)", buckets.keys);
    run(client, &shard::in_bucket(&buckets.template.text, "public", 0), &buckets.template.name)?;
    run(client, &filled(buckets, "public", 0, &keys), &buckets.fill.name)?;
    run(client, "VACUUM (ANALYZE)", "VACUUM")
}

impl Site {
    /// Makes the cluster of the site's proxy and fills its buckets. Servers that are spare are left
    /// as they are.
    pub(crate) fn deploy_cluster(&mut self) -> Result<(), DataError> {
        let topology = self.plan.topology.clone();
        // The servers of the site are no cluster.
        let Some((name, proxy)) = proxy(&topology) else { return Ok(()) };
        // The study has no data that a cluster could hold.
        let Some(buckets) = self.plan.data.buckets.clone() else { return Ok(()) };
        for server in proxy.to.iter().map(String::as_str).chain([name]) {
            let node =
                topology.node(server).expect("a proxy and its shards are nodes of its topology");
            let mut settings = node.settings.clone();
            // Nothing is lost if the machine dies while data are built: they are built again.
            settings.extend([("fsync", "off"), ("full_page_writes", "off"), ("autovacuum", "off")]);
            let Some(node) = self.node_mut(server) else { continue };
            node.configure(settings)?;
            if !node.is_running()? {
                node.start()?;
            }
        }
        hosts::claim(&self.plan.topology, &self.nodes)?;
        let configs = self.partitions(proxy)?;
        let count = i32::try_from(proxy.buckets).unwrap_or(i32::MAX);
        let conninfo = self.address(name).expect(PROXY_IS_THERE);
        let cluster =
            Cluster::create(&conninfo, &configs, count, &buckets.template.text, shard::KEY)?;
        for (number, config) in (0..).zip(&configs) {
            let owned = (0..).zip(cluster.owners()).filter(|(_, owner)| **owner == number);
            let owned: Vec<i32> = owned.map(|(bucket, _)| bucket).collect();
            fill(config, &owned, &buckets)?;
        }
        drop(cluster);
        self.rows_built = self.count_rows()?;
        Ok(())
    }

    /// The databases that are the proxy's partitions: each server's own, or as many as the study
    /// says, dealt out to the servers in turn.
    fn partitions(&self, proxy: &PlproxyNode) -> Result<Vec<NodeConfig>, DataError> {
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

    /// True if a proxy stands before its data.
    pub fn is_sharded(&self) -> bool {
        proxy(&self.plan.topology).is_some()
    }

    /// Has the proxy reach its servers as the point says, now that poolers run.
    pub fn route_cluster(&self, point: &TrialPoint) -> Result<(), Error> {
        // The servers of the point are no cluster.
        let Some((name, proxy)) = proxy(&point.topology) else { return Ok(()) };
        if proxy.through.is_empty() || self.plan.data.buckets.is_none() {
            return Ok(());
        }
        let route = |pooler: &String| {
            let front = self.fronts.iter().find(|front| front.name() == pooler.as_str())?;
            front.route().map(|route| route.to_string())
        };
        let routes = proxy.through.iter().map(route);
        let routes = (0..).zip(routes).filter_map(|(number, route)| Some((number, route?)));
        let conninfo = self.address(name).expect(PROXY_IS_THERE);
        let mut cluster = Cluster::open(&conninfo)?;
        Ok(cluster.set_routes(&routes.collect())?)
    }

    /// Moves buckets until these servers hold them and no others, and gives what was moved.
    pub fn rebalance(&self, name: &str, to: &[String]) -> Result<MovedBuckets, Error> {
        let began = Instant::now();
        let conninfo = self.address(name).ok_or(Error::ProxyNotOurs)?;
        let mut cluster = Cluster::open(&conninfo)?;
        let configs: Vec<NodeConfig> = to.iter().filter_map(|to| self.config(to)).collect();
        for config in &configs {
            cluster.add(config)?;
        }
        let stays = |conninfo: &String| configs.iter().any(|one| one.conninfo == *conninfo);
        let leaving = cluster.nodes().iter().filter(|node| !stays(&node.conninfo));
        for number in leaving.map(|node| node.number).collect::<Vec<_>>() {
            cluster.remove(number)?;
        }
        let mut moved = MovedBuckets::default();
        let mut tell = |event: &Event<'_>| match event {
            Event::Batch { batch, .. } => moved.buckets += batch.buckets.len(),
            Event::Switched { rows, bytes, fence_ms, .. } => {
                (moved.rows, moved.bytes) = (moved.rows + rows, moved.bytes + bytes);
                moved.fences_ms.push(*fence_ms);
            }
            _ => {}
        };
        let options = Options { grace: GRACE, ..Options::default() };
        Moves::new(&mut cluster, options, &mut tell, &|| false).run()?;
        moved.seconds = began.elapsed().as_secs_f64();
        Ok(moved)
    }

    /// The places of a table: the server; or, where its rows are a cluster's, the buckets of all nodes,
    /// as the mapping has them.
    pub fn parts<'s>(
        &'s self,
        node: &'s SiteNode,
        table: &str,
    ) -> Result<Vec<TablePart<'s>>, Error> {
        let (Some((name, _)), Some(_)) = (proxy(&self.plan.topology), &self.plan.data.buckets)
        else {
            return Ok(vec![TablePart { node, table: table.to_owned(), conninfo: None }]);
        };
        let conninfo = self.address(name).expect(PROXY_IS_THERE);
        let cluster = Cluster::look(&conninfo)?;
        let mut parts = Vec::new();
        for (bucket, owner) in (0..).zip(cluster.owners()) {
            let Some(row) = cluster.nodes().iter().find(|node| node.number == *owner) else {
                continue;
            };
            parts.push(TablePart {
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
    pub fn audit(&self) -> Result<Option<ClusterAudit>, Error> {
        Ok(self.count_rows()?)
    }

    fn count_rows(&self) -> Result<Option<ClusterAudit>, shard::Error> {
        let Some((name, _)) = proxy(&self.plan.topology) else { return Ok(None) };
        let Some(buckets) = &self.plan.data.buckets else { return Ok(None) };
        let conninfo = self.address(name).expect(PROXY_IS_THERE);
        let mut cluster = Cluster::look(&conninfo)?;
        cluster.audit(&buckets.key).map(Some)
    }

    fn config(&self, name: &str) -> Option<NodeConfig> {
        Some(NodeConfig { conninfo: self.address(name)?, route: None })
    }

    fn address(&self, name: &str) -> Option<String> {
        Some(match &self.node(name)?.server {
            Server::Node(node) => node.endpoint().to_string(),
            Server::Managed(managed) => managed.endpoint().to_string(),
            Server::Target(host) => host.libpq_conninfo(),
        })
    }

    fn node_mut(&mut self, name: &str) -> Option<&mut Node> {
        self.nodes.iter_mut().find(|node| node.name == name)?.server.node()
    }
}

/// Fills the buckets of one server. Its keys are looked for once, not once for each bucket.
fn fill(config: &NodeConfig, owned: &[i32], buckets: &BucketedData) -> Result<(), DataError> {
    let doing = "connecting to fill the buckets";
    let failed = |source| DataError::Connect { doing: doing.to_owned(), source };
    let conninfo = server::resolve_conninfo(&config.conninfo).map_err(|why| failed(why.into()))?;
    let mut client = server::connect(&conninfo, &Limits::of_administration()).map_err(failed)?;
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

fn filled(buckets: &BucketedData, schema: &str, number: i32, keys: &str) -> String {
    let text = shard::in_bucket(&buckets.fill.text, schema, number);
    text.replace("{keys}", keys).replace("{key_max}", &buckets.keys.to_string())
}

fn run(client: &mut Client, sql: &str, name: &str) -> Result<(), DataError> {
    client.batch_execute(sql).map_err(DataError::sql(name))
}

/// Reads of a study are short.
const GRACE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_without_a_fence_names_none() {
        let check = |fences_ms: &[f64], expected: &str| {
            let moved = MovedBuckets { fences_ms: fences_ms.to_vec(), ..MovedBuckets::default() };
            assert_eq!(moved.words(), format!("0 buckets with 0 rows moved in {expected}"));
        };
        check(&[3.0, 8.0], "2 batches, 0.0 s, longest fence 8 ms");
        check(&[], "0 batches, 0.0 s");
    }
}
