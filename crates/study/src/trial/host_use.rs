//! Figures of each host in a trial.

use std::time::Instant;

use host::clock::BOUND_MAX_NS;
use host::monotonic_ns_at;
use load::Outcome;
use probe::Readings;
use record::{HostLoad, HostUse, Window};
use spec::{Metric, metrics};

use crate::fleet::StudyHosts;

/// The node that samples of a host's own machine are filed under.
pub(crate) fn machine_of(host: &str) -> String {
    format!("machine {host}")
}

/// Figures of each host of a fleet.
pub(crate) fn host_uses(
    fleet: &StudyHosts,
    outcome: &Outcome,
    readings: &Readings,
    origin: Instant,
) -> Vec<HostUse> {
    let origin_ns = monotonic_ns_at(origin);
    let within = outcome.window.map(|window| {
        (origin_ns.saturating_add(window.open.0), origin_ns.saturating_add(window.close.0))
    });
    let window_s = outcome.window.map_or(0.0, |window| window.seconds());
    let uses = fleet.roles().into_iter().map(|(host, roles)| {
        let name = host.entry().name.clone();
        let at = outcome.hosts.iter().position(|one| one.name == name);
        let loaded = at.map(|at| (&outcome.hosts[at], &outcome.generators[at]));
        let load = loaded.map(|(host, generator)| HostLoad {
            clients: host.clients,
            tps: generator.in_window as f64 / window_s.max(f64::MIN_POSITIVE),
            cpu_ns: generator.cpu_ns,
            busy_share_max: generator.busy_share_max,
            wanted_share_max: generator.wanted_share_max,
            lag_p99_ns: generator.lag_p99_ns,
        });
        let clock = host.clock();
        let followed = loaded.and_then(|(host, _)| host.clock.bound_ns);
        let measured = || clock.bound_ns(&clock.course()?, 0, u64::MAX);
        let mean = |metric, is_meant: fn(&str) -> bool| {
            mean(readings, outcome.window?, &machine_of(&name), metric, is_meant)
        };
        let idle = mean(&metrics::CPU_IDLE_PCT, |_| true);
        let bytes = |metric| mean(metric, |interface| interface != "lo");
        let received = bytes(&metrics::NET_RECEIVE_BYTES);
        let link_gap = within.and_then(|(from, to)| fleet.longest_link_gap(host, from, to));
        HostUse {
            roles,
            cpu_busy_pct: idle.map(|idle| (100.0 - idle).max(0.0)),
            network_bytes_per_s: received.zip(bytes(&metrics::NET_SEND_BYTES)).map(|(i, o)| i + o),
            clock_bound_ns: followed.or_else(measured),
            load,
            stall_max_ns: within.map(|(from, to)| {
                let own = loaded.map_or(0, |(host, _)| host.stall_max_ns);
                own.max(host.longest_silence_ns(from, to))
            }),
            link_gap_max_ns: link_gap.as_ref().map(|(ns, _)| *ns),
            link_gap_to: link_gap.and_then(|(ns, to)| to.filter(|_| ns > 0)),
            disk_full_max_ns: within
                .and_then(|(from, to)| fleet.longest_full_disk_ns(host, from, to)),
            lost: host.lost().map(|loss| loss.why),
            name,
        }
    });
    uses.collect()
}

/// The sum over the labels that are meant of their means in the window.
fn mean(
    readings: &Readings,
    window: Window,
    node: &str,
    metric: &Metric,
    is_meant: fn(&str) -> bool,
) -> Option<f64> {
    let inside = readings.samples.iter().filter(|sample| {
        sample.node == node
            && sample.is_of(metric)
            && is_meant(&sample.label)
            && sample.at >= window.open
            && sample.at < window.close
    });
    let mut moments = std::collections::BTreeSet::new();
    let sum: f64 = inside
        .inspect(|sample| {
            moments.insert(sample.at);
        })
        .map(|sample| sample.value)
        .sum();
    (!moments.is_empty()).then(|| sum / moments.len() as f64)
}

/// Warnings about hosts whose moments may be off by more than a window's edge should be.
pub(crate) fn clock_doubts(hosts: &[HostUse]) -> Vec<String> {
    let doubtful = hosts.iter().filter_map(|host| {
        let bound = host.clock_bound_ns.filter(|bound| *bound > BOUND_MAX_NS)?;
        let ms = bound as f64 / 1e6;
        Some(format!("the clock of host {} is known to ± {ms:.1} ms only", host.name))
    });
    doubtful.collect()
}

/// Warnings about hosts that stood still, were cut off from a server, or had a full disk: what clients waited then is
/// not the server's doing.
pub(crate) fn gap_doubts(hosts: &[HostUse]) -> Vec<String> {
    let mut doubts = Vec::new();
    for host in hosts {
        let name = &host.name;
        let seconds = |ns: Option<u64>| ns.filter(|ns| *ns > 0).map(|ns| ns as f64 / 1e9);
        if let Some(seconds) = seconds(host.stall_max_ns) {
            doubts.push(format!("host {name} stood still for {seconds:.1} s in the window"));
        }
        if let Some(seconds) = seconds(host.link_gap_max_ns) {
            let other = match &host.link_gap_to {
                Some(to) => format!("host {to}"),
                None => "this machine".to_owned(),
            };
            doubts.push(format!(
                "nothing passed for {seconds:.1} s in the window between host {name} and {other}"
            ));
        }
        if let Some(seconds) = seconds(host.disk_full_max_ns) {
            doubts.push(format!(
                "the disk of the servers on host {name} was full for {seconds:.1} s of the window"
            ));
        }
    }
    doubts
}
