//! The machine under the servers, from `/proc`.
//!
//! The parsers are pure functions over the kernel's text and live one to a file; [`Machine`]
//! alone reads. What a kernel does not offer (pressure, a statistic of a later version) is simply
//! missing from the readings.
//!
//! Limits: hardware counters are not read, virtual machines rarely have them.

mod block;
mod cpu;
mod memory;
mod network;
mod pressure;

use std::{collections::BTreeSet, fs};

use os::proc_files;

use crate::reading::Reading;

/// Reads what the kernel counts for the whole machine.
#[derive(Debug)]
pub(crate) struct Machine {
    /// Whole disks; their partitions would count everything twice.
    disks: BTreeSet<String>,
    ticks_per_second: f64,
}

impl Machine {
    pub(crate) fn of_this_host() -> Machine {
        let disks = fs::read_dir("/sys/block")
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        Machine { disks, ticks_per_second: rustix::param::clock_ticks_per_second() as f64 }
    }

    /// Everything that the kernel tells now.
    pub(crate) fn read(&self) -> Vec<Reading> {
        let mut readings = Vec::with_capacity(64);
        readings.extend(cpu::from_stat(&text("stat"), self.ticks_per_second));
        readings.extend(cpu::from_loadavg(&text("loadavg")));
        readings.extend(memory::from_meminfo(&text("meminfo")));
        readings.extend(memory::from_vmstat(&text("vmstat")));
        let is_disk = |name: &str| self.disks.is_empty() || self.disks.contains(name);
        readings.extend(block::from_diskstats(&text("diskstats"), is_disk));
        readings.extend(network::from_net_dev(&text("net/dev")));
        for resource in ["cpu", "io", "memory"] {
            let text = text(&format!("pressure/{resource}"));
            readings.extend(pressure::from_pressure(resource, &text));
        }
        readings
    }

    /// Figures that the machine cannot tell, as notes for a reader.
    pub(crate) fn notes(&self) -> Vec<String> {
        let missing = |file: &str, what: &str| {
            text(file)
                .is_empty()
                .then(|| format!("{what} unknown: /proc/{file} is missing or empty"))
        };
        [missing("pressure/cpu", "pressure stalls"), missing("diskstats", "disk traffic")]
            .into_iter()
            .flatten()
            .collect()
    }
}

/// A file of `/proc`; empty where the kernel does not have it.
fn text(file: &str) -> String {
    proc_files::read(file).unwrap_or_default() // Figures of a file that is not there are missing.
}

#[cfg(test)]
mod tests {
    use super::*;
    use spec::metrics;

    #[test]
    fn this_host_tells_its_cpu_memory_and_network() {
        let readings = Machine::of_this_host().read();
        for metric in [&metrics::CPU_USER_PCT, &metrics::MEMORY_DIRTY_MB, &metrics::LOAD_AVERAGE] {
            assert!(readings.iter().any(|reading| reading.metric == metric), "{metric:?}");
        }
        let lo = readings.iter().find(|reading| reading.label == "lo");
        assert!(lo.is_none_or(|reading| reading.value > 0.0));
    }

    mod on_any_text {
        use super::super::*;
        use proptest::prelude::*;

        /// Text that looks like the kernel's often enough to reach the inner branches.
        fn kernel_like() -> impl Strategy<Value = String> {
            let word = prop_oneof![
                "[a-z]{1,8}:?",
                "[0-9]{1,25}",
                "-?[0-9]{1,5}\\.[0-9]{1,3}",
                Just("cpu".to_owned()),
                Just("some".to_owned()),
                Just("total=18446744073709551616".to_owned()),
                Just("\n".to_owned()),
                ".{0,6}",
            ];
            proptest::collection::vec(word, 0..60).prop_map(|words| words.join(" "))
        }

        proptest! {
            #[test]
            fn no_parser_panics_or_makes_up_a_number(text in kernel_like()) {
                let mut all = Vec::new();
                all.extend(cpu::from_stat(&text, 100.0));
                all.extend(cpu::from_loadavg(&text));
                all.extend(memory::from_meminfo(&text));
                all.extend(memory::from_vmstat(&text));
                all.extend(block::from_diskstats(&text, |_| true));
                all.extend(network::from_net_dev(&text));
                all.extend(pressure::from_pressure("cpu", &text));
                prop_assert!(all.iter().all(|r| r.value.is_finite()));
            }
        }
    }
}
