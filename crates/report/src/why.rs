//! Likely causes of a difference: the servers' CPU time and waits, their writes, and the statements
//! that took the time.
//!
//! Everything is a median or mean of the rounds of one line. It describes and proves nothing: two figures
//! that differ together need not be cause and effect.

use std::collections::BTreeSet;

use record::Trial;
use spec::{Metric, metrics};
use stats::sample;

use crate::grouping::{Group, Line};
use crate::number;
use crate::view::Table;

/// Wait events and statements that are named.
const NAMED_MAX: usize = 3;

/// Least share that counts as a cause.
const SHARE_MIN: f64 = 0.02;

/// Wait events, writes and statements of a group's lines; none if no server reported any.
pub(crate) fn why(group: &Group, trials: &[Trial]) -> Option<Table> {
    let columns = [
        "",
        "Active sessions spent their time in",
        "#WAL a transaction",
        "#Full-page images",
        "#Checkpoints",
        "#Found in shared_buffers",
        "Statements by the server's time",
    ];
    let note = "medians over rounds, shares of time are means; from pg_stat_activity, WAL \
                positions, the log, pg_stat_database and pg_stat_statements";
    let title = match group.label.as_str() {
        "" => "Why".to_owned(),
        label => format!("Why: {label}"),
    };
    let mut table = Table::new(&title, note, &columns);
    // Several workloads of a trial share its servers, whose figures stand once.
    let mut seen: BTreeSet<&[usize]> = BTreeSet::new();
    for line in group.lines.iter().filter(|line| seen.insert(&line.trials)) {
        let of = |metric| middle(line, trials, metric);
        let cells = [
            waits(line, trials),
            of(&metrics::WAL_BYTES_PER_TX).map(|bytes| number::with_unit(bytes, "B")),
            of(&metrics::FULL_PAGE_SHARE)
                .map(|share| format!("{} of the WAL", number::percent(share))),
            of(&metrics::CHECKPOINTS).map(number::figure),
            of(&metrics::HIT_RATIO).map(number::percent),
            statements(line, trials),
        ];
        if cells.iter().all(Option::is_none) {
            continue;
        }
        let name = match &line.workload {
            Some((_, workload)) => line.label.trim_end_matches(&format!(" · {workload}")),
            None => line.label.as_str(),
        };
        let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| "–".to_owned()));
        table.row([name.to_owned()].into_iter().chain(cells));
    }
    (!table.rows.is_empty()).then_some(table)
}

/// `54 % Lock:transactionid, 20 % CPU`.
fn waits(line: &Line, trials: &[Trial]) -> Option<String> {
    let shares = shares(line, trials, &metrics::WAIT_SHARE);
    let named = shares.iter().filter(|(_, share)| *share >= SHARE_MIN).take(NAMED_MAX);
    let words: Vec<String> = named
        .map(|(event, share)| match event.as_str() {
            "CPU" => format!("{} running or runnable", number::percent(*share)),
            event => format!("{} {event}", number::percent(*share)),
        })
        .collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// `UPDATE pgbench_branches 81 %, 0.392 ms each`.
fn statements(line: &Line, trials: &[Trial]) -> Option<String> {
    let times = shares(line, trials, &metrics::SERVER_STATEMENT_S);
    let all: f64 = times.iter().map(|(_, seconds)| seconds).sum();
    let named = times.iter().filter(|(_, seconds)| seconds / all >= SHARE_MIN).take(NAMED_MAX);
    let words: Vec<String> = named
        .map(|(statement, seconds)| {
            let each = middle_of(line, trials, &metrics::SERVER_STATEMENT_MEAN_MS, statement);
            let each = each.map(|ms| format!(", {} ms each", number::figure(ms)));
            // Without a time for each call, the share stands alone.
            let each = each.unwrap_or_default();
            format!("{statement} {}{each}", number::percent(seconds / all))
        })
        .collect();
    (!words.is_empty()).then(|| words.join("; "))
}

/// The mean of every scope of a metric, the largest first; a trial without a scope has 0 of it.
fn shares(line: &Line, trials: &[Trial], metric: &Metric) -> Vec<(String, f64)> {
    let told: Vec<&std::collections::BTreeMap<String, f64>> =
        line.trials.iter().filter_map(|&index| trials[index].scopes(metric)).collect();
    let scopes: BTreeSet<&String> = told.iter().flat_map(|scopes| scopes.keys()).collect();
    let mean = |scope: &String| {
        // See above: a trial without the scope has 0 of it.
        let values = told.iter().map(|scopes| scopes.get(scope).copied().unwrap_or(0.0));
        sample::mean(&values.collect::<Vec<f64>>()).expect("a scope is that of a trial")
    };
    let mut all: Vec<(String, f64)> =
        scopes.into_iter().map(|scope| (scope.clone(), mean(scope))).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all
}

fn middle(line: &Line, trials: &[Trial], metric: &Metric) -> Option<f64> {
    middle_of(line, trials, metric, "")
}

fn middle_of(line: &Line, trials: &[Trial], metric: &Metric, scope: &str) -> Option<f64> {
    let value = |&index: &usize| {
        let scopes = trials[index].scopes(metric)?;
        // What is measured of one node only stands under its name.
        let only = scopes.values().next().filter(|_| scope.is_empty() && scopes.len() == 1);
        scopes.get(scope).or(only).copied()
    };
    let values = line.trials.iter().filter_map(value).filter(|value| value.is_finite());
    sample::median(&values.collect::<Vec<f64>>())
}
