//! Figures of clients and servers about single statements.

use std::collections::BTreeMap;

use check::TrialFigure;
use check::statements::{label, scripts};
use probe::CounterDelta;
use record::WorkloadResult;
use spec::{TrialPoint, metrics};
use stats::LatencyHistogram;

use super::evidence::ms;
use super::latency::{STATEMENT, latency};

/// Statements of the same name, in whatever script, count as one.
pub(super) fn statements(workloads: &[WorkloadResult]) -> Vec<TrialFigure> {
    let mut figures = Vec::new();
    let mut by_label: BTreeMap<String, LatencyHistogram> = BTreeMap::new();
    for statement in workloads.iter().flat_map(|workload| &workload.statements) {
        if !statement.text.starts_with('\\') {
            let label = label(&statement.text);
            by_label.entry(label).or_default().merge(&statement.latency);
        }
    }
    for workload in workloads {
        let figures_of_it = [
            (&metrics::STATEMENTS_MS, inside_ns(workload)),
            (&metrics::LATENCY_INSIDE_MS, latency_inside_ns(workload)),
        ];
        for (metric, ns) in figures_of_it {
            let Some(ns) = ns else { continue };
            figures.push(TrialFigure::new(metric, &workload.name, ms(ns)));
            if workloads.len() == 1 {
                figures.push(TrialFigure::new(metric, "", ms(ns)));
            }
        }
    }
    figures.extend(by_label.iter().flat_map(|(label, merged)| latency(merged, STATEMENT, label)));
    figures
}

/// Time of a transaction's statements without the commands that begin and end it; none where no
/// transaction succeeded.
fn inside_ns(workload: &WorkloadResult) -> Option<f64> {
    per_transaction_ns(workload, |text| !text.starts_with('\\') && !is_control(text))
}

/// Mean latency without the commands that begin and end a transaction; none where no script has
/// such a command.
fn latency_inside_ns(workload: &WorkloadResult) -> Option<f64> {
    workload.statements.iter().any(|statement| is_control(&statement.text)).then_some(())?;
    Some(workload.latency.mean_ns()? - per_transaction_ns(workload, is_control)?)
}

/// Time that some statements take in a transaction, on average.
fn per_transaction_ns(workload: &WorkloadResult, is_meant: impl Fn(&str) -> bool) -> Option<f64> {
    let meant = workload.statements.iter().filter(|statement| is_meant(&statement.text));
    let sum: f64 = meant
        .filter_map(|statement| {
            Some(statement.latency.mean_ns()? * statement.latency.count() as f64)
        })
        .sum();
    let transactions = workload.counts.transactions;
    (transactions > 0).then(|| sum / transactions as f64)
}

/// True if a statement begins or ends a transaction.
fn is_control(text: &str) -> bool {
    TRANSACTION_CONTROL.contains(&label(text).as_str())
}

const TRANSACTION_CONTROL: [&str; 6] = ["BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT"];

/// The statements of the point's scripts, and those inside functions where they are tracked.
pub(super) fn server_statements(
    point: &TrialPoint,
    deltas: &BTreeMap<String, CounterDelta>,
) -> Vec<TrialFigure> {
    let own = scripts(point);
    let mut by_label: BTreeMap<String, [f64; 4]> = BTreeMap::new();
    let statements = deltas.values().filter_map(|delta| delta.statements.as_ref()).flatten();
    for statement in statements {
        let label = label(&statement.query);
        if statement.toplevel && !own.iter().any(|script| script.contains_key(&label)) {
            continue;
        }
        let sums = by_label.entry(label).or_default();
        sums[0] += statement.calls as f64;
        sums[1] += statement.total_exec_ms;
        sums[2] += statement.shared_blocks_hit as f64;
        sums[3] += statement.shared_blocks_read as f64;
    }
    let figures = by_label.into_iter().flat_map(|(label, [calls, total_ms, hit, read])| {
        let of_label = [
            (&metrics::SERVER_STATEMENT_CALLS, calls),
            (&metrics::SERVER_STATEMENT_S, total_ms / 1e3),
            (&metrics::SERVER_STATEMENT_MEAN_MS, total_ms / calls),
            (&metrics::SERVER_STATEMENT_HIT_RATIO, hit / (hit + read)),
        ];
        of_label.map(|(metric, value)| TrialFigure::new(metric, &label, value))
    });
    figures.collect()
}

#[cfg(test)]
mod tests {
    use record::{PublishedWay, StatementResult, TransactionCounts};

    use super::*;

    /// A workload whose transactions took so many milliseconds, and its statements, each run once a
    /// transaction.
    fn workload(latency_ms: u64, statements: &[(&str, u64)]) -> WorkloadResult {
        let time = |ms: u64| {
            let mut latency = LatencyHistogram::new();
            (0..100).for_each(|_| latency.record_ns(ms * 1_000_000));
            latency
        };
        let statement = |(text, ms): &(&str, u64)| StatementResult {
            script: "s.sql".to_owned(),
            line: 1,
            text: (*text).to_owned(),
            failures: 0,
            retries: 0,
            latency: time(*ms),
        };
        WorkloadResult {
            name: "w".to_owned(),
            clients: 1,
            counts: TransactionCounts { transactions: 100, ..TransactionCounts::default() },
            counts_total: TransactionCounts::default(),
            unknown: 0,
            latency: time(latency_ms),
            open: LatencyHistogram::new(),
            never_started: 0,
            service: LatencyHistogram::new(),
            lag: LatencyHistogram::new(),
            statements: statements.iter().map(statement).collect(),
            per_client: Vec::new(),
            per_client_good: Vec::new(),
            served: LatencyHistogram::new(),
            unserved: LatencyHistogram::new(),
            longest_wait_ns: 0,
            longest_wait_is_open: false,
            published_way: PublishedWay::default(),
        }
    }

    #[test]
    fn what_lies_between_begin_and_commit_is_summed_up_and_is_what_they_leave() {
        let check = |statements: &[(&str, u64)], summed: Option<f64>, left: Option<f64>| {
            let figures = super::statements(&[workload(20, statements)]);
            let value = |name: &str| {
                let is_meant = |one: &&TrialFigure| one.metric.name == name && one.scope == "w";
                figures.iter().find(is_meant).map(|one| one.value.round())
            };
            let found = (value("statements_ms"), value("latency_inside_ms"));
            assert_eq!(found, (summed, left), "{statements:?}");
        };
        let bounded = [("BEGIN;", 9), ("SELECT 1;", 2), ("UPDATE t SET a = 1;", 3), ("END;", 1)];
        check(&bounded, Some(5.0), Some(10.0));
        // Where nothing begins a transaction there is nothing to leave out.
        check(&[("SELECT 1;", 2)], Some(2.0), None);
    }
}
