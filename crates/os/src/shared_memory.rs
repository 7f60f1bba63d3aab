//! Shared memory that killed processes leave behind. An IPC namespace takes it away at its own end only,
//! and until then a server whose data directory has the same inode finds the segment of another one.
//!
//! PostgreSQL holds two kinds: files `/dev/shm/PostgreSQL.*` and a small System V segment. Which
//! ones are a process's own can be read in its `/proc/PID/maps` while it lives. A segment that
//! nothing maps at that moment is not found.
//!
//! A process decides what its maps say. A name found there is therefore taken for a direct child of
//! `/dev/shm` only, and is removed with the rights of the user that the process had: nobody can have
//! a file removed that they could not remove themselves. What root has mapped is left alone, because
//! PostgreSQL does not run as root.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};

use crate::user::SystemUser;

/// Shared memory that some processes had mapped.
#[derive(Debug)]
pub(crate) struct Segments {
    /// The directory of shared memory, held open; none if the system has no such directory.
    directory: Option<OwnedFd>,
    files: HashSet<(String, SystemUser)>,
    system_v: HashSet<(i32, SystemUser)>,
}

impl Segments {
    /// Opens the directory of shared memory of this process's mount namespace.
    pub(crate) fn new() -> Segments {
        Segments {
            directory: open_directory(CWD, DIRECTORY).ok(),
            files: HashSet::new(),
            system_v: HashSet::new(),
        }
    }

    /// Notes what the process has mapped, as far as this process may know it.
    pub(crate) fn note(&mut self, pid: i32) {
        // A process that has ended meanwhile has nothing mapped any more.
        let _ = self.try_note(pid);
    }

    fn try_note(&mut self, pid: i32) -> io::Result<()> {
        // Both files are of the same process, whatever becomes of its number.
        let process = open_directory(CWD, &format!("/proc/{pid}"))?;
        let read = |name: &str| -> io::Result<_> {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&process, name, flags, Mode::empty())?;
            Ok(BufReader::new(File::from(file)).split(b'\n'))
        };
        let mut found = Vec::new();
        for line in read("maps")? {
            // PostgreSQL's names are text.
            found.extend(parse(&String::from_utf8_lossy(&line?)));
        }
        if found.is_empty() {
            return Ok(());
        }
        let text = |line: io::Result<Vec<u8>>| Ok(String::from_utf8_lossy(&line?).into_owned());
        let status = read("status")?.map(text).collect::<io::Result<Vec<String>>>()?;
        // Only what a user of its own leaves behind is taken away: root's may be anybody's.
        let Some(user) = user_of(&status).filter(|user| !user.is_root()) else { return Ok(()) };
        for segment in found {
            match segment {
                Segment::File(name) => self.files.insert((name, user)),
                Segment::SystemV(id) => self.system_v.insert((id, user)),
            };
        }
        Ok(())
    }

    /// Removes what was noted. The processes must have ended.
    pub(crate) fn remove(&mut self) {
        for (name, user) in std::mem::take(&mut self.files) {
            let Some(directory) = &self.directory else { continue };
            // Gone already is as good, and what the user may not remove stays.
            let unlink = || Ok(rustix::fs::unlinkat(directory, &name, AtFlags::empty())?);
            let _ = user.access(unlink);
        }
        for (id, user) in std::mem::take(&mut self.system_v) {
            if owner_of(id).is_some_and(|uid| uid == user.uid) {
                // SAFETY: IPC_RMID takes no buffer.
                unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
            }
        }
    }
}

/// Shared memory, as a line of `/proc/PID/maps` names it.
#[derive(Debug, PartialEq, Eq)]
enum Segment {
    /// A direct child of the directory of shared memory.
    File(String),
    /// The id of a System V segment.
    SystemV(i32),
}

/// A line is `range mode offset device inode path`; of a System V segment the inode is its id.
fn parse(line: &str) -> Option<Segment> {
    let mut fields = line.split_ascii_whitespace();
    let (inode, path) = (fields.nth(4)?, fields.next()?);
    if path.starts_with("/SYSV") {
        return inode.parse().ok().map(Segment::SystemV);
    }
    let name = path.strip_prefix(DIRECTORY)?.strip_prefix('/')?;
    let is_direct = name.starts_with(PREFIX) && !name.contains('/');
    is_direct.then(|| Segment::File(name.to_owned()))
}

/// The user that a process acts as: the second id of `Uid` and `Gid` (proc_pid_status(5)).
fn user_of(status: &[String]) -> Option<SystemUser> {
    let effective = |label: &str| {
        let ids = status.iter().find_map(|line| line.strip_prefix(label))?;
        ids.split_ascii_whitespace().nth(1)?.parse().ok()
    };
    Some(SystemUser { uid: effective("Uid:")?, gid: effective("Gid:")? })
}

/// The user id of a System V segment's owner; none where it is gone.
fn owner_of(id: i32) -> Option<u32> {
    let mut about = MaybeUninit::<libc::shmid_ds>::uninit();
    // SAFETY: IPC_STAT writes one such structure where the call succeeds.
    match unsafe { libc::shmctl(id, libc::IPC_STAT, about.as_mut_ptr()) } {
        // SAFETY: it has been written.
        0 => Some(unsafe { about.assume_init() }.shm_perm.uid),
        _ => None,
    }
}

fn open_directory(at: rustix::fd::BorrowedFd<'_>, path: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(at, path, flags, Mode::empty())?)
}

const DIRECTORY: &str = "/dev/shm";

/// Beginning of the names that PostgreSQL gives its files there.
const PREFIX: &str = "PostgreSQL.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_shared_memory_of_postgresql_is_noted() {
        let file = |name: &str| Some(Segment::File(name.to_owned()));
        let check = |line: &str, expected| assert_eq!(parse(line), expected, "{line}");
        let shm = "7f01-7f02 rw-s 00000000 00:19 3 /dev/shm/";
        check(&format!("{shm}PostgreSQL.2851"), file("PostgreSQL.2851"));
        check(&format!("{shm}PostgreSQL.2851 (deleted)"), file("PostgreSQL.2851"));
        check(&format!("{shm}PostgreSQL.."), file("PostgreSQL.."));
        let system_v = "7f02-7f03 rw-s 00000000 00:01 98304 /SYSV0002a1b3 (deleted)";
        check(system_v, Some(Segment::SystemV(98304)));
        for other in ["other", "PostgreSQL.d/file", "PostgreSQL.d/../../../etc/passwd", "", "."] {
            check(&format!("{shm}{other}"), None);
        }
        check("7f04-7f05 rw-s 00000000 00:01 1033 /dev/zero (deleted)", None);
        check("7f05-7f06 rw-p 00000000 00:00 0", None);
        check("7f05-7f06 rw-p 00000000 00:00 7 /dev/shmPostgreSQL.1", None);
    }

    #[test]
    fn the_user_of_a_process_is_the_one_that_it_acts_as() {
        let check = |status: &[&str], expected| {
            let status: Vec<String> = status.iter().map(|line| (*line).to_owned()).collect();
            assert_eq!(user_of(&status), expected, "{status:?}");
        };
        let user = Some(SystemUser { uid: 5, gid: 8 });
        check(&["Name:\tUid: 0", "Uid:\t4\t5\t6\t7", "Gid:\t7\t8\t9\t9"], user);
        check(&["Uid:\t4\t5\t6\t7"], None);
        check(&["Uid:\t4", "Gid:\t7"], None);
    }
}
