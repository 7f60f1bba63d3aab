//! What streaming replication needs of a node.

use super::{Node, Place};
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::node::{Backup, Upstream};
use crate::remote::{NodeVerb, Verb};

impl Node {
    /// The way of this machine's administrators; of a node here the Unix socket, which asks for no
    /// password.
    pub(in crate::anywhere) fn inner_endpoint(&self) -> Endpoint {
        match &self.0 {
            Place::Here(node) => node.admin_endpoint(),
            Place::There(node) => node.made.endpoint.clone(),
        }
    }

    /// What its stream is called.
    pub(in crate::anywhere) fn application_name(&self) -> &str {
        match &self.0 {
            Place::Here(node) => node.application_name(),
            Place::There(node) => node.config.application_name.as_deref().unwrap_or(&node.name),
        }
    }

    pub(in crate::anywhere) fn back_up_from(
        &mut self,
        from: Backup,
        upstream: Upstream,
    ) -> Result<(), Error> {
        match &mut self.0 {
            Place::Here(node) => node.init_from_backup(&from, upstream),
            Place::There(node) => node.ask(NodeVerb::InitFromBackup { from, upstream }),
        }
    }

    pub(in crate::anywhere) fn stream_from(&mut self, upstream: Upstream) -> Result<(), Error> {
        match &mut self.0 {
            Place::Here(node) => {
                node.follow(upstream);
                Ok(())
            }
            Place::There(node) => node.ask(NodeVerb::Follow(upstream)),
        }
    }

    /// The end of its log since it was last started.
    pub(in crate::anywhere) fn log_tail(&self) -> String {
        match &self.0 {
            Place::Here(node) => node.log_tail(),
            Place::There(node) => node.tell(Verb::LogTail).unwrap_or_default(),
        }
    }
}
