//! Power cuts: what a cut cost, whether the server comes back, and what its checks are worth then.

use std::path::Path;
use std::time::{Duration, Instant};

use fault::disk::{Cut, DiskConfig, Method, Program};
use lab::{Error, Node};

use crate::amcheck::Amchecked;
use crate::checksums::Checksummed;
use crate::ledger;
use crate::misfit::Misfit;
use crate::site::Site;

/// The disk of a node. `program` becomes the device of a block disk, when it is called with `disk`.
pub(crate) fn disk(disk: spec::Disk, program: &Path) -> Option<DiskConfig> {
    match disk {
        spec::Disk::Plain => None,
        spec::Disk::CutFilesystem { size_bytes } => {
            Some(DiskConfig { size_bytes, method: Method::FileSystem })
        }
        spec::Disk::CutBlock { size_bytes, sector_bytes, lying: is_lying } => {
            let program = Program { path: program.to_owned(), args: vec!["disk".into()] };
            let method = Method::Block { sector_bytes, is_lying, program };
            Some(DiskConfig { size_bytes, method })
        }
    }
}

/// What this machine lacks for the disks of a point. That root is needed is said of more than disks.
pub(crate) fn misfits(point: &spec::Point, free_bytes: u64) -> Vec<Misfit> {
    let disks = point.topology.nodes.iter().filter_map(|node| disk(node.disk, Path::new("")));
    let lacks = disks.filter_map(|config| {
        let (needs_bytes, directory) = (config.size_bytes, std::env::temp_dir());
        let no_space = fault::disk::Error::NoSpace { directory, needs_bytes, free_bytes };
        let check = fault::disk::check(&config.method);
        check.err().or((needs_bytes > free_bytes).then_some(no_space))
    });
    let lacks = lacks.filter(|error| !matches!(error, fault::disk::Error::NotRoot));
    let misfit = |error: fault::disk::Error| Misfit {
        what: error.to_string(),
        amount: 1,
        needs: "a disk whose power can be cut".to_owned(),
        has: error.to_string(),
        hint: error.hint(),
    };
    lacks.map(misfit).collect()
}

/// What was prepared for the clients is not what a cut shall take, nor what makes it count.
///
/// # Errors
/// What the lab says.
pub(crate) fn settle(site: &mut Site) -> Result<(), String> {
    let mut nodes = site.nodes.iter_mut().filter_map(|node| node.server.node());
    nodes.try_for_each(|node| node.settle().map_err(text))
}

/// A cut, and what it met.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub(crate) node: String,
    cut: Cut,
    seed: u64,
    /// Whether a checkpoint was under way; none where the server does not log them.
    in_checkpoint: Option<bool>,
}

impl Taken {
    /// What it did, in words; the seed replays it.
    pub(crate) fn words(&self) -> String {
        let (cut, seed) = (&self.cut, self.seed);
        format!(
            "{} bytes were not flushed: {} lost, {} kept, {} blocks torn; seed {seed}",
            cut.unflushed_bytes, cut.dropped_bytes, cut.kept_bytes, cut.torn_blocks
        )
    }
}

/// Cuts the power of a server, which stays down. A cut that found nothing to lose proves nothing.
///
/// # Errors
/// Why the cut does not count.
pub(crate) fn cut(site: &mut Site, name: &str, seed: u64) -> Result<Taken, String> {
    let node = server(site, name)?;
    if !node.is_running().map_err(text)? {
        return Err("the server did not run when its power was to be cut".to_owned());
    }
    let cut = node.power_cut(seed).map_err(text)?;
    if cut.unflushed_bytes == 0 {
        return Err("nothing was unflushed: the cut had nothing to lose".to_owned());
    }
    // Lines may be torn like anything else that is written at that moment.
    let log = std::fs::read(node.log()).unwrap_or_default();
    let in_checkpoint = is_in_checkpoint(&String::from_utf8_lossy(&log));
    Ok(Taken { node: name.to_owned(), cut, seed, in_checkpoint })
}

/// Whether the log of a server that was killed ends inside a checkpoint; none where it does not say
/// anything of checkpoints since it was started.
fn is_in_checkpoint(log: &str) -> Option<bool> {
    let since = log.rfind("ready to accept connections").map_or(log, |at| &log[at..]);
    let last = |words: &str| since.rfind(words);
    match (last("checkpoint starting"), last("checkpoint complete")) {
        (None, None) => None,
        (begun, ended) => Some(begun > ended),
    }
}

/// How a server came back after a cut.
#[derive(Debug)]
pub(crate) struct Recovered {
    taken: Taken,
    /// How long it took from its start until it accepted connections, or why it did not.
    started: Result<Duration, String>,
    /// Whether it started after pg_resetwal, where it did not by itself.
    rescued: Option<bool>,
}

impl Recovered {
    /// Whether a server runs that checks can look at.
    pub(crate) fn runs(&self) -> bool {
        self.started.is_ok() || self.rescued == Some(true)
    }

    /// What people should know of it.
    fn note(&self) -> Option<String> {
        let why = self.started.as_ref().err()?;
        let rescue = match self.rescued {
            Some(true) => "; after pg_resetwal it does, and the checks look at what is there then",
            _ => "; after pg_resetwal neither",
        };
        Some(format!("{} did not start after the power cut: {why}{rescue}", self.taken.node))
    }
}

/// Starts every server that has lost its power; one that does not start is rescued as the
/// documentation advises, by pg_resetwal, so that what is then missing can be seen.
///
/// # Errors
/// What the lab says, other than that a server does not start.
pub(crate) fn recover(site: &mut Site, cuts: &[Taken]) -> Result<Vec<Recovered>, String> {
    let mut recovered = Vec::new();
    for taken in cuts {
        let node = server(site, &taken.node)?;
        let began = Instant::now();
        let started = match node.is_running().map_err(text)? {
            true => Ok(Duration::ZERO),
            false => start(node)?.map(|()| began.elapsed()),
        };
        let rescued = match started {
            Ok(_) => None,
            Err(_) => Some(node.reset_wal().is_ok() && start(node)?.is_ok()),
        };
        recovered.push(Recovered { taken: taken.clone(), started, rescued });
    }
    Ok(recovered)
}

/// What became of servers that lost their power.
pub(crate) struct Powerless {
    pub(crate) recovered: Vec<Recovered>,
    /// Why what a check looked at could not be read.
    pub(crate) unreadable: Option<String>,
}

impl Powerless {
    /// Metric, scope, value. The scope is a server, and empty where only one lost its power.
    pub(crate) fn figures(
        &self,
        ledger: &ledger::Checked,
        amchecked: &[Amchecked],
        checksummed: &[Checksummed],
    ) -> Vec<(&'static str, String, f64)> {
        let is_corrupt = self.unreadable.is_some()
            || amchecked.iter().any(|one| one.corruptions > 0)
            || checksummed.iter().any(|one| one.bad > 0);
        let lost: u64 = ledger.workloads.iter().map(|(_, findings)| findings.lost).sum();
        let has_lost = ledger.workloads.iter().any(|(_, findings)| findings.anomalies() > 0);
        let mut figures = Vec::new();
        for one in &self.recovered {
            let scopes = match self.recovered[..] {
                [_] => vec![one.taken.node.clone(), String::new()],
                _ => vec![one.taken.node.clone()],
            };
            let cut = &one.taken.cut;
            let survived = one.started.is_ok() && !is_corrupt && !has_lost;
            for scope in scopes {
                let mut set = |metric, value: f64| figures.push((metric, scope.clone(), value));
                let truth = |is: bool| f64::from(u8::from(is));
                set("cut_survived", truth(survived));
                set("cut_started", truth(one.started.is_ok()));
                let misses = |why: &String| why.contains(CHECKPOINT_MISSING);
                set("cut_checkpoint_missing", truth(one.started.as_ref().is_err_and(misses)));
                set("cut_bytes_unflushed", cut.unflushed_bytes as f64);
                set("cut_bytes_lost", cut.dropped_bytes as f64);
                set("cut_bytes_kept", cut.kept_bytes as f64);
                set("cut_blocks_torn", cut.torn_blocks as f64);
                if let Some(is) = one.taken.in_checkpoint {
                    set("cut_in_checkpoint", truth(is));
                }
                match &one.started {
                    Ok(took) if !took.is_zero() => set("recovery_s", took.as_secs_f64()),
                    _ => {}
                }
                if let Some(rescued) = one.rescued {
                    set("resetwal_started", truth(rescued));
                    if rescued && self.unreadable.is_none() {
                        set("resetwal_lost", lost as f64);
                    }
                }
                if one.runs() {
                    set("corrupt", truth(is_corrupt));
                }
            }
        }
        figures
    }

    /// What people should know of it.
    pub(crate) fn notes(&self) -> Vec<String> {
        let unreadable = self.unreadable.iter().map(|why| format!("after the power cut: {why}"));
        self.recovered.iter().filter_map(Recovered::note).chain(unreadable).collect()
    }
}

/// Starts a server; inside, why it does not come up.
fn start(node: &mut Node) -> Result<Result<(), String>, String> {
    match node.start() {
        Ok(()) => Ok(Ok(())),
        Err(Error::Start { why, log, .. }) => Ok(Err(reason(&log).unwrap_or(why))),
        Err(error @ Error::Timeout { .. }) => Ok(Err(text(error))),
        Err(error) => Err(text(error)),
    }
}

/// What PostgreSQL says when neither `pg_control` nor `backup_label` leads to a checkpoint; since
/// version 18 the location follows.
const CHECKPOINT_MISSING: &str = "could not locate a valid checkpoint record";

/// The first word of PostgreSQL's that says why it gave up.
fn reason(log: &str) -> Option<String> {
    let serious = |line: &&str| ["PANIC:", "FATAL:"].iter().any(|level| line.contains(level));
    let line = log.lines().find(serious)?;
    let level = line.find("PANIC:").or_else(|| line.find("FATAL:"))?;
    Some(line[level..].to_owned())
}

fn server<'s>(site: &'s mut Site, name: &str) -> Result<&'s mut Node, String> {
    site.server_mut(name).ok_or_else(|| "the server is not ours".to_owned())
}

fn text(error: Error) -> String {
    match error.hint() {
        Some(hint) => format!("{error}; hint: {hint}"),
        None => error.to_string(),
    }
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
