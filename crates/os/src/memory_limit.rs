//! A limit on the memory of a group of processes: a control group of the kernel's, `memory.max` in
//! version 2, `memory.limit_in_bytes` in version 1. Only root can make one.
//!
//! What counts is the memory that processes take while they are in the group, the page cache of their
//! files included. When none of it can be given back, the kernel kills a process of the group.

use std::fs;
use std::io;

use crate::cgroup::{self, Group, Hierarchy};

/// A group that may use so much memory. When this is dropped its processes go back to where they were,
/// unlimited.
#[derive(Debug)]
pub struct MemoryLimit {
    group: Group,
    /// The file that counts the processes that the kernel has killed for it.
    counts: &'static str,
}

/// The files of a version.
struct Files {
    limit: &'static str,
    /// A limit on memory and swap together, or on swap alone, and its text.
    swap: (&'static str, String),
    counts: &'static str,
}

impl MemoryLimit {
    /// Makes an empty group that may use so many bytes, and no swap.
    pub fn make(bytes: u64) -> io::Result<Self> {
        let hierarchy = cgroup::hierarchy(cgroup::MEMORY)?;
        let group = Group::make(cgroup::MEMORY, &hierarchy)?;
        let Files { limit, swap: (swap, text), counts } = files(&hierarchy, bytes);
        group.write(limit, &bytes.to_string())?;
        // A kernel that accounts for no swap has no such file.
        match group.write(swap, &text) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        Ok(Self { group, counts })
    }

    /// Takes a process into the group, and with it those that it starts from now on. The memory that it
    /// has already does not count.
    ///
    /// # Errors
    /// The kernel's. A group that is gone already is no error.
    pub fn take(&self, pid: i32) -> io::Result<()> {
        self.group.take(pid)
    }

    /// The processes of the group that the kernel has killed because it was used up.
    pub fn kills(&self) -> io::Result<u64> {
        kills(&fs::read_to_string(self.group.directory.join(self.counts))?)
    }
}

/// Checks that the memory of processes can be limited here: makes a group and removes it.
pub fn check() -> io::Result<()> {
    MemoryLimit::make(1 << 30)?.kills().map(drop)
}

fn files(hierarchy: &Hierarchy, bytes: u64) -> Files {
    match hierarchy {
        Hierarchy::One(_) => Files {
            limit: "memory.limit_in_bytes",
            swap: ("memory.memsw.limit_in_bytes", bytes.to_string()),
            counts: "memory.oom_control",
        },
        Hierarchy::Two(_) => Files {
            limit: "memory.max",
            swap: ("memory.swap.max", "0".to_owned()),
            counts: "memory.events",
        },
    }
}

/// The count in the lines of `memory.events` or `memory.oom_control`.
fn kills(text: &str) -> io::Result<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    let count =
        lines.find(|(name, _)| *name == "oom_kill").and_then(|(_, n)| n.trim().parse().ok());
    count.ok_or_else(|| {
        let why = "this kernel does not count the processes that it kills for memory";
        io::Error::new(io::ErrorKind::Unsupported, why)
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_that_uses_up_its_memory_is_killed_and_counted() {
        if !crate::user::SystemUser::current().is_root() {
            return testing::skip::no_root();
        }
        if let Err(error) = check() {
            return testing::skip::because(error);
        }
        let limit = MemoryLimit::make(32 << 20).unwrap();
        let group = limit.group.directory.clone();
        // It waits for a line, so that it takes nothing before it is in the group.
        let line = "read line; exec head -c 512m /dev/zero | tail -c 256m";
        let mut child = Command::new("sh")
            .args(["-c", line])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        limit.take(child.id().cast_signed()).unwrap();
        assert_eq!(limit.kills().unwrap(), 0);
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        let status = child.wait().unwrap();
        assert!(status.signal() == Some(9) || status.code() == Some(137), "{status:?}");
        assert!(limit.kills().unwrap() >= 1);
        drop(limit);
        assert!(!group.exists());
    }

    #[test]
    fn killed_processes_are_counted_in_both_versions() {
        assert_eq!(kills("low 0\nmax 7\noom 1\noom_kill 3\n").unwrap(), 3);
        assert_eq!(kills("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n").unwrap(), 2);
        assert!(kills("oom_kill_disable 0\nunder_oom 0\n").is_err());
    }
}
