//! Two records side by side, `pgrig view`.

use std::collections::BTreeSet;

use record::PairingAttempt;
use record::comparison::{MetricRatio, StatementComparison};
use stats::ConfidenceInterval;
use verdict::{DifferenceMeaning, MetricDifference, RecordDiff, RunCondition};

use crate::exchange::{CaseOutcome, ExportedResults, JudgedCase};
use crate::number;
use crate::page::{BesideColumn, BesidePage, rendered};
use crate::view::{Cell, Outcome, Table};

/// One of two records.
#[derive(Clone, Copy, Debug)]
pub struct RecordBeside<'r> {
    /// The address of its report.
    pub address: &'r str,
    /// The folder, as the reader knows it.
    pub folder: &'r str,
    /// What it says.
    pub results: &'r ExportedResults,
    /// What was measured in pairs.
    pub pairs: &'r [PairingAttempt],
}

/// Two records as one page: what each says, what the runs differ in, and every claim, script and figure that they have in
/// common.
#[must_use]
pub fn beside(before: RecordBeside<'_>, after: RecordBeside<'_>, diff: &RecordDiff) -> String {
    let column = |one: RecordBeside<'_>| BesideColumn {
        address: one.address.to_owned(),
        folder: one.folder.to_owned(),
        name: one.results.name.clone(),
        started_at: one.results.started_at.clone(),
        answer: one.results.answer.clone(),
        sides: one.results.sides.clone(),
    };
    let tables = [
        conditions(&diff.conditions),
        claims(&before.results.cases, &after.results.cases),
        scripts(before.pairs, after.pairs),
        figures(&diff.differences),
    ];
    let summary = match diff.differences.is_empty() {
        true => {
            "These records have no figure in common: their answers stand side by side.".to_owned()
        }
        false => diff.summary(),
    };
    rendered(&BesidePage {
        columns: [column(before), column(after)],
        summary,
        tables: tables.into_iter().filter(|table| !table.rows.is_empty()).collect(),
        data: "{\"trials\":[],\"percentiles\":[],\"curves\":[]}".to_owned(),
    })
}

fn conditions(conditions: &[RunCondition]) -> Table {
    let note = "a difference of the figures may come from these";
    let mut table = Table::new("The runs differ in", note, &["What", "Before", "After", "At"]);
    for one in conditions {
        let points = one.points.join(", ");
        table.row([one.what.clone(), one.before.clone(), one.after.clone(), points]);
    }
    table.without_empty_columns()
}

fn claims(before: &[JudgedCase], after: &[JudgedCase]) -> Table {
    let mut table = Table::new("Claims", "", &["Claim", "Before", "After"]);
    table.sorts = true;
    let mut seen = BTreeSet::new();
    for case in before.iter().chain(after).filter(|case| seen.insert(case.name.as_str())) {
        let of = |cases: &[JudgedCase]| match cases.iter().find(|one| one.name == case.name) {
            Some(one) => Cell { text: one.text.clone(), mark: Some(mark(one.outcome)) },
            None => Cell::from("–".to_owned()),
        };
        table.rows.push(vec![Cell::from(case.name.clone()), of(before), of(after)]);
    }
    table
}

fn mark(outcome: CaseOutcome) -> Outcome {
    match outcome {
        CaseOutcome::Passed => Outcome::Holds,
        CaseOutcome::Harm => Outcome::Harm,
        CaseOutcome::Failed => Outcome::Fails,
        CaseOutcome::Broken | CaseOutcome::Skipped => Outcome::Unsure,
    }
}

/// The scripts that both comparisons have run by themselves.
fn scripts(before: &[PairingAttempt], after: &[PairingAttempt]) -> Table {
    let columns = ["Script", "#Time", "#B ÷ A before", "#B ÷ A after", "Before", "After"];
    let note = "the share of the time of all clients, and the quotient of medians of each script by itself";
    let mut table = Table::new("Scripts", note, &columns);
    table.sorts = true;
    let of = |pairs: &[PairingAttempt]| -> Vec<StatementComparison> {
        pairs.last().map(|one| one.shown.statements.clone()).unwrap_or_default() // A study has none.
    };
    let after = of(after);
    for one in of(before) {
        let Some(other) = after.iter().find(|other| other.script == one.script) else { continue };
        let ratio = |one: &StatementComparison| {
            one.alone.median.as_ref().map_or_else(|| "–".to_owned(), MetricRatio::words)
        };
        let cells = [
            one.script.clone(),
            number::percent(one.time),
            ratio(&one),
            ratio(other),
            one.verdict.words().to_owned(),
            other.verdict.words().to_owned(),
        ];
        table.row(cells);
    }
    table
}

fn figures(differences: &[MetricDifference]) -> Table {
    let note = "better or worse takes several runs of either side, or pgrig compare";
    let columns = ["Point", "Metric", "#Before", "#After", "#After ÷ before", "Meaning"];
    let mut table = Table::new("Figures", note, &columns);
    table.sorts = true;
    for one in differences {
        let figure = |value: f64, is_at_least: bool| {
            format!("{}{}", if is_at_least { "> " } else { "" }, number::figure(value))
        };
        let [before_at_least, after_at_least] = one.is_at_least;
        let cells = [
            one.point.clone(),
            match one.metric.unit {
                "" => one.metric.name.to_owned(),
                unit => format!("{}, {unit}", one.metric.name),
            },
            figure(one.before, before_at_least),
            figure(one.after, after_at_least),
            one.ratio.as_ref().map_or_else(|| "–".to_owned(), ratio),
        ];
        let mut row: Vec<Cell> = cells.into_iter().map(Cell::from).collect();
        let mark = (one.change == DifferenceMeaning::CannotTell).then_some(Outcome::Unsure);
        row.push(Cell { text: one.change.words().to_owned(), mark });
        table.rows.push(row);
    }
    table
}

fn ratio(ratio: &ConfidenceInterval) -> String {
    match ratio.n {
        1 => format!("{}, one round", number::figure(ratio.point)),
        _ => {
            let (value, range) = number::with_interval(ratio.point, ratio.low, ratio.high);
            format!("{value} {range}")
        }
    }
}
