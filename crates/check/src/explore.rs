//! Every crash of a load: from the log of a disk's writes and flushes come states that a power cut
//! could have left, and each is recovered and looked through.
//!
//! Reading order: [`check()`] is the whole, `place` says which block belongs to what, `replica` brings
//! up one state and looks at it, `damage` is what amcheck finds there, `fate` is what became of it, `witness` finds the smallest loss that
//! still fails, `kept` is what `pgrig run --state` works on.

mod again;
mod damage;
mod fate;
mod kept;
mod place;
mod recovery;
mod replica;
mod report;
mod spent;
mod witness;

use std::fs::File;
use std::io::{BufReader, BufWriter, Read};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use crash::{
    DiskLog, DiskState, FileMap, FlushEffect, LossPattern, PlannedState, StateCursor, StatePlan,
    StatePlanRequest, WriteKind,
};
use fault::disk::{ImagePatch, RequestLog};
use lab::{Node, Server};
use record::Moment;
use record::ledger::Ledger;
use server::StopUrgency;
use site::{Site, SiteNode};
use spec::{Check, DiskKind, NodeKind, QuorumWay, StateExploration, TrialPoint};

use crate::error::Error;
use crate::outcome::{CheckOutcome, TrialFacts};
use crate::written;

#[cfg(fuzzing)]
pub use again::read_list;
pub use again::{RecoveredState, again};
use damage::DamageQueries;
use fate::StateFate;
use place::BaseFiles;
use replica::Replica;
use report::ComparedTables;
use spent::{ExplorationPhase, ExplorationTime};

/// Explores the log of every disk that the point has explored. `origin_ns` is the machine's monotonic
/// clock at moment zero, and `seed` decides which states are recovered.
pub fn check(
    site: &mut Site,
    before: &TrialFacts<'_>,
    origin_ns: u64,
    seed: u64,
) -> Result<CheckOutcome, Error> {
    let mut outcome = CheckOutcome::default();
    for check in &before.point.checks {
        let Check::Explore(explore) = check else { continue };
        outcome.add(one(site, before, explore, origin_ns, seed)?);
    }
    Ok(outcome)
}

/// The part that a server had in replication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It acknowledged by itself.
    Primary,
    /// A standby that every acknowledgement waited for; it is promoted in each state.
    Synchronous,
    /// A standby that not every acknowledgement waited for; it is promoted, and may lack some.
    Asynchronous,
}

impl Role {
    fn of(point: &TrialPoint, node: &str) -> Role {
        match point.topology.node(node).map(|node| &node.kind) {
            Some(NodeKind::Postgres(spec::PostgresRole::Standby { of, .. })) => {
                match is_waited_for(point, of, node) {
                    true => Role::Synchronous,
                    false => Role::Asynchronous,
                }
            }
            _ => Role::Primary,
        }
    }
}

/// True if every commit of a primary waits for this standby: for all of its synchronous standbys, or for
/// those of the highest priority, where no action can have another one stand in for it.
fn is_waited_for(point: &TrialPoint, primary: &str, standby: &str) -> bool {
    let topology = &point.topology;
    let names = topology.sync_standbys(primary);
    let Some(position) = names.iter().position(|name| *name == standby) else { return false };
    let kind = topology.node(primary).map(|node| &node.kind);
    let (way, count) = match kind {
        Some(NodeKind::Postgres(spec::PostgresRole::Primary { sync: Some(quorum) })) => {
            (quorum.way, quorum.count as usize)
        }
        _ => (QuorumWay::First, 1),
    };
    let is_chosen = way == QuorumWay::First && position < count && point.timeline.is_empty();
    is_chosen || count >= names.len()
}

/// All that is known of one log.
struct Explored<'e> {
    site: &'e Site,
    before: &'e TrialFacts<'e>,
    /// The disks of the server.
    disk: DiskKind,
    log: &'e DiskLog,
    map: &'e FileMap,
    flushes: FlushEffect,
    /// The disk tears a write at multiples of so many bytes.
    sector_bytes: u64,
    /// The file of the log's contents.
    contents: &'e Path,
    /// The image of each disk from before the log.
    bases: &'e [PathBuf],
    /// Files that are as they were before the log.
    untouched: BaseFiles,
    /// The study's own queries.
    asked: DamageQueries<'e>,
    role: Role,
    ledger: &'e Ledger,
    origin_ns: u64,
}

/// A state that was looked at.
struct Seen {
    /// The number in the plan, from 1.
    number: usize,
    planned: PlannedState,
    fate: StateFate,
    /// Fates of the states of second cuts during its recovery.
    second: Vec<StateFate>,
}

fn one(
    site: &mut Site,
    before: &TrialFacts<'_>,
    explore: &StateExploration,
    origin_ns: u64,
    seed: u64,
) -> Result<CheckOutcome, Error> {
    let name = explore.node.clone().unwrap_or_else(|| before.point.data.node.clone());
    let disk = before.point.topology.node(&name).map_or(DiskKind::Plain, |node| node.disk);
    let (flushes, sector_bytes) = match disk {
        DiskKind::CutBlock { lying, sector_bytes, .. } => {
            (if lying { FlushEffect::Lying } else { FlushEffect::Honest }, u64::from(sector_bytes))
        }
        _ => (FlushEffect::Honest, 512),
    };
    let no_server = || Error::Site(site::Error::NoServer(name.clone()));
    let node = site.node(&name).ok_or_else(no_server)?;
    if node.host().is_some() {
        return Err(Error::Elsewhere { node: name });
    }
    // Who is where is asked of the server while it runs.
    let relations = place::relations(node);
    let role = Role::of(before.point, &name);
    let mut unfollowed = unfollowed(site, before, explore, role)?;
    let server = site.server_mut(&name).ok_or_else(no_server)?;
    // Of two disks the log of one ends first: nothing is to write to the other one in between.
    server.kill9()?;
    let recorded = server.end_record()?;
    let (log, contents) = read(&recorded)?;
    let map = place::map(&recorded, &relations);
    let kinds = map.kinds(&log);
    let states = explore.states as usize;
    let mut plan =
        crash::plan(&log, &kinds, &StatePlanRequest { states, seed, flushes, sector_bytes });
    if plan.states.is_empty() {
        // Nothing was written: the disk is as it was before the load, whatever was acknowledged.
        let state = DiskState { cut: log.entries.len(), lost: Vec::new() };
        plan.states.push(PlannedState {
            state,
            kind: WriteKind::Other,
            way: LossPattern::All,
            write: None,
        });
    }
    let ledger = Ledger::read(before.ledger)?;
    let bases: Vec<PathBuf> = recorded.iter().filter_map(|one| one.base.clone()).collect();
    let (Some(base), Some(first)) = (bases.first(), recorded.first()) else {
        return Err(Error::NoLog { node: name });
    };
    let explored = Explored {
        site,
        before,
        disk,
        log: &log,
        map: &map,
        flushes,
        sector_bytes,
        contents: &contents,
        bases: &bases,
        untouched: place::untouched(first, &log, base).map_err(file_error("looking at", base))?,
        asked: DamageQueries::of(explore),
        role,
        ledger: &ledger,
        origin_ns,
    };
    let began = Instant::now();
    let (seen, spent) = explored.all(&name, &plan, explore.second_cuts as usize)?;
    let took = began.elapsed();
    if !explored.is_over() && !seen.iter().any(|one| one.fate.has_failed()) {
        unfollowed.blind = explored.blind(&name)?;
    }
    let mut outcome = CheckOutcome::default();
    report::figures(&explored, &name, &recorded, &seen, took, &mut outcome);
    report::verdict(explore, &name, &seen, &mut outcome);
    report::followed(&unfollowed, &mut outcome);
    report::coverage(&explored, &name, &kinds, &plan, &seen, &mut outcome);
    report::second_cuts(&seen, &mut outcome);
    report::time(spent, &seen, &mut outcome);
    if seen.iter().any(|one| one.fate.has_failed()) && !explored.is_over() {
        let witnesses = explored.witnesses(&name, &seen)?;
        report::witnesses(&explored, &witnesses, &mut outcome);
        kept::keep(&explored, &recorded, &seen, &witnesses)?;
    }
    for file in bases.iter().chain([&contents]) {
        let _ = std::fs::remove_file(file);
    }
    Ok(outcome)
}

/// The tables that the load wrote and nothing follows, as far as a server can tell.
fn unfollowed(
    site: &Site,
    before: &TrialFacts<'_>,
    explore: &StateExploration,
    role: Role,
) -> Result<report::UnfollowedTables, Error> {
    let followed = written::followed(before.point, explore);
    let tables = match role {
        _ if site.is_sharded() => {
            ComparedTables::Nothing("the rows of a cluster are on several servers")
        }
        Role::Asynchronous => {
            ComparedTables::Nothing("an asynchronous standby may lack what was acknowledged")
        }
        _ if site.data_node().connect().is_err() => ComparedTables::Unknown,
        Role::Primary | Role::Synchronous => {
            let unfollowed = before.values.written.unfollowed(site.data_node(), &followed)?;
            unfollowed.map_or(ComparedTables::Unknown, ComparedTables::AllBut)
        }
    };
    Ok(report::UnfollowedTables { tables, blind: Vec::new() })
}

/// Reads the logs of a server's disks as one, and writes their contents beside the first.
fn read(recorded: &[RequestLog]) -> Result<(DiskLog, PathBuf), Error> {
    let paths: Vec<&Path> = recorded.iter().map(|one| one.log.as_path()).collect();
    let contents = paths.first().map_or(PathBuf::new(), |path| path.with_extension("contents"));
    let mut log = read_own_logs(&paths, &contents)?;
    if let [_, _, ..] = recorded {
        let began_ns = recorded.iter().map(|one| one.began_ns).max();
        log.begin_at(began_ns.expect("there are two logs"));
    }
    Ok((log, contents))
}

/// Reads logs of this run, however long they are.
fn read_own_logs(paths: &[&Path], contents: &Path) -> Result<DiskLog, Error> {
    let open = |path: &&Path| {
        let source = File::open(path).map_err(file_error("opening", path))?;
        Ok(LogFile { path: path.to_path_buf(), source: Box::new(source) })
    };
    let files = paths.iter().map(open).collect::<Result<Vec<_>, Error>>()?;
    read_logs(files, contents, usize::MAX)
}

/// A log of a disk, opened, and its path for messages.
struct LogFile {
    path: PathBuf,
    source: Box<dyn Read>,
}

/// Reads logs as one. Each is read as far as [`DiskLog::read_within`] says.
fn read_logs(files: Vec<LogFile>, contents: &Path, items_max: usize) -> Result<DiskLog, Error> {
    let _ = std::fs::remove_file(contents);
    let made = File::options().write(true).create_new(true).open(contents);
    let mut made = BufWriter::with_capacity(1 << 20, made.map_err(file_error("making", contents))?);
    let mut all: Option<DiskLog> = None;
    for LogFile { path, source } in files {
        let mut source = BufReader::with_capacity(1 << 20, source);
        let read = match &mut all {
            None => {
                DiskLog::read_within(&mut source, &mut made, items_max).map(|log| all = Some(log))
            }
            Some(all) => all.read_another(&mut source, &mut made, items_max),
        };
        read.map_err(|source| Error::Log { path, source })?;
    }
    // Without a log there is no request.
    Ok(all.unwrap_or_default())
}

fn file_error(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File { doing, path, source }
}

impl Explored<'_> {
    /// Looks at all states of a plan, on all processors.
    fn all(
        &self,
        node: &str,
        plan: &StatePlan,
        second_cuts: usize,
    ) -> Result<(Vec<Seen>, ExplorationTime), Error> {
        let workers = thread::available_parallelism().map_or(1, NonZero::get);
        let workers = workers.min(plan.states.len()).max(1);
        let numbered: Vec<(usize, &PlannedState)> = (1..).zip(&plan.states).collect();
        let second_every = match second_cuts {
            0 => usize::MAX,
            some => (plan.states.len() / some).max(1),
        };
        let has_failed = AtomicBool::new(false);
        let results = thread::scope(|scope| {
            let parts = numbered.chunks(plan.states.len().div_ceil(workers).max(1));
            let threads: Vec<_> = parts
                .enumerate()
                .map(|(worker, part)| {
                    let has_failed = &has_failed;
                    scope.spawn(move || {
                        let seen = self.some(node, worker, part, second_every, has_failed);
                        if seen.is_err() {
                            has_failed.store(true, Ordering::Relaxed);
                        }
                        seen
                    })
                })
                .collect();
            let joined = threads.into_iter().map(|thread| thread.join());
            joined.collect::<Vec<_>>()
        });
        let (mut all, mut spent) = (Vec::new(), ExplorationTime::default());
        for result in results {
            match result {
                Ok(part) => {
                    let (seen, of_part) = part?;
                    all.extend(seen);
                    spent.add(of_part);
                }
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok((all, spent))
    }

    fn some(
        &self,
        node: &str,
        worker: usize,
        part: &[(usize, &PlannedState)],
        second_every: usize,
        has_failed: &AtomicBool,
    ) -> Result<(Vec<Seen>, ExplorationTime), Error> {
        let mut replica = self.replica(node, worker)?;
        let mut cursor = StateCursor::new(self.log, self.flushes);
        let mut all = Vec::with_capacity(part.len());
        if worker == 0 {
            all.push(self.before(&mut replica)?);
        }
        for (number, planned) in part {
            if self.is_over() || has_failed.load(Ordering::Relaxed) {
                break;
            }
            let mut spent = replica.spent;
            let (patch, ledger) =
                spent.time(ExplorationPhase::State, || self.state(&mut cursor, &planned.state));
            replica.spent = spent;
            let fate = replica.look(self, &patch, &ledger, &self.untouched)?;
            let second = match number % second_every == second_every / 2 && fate.is_sound() {
                true => recovery::second_cuts(self, &mut replica, &patch, &ledger, *number)?,
                false => Vec::new(),
            };
            all.push(Seen { number: *number, planned: (*planned).clone(), fate, second });
        }
        Ok((all, replica.spent))
    }

    /// The state from before the log, looked through in full. Relations that no later state changes are
    /// not looked at again.
    fn before(&self, replica: &mut Replica) -> Result<Seen, Error> {
        let state = DiskState { cut: self.log.first_cut, lost: Vec::new() };
        let (patch, ledger) = self.state(&mut StateCursor::new(self.log, self.flushes), &state);
        let fate = replica.look(self, &patch, &ledger, &BaseFiles::default())?;
        let planned =
            PlannedState { state, kind: WriteKind::Other, way: LossPattern::All, write: None };
        Ok(Seen { number: 0, planned, fate, second: Vec::new() })
    }

    /// The followed tables whose query follows nothing, found out in the state that has everything.
    fn blind(&self, node: &str) -> Result<Vec<String>, Error> {
        if self.asked.followed().next().is_none() {
            return Ok(Vec::new());
        }
        let mut replica = self.replica(node, BLIND_WORKER)?;
        let state = DiskState { cut: self.log.entries.len(), lost: Vec::new() };
        let (patch, _) = self.state(&mut StateCursor::new(self.log, self.flushes), &state);
        replica.load(&patch, false)?;
        match replica.start()? {
            Ok(()) => damage::blind(&replica.node, self.asked),
            // It is among the states, or had the content of one.
            Err(_) => Ok(Vec::new()),
        }
    }

    /// True if the user has asked for the end.
    fn is_over(&self) -> bool {
        self.before.control.urgency() != StopUrgency::None
    }

    /// A state as a disk is switched on with it, and what was known of every transaction when the
    /// power was cut.
    fn state(&self, cursor: &mut StateCursor<'_>, state: &DiskState) -> (ImagePatch, Ledger) {
        let mut patch = ImagePatch::default();
        patch.add(&cursor.overlay(state), self.contents);
        // The disk had answered every request before the cut, and had not got the next one.
        let moment = |at_ns: Option<u64>| {
            at_ns.map_or(Moment(u64::MAX), |at_ns| Moment(at_ns.saturating_sub(self.origin_ns)))
        };
        let (answered_by, taken_by) = self.log.moments(state.cut);
        (patch, self.ledger.as_of_between(moment(answered_by), moment(taken_by)))
    }

    fn replica(&self, node: &str, worker: usize) -> Result<Replica, Error> {
        let (of, server) = self.server(node)?;
        Replica::make(of, server, worker, self.bases, self.role != Role::Primary)
    }

    fn server(&self, node: &str) -> Result<(&SiteNode, &Node), Error> {
        let no_server = || Error::Site(site::Error::NoServer(node.to_owned()));
        let of = self.site.node(node).ok_or_else(no_server)?;
        match &of.server {
            Server::Node(server) => Ok((of, server)),
            _ => Err(Error::NotOurs { program: "explore", node: node.to_owned(), would: "stop" }),
        }
    }
}

/// It has a replica of its own.
const BLIND_WORKER: usize = 998;
