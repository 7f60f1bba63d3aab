//! A second cut, while a server recovers from the first one.

use std::path::Path;

use crash::{StateCursor, StatePlanRequest, WriteKind};
use fault::disk::ImagePatch;
use record::ledger::Ledger;

use crate::error::Error;
use crate::explore::fate::StateFate;
use crate::explore::place::BaseFiles;
use crate::explore::replica::Replica;
use crate::explore::{Explored, read_own_logs};

/// Recovers from a state with the study's own settings, and looks at states of that recovery's own log. Where
/// that recovery fails, its fate is the only one.
pub(super) fn second_cuts(
    explored: &Explored<'_>,
    replica: &mut Replica,
    patch: &ImagePatch,
    ledger: &Ledger,
    number: usize,
) -> Result<Vec<StateFate>, Error> {
    replica.load(patch, true)?;
    replica.server()?.record_writes(Some(LOG_BYTES_MAX))?;
    if let Err(fate) = replica.start()? {
        return Ok(vec![fate]);
    }
    replica.server()?.kill9()?;
    let recorded = replica.server()?.end_record()?;
    let directory = replica.server()?.disk_directory()?;
    let contents = directory.join("recovery.contents");
    let paths: Vec<&Path> = recorded.iter().map(|one| one.log.as_path()).collect();
    let mut log = read_own_logs(&paths, &contents)?;
    let began_ns = recorded.iter().map(|one| one.began_ns).max();
    log.begin_at(began_ns.expect("a replica has a disk"));
    // Which file each write is of is not asked: what counts is that the states differ.
    let kinds = log.entries.iter().map(|entry| match entry.is_flush() {
        true => Vec::new(),
        false => vec![WriteKind::Other],
    });
    let kinds: Vec<Vec<WriteKind>> = kinds.collect();
    let (flushes, sector_bytes) = (explored.flushes, explored.sector_bytes);
    let request = StatePlanRequest { states: STATES, seed: number as u64, flushes, sector_bytes };
    let mut fates = Vec::new();
    let mut cursor = StateCursor::new(&log, flushes);
    for planned in crash::plan(&log, &kinds, &request).states {
        if explored.is_over() {
            break;
        }
        let mut patch = patch.clone();
        patch.add(&cursor.overlay(&planned.state), &contents);
        // A relation that only the recovery writes may have kept the time of its last change.
        fates.push(replica.look(explored, &patch, ledger, &BaseFiles::default())?);
    }
    Ok(fates)
}

/// States of each recovery.
const STATES: usize = 3;

/// A recovery writes about what the load has written since the last checkpoint.
const LOG_BYTES_MAX: u64 = 1 << 30;
