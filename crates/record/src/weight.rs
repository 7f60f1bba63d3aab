//! Memory that the parts of a record hold, for the [allowance](crate::allowance).

use std::collections::BTreeMap;

use stats::LatencyHistogram;

use crate::{ConnectionPhase, StatementResult, TransactionCounts, Trial, WorkloadResult};

/// An attempt, with everything that it points to.
pub(crate) fn of_trial(trial: &Trial) -> usize {
    let Trial { axes, metrics, at_least, workloads, hosts, notes, .. } = trial;
    let axes_text = axes.iter().map(|(axis, value)| axis.len() + value.len());
    let scopes = metrics.values().map(|scopes| map(scopes) + keys(scopes));
    let bounds = at_least.values().map(|scopes| {
        entries(scopes.len(), size_of::<String>()) + scopes.iter().map(String::len).sum::<usize>()
    });
    let hosts = hosts.iter().map(|host| {
        let roles = host.roles.iter().map(|role| size_of::<String>() + role.len());
        size_of_val(host) + host.name.len() + roles.sum::<usize>()
    });
    let notes = notes.iter().map(|note| size_of_val(note) + note.text.len());
    let why = trial.ending.why().len();
    size_of::<Trial>()
        + trial.variant.len()
        + trial.scenario.len()
        + trial.started_at.len()
        + why
        + map(axes)
        + axes_text.sum::<usize>()
        + map(metrics)
        + keys(metrics)
        + scopes.sum::<usize>()
        + map(at_least)
        + keys(at_least)
        + bounds.sum::<usize>()
        + of_phase(&trial.connecting)
        + of_phase(&trial.disconnecting)
        + workloads.iter().map(of_workload).sum::<usize>()
        + hosts.sum::<usize>()
        + notes.sum::<usize>()
}

fn of_phase(phase: &ConnectionPhase) -> usize {
    map(&phase.failures) + keys(&phase.failures) + beside(&phase.latency)
}

fn of_workload(workload: &WorkloadResult) -> usize {
    let WorkloadResult { latency, open, service, lag, served, unserved, .. } = workload;
    let histograms = [latency, open, service, lag, served, unserved].map(beside);
    size_of::<WorkloadResult>()
        + workload.name.len()
        + of_counts(&workload.counts)
        + of_counts(&workload.counts_total)
        + histograms.iter().sum::<usize>()
        + workload.statements.iter().map(of_statement).sum::<usize>()
        + size_of::<u64>() * workload.per_client.capacity()
        + size_of::<u64>() * workload.per_client_good.capacity()
}

fn of_statement(statement: &StatementResult) -> usize {
    let StatementResult { script, text, latency, .. } = statement;
    size_of::<StatementResult>() + script.len() + text.len() + beside(latency)
}

fn of_counts(counts: &TransactionCounts) -> usize {
    map(&counts.errors) + keys(&counts.errors)
}

/// Bytes that a histogram holds besides its own place.
fn beside(latency: &LatencyHistogram) -> usize {
    latency.memory_bytes() - size_of::<LatencyHistogram>()
}

fn keys<V>(map: &BTreeMap<String, V>) -> usize {
    map.keys().map(String::len).sum()
}

/// The nodes of a map.
pub(crate) fn map<K, V>(map: &BTreeMap<K, V>) -> usize {
    entries(map.len(), size_of::<K>() + size_of::<V>())
}

/// A node of a B-tree has room for eleven entries, and is half full where entries came in order.
fn entries(count: usize, size: usize) -> usize {
    count.div_ceil(6) * (11 * size + 2 * size_of::<usize>())
}
