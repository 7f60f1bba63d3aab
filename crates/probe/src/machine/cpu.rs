//! `/proc/stat` and `/proc/loadavg`.

use std::collections::BTreeMap;

use spec::{Metric, metrics};

use crate::reading::Reading;

/// Fields of the `cpu` line, from 0 (proc(5)), for each metric: user and nice; system, irq and
/// softirq; and so on. `guest` and `guest_nice` follow, but are in user and nice already.
const SHARES: [(&Metric, &[usize]); 5] = [
    (&metrics::CPU_USER_PCT, &[0, 1]),
    (&metrics::CPU_SYSTEM_PCT, &[2, 5, 6]),
    (&metrics::CPU_IDLE_PCT, &[3]),
    (&metrics::CPU_IOWAIT_PCT, &[4]),
    (&metrics::CPU_STEAL_PCT, &[7]),
];

const SINGLES: [(&Metric, &str); 4] = [
    (&metrics::CONTEXT_SWITCHES, "ctxt"),
    (&metrics::INTERRUPTS, "intr"),
    (&metrics::PROCESSES_RUNNING, "procs_running"),
    (&metrics::PROCESSES_BLOCKED, "procs_blocked"),
];

/// CPU time by what it went to, in percent-seconds of the whole machine; context switches,
/// interrupts, and how many tasks run or wait for I/O.
pub(super) fn from_stat(text: &str, ticks_per_second: f64) -> Vec<Reading> {
    let lines: BTreeMap<&str, &str> =
        text.lines().filter_map(|line| line.split_once(' ')).collect();
    let cpus = lines.keys().filter(|key| is_one_cpu(key)).count().max(1) as f64;
    let percent_per_tick = 100.0 / ticks_per_second / cpus;
    let ticks: Vec<Option<u64>> = lines
        .get("cpu")
        .map(|rest| rest.split_whitespace().map(|word| word.parse().ok()).collect())
        .unwrap_or_default(); // Figures of a file without the line are missing.
    let shares = SHARES.iter().filter_map(|(metric, fields)| {
        let of = |field: &usize| ticks.get(*field).copied().flatten().map(|n| n as f64);
        let total: f64 = fields.iter().map(of).sum::<Option<f64>>()?;
        Some(Reading::new(metric, "", total * percent_per_tick))
    });
    let singles = SINGLES.iter().filter_map(|(metric, key)| {
        let first: u64 = lines.get(key)?.split_whitespace().next()?.parse().ok()?;
        Some(Reading::new(metric, "", first as f64))
    });
    shares.chain(singles).collect()
}

/// The load average over one minute.
pub(super) fn from_loadavg(text: &str) -> Option<Reading> {
    let load: f64 = text.split_whitespace().next()?.parse().ok()?;
    load.is_finite().then(|| Reading::new(&metrics::LOAD_AVERAGE, "", load))
}

fn is_one_cpu(key: &str) -> bool {
    key.strip_prefix("cpu").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, f64)]) {
        let got = from_stat(text, 100.0);
        let got: Vec<_> = got.iter().map(|r| (r.metric.name, r.value)).collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn a_stat_of_two_cpus() {
        let text = "cpu  1873 7 1799 130069 331 3 34 10 0 0\n\
                    cpu0 699 7 746 65565 24 3 7 2 0 0\n\
                    cpu1 1174 0 1053 64504 306 0 27 8 0 0\n\
                    intr 127027 0 0\nctxt 260762\nbtime 1795302033\nprocesses 6328\n\
                    procs_running 3\nprocs_blocked 0\n";
        check(
            text,
            &[
                ("cpu_user_pct", 940.0),
                ("cpu_system_pct", 918.0),
                ("cpu_idle_pct", 65034.5),
                ("cpu_iowait_pct", 165.5),
                ("cpu_steal_pct", 5.0),
                ("context_switches", 260_762.0),
                ("interrupts", 127_027.0),
                ("processes_running", 3.0),
                ("processes_blocked", 0.0),
            ],
        );
    }

    #[test]
    fn a_short_line_and_garbage_give_what_they_have() {
        check("cpu 100 0 x 7", &[("cpu_user_pct", 100.0), ("cpu_idle_pct", 7.0)]);
        check("", &[]);
        check("ctxt\nctxt many", &[]);
    }

    #[test]
    fn the_load_average_is_the_first_number() {
        let load = |text| from_loadavg(text).map(|reading| reading.value);
        assert_eq!(load("9.06 1.00 0.50 2/91 6325\n"), Some(9.06));
        assert_eq!(load(""), None);
        assert_eq!(load("nan"), None);
    }
}
