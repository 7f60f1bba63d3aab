//! One state of a kept exploration, once more. Somebody else may have written what was kept: the kernel
//! mounts none of it, and programs of the servers' user read it.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crash::{BLOCK_BYTES, DiskState, FileMap, FlushEffect, StateCursor};
use fault::disk::{copy_image, write_image};
use record::KeptExploration;
use site::Site;
use spec::{Check, DataPart, DiskKind};

use crate::error::Error;
use crate::explore::damage::DamageQueries;
use crate::explore::kept::{KeptStateList, STATES, files};
use crate::explore::place::BaseFiles;
use crate::explore::replica::Replica;
use crate::explore::{Explored, LogFile, Role, file_error, read_logs};
use crate::outcome::TrialFacts;

/// A state of a kept exploration that is recovered again.
#[derive(Debug)]
pub struct RecoveredState {
    /// The fate now, in words.
    pub now: String,
    /// The fate when it was explored, and the writes that were lost in it.
    pub then: Vec<String>,
    /// The image of each disk that was asked for: that of the data, and those of parts of them.
    pub images: Vec<PathBuf>,
}

/// Looks at a state again, by its number. `image` is where the disk in that state goes, if somebody wants
/// it.
///
/// # Errors
/// [`Error::NoState`]; a log that cannot be read; a file system that no program reads; a server that cannot
/// be made.
pub fn again(
    site: &mut Site,
    before: &TrialFacts<'_>,
    kept: &KeptExploration,
    number: usize,
    image: Option<&Path>,
) -> Result<RecoveredState, Error> {
    let listed = KeptStateList::parse(&kept.text(STATES, LIST_BYTES_MAX)?);
    let (states, list) = (listed.states.len(), kept.path_of(STATES));
    let no_state = || Error::NoState { number, states, list: list.clone() };
    let (state, then) = listed.states.get(&number).ok_or_else(no_state)?;
    let check = before.point.checks.iter().find_map(|check| match check {
        Check::Explore(explore) => Some(explore),
        _ => None,
    });
    let name = check.and_then(|explore| explore.node.clone());
    let name = name.unwrap_or_else(|| before.point.data.node.clone());
    let disk = before.point.topology.node(&name).map_or(DiskKind::Plain, |node| node.disk);
    let DiskKind::CutBlock { lying, sector_bytes, .. } = disk else {
        return Err(no_state());
    };
    let server =
        site.server_mut(&name).ok_or_else(|| Error::Site(site::Error::NoServer(name.clone())))?;
    server.kill9()?;
    let place = server.disk_directory()?;
    let open = |name: &str| -> Result<LogFile, Error> {
        let source = Box::new(kept.file(name, LOG_BYTES_MAX)?);
        Ok(LogFile { path: kept.path_of(name), source })
    };
    let (mut bases, mut logs) = (Vec::new(), Vec::new());
    for (part, size_bytes) in disk.parts() {
        let [base, log] = files(part);
        let image = place.join(&base).with_extension("image");
        unpack(open(&base)?, &place.join("base.contents"), &image, size_bytes)?;
        bases.push(image);
        logs.push(open(&log)?);
    }
    let contents = place.join("writes.contents");
    let log = read_logs(logs, &contents, LOG_ITEMS_MAX)?;
    if state.cut > log.entries.len() {
        return Err(no_state());
    }
    let ledger = kept.ledger()?;
    let explored = Explored {
        site,
        before,
        disk,
        log: &log,
        map: &FileMap::default(),
        flushes: if lying { FlushEffect::Lying } else { FlushEffect::Honest },
        sector_bytes: u64::from(sector_bytes),
        contents: &contents,
        bases: &bases,
        untouched: BaseFiles::default(),
        // A study without the check asks nothing of a state.
        asked: check.map(DamageQueries::of).unwrap_or_default(),
        role: Role::of(before.point, &name),
        ledger: &ledger,
        origin_ns: listed.origin_ns,
    };
    let (patch, ledger) = explored.state(&mut StateCursor::new(&log, explored.flushes), state);
    let mut images = Vec::new();
    for (number, ((_, size_bytes), base)) in disk.parts().into_iter().zip(&bases).enumerate() {
        let (path, to) = (place.join("image.patch"), place.join(format!("state{number}.image")));
        let patch = patch.of_disk(number);
        patch.write(&path).map_err(file_error("writing", &path))?;
        write_image(base, &path, &to).map_err(file_error("making the image", &to))?;
        if to.metadata().map_err(file_error("looking at", &to))?.len() > size_bytes {
            return Err(Error::BeyondDisk { path: to, size_bytes });
        }
        images.push(to);
    }
    // Before a server looks at them: its journal is replayed then.
    let parts = disk.parts().into_iter().map(|(part, _)| part);
    let each: Vec<(DataPart, &PathBuf)> = parts.zip(&images).collect();
    let wanted = image.map_or(Ok(Vec::new()), |image| copied(&each, image))?;
    let now = Replica::of_images(&explored, &name, &images)?.look_once(&explored, &ledger)?;
    Ok(RecoveredState { now: now.to_string(), then: then.clone(), images: wanted })
}

/// Copies the image of each disk to where it is wanted: that of a part has the part's name behind the other's.
fn copied(images: &[(DataPart, &PathBuf)], to: &Path) -> Result<Vec<PathBuf>, Error> {
    let copy = |(part, image): &(DataPart, &PathBuf)| {
        let mut name = to.as_os_str().to_owned();
        if *part != DataPart::Main {
            name.push(format!(".{part}"));
        }
        let to = PathBuf::from(name);
        copy_image(image, &to).map_err(file_error("making the image", &to))?;
        Ok(to)
    };
    images.iter().map(copy).collect()
}

/// Makes an image from the log of its blocks.
fn unpack(packed: LogFile, contents: &Path, image: &Path, size_bytes: u64) -> Result<(), Error> {
    let path = packed.path.clone();
    let log = read_logs(vec![packed], contents, LOG_ITEMS_MAX)?;
    let pieces = || log.entries.iter().flat_map(crash::LoggedRequest::pieces);
    let is_beyond = |piece: &crash::BlockPiece| piece.block >= size_bytes.div_ceil(BLOCK_BYTES);
    if pieces().any(is_beyond) {
        return Err(Error::BeyondDisk { path, size_bytes });
    }
    let make = || {
        let _ = fs::remove_file(image);
        let made = File::options().write(true).create_new(true).open(image)?;
        made.set_len(size_bytes)?;
        let contents = File::open(contents)?;
        let mut block = [0; BLOCK_BYTES as usize];
        for piece in pieces() {
            contents.read_exact_at(&mut block, log.contents[piece.content as usize].position)?;
            made.write_all_at(&block, piece.block * BLOCK_BYTES)?;
        }
        Ok(())
    };
    make().map_err(file_error("making the image", image))
}

/// Bytes of a list of states: an exploration looks at some thousands.
const LIST_BYTES_MAX: u64 = 16 << 20;

/// Bytes of a kept image or log, which are packed.
const LOG_BYTES_MAX: u64 = 4 << 30;

/// Requests, pieces and contents of one: writes of 16 GiB, in half a gigabyte of memory.
const LOG_ITEMS_MAX: usize = 8 << 20;

/// Reads a list of states and a log of the disk, and assembles each state, for fuzz targets.
#[cfg(fuzzing)]
pub fn read_list(list: &str, log: &[u8]) {
    let listed = KeptStateList::parse(list);
    let log = crash::DiskLog::read_within(&mut &log[..], &mut Vec::new(), 10_000);
    // Most bytes are no log.
    let Ok(log) = log else { return };
    for flushes in [FlushEffect::Honest, FlushEffect::Lying] {
        let mut cursor = StateCursor::new(&log, flushes);
        for (state, _) in listed.states.values().filter(|(state, _)| state.cut <= log.entries.len())
        {
            assert_eq!(state.to_string().parse(), Ok(state.clone()));
            let _ = cursor.overlay(state).blocks().count();
        }
    }
}

impl KeptStateList {
    /// As [`crate::explore::kept`] wrote it; lines that it did not write are left out. Without the moment of its origin no
    /// state is listed: the ledger would be cut at another one.
    pub(super) fn parse(text: &str) -> KeptStateList {
        let mut origins = text.lines().filter_map(|line| line.strip_prefix("origin_ns "));
        let Some(origin_ns) = origins.next().and_then(|origin| origin.parse().ok()) else {
            return KeptStateList::default();
        };
        let mut listed = KeptStateList { origin_ns, ..KeptStateList::default() };
        for line in text.lines() {
            let words: Vec<&str> = line.split('\t').collect();
            let [number, state, then @ ..] = &words[..] else { continue };
            if let (Ok(number), Ok(state)) = (number.parse(), state.parse::<DiskState>()) {
                let then = then.iter().map(|one| (*one).to_owned()).collect();
                listed.states.insert(number, (state, then));
            }
        }
        listed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_states_is_read_as_far_as_it_is_one() {
        let text =
            "origin_ns 77\n1\t5 3:0-8\tdamaged: it\tlost: heap page 1 of t\n2\t9\tsound\nx\ty\n";
        let listed = KeptStateList::parse(text);
        assert_eq!((listed.origin_ns, listed.states.len()), (77, 2));
        let (state, words) = &listed.states[&1];
        assert_eq!(state.to_string(), "5 3:0-8");
        assert_eq!(words, &["damaged: it", "lost: heap page 1 of t"]);
        for text in ["nothing", "origin_ns -1\n1\t5 3:0-8\tsound\n", "1\t5 3:0-8\tsound\n"] {
            assert_eq!(KeptStateList::parse(text), KeptStateList::default(), "{text}");
        }
    }
}
