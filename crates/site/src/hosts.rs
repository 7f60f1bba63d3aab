//! Hosts of the user's that stand for servers of a study: they hold partitions of a PL/Proxy cluster
//! whose proxy is the rig's. The rig makes schemas and functions in an otherwise empty database,
//! changes no setting, and drops what it has made when the run is over.

use std::collections::{BTreeMap, BTreeSet};

use lab::{Server, Target};
use server::quote::literal;
use server::{Client, LoadControl};
use spec::{NodeKind, Study, Topology};

use crate::data::DataError;
use crate::error::Error;
use crate::node::SiteNode;
use crate::outside;
use crate::plan::proxy;

/// Hosts by the names of the nodes that they stand for.
pub type Hosts = BTreeMap<String, Target>;

/// Connects to each once, to see that it is there.
pub fn open(
    conninfos: &BTreeMap<String, String>,
    study: &Study,
    control: &LoadControl,
) -> Result<Hosts, Error> {
    let nodes = study.points.iter().flat_map(|point| &point.topology.nodes);
    let known: BTreeSet<&str> = nodes.map(|node| node.name.as_str()).collect();
    let mut hosts = Hosts::new();
    for (name, conninfo) in conninfos {
        if !known.contains(name.as_str()) {
            let known = known.into_iter().map(str::to_owned).collect();
            return Err(Error::NoSuchNode { name: name.clone(), known });
        }
        let host = outside::open(conninfo, control)?;
        if let Some((first, _)) =
            hosts.iter().find(|(_, known)| known.conninfo() == host.conninfo())
        {
            let (first, second) = (first.clone(), name.clone());
            return Err(Error::HostTwice { first, second });
        }
        hosts.insert(name.clone(), host);
    }
    Ok(hosts)
}

/// Looks whether hosts have room for a cluster, and marks what will be made there.
pub(crate) fn claim(topology: &Topology, nodes: &[SiteNode]) -> Result<(), DataError> {
    for node in shards(topology, nodes) {
        let mut client = node.server.connect()?;
        // A run that was killed has no session there; one that goes on would lose its cluster.
        let looking = || DataError::sql(format!("looking at host {}", node.name));
        let others = client.query_opt(OTHERS, &[&MARK]).map_err(looking())?;
        if let Some(sessions) = others.map(|row| row.get::<_, i64>(0)).filter(|n| *n > 0) {
            return Err(DataError::HostInUse { host: node.name.clone(), sessions });
        }
        forget(node)?;
        if let Some(row) = client.query_opt(SOMETHING, &[]).map_err(looking())? {
            return Err(DataError::HostNotEmpty { host: node.name.clone(), there: row.get(0) });
        }
        let mark = format!(
            "CREATE SCHEMA pgrig_shard; COMMENT ON SCHEMA pgrig_shard IS {}",
            literal(MARK)
        );
        client.batch_execute(&mark).map_err(looking())?;
    }
    Ok(())
}

/// Drops what was made on hosts.
pub(crate) fn leave(topology: &Topology, nodes: &[SiteNode]) {
    for node in shards(topology, nodes) {
        // What cannot be dropped now is dropped by the next run.
        let _ = forget(node);
    }
}

/// The hosts that stand for shards.
fn shards<'n>(topology: &'n Topology, nodes: &'n [SiteNode]) -> impl Iterator<Item = &'n SiteNode> {
    let is_sharded = proxy(topology).is_some();
    let is_shard = |name: &String| {
        let node = topology.node(name);
        node.is_some_and(|node| matches!(node.kind, NodeKind::Postgres(_)))
    };
    nodes.iter().filter(move |node| {
        is_sharded && matches!(node.server, Server::Target(_)) && is_shard(&node.name)
    })
}

/// Drops a cluster's part of a run, of this one or of one that was killed.
fn forget(node: &SiteNode) -> Result<(), DataError> {
    let mut client = node.server.connect()?;
    let dropping = || DataError::sql(format!("dropping what was made on host {}", node.name));
    drop_marked(&mut client).map_err(dropping())
}

fn drop_marked(client: &mut Client) -> Result<(), postgres::Error> {
    if client.query_opt(IS_OURS, &[&MARK])?.is_none() {
        return Ok(());
    }
    let is_begun: bool = client.query_one(IS_BEGUN, &[])?.get(0);
    if is_begun {
        // One by one: all schemas at once would take more locks than a server has.
        for row in client.query(MADE, &[])? {
            client.batch_execute(row.get(0))?;
        }
    }
    client.batch_execute("DROP SCHEMA pgrig_shard CASCADE")
}

/// Comment that marks a cluster's schema as a run's.
const MARK: &str = "made by pgrig run, dropped when it is over";

const IS_OURS: &str = "
    SELECT FROM pg_namespace
    WHERE nspname = 'pgrig_shard' AND obj_description(oid, 'pg_namespace') = $1";

/// Sessions of others in a database that holds a run's cluster: its proxy, its clients.
const OTHERS: &str = "
    SELECT count(*) FROM pg_stat_activity, pg_namespace
    WHERE datname = current_database() AND pid <> pg_backend_pid()
      AND nspname = 'pgrig_shard' AND obj_description(pg_namespace.oid, 'pg_namespace') = $1
      AND backend_type = 'client backend'";

const IS_BEGUN: &str = "SELECT to_regclass('pgrig_shard.bucket') IS NOT NULL";

/// Functions whose bodies call the cluster's own, and the buckets of the cluster's list.
const MADE: &str = r"
    SELECT format('DROP FUNCTION %s', oid::regprocedure) FROM pg_proc
    WHERE pronamespace = 'public'::regnamespace AND prosrc LIKE '%pgrig\_shard.bucket\_of(key)%'
    UNION ALL
    SELECT format('DROP SCHEMA %I CASCADE', nspname) FROM pg_namespace
    JOIN pgrig_shard.bucket ON nspname = format('bucket_%s', lpad(bucket::text, 4, '0'))";

const SOMETHING: &str = r"
    SELECT format('there is %s', what) FROM (
        SELECT format('schema %I', nspname) AS what FROM pg_namespace
        WHERE nspname !~ '^pg_' AND nspname NOT IN ('public', 'information_schema')
        UNION ALL
        SELECT format('%I in schema public', relname) FROM pg_class
        WHERE relnamespace = 'public'::regnamespace
          AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = pg_class.oid AND deptype = 'e')
        UNION ALL
        SELECT format('function %I in schema public', proname) FROM pg_proc
        WHERE pronamespace = 'public'::regnamespace
          AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = pg_proc.oid AND deptype = 'e')
    ) AS there LIMIT 1";
