//! What was counted on both sides, and what checks found.

use record::Trial;
use spec::Study;

use crate::grouping::{Group, Line};
use crate::number;
use crate::view::{Cell, Outcome, Table};

/// Metrics of checks that say what became of acknowledged writes; each gets a column where a
/// record has it.
const LEDGER: &str = "ledger_";

/// What the proof says in words, and its tables.
pub(crate) fn proof(
    study: &Study,
    trials: &[Trial],
    groups: &[Group],
) -> (Vec<String>, Vec<Table>) {
    let mut words = Vec::new();
    let mut tables = Vec::new();
    let (counted, compared, exact) = counts(trials, groups);
    if compared > 0 {
        words.push(format!(
            "The server's own count of transactions equals the clients' in {exact} of {compared} \
             trials, compared after every client had left."
        ));
        tables.push(counted);
    } else {
        words.push("This record holds no count of the server's to compare with.".to_owned());
    }
    tables.extend(ledger(trials, groups));
    words.push(format!(
        "Seed {}: it fixes the order of trials, the keys that clients draw and the moments of \
         actions.",
        study.seed
    ));
    (words, tables)
}

fn counts(trials: &[Trial], groups: &[Group]) -> (Table, usize, usize) {
    let columns = [
        "",
        "#Trials",
        "#Clients acknowledged",
        "#Server counted",
        "#Unknown outcome",
        "#Failed",
        "Equal",
    ];
    let mut table = Table::new(
        "Transactions as clients and server count them",
        "over the whole life of the clients; where connections were lost while committing, the \
         server may have up to the unknown ones more",
        &columns,
    );
    let (mut compared_all, mut exact_all) = (0, 0);
    for line in lines_of_trials(groups) {
        let of = |metric: &'static str| {
            line.trials.iter().filter_map(move |&i| whole(&trials[i], metric))
        };
        let compared = of("count_difference").count();
        if compared == 0 {
            continue;
        }
        let exact = of("count_difference").filter(|difference| *difference == 0.0).count();
        compared_all += compared;
        exact_all += exact;
        let workloads = line.trials.iter().flat_map(|&index| &trials[index].workloads);
        let (clients, unknown, failed) = workloads.fold((0, 0, 0), |(ok, unknown, failed), w| {
            let total = &w.counts_total;
            (ok + total.transactions, unknown + w.unknown, failed + total.failed())
        });
        let server: f64 = of("server_calls").sum();
        let mark = if exact == compared { Outcome::Holds } else { Outcome::Fails };
        let mut row: Vec<Cell> = [
            line.label.clone(),
            number::count(compared as u64),
            number::count(clients),
            if server > 0.0 { number::count(server as u64) } else { "–".to_owned() },
            number::count(unknown),
            number::count(failed),
        ]
        .map(Cell::from)
        .into();
        row.push(Cell::verdict(mark, format!("in {exact} of {compared}")));
        table.rows.push(row);
    }
    (table, compared_all, exact_all)
}

/// Everything that a ledger's check found, a column each.
fn ledger(trials: &[Trial], groups: &[Group]) -> Option<Table> {
    let mut metrics: Vec<&str> = trials
        .iter()
        .flat_map(|trial| trial.metrics.keys())
        .map(String::as_str)
        .filter(|name| name.starts_with(LEDGER))
        .collect();
    metrics.sort_unstable();
    metrics.dedup();
    if metrics.is_empty() {
        return None;
    }
    let mut columns = vec![String::new(), "#Trials".to_owned()];
    let name = |metric: &&str| format!("#{}", metric[LEDGER.len()..].replace('_', " "));
    columns.extend(metrics.iter().map(name));
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let note = "what became of every write that a client intended, all trials together";
    let mut table = Table::new("Ledger", note, &columns);
    for line in lines_of_trials(groups) {
        let mut row = vec![line.label.clone(), number::count(line.trials.len() as u64)];
        for metric in &metrics {
            let total: f64 = line.trials.iter().filter_map(|&i| whole(&trials[i], metric)).sum();
            row.push(number::figure(total));
        }
        table.row(row);
    }
    Some(table)
}

/// Lines that stand for whole trials: where a scenario runs several workloads, the first.
fn lines_of_trials(groups: &[Group]) -> Vec<Line> {
    let lines = groups.iter().flat_map(|group| group.lines.iter().map(move |line| (group, line)));
    let first =
        lines.filter(|(_, line)| line.workload.as_ref().is_none_or(|(index, _)| *index == 0));
    first
        .map(|(group, line)| {
            let name = match &line.workload {
                Some((_, workload)) => line.label.trim_end_matches(&format!(" · {workload}")),
                None => &line.label,
            };
            let label = match group.label.as_str() {
                "" => name.to_owned(),
                group => format!("{group} · {name}"),
            };
            Line { label, workload: None, ..line.clone() }
        })
        .collect()
}

fn whole(trial: &Trial, metric: &str) -> Option<f64> {
    trial.metrics.get(metric)?.get("").copied()
}
