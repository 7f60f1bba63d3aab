//! Figures that the clients of a trial, or of one of its workloads, have measured.

use check::TrialFigure;
use record::WorkloadResult;
use spec::metrics;
use stats::censored;

use super::course::{backlog, growth, seconds, standstills};
use super::evidence::{Evidence, ms};
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
        whole.per_client_good.extend(&other.per_client_good);
        whole.served.merge(&other.served);
        whole.unserved.merge(&other.unserved);
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
) -> Vec<TrialFigure> {
    let figure = |metric, value| TrialFigure::new(metric, scope, value);
    let (counts, total) = (&workload.counts, &workload.counts_total);
    let published = workload.published_way;
    let published_tps = published.transactions as f64 / published.seconds;
    let mut figures = vec![
        figure(&metrics::TPS, counts.transactions as f64 / evidence.window.seconds()),
        figure(&metrics::TPS_PUBLISHED, published_tps),
    ];
    let seconds = seconds(evidence, index);
    let of_seconds = [
        (&metrics::TPS_SECOND_MIN, seconds.iter().copied().reduce(f64::min)),
        (&metrics::TPS_SECOND_MAX, seconds.iter().copied().reduce(f64::max)),
        (&metrics::TPS_CV, stats::sample::coefficient_of_variation(&seconds)),
    ];
    figures
        .extend(of_seconds.into_iter().filter_map(|(metric, value)| Some(figure(metric, value?))));
    let standstills = standstills(&seconds);
    // Without a standstill the longest one took no time.
    let longest = standstills.iter().max().copied().unwrap_or(0);
    figures.extend([
        figure(&metrics::STANDSTILLS, standstills.len() as f64),
        figure(&metrics::STANDSTILL_S, standstills.iter().sum::<usize>() as f64),
        figure(&metrics::STANDSTILL_MAX_S, longest as f64),
    ]);
    figures.extend(latency(&workload.latency, LATENCY, scope));
    figures.extend(waits(workload, scope));
    let is_paced = evidence.point.workloads.iter().enumerate().any(|(at, workload)| {
        index.is_none_or(|index| index == at) && workload.pace != spec::Pace::Closed
    });
    if is_paced {
        figures.extend(latency(&workload.service, SERVICE, scope));
        figures.extend(latency(&workload.lag, LAG, scope));
        let backlog = backlog(evidence, index);
        // Without an interval nothing was behind.
        let largest = backlog.iter().copied().max().unwrap_or(0);
        let due = counts.transactions + counts.failed() + counts.skipped;
        figures.extend([
            figure(&metrics::BACKLOG_MAX, largest as f64),
            figure(&metrics::BACKLOG_GROWTH, growth(&backlog, due)),
            figure(&metrics::NEVER_STARTED, workload.never_started as f64),
        ]);
    }
    let errors: u64 = total.errors.values().sum();
    let counted = [
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
    ];
    figures.extend(counted.map(|(metric, count)| figure(metric, count as f64)));
    figures.push(figure(&metrics::JAIN, jain(&workload.per_client)));
    let fewest = workload.per_client.iter().min();
    figures.extend(fewest.map(|count| figure(&metrics::CLIENT_TRANSACTIONS_MIN, *count as f64)));
    figures
}

/// Jain's index of fairness over clients; no number where none of them had anything. Source: Jain, Chiu, Hawe: A
/// quantitative measure of fairness, DEC-TR-301, 1984.
pub(super) fn jain(per_client: &[u64]) -> f64 {
    let sum: f64 = per_client.iter().map(|n| *n as f64).sum();
    let squares: f64 = per_client.iter().map(|n| (*n as f64).powi(2)).sum();
    sum * sum / (per_client.len() as f64 * squares)
}

/// Percentiles and the longest wait, what was open at the close included.
fn waits(workload: &WorkloadResult, scope: &str) -> Vec<TrialFigure> {
    let percentiles = PERCENTILES.iter().filter_map(|(metric, quantile)| {
        let found = censored::quantile(&workload.latency, &workload.open, *quantile)?;
        Some(TrialFigure::bounded(metric, scope, ms(found.value_ns as f64), found.is_at_least))
    });
    let (longest_ms, is_open) =
        (ms(workload.longest_wait_ns as f64), workload.longest_wait_is_open);
    let has_any = !workload.latency.is_empty() || !workload.open.is_empty();
    let longest = [&metrics::LONGEST_WAIT_MS]
        .into_iter()
        .chain(has_any.then_some(&metrics::LATENCY_MAX_MS))
        .map(|metric| TrialFigure::bounded(metric, scope, longest_ms, is_open));
    percentiles.chain(longest).collect()
}

/// Longer than a failover by hand takes.
const HANGS_FROM_NS: u64 = 5_000_000_000;
