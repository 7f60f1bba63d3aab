//! A site: the servers of a topology with their data, and what has which name in it.

use std::collections::{BTreeMap, BTreeSet};

use lab::{Endpoint, Node, Part, Server, Snapshot};
use spec::VariableValues;

use crate::error::Error;
use crate::hosts;
use crate::link::SiteLink;
use crate::names::Names;
use crate::node::SiteNode;
use crate::plan::SitePlan;
use crate::restorable::RestoreSources;
use crate::service::{Service, routes};
use crate::stations::{SiteStation, Stations};
use crate::throttles::Throttles;
use crate::upgrade::SiteUpgrade;

/// One set of servers with one set of data.
#[derive(Debug)]
pub struct Site {
    /// The plan that it was built from.
    pub plan: SitePlan,
    /// Its servers, in the order of the topology.
    pub nodes: Vec<SiteNode>,
    /// What stands in front of them in the trial under way.
    pub fronts: Vec<Box<dyn Service>>,
    /// The machines, whose programs the study names.
    pub stations: Stations,
    /// The links between them in the trial under way.
    pub links: Vec<SiteLink>,
    /// The limits on the I/O of its servers in the trial under way.
    pub throttles: Throttles,
    /// The servers whose disks an action of the trial under way has slowed down.
    pub slow_disks: BTreeSet<String>,
    /// Connections for which every server of it must have room at some point.
    pub(crate) connections: u32,
    /// Copies of each node's data as they were built, where trials begin with them.
    pub(crate) snapshots: Vec<Snapshot>,
    pub(crate) state: DataState,
    /// What its servers can be restored from and to in the trial under way.
    pub restorable: RestoreSources,
    /// What the cluster lacked to be whole before the trial under way, so that it was made anew; none where it went on.
    pub was_made_anew: Option<String>,
    /// The rows of its cluster as they were built, if it has one.
    pub rows_built: Option<shard::ClusterAudit>,
    /// The upgrade that made its data, if one did.
    pub upgrade: Option<SiteUpgrade>,
}

/// The state of the data since they were built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataState {
    AsBuilt,
    Used,
}

impl Site {
    /// Servers with nothing in front of them and no connections planned.
    pub(crate) fn new(plan: SitePlan, nodes: Vec<SiteNode>, state: DataState) -> Site {
        let (fronts, stations, links, snapshots, rows_built) = Default::default();
        let (throttles, slow_disks, connections) = Default::default();
        Site {
            plan,
            nodes,
            fronts,
            stations,
            links,
            throttles,
            slow_disks,
            connections,
            snapshots,
            state,
            restorable: RestoreSources::default(),
            was_made_anew: None,
            rows_built,
            upgrade: None,
        }
    }

    /// All that stands: what is in front of servers, the machines, the servers.
    pub fn services(&self) -> impl Iterator<Item = &dyn Service> {
        let fronts = self.fronts.iter().map(|front| &**front);
        let stations = self.stations.iter().map(|one| one as &dyn Service);
        fronts.chain(stations).chain(self.nodes.iter().map(|node| node as &dyn Service))
    }

    /// The part of the lab of that name, to be changed: a machine, where a server of a manager has
    /// the same name.
    pub fn part(&mut self, name: &str) -> Option<&mut Part> {
        let fronts = self.fronts.iter_mut().map(|front| &mut **front as &mut dyn Service);
        let stations = self.stations.iter_mut().map(|one| one as &mut dyn Service);
        let nodes = self.nodes.iter_mut().map(|node| node as &mut dyn Service);
        let mut all = fronts.chain(stations).chain(nodes);
        all.find(|one| one.name() == name)?.part_mut()
    }

    /// Makes sure that everything still runs, but for what is down on purpose.
    pub fn check_alive(&self, is_down: &dyn Fn(&str) -> bool) -> Result<(), Error> {
        for one in self.services().filter(|one| !is_down(one.name())) {
            if !one.is_alive()? {
                return Err(Error::Died { node: one.name().to_owned() });
            }
        }
        Ok(())
    }

    /// Makes sure that every server still answers, but for those that are down on purpose.
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
    pub fn server(&self, index: usize) -> Option<&Node> {
        match &self.nodes[index].server {
            Server::Node(node) => Some(node),
            Server::Managed(_) | Server::Target(_) => None,
        }
    }

    /// The endpoint to which `from` connects to reach the server `to`: over the link between them, or
    /// directly.
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
    pub fn data_node(&self) -> &SiteNode {
        let named = self.nodes.iter().find(|node| node.name == self.plan.data.node);
        named.expect("the node that a study names for its data is a server of the site")
    }

    /// The server of that name.
    pub fn node(&self, name: &str) -> Option<&SiteNode> {
        self.nodes.iter().find(|node| node.name == name)
    }

    /// The server of that name, if the lab runs it.
    pub fn server_mut(&mut self, name: &str) -> Option<&mut Node> {
        self.nodes.iter_mut().find(|node| node.name == name)?.server.node()
    }

    /// The machine of that name, if it is one.
    pub fn station(&mut self, name: &str) -> Option<&mut SiteStation> {
        self.stations.iter_mut().find(|one| one.name == name)
    }

    /// The text with what is called by names in it, as on the node of that name.
    pub fn with_names(&self, name: &str, text: &str) -> String {
        if let Some(names) = self.stations.names_on(name) {
            return names.fill(text);
        }
        let mut servers = Names::of_servers(routes(&self.nodes));
        servers.add_places(self.nodes.iter());
        let names = if self.stations.is_empty() { &servers } else { self.stations.names() };
        names.of(name, &VariableValues::new()).fill(text)
    }

    /// The addresses that clients connect to, by the name of the server or service.
    pub fn conninfos(&self) -> BTreeMap<String, String> {
        let mut conninfos = BTreeMap::new();
        for (name, conninfo) in self.services().map(|one| (one.name(), one.conninfo())) {
            // A machine may have another way in than the server on it.
            if let Some(conninfo) = conninfo {
                conninfos.entry(name.to_owned()).or_insert(conninfo);
            }
        }
        conninfos
    }

    /// The root process of each server, service and link that runs, by its name.
    pub fn processes(&self) -> impl Iterator<Item = (&str, u32)> {
        let services = self.services().map(|one| (one.name(), one.pid()));
        let links = self.links.iter().map(|link| (link.name(), link.pid()));
        services.chain(links).filter_map(|(name, pid)| Some((name, pid?)))
    }

    /// The servers, services and links that are on hosts, with their hosts.
    pub fn hosts(&self) -> impl Iterator<Item = (&str, &str)> {
        let services = self.services().map(|one| (one.name(), one.host()));
        let links = self.links.iter().map(|link| (link.name(), link.host()));
        services.chain(links).filter_map(|(name, host)| Some((name, host?)))
    }

    /// The root process of the one of that name, while it runs.
    pub fn pid(&self, name: &str) -> Option<u32> {
        // Another one may be about to stop, and is not asked.
        let links = self.links.iter().filter(|link| link.name() == name);
        let mut services = self.services().filter(|one| one.name() == name);
        services.find_map(|one| one.pid()).or_else(|| links.filter_map(SiteLink::pid).next())
    }
}

/// Removes what it has made on the user's servers.
impl Drop for Site {
    fn drop(&mut self) {
        hosts::leave(&self.plan.topology, &self.nodes);
    }
}
