//! Requests of a disk that fail while others are done.

use terms::{DiskFault, RequestKind};

use super::Action;
use super::entry::{DISK_FAULTS, Entry};

/// Files of a server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ServerFiles {
    /// The segments of the WAL.
    Wal,
    /// Tables, TOAST and system catalogs among them.
    Heap,
    /// Indexes.
    Index,
    /// The commit log and other logs of transactions.
    Slru,
    /// `pg_control`.
    Control,
    /// One file or directory, from the data directory on.
    Path(String),
}

impl ServerFiles {
    fn parse(word: &str) -> ServerFiles {
        let known = FILES.iter().find(|(name, _)| *name == word);
        known.map_or_else(|| ServerFiles::Path(word.to_owned()), |(_, files)| files.clone())
    }

    /// As study.toml writes it.
    pub fn words(&self) -> &str {
        match self {
            ServerFiles::Path(path) => path,
            known => FILES.iter().find(|(_, files)| files == known).map_or("", |(word, _)| *word),
        }
    }
}

/// `{ at = "1s", fail_requests = "primary", of = "heap", on = "write", times = 3, error = "EIO" }`
pub(super) fn parse(entry: &Entry<'_>) -> Option<Action> {
    let fields = entry.fields;
    let kind = fields.choice("on", KINDS).unwrap_or(RequestKind::Write);
    let files = fields.text("of").map(ServerFiles::parse);
    let times = fields.integer("times", 1..=TIMES_MAX);
    let fault = fields.choice("error", DISK_FAULTS).unwrap_or(DiskFault::Broken);
    Some(Action::FailRequests { node: entry.own_server()?, kind, files, times, fault })
}

const FILES: &[(&str, ServerFiles)] = &[
    ("wal", ServerFiles::Wal),
    ("heap", ServerFiles::Heap),
    ("index", ServerFiles::Index),
    ("slru", ServerFiles::Slru),
    ("control", ServerFiles::Control),
];

const KINDS: &[(&str, RequestKind)] =
    &[("read", RequestKind::Read), ("write", RequestKind::Write), ("flush", RequestKind::Flush)];

/// More than a load of hours asks a disk for.
const TIMES_MAX: u64 = 1_000_000_000_000;
