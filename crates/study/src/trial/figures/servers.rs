//! Figures that servers and machine keep of themselves.

use std::collections::BTreeMap;

use check::TrialFigure;
use record::{MarkKind, MeasuredWindow};
use spec::{MetricKind, MetricScope, metric, metrics};

use super::evidence::Evidence;
use super::scope::{inside, label_scope, mean_of, scopes};
use super::statements::server_statements;

/// CPU time of servers, relays and the generator. Relay CPU is charged neither to servers nor to clients.
pub(super) fn cpu(evidence: &Evidence<'_>, transactions: u64, good: u64) -> Vec<TrialFigure> {
    let mut figures = Vec::new();
    let mut servers: Option<f64> = None;
    for node in &evidence.point.topology.nodes {
        let metered = evidence.metered.cpu.get(&node.name).map(|span| span.cores());
        let sampled = || {
            let mean = |name| mean_of(evidence, name, &node.name);
            let cores =
                mean(&metrics::GROUP_CPU_USER_CORES)? + mean(&metrics::GROUP_CPU_SYSTEM_CORES)?;
            // Nothing at all is what is seen of a server whose processes are not here.
            (cores > 0.0).then_some(cores)
        };
        if let Some(cores) = metered.or_else(sampled) {
            figures.push(TrialFigure::new(&metrics::SERVER_CPU_CORES, &node.name, cores));
            servers = Some(servers.unwrap_or(0.0) + cores); // A sum begins with the first server.
        }
    }
    for link in &evidence.point.topology.links {
        if let Some(span) = evidence.metered.cpu.get(&link.name) {
            figures.push(TrialFigure::new(&metrics::SERVER_CPU_CORES, &link.name, span.cores()));
        }
    }
    let generator = evidence.outcome.generator.cpu_ns as f64 / 1e9 / evidence.window.seconds();
    let cpu_us = |cores: f64| cores * evidence.window.seconds() * 1e6;
    let per_transaction = |cores: f64| cpu_us(cores) / transactions as f64;
    let figure = |metric, value| TrialFigure::new(metric, "", value);
    figures.push(figure(&metrics::GENERATOR_CPU_US_PER_TX, per_transaction(generator)));
    if let Some(servers) = servers {
        figures.push(figure(&metrics::SERVER_CPU_CORES, servers));
        figures.push(figure(&metrics::SERVER_CPU_US_PER_TX, per_transaction(servers)));
        let per_good = cpu_us(servers) / good as f64;
        figures.push(figure(&metrics::SERVER_CPU_US_PER_GOOD_TX, per_good));
        figures.push(figure(&metrics::GENERATOR_CPU_SHARE, generator / (generator + servers)));
    }
    figures
}

/// Counts of the servers from before the first client came until after the last one left.
pub(super) fn server(evidence: &Evidence<'_>, transactions_total: u64) -> Vec<TrialFigure> {
    let mut figures = Vec::new();
    let deltas = &evidence.readings.deltas;
    for (node, delta) in deltas {
        let mut set = |metric, value: Option<f64>| {
            let scopes = scopes(evidence, node);
            figures.extend(value.into_iter().flat_map(|value| {
                scopes.iter().map(move |scope| TrialFigure::new(metric, scope, value))
            }));
        };
        set(&metrics::HIT_RATIO, delta.hit_ratio());
        set(&metrics::SERVER_TRANSACTIONS, delta.transactions().map(|count| count as f64));
        let images = mean_of(evidence, &metrics::WAL_FPI, node);
        let wal = mean_of(evidence, &metrics::WAL_BYTES, node).filter(|rate| *rate > 0.0);
        let share = images.zip(wal).map(|(images, wal)| (images * PAGE_BYTES / wal).min(1.0));
        set(&metrics::FULL_PAGE_SHARE, share);
        set(&metrics::FULL_PAGE_IMAGES, images.map(|rate| rate * evidence.window.seconds()));
        let memory = inside(evidence)
            .filter(|sample| sample.is_of(&metrics::GROUP_MEMORY_MB) && sample.node == *node)
            .map(|sample| sample.value);
        set(&metrics::SERVER_MEMORY_MB, memory.reduce(f64::max));
        let checkpoints = evidence.readings.marks.iter().filter(|mark| {
            mark.kind == MarkKind::Checkpoint
                && mark.node == *node
                && mark.at >= evidence.window.open
                && mark.at < evidence.window.close
        });
        set(&metrics::CHECKPOINTS, Some(checkpoints.count() as f64));
        figures.extend(wait_shares(evidence, node));
    }
    let wal: f64 = deltas.values().filter_map(|delta| delta.counter(&metrics::WAL_BYTES)).sum();
    if !deltas.is_empty() {
        figures.push(TrialFigure::new(
            &metrics::WAL_BYTES_PER_TX,
            "",
            wal / transactions_total as f64,
        ));
    }
    figures.extend(server_statements(evidence.point, deltas));
    figures
}

/// PostgreSQL's default block size.
const PAGE_BYTES: f64 = 8192.0;

/// The share of each wait event among the sessions that were seen active inside the window.
fn wait_shares(evidence: &Evidence<'_>, node: &str) -> Vec<TrialFigure> {
    let mut by_event: BTreeMap<&str, f64> = BTreeMap::new();
    for sample in inside(evidence) {
        if sample.is_of(&metrics::WAITING_SESSIONS) && sample.node == node {
            *by_event.entry(&sample.label).or_default() += sample.value;
        }
    }
    let all: f64 = by_event.values().sum();
    let of_wal: f64 = by_event.iter().filter(|(event, _)| is_of_wal(event)).map(|(_, n)| n).sum();
    let waiting: f64 = by_event.iter().filter(|(event, _)| **event != "CPU").map(|(_, n)| n).sum();
    let of_wal = TrialFigure::new(&metrics::WAL_WAIT_SHARE, node, of_wal / waiting);
    let by_event = by_event.into_iter().map(|(event, sum)| {
        TrialFigure::new(&metrics::WAIT_SHARE, &label_scope(evidence, node, event), sum / all)
    });
    std::iter::once(of_wal).chain(by_event).collect()
}

/// True if a wait event is one of writing or flushing WAL, which `synchronous_commit = local` waits
/// for too. A wait for a standby is not among them.
fn is_of_wal(event: &str) -> bool {
    // "CPU" is no wait.
    let (kind, name) = event.split_once(':').unwrap_or_default();
    name.starts_with("WAL") && ["IO", "LWLock"].contains(&kind)
}

/// The share of the warmed relations that was in shared buffers when the load began.
pub(super) fn warmth(evidence: &Evidence<'_>) -> Vec<TrialFigure> {
    let node = &evidence.point.data.node;
    let residency = &evidence.warmed.residency;
    let relations = residency.iter().map(|(relation, (resident, all))| {
        let scope = label_scope(evidence, node, relation);
        TrialFigure::new(&metrics::RELATION_RESIDENCY, &scope, resident / all)
    });
    let sum = |part: fn(&(f64, f64)) -> f64| residency.values().map(part).sum::<f64>();
    let share = sum(|blocks| blocks.0) / sum(|blocks| blocks.1);
    let whole = scopes(evidence, node).into_iter();
    let whole = whole.map(|scope| TrialFigure::new(&metrics::RESIDENCY, &scope, share));
    relations.chain(whole).collect()
}

/// The mean, inside the window, of everything that was read second by second.
pub(super) fn samples(evidence: &Evidence<'_>) -> Vec<TrialFigure> {
    means(evidence, evidence.window)
}

/// The mean of everything that was read second by second, inside a window or a part of it.
pub(super) fn means(evidence: &Evidence<'_>, part: MeasuredWindow) -> Vec<TrialFigure> {
    let mut figures = Vec::new();
    let mut sums: BTreeMap<(&str, &str, &str), (f64, u32)> = BTreeMap::new();
    let read = evidence.readings.samples.iter();
    for sample in read.filter(|sample| sample.at > part.open && sample.at <= part.close) {
        let key = (sample.metric.as_str(), sample.node.as_str(), sample.label.as_str());
        let (sum, count) = sums.entry(key).or_default();
        *sum += sample.value;
        *count += 1;
    }
    for ((name, node, label), (sum, count)) in sums {
        let Some(metric) = metric(name).filter(|metric| metric.kind != MetricKind::Total) else {
            continue;
        };
        let mean = sum / f64::from(count);
        let scopes = match (metric.scope, label) {
            (MetricScope::Machine, label) => machine_scopes(evidence, node, label),
            (_, "") => scopes(evidence, node),
            (_, label) => vec![label_scope(evidence, node, label)],
        };
        figures.extend(scopes.iter().map(|scope| TrialFigure::new(metric, scope, mean)));
    }
    figures
}

/// Scopes under which a figure of a machine is filed: its label, if everything runs on this
/// machine. With hosts, the machine is that of the server that has the data; those of the others
/// have their host's name before the label. This machine only conducts then.
fn machine_scopes(evidence: &Evidence<'_>, node: &str, label: &str) -> Vec<String> {
    let Some(data_host) = evidence.data_host else { return vec![label.to_owned()] };
    let Some(host) = node.strip_prefix("machine ") else { return Vec::new() };
    let mut scopes = vec![format!("{host} {label}").trim_end().to_owned()];
    if host == data_host {
        scopes.push(label.to_owned());
    }
    scopes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_wal_is_inserting_writing_or_flushing_it() {
        let check = |event: &str, expected: bool| assert_eq!(is_of_wal(event), expected, "{event}");
        check("LWLock:WALWrite", true);
        check("LWLock:WALInsert", true);
        check("IO:WALSync", true);
        check("IO:DataFileRead", false);
        check("IPC:SyncRep", false);
        check("CPU", false);
    }
}
