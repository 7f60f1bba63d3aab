//! The network between two nodes, where a study wants to slow it down or cut it.

use crate::duration;
use crate::fields::{self, Fields};
use crate::node::TopologyNode;
use crate::problem::Problems;
use crate::value::{KeyValue, Value, is_name};

/// The network between two nodes of which one connects to the other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeLink {
    /// The name in the topology.
    pub name: String,
    /// The two ends. Of a cut in one direction the second is the far end.
    pub between: [String; 2],
    /// Time that a packet takes in each direction, in addition to its usual time; in microseconds.
    pub delay_us: u64,
    /// Bits a second in each direction, at most; none for no limit.
    pub bandwidth_bits: Option<u64>,
    /// Implementation of the link.
    pub by: LinkKind,
}

/// Implementation of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkKind {
    /// A process that passes bytes on: any user may run one, and a cut closes or stalls it.
    Relay,
    /// A network namespace of the far end's own: packets can be dropped without a word. As root.
    Namespace,
}

impl NodeLink {
    /// Of a study's `links`; its ends are nodes of the topology of which one connects to the other.
    pub(crate) fn parse(
        entry: &KeyValue,
        nodes: &[TopologyNode],
        problems: &Problems,
    ) -> Option<NodeLink> {
        if !is_name(&entry.key) {
            problems.add(&entry.key_span, format!("\"{}\" cannot be a name", entry.key));
        }
        let fields = Fields::of("a link", &entry.value, problems)?;
        fields.required("between");
        // A timeline that names the link must not be told that it does not exist.
        let between = between(&fields, nodes).unwrap_or_default();
        let link = NodeLink {
            name: entry.key.clone(),
            between,
            // A link without a delay adds none.
            delay_us: fields
                .value("delay")
                .and_then(|value| delay_us("delay", value, problems))
                .unwrap_or(0),
            bandwidth_bits: fields.value("bandwidth").and_then(|v| bandwidth(v, problems)),
            by: fields.choice("by", KINDS).unwrap_or(LinkKind::Relay),
        };
        let is_at_tcp = |node: &&TopologyNode| node.by_tcp && link.between.contains(&node.name);
        if let (Some(node), Some(by)) = (nodes.iter().find(is_at_tcp), fields.value("by"))
            && link.by == LinkKind::Namespace
        {
            let message =
                format!("{} listens on loopback, which is not in its namespace", node.name);
            problems.hinted(
                &by.span,
                message,
                "leave out listen = \"tcp\" there, or write \"relay\"",
            );
        }
        fields.finish();
        Some(link)
    }
}

/// A duration down to the microsecond.
pub(crate) fn delay_us(key: &str, value: &Value, problems: &Problems) -> Option<u64> {
    let text = fields::text(key, value, problems)?;
    match duration::parse_us(text) {
        Ok(us) => Some(us),
        Err(why) => {
            let hint = "write a number with a unit: 200us, 0.2ms, 5ms";
            problems.hinted(&value.span, format!("{key}: {why}"), hint);
            None
        }
    }
}

fn between(fields: &Fields<'_>, nodes: &[TopologyNode]) -> Option<[String; 2]> {
    let problems = fields.problems;
    let ends = fields.texts("between");
    let [(one, _), (other, _)] = &ends[..] else {
        let span = fields.value("between").map_or(fields.span(), |value| &value.span);
        problems.add(span, "a link is between two nodes");
        return None;
    };
    let mut found = Vec::new();
    for (name, span) in &ends {
        match nodes.iter().find(|node| node.name == *name) {
            Some(node) => found.push(node),
            None => problems.unknown(span, "node", name, nodes.iter().map(|n| n.name.as_str())),
        }
    }
    let [a, b] = found[..] else { return None };
    let joined =
        a.connects_to().contains(&b.name.as_str()) || b.connects_to().contains(&a.name.as_str());
    if !joined {
        let message = format!("neither of {one} and {other} connects to the other");
        problems.add(&ends[1].1, message);
        return None;
    }
    Some([one.clone(), other.clone()])
}

/// tc's units: `100Mbit` are 100,000,000 bits a second.
fn bandwidth(value: &Value, problems: &Problems) -> Option<u64> {
    let text = fields::text("bandwidth", value, problems)?;
    let units = [("kbit", 1_000), ("Mbit", 1_000_000), ("Gbit", 1_000_000_000u64)];
    let bits = units.into_iter().find_map(|(unit, factor)| {
        let number: u64 = text.strip_suffix(unit)?.trim().parse().ok()?;
        number.checked_mul(factor).filter(|bits| *bits > 0)
    });
    if bits.is_none() {
        let hint = "write bits a second with a unit: 512kbit, 100Mbit, 1Gbit";
        problems.hinted(&value.span, format!("\"{text}\" is not a bandwidth"), hint);
    }
    bits
}

const KINDS: &[(&str, LinkKind)] =
    &[("relay", LinkKind::Relay), ("namespace", LinkKind::Namespace)];
