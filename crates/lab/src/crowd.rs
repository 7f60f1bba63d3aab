//! What others do on this machine before the rig begins.

use std::time::{Duration, Instant};

use os::proc_files;

use crate::machine::CpuTime;

/// How much this machine is used by others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MachineContention {
    /// Threads of others that had a CPU or waited for one, the mean of many looks; none where the kernel does not say.
    /// Those that run at a lower priority (`nice`) count for as much as they get beside others.
    pub runnable: Option<f64>,
    /// The share of CPU time that the hypervisor took away meanwhile, 0 to 1.
    pub steal_share: f64,
}

/// Number of looks at the machine, evenly spread.
const LOOKS: u32 = 20;

impl MachineContention {
    /// Looks at the machine for so long.
    #[must_use]
    pub fn observe(length: Duration) -> MachineContention {
        let (before, began) = (CpuTime::now(), Instant::now());
        let first = proc_files::read("stat").ok();
        let looks: Vec<f64> = (0..LOOKS)
            .filter_map(|look| {
                std::thread::sleep((length * look / LOOKS).saturating_sub(began.elapsed()));
                runnable(&proc_files::read("stat").ok()?)
            })
            .collect();
        let mean = |looks: &[f64]| looks.iter().sum::<f64>() / looks.len() as f64;
        let last = proc_files::read("stat").ok();
        // A kernel that does not tell of priorities has threads of one.
        let niced =
            first.zip(last).and_then(|(first, last)| niced_share(&first, &last)).unwrap_or(0.0);
        let weight = 1.0 - niced * (1.0 - NICED_WEIGHT);
        MachineContention {
            runnable: (!looks.is_empty()).then(|| mean(&looks) * weight),
            steal_share: CpuTime::now().steal_share_since(before),
        }
    }
}

/// Runnable threads of others: this thread, which reads the file, is one of those that the kernel counts.
fn runnable(stat: &str) -> Option<f64> {
    let count = stat.lines().find_map(|line| line.strip_prefix("procs_running "))?;
    Some((count.trim().parse::<f64>().ok()? - 1.0).max(0.0))
}

/// The weight that the kernel gives to a thread of priority 10, which `nice` sets, beside one of 0.
const NICED_WEIGHT: f64 = 110.0 / 1024.0;

/// The share of programs' CPU time between two readings that went to threads of lower priority.
fn niced_share(first: &str, last: &str) -> Option<f64> {
    let times = |stat: &str| {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let mut times = line.split_whitespace().map(str::parse::<f64>);
        Some([times.next()?.ok()?, times.next()?.ok()?])
    };
    let [first, last] = [times(first)?, times(last)?];
    let user = last[0] - first[0];
    let niced = last[1] - first[1];
    (user + niced > 0.0).then(|| niced / (user + niced))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_those_that_run_besides_the_reader() {
        let check = |stat: &str, expected| assert_eq!(runnable(stat), expected, "{stat}");
        check("cpu  1 2\nprocs_running 15\nprocs_blocked 0\n", Some(14.0));
        check("procs_running 1\n", Some(0.0));
        check("cpu 1 2\n", None);
        let check = |first: &str, last: &str, expected| {
            assert_eq!(niced_share(first, last), expected, "{first} {last}");
        };
        check("cpu  10 20 3 4\n", "cpu  40 30 9 9\ncpu0 1 1\n", Some(0.25));
        check("cpu  10 20 3 4\n", "cpu  10 20 3 4\n", None);
        check("cpu  10 20 3 4\n", "intr 5\n", None);
        let seen = MachineContention::observe(Duration::from_millis(20));
        assert!(seen.runnable.is_some_and(|runnable| runnable >= 0.0));
    }
}
