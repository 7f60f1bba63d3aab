//! Latency percentiles of each line of a group: the curve, and a table per statement.

use record::{StatementResult, Trial};
use stats::LatencyHistogram;

use crate::grouping::{Group, Line};

/// Points of a curve per factor of ten in 1 ÷ (1 − q).
const POINTS_PER_DECADE: usize = 20;

/// The distribution of one line over one kind of wait, all rounds together.
pub(crate) struct Distribution {
    /// Subject of the latency: the whole transaction, or a statement.
    pub(crate) of: String,
    /// One entry a line of the group; none where the line has no such statement.
    pub(crate) lines: Vec<Option<LatencyHistogram>>,
}

/// All distributions of a group: transactions first, then the statements in order of appearance.
pub(crate) fn distributions(group: &Group, trials: &[Trial]) -> Vec<Distribution> {
    let mut all = vec![Distribution {
        of: "whole transaction".to_owned(),
        lines: group.lines.iter().map(|line| transactions(line, trials)).collect(),
    }];
    for (position, line) in group.lines.iter().enumerate() {
        for (label, latency) in statements(line, trials) {
            let known = all.iter().position(|distribution| distribution.of == label);
            let index = known.unwrap_or_else(|| {
                let lines = vec![None; group.lines.len()];
                all.push(Distribution { of: label, lines });
                all.len() - 1
            });
            all[index].lines[position] = Some(latency);
        }
    }
    all
}

/// Shares of 1 − q that every curve is drawn at, down to what `n` durations can tell apart:
/// 1, 0.89, 0.79 … 1 ÷ 2n.
pub(crate) fn grid(n: u64) -> Vec<f64> {
    let decades = (2.0 * n.max(1) as f64).log10();
    let points = (decades * POINTS_PER_DECADE as f64).floor() as usize;
    (0..=points).map(|point| 10f64.powf(-(point as f64) / POINTS_PER_DECADE as f64)).collect()
}

/// A curve in milliseconds at the shares of a grid; a gap where the line has too few durations.
pub(crate) fn curve(latency: &LatencyHistogram, grid: &[f64]) -> Vec<Option<f64>> {
    let smallest_share = 0.5 / latency.count().max(1) as f64;
    grid.iter()
        .map(|&share| {
            let told_apart = share >= smallest_share * 0.999;
            let value_ns = latency.quantile_ns((1.0 - share).max(0.0)).filter(|_| told_apart);
            value_ns.map(|ns| ns as f64 / 1e6)
        })
        .collect()
}

/// Ages of the transactions of a line that had not ended when their windows closed.
pub(crate) fn open(line: &Line, trials: &[Trial]) -> LatencyHistogram {
    let open = merged(line, trials, |trial, workload| vec![&trial.workloads[workload].open]);
    open.unwrap_or_else(LatencyHistogram::new)
}

fn transactions(line: &Line, trials: &[Trial]) -> Option<LatencyHistogram> {
    merged(line, trials, |trial, workload| vec![&trial.workloads[workload].latency])
}

/// Every statement of a line with the time of its executions, in script order.
fn statements(line: &Line, trials: &[Trial]) -> Vec<(String, LatencyHistogram)> {
    let mut statements: Vec<(String, LatencyHistogram)> = Vec::new();
    for &index in &line.trials {
        let trial = &trials[index];
        for workload in line.workloads(trial) {
            let all = &trial.workloads[workload].statements;
            for statement in all.iter().filter(|statement| reaches_the_server(statement)) {
                let label = label(statement, all);
                match statements.iter_mut().find(|(known, _)| *known == label) {
                    Some((_, all)) => all.merge(&statement.latency),
                    None => statements.push((label, statement.latency.clone())),
                }
            }
        }
    }
    statements
}

/// True if a statement was sent and answered; pgbench's own commands begin with a backslash.
fn reaches_the_server(statement: &StatementResult) -> bool {
    !statement.latency.is_empty() && !statement.text.starts_with('\\')
}

/// A statement's short name, with its place where that is not enough.
fn label(statement: &StatementResult, all: &[StatementResult]) -> String {
    let label = spec::statement_label(&statement.text);
    let same = all.iter().filter(|other| spec::statement_label(&other.text) == label).count();
    if same > 1 { format!("{label} ({}:{})", statement.script, statement.line) } else { label }
}

fn merged<'a>(
    line: &Line,
    trials: &'a [Trial],
    pick: impl Fn(&'a Trial, usize) -> Vec<&'a LatencyHistogram>,
) -> Option<LatencyHistogram> {
    let mut all: Option<LatencyHistogram> = None;
    for &index in &line.trials {
        let trial = &trials[index];
        for latency in line.workloads(trial).flat_map(|workload| pick(trial, workload)) {
            match &mut all {
                Some(all) => all.merge(latency),
                None => all = Some(latency.clone()),
            }
        }
    }
    all.filter(|latency| !latency.is_empty())
}
