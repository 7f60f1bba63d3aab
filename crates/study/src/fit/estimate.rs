//! An estimate of a plan's cost: time, memory, disk. It is good enough to refuse a hopeless plan and to
//! tell a person whether to wait or to have lunch.

use std::time::Duration;

use lab::estimate::{BACKEND_BYTES, CLUSTER_BYTES, bytes_of_setting};
use site::{SitePlan, connections};
use spec::{
    Action, Check, DataReset, Pairing, RestoreTarget, ScheduledTrial, Study, Topology,
    TopologyNode, TrialData, TrialPoint, WarmUp,
};

/// The approximate cost of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlanEstimate {
    /// Building servers and data, in seconds.
    pub build_s: f64,
    /// All trials, and what is measured in pairs, in seconds.
    pub trials_s: f64,
    /// Disk of the lab, in bytes.
    pub disk_bytes: u64,
    /// Memory of the largest trial, in bytes.
    pub memory_bytes: u64,
}

impl PlanEstimate {
    /// Loads last as long as they are asked to. All else takes `slowdown` times as long as on the idle machine.
    pub(crate) fn of(
        study: &Study,
        trials: &[ScheduledTrial],
        sites: &[SitePlan],
        slowdown: f64,
    ) -> PlanEstimate {
        let point = |planned: &ScheduledTrial| &study.points[planned.point];
        let memory = trials.iter().map(|planned| memory(point(planned)).total_bytes());
        // Servers of pairs stand at once.
        let pairings = study.pairings_of(trials);
        let both = pairings.iter().map(|pairing| {
            let points = [pairing.above, pairing.below].map(|point| &study.points[point]);
            points.map(|point| self::memory(point).total_bytes()).iter().sum()
        });
        let pairs_s: f64 = pairings.iter().map(pairs_s).sum();
        PlanEstimate {
            build_s: builds_s(sites) * slowdown,
            trials_s: trials
                .iter()
                .map(|planned| trial_time(point(planned)))
                .map(|time| time.load_s + time.work_s * slowdown)
                .sum::<f64>()
                + pairs_s,
            disk_bytes: sites.iter().map(|site| disk_bytes(study, trials, site)).sum(),
            memory_bytes: memory.chain(both).max().unwrap_or(0), // Without a site no memory is needed.
        }
    }

    /// From the first server to the last trial.
    pub fn seconds(&self) -> f64 {
        self.build_s + self.trials_s
    }
}

/// Time that building sites and their data takes on the idle machine, in seconds.
pub(crate) fn builds_s(sites: &[SitePlan]) -> f64 {
    let copied = |index: usize| sites[..index].iter().any(|one| sites[index].has_data_of(one));
    let builds = sites.iter().enumerate().map(|(index, site)| {
        let data_s = match copied(index) {
            true => copy_s(data_bytes(&site.data)),
            false => build_s(&site.data),
        };
        SERVER_S + TURN_S * servers(&site.topology) as f64 + data_s
    });
    builds.sum()
}

/// The parts of the time that one trial takes on the idle machine, from its preparation to the record, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TrialTime {
    /// Clients are at work, as long as they are asked to.
    pub(crate) load_s: f64,
    /// All else, which takes longer on a machine that others use.
    pub(crate) work_s: f64,
}

/// Time that one trial takes on the idle machine.
pub(crate) fn trial_s(point: &TrialPoint) -> f64 {
    let TrialTime { load_s, work_s } = trial_time(point);
    load_s + work_s
}

pub(crate) fn trial_time(point: &TrialPoint) -> TrialTime {
    let reset_s = match point.data.reset {
        DataReset::Clone | DataReset::Whole => SERVER_S + copy_s(data_bytes(&point.data)),
        DataReset::Keep => 0.0,
    };
    let turn_s = TURN_S * servers(&point.topology) as f64;
    let before_s = STEP_S * point.before.len() as f64;
    let connect_s = f64::from(point.clients()) / CONNECTIONS_PER_S;
    let load_s = loaded_s(point);
    let restore_s = RESTORE_S * f64::from(restores(point));
    let explore_s = f64::from(states(point)) / STATES_PER_S;
    let work_s = reset_s + turn_s + before_s + connect_s + restore_s + explore_s + TRIAL_S;
    TrialTime { load_s, work_s }
}

/// Restores of the checks of a point.
fn restores(point: &TrialPoint) -> u32 {
    let count = |is_it: fn(&Action) -> bool| {
        point.timeline.iter().filter(|entry| is_it(&entry.action)).count().max(1) as u32
    };
    let points = count(|action| matches!(action, Action::RestorePoint { .. }));
    let backups = count(|action| matches!(action, Action::Backup { .. }));
    let of_target = |target: &RestoreTarget| match target {
        RestoreTarget::Immediate => backups,
        RestoreTarget::Latest => 1,
        _ => points,
    };
    let of_check = |check: &Check| match check {
        Check::Restore(restore) => restore.to.iter().map(of_target).sum::<u32>().max(1),
        _ => 0,
    };
    point.checks.iter().map(of_check).sum()
}

/// Time for which clients are at work, in seconds.
fn loaded_s(point: &TrialPoint) -> f64 {
    let warmup_ms = match point.warmup {
        WarmUp::Fixed(ms) => ms,
        // Most throughput is steady soon after the least time that is given to it.
        WarmUp::Auto { min_ms, max_ms } => min_ms + (max_ms - min_ms) / 3,
    };
    (warmup_ms + point.window_ms + point.capacity_ms()) as f64 / 1e3
}

/// States of power cuts that are looked through after a load.
fn states(point: &TrialPoint) -> u32 {
    let states = point.checks.iter().map(|check| match check {
        Check::Explore(explore) => explore.states + SECOND_STATES * explore.second_cuts,
        _ => 0,
    });
    states.sum()
}

/// Time for which two points are measured in pairs at most, in seconds: servers that start and vacuum are
/// part of it. Both sites are stopped afterwards.
pub(crate) fn pairs_s(pairing: &Pairing) -> f64 {
    pairing.pairs.max_ms as f64 / 1e3 + STEP_S
}

/// The time that an interval of two points in pairs takes at least, in seconds.
pub(crate) fn interval_s(study: &Study, pairing: &Pairing) -> f64 {
    let points = [pairing.above, pairing.below].map(|point| &study.points[point]);
    let servers = points.map(|point| servers(&point.topology)).into_iter().max().unwrap_or(1);
    let start_s = STEP_S + RESTART_S * servers as f64;
    let max_time = Duration::from_millis(pairing.pairs.max_ms);
    start_s + measure::interval_s(max_time, pairing.pairs.block_ms, start_s)
}

/// The parts of a trial's memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Memory {
    pub(crate) connections: u32,
    pub(crate) shared_bytes: u64,
    /// The memory of the programs of machines that are no servers.
    pub(crate) program_bytes: u64,
}

impl Memory {
    pub(crate) fn total_bytes(&self) -> u64 {
        let connections_bytes = u64::from(self.connections) * BACKEND_BYTES;
        self.shared_bytes + connections_bytes + self.program_bytes + RIG_BYTES
    }
}

/// Memory while a point runs: its servers' shared_buffers, a process for each connection that
/// they get, the programs of machines, the rig.
pub(crate) fn memory(point: &TrialPoint) -> Memory {
    memory_of(point, |_| true)
}

/// The same of some of its servers, by their names.
pub(crate) fn memory_of(point: &TrialPoint, is_meant: impl Fn(&str) -> bool) -> Memory {
    let nodes = || point.topology.nodes.iter();
    let servers = || nodes().filter(|node| has_server(node) && is_meant(&node.name));
    let shared = servers().map(|node| {
        let setting = node.settings.value("shared_buffers");
        setting.and_then(|text| bytes_of_setting(text, 8192)).unwrap_or(SHARED_BUFFERS_DEFAULT)
    });
    let connections = servers().map(|node| match node.machine() {
        // Any of a manager's servers may have all clients.
        Some(_) => point.clients(),
        None => connections(point, &node.name),
    });
    let programs = nodes().filter(|node| is_meant(&node.name)).map(programs).sum::<u64>();
    Memory {
        connections: connections.sum(),
        shared_bytes: shared.sum(),
        program_bytes: programs * PROGRAM_BYTES,
    }
}

/// Disk of a site: its data and WAL.
pub(crate) fn disk_bytes(study: &Study, trials: &[ScheduledTrial], site: &SitePlan) -> u64 {
    disk_bytes_of(study, trials, site, |_| true)
}

/// The same of some of its servers, by their names.
pub(crate) fn disk_bytes_of(
    study: &Study,
    trials: &[ScheduledTrial],
    site: &SitePlan,
    is_meant: impl Fn(&str) -> bool,
) -> u64 {
    let written = wal_bytes(study, trials, site);
    let meant = || {
        let nodes = site.topology.nodes.iter();
        nodes.filter(|node| has_server(node) && is_meant(&node.name))
    };
    let wal = || -> u64 {
        let servers = meant();
        let settings = servers.map(|node| node.settings.value("max_wal_size"));
        let sizes = settings.map(|text| {
            let most = text.and_then(|text| bytes_of_setting(text, 1 << 20)).unwrap_or(WAL_DEFAULT);
            most.min(written)
        });
        sizes.sum()
    };
    let copies = match site.data.reset {
        DataReset::Clone | DataReset::Whole => 2,
        DataReset::Keep => 1,
    };
    let servers = meant().count() as u64;
    // A standby has all that its primary has.
    let standbys = site.topology.standbys(&site.data.node);
    let own = standbys.iter().filter(|standby| is_meant(&standby.name)).count();
    // Which of a manager's servers has the data is not known before: each of them in its turn.
    let managed = meant().filter(|node| node.machine().is_some()).count() as u64;
    let with_data = u64::from(is_meant(&site.data.node)).max(managed) + own as u64;
    let nodes = site.topology.nodes.iter().filter(|node| is_meant(&node.name));
    let programs: u64 = nodes.map(programs).sum();
    copies * (with_data * data_bytes(&site.data) + servers * CLUSTER_BYTES)
        + wal()
        + programs * PROGRAM_BYTES
}

/// WAL that the server with the data may have written at any time since its last checkpoint: building,
/// and the loads until its files are thrown away or it is restarted.
fn wal_bytes(study: &Study, trials: &[ScheduledTrial], site: &SitePlan) -> u64 {
    let own = trials.iter().filter(|planned| site.points.contains(&planned.point));
    let loads_s = own.map(|planned| study.points[planned.point].load_ms_max() as f64 / 1e3);
    let trials_s = match site.data.reset {
        DataReset::Clone | DataReset::Whole => loads_s.fold(0.0, f64::max),
        DataReset::Keep => loads_s.sum(),
    };
    let is_own = |point: usize| site.points.contains(&point);
    let mut pairings = study.pairings_of(trials).into_iter();
    let is_paired = pairings.any(|pairing| is_own(pairing.above) || is_own(pairing.below));
    let load_s = trials_s.max(if is_paired { PAIRS_LOAD_S } else { 0.0 });
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    2 * data_bytes(&site.data) + (load_s * WAL_BYTES_PER_S * cores as f64) as u64
}

/// True of a server that the rig starts, and of a machine whose programs start one.
fn has_server(node: &TopologyNode) -> bool {
    node.is_postgres() || node.machine().is_some_and(|machine| machine.server.is_some())
}

/// Number of programs of a machine.
fn programs(node: &TopologyNode) -> u64 {
    // A node of another kind has no programs of the study's.
    node.machine().map_or(0, |machine| machine.processes.len() as u64)
}

fn servers(topology: &Topology) -> u64 {
    topology.nodes.iter().filter(|node| node.is_postgres()).count() as u64
}

pub(crate) fn data_bytes(data: &TrialData) -> u64 {
    // Without pgbench's tables these have no bytes.
    let pgbench = data.pgbench.as_ref().map_or(0, |tables| {
        // The accounts are by far the largest table: a lower fill factor makes more pages.
        let table = SCALE_TABLE_BYTES * 100 / u64::from(tables.fillfactor);
        u64::from(tables.scale) * (table + SCALE_INDEX_BYTES)
    });
    pgbench + rows(data) * ROW_BYTES
}

fn build_s(data: &TrialData) -> f64 {
    // Without pgbench's tables none are built.
    let scale = data.pgbench.as_ref().map_or(0, |tables| tables.scale);
    f64::from(scale) / SCALES_PER_S + rows(data) as f64 / ROWS_PER_S
}

/// Rows that a study's own script makes, as far as it says.
fn rows(data: &TrialData) -> u64 {
    // Rows of which the study says nothing are not in the estimate.
    data.variables.get("rows").and_then(|rows| rows.parse().ok()).unwrap_or(0)
}

fn copy_s(bytes: u64) -> f64 {
    bytes as f64 / COPY_BYTES_PER_S
}

/// Files that each generator process holds open: a socket for each client, and some.
pub(crate) fn open_files(point: &TrialPoint) -> u64 {
    u64::from(point.clients().div_ceil(point.generators)) + SPARE_FILES
}

/// Lanes, pipes, libraries.
const SPARE_FILES: u64 = 64;

// Figures of a small virtual machine; a plan errs by their differences from another one.

/// The rig with its histograms.
const RIG_BYTES: u64 = 64 << 20;
/// A program of a machine: an etcd with its logs, which it allocates in advance, a manager in Python, a proxy.
/// Both its memory and its files.
const PROGRAM_BYTES: u64 = 64 << 20;
/// PostgreSQL's own default.
const SHARED_BUFFERS_DEFAULT: u64 = 128 << 20;
/// PostgreSQL's own default of max_wal_size.
pub(crate) const WAL_DEFAULT: u64 = 1 << 30;
/// Longest load of one side in pairs between two restarts, warming up included.
const PAIRS_LOAD_S: f64 = 10.0;
/// What the load of one core writes a second at most, with a full-page image for each change.
const WAL_BYTES_PER_S: f64 = 24e6;
/// 100,000 accounts, and their index.
const SCALE_TABLE_BYTES: u64 = 13_500_000;
const SCALE_INDEX_BYTES: u64 = 2_300_000;
/// A row of a study's own, of unknown width.
const ROW_BYTES: u64 = 150;
/// initdb or a copy of it, a start, a stop.
const SERVER_S: f64 = 2.0;
/// Stopping and starting one server where sites take turns.
const TURN_S: f64 = 0.25;
/// Stopping one server with a checkpoint and starting it again, its standbys streaming.
const RESTART_S: f64 = 1.5;
/// Filling 100,000 accounts and indexing them, a second.
const SCALES_PER_S: f64 = 4.0;
const ROWS_PER_S: f64 = 300_000.0;
const COPY_BYTES_PER_S: f64 = 400e6;
/// A step before the clients come: a vacuum or a checkpoint, mostly.
const STEP_S: f64 = 1.5;
/// Connecting, with authentication, and leaving.
const CONNECTIONS_PER_S: f64 = 500.0;
/// The probes' first and last readings, writing the record.
const TRIAL_S: f64 = 1.0;
/// States of power cuts that two processors recover and look through.
const STATES_PER_S: f64 = 5.0;
/// States of a recovery in which the power is cut once more, and the recovery itself.
const SECOND_STATES: u32 = 5;
/// A base backup of a small cluster before, its copy and the replay of an archive after.
const RESTORE_S: f64 = 4.0;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use spec::StudyProfile;

    use super::*;

    fn quick(name: &str) -> Study {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies").join(name);
        Study::parse(&record::read_folder(&path).unwrap(), StudyProfile::Quick).unwrap()
    }

    /// The promise of explorations for profile quick, their controls included.
    #[test]
    fn quick_explores_two_thousand_states_in_ten_minutes() {
        let study = quick("fsync");
        let trials = study.trials(None);
        let points = trials.iter().map(|planned| &study.points[planned.point]);
        let explored: Vec<&TrialPoint> = points.filter(|point| states(point) > 0).collect();
        let states: u32 = explored.iter().map(|point| states(point)).sum();
        let minutes = explored.iter().map(|point| trial_s(point)).sum::<f64>() / 60.0;
        assert!(states >= 2_000 && minutes <= 10.0, "{states} states in {minutes:.1} minutes");
    }

    /// Machines whose programs start servers need the memory and the disk of these servers, and of the programs.
    #[test]
    fn machines_cost_what_their_servers_and_programs_do() {
        let study = quick("failover");
        let trials = study.trials(Some("repmgr/plain_server_paused*"));
        let points: Vec<usize> = trials.iter().map(|planned| planned.point).collect();
        let sites = SitePlan::all(&study, &points);
        let cost = PlanEstimate::of(&study, &trials, &sites, 1.0);
        let three_servers = 3 * SHARED_BUFFERS_DEFAULT;
        assert!(cost.memory_bytes > three_servers + 5 * PROGRAM_BYTES, "{cost:?}");
        assert!(cost.disk_bytes > 3 * CLUSTER_BYTES + 5 * PROGRAM_BYTES, "{cost:?}");
    }

    /// The manager of each site makes the data of its servers itself, so there are no files to copy.
    #[test]
    fn data_of_managed_servers_are_built_for_each_site() {
        let study = quick("failover");
        let points: Vec<usize> = (0..study.points.len()).collect();
        let sites = SitePlan::all(&study, &points);
        let is_managed = |site: &SitePlan| {
            site.topology.node(&site.data.node).is_some_and(|node| node.machine().is_some())
        };
        let managed: Vec<&SitePlan> = sites.iter().filter(|site| is_managed(site)).collect();
        assert!(managed.len() > 1, "{} sites", managed.len());
        for (index, site) in managed.iter().enumerate() {
            assert!(!managed[..index].iter().any(|other| site.has_data_of(other)), "site {index}");
        }
    }

    /// Twice as long for all but the loads, whose length is given.
    #[test]
    fn a_busy_machine_takes_longer_for_all_but_the_load() {
        let study = quick("pgbench");
        let points: Vec<usize> = (0..study.points.len()).collect();
        let (sites, trials) = (SitePlan::all(&study, &points), study.trials(None));
        let at = |slowdown| PlanEstimate::of(&study, &trials, &sites, slowdown);
        let (idle, busy, busier) = (at(1.0), at(2.0), at(3.0));
        assert!((busy.build_s - 2.0 * idle.build_s).abs() < 1e-9);
        let load_s: f64 = trials.iter().map(|trial| &study.points[trial.point]).map(loaded_s).sum();
        let pairs_s: f64 = study.pairings_of(&trials).iter().map(pairs_s).sum();
        let expected = 2.0 * (idle.trials_s - load_s - pairs_s) + load_s + pairs_s;
        assert!((busy.trials_s - expected).abs() < 1e-6, "{busy:?}, not {expected}");
        assert!(busier.trials_s > busy.trials_s && busier.disk_bytes == idle.disk_bytes);
    }

    /// The promise of the studies for profile quick.
    #[test]
    fn quick_fits_its_time() {
        let check = |name: &str, minutes: f64| {
            let study = quick(name);
            let points: Vec<usize> = (0..study.points.len()).collect();
            let sites = SitePlan::all(&study, &points);
            let took = PlanEstimate::of(&study, &study.trials(None), &sites, 1.0).seconds() / 60.0;
            assert!(took <= minutes, "{name}: {took:.1} minutes, not {minutes}");
        };
        check("pgbench", 5.0);
        check("replication", 30.0);
        check("sharding", 30.0);
        check("pool", 45.0);
        check("fsync", 30.0);
    }
}
