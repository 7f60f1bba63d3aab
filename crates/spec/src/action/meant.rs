//! Nodes and links that an action names, as the topology has them.

use std::ops::Range;

use crate::fields::Fields;
use crate::link::NodeLink;
use crate::node::TopologyNode;
use crate::topology::Topology;
use crate::value::Value;

/// A node that the topology has.
pub(crate) fn node<'t>(
    fields: &Fields<'_>,
    key: &'static str,
    topology: &'t Topology,
) -> Option<&'t TopologyNode> {
    let name = fields.text(key)?;
    let found = topology.node(name);
    if found.is_none() {
        let known = topology.nodes.iter().map(|node| node.name.as_str());
        fields.problems.unknown(span_of(fields, key), "node", name, known);
    }
    found
}

/// A node that understands SQL.
pub(crate) fn server<'t>(
    fields: &Fields<'_>,
    key: &'static str,
    topology: &'t Topology,
) -> Option<&'t TopologyNode> {
    let node = node(fields, key, topology)?;
    if node.has_server() {
        return Some(node);
    }
    let message = format!("{} is {}, no PostgreSQL server", node.name, node.noun());
    fields.problems.add(span_of(fields, key), message);
    None
}

/// A server that the rig starts itself.
pub(super) fn own_server(
    fields: &Fields<'_>,
    key: &'static str,
    topology: &Topology,
) -> Option<String> {
    let node = server(fields, key, topology)?;
    if !node.is_postgres() {
        let message =
            format!("{} is {}, whose server pgrig does not start", node.name, node.noun());
        let hint = "a command of the study can do it: run = [\"PROGRAM\"], on = NODE";
        fields.problems.hinted(span_of(fields, key), message, hint);
        return None;
    }
    Some(node.name.clone())
}

pub(super) fn link_named<'t>(
    fields: &Fields<'_>,
    key: &'static str,
    topology: &'t Topology,
) -> Option<&'t NodeLink> {
    let name = fields.text(key)?;
    let found = topology.link(name);
    if found.is_none() {
        let known = topology.links.iter().map(|link| link.name.as_str());
        fields.problems.unknown(span_of(fields, key), "link", name, known);
    }
    found
}

pub(super) fn span_of<'t>(fields: &'t Fields<'_>, key: &'static str) -> &'t Range<usize> {
    fields.value(key).map_or(fields.span(), |value: &Value| &value.span)
}
