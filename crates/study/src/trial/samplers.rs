//! The samplers of a trial: one on this machine, and one on each host that has servers.

use std::collections::BTreeMap;
use std::time::Instant;

use host::monotonic_ns_at;
use measure::SampledServer;
use probe::{
    ProbeError, Probes, RemoteProbe, RunningSampler, SamplerConfig, SamplerReadings, WatchedPooler,
};
use record::Moment;
use site::{Service, Site, SiteLink, SiteNode};
use spec::TrialPoint;

use crate::clock;
use crate::fleet::StudyHosts;

/// The samplers of a trial.
#[derive(Debug)]
pub(crate) struct Samplers {
    here: RunningSampler,
    there: Vec<RemoteProbe>,
    /// The host of each node and service that is on one.
    hosts: BTreeMap<String, String>,
    origin: Instant,
}

impl Samplers {
    /// Starts them beside the servers of a site.
    pub(crate) fn start(
        point: &TrialPoint,
        site: &Site,
        fleet: Option<&StudyHosts>,
        origin: Instant,
    ) -> Result<Samplers, ProbeError> {
        let hosts: BTreeMap<String, String> =
            site.hosts().map(|(name, host)| (name.to_owned(), host.to_owned())).collect();
        let here = SamplerConfig {
            generator_pids: vec![std::process::id()],
            ..config(point, site, |name| !hosts.contains_key(name))
        };
        let (mut there, origin_ns) = (Vec::new(), monotonic_ns_at(origin));
        // A host that is lost is missed where its servers are, or not at all.
        let is_there = |host: &&host::Host| host.lost().is_none();
        for host in fleet.iter().flat_map(|fleet| fleet.hosts()).filter(is_there) {
            let name = host.entry().name.as_str();
            let of_host = |node: &str| hosts.get(node).is_some_and(|on| on == name);
            match RemoteProbe::start(host, config(point, site, of_host), origin_ns) {
                Ok(sampler) => there.push(sampler),
                // It has just been lost: its clients run on the others.
                Err(_) if host.lost().is_some() && !hosts.values().any(|on| on == name) => {}
                Err(error) => return Err(error),
            }
        }
        let here = Probes::start(here, origin)?;
        Ok(Samplers { here, there, hosts, origin })
    }

    /// Tells that the processes of a node or service descend from another process from now on.
    pub(crate) fn watch_process(&self, name: &str, root_pid: u32) {
        match self.of(name) {
            None => self.here.watch_process(name, root_pid),
            Some(sampler) => sampler.watch_process(name, root_pid),
        }
    }

    /// Watches a generator, counted from 1: a process of this machine, or on the host of that number
    /// that generates load.
    pub(crate) fn watch_generator(&self, number: usize, pid: u32) {
        if self.there.is_empty() {
            self.here.watch_process(&format!("generator {number}"), pid);
        }
    }

    /// CPU time that the processes of a node or service have used so far, in nanoseconds, and when.
    pub(crate) fn cpu_time(&self, name: &str, root_pid: u32) -> Option<(Moment, u64)> {
        match self.of(name) {
            None => {
                let cpu_ns = probe::cpu_time_ns(root_pid).ok()?;
                Some((clock::now(self.origin), cpu_ns))
            }
            Some(sampler) => {
                let asked = clock::now(self.origin);
                let (_, cpu_ns) = sampler.cpu_time_ns(root_pid)?;
                let answered = clock::now(self.origin);
                Some((Moment(asked.0.midpoint(answered.0)), cpu_ns))
            }
        }
    }

    /// Ends them; everything that they have read, on the run's clock.
    pub(crate) fn stop(self, fleet: Option<&StudyHosts>) -> SamplerReadings {
        let origin_ns = monotonic_ns_at(self.origin);
        let mut all = self.here.stop();
        for sampler in self.there {
            let host = fleet.and_then(|fleet| fleet.host(sampler.host()));
            let course = host.and_then(|host| host.clock().course());
            let course =
                course.expect("a sampler runs on a host of the run, which has answered pings");
            all.add(sampler.stop(&course, origin_ns));
        }
        all
    }

    fn of(&self, name: &str) -> Option<&RemoteProbe> {
        let host = self.hosts.get(name)?;
        self.there.iter().find(|sampler| sampler.host() == host)
    }
}

/// The server that has the data, whose sessions are sampled where the point asks for slow transactions by cause.
pub(crate) struct SampledPlace<'a> {
    node: String,
    conninfo: String,
    database: String,
    postmaster: Option<u32>,
    load: Vec<&'a str>,
}

impl<'a> SampledPlace<'a> {
    /// `conninfos` are those of the load.
    pub(crate) fn of(
        site: &Site,
        point: &TrialPoint,
        conninfos: &'a BTreeMap<String, String>,
    ) -> Option<SampledPlace<'a>> {
        let node = site.data_node();
        point.has_tail.then(|| SampledPlace {
            node: node.name.clone(),
            conninfo: node.probe_conninfo(),
            database: node.database(),
            postmaster: if node.host().is_none() { node.pid() } else { None },
            load: conninfos.values().map(String::as_str).collect(),
        })
    }

    /// The server, with the workloads that end there.
    pub(crate) fn server(&self, point: &TrialPoint) -> SampledServer<'_> {
        let is_other = |to: &String| {
            *to != self.node && point.topology.node(to).is_some_and(|node| node.is_postgres())
        };
        let own: Vec<usize> = (0..point.workloads.len())
            .filter(|index| !point.workloads[*index].to.iter().any(is_other))
            .collect();
        SampledServer {
            conninfo: &self.conninfo,
            database: Some(&self.database),
            postmasters: self.postmaster.into_iter().collect(),
            load: self.load.clone(),
            has_rate: own.iter().any(|index| point.workloads[*index].pace.rate().is_some()),
            workloads: own,
            turns: None,
        }
    }
}

/// How often is read what keeps VACUUM from removing dead rows: in scenarios with phases, about [`HORIZON_READINGS`]
/// times in a window.
fn horizon_every_s(point: &TrialPoint) -> Option<u64> {
    let has_phases = !point.phases.is_empty();
    has_phases.then(|| (point.window_ms / 1000 / HORIZON_READINGS).max(1))
}

/// As many as a chart can show.
const HORIZON_READINGS: u64 = 1_200;

/// The configuration of the sampler beside some nodes and services.
fn config(point: &TrialPoint, site: &Site, is_there: impl Fn(&str) -> bool) -> SamplerConfig {
    let watched =
        // A sampler of a server that is cut off would wait for it longer than the trial.
        |node: &&SiteNode| {
            point.topology.node(&node.name).is_some() && !node.is_managed() && is_there(&node.name)
        };
    let servers = site.nodes.iter().filter(watched).map(|node| probe::WatchedServer {
        node: node.name.clone(),
        conninfo: node.probe_conninfo(),
        database: node.database(),
        log: node.log(),
        root_pid: node.pid(),
        horizon_every_s: horizon_every_s(point),
    });
    let is_server = |name: &str| site.node(name).is_some();
    let processes = site.processes().filter(|(name, _)| !is_server(name) && is_there(name));
    let processes = processes.map(|(name, pid)| (name.to_owned(), pid));
    let pooler = |service: &dyn Service| {
        Some(WatchedPooler { node: service.name().to_owned(), console: service.console()? })
    };
    let services = site.services().filter(|service| is_there(service.name()));
    let links = site.links.iter().filter(|link| is_there(link.name()));
    SamplerConfig {
        servers: servers.collect(),
        processes: processes.collect(),
        poolers: services.filter_map(pooler).collect(),
        links: links.filter_map(SiteLink::tap).collect(),
        generator_pids: Vec::new(),
    }
}
