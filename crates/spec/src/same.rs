//! Checks that compare two servers: their rows, and what their catalogs say.

use crate::action::server;
use crate::fields::Fields;
use crate::topology::Topology;

/// A comparison of the rows of two servers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SameRows {
    /// The two servers.
    pub nodes: [String; 2],
    /// The compared tables, with their schema unless it is public; all tables where it is empty.
    pub tables: Vec<String>,
    /// The server that may have rows of its own: it went on while the other one had stopped.
    pub extra: Option<String>,
}

impl SameRows {
    /// `{ same_rows = ["old", "new"], tables = ["stock"], extra = "new" }`
    pub(crate) fn parse(fields: &Fields<'_>, topology: &Topology) -> Option<SameRows> {
        let nodes = two(fields, "same_rows", topology);
        let tables = fields.texts("tables").into_iter().map(|(name, _)| name).collect();
        let extra = match fields.value("extra") {
            Some(value) => {
                let extra = server(fields, "extra", topology)?.name.clone();
                if nodes.as_ref().is_some_and(|nodes| !nodes.contains(&extra)) {
                    let message = format!("extra: {extra} is none of the two servers");
                    fields.problems.add(&value.span, message);
                }
                Some(extra)
            }
            None => None,
        };
        Some(SameRows { nodes: nodes?, tables, extra })
    }
}

/// The two servers behind a key.
pub(crate) fn two(
    fields: &Fields<'_>,
    key: &'static str,
    topology: &Topology,
) -> Option<[String; 2]> {
    let span = fields.required(key).map(|value| value.span.clone())?;
    let named: Vec<String> = fields.texts(key).into_iter().map(|(name, _)| name).collect();
    let names = topology.all_called(&named, &span, fields.problems);
    let has_server = |name: &String| topology.node(name).is_some_and(|node| node.has_server());
    match <[String; 2]>::try_from(names) {
        Ok(two) if two[0] != two[1] && two.iter().all(has_server) => Some(two),
        _ => {
            let hint = format!("write {key} = [\"old\", \"new\"]");
            fields.problems.hinted(&span, format!("{key} compares two servers"), hint);
            None
        }
    }
}
