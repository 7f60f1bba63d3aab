//! A site: the servers of a topology with their data, and what has which name in it.

use std::collections::BTreeMap;

use lab::{Endpoint, Node, Part, Server, Snapshot};

use crate::error::Error;
use crate::hosts;
use crate::link::SiteLink;
use crate::node::SiteNode;
use crate::plan::SitePlan;
use crate::service::Service;
use crate::stations::{SiteStation, Stations};
use crate::throttles::Throttles;

/// One set of servers with one set of data.
#[derive(Debug)]
pub struct Site {
    /// The plan that it was built from.
    pub plan: SitePlan,
    /// Its servers, in the order of the topology.
    pub nodes: Vec<SiteNode>,
    /// The services in front of them in the trial under way.
    pub services: Vec<Service>,
    /// The machines, whose programs the study names.
    pub stations: Stations,
    /// The links between them in the trial under way.
    pub links: Vec<SiteLink>,
    /// The limits on the I/O of its servers in the trial under way.
    pub throttles: Throttles,
    /// Connections for which every server of it must have room at some point.
    pub(crate) connections: u32,
    /// Copies of each node's data as they were built, where trials begin with them.
    pub(crate) snapshots: Vec<Snapshot>,
    pub(crate) state: DataState,
    /// The rows of its cluster as they were built, if it has one.
    pub rows_built: Option<shard::Audit>,
}

/// The state of the data since they were built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataState {
    AsBuilt,
    Used,
}

impl Site {
    /// The one server of a target.
    pub(crate) fn outside(plan: SitePlan, node: SiteNode) -> Site {
        let (services, stations, links, throttles, snapshots, rows_built) = Default::default();
        let (nodes, connections, state) = (vec![node], 0, DataState::Used);
        Site {
            plan,
            nodes,
            services,
            stations,
            links,
            throttles,
            connections,
            snapshots,
            state,
            rows_built,
        }
    }

    /// Makes sure that every server of the lab's still runs, but for those that are down on purpose.
    ///
    /// # Errors
    /// Which one does not.
    pub fn check_alive(&self, is_down: &dyn Fn(&str) -> bool) -> Result<(), Error> {
        for (index, node) in self.nodes.iter().enumerate() {
            let Some(server) = self.server(index).filter(|_| !is_down(&node.name)) else {
                continue;
            };
            if !server.is_running()? {
                return Err(Error::Died { node: node.name.clone() });
            }
        }
        Ok(())
    }

    /// Makes sure that every server still answers, but for those that are down on purpose.
    ///
    /// # Errors
    /// The words of one of them, or that it says nothing.
    pub fn check_answers(&self, is_down: &dyn Fn(&str) -> bool) -> Result<(), Error> {
        // If a managed server runs is for its manager to say.
        let is_asked = |node: &&SiteNode| !is_down(&node.name) && !node.is_managed();
        let asked = self.nodes.iter().filter(is_asked);
        for node in asked {
            node.server.value("SELECT 1")?;
        }
        Ok(())
    }

    /// The server of that index, if the lab runs it.
    #[must_use]
    pub fn server(&self, index: usize) -> Option<&Node> {
        match &self.nodes[index].server {
            Server::Node(node) => Some(node),
            Server::Managed(_) | Server::Target(_) => None,
        }
    }

    /// The endpoint to which `from` connects to reach the server `to`: over the link between them, or
    /// directly.
    #[must_use]
    pub fn way(&self, from: &str, to: &str) -> Option<Endpoint> {
        self.link_between(from, to).or_else(|| self.endpoint(to))
    }

    /// The endpoint to which `from` connects to reach `to` over the link between them, if there is one.
    pub(crate) fn link_between(&self, from: &str, to: &str) -> Option<Endpoint> {
        self.links.iter().find(|link| link.joins(from, to)).map(|link| link.link.endpoint())
    }

    /// The link of that name.
    pub fn link(&mut self, name: &str) -> Option<&mut SiteLink> {
        self.links.iter_mut().find(|link| link.name() == name)
    }

    pub(crate) fn endpoint(&self, name: &str) -> Option<Endpoint> {
        let at = self.nodes.iter().position(|node| node.name == name)?;
        self.server(at).map(Node::endpoint)
    }

    /// The node that the data are on.
    #[must_use]
    pub fn data_node(&self) -> &SiteNode {
        let named = self.nodes.iter().find(|node| node.name == self.plan.data.node);
        named.unwrap_or(&self.nodes[0])
    }

    /// The server of that name.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<&SiteNode> {
        self.nodes.iter().find(|node| node.name == name)
    }

    /// The server of that name, if the lab runs it.
    pub fn server_mut(&mut self, name: &str) -> Option<&mut Node> {
        self.nodes.iter_mut().find(|node| node.name == name)?.server.node()
    }

    /// The server or service of that name, if the lab runs it.
    pub fn part(&mut self, name: &str) -> Option<&mut Part> {
        if let Some(service) = self.services.iter_mut().find(|service| service.name == name) {
            return Some(service.part_mut());
        }
        if let Some(one) = self.stations.get_mut(name) {
            return Some(&mut one.station);
        }
        let node = self.nodes.iter_mut().find(|node| node.name == name)?;
        node.server.node().map(|node| &mut **node)
    }

    /// The machine of that name, if it is one.
    pub fn station(&mut self, name: &str) -> Option<&mut SiteStation> {
        self.stations.get_mut(name)
    }

    /// The addresses that clients connect to, by the name of the server or service.
    #[must_use]
    pub fn conninfos(&self) -> BTreeMap<String, String> {
        let servers = self.nodes.iter().map(|node| (node.name.clone(), node.conninfo.clone()));
        let services = self.services.iter();
        let services = services.filter_map(|f| Some((f.name.clone(), f.conninfo.clone()?)));
        let stations = self.stations.conninfos.clone();
        servers.chain(services).chain(stations).collect()
    }

    /// The root process of each server, service and link that runs, by its name.
    pub fn processes(&self) -> impl Iterator<Item = (&str, u32)> {
        let servers = self.nodes.iter().map(|node| (node.name.as_str(), node.pid()));
        let services = self.services.iter().map(|service| (service.name.as_str(), service.pid()));
        let links = self.links.iter().map(|link| (link.name(), link.pid()));
        servers.chain(services).chain(links).filter_map(|(name, pid)| Some((name, pid?)))
    }

    /// The servers, services and links that are on hosts, with their hosts.
    pub fn hosts(&self) -> impl Iterator<Item = (&str, &str)> {
        let nodes = self.nodes.iter().map(|node| (node.name.as_str(), node.host()));
        let services = self.services.iter().map(|one| (one.name.as_str(), one.host()));
        let links = self.links.iter().map(|link| (link.name(), link.host()));
        nodes.chain(services).chain(links).filter_map(|(name, host)| Some((name, host?)))
    }

    /// The root process of the one of that name, while it runs.
    #[must_use]
    pub fn pid(&self, name: &str) -> Option<u32> {
        self.processes().find(|(known, _)| *known == name).map(|(_, pid)| pid)
    }
}

/// Removes what it has made on the user's servers.
impl Drop for Site {
    fn drop(&mut self) {
        hosts::leave(&self.plan.topology, &self.nodes);
    }
}
