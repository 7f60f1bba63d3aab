//! The mark of a lab's directory, and removing the directories that a crash left.
//!
//! Every lab's directory holds a marker file, locked (flock) by the rig and by the lab's init for
//! as long as one of them lives. The lock is what tells a live lab from a left one: unlike a
//! process id it cannot be taken by another process, it reaches across PID namespaces, and it
//! ends with a crash of the machine. What is written inside is for people.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use os::proc_files;
use os::regular_file;
use os::user::SystemUser;
use rustix::fs::{FlockOperation, flock};

use crate::error::Error;
use crate::files::{failed, remove_tree};

/// Result of [`clean`].
#[derive(Debug, Default)]
pub struct CleanResult {
    /// The directories that it removed.
    pub removed: Vec<PathBuf>,
    /// The directories of labs that are alive.
    pub alive: Vec<PathBuf>,
    /// Those that it may not remove, or failed to.
    pub failed: Vec<Error>,
}

/// Removes the labs' directories directly below `parent` whose lab is gone; `parent` itself, too,
/// if it is one.
pub fn clean(parent: &Path) -> Result<CleanResult, Error> {
    os::cgroup::remove_left();
    let mut cleaned = CleanResult::default();
    if is_marked(parent) {
        clean_one(parent.to_owned(), &mut cleaned);
        return Ok(cleaned);
    }
    let failed = failed("listing", parent);
    for entry in fs::read_dir(parent).map_err(&failed)? {
        let entry = entry.map_err(&failed)?;
        // A link is never followed: it could lead to a directory that only looks like a lab's.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) && is_marked(&entry.path()) {
            clean_one(entry.path(), &mut cleaned);
        }
    }
    Ok(cleaned)
}

fn clean_one(directory: PathBuf, cleaned: &mut CleanResult) {
    match Marker::take(&directory) {
        Ok(Some(_lock)) => match remove_tree(&directory) {
            Ok(()) => cleaned.removed.push(directory),
            Err(error) => cleaned.failed.push(error),
        },
        Ok(None) => cleaned.alive.push(directory),
        Err(error) => cleaned.failed.push(failed("locking", &directory.join(MARKER))(error)),
    }
}

/// Only a plain file marks a lab: anybody may put a link, or a pipe that nobody writes to, into a
/// directory of the system's temporary one.
fn is_marked(directory: &Path) -> bool {
    let path = directory.join(MARKER);
    let mut text = vec![0; FIRST_LINE.len()];
    open(&path).is_ok_and(|mut file| file.read_exact(&mut text).is_ok())
        && text == FIRST_LINE.as_bytes()
}

/// The locked marker of a lab.
#[derive(Debug)]
pub(crate) struct Marker {
    file: File,
}

impl Marker {
    /// Marks `directory` as that of a lab of this process.
    pub(crate) fn make(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(MARKER);
        let make = || {
            let mut options = OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(0o600).open(&path)?;
            // Locked before it says what it is, so that nobody cleans what is being made.
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            // Without an id of this boot, whether the process still runs is told by its lock alone.
            let boot = proc_files::read("sys/kernel/random/boot_id").unwrap_or_default();
            let (pid, uid) = (std::process::id(), SystemUser::current().uid);
            write!(file, "{FIRST_LINE}pid {pid}\nuid {uid}\nboot {boot}")?;
            Ok(Self { file })
        };
        make().map_err(failed("marking", &path))
    }

    /// The file whose lock an init inherits.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Locks the marker of a lab that may be gone; `None` where it is alive.
    fn take(directory: &Path) -> io::Result<Option<Self>> {
        let file = open(&directory.join(MARKER))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self { file })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }
}

fn open(marker: &Path) -> io::Result<File> {
    regular_file::open(OpenOptions::new().read(true), marker)
}

/// The marker file's name.
const MARKER: &str = "pgrig-lab";

/// Beginning of its text; the number is the version of the layout.
const FIRST_LINE: &str = "pgrig lab 1\n";

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn only_left_labs_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let directory = parent.path().join(name);
            fs::create_dir(&directory).unwrap();
            directory
        };
        let (left, alive, foreign) = (make("left"), make("alive"), make("foreign"));
        drop(Marker::make(&left).unwrap());
        let _held = Marker::make(&alive).unwrap();
        fs::write(foreign.join(MARKER), "something else").unwrap();
        fs::write(left.join("data"), "x").unwrap();

        let cleaned = clean_until_removed(parent.path());

        assert_eq!(cleaned.removed, std::slice::from_ref(&left));
        assert_eq!(cleaned.alive, std::slice::from_ref(&alive));
        assert!(cleaned.failed.is_empty());
        assert!(!left.exists() && alive.exists() && foreign.exists());
    }

    #[test]
    fn the_directory_itself_can_be_named() {
        let parent = tempfile::tempdir().unwrap();
        let left = parent.path().join("left");
        fs::create_dir(&left).unwrap();
        drop(Marker::make(&left).unwrap());
        assert_eq!(clean_until_removed(&left).removed, [left]);
    }

    /// A program that another test starts at this moment has a copy of the lock until it is executed.
    fn clean_until_removed(parent: &Path) -> CleanResult {
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            let cleaned = clean(parent).unwrap();
            if !cleaned.removed.is_empty() || Instant::now() > until {
                return cleaned;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
