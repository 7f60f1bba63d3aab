//! `pgrig clean`: what a crash of the machine, or the end of a killed run, has left.

use std::path::Path;

use import::BuildCache;
use lab::{Target, TargetConfig};
use server::Limits;

use crate::arguments::CleanArguments;
use crate::complaint::Complaint;
use crate::exit::ProgramExit;
use console::terminal;

/// Removes the directories of labs that are no longer in use, or the data that were kept.
pub(crate) fn clean(arguments: &CleanArguments) -> Result<ProgramExit, Complaint> {
    match &arguments.target {
        Some(conninfo) => clean_target(conninfo),
        None if arguments.data => clean_data(),
        None => clean_labs(arguments.directory.as_deref()),
    }
}

/// Removes what killed runs have left in a database of the user's.
fn clean_target(conninfo: &str) -> Result<ProgramExit, Complaint> {
    let conninfo = server::resolve_conninfo(conninfo).map_err(Complaint::new)?;
    let limits = Limits::of_administration();
    let target = Target::open(TargetConfig { conninfo, limits })?;
    let removed = lab::guest::remove_left(&target)?;
    for what in &removed {
        terminal::result(format_args!("removed {what} from {}", target.place()));
    }
    if removed.is_empty() {
        terminal::narrate(format_args!("nothing left in that database of {}", target.place()));
    }
    Ok(ProgramExit::Done)
}

/// Removes the data that were kept for later runs.
fn clean_data() -> Result<ProgramExit, Complaint> {
    let cache = BuildCache::of_user()?;
    let removed = cache.clean()?;
    let place = cache.directory().display();
    match removed.count {
        0 => terminal::narrate(format_args!("no data are kept in {place}")),
        n => {
            let size = terms::size(removed.bytes);
            terminal::result(format_args!("removed {n} data directories ({size}) from {place}"));
        }
    }
    Ok(ProgramExit::Done)
}

fn clean_labs(directory: Option<&Path>) -> Result<ProgramExit, Complaint> {
    let place = directory.map_or_else(std::env::temp_dir, Path::to_owned);
    let cleaned = lab::clean(&place)?;
    for removed in &cleaned.removed {
        terminal::result(format_args!("removed {}", removed.display()));
    }
    for alive in &cleaned.alive {
        terminal::narrate(format_args!("in use  {}", alive.display()));
    }
    for failed in &cleaned.failed {
        terminal::narrate(format_args!("error: {failed}"));
    }
    if cleaned.removed.is_empty() && cleaned.alive.is_empty() && cleaned.failed.is_empty() {
        terminal::narrate(format_args!("nothing left in {}", place.display()));
    }
    match cleaned.failed.is_empty() {
        true => Ok(ProgramExit::Done),
        false => Ok(ProgramExit::Incomplete),
    }
}
