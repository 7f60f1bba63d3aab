//! Control groups of the kernel's: groups of processes whose use of a resource is limited. Only root
//! can make one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// A resource whose use is limited, by the names of its controller in both versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Controller {
    one: &'static str,
    two: &'static str,
}

pub(crate) const CPU: Controller = Controller { one: "cpu", two: "cpu" };
pub(crate) const IO: Controller = Controller { one: "blkio", two: "io" };
pub(crate) const MEMORY: Controller = Controller { one: "memory", two: "memory" };

/// A hierarchy in which groups are made, in the way of its version.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Hierarchy {
    One(PathBuf),
    Two(PathBuf),
}

/// A group of processes. When this is dropped its processes go back to where they were, unlimited.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) directory: PathBuf,
    /// The group of this process, from which they came.
    home: PathBuf,
}

impl Group {
    /// Makes an empty group.
    pub(crate) fn make(controller: Controller, hierarchy: &Hierarchy) -> io::Result<Self> {
        remove_left();
        let (own, number) = (std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let name = format!("{PREFIX}{own}-{number}");
        if let Hierarchy::Two(root) = hierarchy {
            fs::write(root.join("cgroup.subtree_control"), format!("+{}", controller.two))?;
        }
        let directory = hierarchy.root().join(name);
        let home = hierarchy.home(controller, &fs::read_to_string("/proc/self/cgroup")?);
        fs::create_dir(&directory)?;
        Ok(Self { directory, home })
    }

    /// Sets a limit, or lifts it.
    pub(crate) fn write(&self, file: &str, text: &str) -> io::Result<()> {
        fs::write(self.directory.join(file), text)
    }

    /// Takes a process into the group, and with it those that it starts from now on.
    ///
    /// # Errors
    /// The kernel's. A group that is gone already is no error.
    pub(crate) fn take(&self, pid: i32) -> io::Result<()> {
        put(&self.directory, pid)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..REMOVE_TRIES {
            // A group that is gone has no members; one that cannot be read is not removed below.
            let left = fs::read_to_string(self.directory.join(MEMBERS)).unwrap_or_default();
            for pid in left.lines().filter_map(|pid| pid.parse().ok()) {
                // One that cannot be moved shows when the group cannot be removed.
                let _ = put(&self.home, pid);
            }
            if fs::remove_dir(&self.directory).is_ok() {
                return;
            }
            // Processes that have ended leave the group when they are reaped.
            thread::sleep(REMOVE_EVERY);
        }
    }
}

/// Puts a process into a group; that it is gone is no failure.
fn put(group: &Path, pid: i32) -> io::Result<()> {
    match fs::write(group.join(MEMBERS), pid.to_string()) {
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {
            Ok(())
        }
        put => put,
    }
}

/// Removes the groups of processes that are gone: one that was killed could not.
pub fn remove_left() {
    remove(|pid| !Path::new("/proc").join(pid).exists());
}

/// Removes the groups of a process that is gone, by its number.
pub(crate) fn remove_of(gone: u32) {
    remove(|pid| pid == gone.to_string());
}

/// Removes the groups of these processes.
fn remove(is_meant: impl Fn(&str) -> bool) {
    for hierarchy in [CPU, IO, MEMORY].into_iter().filter_map(|one| hierarchy(one).ok()) {
        let Ok(entries) = fs::read_dir(hierarchy.root()) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
            if pid.is_some_and(&is_meant) {
                // The kernel refuses for a group that has processes.
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}

impl Hierarchy {
    fn root(&self) -> &Path {
        match self {
            Self::One(root) | Self::Two(root) => root,
        }
    }

    /// The group that a process is in, by its `/proc/PID/cgroup`.
    fn home(&self, controller: Controller, groups: &str) -> PathBuf {
        let is_ours = |controllers: &str| match self {
            Self::One(_) => controllers.split(',').any(|name| name == controller.one),
            Self::Two(_) => controllers.is_empty(),
        };
        let mut lines = groups.lines().map(|line| line.splitn(3, ':').collect::<Vec<_>>());
        let own = lines.find_map(|line| match line[..] {
            [_, controllers, path] if is_ours(controllers) => Some(path),
            _ => None,
        });
        // A process that no line names is at the root.
        self.root().join(own.unwrap_or_default().trim_start_matches('/'))
    }
}

/// The hierarchy with this controller.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`] where none is mounted.
pub(crate) fn hierarchy(controller: Controller) -> io::Result<Hierarchy> {
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let controls = |root: &Path| {
        fs::read_to_string(root.join("cgroup.controllers"))
            .is_ok_and(|names| names.split_whitespace().any(|name| name == controller.two))
    };
    find(&mounts, controller, controls).ok_or_else(|| {
        let Controller { one, two } = controller;
        let why = format!(
            "no control group hierarchy with {two} (version 2) or {one} (version 1) is mounted"
        );
        io::Error::new(io::ErrorKind::Unsupported, why)
    })
}

fn find(
    mounts: &str,
    controller: Controller,
    controls: impl Fn(&Path) -> bool,
) -> Option<Hierarchy> {
    let mut mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    mounts.find_map(|mount| match mount[..] {
        [_, root, "cgroup", options, ..] if options.split(',').any(|o| o == controller.one) => {
            Some(Hierarchy::One(root.into()))
        }
        [_, root, "cgroup2", ..] if controls(Path::new(root)) => Some(Hierarchy::Two(root.into())),
        _ => None,
    })
}

/// Beginning of the names of groups; the number of the process that made one follows.
const PREFIX: &str = "pgrig-";
/// The file that lists a group's processes, and takes new ones.
const MEMBERS: &str = "cgroup.procs";
/// Groups that this process has made.
static MADE: AtomicU64 = AtomicU64::new(0);
const REMOVE_TRIES: u32 = 50;
const REMOVE_EVERY: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hierarchy_with_a_controller_is_found() {
        let check = |mounts: &str, controller, expected: Option<Hierarchy>| {
            let found = find(mounts, controller, |root| root == Path::new("/two"));
            assert_eq!(found, expected, "{mounts}");
        };
        check("cgroup /b cgroup rw,relatime,blkio 0 0", IO, Some(Hierarchy::One("/b".into())));
        check("cgroup /b cgroup rw,relatime,blkio 0 0", MEMORY, None);
        check("cgroup /m cgroup rw,memory 0 0", MEMORY, Some(Hierarchy::One("/m".into())));
        check(
            "cgroup /c cgroup rw,cpu 0 0\ncgroup2 /two cgroup2 rw 0 0",
            IO,
            Some(Hierarchy::Two("/two".into())),
        );
        check("cgroup2 /sys cgroup2 rw 0 0", IO, None);
        check("/dev/sda / ext4 rw 0 0", MEMORY, None);
    }

    #[test]
    fn processes_go_back_to_their_group_of_that_hierarchy() {
        let groups = "7:cpu,blkio:/a\n4:memory:/b\n0::/c/d\n";
        let check = |hierarchy: Hierarchy, controller, groups, home: &str| {
            assert_eq!(hierarchy.home(controller, groups), Path::new(home));
        };
        check(Hierarchy::One("/g".into()), IO, groups, "/g/a");
        check(Hierarchy::One("/g".into()), MEMORY, groups, "/g/b");
        check(Hierarchy::Two("/g".into()), IO, groups, "/g/c/d");
        check(Hierarchy::Two("/g".into()), MEMORY, "0::/\n", "/g/");
    }
}
