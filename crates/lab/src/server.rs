//! The server that a workload goes to and a probe looks at: a node of the lab, or an outside server.

use server::{Client, Limits};

use crate::error::Error;
use crate::managed::Managed;
use crate::node::Node;
use crate::target::Target;

/// Connects for administration, with these limits.
pub type Way = Box<dyn Fn(&Limits) -> Result<Client, Error> + Send>;

/// A server, pgrig's or the user's.
#[derive(Debug)]
pub enum Server {
    /// One that the lab runs.
    Node(Box<Node>),
    /// One that a process of a station has started.
    Managed(Box<Managed>),
    /// One of the user's.
    Target(Box<Target>),
}

impl Server {
    /// Its name in messages and records.
    pub fn name(&self) -> &str {
        match self {
            Self::Node(node) => node.name(),
            Self::Managed(managed) => managed.name(),
            Self::Target(_) => "target",
        }
    }

    /// The address for clients.
    pub fn conninfo(&self) -> String {
        match self {
            Self::Node(node) => node.endpoint().to_string(),
            Self::Managed(managed) => managed.endpoint().to_string(),
            Self::Target(target) => target.conninfo().to_owned(),
        }
    }

    /// Its major version.
    pub fn major(&self) -> u32 {
        match self {
            Self::Node(node) => node.installation().version().major,
            Self::Managed(managed) => managed.installation().version().major,
            Self::Target(target) => target.major(),
        }
    }

    /// A connection for administration.
    pub fn connect(&self) -> Result<Client, Error> {
        match self {
            Self::Node(node) => node.connect(),
            Self::Managed(managed) => managed.connect(),
            Self::Target(target) => target.connect(),
        }
    }

    /// The way to it, for sessions of other threads.
    pub fn way(&self) -> Way {
        match self {
            Self::Node(node) => {
                let admin = node.admin();
                Box::new(move |limits| admin.connect_within(limits))
            }
            Self::Managed(managed) => {
                let managed = managed.clone();
                Box::new(move |limits| managed.connect_within(limits))
            }
            Self::Target(target) => {
                let target = target.clone();
                Box::new(move |limits| target.connect_within(limits))
            }
        }
    }

    /// The first value that a statement gives, as text.
    pub fn value(&self, statement: &str) -> Result<Option<String>, Error> {
        match self {
            Self::Node(node) => node.value(statement),
            Self::Managed(managed) => managed.value(statement),
            Self::Target(target) => target.value(statement),
        }
    }

    /// The node, if the lab runs it: only then can it be started, stopped and configured.
    pub fn node(&mut self) -> Option<&mut Node> {
        match self {
            Self::Node(node) => Some(node),
            Self::Managed(_) | Self::Target(_) => None,
        }
    }
}
