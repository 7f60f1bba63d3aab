//! What a guard leaves for the next one, and for those who ask: one small file, replaced whole.
//!
//! What was asked for is not kept here but in the server, beside the setting that it explains: the
//! two cannot part, whatever is restored from a backup or started elsewhere.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, file};

/// What a guard leaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardState {
    /// The cluster's, from `pg_control_system()`.
    pub system_identifier: String,
    /// The guard's process.
    pub pid: u32,
    /// When this was written, RFC 3339.
    pub at: String,
    /// What the operator asks for.
    pub asked: String,
    /// What was in force.
    pub in_force: String,
    /// Up to where commits were confirmed as asked.
    pub confirmed_lsn: Option<String>,
    /// How often the setting was raised too early lately.
    pub flaps: u32,
    /// What the guard did last, in words.
    pub last: String,
}

/// A state directory that no other process uses.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) path: PathBuf,
    _lock: File,
}

impl Directory {
    /// Makes it if need be, for this user only, and locks it until the process ends.
    pub(crate) fn open(path: &Path) -> Result<Directory, Error> {
        use std::os::unix::fs::DirBuilderExt;
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(file("making the state directory", path))?;
        let lock = path.join("lock");
        let lock = File::create(&lock).map_err(file("opening", &lock))?;
        match lock.try_lock() {
            Ok(()) => Ok(Directory { path: path.to_owned(), _lock: lock }),
            Err(fs::TryLockError::WouldBlock) => Err(Error::StateInUse { path: path.to_owned() }),
            Err(fs::TryLockError::Error(error)) => Err(file("locking", path)(error)),
        }
    }

    pub(crate) fn save(&self, state: &GuardState) -> Result<(), Error> {
        let (new, path) = (self.path.join("state.json.new"), self.path.join(STATE));
        let write = || {
            let mut file = File::create(&new)?;
            serde_json::to_writer_pretty(&mut file, state)?;
            file.write_all(b"\n")?;
            file.sync_all()?;
            fs::rename(&new, &path)
        };
        write().map_err(file("writing", &path))
    }
}

/// Reads the state of a directory; there need not be one.
///
/// # Errors
/// The file system's; a file that is not one of these.
pub fn load(directory: &Path) -> Result<Option<GuardState>, Error> {
    let path = directory.join(STATE);
    match fs::read_to_string(&path) {
        Ok(text) => serde_json::from_str(&text)
            .map(Some)
            .map_err(|why| Error::Content { path, why: why.to_string() }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(file("reading", &path)(error)),
    }
}

const STATE: &str = "state.json";
