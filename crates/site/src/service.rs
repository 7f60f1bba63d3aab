//! Nodes of a topology as they stand: one trait, and a file for each kind that implements it.
//!
//! A server of PostgreSQL (PL/Proxy's and a manager's included) and a machine keep data and stand for as
//! long as their site. What is in front of servers keeps none: each trial makes its own, and trials with
//! different fronts share a site.

use std::fmt;
use std::path::Path;

use lab::{Endpoint, Part};
use spec::{NodeKind, TopologyNode};

use crate::error::Error;
use crate::labs::Labs;
use crate::node::SiteNode;

mod guard;
mod machine;
mod pgbouncer;
mod postgres;

pub use guard::RunningGuard;

/// A node of a topology as it stands.
pub trait Service: fmt::Debug + Send + Sync {
    /// Its name in the study.
    fn name(&self) -> &str;

    /// The part of the lab that runs; none for a server of the user's or of a manager.
    fn part(&self) -> Option<&Part>;

    /// The same, to be started, stopped, paused or killed.
    fn part_mut(&mut self) -> Option<&mut Part>;

    /// The connection string of clients, in keyword form; none where they cannot go.
    fn conninfo(&self) -> Option<String>;

    /// The address at which other nodes reach it; none where they cannot.
    fn route(&self) -> Option<Endpoint> {
        None
    }

    /// Waits until it does its work. It was started.
    fn ready(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Starts it, and waits until it does its work.
    fn start(&mut self) -> Result<(), Error> {
        if let Some(part) = self.part_mut() {
            part.start()?;
        }
        self.ready()
    }

    /// True if it runs, or if that is not for the rig to say.
    fn is_alive(&self) -> Result<bool, Error> {
        Ok(self.part().map_or(Ok(true), Part::is_running)?)
    }

    /// Its root process, while the rig knows it.
    fn pid(&self) -> Option<u32> {
        u32::try_from(self.part()?.host_pid()?).ok()
    }

    /// The name of the host that it is on; none on this machine, and for a server of the user's.
    fn host(&self) -> Option<&str> {
        self.part()?.host()
    }

    /// Its log for people, as far as it is the lab's.
    fn log_text(&self) -> Option<String> {
        Some(self.part()?.log_text())
    }

    /// The address of its console, if it has one that the probes know.
    fn console(&self) -> Option<String> {
        None
    }

    /// The guard, if it is one.
    fn guarding(&self) -> Option<&RunningGuard> {
        None
    }
}

/// The servers that others reach, by their names, and the ways there.
pub(crate) fn routes(nodes: &[SiteNode]) -> impl Iterator<Item = (&str, Endpoint)> {
    nodes.iter().filter_map(|node| Some((node.name.as_str(), node.route()?)))
}

/// The place where fronts are made.
pub(crate) struct FrontBuilder<'a> {
    pub(crate) labs: &'a Labs,
    /// The rig's own program, of which a guard is a command.
    pub(crate) rig: &'a Path,
    /// The endpoint to which the node connects to reach the one of that name.
    pub(crate) way: &'a dyn Fn(&str) -> Option<Endpoint>,
}

impl FrontBuilder<'_> {
    /// Makes what stands in front of servers, not yet started; none for a node with data of its own.
    pub(crate) fn make(&self, node: &TopologyNode) -> Result<Option<Box<dyn Service>>, Error> {
        match &node.kind {
            NodeKind::Pgbouncer(pooler) => pgbouncer::make(node, pooler, self),
            NodeKind::Guard(guard) => guard::make(node, guard, self),
            NodeKind::Postgres(_) | NodeKind::Plproxy(_) | NodeKind::Machine(_) => Ok(None),
        }
    }

    /// One lab holds the fronts of all sites, two of which may stand at once.
    fn name_in_lab(&self, node: &TopologyNode) -> String {
        format!("{}-{}", node.name, self.labs.new_number())
    }
}
