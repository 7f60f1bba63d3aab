//! Power cuts: disks whose power can be cut, the cut, what it took, and whether the server starts
//! again.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use fault::disk::{DiskConfig, DiskProgram, PowerCutMethod, PowerCutReport};
use lab::Node;
use spec::{DataPart, DiskFault, DiskRequest, FailingRequests, FileSystem, ServerFiles};

use crate::site::Site;
use crate::stations::SiteStation;

/// The reason why a power cut does not count, or why a server could not be started after one.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum PowerError {
    #[error("{}", with_hint(.0))]
    Lab(#[from] lab::Error),
    #[error("the server is not ours")]
    NotOurs,
    #[error("the server did not run when its power was to be cut")]
    NotRunning,
    #[error("its disk fails, and it has not ended within {seconds} s")]
    GoesOn { seconds: u64 },
    #[error("the server tells of no file of that kind whose requests could fail")]
    NoFiles,
    /// The cut was made all the same: its server is down, and may have lost what it had flushed.
    #[error("nothing was unflushed: the cut had nothing to lose")]
    NothingToLose(Box<TakenCut>),
}

fn with_hint(error: &lab::Error) -> String {
    match error.hint() {
        Some(hint) => format!("{error}; hint: {hint}"),
        None => error.to_string(),
    }
}

/// The disk of a node; none for a plain one. `program` becomes the device of a block disk, when it is called with `disk`.
pub fn disk(disk: spec::DiskKind, program: &Path) -> Option<DiskConfig> {
    match disk {
        spec::DiskKind::Plain => None,
        spec::DiskKind::CutFilesystem { size_bytes } => {
            let (file_system, method) = (FileSystem::Ext4, PowerCutMethod::FileSystem);
            Some(DiskConfig { size_bytes, file_system, method })
        }
        spec::DiskKind::CutBlock {
            size_bytes,
            sector_bytes,
            lying: is_lying,
            file_system,
            log_bytes,
            wal_bytes: _,
            tablespaces_bytes: _,
        } => {
            let program = DiskProgram { path: program.to_owned(), args: vec!["disk".into()] };
            let method = PowerCutMethod::Block { sector_bytes, is_lying, log_bytes, program };
            Some(DiskConfig { size_bytes, file_system, method })
        }
    }
}

/// The disks of parts of a node's data; none for a part that is with the rest.
pub fn disks_apart(disk: spec::DiskKind, program: &Path) -> BTreeMap<DataPart, DiskConfig> {
    let parts = disk.parts().into_iter().filter(|(part, _)| *part != DataPart::Main);
    let config = self::disk(disk, program);
    let each = parts.filter_map(|(part, size_bytes)| {
        config.clone().map(|config| (part, DiskConfig { size_bytes, ..config }))
    });
    each.collect()
}

/// Flushes the disks whose power can be cut: what was prepared for the clients is not what a cut
/// shall take, nor what makes it count. Disks that keep a log begin it then.
pub fn flush_disks(site: &mut Site) -> Result<(), PowerError> {
    site.stations.sync()?;
    let mut nodes = site.nodes.iter_mut().filter_map(|node| node.server.node());
    Ok(nodes.try_for_each(|node| {
        node.sync()?;
        node.record_writes(None)
    })?)
}

/// A cut, and what it met.
#[derive(Clone, Debug)]
pub struct TakenCut {
    /// The server.
    pub node: String,
    /// The bytes that the disk lost and kept.
    pub cut: PowerCutReport,
    seed: u64,
    /// True if a checkpoint was under way; none where the server does not log them.
    pub in_checkpoint: Option<bool>,
    /// True if the server said PANIC when its disk failed; none where the disk did not fail, or the log is gone.
    pub has_panicked: Option<bool>,
}

impl TakenCut {
    /// Describes the cut in words; the seed replays it.
    pub fn words(&self) -> String {
        words(&self.cut, self.seed)
    }
}

fn words(cut: &PowerCutReport, seed: u64) -> String {
    format!(
        "{} bytes were not flushed: {} lost, {} kept, {} blocks torn; seed {seed}",
        cut.unflushed_bytes, cut.dropped_bytes, cut.kept_bytes, cut.torn_blocks
    )
}

/// Cuts the power of a machine, which stays down; returns in words what that cost. What it does when it is
/// started again is for its manager to say.
///
/// # Errors
/// The lab's: it has no disk of its own.
pub fn cut_machine(
    machine: &SiteStation,
    seed: u64,
    at: Option<DiskRequest>,
) -> Result<String, PowerError> {
    Ok(words(&machine.station.power_cut(seed, at)?, seed))
}

/// Cuts the power of a server, which stays down: at once, or at a request of its block disk. A cut that
/// found nothing to lose proves nothing.
pub fn cut(
    site: &mut Site,
    name: &str,
    seed: u64,
    at: Option<DiskRequest>,
) -> Result<TakenCut, PowerError> {
    let node = server(site, name)?;
    if !node.is_running()? {
        return Err(PowerError::NotRunning);
    }
    let cut = node.power_cut(seed, at)?;
    let in_checkpoint = is_in_checkpoint(&node.log_text());
    let has_lost_nothing = cut.unflushed_bytes == 0;
    let taken = TakenCut { node: name.to_owned(), cut, seed, in_checkpoint, has_panicked: None };
    match has_lost_nothing {
        true => Err(PowerError::NothingToLose(Box::new(taken))),
        false => Ok(taken),
    }
}

/// Has the block disk of a server fail from a request on, waits until the server has ended by itself, and
/// cuts its power.
///
/// # Errors
/// [`PowerError::GoesOn`] where it has not ended; the lab's.
pub fn fail_disk(
    site: &mut Site,
    name: &str,
    seed: u64,
    at: DiskRequest,
    fault: DiskFault,
) -> Result<TakenCut, PowerError> {
    let node = server(site, name)?;
    if !node.is_running()? {
        return Err(PowerError::NotRunning);
    }
    node.fail_disk(at, fault)?;
    let ended =
        lab::wait_until(ENDS_WITHIN, || Ok::<_, lab::Error>((!node.is_running()?).then_some(())))?;
    let log = node.log_text();
    let in_checkpoint = is_in_checkpoint(&log);
    let has_panicked = has_panicked(&log);
    let cut = node.power_cut(seed, None)?;
    match ended {
        Some(()) => Ok(TakenCut { node: name.to_owned(), cut, seed, in_checkpoint, has_panicked }),
        None => Err(PowerError::GoesOn { seconds: ENDS_WITHIN.as_secs() }),
    }
}

/// Has some requests of a server's block disk fail, while others are done and the server goes on. What that is
/// about, in words.
///
/// # Errors
/// The lab's: none of the files is on a disk of the server; the server's, where it does not tell its relations' files.
pub fn fail_requests(
    site: &mut Site,
    name: &str,
    files: Option<&ServerFiles>,
    failing: FailingRequests,
) -> Result<String, PowerError> {
    let relations = match files {
        Some(ServerFiles::Heap) => Some("'r', 't', 'm'"),
        Some(ServerFiles::Index) => Some("'i'"),
        _ => None,
    };
    let node = server(site, name)?;
    let files = match (files, relations) {
        (_, Some(kinds)) => {
            let asked = format!(
                "SELECT string_agg(pg_relation_filepath(oid), ' ') FROM pg_class WHERE relkind IN ({kinds})"
            );
            let said = node.value(&asked)?.ok_or(PowerError::NoFiles)?;
            said.split_whitespace().map(str::to_owned).collect()
        }
        (Some(ServerFiles::Wal), None) => vec!["pg_wal".to_owned()],
        (Some(ServerFiles::Slru), None) => SLRUS.map(str::to_owned).to_vec(),
        (Some(ServerFiles::Control), None) => vec!["global/pg_control".to_owned()],
        (Some(ServerFiles::Path(path)), None) => vec![path.clone()],
        (_, None) => Vec::new(),
    };
    let blocks = node.fail_requests(FailingRequests { files, ..failing })?;
    Ok(format!("requests of its disk fail; blocks: {blocks}"))
}

/// Ends that; the number of requests that failed, in words.
pub fn heal_disk(site: &mut Site, name: &str) -> Result<String, PowerError> {
    let failed = server(site, name)?.heal_disk()?;
    Ok(format!("its disk works again; requests that had failed: {failed}"))
}

/// The directories of logs of transactions.
const SLRUS: [&str; 6] =
    ["pg_xact", "pg_multixact", "pg_subtrans", "pg_commit_ts", "pg_notify", "pg_serial"];

/// PostgreSQL's message when a server is up.
const READY: &str = "ready to accept connections";

/// The level of PostgreSQL's messages that ends a server.
const PANIC: &str = "PANIC:";

/// A server writes its WAL with every commit, and fails with it.
const ENDS_WITHIN: Duration = Duration::from_secs(20);

/// True if a server has said PANIC since it was ready. A server that ran has said something, so that an empty log is
/// one that cannot be read.
fn has_panicked(log: &str) -> Option<bool> {
    let since = log.rfind(READY).map_or(log, |at| &log[at..]);
    (!log.is_empty()).then(|| since.contains(PANIC))
}

/// True if the log of a server that was killed ends inside a checkpoint; none where it does not say
/// anything of checkpoints since it was started.
fn is_in_checkpoint(log: &str) -> Option<bool> {
    let since = log.rfind(READY).map_or(log, |at| &log[at..]);
    let last = |words: &str| since.rfind(words);
    match (last("checkpoint starting"), last("checkpoint complete")) {
        (None, None) => None,
        (begun, ended) => Some(begun > ended),
    }
}

/// The recovery of a server after a cut.
#[derive(Debug)]
pub struct Recovered {
    /// The cut, and what it met.
    pub taken: TakenCut,
    /// Time from its start until it accepted connections, or the reason why it did not.
    pub started: Result<Duration, NotStarted>,
    /// True if it started after pg_resetwal, where it did not by itself.
    pub rescued: Option<bool>,
}

/// The reason why a server did not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotStarted {
    /// PostgreSQL's words.
    pub why: String,
    /// True if it found no checkpoint to begin with.
    pub is_checkpoint_missing: bool,
    /// True if nothing of its data is left: no file system, or no data directory in it.
    pub is_all_lost: bool,
}

impl Recovered {
    /// True if a server runs that checks can look at.
    pub fn runs(&self) -> bool {
        self.started.is_ok() || self.rescued == Some(true)
    }

    /// True if nothing of its data is left, so that all that was acknowledged is lost.
    pub fn has_lost_all(&self) -> bool {
        self.started.as_ref().is_err_and(|why| why.is_all_lost)
    }

    /// The remark on the recovery that a reader should see.
    pub fn note(&self) -> Option<String> {
        let why = &self.started.as_ref().err()?.why;
        let rescue = match self.rescued {
            Some(true) => "; after pg_resetwal it does, and the checks look at what is there then",
            Some(false) => "; after pg_resetwal neither",
            None => "; everything that was acknowledged is lost",
        };
        Some(format!("{} did not start after the power cut: {why}{rescue}", self.taken.node))
    }
}

/// Starts every server that has lost its power; one that does not start is rescued as the
/// documentation advises, by pg_resetwal, so that what is then missing can be seen.
pub fn recover(site: &mut Site, cuts: &[TakenCut]) -> Result<Vec<Recovered>, PowerError> {
    let mut recovered = Vec::new();
    for taken in cuts {
        let node = server(site, &taken.node)?;
        let began = Instant::now();
        let started = match node.is_running()? {
            true => Ok(Duration::ZERO),
            false => start_after_cut(node)?.map(|()| began.elapsed()),
        };
        let rescued = match started {
            Ok(_) => None,
            // There is nothing that pg_resetwal could work on.
            Err(NotStarted { is_all_lost: true, .. }) => None,
            Err(_) => Some(node.reset_wal().is_ok() && start_after_cut(node)?.is_ok()),
        };
        recovered.push(Recovered { taken: taken.clone(), started, rescued });
    }
    Ok(recovered)
}

/// Starts a server after a cut; inside, why it does not come up.
pub fn start_after_cut(node: &mut Node) -> Result<Result<(), NotStarted>, PowerError> {
    let why = match node.start() {
        Ok(()) => return Ok(Ok(())),
        Err(lab::Error::DataLost { why, .. }) => {
            return Ok(Err(NotStarted { why, is_checkpoint_missing: false, is_all_lost: true }));
        }
        Err(lab::Error::Start { why, log, .. }) => reason(&log).unwrap_or(why),
        Err(
            error @ (lab::Error::Timeout { .. }
            | lab::Error::Host(lab::HostError::Says {
                kind: lab::HostErrorKind::Timeout,
                ..
            })),
        ) => PowerError::Lab(error).to_string(),
        Err(error) => return Err(error.into()),
    };
    let is_checkpoint_missing = why.contains(CHECKPOINT_MISSING);
    Ok(Err(NotStarted { why, is_checkpoint_missing, is_all_lost: false }))
}

/// PostgreSQL's message when neither `pg_control` nor `backup_label` leads to a checkpoint; since
/// version 18 the location follows.
const CHECKPOINT_MISSING: &str = "could not locate a valid checkpoint record";

/// The first line of PostgreSQL's log that says why it gave up.
fn reason(log: &str) -> Option<String> {
    let serious = |line: &&str| [PANIC, "FATAL:"].iter().any(|level| line.contains(level));
    let line = log.lines().find(serious)?;
    let level = line.find(PANIC).or_else(|| line.find("FATAL:"))?;
    Some(line[level..].to_owned())
}

fn server<'s>(site: &'s mut Site, name: &str) -> Result<&'s mut Node, PowerError> {
    site.server_mut(name).ok_or(PowerError::NotOurs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_what_postgres_gave_up_with() {
        let check = |log: &str, expected: Option<&str>| {
            assert_eq!(reason(log).as_deref(), expected, "{log}");
        };
        check(
            "2026-11-22 07:09:26.833 UTC [19] LOG:  listening\n\
             2026-11-22 07:09:26.834 UTC [20] PANIC:  could not locate a valid checkpoint record\n\
             2026-11-22 07:09:26.835 UTC [19] FATAL:  startup process was terminated",
            Some("PANIC:  could not locate a valid checkpoint record"),
        );
        check("LOG:  starting\n", None);
    }

    #[test]
    fn a_server_has_panicked_if_its_log_says_so() {
        let check = |log: &str, expected| assert_eq!(has_panicked(log), expected, "{log}");
        let (ready, panic) = ("LOG:  ready to accept connections\n", "PANIC:  could not write\n");
        check(&format!("{ready}{panic}"), Some(true));
        check(&format!("{panic}{ready}"), Some(false));
        check(panic, Some(true));
        // Nobody knows what a log says that is on the failed disk, or on a host that is lost.
        check("", None);
    }

    #[test]
    fn a_log_ends_inside_a_checkpoint_or_not() {
        let check = |lines: &[&str], expected| {
            assert_eq!(is_in_checkpoint(&lines.join("\n")), expected, "{lines:?}");
        };
        let (ready, begun, ended) =
            ("ready to accept connections", "checkpoint starting: time", "checkpoint complete: 1");
        check(&[begun, ready], None);
        check(&[ready, begun], Some(true));
        check(&[ready, begun, ended], Some(false));
        check(&[ready, begun, ended, begun], Some(true));
        check(&[ready, begun, ready, begun, ended], Some(false));
    }
}
