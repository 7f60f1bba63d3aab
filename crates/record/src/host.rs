//! Figures of a host in a trial.

use serde::{Deserialize, Serialize};

use crate::{GeneratorCost, HostGap, HostGapKind, Moment};

/// Figures of a host in a trial that ran on hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostUse {
    /// The name in the inventory.
    pub name: String,
    /// The roles: nodes of the study, and `generator`.
    pub roles: Vec<String>,
    /// CPU of the machine that was busy in the window, on average, in percent of all its cores.
    pub cpu_busy_pct: Option<f64>,
    /// Bytes that its network interfaces other than loopback received and sent in the window, a
    /// second.
    pub network_bytes_per_s: Option<f64>,
    /// Greatest distance of its moments from those of the run, in nanoseconds.
    pub clock_bound_ns: Option<u64>,
    /// Load of its clients; none without clients.
    pub load: Option<HostLoad>,
    /// The longest part of the window in which it stood still, as its silence or the clock of its generator
    /// shows, in nanoseconds; 0 where it did not. None in records that do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall_max_ns: Option<u64>,
    /// The longest part of the window in which nothing passed between its clients, or this machine, and a host
    /// with servers, in nanoseconds; 0 where there was no gap. None in records that do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_gap_max_ns: Option<u64>,
    /// The host with servers at the other end of that link; none where this machine asked, or where there was no gap.
    /// Which of the two ends was cut off is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_gap_to: Option<String>,
    /// The longest part of the window in which the disk of its servers was full, and one second more, in nanoseconds;
    /// 0 where it was not full, or has no servers. None in records that do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_full_max_ns: Option<u64>,
    /// The times in the window for which it kept its servers or clients from their work, in no order. The longest of each
    /// kind are above. Empty in records that tell of these only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<HostGap>,
    /// Why it was lost, if it was.
    pub lost: Option<String>,
}

impl HostUse {
    /// A host of which nothing is known.
    pub fn new(name: &str) -> HostUse {
        HostUse {
            name: name.to_owned(),
            roles: Vec::new(),
            cpu_busy_pct: None,
            network_bytes_per_s: None,
            clock_bound_ns: None,
            load: None,
            stall_max_ns: None,
            link_gap_max_ns: None,
            link_gap_to: None,
            disk_full_max_ns: None,
            gaps: Vec::new(),
            lost: None,
        }
    }

    /// The times for which it kept its servers or clients from their work. Where only the longest ones are known, they
    /// begin with the window, which opens at `open`.
    pub(crate) fn all_gaps(&self, open: Moment) -> Vec<HostGap> {
        if !self.gaps.is_empty() {
            return self.gaps.clone();
        }
        let longest = [
            (HostGapKind::Stall, self.stall_max_ns, None),
            (HostGapKind::FullDisk, self.disk_full_max_ns, None),
            (HostGapKind::Link, self.link_gap_max_ns, self.link_gap_to.clone()),
        ];
        let longest = longest.into_iter().filter_map(|(kind, length_ns, other)| {
            let length_ns = length_ns.filter(|ns| *ns > 0)?;
            Some(HostGap { kind, from: open, length_ns, other })
        });
        longest.collect()
    }
}

/// Load that the clients of a host made in a trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostLoad {
    /// Clients, over all workloads.
    pub clients: u32,
    /// Transactions a second in the window.
    pub tps: f64,
    /// CPU of the generator inside the window, user + system, in nanoseconds.
    pub cpu_ns: u64,
    /// Share of the window that its busiest lane spent on the CPU, 0 to 1.
    pub busy_share_max: f64,
    /// Share of the window that one of its lanes was on the CPU, could run and had none, or was held up with
    /// its control group: the largest, 0 to 1. None in records that do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted_share_max: Option<f64>,
    /// Loop lag, 99th percentile in nanoseconds.
    pub lag_p99_ns: u64,
}

impl HostLoad {
    /// True if one of its lanes was kept from a CPU that it wanted nearly all the time.
    pub fn is_starved(&self) -> bool {
        self.wanted_share_max
            .is_some_and(|wanted| GeneratorCost::is_starved(wanted, self.busy_share_max))
    }
}
