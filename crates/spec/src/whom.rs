//! The server that a check looks at.

use std::fmt;

use crate::action;
use crate::fields::{self, Fields};
use crate::topology::Topology;

/// A server: one by its name, or the one that takes writes when it is asked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Whom {
    /// The server of that name.
    Node(String),
    /// The server that takes writes at that moment; of several, the one with the latest timeline.
    PrimaryNow,
}

impl Whom {
    /// The form of [`Whom::PrimaryNow`] in study.toml; no node can have the name.
    pub const PRIMARY_NOW: &'static str = "the primary now";

    /// The name of the server, where it is known before anybody is asked.
    pub fn name(&self) -> Option<&str> {
        match self {
            Whom::Node(name) => Some(name),
            Whom::PrimaryNow => None,
        }
    }

    pub(crate) fn parse(
        fields: &Fields<'_>,
        key: &'static str,
        topology: &Topology,
    ) -> Option<Whom> {
        let value = fields.value(key)?;
        if fields::text(key, value, fields.problems)? == Whom::PRIMARY_NOW {
            return Some(Whom::PrimaryNow);
        }
        let node = action::server(fields, key, topology)?;
        Some(Whom::Node(node.name.clone()))
    }
}

impl fmt::Display for Whom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name().unwrap_or(Whom::PRIMARY_NOW))
    }
}
