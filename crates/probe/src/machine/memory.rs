//! `/proc/meminfo` and `/proc/vmstat`.

use super::reading;
use crate::{
    metric::{self, Metric},
    reading::Reading,
};

/// What is read of meminfo, and the label it gets.
const MEMORY: [(&str, &str); 7] = [
    ("MemAvailable:", "available"),
    ("MemFree:", "free"),
    ("Cached:", "cached"),
    ("Dirty:", "dirty"),
    ("Writeback:", "writeback"),
    ("PageTables:", "page_tables"),
    ("SwapFree:", "swap_free"),
];

const EVENTS: [(&str, Metric, &str); 4] = [
    ("pgfault", metric::PAGE_FAULTS, ""),
    ("pgmajfault", metric::MAJOR_PAGE_FAULTS, ""),
    ("pswpin", metric::SWAP, "in"),
    ("pswpout", metric::SWAP, "out"),
];

/// Memory by use, in bytes.
pub(super) fn from_meminfo(text: &str) -> Vec<Reading> {
    let lines = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (_, label) = *MEMORY.iter().find(|(key, _)| words.clone().next() == Some(*key))?;
        let kib: u64 = words.nth(1)?.parse().ok()?;
        Some(Reading::new(metric::MEMORY, label, kib as f64 * 1024.0))
    });
    lines.collect()
}

/// Page faults, and pages swapped in and out.
pub(super) fn from_vmstat(text: &str) -> Vec<Reading> {
    let lines = text.lines().filter_map(|line| {
        let (key, value) = line.split_once(' ')?;
        let (_, metric, label) = *EVENTS.iter().find(|(name, ..)| *name == key)?;
        reading(metric, label, value.trim().parse::<u64>().ok().map(|n| n as f64))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(got: Vec<Reading>, expected: &[(&str, &str, f64)]) {
        let got: Vec<_> =
            got.iter().map(|r| (r.metric.name, r.label.as_str(), r.value)).collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn memory_is_in_bytes() {
        check(
            from_meminfo(
                "MemTotal:       24684084 kB\nMemFree:        24407856 kB\n\
                 MemAvailable:   24378980 kB\nDirty:  12 kB\nCached: many kB\nHugePages_Total: 0\n",
            ),
            &[
                ("machine.memory", "free", 24_407_856.0 * 1024.0),
                ("machine.memory", "available", 24_378_980.0 * 1024.0),
                ("machine.memory", "dirty", 12.0 * 1024.0),
            ],
        );
        check(from_meminfo(""), &[]);
    }

    #[test]
    fn faults_and_swapping() {
        check(
            from_vmstat("nr_free_pages 6\npswpin 0\npswpout 7\npgfault 1836418\npgmajfault 1323\n"),
            &[
                ("machine.swap", "in", 0.0),
                ("machine.swap", "out", 7.0),
                ("machine.page_faults", "", 1_836_418.0),
                ("machine.major_page_faults", "", 1323.0),
            ],
        );
        check(from_vmstat("pgfault\npgfault -1\n"), &[]);
    }
}
