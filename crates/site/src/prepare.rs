//! Getting a site ready for a trial: its data as the study says, the point's settings, links and
//! services.

use std::path::Path;

use lab::{IoLimits, StopMode};
use spec::{DataReset, NodeThrottle, TrialPoint};

use crate::connections::{SPARE_CONNECTIONS, connections};
use crate::error::Error;
use crate::labs::Labs;
use crate::link::SiteLink;
use crate::service::FrontBuilder;
use crate::site::{DataState, Site};
use crate::streaming;
use crate::throttles::Throttles;

/// The use of a site: alone, or in turn with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiteUse {
    /// It is the only one.
    Yes,
    /// Others run in between, so that its servers begin cold each time, like theirs.
    No,
}

impl Site {
    /// Gets servers and data ready for a point: reset as the study says, with the point's
    /// settings, running, standbys streaming over the point's links. `alone` says that no other
    /// site takes turns with this one; its servers then run on between trials that keep their data.
    pub fn prepare(
        &mut self,
        point: &TrialPoint,
        alone: SiteUse,
        labs: Option<&Labs>,
        rig: &Path,
    ) -> Result<(), Error> {
        self.fronts.clear();
        let lacks = match (self.plan.data.reset, self.state) {
            (DataReset::Clone, _) | (DataReset::Whole, DataState::AsBuilt) => None,
            (DataReset::Keep, _) => None,
            (DataReset::Whole, DataState::Used) => self.lacks()?,
        };
        let begins_anew = match self.plan.data.reset {
            DataReset::Clone => true,
            DataReset::Keep => false,
            DataReset::Whole => lacks.is_some() || self.state == DataState::AsBuilt,
        };
        self.was_made_anew = lacks;
        let goes_on = self.plan.data.reset == DataReset::Whole && !begins_anew;
        if begins_anew || (alone == SiteUse::No && !goes_on) {
            self.stop()?;
        }
        if begins_anew && self.state == DataState::Used {
            self.stations.reset_files()?;
            for (node, snapshot) in self.nodes.iter_mut().zip(&self.snapshots) {
                if let Some(node) = node.server.node() {
                    node.init_from_snapshot(snapshot)?;
                }
            }
            // Else the copy is written in the middle of the window. A node with a disk of its own
            // settles that.
            if self.nodes.iter().any(|node| !node.has_own_disk()) {
                labs.map_or(Ok(()), Labs::sync)?;
            }
        }
        self.state = DataState::Used;
        self.make_links(point, labs, rig)?;
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
        match self.stations.runs()? {
            true => self.stations.wait_until_ready()?,
            false => self.stations.start()?,
        }
        self.prove_streaming()?;
        self.replicate()
    }

    /// Stops its servers, their data kept, and what stands in front of them, until [`Site::start_again`].
    pub fn pause(&mut self) -> Result<(), Error> {
        for part in self.fronts.iter_mut().filter_map(|front| front.part_mut()) {
            part.stop(StopMode::Fast)?;
        }
        for index in streaming::order(&self.plan.topology, &self.nodes) {
            let Some(node) = self.nodes[index].server.node() else { continue };
            node.stop(StopMode::Fast)?;
        }
        match self.stations.is_empty() {
            true => Ok(()),
            false => self.stop_stations(true),
        }
    }

    /// Starts what [`Site::pause`] has stopped, standbys streaming again.
    pub fn start_again(&mut self) -> Result<(), Error> {
        for index in streaming::order(&self.plan.topology, &self.nodes) {
            let Some(node) = self.nodes[index].server.node() else { continue };
            node.start()?;
        }
        if !self.stations.is_empty() {
            self.stations.start()?;
        }
        self.prove_streaming()?;
        // Clients know where they are: they are started again and not made anew.
        self.fronts.iter_mut().try_for_each(|front| front.start())
    }

    /// Stops its servers: at once where their data will be thrown away, else with a checkpoint.
    pub fn stop(&mut self) -> Result<(), Error> {
        self.fronts.clear();
        self.links.clear();
        let mode = match self.plan.data.reset {
            DataReset::Clone | DataReset::Whole => StopMode::Immediate,
            DataReset::Keep => StopMode::Fast,
        };
        self.stop_stations(self.plan.data.reset == DataReset::Keep)?;
        for index in streaming::order(&self.plan.topology, &self.nodes) {
            let Some(node) = self.nodes[index].server.node() else { continue };
            if node.is_running()? {
                node.stop(mode)?;
            }
        }
        Ok(())
    }

    /// Stops the machines: with what they have, or at once.
    pub(crate) fn stop_stations(&mut self, is_kept: bool) -> Result<(), Error> {
        if self.stations.is_empty() {
            return Ok(());
        }
        if !is_kept {
            return self.stations.kill();
        }
        self.stations.heal()?;
        let last = self.primary_now().ok().map(|node| node.name.clone());
        self.stations.stop(last.as_deref())
    }

    /// Limits the I/O of the servers whose I/O the point limits, until what is returned lifts it.
    pub fn limit_io(&self, point: &TrialPoint) -> Result<Throttles, lab::Error> {
        let limited = self.nodes.iter().enumerate().filter_map(|(index, node)| {
            let throttle = point.topology.node(&node.name)?.throttle?;
            Some((node.name.clone(), self.server(index)?, throttle))
        });
        let limited =
            limited.map(|(name, server, throttle)| Ok((name, server.limit_io(&limits(throttle))?)));
        self.throttles.set(limited.collect::<Result<_, lab::Error>>()?);
        Ok(self.throttles.clone())
    }

    /// Limits the I/O of one server from now on, as long as the trial's limits last.
    pub fn throttle(&self, name: &str, to: NodeThrottle) -> Result<(), Error> {
        let index = self.nodes.iter().position(|node| node.name == name);
        let server = index.and_then(|index| self.server(index));
        let server = server.ok_or_else(|| Error::NoServer(name.to_owned()))?;
        // One server has one limit.
        let _ = self.throttles.lift(name);
        self.throttles.add(name, server.limit_io(&limits(to))?);
        Ok(())
    }

    /// Makes disks as fast as before that an action has slowed down.
    pub fn heal_disks(&mut self) -> Result<(), Error> {
        for name in std::mem::take(&mut self.slow_disks) {
            if let Some(machine) = self.station(&name) {
                machine.station.slow_disk(None)?;
                continue;
            }
            let Some(node) = self.server_mut(&name) else { continue };
            // A disk whose power was cut since begins anew.
            if node.is_running()? {
                node.slow_disk(None)?;
            }
        }
        Ok(())
    }

    /// Makes the point's links in place of what another point had. `rig` is the rig's own program,
    /// of which a relay is a command.
    fn make_links(
        &mut self,
        point: &TrialPoint,
        labs: Option<&Labs>,
        rig: &Path,
    ) -> Result<(), Error> {
        self.links.clear();
        // A server of the user's has no links of the rig's, and the preflight refuses a point with some.
        let Some(labs) = labs else { return Ok(()) };
        for link in &point.topology.links {
            let ends = SiteLink::ends(link, &point.topology);
            let Some(to) = self.endpoint(&ends[1]) else { continue };
            let network = |name: &str| {
                let at = self.nodes.iter().position(|node| node.name == name)?;
                self.server(at)?.network().cloned()
            };
            let networks = ends.each_ref().map(|end| network(end));
            // A relay runs beside the end that connects, as the link's delay does.
            let lab = labs.of(&ends[0])?;
            self.links.extend(SiteLink::make(link, ends, networks, to, lab, rig)?);
        }
        Ok(())
    }

    /// Starts what the point has in front of its servers, in place of what another point had.
    /// `rig` is the rig's own program, of which a guard is a command.
    pub fn put_in_front(
        &mut self,
        point: &TrialPoint,
        labs: Option<&Labs>,
        rig: &Path,
    ) -> Result<(), Error> {
        self.fronts.clear();
        // The rig puts nothing in front of a server of the user's, and the preflight refuses such a point.
        let Some(labs) = labs else { return Ok(()) };
        for node in &point.topology.nodes {
            let way = |to: &str| self.way(&node.name, to);
            let made = FrontBuilder { labs, rig, way: &way }.make(node)?;
            let Some(mut front) = made else { continue };
            let started = front.start();
            self.fronts.push(front);
            started?;
        }
        Ok(())
    }

    /// A server's settings at a point: the study's, and enough connections where it does not say.
    fn settings(&self, point: &TrialPoint, node: &str) -> lab::Settings {
        let given = point.topology.node(node).expect("all points of a site have its servers");
        let mut settings = given.settings.clone();
        if settings.value("max_connections").is_none() {
            let needed = match point.topology.nodes.iter().any(|node| node.follows().is_some()) {
                // A standby refuses to start with less room than its primary ever had.
                true => self.connections,
                false => connections(point, node),
            };
            let needed = needed + SPARE_CONNECTIONS + reserved(point, &settings);
            settings.set("max_connections", needed.max(CONNECTIONS_DEFAULT).to_string());
        }
        settings
    }
}

/// Connections that superusers alone may use, where clients log in as a role of the study's: it may be none.
fn reserved(point: &TrialPoint, settings: &lab::Settings) -> u32 {
    if point.workloads.iter().all(|workload| workload.user.is_none()) {
        return 0;
    }
    let given = settings.value("superuser_reserved_connections");
    // A value that is no number is refused by the server.
    given.and_then(|given| given.parse().ok()).unwrap_or(RESERVED_DEFAULT)
}

fn limits(throttle: NodeThrottle) -> IoLimits {
    let NodeThrottle { read_iops, write_iops, read_bytes, write_bytes } = throttle;
    IoLimits { read_iops, write_iops, read_bytes, write_bytes }
}

/// PostgreSQL's own default of superuser_reserved_connections.
const RESERVED_DEFAULT: u32 = 3;
/// PostgreSQL's own default of max_connections.
const CONNECTIONS_DEFAULT: u32 = 100;
