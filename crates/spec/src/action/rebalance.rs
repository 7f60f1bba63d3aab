//! The action that moves the rows of a cluster.

use super::Action;
use super::meant::{node, span_of};
use crate::fields::Fields;
use crate::node::NodeKind;
use crate::topology::Topology;

/// A cluster's proxy, and the servers that shall hold its data.
pub(super) fn parse(fields: &Fields<'_>, topology: &Topology) -> Option<Action> {
    let node = node(fields, "rebalance", topology)?;
    if !matches!(node.kind, NodeKind::Plproxy(_)) {
        let message = format!("{} is no PL/Proxy server", node.name);
        fields.problems.add(span_of(fields, "rebalance"), message);
        return None;
    }
    if let NodeKind::Plproxy(proxy) = &node.kind
        && proxy.partitions.is_some()
    {
        let message = format!("{} has partitions of its own, which stay where they are", node.name);
        fields.problems.add(span_of(fields, "rebalance"), message);
    }
    fields.required("to")?;
    let names: Vec<String> = fields.texts("to").into_iter().map(|(name, _)| name).collect();
    let to = topology.all_called(&names, span_of(fields, "to"), fields.problems);
    Some(Action::Rebalance { node: node.name.clone(), to })
}
