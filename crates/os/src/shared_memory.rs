//! Shared memory that killed processes leave behind. An IPC namespace takes it away at its own end only,
//! and until then a server whose data directory has the same inode finds the segment of another one.
//!
//! PostgreSQL holds two kinds: files `/dev/shm/PostgreSQL.*` and a small System V segment. Which
//! ones are a process's own can be read in its `/proc/PID/maps` while it lives. A segment that
//! nothing maps at that moment is not found.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// Shared memory that some processes had mapped.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    files: BTreeSet<PathBuf>,
    system_v: BTreeSet<i32>,
}

impl Segments {
    /// Notes what the process has mapped, as far as this process may know it.
    pub(crate) fn note(&mut self, pid: i32) {
        self.parse(&fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default());
    }

    /// Removes what was noted. The processes must have ended.
    pub(crate) fn remove(&mut self) {
        for file in std::mem::take(&mut self.files) {
            // Gone already is as good.
            let _ = fs::remove_file(file);
        }
        for id in std::mem::take(&mut self.system_v) {
            // SAFETY: IPC_RMID takes no buffer.
            unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
        }
    }

    /// A line is `range mode offset device inode path`; of a System V segment the inode is its id.
    fn parse(&mut self, maps: &str) {
        for line in maps.lines() {
            let mut fields = line.split_ascii_whitespace();
            let (Some(inode), Some(path)) = (fields.nth(4), fields.next()) else { continue };
            if path.starts_with("/dev/shm/PostgreSQL.") {
                self.files.insert(path.into());
            } else if path.starts_with("/SYSV") {
                self.system_v.extend(inode.parse::<i32>());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_shared_memory_of_postgresql_is_noted() {
        let mut segments = Segments::default();
        segments.parse(
            "7f01-7f02 rw-s 00000000 00:19 3 /dev/shm/PostgreSQL.2851\n\
             7f02-7f03 rw-s 00000000 00:01 98304 /SYSV0002a1b3 (deleted)\n\
             7f03-7f04 rw-s 00000000 00:19 4 /dev/shm/other\n\
             7f04-7f05 rw-s 00000000 00:01 1033 /dev/zero (deleted)\n\
             7f05-7f06 rw-p 00000000 00:00 0\n",
        );
        assert_eq!(segments.files, ["/dev/shm/PostgreSQL.2851".into()].into());
        assert_eq!(segments.system_v, [98304].into());
    }
}
