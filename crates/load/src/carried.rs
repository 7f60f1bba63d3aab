//! Files that lanes write on another host: without a name there, sent here in pieces, and written here
//! under the names that they have when every lane runs on this machine. What a ledger or a history says is
//! sent while the load runs, so that it outlives the host; a log when its lane is done.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, Write},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
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

/// The files of the lanes of this process, and how much of each has been sent.
pub(crate) struct Outgoing<'l>(Vec<OutgoingFile<'l>>);

struct OutgoingFile<'l> {
    kind: Kind,
    lane: usize,
    file: &'l File,
    /// Bytes that have been sent. Whoever sends more holds it until that is done, so that pieces stay in
    /// their order.
    sent: Mutex<u64>,
}

impl<'l> Outgoing<'l> {
    pub(crate) fn new(files: impl Iterator<Item = (Kind, usize, &'l File)>) -> Outgoing<'l> {
        let one = |(kind, lane, file)| OutgoingFile { kind, lane, file, sent: Mutex::new(0) };
        Outgoing(files.map(one).collect())
    }

    /// Sends what ledgers and histories say by now, up to their last whole line.
    pub(crate) fn send_notes(&self, say: &impl Fn(Kind, usize, String)) -> io::Result<()> {
        self.0.iter().filter(|one| one.kind != Kind::Log).try_for_each(|one| one.send(say))
    }

    /// Sends the rest of what a lane has written.
    pub(crate) fn send_rest(
        &self,
        lane: usize,
        say: &impl Fn(Kind, usize, String),
    ) -> io::Result<()> {
        self.0.iter().filter(|one| one.lane == lane).try_for_each(|one| one.send(say))
    }
}

impl OutgoingFile<'_> {
    fn send(&self, say: &impl Fn(Kind, usize, String)) -> io::Result<()> {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let mut piece = Vec::new();
        loop {
            let known = piece.len();
            piece.resize(known + PIECE_BYTES, 0);
            let read = self.file.read_at(&mut piece[known..], *sent + known as u64)?;
            piece.truncate(known + read);
            // A line that is longer than a piece is sent in one.
            let Some(end) = piece.iter().rposition(|byte| *byte == b'\n') else {
                if read == 0 {
                    return Ok(());
                }
                continue;
            };
            piece.truncate(end + 1);
            *sent += piece.len() as u64;
            let text = String::from_utf8(std::mem::take(&mut piece));
            let text = text.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            say(self.kind, self.lane, text);
        }
    }
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
        // Nobody asked for a file of this kind, so the piece has no place.
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
        // A part of it arrives before the rest is there, and no line is cut.
        let (first, rest) = text.as_bytes().split_at(text.len() / 3);
        let said = Mutex::new(Vec::new());
        let say = |_: Kind, _: usize, piece: String| said.lock().unwrap().push(piece);
        let reader = written.try_clone().unwrap();
        let outgoing = Outgoing::new([(Kind::Ledger, 1, &reader)].into_iter());
        written.write_all(first).unwrap();
        outgoing.send_notes(&say).unwrap();
        outgoing.send_notes(&say).unwrap();
        let before: usize = said.lock().unwrap().iter().map(String::len).sum();
        assert!(before > first.len() - 100 && before <= first.len(), "{before} of {}", first.len());
        written.write_all(rest).unwrap();
        outgoing.send_rest(1, &say).unwrap();
        let said = said.into_inner().unwrap();
        assert!(said.len() > 2 && said.iter().all(|piece| piece.ends_with('\n')));
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

    #[test]
    fn a_log_waits_for_the_end_of_its_lane() {
        let mut written = unnamed().unwrap();
        written.write_all(b"1\n").unwrap();
        let said = Mutex::new(Vec::new());
        let say = |_: Kind, lane: usize, piece: String| said.lock().unwrap().push((lane, piece));
        let outgoing =
            Outgoing::new([(Kind::Log, 0, &written), (Kind::Log, 1, &written)].into_iter());
        outgoing.send_notes(&say).unwrap();
        assert!(said.lock().unwrap().is_empty());
        outgoing.send_rest(1, &say).unwrap();
        assert_eq!(said.into_inner().unwrap(), [(1, "1\n".to_owned())]);
    }
}
