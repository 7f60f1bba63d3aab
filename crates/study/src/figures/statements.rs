//! What clients and servers say of single statements.

use std::collections::BTreeMap;

use check::statements::{label, scripts};
use probe::Delta;
use record::WorkloadResult;
use spec::{Point, metrics};
use stats::Latency;

use super::evidence::{Figures, ms};
use super::latency::{STATEMENT, latency};

/// Statements of the same name, in whatever script, count as one.
pub(super) fn statements(workloads: &[WorkloadResult], figures: &mut Figures) {
    let mut by_label: BTreeMap<String, Latency> = BTreeMap::new();
    for statement in workloads.iter().flat_map(|workload| &workload.statements) {
        if !statement.text.starts_with('\\') {
            let label = label(&statement.text);
            by_label.entry(label).or_default().merge(&statement.latency);
        }
    }
    for workload in workloads {
        if let Some(sum_ns) = between_begin_and_commit_ns(workload) {
            figures.set(&metrics::STATEMENTS_MS, &workload.name, ms(sum_ns));
            if workloads.len() == 1 {
                figures.set(&metrics::STATEMENTS_MS, "", ms(sum_ns));
            }
        }
    }
    for (label, merged) in by_label {
        latency(&merged, STATEMENT, &label, figures);
    }
}

/// Time of a transaction's statements without the commands that begin and end it; none where no
/// transaction succeeded.
fn between_begin_and_commit_ns(workload: &WorkloadResult) -> Option<f64> {
    let is_inside = |text: &str| {
        let verb = label(text);
        !text.starts_with('\\') && !TRANSACTION_CONTROL.contains(&verb.as_str())
    };
    let inside = workload.statements.iter().filter(|statement| is_inside(&statement.text));
    let sum: f64 = inside
        .filter_map(|statement| {
            Some(statement.latency.mean_ns()? * statement.latency.count() as f64)
        })
        .sum();
    let transactions = workload.counts.transactions;
    (transactions > 0).then(|| sum / transactions as f64)
}

const TRANSACTION_CONTROL: [&str; 6] = ["BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT"];

/// The statements of the point's scripts, and those inside functions where they are tracked.
pub(super) fn server_statements(
    point: &Point,
    deltas: &BTreeMap<String, Delta>,
    figures: &mut Figures,
) {
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
    for (label, [calls, total_ms, hit, read]) in by_label {
        figures.set(&metrics::SERVER_STATEMENT_CALLS, &label, calls);
        figures.set(&metrics::SERVER_STATEMENT_S, &label, total_ms / 1e3);
        figures.set(&metrics::SERVER_STATEMENT_MEAN_MS, &label, total_ms / calls);
        figures.set(&metrics::SERVER_STATEMENT_HIT_RATIO, &label, hit / (hit + read));
    }
}
