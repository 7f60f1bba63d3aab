//! Counts on both sides, and the findings of checks.

use record::Trial;
use spec::{Metric, Study, metrics};

use crate::grouping::{Group, Line};
use crate::number;
use crate::view::{Cell, Outcome, Table};

/// The proof in words, and its tables.
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
    let kept = ledger(trials, groups);
    let limits = (!kept.is_empty()).then(ledger_limits);
    tables.extend(kept.into_iter().chain(limits));
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
        let of = |metric: &'static Metric| {
            line.trials.iter().filter_map(move |&i| whole(&trials[i], metric))
        };
        let compared = of(&metrics::COUNT_DIFFERENCE).count();
        if compared == 0 {
            continue;
        }
        let exact = of(&metrics::COUNT_DIFFERENCE).filter(|difference| *difference == 0.0).count();
        compared_all += compared;
        exact_all += exact;
        let workloads = line.trials.iter().flat_map(|&index| &trials[index].workloads);
        let (clients, unknown, failed) = workloads.fold((0, 0, 0), |(ok, unknown, failed), w| {
            let total = &w.counts_total;
            (ok + total.transactions, unknown + w.unknown, failed + total.failed())
        });
        let server: f64 = of(&metrics::SERVER_CALLS).sum();
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

/// The fate of every write that clients intended, and the first anomalies.
fn ledger(trials: &[Trial], groups: &[Group]) -> Vec<Table> {
    let columns = [
        "",
        "#Trials",
        "#Acknowledged",
        "#Failed",
        "#Unknown",
        "#Of them there",
        "#Lost",
        "#Lost of the primary's own",
        "#Lost in a row",
        "#Lost within",
        "#Other anomalies",
        "Nothing lost, nothing wrong",
    ];
    let note = "every write that a client intended, held against the rows once all was over: \
                unknown where a connection was lost before the answer; the primary's own were \
                acknowledged while no standby had to have them; other anomalies are rows doubled, \
                invented, broken or there although they failed. Where n of n trials show nothing, \
                3/n is the rate of failures that they cannot rule out at 95 %";
    let mut table = Table::new("Ledger", note, &columns);
    for line in lines_of_trials(groups) {
        let values = |metric: &'static Metric| {
            line.trials.iter().filter_map(move |&index| whole(&trials[index], metric))
        };
        let anomalies: Vec<f64> = values(&metrics::LEDGER_ANOMALIES).collect();
        let cut = values(&metrics::LEDGER_UNJUDGED).filter(|clients| *clients > 0.0).count();
        if anomalies.is_empty() {
            continue;
        }
        let sum = |metric| number::count(values(metric).sum::<f64>() as u64);
        let max = |metric| values(metric).fold(0.0, f64::max);
        let lost: f64 = values(&metrics::LEDGER_LOST).sum();
        let others = anomalies.iter().sum::<f64>() - lost;
        let mut row: Vec<Cell> = [
            line.label.clone(),
            number::count(anomalies.len() as u64),
            sum(&metrics::LEDGER_ACKNOWLEDGED),
            sum(&metrics::LEDGER_FAILED),
            sum(&metrics::LEDGER_UNKNOWN),
            sum(&metrics::LEDGER_UNKNOWN_PRESENT),
            number::count(lost as u64),
            sum(&metrics::LEDGER_LOST_ALONE),
            number::count(max(&metrics::LEDGER_LOST_MAX_RUN) as u64),
            match lost > 0.0 {
                true => number::with_unit(max(&metrics::LEDGER_LOST_SPAN_MS), "ms"),
                false => "–".to_owned(),
            },
            number::count(others as u64),
        ]
        .map(Cell::from)
        .into();
        row.push(ledger_verdict(&anomalies, cut));
        table.rows.push(row);
    }
    if table.rows.is_empty() {
        return Vec::new();
    }
    [Some(table), examples(trials)].into_iter().flatten().collect()
}

/// The foundations of a ledger's findings, and what it does not look at.
fn ledger_limits() -> Table {
    let note = "what must be so for the figures above to be right, and what they say nothing of";
    let mut table = Table::new("Limits of the ledger", note, &["", "Limit"]);
    table.folded = true;
    let assumes = record::ledger::ASSUMES.iter().map(|text| ("It assumes", text));
    let unseen = record::ledger::NEVER_LOOKS_AT.iter().map(|text| ("It never looks at", text));
    for (kind, text) in assumes.chain(unseen) {
        table.row([kind.to_owned(), (*text).to_owned()]);
    }
    table
}

/// Anomalies of trials, `cut` of which have a ledger that is cut off.
fn ledger_verdict(anomalies: &[f64], cut: usize) -> Cell {
    let clean = anomalies.iter().filter(|count| **count == 0.0).count();
    let of = anomalies.len();
    match clean == of {
        true if cut > 0 => {
            let words = format!("cannot tell: the ledger of {cut} of {of} is cut off");
            Cell::verdict(Outcome::Unsure, words)
        }
        true => {
            let bound = stats::failure_rate::rule_of_three(of as u64);
            let words = match bound < 1.0 {
                true => format!("in {clean} of {of}, a rate below {}", number::percent(bound)),
                false => format!("in {clean} of {of}, too few to bound a rate"),
            };
            Cell::verdict(Outcome::Holds, words)
        }
        false => Cell::verdict(Outcome::Fails, format!("in {clean} of {of}")),
    }
}

/// Examples that the checks gave of their findings, trial by trial.
fn examples(trials: &[Trial]) -> Option<Table> {
    let note = "the first few of each kind; the whole ledger lies in the trial's directory";
    let mut table = Table::new("What does not fit the ledger", note, &["#Trial", "Finding"]);
    for trial in trials {
        for note in trial.notes.iter().filter(|note| note.kind == record::NoteKind::Ledger) {
            table.row([trial.number.to_string(), note.text.clone()]);
        }
    }
    table.folded = table.rows.len() > EXAMPLES_SHOWN_MAX;
    (!table.rows.is_empty()).then_some(table)
}

/// More examples than these are folded away.
const EXAMPLES_SHOWN_MAX: usize = 20;

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

fn whole(trial: &Trial, metric: &Metric) -> Option<f64> {
    trial.scopes(metric)?.get("").copied()
}
