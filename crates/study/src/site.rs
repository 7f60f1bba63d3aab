//! A site: the servers of a topology with their data, and how they are put back between trials.

use std::collections::BTreeMap;
use std::path::Path;

use lab::{Lab, Limits, Snapshot, StopMode, Throttle};
use spec::{Action, Point, Reset, Settings};

use crate::error::Error;
use crate::estimate::{self, SPARE_CONNECTIONS};
use crate::front::Front;
use crate::links::SiteLink;
use crate::part::Part;
use crate::site_node::SiteNode;
use crate::sites::SitePlan;
use crate::streaming;

/// One set of servers with one set of data.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) plan: SitePlan,
    /// Its servers, in the order of the topology.
    pub(crate) nodes: Vec<SiteNode>,
    /// What stands in front of them in the trial under way.
    pub(crate) fronts: Vec<Front>,
    /// The links between them in the trial under way.
    pub(crate) links: Vec<SiteLink>,
    /// Connections for which every server of it must have room at some point.
    pub(crate) connections: u32,
    /// Copies of each node's data as they were built, where trials begin with them.
    pub(crate) snapshots: Vec<Snapshot>,
    pub(crate) state: State,
    /// The rows of its cluster as they were built, if it has one.
    pub(crate) rows_built: Option<shard::Audit>,
}

/// What has become of the data since they were built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    AsBuilt,
    Used,
}

/// Whether a site takes turns with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alone {
    /// It is the only one.
    Yes,
    /// Others run in between, so that its servers begin cold each time, like theirs.
    No,
}

impl Site {
    /// The one server of a target.
    pub(crate) fn outside(plan: SitePlan, node: SiteNode) -> Site {
        let (fronts, links, snapshots, rows_built) = Default::default();
        let (nodes, connections, state) = (vec![node], 0, State::Used);
        Site { plan, nodes, fronts, links, connections, snapshots, state, rows_built }
    }

    /// Gets servers and data ready for a point: reset as the study says, with the point's
    /// settings, running, standbys streaming over the point's links. `alone` says that no other site takes turns with
    /// this one; its servers then run on between trials that keep their data.
    ///
    /// # Errors
    /// What a server said.
    pub(crate) fn prepare(
        &mut self,
        point: &Point,
        alone: Alone,
        lab: Option<&Lab>,
        rig: &Path,
    ) -> Result<(), Error> {
        self.fronts.clear();
        let is_clone = self.plan.data.reset == Reset::Clone;
        if is_clone || alone == Alone::No {
            self.stop()?;
        }
        if is_clone && self.state == State::Used {
            for (node, snapshot) in self.nodes.iter_mut().zip(&self.snapshots) {
                if let Some(node) = node.server.node() {
                    node.init_from_snapshot(snapshot)?;
                }
            }
            // Else the copy is written in the middle of the window. A node with a disk of its own
            // settles that.
            if self.nodes.iter().any(|node| !node.has_own_disk()) {
                lab.map_or(Ok(()), Lab::sync)?;
            }
        }
        self.state = State::Used;
        self.make_links(point, lab, rig)?;
        for index in streaming::order(&self.plan.topology, &self.nodes) {
            let settings = self.settings(point, &self.nodes[index].name);
            let Some(node) = self.nodes[index].server.node() else { continue };
            if *node.settings() != settings && node.is_running()? {
                node.stop(StopMode::Fast)?;
            }
            node.configure(settings)?;
            self.choose_way(index)?;
            let Some(node) = self.nodes[index].server.node() else { continue };
            if !node.is_running()? {
                node.start()?;
            }
        }
        self.prove_streaming()
    }

    /// Stops its servers: at once where their data will be thrown away, else with a checkpoint.
    ///
    /// # Errors
    /// What the lab says of a server that does not stop.
    pub(crate) fn stop(&mut self) -> Result<(), Error> {
        self.fronts.clear();
        self.links.clear();
        let mode = match self.plan.data.reset {
            Reset::Clone => StopMode::Immediate,
            Reset::Keep => StopMode::Fast,
        };
        for index in streaming::order(&self.plan.topology, &self.nodes) {
            let Some(node) = self.nodes[index].server.node() else { continue };
            if node.is_running()? {
                node.stop(mode)?;
            }
        }
        Ok(())
    }

    /// Limits the I/O of the servers whose I/O the point limits, until what is given is dropped.
    ///
    /// # Errors
    /// What the kernel said.
    pub(crate) fn limit_io(&self, point: &Point) -> Result<Vec<Throttle>, lab::Error> {
        let limited = self.nodes.iter().enumerate().filter_map(|(index, node)| {
            let throttle = point.topology.node(&node.name)?.throttle?;
            Some((self.server(index)?, throttle))
        });
        let limited = limited.map(|(server, throttle)| {
            let spec::Throttle { read_iops, write_iops, read_bytes, write_bytes } = throttle;
            server.limit_io(&Limits { read_iops, write_iops, read_bytes, write_bytes })
        });
        limited.collect()
    }

    /// Whether every server of the lab's still runs that nobody has stopped.
    ///
    /// # Errors
    /// Which one does not, and what that means: the trial counts for no claim.
    pub(crate) fn check_alive(&self, point: &Point) -> Result<(), String> {
        let is_stopped = |name: &str| {
            let stops = |action: &Action| {
                let stops = matches!(
                    action,
                    Action::Stop { .. } | Action::Kill { .. } | Action::PowerCut { .. }
                );
                stops && action.target() == name
            };
            point.timeline.iter().any(|timed| stops(&timed.action))
        };
        for (index, node) in self.nodes.iter().enumerate() {
            let Some(server) = self.server(index).filter(|_| !is_stopped(&node.name)) else {
                continue;
            };
            if !server.is_running().map_err(|error| error.to_string())? {
                return Err(format!(
                    "{} died during the load, and nobody had asked for that: the trial counts for \
                     no claim; see its log",
                    node.name
                ));
            }
        }
        Ok(())
    }

    /// The node that the data are on.
    pub(crate) fn data_node(&self) -> &SiteNode {
        let named = self.nodes.iter().find(|node| node.name == self.plan.data.node);
        named.unwrap_or(&self.nodes[0])
    }

    /// The server of that name.
    pub(crate) fn node(&self, name: &str) -> Option<&SiteNode> {
        self.nodes.iter().find(|node| node.name == name)
    }

    /// The server of that name, if the lab runs it.
    pub(crate) fn server_mut(&mut self, name: &str) -> Option<&mut lab::Node> {
        self.nodes.iter_mut().find(|node| node.name == name)?.server.node()
    }

    /// Whatever of it has that name, if the lab runs it.
    pub(crate) fn part(&mut self, name: &str) -> Option<Part<'_>> {
        if let Some(front) = self.fronts.iter_mut().find(|front| front.name == name) {
            return Some(front.part());
        }
        let node = self.nodes.iter_mut().find(|node| node.name == name)?;
        node.server.node().map(Part::Node)
    }

    /// What clients connect to, by the name of the server or front.
    pub(crate) fn conninfos(&self) -> BTreeMap<String, String> {
        let servers = self.nodes.iter().map(|node| (node.name.clone(), node.conninfo.clone()));
        let fronts = self.fronts.iter();
        let fronts = fronts.filter_map(|f| Some((f.name.clone(), f.conninfo.clone()?)));
        servers.chain(fronts).collect()
    }

    /// The root process of each server, front and link that runs, by its name.
    pub(crate) fn processes(&self) -> impl Iterator<Item = (&str, u32)> {
        let servers = self.nodes.iter().map(|node| (node.name.as_str(), node.pid()));
        let fronts = self.fronts.iter().map(|front| (front.name.as_str(), front.pid()));
        let links = self.links.iter().map(|link| (link.name(), link.pid()));
        servers.chain(fronts).chain(links).filter_map(|(name, pid)| Some((name, pid?)))
    }

    /// The root process of the one of that name, while it runs.
    pub(crate) fn pid(&self, name: &str) -> Option<u32> {
        self.processes().find(|(known, _)| *known == name).map(|(_, pid)| pid)
    }

    /// A server's settings at a point: the study's, and enough connections where it does not say.
    fn settings(&self, point: &Point, node: &str) -> lab::Settings {
        let given = point.topology.node(node).map(|node| lab_settings(&node.settings));
        let mut settings = given.unwrap_or_default();
        if settings.value("max_connections").is_none() {
            let needed = match point.topology.nodes.iter().any(|node| node.follows().is_some()) {
                // A standby refuses to start with less room than its primary ever had.
                true => self.connections,
                false => estimate::connections(point, node),
            };
            let needed = needed + SPARE_CONNECTIONS;
            settings.set("max_connections", needed.max(CONNECTIONS_DEFAULT).to_string());
        }
        settings
    }
}

/// What it has made on somebody else's servers goes with it.
impl Drop for Site {
    fn drop(&mut self) {
        self.leave_hosts();
    }
}

pub(crate) fn lab_settings(settings: &Settings) -> lab::Settings {
    settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

/// PostgreSQL's own default of max_connections.
const CONNECTIONS_DEFAULT: u32 = 100;
