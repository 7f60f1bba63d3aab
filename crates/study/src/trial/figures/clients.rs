//! Figures that the clients of a trial, or of one of its workloads, have measured.

use record::WorkloadResult;
use spec::metrics;
use stats::censored;

use super::course::{backlog, growth, seconds, standstills};
use super::evidence::{Evidence, Figures, ms};
use super::latency::{LAG, LATENCY, PERCENTILES, SERVICE, latency};

/// All workloads together, as if they were one.
pub(super) fn whole(workloads: &[WorkloadResult]) -> Option<WorkloadResult> {
    let (first, others) = workloads.split_first()?;
    let mut whole = first.clone();
    for other in others {
        whole.clients += other.clients;
        whole.counts.add(&other.counts);
        whole.counts_total.add(&other.counts_total);
        whole.unknown += other.unknown;
        whole.latency.merge(&other.latency);
        whole.service.merge(&other.service);
        whole.lag.merge(&other.lag);
        whole.per_client.extend(&other.per_client);
        whole.open.merge(&other.open);
        whole.never_started += other.never_started;
        whole.longest_wait_ns = whole.longest_wait_ns.max(other.longest_wait_ns);
        whole.longest_wait_is_open |= other.longest_wait_is_open;
        whole.published_way.transactions += other.published_way.transactions;
        whole.published_way.seconds = whole.published_way.seconds.max(other.published_way.seconds);
    }
    Some(whole)
}

/// The figures of the workload of this index, or of all together.
pub(super) fn clients(
    evidence: &Evidence<'_>,
    index: Option<usize>,
    workload: &WorkloadResult,
    scope: &str,
    figures: &mut Figures,
) {
    let (counts, total) = (&workload.counts, &workload.counts_total);
    figures.set(&metrics::TPS, scope, counts.transactions as f64 / evidence.window.seconds());
    let published = workload.published_way;
    figures.set(&metrics::TPS_PUBLISHED, scope, published.transactions as f64 / published.seconds);
    let seconds = seconds(evidence, index);
    for (name, value) in [
        (&metrics::TPS_SECOND_MIN, seconds.iter().copied().reduce(f64::min)),
        (&metrics::TPS_SECOND_MAX, seconds.iter().copied().reduce(f64::max)),
        (&metrics::TPS_CV, stats::sample::coefficient_of_variation(&seconds)),
    ] {
        figures.set(name, scope, value.unwrap_or(f64::NAN));
    }
    let standstills = standstills(&seconds);
    figures.set(&metrics::STANDSTILLS, scope, standstills.len() as f64);
    figures.set(&metrics::STANDSTILL_S, scope, standstills.iter().sum::<usize>() as f64);
    figures.set(
        &metrics::STANDSTILL_MAX_S,
        scope,
        standstills.iter().max().copied().unwrap_or(0) as f64,
    );
    latency(&workload.latency, LATENCY, scope, figures);
    waits(workload, scope, figures);
    let is_paced = evidence.point.workloads.iter().enumerate().any(|(at, workload)| {
        index.is_none_or(|index| index == at) && workload.pace != spec::Pace::Closed
    });
    if is_paced {
        latency(&workload.service, SERVICE, scope, figures);
        latency(&workload.lag, LAG, scope, figures);
        let backlog = backlog(evidence, index);
        figures.set(
            &metrics::BACKLOG_MAX,
            scope,
            backlog.iter().copied().max().unwrap_or(0) as f64,
        );
        let due = counts.transactions + counts.failed() + counts.skipped;
        figures.set(&metrics::BACKLOG_GROWTH, scope, growth(&backlog, due));
        figures.set(&metrics::NEVER_STARTED, scope, workload.never_started as f64);
    }
    let errors: u64 = total.errors.values().sum();
    for (name, count) in [
        (&metrics::TRANSACTIONS, counts.transactions),
        (&metrics::TRANSACTIONS_TOTAL, total.transactions),
        (&metrics::FAILED, total.failed()),
        (&metrics::SKIPPED, counts.skipped),
        (&metrics::LATE, counts.late),
        (&metrics::RETRIED, counts.retried),
        (&metrics::RETRIES, counts.retries),
        (&metrics::ERRORS, errors),
        (&metrics::RECONNECTS, total.reconnects),
        (&metrics::ABORTED_CLIENTS, total.aborted_clients),
        (&metrics::UNKNOWN, workload.unknown),
        (&metrics::HUNG, workload.open.count_from(HANGS_FROM_NS)),
    ] {
        figures.set(name, scope, count as f64);
    }
    let sum: f64 = workload.per_client.iter().map(|n| *n as f64).sum();
    let squares: f64 = workload.per_client.iter().map(|n| (*n as f64).powi(2)).sum();
    // Jain, Chiu, Hawe: A quantitative measure of fairness, DEC-TR-301, 1984.
    figures.set(&metrics::JAIN, scope, sum * sum / (workload.per_client.len() as f64 * squares));
    if let Some(fewest) = workload.per_client.iter().min() {
        figures.set(&metrics::CLIENT_TRANSACTIONS_MIN, scope, *fewest as f64);
    }
}

/// Percentiles and the longest wait, what was open at the close included.
fn waits(workload: &WorkloadResult, scope: &str, figures: &mut Figures) {
    for (name, quantile) in PERCENTILES {
        if let Some(found) = censored::quantile(&workload.latency, &workload.open, *quantile) {
            figures.set_bounded(name, scope, ms(found.value_ns as f64), found.is_at_least);
        }
    }
    let (longest_ms, is_open) =
        (ms(workload.longest_wait_ns as f64), workload.longest_wait_is_open);
    figures.set_bounded(&metrics::LONGEST_WAIT_MS, scope, longest_ms, is_open);
    if !workload.latency.is_empty() || !workload.open.is_empty() {
        figures.set_bounded(&metrics::LATENCY_MAX_MS, scope, longest_ms, is_open);
    }
}

/// Longer than a failover by hand takes.
const HANGS_FROM_NS: u64 = 5_000_000_000;
