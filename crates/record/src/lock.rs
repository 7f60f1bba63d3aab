//! The lock of a record: one run at a time writes into it.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, io as io_error};
use crate::files;

/// A record that this process writes. The lock ends with the process, however that ends.
#[derive(Debug)]
pub(crate) struct Lock {
    /// The record's directory, which is what is locked.
    _directory: File,
    holder: PathBuf,
}

impl Lock {
    /// Takes the lock, and leaves a note of who has it.
    ///
    /// # Errors
    /// [`Error::Held`] while another process has it; the file system's.
    pub(crate) fn take(directory: &Path) -> Result<Lock, Error> {
        let failed = io_error("locking", directory);
        let file = match File::open(directory) {
            Ok(file) => file,
            Err(error) => return Err(failed(error)),
        };
        let holder = directory.join(HOLDER);
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let path = directory.to_owned();
                return Err(Error::Held { path, holder: noted(&holder) });
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let process = std::process::id();
        files::replace(&holder, |out| writeln!(out, "process {process}"))?;
        Ok(Lock { _directory: file, holder })
    }
}

/// True if a process is writing the record in this directory.
#[must_use]
pub fn is_held(directory: &Path) -> bool {
    File::open(directory)
        .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Without the lock the note says nothing, so that it may stay.
        let _ = fs::remove_file(&self.holder);
    }
}

/// The holder of the lock, as far as it has said so.
fn noted(holder: &Path) -> String {
    let read = || -> io::Result<String> {
        let is_file = fs::symlink_metadata(holder)?.is_file();
        let mut text = String::new();
        if is_file {
            File::open(holder)?.take(NOTE_BYTES_MAX).read_to_string(&mut text)?;
        }
        Ok(text)
    };
    // A note that cannot be read names nobody: the message then says "another process".
    let note = read().unwrap_or_default();
    match note.trim().strip_prefix("process ").and_then(|number| number.parse::<u32>().ok()) {
        Some(number) => format!("process {number}"),
        None => "another process".to_owned(),
    }
}

const HOLDER: &str = "running";

const NOTE_BYTES_MAX: u64 = 64;
