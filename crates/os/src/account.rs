//! The kernel's account of a process and of the machine's CPUs, read so often that files stay open.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

/// The account of a thread, or of a process's first one: `/proc/PID/schedstat`.
#[derive(Debug)]
pub struct ThreadAccount {
    file: File,
}

/// Times that a thread has spent so far, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTimes {
    /// On a CPU.
    pub cpu_ns: u64,
    /// Ready to run, without a CPU.
    pub run_delay_ns: u64,
}

impl ThreadAccount {
    /// Opens the account of a process, or of a thread by its own number.
    pub fn open(pid: u32) -> io::Result<ThreadAccount> {
        Ok(ThreadAccount { file: File::open(format!("/proc/{pid}/schedstat"))? })
    }

    /// Reads it; none when the process has ended.
    pub fn read(&self) -> Option<ThreadTimes> {
        let mut bytes = [0; 96];
        let count = self.file.read_at(&mut bytes, 0).ok()?;
        let mut words = str::from_utf8(&bytes[..count]).ok()?.split_whitespace();
        let mut next = || words.next()?.parse().ok();
        Some(ThreadTimes { cpu_ns: next()?, run_delay_ns: next()? })
    }
}

/// Ticks of all CPUs since the start of the machine: those that were used, and those that the
/// hypervisor took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTicks {
    /// Used by anybody.
    pub used: u64,
    /// Taken by the hypervisor.
    pub stolen: u64,
}

impl CpuTicks {
    /// Reads them.
    pub fn read() -> Option<CpuTicks> {
        CpuTicks::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    fn parse(stat: &str) -> Option<CpuTicks> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let fields: Vec<u64> =
            line.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let &[user, nice, system, _idle, _iowait, irq, softirq, stolen, ..] = &fields[..] else {
            return None;
        };
        Some(CpuTicks { used: user + nice + system + irq + softirq, stolen })
    }

    /// Share of the time that the hypervisor took, of all that was wanted since an earlier reading.
    pub fn steal_since(self, before: CpuTicks) -> f64 {
        let stolen = self.stolen.saturating_sub(before.stolen) as f64;
        let used = self.used.saturating_sub(before.used) as f64;
        if stolen > 0.0 { stolen / (stolen + used) } else { 0.0 }
    }
}

/// The children of a process, as the kernel of this namespace numbers them.
pub fn children(pid: u32) -> Vec<u32> {
    match fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")) {
        Ok(text) => text.split_whitespace().filter_map(|word| word.parse().ok()).collect(),
        Err(_) => {
            // Without /proc, which a process may not be shown, no child is known.
            let all = crate::usage::all().unwrap_or_default();
            all.iter().filter(|stat| stat.parent == pid).map(|stat| stat.pid).collect()
        }
    }
}

/// The threads of this process whose name begins so.
pub fn own_threads(name: &str) -> Vec<u32> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten();
    let threads = tasks.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_it = |thread: &u32| {
        let own = fs::read_to_string(format!("/proc/self/task/{thread}/comm"));
        own.is_ok_and(|own| own.starts_with(name))
    };
    threads.filter(is_it).collect()
}

/// The number that a process has for itself: in the innermost of its PID namespaces.
pub fn own_number(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_whitespace().last()?.parse().ok()
}

/// The title of a process: what it was called with, or what it calls itself.
pub fn title(pid: u32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    Some(String::from_utf8_lossy(&bytes).replace('\0', " ").trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_an_account_a_number_and_a_title() {
        let pid = std::process::id();
        let account = ThreadAccount::open(pid).unwrap();
        let before = account.read().unwrap();
        assert!(before.cpu_ns > 0 && account.read().unwrap().cpu_ns >= before.cpu_ns);
        assert_eq!(own_number(pid), Some(pid));
        assert!(title(pid).unwrap().contains("os"));
        assert_eq!(children(pid), Vec::<u32>::new());
    }

    #[test]
    fn steal_is_a_share_of_what_was_wanted() {
        let parse = |text: &str| CpuTicks::parse(text).unwrap();
        let before = parse("cpu  100 0 50 900 3 0 0 0 0 0\ncpu0 1 2\n");
        let after = parse("cpu  150 0 60 950 3 0 0 20 0 0\n");
        assert!((after.steal_since(before) - 0.25).abs() < 1e-9);
        assert!(after.steal_since(after).abs() < 1e-9);
        assert_eq!(CpuTicks::parse("cpu 1 2 3"), None);
    }
}
