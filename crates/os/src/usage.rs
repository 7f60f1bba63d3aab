//! Resources that processes use, as `/proc/PID` shows them: pure parsers, and the reading.

use std::{fs, io};

/// A line of `/proc/PID/stat`, as far as CPU accounting needs it. Times are in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessStat {
    /// The process id.
    pub pid: u32,
    /// The parent's process id.
    pub parent: u32,
    /// Own time in user and system mode, ended threads included.
    pub own: [u64; 2],
    /// The same of children that ended and were waited for, and of theirs.
    pub reaped: [u64; 2],
    /// Threads that live.
    pub threads: u64,
    /// Ticks from boot to the process's start: tells a reused pid.
    pub started: u64,
}

impl ProcessStat {
    /// Parses the line. The name stands in parentheses and may contain any character, so that the
    /// last closing one ends it.
    pub fn parse(text: &str) -> Option<ProcessStat> {
        let pid = text.split_once(' ')?.0.parse().ok()?;
        let after_name = &text[text.rfind(')')? + 1..];
        let words: Vec<&str> = after_name.split_whitespace().collect();
        // proc(5) counts from 1, and the state is its third field.
        let field = |n: usize| words.get(n - 3).copied();
        let ticks = |n: usize| field(n)?.parse::<u64>().ok();
        Some(ProcessStat {
            pid,
            parent: field(4)?.parse().ok()?,
            own: [ticks(14)?, ticks(15)?],
            // Signed in the kernel's format, though never negative.
            reaped: [ticks(16)?, ticks(17)?],
            threads: ticks(20)?,
            started: ticks(22)?,
        })
    }

    /// Reads the line of a process.
    pub fn read(pid: u32) -> io::Result<ProcessStat> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        ProcessStat::parse(&text)
            .ok_or_else(|| io::Error::other(format!("odd /proc/{pid}/stat: {text:?}")))
    }
}

/// Every process that is there now. One that ends meanwhile is left out.
pub fn all() -> io::Result<Vec<ProcessStat>> {
    let pids = fs::read_dir("/proc")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    Ok(pids.filter_map(|pid| ProcessStat::read(pid).ok()).collect())
}

/// CPU time that a process itself used, in nanoseconds.
///
/// The scheduler's own figure where it is kept, summed over the threads that live; ticks, which
/// know ended threads too, where they tell more.
pub fn own_cpu_ns(stat: &ProcessStat, ns_per_tick: u64) -> u64 {
    let ticks_ns = (stat.own[0] + stat.own[1]) * ns_per_tick;
    let exact_ns: u64 = if stat.threads <= 1 {
        // Where the kernel does not keep it, ticks tell more than 0.
        schedstat_ns(&format!("/proc/{}/schedstat", stat.pid)).unwrap_or(0)
    } else {
        threads(stat.pid).filter_map(|path| schedstat_ns(&format!("{path}/schedstat"))).sum()
    };
    ticks_ns.max(exact_ns)
}

/// Time that the thread that asks has waited for a CPU, in nanoseconds; none if the kernel does not
/// keep it.
pub fn this_thread_run_delay_ns() -> Option<u64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}

/// CPU time of the thread that asks, in nanoseconds.
pub fn this_thread_cpu_ns() -> u64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    used.tv_sec.cast_unsigned() * 1_000_000_000 + used.tv_nsec.cast_unsigned()
}

/// Number of times that a process's threads gave the CPU away, and that it was taken from them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextSwitches {
    /// Given away.
    pub voluntary: u64,
    /// Taken.
    pub involuntary: u64,
}

impl ContextSwitches {
    /// Parses a status file.
    pub fn parse(status: &str) -> Option<ContextSwitches> {
        Some(ContextSwitches {
            voluntary: keyed(status, "voluntary_ctxt_switches")?,
            involuntary: keyed(status, "nonvoluntary_ctxt_switches")?,
        })
    }

    /// Reads those of all threads of a process.
    pub fn read(stat: &ProcessStat) -> Option<ContextSwitches> {
        let of = |path: &str| {
            ContextSwitches::parse(&fs::read_to_string(format!("{path}/status")).ok()?)
        };
        if stat.threads <= 1 {
            return of(&format!("/proc/{}", stat.pid));
        }
        let all = threads(stat.pid).filter_map(|path| of(&path));
        Some(all.fold(ContextSwitches::default(), |sum, one| ContextSwitches {
            voluntary: sum.voluntary + one.voluntary,
            involuntary: sum.involuntary + one.involuntary,
        }))
    }
}

/// Bytes that a process, and the children it has waited for, made the disks read and write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessIo {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
}

impl ProcessIo {
    /// Parses an io file.
    pub fn parse(text: &str) -> Option<ProcessIo> {
        Some(ProcessIo {
            read_bytes: keyed(text, "read_bytes")?,
            write_bytes: keyed(text, "write_bytes")?,
        })
    }

    /// The sum.
    pub fn plus(self, other: ProcessIo) -> ProcessIo {
        ProcessIo {
            read_bytes: self.read_bytes + other.read_bytes,
            write_bytes: self.write_bytes + other.write_bytes,
        }
    }

    /// The larger of each.
    pub fn at_least(self, other: ProcessIo) -> ProcessIo {
        ProcessIo {
            read_bytes: self.read_bytes.max(other.read_bytes),
            write_bytes: self.write_bytes.max(other.write_bytes),
        }
    }

    /// Reads those of a process; none where this process may not.
    pub fn read(pid: u32) -> Option<ProcessIo> {
        ProcessIo::parse(&fs::read_to_string(format!("/proc/{pid}/io")).ok()?)
    }
}

/// A process's proportional share of the memory it uses, in KiB. The kernel walks the process's
/// page tables for it.
pub fn proportional_kib(pid: u32) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    // A process that is ending has no memory any more.
    Ok(keyed(&text, "Pss").unwrap_or(0))
}

/// The number behind `key:` in a file of such lines.
fn keyed(text: &str, key: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// The first number of a schedstat file: nanoseconds on a CPU.
fn schedstat_ns(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.split_whitespace().next()?.parse().ok()
}

fn threads(pid: u32) -> impl Iterator<Item = String> {
    let directory = format!("/proc/{pid}/task");
    let entries = fs::read_dir(&directory).into_iter().flatten();
    entries.filter_map(move |entry| {
        let name = entry.ok()?.file_name();
        Some(format!("{directory}/{}", name.to_str()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_stat_line_with_an_awkward_name() {
        let line = "6336 (a ) R 1 (b) S 6323 6323 5336 0 -1 4194304 100 0 0 0 3 4 5 6 20 0 2 0 \
                    67229 3133440 394 18446744073709551615\n";
        let expected = ProcessStat {
            pid: 6336,
            parent: 6323,
            own: [3, 4],
            reaped: [5, 6],
            threads: 2,
            started: 67229,
        };
        assert_eq!(ProcessStat::parse(line), Some(expected));
        for cut in ["", "1", "1 (x", "1 (x)", "1 (x) S", "1 (x) S 1 2 3 4 5 6 7 8 9 10 a b"] {
            assert_eq!(ProcessStat::parse(cut), None, "{cut}");
        }
    }

    #[test]
    fn switches_and_io() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        let expected = ContextSwitches { voluntary: 12, involuntary: 3 };
        assert_eq!(ContextSwitches::parse(status), Some(expected));
        let io = "rchar: 1\nwchar: 2\nread_bytes: 4096\nwrite_bytes: 8192\n\
                  cancelled_write_bytes: 0\n";
        assert_eq!(ProcessIo::parse(io), Some(ProcessIo { read_bytes: 4096, write_bytes: 8192 }));
        assert_eq!(ProcessIo::parse("read_bytes: x"), None);
    }

    #[test]
    fn this_process_is_seen_with_its_cpu() {
        let me = std::process::id();
        let stat = all().unwrap().into_iter().find(|stat| stat.pid == me).unwrap();
        assert!(own_cpu_ns(&stat, 10_000_000) > 0);
        assert!(ContextSwitches::read(&stat).is_some());
        assert!(proportional_kib(me).unwrap() > 0);
    }

    proptest! {
        #[test]
        fn no_text_makes_a_parser_panic(text in ".{0,200}", words in "([0-9]{1,22} ?){0,30}") {
            let _ = ProcessStat::parse(&text);
            let _ = ProcessStat::parse(&format!("1 ({text}) S {words}"));
            let _ = ContextSwitches::parse(&text);
            let _ = ProcessIo::parse(&text);
        }
    }
}
