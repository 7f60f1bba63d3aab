//! `/proc/meminfo` and `/proc/vmstat`.

use spec::{Metric, metrics};

use crate::reading::Reading;

const GAUGES: [(&str, &Metric); 3] = [
    ("MemAvailable", &metrics::MEMORY_AVAILABLE_MB),
    ("Cached", &metrics::MEMORY_CACHED_MB),
    ("Dirty", &metrics::MEMORY_DIRTY_MB),
];

const FAULTS: [(&str, &Metric); 2] =
    [("pgfault", &metrics::PAGE_FAULTS), ("pgmajfault", &metrics::MAJOR_PAGE_FAULTS)];

/// Memory by use, and the swap in use, in MiB.
pub(super) fn from_meminfo(text: &str) -> Vec<Reading> {
    let mib = |key: &str| {
        let rest = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        let kib: u64 = rest.split_whitespace().next()?.parse().ok()?;
        Some(kib as f64 / 1024.0)
    };
    let swap_used = || Some((mib("SwapTotal")? - mib("SwapFree")?).max(0.0));
    GAUGES
        .iter()
        .filter_map(|(key, metric)| Some(Reading::new(metric, "", mib(key)?)))
        .chain(swap_used().map(|used| Reading::new(&metrics::SWAP_USED_MB, "", used)))
        .collect()
}

pub(super) fn from_vmstat(text: &str) -> Vec<Reading> {
    let lines = text.lines().filter_map(|line| {
        let (key, value) = line.split_once(' ')?;
        let (_, metric) = *FAULTS.iter().find(|(name, _)| *name == key)?;
        let count: u64 = value.trim().parse().ok()?;
        Some(Reading::new(metric, "", count as f64))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(got: Vec<Reading>, expected: &[(&str, f64)]) {
        let got: Vec<_> = got.iter().map(|r| (r.metric.name, r.value)).collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn memory_is_in_mebibytes() {
        check(
            from_meminfo(
                "MemTotal:       24684084 kB\nMemFree:        24407856 kB\n\
                 MemAvailable:   24378980 kB\nSwapCached: 3 kB\nDirty:  512 kB\n\
                 SwapTotal:  4096 kB\nSwapFree: 1024 kB\nCached: many kB\nHugePages_Total: 0\n",
            ),
            &[
                ("memory_available_mb", 24_378_980.0 / 1024.0),
                ("memory_dirty_mb", 0.5),
                ("swap_used_mb", 3.0),
            ],
        );
        check(from_meminfo(""), &[]);
    }

    #[test]
    fn page_faults() {
        check(
            from_vmstat("nr_free_pages 6\npswpin 0\npgfault 1836418\npgmajfault 1323\n"),
            &[("page_faults", 1_836_418.0), ("major_page_faults", 1323.0)],
        );
        check(from_vmstat("pgfault\npgfault -1\n"), &[]);
    }
}
