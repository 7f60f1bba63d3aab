//! A disk that keeps a log of its requests, and one that holds a state of such a log.

use std::path::{Path, PathBuf};

use os::init::Init;
use serde::{Deserialize, Serialize};
use terms::FileSystem;

use super::error::{Error, step};
use super::orders::{DiskStatus, Order};
use super::recorder::now_ns;
use super::serve::{BASE, LOG};
use super::{FaultyDisk, PowerCutMethod, parts};

/// A log of the requests of a disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestLog {
    /// The log; [`crash::DiskLog::read`] reads it.
    pub log: PathBuf,
    /// The image from before it began; none for a disk that holds a state.
    pub base: Option<PathBuf>,
    /// Bytes of the log.
    pub bytes: u64,
    /// The moment from which everything is in it, of the machine's monotonic clock in nanoseconds.
    pub began_ns: u64,
    /// The files on it before the log began and after it ended.
    pub files: [Vec<DiskFile>; 2],
    /// The first and the last block of each part of the file system's journal.
    pub journal: Vec<(u64, u64)>,
}

/// The place of a file on a disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskFile {
    /// The path from the root of the disk's file system on.
    pub path: PathBuf,
    /// The extents: first byte in the file, first byte on the disk, length in bytes.
    pub extents: Vec<(u64, u64, u64)>,
}

impl FaultyDisk {
    /// True if it is to keep a log.
    pub fn has_log(&self) -> bool {
        matches!(self.config.method, PowerCutMethod::Block { log_bytes: Some(_), .. })
    }

    /// If it was made to keep a log: makes all that was written durable, keeps its image as it is then,
    /// and keeps a log of what is asked of it from now on.
    pub fn record(&mut self, init: &Init) -> Result<(), Error> {
        let PowerCutMethod::Block { log_bytes: Some(max_bytes), .. } = self.config.method else {
            // It was not made to keep one.
            return Ok(());
        };
        self.sync(init)?;
        self.tell(Order::Record { max_bytes, copies_image: true })?;
        self.record_began_ns = now_ns();
        self.files_before = self.files(init)?;
        Ok(())
    }

    /// Has it keep a log, of so many bytes at most, from when it is switched on next: what its file
    /// system writes when it is mounted is in it.
    pub fn record_next(&mut self, max_bytes: u64) {
        self.record_next = Some(max_bytes);
    }

    /// Begins the log that it was to keep from when it is switched on.
    pub(super) fn begin_record(&mut self) -> Result<(), Error> {
        match self.record_next.take() {
            Some(max_bytes) => {
                self.tell(Order::Record { max_bytes, copies_image: false })?;
                self.record_began_ns = now_ns();
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Ends the log.
    ///
    /// # Errors
    /// [`Error::LogFull`] where it did not fit; [`Error::NotABlockDisk`]; the system's.
    pub fn end_record(&mut self, init: &Init) -> Result<RequestLog, Error> {
        self.expect_block("ending the log of")?;
        let DiskStatus { logged: bytes, .. } = self.tell(Order::Close)?;
        if let PowerCutMethod::Block { log_bytes: Some(max_bytes), .. } = self.config.method
            && bytes > max_bytes
        {
            return Err(Error::LogFull { needs_bytes: bytes, max_bytes });
        }
        let base = matches!(self.config.method, PowerCutMethod::Block { .. }).then(|| self.base());
        let journal = match &base {
            Some(base) if self.config.file_system.is_ext4() => journal_blocks(base)?,
            _ => Vec::new(),
        };
        let files = [std::mem::take(&mut self.files_before), self.files(init)?];
        let (log, began_ns) = (self.directory.join(LOG), self.record_began_ns);
        Ok(RequestLog { log, base, bytes, began_ns, files, journal })
    }

    /// The places of its files now; none where the file system tells other addresses than the disk's.
    pub(super) fn files(&self, init: &Init) -> Result<Vec<DiskFile>, Error> {
        if self.config.file_system == FileSystem::Btrfs {
            return Ok(Vec::new());
        }
        let root = self.outside(init)?;
        let find = || {
            let mut found = Vec::new();
            parts::walk(&root, &mut |path, file| {
                let extents = os::file_system::extents(&file)?;
                let extents = extents.iter().map(|one| (one.logical, one.physical, one.length));
                let path = path.strip_prefix(&root).unwrap_or(path).to_owned();
                found.push(DiskFile { path, extents: extents.collect() });
                Ok(())
            })?;
            Ok(found)
        };
        self.owner.access(find).map_err(step("looking for the files of", &root))
    }

    /// Unmounts it, and has it hold the state that is in its file of [`FaultyDisk::patch_path`] when it is
    /// switched on next. Its process stays: a new one for each state would cost more than many a recovery.
    pub fn load_state(&mut self, init: &Init) -> Result<(), Error> {
        match self.process {
            Some(_) => self.unmount(init),
            None => self.format(init),
        }
    }

    /// Path of the state that a disk of that kind is switched on with.
    pub fn patch_path(&self) -> PathBuf {
        self.directory.join("patch")
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn base(&self) -> PathBuf {
        self.directory.join(BASE)
    }
}

/// The blocks of the journal of the ext4 file system in an image, as its own debugger tells them.
fn journal_blocks(image: &Path) -> Result<Vec<(u64, u64)>, Error> {
    let program = parts::file_system_program(DEBUGFS)?;
    let output =
        std::process::Command::new(&program).args(["-R", "blocks <8>"]).arg(image).output();
    let output = output.map_err(step("running", &program))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for block in text.split_whitespace().filter_map(|word| word.parse().ok()) {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == block => *last = block,
            _ => ranges.push((block, block)),
        }
    }
    Ok(ranges)
}

const DEBUGFS: &str = "debugfs";
