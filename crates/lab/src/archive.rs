//! What a WAL archive and a base backup are, as a lab tells, and how a server is restored from them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use terms::Settings;

/// The archive of a server's WAL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveConfig {
    /// The node in whose directory it lies, itself or another one of the lab.
    pub of: String,
    /// What keeps it.
    pub tool: ArchiveTool,
}

/// What keeps an archive: copies segments there and back, and takes and restores base backups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ArchiveTool {
    /// `cp` and pg_basebackup.
    Copy,
    /// pgBackRest, and its program.
    PgBackRest(PathBuf),
}

/// A file of a WAL archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedFile {
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Its first 40 bytes, where a segment has its header; of the history of a timeline all.
    pub head: Vec<u8>,
}

/// What pg_verifybackup says of a base backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupVerdict {
    /// True if every file is as the manifest has it.
    pub is_intact: bool,
    /// Its output.
    pub said: String,
}

/// The order to restore a server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RestoreOrder {
    /// The directory of the base backup.
    pub backup: PathBuf,
    /// The directory of the archive.
    pub archive: PathBuf,
    /// What keeps it, and has taken the backup.
    pub tool: ArchiveTool,
    /// The settings of the recovery, as in `recovery_target_time`; without a target it goes to the end of the
    /// archive.
    pub recovery: Settings,
}
