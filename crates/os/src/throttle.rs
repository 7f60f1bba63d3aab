//! Limits on the I/O of a group of processes: a control group of the kernel's, `io.max` in version
//! 2, `blkio.throttle.*` in version 1. Only root can make one.
//!
//! What is limited is what processes of the group ask a device for themselves: reads that the page
//! cache has not, and what fsync writes. Version 1 lets pass what the kernel writes back later by
//! itself.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::cgroup::{self, Group, Hierarchy};

/// Limits, a second each; none where nothing is said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoLimits {
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
pub struct IoThrottle {
    /// Files, and what lifts the limits that are set there.
    lifts: Vec<(&'static str, String)>,
    group: Group,
}

impl IoThrottle {
    /// Makes an empty group whose I/O on the device under `path` is limited.
    pub fn make(path: &Path, limits: &IoLimits) -> io::Result<Self> {
        let device = device(path)?;
        let hierarchy = cgroup::hierarchy(cgroup::IO)?;
        let group = Group::make(cgroup::IO, &hierarchy)?;
        let lifts = lines(&hierarchy, &device, limits, |_| no_limit(&hierarchy).to_owned());
        let made = Self { lifts, group };
        for (file, text) in lines(&hierarchy, &device, limits, |limit| limit.to_string()) {
            made.group.write(file, &text)?;
        }
        Ok(made)
    }

    /// Takes a process into the group, and with it those that it starts from now on.
    ///
    /// # Errors
    /// The kernel's. A group that is gone already is no error.
    pub fn take(&self, pid: i32) -> io::Result<()> {
        self.group.take(pid)
    }
}

impl Drop for IoThrottle {
    fn drop(&mut self) {
        for (file, text) in &self.lifts {
            // What waits in the queue goes on with it, else when its turn comes.
            let _ = self.group.write(file, text);
        }
    }
}

/// Checks that the I/O of processes on the device under `path` can be limited here.
pub fn check(path: &Path) -> io::Result<()> {
    device(path)?;
    cgroup::hierarchy(cgroup::IO).map(drop)
}

/// Text that stands for no limit.
fn no_limit(hierarchy: &Hierarchy) -> &'static str {
    match hierarchy {
        Hierarchy::One(_) => "0",
        Hierarchy::Two(_) => "max",
    }
}

/// Files and what is written into them for each limit that there is.
fn lines(
    hierarchy: &Hierarchy,
    device: &str,
    limits: &IoLimits,
    word: impl Fn(u64) -> String,
) -> Vec<(&'static str, String)> {
    let each = [
        (limits.read_iops, "riops", "blkio.throttle.read_iops_device"),
        (limits.write_iops, "wiops", "blkio.throttle.write_iops_device"),
        (limits.read_bytes, "rbps", "blkio.throttle.read_bps_device"),
        (limits.write_bytes, "wbps", "blkio.throttle.write_bps_device"),
    ];
    let each = each.into_iter().filter_map(|(limit, two, one)| Some((word(limit?), two, one)));
    match hierarchy {
        Hierarchy::One(_) => each.map(|(word, _, one)| (one, format!("{device} {word}"))).collect(),
        Hierarchy::Two(_) => {
            let words = each.map(|(word, two, _)| format!("{two}={word}"));
            let words: Vec<String> = words.collect();
            vec![("io.max", format!("{device} {}", words.join(" ")))]
        }
    }
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

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::time::Duration;

    use super::*;

    #[test]
    fn writes_of_a_limited_process_are_slow_and_then_fast_again() {
        // Tests may have their other files in memory, which has no limits.
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        if !crate::user::SystemUser::current().is_root() {
            return testing::skip::no_root();
        }
        if let Err(error) = check(directory.path()) {
            return testing::skip::because(error);
        }
        let limits = IoLimits { write_iops: Some(20), ..IoLimits::default() };
        let throttle = IoThrottle::make(directory.path(), &limits).unwrap();
        let group = throttle.group.directory.clone();
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
    fn limits_are_written_as_each_version_reads_them() {
        let limits =
            IoLimits { write_iops: Some(9), read_bytes: Some(4096), ..IoLimits::default() };
        let check = |hierarchy: Hierarchy, expected: &[(&'static str, &str)]| {
            let lines = lines(&hierarchy, "8:0", &limits, |limit| limit.to_string());
            let lines: Vec<(&str, &str)> = lines.iter().map(|(f, t)| (*f, t.as_str())).collect();
            assert_eq!(lines, expected);
        };
        let (iops, bytes) = ("blkio.throttle.write_iops_device", "blkio.throttle.read_bps_device");
        check(Hierarchy::One("/".into()), &[(iops, "8:0 9"), (bytes, "8:0 4096")]);
        check(Hierarchy::Two("/".into()), &[("io.max", "8:0 wiops=9 rbps=4096")]);
    }
}
