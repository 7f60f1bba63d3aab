//! The number of connections that a server gets at a point.

use spec::{TrialPoint, Workload};

/// Connections that a node gets at a point: from clients, and from the poolers, guards and
/// proxies in front of it. A client of several hosts may come to any of them.
pub fn connections(point: &TrialPoint, node: &str) -> u32 {
    let comes = |workload: &&Workload| workload.to.iter().any(|to| to == node);
    let clients: u32 = point.workloads.iter().filter(comes).map(|w| w.clients).sum();
    let others = point.topology.nodes.iter().filter(|other| other.connects_to().contains(&node));
    let through = others.map(|other| other.sessions(node, connections(point, &other.name)));
    clients + through.sum::<u32>()
}

/// Connections beside those of clients: the probe's, the runner's, and what is reserved for
/// superusers.
pub const SPARE_CONNECTIONS: u32 = 10;
