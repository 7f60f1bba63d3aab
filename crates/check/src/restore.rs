//! The other way back after a trial: base backups and the WAL archive, restored to the end of the archive or to
//! moments that the timeline has noted.
//!
//! Reading order: [`back_up`] before the clients come, [`check`] after the other checks; [`targets`] says what is
//! restored to and between which bounds, [`archive`] and [`clock`] what is wrong with what it is restored from.

mod archive;
mod clock;
mod targets;
mod to_targets;

use std::time::{Duration, Instant};

use lab::{ArchiveTool, Node, RestoreOrder, Settings, StopMode};
use site::Site;
use spec::{Action, Check, RestoreCheck, TrialPoint, metrics};

use crate::error::Error;
use crate::ledger::{self, AcknowledgedFate};
use crate::outcome::{CheckOutcome, TrialFacts};

/// Takes the base backup of every server that shall be restored, and of whose backups the timeline takes none. It is
/// the last thing before the clients come: what is missing afterwards is theirs.
pub fn back_up(point: &TrialPoint, site: &mut Site) -> Result<(), Error> {
    site.restorable = Default::default();
    let is_backup = |action: &Action| matches!(action, Action::Backup { .. });
    let has_backups = point.timeline.iter().any(|entry| is_backup(&entry.action));
    let asked = restores(point).filter(|(_, restore)| restore.to.is_empty() || !has_backups);
    let mut names: Vec<String> = asked.map(|(name, _)| name).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        if site.server_mut(&name).is_some() {
            let backup = site.take_backup_later(&name)?()?;
            site.restorable.backups.push(backup);
        }
    }
    Ok(())
}

/// Restores every server that the point wants restored, and holds the ledger against the rows that
/// are there then. The scope of a figure is a server or a workload, and empty for all together.
pub fn check(site: &mut Site, before: &TrialFacts<'_>) -> Result<CheckOutcome, Error> {
    let mut outcome = CheckOutcome::default();
    // What is restored in place is gone afterwards.
    let (to_moments, in_place): (Vec<_>, Vec<_>) =
        restores(before.point).partition(|(_, restore)| !restore.to.is_empty());
    for (name, restore) in to_moments {
        outcome.add(to_targets::check(site, before, &name, restore)?);
    }
    for (name, _) in in_place {
        let Some(order) = order_in_place(site, &name)? else { continue };
        let Some(node) = site.server_mut(&name) else { continue };
        if node.is_running()? {
            // Whatever it has: it is about to be thrown away.
            node.stop(StopMode::Immediate)?;
        }
        let took = timed(node, order);
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

/// The order to restore a server itself, from its first backup to the end of its archive.
fn order_in_place(site: &mut Site, name: &str) -> Result<Option<RestoreOrder>, Error> {
    let backup = site.restorable.backups.iter().find(|backup| backup.node == name);
    let Some(backup) = backup.map(|backup| backup.directory.clone()) else { return Ok(None) };
    let Some(node) = site.server_mut(name) else { return Ok(None) };
    Ok(Some(RestoreOrder {
        backup,
        archive: node.archive_directory()?,
        tool: node.archive_tool().cloned().unwrap_or(ArchiveTool::Copy),
        recovery: Settings::new(),
    }))
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
fn timed(node: &mut Node, order: RestoreOrder) -> Result<Duration, lab::Error> {
    let began = Instant::now();
    node.restore(order)?;
    Ok(began.elapsed())
}

/// The restores that a point asks for, each with its server.
fn restores(point: &TrialPoint) -> impl Iterator<Item = (String, &RestoreCheck)> {
    point.checks.iter().filter_map(|check| match check {
        Check::Restore(restore) => {
            Some((restore.node.as_ref().unwrap_or(&point.data.node).clone(), restore))
        }
        _ => None,
    })
}
