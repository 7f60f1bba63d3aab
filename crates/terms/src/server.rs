//! Terms of servers, poolers and links.

use std::fmt;

use serde::{Deserialize, Serialize};

/// pg_ctl's shutdown modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopMode {
    /// After the last client has left.
    Smart,
    /// After disconnecting all clients and a checkpoint.
    Fast,
    /// At once, so that the next start recovers from the WAL.
    Immediate,
}

impl fmt::Display for StopMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Smart => "smart",
            Self::Fast => "fast",
            Self::Immediate => "immediate",
        })
    }
}

/// The signal that asks a process to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum EndSignal {
    /// SIGTERM.
    Term,
    /// SIGINT.
    Int,
    /// SIGQUIT.
    Quit,
}

/// The moment at which a server connection goes back to PgBouncer's pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PoolMode {
    /// After the client has left.
    Session,
    /// After each transaction.
    Transaction,
    /// After each statement; transactions of several are refused.
    Statement,
}

impl PoolMode {
    /// PgBouncer's name of it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Transaction => "transaction",
            Self::Statement => "statement",
        }
    }
}

/// A direction of a link, seen from one of its ends: in a study from the first, in a lab from the
/// one that connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Direction {
    /// Both.
    Both,
    /// To the other end.
    To,
    /// From the other end.
    From,
}

impl Direction {
    /// The same direction, seen from the other end.
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Self::Both => Self::Both,
            Self::To => Self::From,
            Self::From => Self::To,
        }
    }

    /// True if it is, or contains, the way to the other end.
    pub fn has_to(self) -> bool {
        self != Self::From
    }

    /// True if it is, or contains, the way from the other end.
    pub fn has_from(self) -> bool {
        self != Self::To
    }
}

/// The flushes of a server that do nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SwallowedFlushes {
    /// Those of `pg_control`.
    Control,
    /// Those of the WAL.
    Wal,
    /// Those of tables and indexes.
    Relation,
    /// Those of the commit log.
    CommitLog,
    /// Those of directories.
    Directory,
    /// All, as libeatmydata does.
    All,
}

/// A part of a server's data that can be on a disk of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataPart {
    /// The data directory, without the parts that are elsewhere.
    Main,
    /// The WAL.
    Wal,
    /// The tablespaces, which are made with an empty location: directories below `pg_tblspc`.
    Tablespaces,
}

impl DataPart {
    /// A word for it, as in the names of files.
    pub fn name(self) -> &'static str {
        match self {
            DataPart::Main => "data",
            DataPart::Wal => "wal",
            DataPart::Tablespaces => "tablespaces",
        }
    }

    /// The directory in the data directory; of the data directory itself, the one on its disk.
    pub fn directory(self) -> &'static str {
        match self {
            DataPart::Main => "data",
            DataPart::Wal => "pg_wal",
            DataPart::Tablespaces => "pg_tblspc",
        }
    }
}

impl fmt::Display for DataPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A kind of file system, and how it is mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileSystem {
    /// The one that PostgreSQL runs on nearly everywhere.
    Ext4,
    /// ext4 that writes a file's data when it likes to, and not before a change of its name or its size is durable:
    /// `data=writeback,noauto_da_alloc`.
    Ext4Writeback,
    /// That of Red Hat's distributions.
    Xfs,
    /// It writes nothing in place.
    Btrfs,
}

impl FileSystem {
    /// The name for mount(8), and behind `mkfs.`.
    pub fn name(self) -> &'static str {
        match self {
            FileSystem::Ext4 | FileSystem::Ext4Writeback => "ext4",
            FileSystem::Xfs => "xfs",
            FileSystem::Btrfs => "btrfs",
        }
    }

    /// The name for a reader: two that differ in how they are mounted have two names.
    pub fn words(self) -> &'static str {
        match self {
            FileSystem::Ext4Writeback => "ext4-writeback",
            other => other.name(),
        }
    }

    /// True if it is ext4, however it is mounted.
    pub fn is_ext4(self) -> bool {
        matches!(self, FileSystem::Ext4 | FileSystem::Ext4Writeback)
    }
}

/// A kind of request of a disk, and which one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiskRequest {
    /// The n-th write from now on, from 1.
    Write(u64),
    /// The n-th flush from now on, from 1.
    Flush(u64),
}

/// A kind of request of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestKind {
    /// A read.
    Read,
    /// A write.
    Write,
    /// A flush, which is of the whole disk.
    Flush,
}

impl RequestKind {
    /// The name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            RequestKind::Read => "read",
            RequestKind::Write => "write",
            RequestKind::Flush => "flush",
        }
    }
}

/// Requests of a disk that fail, while its others are done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailingRequests {
    /// Their kind.
    pub kind: RequestKind,
    /// The error that they get.
    pub fault: DiskFault,
    /// The number of requests that fail; none for all until the disk is healed.
    pub times: Option<u64>,
    /// Files whose blocks fail, from the data directory on, with their further segments and with what is below
    /// a directory; all blocks where none is named. A block that a file gets later is not among them.
    pub files: Vec<String>,
}

/// The error of a failing disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiskFault {
    /// EIO: it is broken.
    Broken,
    /// ENOSPC: it is thinly provisioned, and what it was promised is not there.
    Full,
}
