//! Figures of each host in a trial.

use std::time::Instant;

use host::clock::BOUND_MAX_NS;
use host::{SilentGap, monotonic_ns_at};
use load::LoadOutcome;
use probe::SamplerReadings;
use record::{HostGap, HostGapKind, HostLoad, HostUse, MeasuredWindow, Moment};
use spec::{Metric, metrics};

use crate::fleet::{GENERATOR, StudyHosts};

/// The node that samples of a host's own machine are filed under.
pub(crate) fn machine_of(host: &str) -> String {
    format!("machine {host}")
}

/// Figures of each host of a fleet.
pub(crate) fn host_uses(
    fleet: &StudyHosts,
    outcome: &LoadOutcome,
    readings: &SamplerReadings,
    origin: Instant,
) -> Vec<HostUse> {
    let origin_ns = monotonic_ns_at(origin);
    let within = outcome.window.map(|window| {
        (origin_ns.saturating_add(window.open.0), origin_ns.saturating_add(window.close.0))
    });
    // A window that never opened took no time.
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
        // A host that had neither servers nor clients in this trial, as it was lost before, took nothing of it.
        let has_part = loaded.is_some() || roles.iter().any(|role| role != GENERATOR);
        let gaps = within.filter(|_| has_part).map(|(from, to)| {
            let own = loaded.map_or(&[][..], |(host, _)| &host.stalls[..]);
            let own = own.iter().map(|own| SilentGap {
                from_ns: origin_ns.saturating_add(own.from.0),
                to_ns: origin_ns.saturating_add(own.to.0),
            });
            let mut stalls = host.standstills(from, to);
            stalls.extend(own);
            WindowGaps {
                stalls: host::union(stalls),
                links: fleet.link_gaps(host, from, to),
                full_disks: fleet.full_disks(host, from, to),
            }
        });
        let longest_link = gaps.as_ref().and_then(WindowGaps::longest_link);
        HostUse {
            roles,
            cpu_busy_pct: idle.map(|idle| (100.0 - idle).max(0.0)),
            network_bytes_per_s: received.zip(bytes(&metrics::NET_SEND_BYTES)).map(|(i, o)| i + o),
            clock_bound_ns: followed.or_else(measured),
            load,
            stall_max_ns: gaps.as_ref().map(|gaps| longest_ns(&gaps.stalls)),
            link_gap_max_ns: longest_link.as_ref().map(|(ns, _)| *ns),
            link_gap_to: longest_link.and_then(|(_, to)| to),
            disk_full_max_ns: gaps
                .as_ref()
                .and_then(|gaps| gaps.full_disks.as_deref().map(longest_ns)),
            gaps: gaps.map_or(Vec::new(), |gaps| gaps.of_record(origin_ns)),
            lost: host.lost().map(|loss| loss.why),
            name,
        }
    });
    uses.collect()
}

/// The times in the window for which a host kept its servers or clients from their work, on this machine's monotonic
/// clock.
struct WindowGaps {
    stalls: Vec<SilentGap>,
    /// None where it has no link.
    links: Option<Vec<(SilentGap, Option<String>)>>,
    /// None where it has no servers.
    full_disks: Option<Vec<SilentGap>>,
}

impl WindowGaps {
    /// The longest gap of its links, and the host at the other end; 0 where there was none.
    fn longest_link(&self) -> Option<(u64, Option<String>)> {
        let links = self.links.as_ref()?;
        let longest = links.iter().max_by_key(|(gap, _)| gap.length_ns());
        Some(longest.map_or((0, None), |(gap, other)| (gap.length_ns(), other.clone())))
    }

    /// The same as the record has them.
    fn of_record(&self, origin_ns: u64) -> Vec<HostGap> {
        let of = |kind: HostGapKind, gap: &SilentGap, other: Option<&String>| HostGap {
            kind,
            from: Moment(gap.from_ns.saturating_sub(origin_ns)),
            length_ns: gap.length_ns(),
            other: other.cloned(),
        };
        let stalls = self.stalls.iter().map(|gap| of(HostGapKind::Stall, gap, None));
        let full = self.full_disks.iter().flatten();
        let full = full.map(|gap| of(HostGapKind::FullDisk, gap, None));
        let links = self.links.iter().flatten();
        let links = links.map(|(gap, other)| of(HostGapKind::Link, gap, other.as_ref()));
        stalls.chain(full).chain(links).collect()
    }
}

/// The length of the longest gap; 0 where there is none.
fn longest_ns(gaps: &[SilentGap]) -> u64 {
    gaps.iter().map(|gap| gap.length_ns()).fold(0, u64::max)
}

/// The sum over the labels that are meant of their means in the window.
fn mean(
    readings: &SamplerReadings,
    window: MeasuredWindow,
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
/// not the server's doing. And about this process: what it could not see then is not known of the hosts.
pub(crate) fn gap_doubts(hosts: &[HostUse], own: &[SilentGap]) -> Vec<String> {
    let mut doubts = Vec::new();
    for host in hosts {
        let name = &host.name;
        let of = |kind: HostGapKind, longest_ns: Option<u64>| {
            let longest_ns = longest_ns.filter(|ns| *ns > 0)?;
            let lengths = host.gaps.iter().filter(|gap| gap.kind == kind).map(|gap| gap.length_ns);
            Some(length_words(longest_ns, lengths))
        };
        if let Some(length) = of(HostGapKind::Stall, host.stall_max_ns) {
            doubts.push(format!("host {name} stood still for {length} in the window"));
        }
        if let Some(length) = of(HostGapKind::Link, host.link_gap_max_ns) {
            let other = match &host.link_gap_to {
                Some(to) => format!("host {to}"),
                None => "this machine".to_owned(),
            };
            doubts.push(format!(
                "nothing passed for {length} in the window between host {name} and {other}"
            ));
        }
        if let Some(length) = of(HostGapKind::FullDisk, host.disk_full_max_ns) {
            doubts.push(format!(
                "the disk of the servers on host {name} was full for {length} of the window"
            ));
        }
    }
    let longest_ns = longest_ns(own);
    if longest_ns > 0 {
        let length = length_words(longest_ns, own.iter().map(|gap| gap.length_ns()));
        doubts.push(format!(
            "pgrig itself stood still for {length} in the window: it heard nothing of any host then, which is no gap \
             of theirs"
        ));
    }
    doubts
}

/// As in `3.0 s`, and of several as in `0.4 s (3.6 s in all, 8 times)`.
fn length_words(longest_ns: u64, all: impl Iterator<Item = u64>) -> String {
    let longest = format!("{:.1} s", longest_ns as f64 / 1e9);
    let (count, sum_ns) = all.fold((0_u32, 0), |(count, sum), ns| (count + 1, sum + ns));
    match count {
        0 | 1 => longest,
        _ => format!("{longest} ({:.1} s in all, {count} times)", sum_ns as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn gap(from_ms: u64, to_ms: u64) -> SilentGap {
        SilentGap { from_ns: from_ms * MS, to_ns: to_ms * MS }
    }

    #[test]
    fn gaps_are_told_with_their_sum_and_those_of_the_rig_apart() {
        let gaps = WindowGaps {
            stalls: vec![gap(1_000, 1_450), gap(3_000, 3_400)],
            links: Some(vec![(gap(2_000, 5_000), Some("db1".to_owned()))]),
            full_disks: None,
        };
        let longest_link = gaps.longest_link();
        assert_eq!(longest_link, Some((3_000 * MS, Some("db1".to_owned()))));
        let host = HostUse {
            stall_max_ns: Some(longest_ns(&gaps.stalls)),
            link_gap_max_ns: Some(3_000 * MS),
            link_gap_to: Some("db1".to_owned()),
            gaps: gaps.of_record(500 * MS),
            ..HostUse::new("load1")
        };
        assert_eq!((host.gaps[0].from, host.gaps.len()), (Moment(500 * MS), 3));
        assert_eq!(
            gap_doubts(&[host], &[]),
            [
                "host load1 stood still for 0.5 s (0.8 s in all, 2 times) in the window",
                "nothing passed for 3.0 s in the window between host load1 and host db1",
            ]
        );
        let own = gap_doubts(&[HostUse::new("db1")], &[gap(0, 3_000)]);
        assert_eq!(
            own,
            [
                "pgrig itself stood still for 3.0 s in the window: it heard nothing of any host then, which is no \
              gap of theirs"
            ]
        );
        let without = WindowGaps { stalls: Vec::new(), links: None, full_disks: None };
        assert_eq!(without.longest_link(), None);
    }
}
