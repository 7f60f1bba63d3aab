//! The other way back after a trial: a base backup from before the load, and the WAL archive.

use std::path::Path;
use std::time::{Duration, Instant};

use lab::{Node, StopMode};
use spec::{Check, Point};

use crate::ledger;
use crate::site::Site;

/// Takes the base backup of every server that shall be restored. It is the last thing before the
/// clients come: what is missing afterwards is theirs.
///
/// # Errors
/// What pg_basebackup said.
pub(crate) fn back_up(point: &Point, site: &mut Site) -> Result<(), String> {
    for name in restored(point) {
        if let Some(node) = site.server_mut(&name) {
            node.take_backup().map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// What came of restoring a server.
#[derive(Debug)]
pub(crate) struct Restored {
    node: String,
    /// How long it took from the stopped server until the restored one took writes, or why it
    /// never did.
    took: Result<Duration, String>,
    /// Acknowledged transactions that are missing then, of each workload that keeps a ledger.
    lost: Vec<(String, u64)>,
    /// Why that is not known.
    unread: Option<String>,
}

/// Restores every server that the point wants restored, and holds the ledger in `directory`
/// against the rows that are there then.
///
/// # Errors
/// When a server cannot be stopped.
pub(crate) fn restore_all(
    point: &Point,
    site: &mut Site,
    directory: &Path,
) -> Result<Vec<Restored>, String> {
    let mut all = Vec::new();
    for name in restored(point) {
        let Some(node) = site.server_mut(&name) else { continue };
        if node.is_running().map_err(text)? {
            // Whatever it has: it is about to be thrown away.
            node.stop(StopMode::Immediate).map_err(text)?;
        }
        let took = restore(node);
        let checked = match took {
            Ok(_) => ledger::check_all(point, site, directory, &[], None, &[]),
            Err(_) => Ok(ledger::Checked::default()),
        };
        let (checked, unread) = match checked {
            Ok(checked) => (checked, None),
            Err(why) => (ledger::Checked::default(), Some(why)),
        };
        let lost = checked.workloads.into_iter().map(|(name, found)| (name, found.lost)).collect();
        all.push(Restored { node: name, took, lost, unread });
    }
    Ok(all)
}

/// The figures of what came of it: metric, scope, value.
pub(crate) fn figures(restored: &[Restored]) -> Vec<(&'static str, String, f64)> {
    let mut figures = Vec::new();
    for one in restored {
        for scope in [one.node.as_str(), ""] {
            let started = f64::from(u8::from(one.took.is_ok()));
            figures.push(("restore_started", scope.to_owned(), started));
            if let Ok(took) = one.took {
                figures.push(("restore_s", scope.to_owned(), took.as_secs_f64()));
            }
        }
        let lost = one.lost.iter();
        figures.extend(lost.map(|(name, lost)| ("restore_lost", name.clone(), *lost as f64)));
        if !one.lost.is_empty() {
            let sum: u64 = one.lost.iter().map(|(_, lost)| lost).sum();
            figures.push(("restore_lost", String::new(), sum as f64));
        }
    }
    figures
}

/// What people should know of it.
pub(crate) fn notes(restored: &[Restored]) -> Vec<String> {
    let failed = restored.iter().filter_map(|one| {
        let why = one.took.as_ref().err().or(one.unread.as_ref())?;
        Some(format!("{} was restored from its backup and archive: {why}", one.node))
    });
    failed.collect()
}

fn restore(node: &mut Node) -> Result<Duration, String> {
    let began = Instant::now();
    node.restore().map_err(text)?;
    Ok(began.elapsed())
}

/// The servers that a point wants restored.
fn restored(point: &Point) -> Vec<String> {
    let names = point.checks.iter().filter_map(|check| match check {
        Check::Restore { node } => Some(node.as_ref().unwrap_or(&point.data.node).clone()),
        _ => None,
    });
    names.collect()
}

fn text(error: lab::Error) -> String {
    error.to_string()
}
