//! One state of a kept exploration, once more.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crash::{BLOCK_BYTES, Cursor, Flushes, Map, State};
use fault::disk::write_image;
use record::ledger::Ledger;
use site::Site;
use spec::{Check, Disk};

use crate::error::Error;
use crate::explore::kept::{DIRECTORY, FILES, Listed, STATES};
use crate::explore::place::Untouched;
use crate::explore::{Explored, Role, file_error, read_logs};
use crate::outcome::Before;

/// A state of a kept exploration that is recovered again.
#[derive(Debug)]
pub struct Again {
    /// Its fate now, in words.
    pub now: String,
    /// Its fate when it was explored, and the writes that were lost in it.
    pub then: Vec<String>,
    /// The image of each disk that was asked for: that of the data, and that of the WAL if it has one.
    pub images: Vec<PathBuf>,
}

/// Looks at a state again, by its number. `before.ledger` is the trial's kept ledger. `image` is where
/// the disk in that state goes, if somebody wants it.
///
/// # Errors
/// [`Error::NoState`]; a log that cannot be read; a server that cannot be made.
pub fn again(
    site: &mut Site,
    before: &Before<'_>,
    number: usize,
    image: Option<&Path>,
) -> Result<Again, Error> {
    let directory = before.ledger.join(DIRECTORY);
    let list = directory.join(STATES);
    let text = fs::read_to_string(&list).map_err(file_error("reading", &list))?;
    let listed = Listed::parse(&text);
    let no_state = || Error::NoState { number, states: listed.states.len(), list: list.clone() };
    let (state, then) = listed.states.get(&number).ok_or_else(no_state)?;
    let check = before.point.checks.iter().find_map(|check| match check {
        Check::Explore(explore) => Some(explore),
        _ => None,
    });
    let name = check.and_then(|explore| explore.node.clone());
    let name = name.unwrap_or_else(|| before.point.data.node.clone());
    let disk = before.point.topology.node(&name).map_or(Disk::Plain, |node| node.disk);
    let Disk::CutBlock { size_bytes, lying, sector_bytes, wal_bytes, .. } = disk else {
        return Err(no_state());
    };
    let server =
        site.server_mut(&name).ok_or_else(|| Error::Site(site::Error::NoServer(name.clone())))?;
    server.kill9()?;
    let place = server.disk_directory()?;
    let (mut bases, mut logs) = (Vec::new(), Vec::new());
    for (size_bytes, [base, log]) in [size_bytes].into_iter().chain(wal_bytes).zip(FILES) {
        let image = place.join(base).with_extension("image");
        unpack(&directory.join(base), &place.join("base.contents"), &image, size_bytes)?;
        bases.push(image);
        logs.push(directory.join(log));
    }
    let contents = place.join("writes.contents");
    let logs: Vec<&Path> = logs.iter().map(|path| path.as_path()).collect();
    let log = read_logs(&logs, &contents)?;
    if state.cut > log.entries.len() {
        return Err(no_state());
    }
    let ledger = Ledger::read(before.ledger)?;
    let explored = Explored {
        site,
        before,
        log: &log,
        map: &Map::default(),
        flushes: if lying { Flushes::Lying } else { Flushes::Honest },
        sector_bytes: u64::from(sector_bytes),
        contents: &contents,
        bases: &bases,
        untouched: Untouched::default(),
        complaints: check.and_then(|explore| explore.complaints.as_deref()),
        role: Role::of(before.point, &name),
        ledger: &ledger,
        origin_ns: listed.origin_ns,
    };
    let mut replica = explored.replica(&name, 0)?;
    let (patch, ledger) = explored.state(&mut Cursor::new(&log, explored.flushes), state);
    let now = replica.look(&explored, &patch, &ledger, &explored.untouched)?.to_string();
    let mut images = Vec::new();
    if let Some(image) = image {
        let path = place.join("image.patch");
        let mut wal = image.as_os_str().to_owned();
        wal.push(".wal");
        for ((disk, base), image) in
            bases.iter().enumerate().zip([image.to_owned(), PathBuf::from(wal)])
        {
            let written = patch.of_disk(disk).write(&path);
            written.map_err(file_error("writing", &path))?;
            write_image(base, &path, &image).map_err(file_error("making the image", &image))?;
            images.push(image);
        }
    }
    Ok(Again { now, then: then.clone(), images })
}

/// Makes an image from the log of its blocks.
fn unpack(packed: &Path, contents: &Path, image: &Path, size_bytes: u64) -> Result<(), Error> {
    let log = read_logs(&[packed], contents)?;
    let make = || {
        let _ = fs::remove_file(image);
        let made = File::options().write(true).create_new(true).open(image)?;
        made.set_len(size_bytes)?;
        let contents = File::open(contents)?;
        let mut block = [0; BLOCK_BYTES as usize];
        for piece in log.entries.iter().flat_map(crash::Entry::pieces) {
            contents.read_exact_at(&mut block, log.contents[piece.content as usize].position)?;
            made.write_all_at(&block, piece.block * BLOCK_BYTES)?;
        }
        Ok(())
    };
    make().map_err(file_error("making the image", image))
}

impl Listed {
    /// As [`crate::explore::kept`] wrote it; lines that it did not write are left out.
    pub(super) fn parse(text: &str) -> Listed {
        let mut listed = Listed::default();
        for line in text.lines() {
            if let Some(origin) = line.strip_prefix("origin_ns ") {
                listed.origin_ns = origin.parse().unwrap_or(0);
                continue;
            }
            let words: Vec<&str> = line.split('\t').collect();
            let [number, state, then @ ..] = &words[..] else { continue };
            if let (Ok(number), Ok(state)) = (number.parse(), state.parse::<State>()) {
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
        let listed = Listed::parse(text);
        assert_eq!((listed.origin_ns, listed.states.len()), (77, 2));
        let (state, words) = &listed.states[&1];
        assert_eq!(state.to_string(), "5 3:0-8");
        assert_eq!(words, &["damaged: it", "lost: heap page 1 of t"]);
        assert_eq!(Listed::parse("nothing"), Listed::default());
    }
}
