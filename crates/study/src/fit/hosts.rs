//! Obstacles to a study whose shards are hosts of the user's, and notes on what was done there.

use std::collections::{BTreeMap, BTreeSet};

use site::{Hosts, SPARE_CONNECTIONS, SitePlan, connections};
use spec::{DataReset, NodeKind, Study, TrialPoint};
use terms::grouped;

use crate::fit::has::MORE_CONNECTIONS;
use crate::fit::misfit::PointMisfit;

/// Obstacles to a point with hosts that have so many connections to spare.
pub(crate) fn misfits(point: &TrialPoint, hosts: &BTreeMap<String, u32>) -> Vec<PointMisfit> {
    let nodes = point.topology.nodes.iter().filter_map(|node| Some((node, hosts.get(&node.name)?)));
    let mut misfits = Vec::new();
    for (node, free) in nodes {
        let name = &node.name;
        let mut add = |amount: u32, needs: String, has: String, hint: &str| {
            let (what, amount) = (format!("host {name}"), u64::from(amount));
            misfits.push(PointMisfit { what, amount, needs, has, hint: Some(hint.to_owned()) });
        };
        let shards = site::proxy(&point.topology);
        let is_shard = shards.is_some_and(|(_, proxy)| proxy.to.contains(name));
        let touches = point.timeline.iter().map(|timed| &timed.action);
        let touched = touches.into_iter().find(|a| a.target() == name && !a.is_sql());
        let has_front = |other: &&spec::TopologyNode| {
            !matches!(other.kind, NodeKind::Plproxy(_)) && other.connects_to().contains(&&**name)
        };
        let front = point.topology.nodes.iter().find(has_front);
        let needed = connections(point, name) + SPARE_CONNECTIONS;
        if !is_shard || point.data.buckets.is_none() {
            add(
                1,
                format!("{name} to be the rig's"),
                "a host".to_owned(),
                "only shards can be hosts",
            );
        } else if point.data.reset != DataReset::Keep {
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
            add(needed, needs, has, MORE_CONNECTIONS);
        }
    }
    misfits
}

/// The points for which a host is taken already: its database holds one cluster.
pub(crate) fn taken(
    study: &Study,
    points: &[usize],
    hosts: &BTreeMap<String, u32>,
) -> Vec<(usize, Vec<PointMisfit>)> {
    let mut holders: BTreeMap<&str, String> = BTreeMap::new();
    let mut taken = Vec::new();
    for site in SitePlan::all(study, points) {
        let is_here = |name: &&String| site.topology.node(name).is_some();
        let used: Vec<&String> = hosts.keys().filter(is_here).collect();
        let holder = used.iter().find_map(|name| Some((*name, holders.get(name.as_str())?)));
        match holder {
            None => holders.extend(used.iter().map(|name| (name.as_str(), site.name(study)))),
            Some((name, holder)) => {
                let misfit = PointMisfit {
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

/// Note for the record on what was done on the hosts of these points.
pub(crate) fn note<'p>(
    hosts: &Hosts,
    mut points: impl Iterator<Item = &'p TrialPoint>,
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
