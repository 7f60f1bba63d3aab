//! The other way back after a trial: a base backup from before the load, and the WAL archive.

use std::time::{Duration, Instant};

use lab::{Node, StopMode};
use site::Site;
use spec::{Check, Point, metrics};

use crate::error::Error;
use crate::ledger::{self, AcknowledgedFate};
use crate::outcome::{CheckOutcome, TrialFacts};

/// Takes the base backup of every server that shall be restored. It is the last thing before the
/// clients come: what is missing afterwards is theirs.
pub fn back_up(point: &Point, site: &mut Site) -> Result<(), Error> {
    for name in restored(point) {
        if let Some(node) = site.server_mut(&name) {
            node.take_backup()?;
        }
    }
    Ok(())
}

/// Restores every server that the point wants restored, and holds the ledger against the rows that
/// are there then. The scope of a figure is a server or a workload, and empty for all together.
pub fn check(site: &mut Site, before: &TrialFacts<'_>) -> Result<CheckOutcome, Error> {
    let mut outcome = CheckOutcome::default();
    for name in restored(before.point) {
        let Some(node) = site.server_mut(&name) else { continue };
        if node.is_running()? {
            // Whatever it has: it is about to be thrown away.
            node.stop(StopMode::Immediate)?;
        }
        let took = restore(node);
        for scope in [name.as_str(), ""] {
            let started = f64::from(u8::from(took.is_ok()));
            outcome.set(&metrics::RESTORE_STARTED, scope, started);
            if let Ok(took) = &took {
                outcome.set(&metrics::RESTORE_S, scope, took.as_secs_f64());
            }
        }
        let why = match took {
            Ok(_) => count_kept(site, before, &mut outcome).err().map(|why| why.to_string()),
            Err(why) => Some(why.to_string()),
        };
        if let Some(why) = why {
            outcome.note(format!("{name} was restored from its backup and archive: {why}"));
        }
    }
    Ok(outcome)
}

/// Acknowledged transactions, and those of them that are missing, of each workload that keeps a
/// ledger and of all. How many were acknowledged is known of no other check where the server did not
/// come up before it was restored.
fn count_kept(
    site: &Site,
    before: &TrialFacts<'_>,
    outcome: &mut CheckOutcome,
) -> Result<(), Error> {
    let kept = ledger::kept(site, before)?;
    let all = AcknowledgedFate {
        acknowledged: kept.values().map(|one| one.acknowledged).sum(),
        lost: kept.values().map(|one| one.lost).sum(),
    };
    let all = (!kept.is_empty()).then_some(("", &all));
    for (scope, one) in kept.iter().map(|(name, one)| (name.as_str(), one)).chain(all) {
        outcome.set(&metrics::LEDGER_ACKNOWLEDGED, scope, one.acknowledged as f64);
        outcome.set(&metrics::RESTORE_LOST, scope, one.lost as f64);
    }
    Ok(())
}

/// Time from the stopped server until the restored one takes writes.
fn restore(node: &mut Node) -> Result<Duration, lab::Error> {
    let began = Instant::now();
    node.restore()?;
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
