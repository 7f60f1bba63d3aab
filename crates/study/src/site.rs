//! A site: servers that are built or somebody else's, and the data on them.

use std::path::PathBuf;

use lab::{Lab, NodeConfig, Server, Snapshot, StopMode};
use load::Control;
use postgres::Client;
use spec::{Point, Reset, Settings, Study};

use crate::data;
use crate::error::Error;
use crate::estimate;
use crate::outside::SEARCH_PATH;
use crate::preflight::SPARE_CONNECTIONS;
use crate::sites::SitePlan;

/// One set of servers with one set of data.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) plan: SitePlan,
    /// Its servers, in the order of the topology.
    pub(crate) nodes: Vec<SiteNode>,
    /// Copies of each node's data as they were built, where trials begin with them.
    snapshots: Vec<Snapshot>,
    state: State,
}

/// What has become of the data since they were built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    AsBuilt,
    Used,
}

/// A server and its name in the study.
#[derive(Debug)]
pub(crate) struct SiteNode {
    pub(crate) name: String,
    pub(crate) server: Server,
    /// What clients connect to, in keyword form, as the load engine reads it.
    pub(crate) conninfo: String,
}

impl Site {
    /// Makes the servers of a site and their data; the data are copied from one of `others` that
    /// has the same, as long as nobody has used them. All its servers are stopped afterwards.
    ///
    /// # Errors
    /// What initdb, a server or a script said.
    pub(crate) fn build(
        lab: &Lab,
        plan: SitePlan,
        study: &Study,
        others: &[Site],
        control: &Control,
        tell: data::Tell<'_>,
    ) -> Result<Site, Error> {
        let number = others.len() + 1;
        let nodes = plan.topology.nodes.iter().map(|node| {
            // One lab holds all sites, and each of its nodes has a name of its own.
            let name = format!("{}-{number}", node.name);
            let made = lab.node(&name, NodeConfig::new(lab_settings(&node.settings)))?;
            let conninfo = crate::outside::keyword_form(&made.endpoint().to_string())?;
            let server = Server::Node(Box::new(made));
            Ok(SiteNode { name: node.name.clone(), server, conninfo })
        });
        let nodes = nodes.collect::<Result<Vec<_>, Error>>()?;
        let mut site = Site { plan, nodes, snapshots: Vec::new(), state: State::AsBuilt };
        let same = |other: &&Site| other.plan.has_data_of(&site.plan);
        let unused = |other: &&Site| other.state == State::AsBuilt || !other.snapshots.is_empty();
        match others.iter().filter(same).find(unused) {
            Some(other) => site.copy_from(other)?,
            None => site.fill(study, control, tell)?,
        }
        if site.plan.data.reset == Reset::Clone {
            let nodes = site.nodes.iter_mut().filter_map(|node| node.server.node());
            let copies = nodes.map(|node| node.snapshot()).collect::<Result<_, _>>();
            site.snapshots = copies?;
        }
        Ok(site)
    }

    /// The one server of a target.
    pub(crate) fn outside(plan: SitePlan, node: SiteNode) -> Site {
        Site { plan, nodes: vec![node], snapshots: Vec::new(), state: State::Used }
    }

    /// Gets servers and data ready for a point: reset as the study says, with the point's
    /// settings, running. `alone` says that no other site takes turns with this one; its servers
    /// then run on between trials that keep their data.
    ///
    /// # Errors
    /// What a server said.
    pub(crate) fn prepare(
        &mut self,
        point: &Point,
        alone: Alone,
        lab: Option<&Lab>,
    ) -> Result<(), Error> {
        let is_clone = self.plan.data.reset == Reset::Clone;
        let settings: Vec<lab::Settings> =
            point.topology.nodes.iter().map(|node| settings(point, &node.name)).collect();
        if is_clone || alone == Alone::No {
            self.stop()?;
        }
        if is_clone && self.state == State::Used {
            for (node, snapshot) in self.nodes.iter_mut().zip(&self.snapshots) {
                if let Some(node) = node.server.node() {
                    node.init_from_snapshot(snapshot)?;
                }
            }
            // Else the copy is written in the middle of the window.
            lab.map_or(Ok(()), Lab::sync)?;
        }
        self.state = State::Used;
        for (site_node, settings) in self.nodes.iter_mut().zip(settings) {
            let Some(node) = site_node.server.node() else { continue };
            if *node.settings() != settings && node.is_running()? {
                node.stop(StopMode::Fast)?;
            }
            node.configure(settings)?;
            if !node.is_running()? {
                node.start()?;
            }
        }
        Ok(())
    }

    /// Stops its servers: at once where their data will be thrown away, else with a checkpoint.
    ///
    /// # Errors
    /// What the lab says of a server that does not stop.
    pub(crate) fn stop(&mut self) -> Result<(), Error> {
        let mode = match self.plan.data.reset {
            Reset::Clone => StopMode::Immediate,
            Reset::Keep => StopMode::Fast,
        };
        for node in self.nodes.iter_mut().filter_map(|node| node.server.node()) {
            if node.is_running()? {
                node.stop(mode)?;
            }
        }
        Ok(())
    }

    /// The node that the data are on.
    pub(crate) fn data_node(&self) -> &SiteNode {
        let named = self.nodes.iter().find(|node| node.name == self.plan.data.node);
        named.unwrap_or(&self.nodes[0])
    }

    /// The node of that name.
    pub(crate) fn node(&self, name: &str) -> Option<&SiteNode> {
        self.nodes.iter().find(|node| node.name == name)
    }

    fn copy_from(&mut self, other: &Site) -> Result<(), Error> {
        for (index, (mine, others)) in self.nodes.iter_mut().zip(&other.nodes).enumerate() {
            let (Some(mine), Server::Node(from)) = (mine.server.node(), &others.server) else {
                continue;
            };
            match other.snapshots.get(index) {
                Some(snapshot) => mine.init_from_snapshot(snapshot)?,
                None => mine.clone_data(from)?,
            }
        }
        Ok(())
    }

    fn fill(
        &mut self,
        study: &Study,
        control: &Control,
        tell: data::Tell<'_>,
    ) -> Result<(), Error> {
        for node in self.nodes.iter_mut().filter_map(|node| node.server.node()) {
            node.init()?;
        }
        let has_extensions = |name: &str| {
            let node = self.plan.topology.node(name);
            node.is_some_and(|node| !extensions(node).is_empty())
        };
        let touched: Vec<usize> = (0..self.nodes.len())
            .filter(|index| {
                let name = &self.nodes[*index].name;
                has_extensions(name) || *name == self.plan.data.node
            })
            .collect();
        for index in touched {
            let name = self.nodes[index].name.clone();
            self.fill_node(index, control, tell).map_err(|failure| match failure {
                data::Failure::Lab(error) => Error::Lab(error),
                data::Failure::Interrupted => {
                    Error::Interrupted { doing: "building the data".to_owned() }
                }
                data::Failure::Said { why, hint } => {
                    let site = format!("{} (node {name})", self.plan.name(study));
                    Error::Data { site, why, hint }
                }
            })?;
        }
        Ok(())
    }

    fn fill_node(
        &mut self,
        index: usize,
        control: &Control,
        tell: data::Tell<'_>,
    ) -> Result<(), data::Failure> {
        let plan = &self.plan;
        let site_node = &mut self.nodes[index];
        let topology_node = &plan.topology.nodes[index];
        let Some(node) = site_node.server.node() else { return Ok(()) };
        let mut settings = lab_settings(&topology_node.settings);
        // Nothing is lost if the machine dies while data are built: they are built again.
        settings.extend([("fsync", "off"), ("full_page_writes", "off"), ("autovacuum", "off")]);
        node.configure(settings)?;
        node.start()?;
        let mut extensions = extensions(topology_node);
        if plan.data.node == topology_node.name {
            extensions.extend(crate::warm::extensions(&plan.data, node.installation()));
        }
        data::extensions(&mut node.connect()?, &extensions)?;
        if plan.data.node == topology_node.name {
            let client = node.connect()?;
            data::build(&plan.data, client, &site_node.conninfo, None, control, tell)?;
        }
        let Some(node) = site_node.server.node() else { return Ok(()) };
        node.stop(StopMode::Fast)?;
        Ok(())
    }
}

/// Whether a site takes turns with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alone {
    /// It is the only one.
    Yes,
    /// Others run in between, so that its servers begin cold each time, like theirs.
    No,
}

impl SiteNode {
    /// A connection for the rig's own work; on somebody else's server in the rig's own schema.
    ///
    /// # Errors
    /// When the server does not answer.
    pub(crate) fn connect(&self) -> Result<Client, lab::Error> {
        let mut client = self.server.connect()?;
        if let Server::Target(_) = self.server {
            let set = format!("SET search_path TO {SEARCH_PATH}");
            client.batch_execute(&set).map_err(|source| lab::Error::Query {
                server: "the target".to_owned(),
                statement: set,
                source,
            })?;
        }
        Ok(client)
    }

    /// What the probes connect to.
    pub(crate) fn probe_conninfo(&self) -> String {
        match &self.server {
            Server::Node(_) => self.server.conninfo(),
            Server::Target(target) => crate::outside::probe_form(target),
        }
    }

    /// The database that holds the data.
    pub(crate) fn database(&self) -> String {
        let parsed = self.probe_conninfo().parse::<postgres::Config>();
        let named = parsed.ok().and_then(|config| config.get_dbname().map(str::to_owned));
        named.unwrap_or_else(|| "postgres".to_owned())
    }

    /// Where the server's log for programs is, if it can be read.
    pub(crate) fn log(&self) -> Option<PathBuf> {
        match &self.server {
            Server::Node(node) => Some(node.structured_log().1),
            Server::Target(_) => None,
        }
    }

    /// The postmaster's process.
    pub(crate) fn pid(&self) -> Option<u32> {
        match &self.server {
            Server::Node(node) => node.host_pid().and_then(|pid| u32::try_from(pid).ok()),
            Server::Target(_) => None,
        }
    }
}

/// What the study names, and what counts statements where the study has it loaded.
fn extensions(node: &spec::Node) -> Vec<String> {
    let mut names = node.extensions.clone();
    let preloaded = node.settings.get("shared_preload_libraries");
    let preloaded = preloaded.map(String::as_str).unwrap_or_default();
    let counts = preloaded.split(',').any(|name| name.trim() == STATEMENTS);
    if counts && !names.iter().any(|name| name == STATEMENTS) {
        names.push(STATEMENTS.to_owned());
    }
    names
}

const STATEMENTS: &str = "pg_stat_statements";

/// A node's settings at a point: the study's, and enough connections where it does not say.
fn settings(point: &Point, node: &str) -> lab::Settings {
    let given = point.topology.node(node).map(|node| lab_settings(&node.settings));
    let mut settings = given.unwrap_or_default();
    if settings.value("max_connections").is_none() {
        let needed = estimate::connections(point, node) + SPARE_CONNECTIONS;
        settings.set("max_connections", needed.max(CONNECTIONS_DEFAULT).to_string());
    }
    settings
}

fn lab_settings(settings: &Settings) -> lab::Settings {
    settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

/// PostgreSQL's own default of max_connections.
const CONNECTIONS_DEFAULT: u32 = 100;
