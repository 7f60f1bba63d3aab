//! The state of servers that an action of a timeline waits for.

use super::sql_text;
use crate::action::server;
use crate::fields::Fields;
use crate::folder::StudyFolder;
use crate::problem::Problems;
use crate::topology::Topology;
use crate::value::Value;

/// A state that is waited for, and the longest time for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaitedState {
    /// The state.
    pub condition: AwaitedCondition,
    /// The longest time from the end of the action before, in milliseconds.
    pub within_ms: u64,
}

/// A state of servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AwaitedCondition {
    /// A query gives true.
    Sql {
        /// The server that is asked.
        node: String,
        /// The query.
        sql: String,
    },
    /// A subscriber has applied all that its publisher had written when the waiting began.
    CaughtUp {
        /// The subscriber.
        node: String,
    },
}

impl AwaitedState {
    /// `{ sql = "SELECT …", on = NODE, within = "5s" }`, `{ caught_up = NODE, within = "5s" }`
    pub(crate) fn parse(
        value: &Value,
        topology: &Topology,
        folder: &StudyFolder,
        problems: &Problems,
    ) -> Option<AwaitedState> {
        let fields = Fields::of("when", value, problems)?;
        let within_ms = fields.required("within").and_then(|_| fields.duration_ms("within"));
        let condition = match (fields.value("sql"), fields.value("caught_up")) {
            (Some(sql), None) => {
                let node = match fields.value("on") {
                    Some(_) => server(&fields, "on", topology).map(|node| node.name.clone()),
                    None => topology.first().map(|node| node.name.clone()),
                };
                let text = sql_text(sql, folder, problems);
                text.iter().for_each(|text| topology.check_text(text, &sql.span, problems));
                node.zip(text).map(|(node, sql)| AwaitedCondition::Sql { node, sql })
            }
            (None, Some(value)) => {
                let node = server(&fields, "caught_up", topology);
                if let Some(node) = node.filter(|node| node.subscribes.is_none()) {
                    let message = format!("caught_up: {} subscribes to no server", node.name);
                    problems.hinted(&value.span, message, "name a node with subscribes = { … }");
                }
                node.map(|node| AwaitedCondition::CaughtUp { node: node.name.clone() })
            }
            _ => {
                let hint = "write { sql = \"SELECT …\", on = NODE, within = \"5s\" } or \
                            { caught_up = NODE, within = \"5s\" }";
                problems.hinted(&value.span, "when: one state", hint);
                None
            }
        };
        fields.finish();
        Some(AwaitedState { condition: condition?, within_ms: within_ms? })
    }
}
