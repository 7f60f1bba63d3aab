//! A PostgreSQL server: one of the lab's (PL/Proxy's included), of a manager's, or of the user's.

use lab::{Endpoint, Part, Server};

use crate::node::SiteNode;
use crate::service::Service;

impl Service for SiteNode {
    fn name(&self) -> &str {
        &self.name
    }

    fn part(&self) -> Option<&Part> {
        match &self.server {
            Server::Node(node) => Some(node),
            Server::Managed(_) | Server::Target(_) => None,
        }
    }

    fn part_mut(&mut self) -> Option<&mut Part> {
        self.server.node().map(|node| &mut **node)
    }

    fn host(&self) -> Option<&str> {
        SiteNode::host(self)
    }

    fn conninfo(&self) -> Option<String> {
        Some(self.conninfo.clone())
    }

    fn route(&self) -> Option<Endpoint> {
        match &self.server {
            Server::Node(node) => Some(node.endpoint()),
            Server::Managed(managed) => Some(managed.endpoint().clone()),
            Server::Target(_) => None,
        }
    }
}
