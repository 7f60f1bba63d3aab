//! Hosts of somebody else's that stand for servers of a study: they hold partitions of a PL/Proxy
//! cluster whose proxy is the rig's. The rig makes schemas and functions in a database that has
//! nothing else, changes no setting, and takes away what it has made when the run is over.

use std::collections::{BTreeMap, BTreeSet};

use lab::{Server, Target};
use spec::{NodeKind, Point, Reset, Study};

use crate::data::Failure;
use crate::error::{Error, server_words};
use crate::estimate::{self, SPARE_CONNECTIONS};
use crate::misfit::Misfit;
use crate::sharded;
use crate::site::Site;
use crate::site_node::SiteNode;
use crate::sites::SitePlan;
use crate::sql::literal;
use crate::words::grouped;

/// Hosts by the names of the nodes that they stand for.
pub(crate) type Hosts = BTreeMap<String, Target>;

/// Connects to each once, to see that it is there.
///
/// # Errors
/// As libpq has them; what a server said; a name that no topology of the study has.
pub(crate) fn open(conninfos: &BTreeMap<String, String>, study: &Study) -> Result<Hosts, Error> {
    let nodes = study.points.iter().flat_map(|point| &point.topology.nodes);
    let known: BTreeSet<&str> = nodes.map(|node| node.name.as_str()).collect();
    let mut hosts = Hosts::new();
    for (name, conninfo) in conninfos {
        if !known.contains(name.as_str()) {
            let known = known.into_iter().map(str::to_owned).collect();
            return Err(Error::NoSuchNode { name: name.clone(), known });
        }
        let host = crate::outside::open(conninfo)?;
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

/// What is in the way of a point with hosts that have so many connections to spare.
pub(crate) fn misfits(point: &Point, hosts: &BTreeMap<String, u32>) -> Vec<Misfit> {
    let nodes = point.topology.nodes.iter().filter_map(|node| Some((node, hosts.get(&node.name)?)));
    let mut misfits = Vec::new();
    for (node, free) in nodes {
        let name = &node.name;
        let mut add = |amount: u32, needs: String, has: String, hint: &str| {
            let (what, amount) = (format!("host {name}"), u64::from(amount));
            misfits.push(Misfit { what, amount, needs, has, hint: Some(hint.to_owned()) });
        };
        let shards = sharded::proxy(&point.topology);
        let is_shard = shards.is_some_and(|(_, proxy)| proxy.to.contains(name));
        let touches = point.timeline.iter().map(|timed| &timed.action);
        let touched = touches.into_iter().find(|a| a.target() == name && !a.is_sql());
        let has_front = |other: &&spec::Node| {
            !matches!(other.kind, NodeKind::Plproxy(_)) && other.connects_to().contains(&&**name)
        };
        let front = point.topology.nodes.iter().find(has_front);
        let needed = estimate::connections(point, name) + SPARE_CONNECTIONS;
        if !is_shard || point.data.buckets.is_none() {
            add(
                1,
                format!("{name} to be the rig's"),
                "a host".to_owned(),
                "only shards can be hosts",
            );
        } else if point.data.reset != Reset::Keep {
            let hint = "data = { reset = \"keep\" }, or a server of the rig's";
            add(1, format!("copies of the data of {name}"), "a host".to_owned(), hint);
        } else if let Some(action) = touched {
            let needs = format!("to {} {name}", action.verb());
            add(1, needs, "a host that is not ours to stop".to_owned(), "give another server");
        } else if node.throttle.is_some() || node.disk.can_be_cut() {
            let needs = format!("a disk of its own for {name}");
            add(1, needs, "a host".to_owned(), "give another server");
        } else if shards.is_some_and(|(_, proxy)| proxy.partitions.is_some()) {
            let needs = format!("to make databases on {name}");
            add(1, needs, "a host".to_owned(), "give each partition a node and a database");
        } else if let Some(front) = front {
            let needs = format!("{} in front of {name}", front.name);
            add(1, needs, "a host".to_owned(), "only the proxy goes to hosts");
        } else if needed > *free {
            let needs = format!("{} connections on {name}", grouped(u64::from(needed)));
            let has = format!("{} free there", grouped(u64::from(*free)));
            add(needed, needs, has, "raise max_connections there");
        }
    }
    misfits
}

/// The points for which a host is taken already: its database holds one cluster.
pub(crate) fn taken(
    study: &Study,
    points: &[usize],
    hosts: &BTreeMap<String, u32>,
) -> Vec<(usize, Vec<Misfit>)> {
    let mut holders: BTreeMap<&str, String> = BTreeMap::new();
    let mut taken = Vec::new();
    for site in SitePlan::all(study, points) {
        let is_here = |name: &&String| site.topology.node(name).is_some();
        let used: Vec<&String> = hosts.keys().filter(is_here).collect();
        let holder = used.iter().find_map(|name| Some((*name, holders.get(name.as_str())?)));
        match holder {
            None => holders.extend(used.iter().map(|name| (name.as_str(), site.name(study)))),
            Some((name, holder)) => {
                let misfit = Misfit {
                    what: format!("host {name}"),
                    amount: 1,
                    needs: format!("a database for {name}"),
                    has: format!("one that {holder} uses"),
                    hint: Some("choose one of them by --only".to_owned()),
                };
                taken.extend(site.points.iter().map(|point| (*point, vec![misfit.clone()])));
            }
        }
    }
    taken
}

/// What was done on the hosts of these points, for the record.
pub(crate) fn note<'p>(
    hosts: &Hosts,
    mut points: impl Iterator<Item = &'p Point>,
) -> Option<String> {
    let names: BTreeSet<&String> =
        hosts.keys().filter(|name| points.any(|p| p.topology.node(name).is_some())).collect();
    let places: Vec<String> =
        names.iter().map(|name| format!("{name} on {}", hosts[name.as_str()].place())).collect();
    (!places.is_empty()).then(|| {
        format!(
            "{}: not ours; no setting was changed, schema pgrig_shard, a schema for each bucket \
             with its rows, and functions in schema public were made and dropped again",
            places.join(", ")
        )
    })
}

impl Site {
    /// Looks whether its hosts have room for a cluster, and marks what will be made there.
    ///
    /// # Errors
    /// [`Failure::Said`] for a database that has something else in it.
    pub(crate) fn claim_hosts(&self) -> Result<(), Failure> {
        for node in self.hosts() {
            forget(node)?;
            let said = |error: postgres::Error| Failure::Said {
                why: format!("looking at host {}: {}", node.name, server_words(&error)),
                hint: None,
            };
            let mut client = node.server.connect()?;
            if let Some(row) = client.query_opt(SOMETHING, &[]).map_err(said)? {
                let there: String = row.get(0);
                return Err(Failure::Said {
                    why: format!("the database of host {} is not empty: {there}", node.name),
                    hint: Some("give it an empty database: dbname=…".to_owned()),
                });
            }
            let mark = format!(
                "CREATE SCHEMA pgrig_shard; COMMENT ON SCHEMA pgrig_shard IS {}",
                literal(MARK)
            );
            client.batch_execute(&mark).map_err(said)?;
        }
        Ok(())
    }

    /// Takes away what was made on its hosts.
    pub(crate) fn leave_hosts(&self) {
        for node in self.hosts() {
            // What cannot be dropped now is dropped by the next run.
            let _ = forget(node);
        }
    }

    fn hosts(&self) -> impl Iterator<Item = &SiteNode> {
        let is_shard = |name: &String| {
            let node = self.plan.topology.node(name);
            node.is_some_and(|node| matches!(node.kind, NodeKind::Postgres(_)))
        };
        let is_host = move |node: &&SiteNode| {
            self.is_sharded() && matches!(node.server, Server::Target(_)) && is_shard(&node.name)
        };
        self.nodes.iter().filter(is_host)
    }
}

/// Drops a cluster's part of a run, this one's or one that was killed.
fn forget(node: &SiteNode) -> Result<(), Failure> {
    let mut client = node.server.connect()?;
    let said = |error: postgres::Error| Failure::Said {
        why: format!("dropping what was made on host {}: {}", node.name, server_words(&error)),
        hint: None,
    };
    let marked = client.query_opt(IS_OURS, &[&MARK]).map_err(said)?;
    if marked.is_none() {
        return Ok(());
    }
    let is_begun: bool = client.query_one(IS_BEGUN, &[]).map_err(said)?.get(0);
    if !is_begun {
        return client.batch_execute("DROP SCHEMA pgrig_shard CASCADE").map_err(said);
    }
    // One by one: all schemas at once would take more locks than a server has.
    for row in client.query(MADE, &[]).map_err(said)? {
        client.batch_execute(row.get(0)).map_err(said)?;
    }
    client.batch_execute("DROP SCHEMA pgrig_shard CASCADE").map_err(said)
}

/// What marks a cluster's schema as a run's.
const MARK: &str = "made by pgrig run, dropped when it is over";

const IS_OURS: &str = "
    SELECT FROM pg_namespace
    WHERE nspname = 'pgrig_shard' AND obj_description(oid, 'pg_namespace') = $1";

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
