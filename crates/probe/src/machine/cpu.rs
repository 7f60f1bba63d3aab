//! `/proc/stat` and `/proc/loadavg`.

use std::collections::BTreeMap;

use super::reading;
use crate::{metric, reading::Reading};

/// The fields of the `cpu` line, in the kernel's order (proc(5)). `guest` and `guest_nice` follow
/// them, but are contained in `user` and `nice` already.
const FIELDS: [&str; 8] =
    ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];

/// CPU time by what it went to, as percent of the whole machine once it is a rate; context
/// switches, forks, and how many tasks run or wait for I/O.
pub(super) fn from_stat(text: &str, ticks_per_second: f64) -> Vec<Reading> {
    let lines: BTreeMap<&str, &str> =
        text.lines().filter_map(|line| line.split_once(' ')).collect();
    let cpus = lines.keys().filter(|key| is_one_cpu(key)).count().max(1) as f64;
    let percent_per_tick = 100.0 / ticks_per_second / cpus;
    let total = lines.get("cpu").copied().unwrap_or_default();
    let ticks = FIELDS.iter().zip(total.split_whitespace());
    let single = |key| lines.get(key).and_then(|rest| number(rest));
    ticks
        .filter_map(|(field, ticks)| {
            let percent = number(ticks).map(|ticks| ticks * percent_per_tick);
            reading(metric::CPU, field, percent)
        })
        .chain(reading(metric::CONTEXT_SWITCHES, "", single("ctxt")))
        .chain(reading(metric::FORKS, "", single("processes")))
        .chain(reading(metric::PROCESSES_RUNNING, "", single("procs_running")))
        .chain(reading(metric::PROCESSES_BLOCKED, "", single("procs_blocked")))
        .collect()
}

/// The load average over one minute.
pub(super) fn from_loadavg(text: &str) -> Option<Reading> {
    let load: f64 = text.split_whitespace().next()?.parse().ok()?;
    load.is_finite().then(|| Reading::new(metric::LOAD_AVERAGE, "", load))
}

fn is_one_cpu(key: &str) -> bool {
    key.strip_prefix("cpu").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse::<u64>().ok().map(|n| n as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, &str, f64)]) {
        let got: Vec<_> = from_stat(text, 100.0)
            .into_iter()
            .map(|r| (r.metric.name, r.label, r.value))
            .collect();
        let expected: Vec<_> =
            expected.iter().map(|(name, label, v)| (*name, (*label).to_owned(), *v)).collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn a_stat_of_two_cpus() {
        let text = "cpu  1873 0 1799 130069 331 0 34 10 0 0\n\
                    cpu0 699 0 746 65565 24 0 7 2 0 0\n\
                    cpu1 1174 0 1053 64504 306 0 27 8 0 0\n\
                    intr 127027 0 0\nctxt 260762\nbtime 1795302033\nprocesses 6328\n\
                    procs_running 3\nprocs_blocked 0\n";
        check(
            text,
            &[
                ("machine.cpu", "user", 936.5),
                ("machine.cpu", "nice", 0.0),
                ("machine.cpu", "system", 899.5),
                ("machine.cpu", "idle", 65034.5),
                ("machine.cpu", "iowait", 165.5),
                ("machine.cpu", "irq", 0.0),
                ("machine.cpu", "softirq", 17.0),
                ("machine.cpu", "steal", 5.0),
                ("machine.context_switches", "", 260_762.0),
                ("machine.forks", "", 6328.0),
                ("machine.processes_running", "", 3.0),
                ("machine.processes_blocked", "", 0.0),
            ],
        );
    }

    #[test]
    fn an_old_kernel_and_garbage_give_what_they_have() {
        check("cpu 100 x", &[("machine.cpu", "user", 100.0)]);
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
