//! Making the servers of a site and their data: initdb or a copy, extensions, data, base backups.

use std::path::Path;

use import::BaseBackup;
use lab::{Installation, NodeConfig, Server, StopMode, UpgradeMode};
use load::{LoadControl, StopUrgency};
use spec::{Check, DataFile, DataReset, Study, Topology};

use crate::archive::archive;
use crate::backup;
use crate::cluster;
use crate::data::{self, DataError};
use crate::error::Error;
use crate::hosts::Hosts;
use crate::kept;
use crate::labs::Labs;
use crate::node::SiteNode;
use crate::plan::{SitePlan, has_own_network, proxy};
use crate::power;
use crate::site::{DataState, Site};
use crate::stations::Stations;
use crate::streaming::{self, FOLLOWS_ANOTHER, STREAMS_WITHIN};
use crate::upgrade;
use crate::warm;

/// The place where servers are made, or found.
pub struct BuildContext<'a> {
    /// The labs in which servers are made.
    pub labs: &'a Labs,
    /// Servers of the user's that stand for nodes.
    pub hosts: &'a Hosts,
    /// The rig's own program, which becomes their disks where those are not plain.
    pub program: &'a Path,
    /// The way in which data of another site are upgraded and not copied.
    pub upgrade: Option<UpgradeMode>,
}

impl Site {
    /// Makes the servers of a site and their data; the data are copied from one of `others` that
    /// has the same, as long as they are unused. All its servers are stopped afterwards.
    pub fn build(
        place: &BuildContext<'_>,
        plan: SitePlan,
        study: &Study,
        others: &[Site],
        control: &LoadControl,
        tell: data::Tell<'_>,
    ) -> Result<Site, Error> {
        // Servers that are built anew do not get the names of those that they replace.
        let number = place.labs.new_number();
        let nodes = plan.servers().map(|node| {
            if let Some(host) = place.hosts.get(&node.name) {
                let conninfo = host.conninfo().to_owned();
                let server = Server::Target(Box::new(host.clone()));
                // Its database was empty: what is in schema public is the cluster's.
                let (name, schema) = (node.name.clone(), Some("public"));
                return Ok(SiteNode { name, server, conninfo, schema });
            }
            // One lab holds all sites, and each of its nodes has a name of its own.
            let name = format!("{}-{number}", node.name);
            let mut config = NodeConfig::new(node.settings.clone());
            config.application_name = Some(node.name.clone());
            let lab = place.labs.of_server(node)?;
            config.remote = place.labs.remote_access(lab);
            // Clients of one on a host come by TCP anyway.
            if node.by_tcp && config.remote.is_none() {
                config.listen = lab::Listen::Loopback;
            }
            config.own_network = has_own_network(&plan.topology, &node.name);
            config.disk = power::disk(node.disk, place.program);
            config.apart = power::disks_apart(node.disk, place.program);
            config.archive = archive(&plan.topology, node, number, place.labs, lab)?;
            config.swallow_fsync = node.swallow_fsync;
            config.has_own_clock = node.has_own_clock;
            config.initdb = node.initdb.iter().map(ToString::to_string).collect();
            let made = lab.node(&name, config)?;
            let conninfo = server::keyword_form(&made.endpoint().to_string())?;
            let server = Server::Node(Box::new(made));
            Ok(SiteNode { name: node.name.clone(), server, conninfo, schema: None })
        });
        let mut nodes = nodes.collect::<Result<Vec<_>, Error>>()?;
        let disk = |disk| power::disk(disk, place.program);
        let made = Stations::make(&plan.topology, place.labs, &disk, number, &nodes);
        let (stations, managed) = made?;
        nodes.extend(managed);
        let connections = plan.connections(study);
        let mut site = Site::new(plan, nodes, DataState::AsBuilt);
        (site.stations, site.connections) = (stations, connections);
        // Nodes of the same name are on the same host, so that their data can be copied.
        let has_data = |other: &&Site| other.plan.has_data_of(&site.plan) && other.is_as_built();
        // The addresses of its nodes are part of a cluster's data.
        let donor = others.iter().filter(|_| !site.is_sharded()).find(has_data);
        site.fill(study, donor, place, control, tell)?;
        if site.plan.data.reset != DataReset::Keep {
            let nodes = site.nodes.iter_mut().filter_map(|node| node.server.node());
            let copies = nodes.map(|node| node.snapshot()).collect::<Result<_, _>>();
            site.snapshots = copies?;
            site.stations.keep_files()?;
        }
        Ok(site)
    }

    /// True if there are data of it that no trial has touched.
    fn is_as_built(&self) -> bool {
        self.state == DataState::AsBuilt || !self.snapshots.is_empty()
    }

    fn fill(
        &mut self,
        study: &Study,
        donor: Option<&Site>,
        place: &BuildContext<'_>,
        control: &LoadControl,
        tell: data::Tell<'_>,
    ) -> Result<(), Error> {
        for index in streaming::order(&self.plan.topology, &self.nodes) {
            if control.urgency() != StopUrgency::None {
                return Err(Error::Interrupted { doing: "building servers" });
            }
            let name = self.nodes[index].name.clone();
            if self.nodes[index].is_managed() {
                continue;
            }
            if let Some(upstream) = self.upstream_of(index) {
                self.back_up(index, upstream)?;
                continue;
            }
            if self.plan.topology.node(&name).is_some_and(|node| node.subscribes.is_some()) {
                if let Some(node) = self.nodes[index].server.node() {
                    node.init()?;
                }
                self.copy_schema(&name)?;
                self.stop_subscriber(&name)?;
                continue;
            }
            let is_data_node = name == self.plan.data.node;
            match donor.filter(|_| is_data_node) {
                Some(donor) => self.copy_data_from(donor, index, place.upgrade)?,
                None => {
                    let named = || format!("{} (node {name})", self.plan.name(study));
                    let cache = place.labs.cache();
                    let kept = match cache.filter(|_| is_data_node) {
                        Some(cache) => kept::key(&self.plan, study, &self.nodes[index])
                            .map_err(DataError::from)
                            .map_err(Error::data(named()))?
                            .map(|key| (cache, key)),
                        None => None,
                    };
                    if let (Some((cache, key)), Some(node)) =
                        (&kept, self.nodes[index].server.node())
                        && cache
                            .take(key, node)
                            .map_err(DataError::from)
                            .map_err(Error::data(named()))?
                    {
                        continue;
                    }
                    if let Some(DataFile { path, database, .. }) = &self.plan.data.file
                        && is_data_node
                        && BaseBackup::is_one(path)
                        && let Some(node) = self.nodes[index].server.node()
                    {
                        backup::fill(path, database.as_deref(), node, control)
                            .map_err(|why| Error::data(named())(why))?;
                        continue;
                    }
                    if let Some(node) = self.nodes[index].server.node() {
                        node.init()?;
                    }
                    let filled = self.fill_node(study, index, control, tell);
                    let named = || format!("{} (node {name})", self.plan.name(study));
                    filled.map_err(|why| Error::data(named())(why))?;
                    if let (Some((cache, key)), Some(node)) = (&kept, self.server(index)) {
                        let kept = cache.keep(key, node).map_err(DataError::from);
                        kept.map_err(|why| Error::data(named())(why))?;
                    }
                }
            }
        }
        self.fill_managed(study, control, tell)?;
        let deployed = self.deploy_cluster();
        deployed.map_err(|why| Error::data(self.plan.name(study))(why))?;
        self.stop_caught_up()
    }

    /// Starts the machines and builds the data on the primary that their manager has chosen.
    fn fill_managed(
        &mut self,
        study: &Study,
        control: &LoadControl,
        tell: data::Tell<'_>,
    ) -> Result<(), Error> {
        // Those that start no server are started for a trial, when the servers that they go to run.
        if !self.nodes.iter().any(SiteNode::is_managed) {
            return Ok(());
        }
        self.stations.start()?;
        if self.data_node().is_managed() {
            let primary = self.primary_now()?;
            let named = || format!("{} (node {})", self.plan.name(study), primary.name);
            let filled = data::build(&self.plan.data, primary, None, control, tell);
            filled.map_err(|why| Error::data(named())(why))?;
            // Standbys of it may be asked for the data at once.
            self.stations.wait_until_ready()?;
        }
        self.stop_stations(true)
    }

    /// The data of another site's node of the same name, as they were built.
    fn copy_data_from(
        &mut self,
        donor: &Site,
        index: usize,
        upgrade: Option<UpgradeMode>,
    ) -> Result<(), Error> {
        let name = self.nodes[index].name.clone();
        let at = donor.nodes.iter().position(|node| node.name == name);
        let at = at.expect("a donor has the node that the data are on");
        let (Some(mine), Server::Node(from)) =
            (self.nodes[index].server.node(), &donor.nodes[at].server)
        else {
            unreachable!(
                "only a cluster may have servers of the user's, and a cluster is not copied"
            );
        };
        match (upgrade, donor.snapshots.get(at)) {
            (Some(mode), _) => {
                let analyzes = self.plan.data.file.as_ref().is_none_or(|file| file.analyzes);
                self.upgrade = Some(upgrade::upgrade(mine, from, mode, analyzes)?);
                return Ok(());
            }
            (None, Some(snapshot)) => mine.init_from_snapshot(snapshot)?,
            (None, None) => mine.clone_data(from)?,
        }
        if donor.plan.topology.standbys(&name).is_empty() {
            return Ok(());
        }
        // The slots of the donor's standbys would hold WAL back for no standby.
        mine.start()?;
        let mut client = mine.connect()?;
        client.batch_execute(DROP_SLOTS).map_err(|source| lab::Error::Query {
            server: format!("node {}", mine.name()),
            statement: DROP_SLOTS.to_owned(),
            source,
        })?;
        mine.stop(StopMode::Fast)?;
        Ok(())
    }

    /// Makes a standby from the server that it follows, and has both run.
    fn back_up(&mut self, index: usize, upstream: usize) -> Result<(), Error> {
        let both = self.nodes.get_disjoint_mut([index, upstream]);
        let [standby, primary] = both.expect(FOLLOWS_ANOTHER);
        let (Some(standby), Some(primary)) = (standby.server.node(), primary.server.node()) else {
            // A server of the user's has its data.
            return Ok(());
        };
        if !primary.is_running()? {
            let mut settings = primary.settings().clone();
            // No standby is there yet that a commit could wait for.
            settings.set("synchronous_standby_names", "");
            primary.configure(settings)?;
            primary.start()?;
        }
        standby.init_from_backup(primary, None)?;
        standby.start()?;
        primary.wait_for_standby(standby, None, STREAMS_WITHIN)?;
        Ok(())
    }

    /// Stops every server, those that others follow first: their shutdown waits until everything
    /// is sent, so that all have the same.
    fn stop_caught_up(&mut self) -> Result<(), Error> {
        for index in streaming::order(&self.plan.topology, &self.nodes) {
            let Some(node) = self.nodes[index].server.node() else { continue };
            if node.is_running()? {
                node.stop(StopMode::Fast)?;
            }
        }
        Ok(())
    }

    fn fill_node(
        &mut self,
        study: &Study,
        index: usize,
        control: &LoadControl,
        tell: data::Tell<'_>,
    ) -> Result<(), DataError> {
        let plan = &self.plan;
        let site_node = &mut self.nodes[index];
        let topology_node = plan.topology.node(&site_node.name);
        let topology_node = topology_node.expect("a server of a site is a node of its topology");
        let holds_data = plan.data.node == topology_node.name;
        // A server of the user's gets its data with the cluster that it belongs to.
        let Some(node) = site_node.server.node() else { return Ok(()) };
        let extensions = match holds_data {
            true => data_extensions(plan, study, topology_node, node.installation()),
            false => extensions(topology_node),
        };
        if !holds_data && extensions.is_empty() {
            return Ok(());
        }
        let mut settings = topology_node.settings.clone();
        // Nothing is lost if the machine dies while data are built: they are built again.
        settings.extend([("fsync", "off"), ("autovacuum", "off")]);
        // A standby of which another one is made refuses what was written without them.
        if !cascades(&plan.topology) {
            settings.set("full_page_writes", "off");
        }
        settings.set("synchronous_standby_names", "");
        node.configure(settings)?;
        node.start()?;
        data::extensions(&mut node.connect()?, &extensions)?;
        if holds_data {
            data::build(&plan.data, site_node, None, control, tell)?;
            if let (Some(buckets), None) = (&plan.data.buckets, proxy(&plan.topology)) {
                cluster::build_single(&mut site_node.connect()?, buckets)?;
            }
        }
        let node = site_node.server.node().expect("the rig has just started the server");
        node.stop(StopMode::Fast)?;
        Ok(())
    }
}

/// True if a standby follows a standby.
fn cascades(topology: &Topology) -> bool {
    let upstream = |node: &spec::TopologyNode| topology.node(node.follows()?)?.follows();
    topology.nodes.iter().any(|node| upstream(node).is_some())
}

/// The extensions that the study names, and the one that counts statements where the study has it
/// loaded.
fn extensions(node: &spec::TopologyNode) -> Vec<String> {
    let mut names = node.extensions.clone();
    let preloaded = node.settings.value("shared_preload_libraries");
    // A server whose study does not set the parameter preloads nothing.
    let preloaded = preloaded.unwrap_or_default();
    let counts = preloaded.split(',').any(|name| name.trim() == STATEMENTS);
    if counts && !names.iter().any(|name| name == STATEMENTS) {
        names.push(STATEMENTS.to_owned());
    }
    names
}

/// The same for the node that holds the data, with what warming and checks need.
pub(crate) fn data_extensions(
    plan: &SitePlan,
    study: &Study,
    node: &spec::TopologyNode,
    installation: &Installation,
) -> Vec<String> {
    let mut names = extensions(node);
    names.extend(warm::extensions(&plan.data, installation));
    // A standby cannot be given it when it is looked through; and sites copy each other.
    let is_amcheck = |check: &Check| {
        matches!(check, Check::Amcheck { .. } | Check::AmcheckEverywhere | Check::Explore(_))
    };
    if study.points.iter().any(|point| point.checks.iter().any(is_amcheck)) {
        names.push(AMCHECK.to_owned());
    }
    // Each state of an exploration would create it anew.
    let explores = |check: &Check| matches!(check, Check::Explore(_));
    let has_states = study.points.iter().any(|point| point.checks.iter().any(explores));
    if has_states && installation.has_extension(PREWARM) {
        names.push(PREWARM.to_owned());
    }
    names
}

const STATEMENTS: &str = "pg_stat_statements";
const AMCHECK: &str = "amcheck";
const PREWARM: &str = "pg_prewarm";

const DROP_SLOTS: &str = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots";
