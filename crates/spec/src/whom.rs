//! The server that a check looks at.

use std::fmt;

use crate::action;
use crate::fields::{self, Fields};
use crate::topology::Topology;

/// A server: one by its name, or the one that takes writes when it is asked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SqlTarget {
    /// The server of that name.
    Node(String),
    /// The server that takes writes at that moment; of several, the one with the latest timeline.
    PrimaryNow,
}

impl SqlTarget {
    /// The form of [`SqlTarget::PrimaryNow`] in study.toml; no node can have the name.
    pub const PRIMARY_NOW: &'static str = "the primary now";

    /// The name of the server, where it is known before anybody is asked.
    pub fn name(&self) -> Option<&str> {
        match self {
            SqlTarget::Node(name) => Some(name),
            SqlTarget::PrimaryNow => None,
        }
    }

    pub(crate) fn parse(
        fields: &Fields<'_>,
        key: &'static str,
        topology: &Topology,
    ) -> Option<SqlTarget> {
        let value = fields.value(key)?;
        if fields::text(key, value, fields.problems)? == SqlTarget::PRIMARY_NOW {
            return Some(SqlTarget::PrimaryNow);
        }
        let node = action::server(fields, key, topology)?;
        Some(SqlTarget::Node(node.name.clone()))
    }
}

impl fmt::Display for SqlTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name().unwrap_or(SqlTarget::PRIMARY_NOW))
    }
}
