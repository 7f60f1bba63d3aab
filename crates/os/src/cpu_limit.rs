//! A limit on the CPU time of a group of processes: a control group of the kernel's, `cpu.max` in version 2,
//! `cpu.cfs_quota_us` in version 1. Only root can make one.

use std::io;

use crate::cgroup::{self, Group, Hierarchy};

/// The kernel gives the group its time anew so often, in microseconds. The usual tenth of a second would be a pause of
/// nearly that length in the latency of a group that has used up its time.
const PERIOD_US: f64 = 10_000.0;
/// The smallest limit, in CPUs: the kernel gives no less than a millisecond at once.
pub const CPUS_MIN: f64 = 0.1;

/// A group that may use so much CPU time. When this is dropped its processes go back to where they were, unlimited.
#[derive(Debug)]
pub struct CpuLimit {
    group: Group,
}

impl CpuLimit {
    /// Makes an empty group that may use the time of so many CPUs, at least [`CPUS_MIN`].
    pub fn make(cpus: f64) -> io::Result<Self> {
        let hierarchy = cgroup::hierarchy(cgroup::CPU)?;
        let group = Group::make(cgroup::CPU, &hierarchy)?;
        for (file, text) in lines(&hierarchy, cpus) {
            group.write(file, &text)?;
        }
        Ok(Self { group })
    }

    /// Takes a process into the group, and with it those that it starts from now on.
    ///
    /// # Errors
    /// The kernel's; that it is gone is none.
    pub fn take(&self, pid: i32) -> io::Result<()> {
        self.group.take(pid)
    }
}

/// Checks that the CPU time of processes can be limited here: makes a group and removes it.
pub fn check() -> io::Result<()> {
    CpuLimit::make(1.0).map(drop)
}

/// Files and what is written into them. All processes of a group share one weight, while each process outside has its
/// own: the group gets ten, so that what is beside it does not take the time that it may use.
fn lines(hierarchy: &Hierarchy, cpus: f64) -> Vec<(&'static str, String)> {
    let quota = (cpus * PERIOD_US).round();
    match hierarchy {
        Hierarchy::One(_) => vec![
            ("cpu.cfs_period_us", PERIOD_US.to_string()),
            ("cpu.cfs_quota_us", quota.to_string()),
            ("cpu.shares", "10240".to_owned()),
        ],
        Hierarchy::Two(_) => {
            vec![("cpu.max", format!("{quota} {PERIOD_US}")), ("cpu.weight", "1000".to_owned())]
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_limited_process_gets_its_share_of_a_cpu() {
        if !crate::user::SystemUser::current().is_root() {
            return testing::skip::no_root();
        }
        if let Err(error) = check() {
            return testing::skip::because(error);
        }
        let limit = CpuLimit::make(0.2).unwrap();
        let group = limit.group.directory.clone();
        // It waits for a line, so that it uses nothing before it is in the group.
        let mut child = Command::new("sh")
            .args(["-c", "read line; while :; do :; done"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        limit.take(child.id().cast_signed()).unwrap();
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        let began = Instant::now();
        std::thread::sleep(Duration::from_secs(2));
        let used = crate::usage::ProcessStat::read(child.id()).unwrap().own;
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        let share = (used[0] + used[1]) as f64 / ticks / began.elapsed().as_secs_f64();
        drop(limit);
        assert!(!group.exists());
        assert!(child.try_wait().unwrap().is_none(), "it goes on elsewhere");
        child.kill().unwrap();
        child.wait().unwrap();
        // A busy machine may give it less, and ticks are coarse.
        assert!(share < 0.3, "{share}");
    }

    #[test]
    fn limits_are_written_as_each_version_reads_them() {
        let check = |hierarchy: Hierarchy, expected: [(&str, &str); 2]| {
            let lines = lines(&hierarchy, 1.5);
            for (file, text) in expected {
                assert!(lines.iter().any(|(f, t)| (*f, t.as_str()) == (file, text)), "{lines:?}");
            }
        };
        let quota = ("cpu.cfs_quota_us", "15000");
        check(Hierarchy::One("/g".into()), [("cpu.cfs_period_us", "10000"), quota]);
        check(Hierarchy::Two("/g".into()), [("cpu.max", "15000 10000"), ("cpu.weight", "1000")]);
    }
}
