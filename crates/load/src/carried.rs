//! Files that lanes write on another host: without a name there, sent here in pieces when a lane is
//! done, and written here under the names that they have when every lane runs on this machine.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufRead, BufReader, Seek, SeekFrom, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use history::file::SUFFIX as HISTORY_SUFFIX;
use record::ledger::SUFFIX;
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::{LoadError, report::Loss};

/// Kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// A log of transactions.
    Log,
    /// A ledger.
    Ledger,
    /// A history.
    History,
}

/// Makes a file without a name, which needs no removal.
pub(crate) fn unnamed() -> Result<File, LoadError> {
    let failed = |source: io::Error| LoadError::System {
        doing: "making a file for a log, a ledger or a history in /tmp",
        source,
    };
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    if let Ok(file) = rustix::fs::open(DIRECTORY, flags | OFlags::TMPFILE, mode) {
        return Ok(file.into());
    }
    // Not every file system has files without names.
    let mut random = [0; 8];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
        .map_err(|errno| failed(errno.into()))?;
    let path = format!("{DIRECTORY}/pgrig-file-{:016x}", u64::from_ne_bytes(random));
    let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path);
    let file = file.map_err(failed)?;
    std::fs::remove_file(&path).map_err(failed)?;
    Ok(file)
}

/// Passes a file's text to `say` in pieces that end with a line.
pub(crate) fn pieces(mut file: &File, mut say: impl FnMut(String)) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    let mut lines = BufReader::new(file);
    let mut piece = String::new();
    while lines.read_line(&mut piece)? > 0 {
        if piece.len() >= PIECE_BYTES {
            say(std::mem::take(&mut piece));
        }
    }
    say(piece);
    Ok(())
}

/// Destination of one generator process's files on this machine.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    /// Beginning of the names of logs.
    pub(crate) log: Option<String>,
    /// The directory of the ledger.
    pub(crate) ledger: Option<PathBuf>,
    /// The directory of the history.
    pub(crate) history: Option<PathBuf>,
    open: HashMap<(Kind, usize), File>,
}

impl Carried {
    pub(crate) fn new(
        log: Option<String>,
        ledger: Option<&Path>,
        history: Option<&Path>,
    ) -> Carried {
        let [ledger, history] = [ledger, history].map(|place| place.map(Path::to_owned));
        Carried { log, ledger, history, open: HashMap::new() }
    }

    /// Appends the next piece of what a lane has written. The lane is counted within its process,
    /// whose first lane is number `first` of all.
    pub(crate) fn append(
        &mut self,
        kind: Kind,
        first: usize,
        lane: usize,
        piece: &str,
    ) -> Result<(), Loss> {
        let number = first + lane;
        let path = match kind {
            Kind::Log => self.log.as_ref().map(|prefix| match lane {
                0 => PathBuf::from(prefix),
                _ => PathBuf::from(format!("{prefix}.{lane}")),
            }),
            Kind::Ledger => {
                self.ledger.as_ref().map(|place| place.join(format!("{number}{SUFFIX}")))
            }
            Kind::History => {
                self.history.as_ref().map(|place| place.join(format!("{number}{HISTORY_SUFFIX}")))
            }
        };
        let Some(path) = path else { return Ok(()) };
        let open = &mut self.open;
        let mut write = || {
            let file = match open.entry((kind, lane)) {
                std::collections::hash_map::Entry::Occupied(file) => file.into_mut(),
                std::collections::hash_map::Entry::Vacant(none) => {
                    none.insert(File::create(&path)?)
                }
            };
            file.write_all(piece.as_bytes())
        };
        let what = match kind {
            Kind::Log => "log",
            Kind::Ledger => "ledger",
            Kind::History => "history",
        };
        let failed = |error| format!("writing its {what} to {}: {error}", path.display());
        write().map_err(|error: io::Error| failed(error).into())
    }
}

/// Directory in which files without names are made.
const DIRECTORY: &str = "/tmp";

/// Small enough that a slow line still carries the host's heartbeat in between.
const PIECE_BYTES: usize = 1 << 18;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_arrives_as_it_was_written() {
        let place = tempfile::tempdir().unwrap();
        let mut written = unnamed().unwrap();
        let text: String = (0..100_000).map(|n| format!("line {n} \"quoted\"\n")).collect();
        written.write_all(text.as_bytes()).unwrap();
        let mut said = Vec::new();
        pieces(&written, |piece| said.push(piece)).unwrap();
        assert!(said.len() > 2, "{} pieces", said.len());
        let prefix = place.path().join("mine.a").display().to_string();
        let mut carried = Carried::new(Some(prefix), Some(place.path()), Some(place.path()));
        for piece in &said {
            carried.append(Kind::Log, 4, 1, piece).unwrap();
            carried.append(Kind::Ledger, 4, 1, piece).unwrap();
            carried.append(Kind::History, 4, 1, piece).unwrap();
        }
        drop(carried);
        for name in ["mine.a.1", "5.ledger", "5.history"] {
            let arrived = std::fs::read_to_string(place.path().join(name)).expect(name);
            assert!(arrived == text, "{name} differs");
        }
    }
}
