//! Limits on the I/O of a group of processes: a control group of the kernel's, `io.max` in version
//! 2, `blkio.throttle.*` in version 1. Only root can make one.
//!
//! What is limited is what processes of the group ask a device for themselves: reads that the page
//! cache has not, and what fsync writes. Version 1 lets pass what the kernel writes back later by
//! itself.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Limits, a second each; none where nothing is said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Requests to read.
    pub read_iops: Option<u64>,
    /// Requests to write.
    pub write_iops: Option<u64>,
    /// Bytes read.
    pub read_bytes: Option<u64>,
    /// Bytes written.
    pub write_bytes: Option<u64>,
}

/// A group whose I/O on one device is limited. When this is dropped its processes go back to where
/// they were, unlimited.
#[derive(Debug)]
pub struct Throttle {
    directory: PathBuf,
    /// The group of this process, from which they came.
    home: PathBuf,
    /// Files, and what lifts the limits that are set there.
    lifts: Vec<(&'static str, String)>,
}

/// Hierarchy in which groups are made, and its way of writing limits.
#[derive(Debug, PartialEq, Eq)]
enum Hierarchy {
    One(PathBuf),
    Two(PathBuf),
}

impl Throttle {
    /// Makes an empty group whose I/O on the device under `path` is limited.
    pub fn make(path: &Path, limits: &Limits) -> io::Result<Self> {
        remove_left();
        let device = device(path)?;
        let hierarchy = hierarchy()?;
        let (own, number) = (std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let name = format!("{PREFIX}{own}-{number}");
        if let Hierarchy::Two(root) = &hierarchy {
            fs::write(root.join("cgroup.subtree_control"), "+io")?;
        }
        let directory = hierarchy.root().join(name);
        let home = hierarchy.home(&fs::read_to_string("/proc/self/cgroup")?);
        fs::create_dir(&directory)?;
        let lifts = hierarchy.lines(&device, limits, |_| hierarchy.no_limit().to_owned());
        let made = Self { directory, home, lifts };
        for (file, text) in hierarchy.lines(&device, limits, |limit| limit.to_string()) {
            fs::write(made.directory.join(file), text)?;
        }
        Ok(made)
    }

    /// Takes a process into the group, and with it those that it starts from now on.
    ///
    /// # Errors
    /// The kernel's; that it is gone is none.
    pub fn take(&self, pid: i32) -> io::Result<()> {
        put(&self.directory, pid)
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        for (file, text) in &self.lifts {
            // What waits in the queue goes on with it, else when its turn comes.
            let _ = fs::write(self.directory.join(file), text);
        }
        for _ in 0..REMOVE_TRIES {
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

/// Checks that the I/O of processes on the device under `path` can be limited here.
///
/// # Errors
/// What is in the way, in words.
pub fn check(path: &Path) -> io::Result<()> {
    device(path)?;
    hierarchy().map(drop)
}

/// Removes the groups of processes that are gone: one that was killed could not.
pub fn remove_left() {
    let Ok(hierarchy) = hierarchy() else { return };
    let Ok(entries) = fs::read_dir(hierarchy.root()) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        if let Some(pid) = pid
            && !Path::new("/proc").join(pid).exists()
        {
            // The kernel refuses for a group that has processes.
            let _ = fs::remove_dir(entry.path());
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
    fn home(&self, groups: &str) -> PathBuf {
        let is_ours = |controllers: &str| match self {
            Self::One(_) => controllers.split(',').any(|name| name == "blkio"),
            Self::Two(_) => controllers.is_empty(),
        };
        let mut lines = groups.lines().map(|line| line.splitn(3, ':').collect::<Vec<_>>());
        let own = lines.find_map(|line| match line[..] {
            [_, controllers, path] if is_ours(controllers) => Some(path),
            _ => None,
        });
        self.root().join(own.unwrap_or_default().trim_start_matches('/'))
    }

    /// Text that stands for no limit.
    fn no_limit(&self) -> &'static str {
        match self {
            Self::One(_) => "0",
            Self::Two(_) => "max",
        }
    }

    /// Files and what is written into them for each limit that there is.
    fn lines(
        &self,
        device: &str,
        limits: &Limits,
        word: impl Fn(u64) -> String,
    ) -> Vec<(&'static str, String)> {
        let each = [
            (limits.read_iops, "riops", "blkio.throttle.read_iops_device"),
            (limits.write_iops, "wiops", "blkio.throttle.write_iops_device"),
            (limits.read_bytes, "rbps", "blkio.throttle.read_bps_device"),
            (limits.write_bytes, "wbps", "blkio.throttle.write_bps_device"),
        ];
        let each = each.into_iter().filter_map(|(limit, two, one)| Some((word(limit?), two, one)));
        match self {
            Self::One(_) => each.map(|(word, _, one)| (one, format!("{device} {word}"))).collect(),
            Self::Two(_) => {
                let words = each.map(|(word, two, _)| format!("{two}={word}"));
                let words: Vec<String> = words.collect();
                vec![("io.max", format!("{device} {}", words.join(" ")))]
            }
        }
    }
}

fn hierarchy() -> io::Result<Hierarchy> {
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let controls_io = |root: &Path| {
        fs::read_to_string(root.join("cgroup.controllers"))
            .is_ok_and(|names| names.split_whitespace().any(|name| name == "io"))
    };
    find(&mounts, controls_io).ok_or_else(|| {
        let why = "no control group hierarchy with io (version 2) or blkio (version 1) is mounted";
        io::Error::new(io::ErrorKind::Unsupported, why)
    })
}

fn find(mounts: &str, controls_io: impl Fn(&Path) -> bool) -> Option<Hierarchy> {
    let mut mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    mounts.find_map(|mount| match mount[..] {
        [_, root, "cgroup", options, ..] if options.split(',').any(|o| o == "blkio") => {
            Some(Hierarchy::One(root.into()))
        }
        [_, root, "cgroup2", ..] if controls_io(Path::new(root)) => {
            Some(Hierarchy::Two(root.into()))
        }
        _ => None,
    })
}

/// The whole disk that a path lies on, as `MAJOR:MINOR`: the kernel limits no partitions.
fn device(path: &Path) -> io::Result<String> {
    let device = fs::metadata(path)?.dev();
    let numbers = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    let place = Path::new("/sys/dev/block").join(&numbers);
    if !place.exists() {
        let why = format!("{} lies on no block device", path.display());
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    }
    match place.join("partition").exists() {
        true => Ok(fs::read_to_string(place.canonicalize()?.join("../dev"))?.trim().to_owned()),
        false => Ok(numbers),
    }
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
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_hierarchy_that_limits_io_is_found() {
        let check = |mounts: &str, expected: Option<Hierarchy>| {
            assert_eq!(find(mounts, |root| root == Path::new("/io")), expected, "{mounts}");
        };
        check("cgroup /b cgroup rw,relatime,blkio 0 0", Some(Hierarchy::One("/b".into())));
        check(
            "cgroup /c cgroup rw,cpu 0 0\ncgroup2 /io cgroup2 rw 0 0",
            Some(Hierarchy::Two("/io".into())),
        );
        check("cgroup2 /sys cgroup2 rw 0 0", None);
        check("/dev/sda / ext4 rw 0 0", None);
    }

    #[test]
    fn writes_of_a_limited_process_are_slow_and_then_fast_again() {
        // Tests may have their other files in memory, which has no limits.
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        if !crate::user::User::current().is_root() {
            return testing::skip::no_root();
        }
        if let Err(error) = check(directory.path()) {
            return testing::skip::because(error);
        }
        let limits = Limits { write_iops: Some(20), ..Limits::default() };
        let throttle = Throttle::make(directory.path(), &limits).unwrap();
        let group = throttle.directory.clone();
        // It waits for a line, so that it writes nothing before it is taken.
        let write = |count: u32| {
            let line = "read line; exec dd if=/dev/zero bs=4k oflag=dsync count=$0 of=$1";
            let mut command = std::process::Command::new("sh");
            command.args(["-c", line, &count.to_string()]).arg(directory.path().join("file"));
            command.stdin(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
            let mut child = command.spawn().unwrap();
            throttle.take(child.id().cast_signed()).unwrap();
            child.stdin.take().unwrap().write_all(b"\n").unwrap();
            child
        };
        let began = std::time::Instant::now();
        let mut limited = write(30);
        assert!(limited.wait().unwrap().success());
        // 20 requests a second.
        assert!(began.elapsed() > Duration::from_millis(500), "{:?}", began.elapsed());
        let mut endless = write(1_000_000);
        drop(throttle);
        assert!(!group.exists());
        assert!(endless.try_wait().unwrap().is_none(), "it goes on elsewhere");
        endless.kill().unwrap();
        endless.wait().unwrap();
    }

    #[test]
    fn processes_go_back_to_their_group_of_that_hierarchy() {
        let groups = "7:cpu,blkio:/a\n4:memory:/b\n0::/c/d\n";
        let check = |hierarchy: Hierarchy, groups, home: &str| {
            assert_eq!(hierarchy.home(groups), Path::new(home));
        };
        check(Hierarchy::One("/g".into()), groups, "/g/a");
        check(Hierarchy::Two("/g".into()), groups, "/g/c/d");
        check(Hierarchy::Two("/g".into()), "0::/\n", "/g/");
    }

    #[test]
    fn limits_are_written_as_each_version_reads_them() {
        let limits = Limits { write_iops: Some(9), read_bytes: Some(4096), ..Limits::default() };
        let check = |hierarchy: Hierarchy, expected: &[(&'static str, &str)]| {
            let lines = hierarchy.lines("8:0", &limits, |limit| limit.to_string());
            let lines: Vec<(&str, &str)> = lines.iter().map(|(f, t)| (*f, t.as_str())).collect();
            assert_eq!(lines, expected);
        };
        let (iops, bytes) = ("blkio.throttle.write_iops_device", "blkio.throttle.read_bps_device");
        check(Hierarchy::One("/".into()), &[(iops, "8:0 9"), (bytes, "8:0 4096")]);
        check(Hierarchy::Two("/".into()), &[("io.max", "8:0 wiops=9 rbps=4096")]);
    }
}
