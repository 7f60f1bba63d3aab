//! A study's own tables, filled from its trials.

use record::{AttemptEnding, MachineFact, Note, Trial};
use spec::{ColumnFigure, Metric, Study, StudyTable, TableRow, TrialCondition};

use crate::rounds::value_of;
use crate::value;

/// A table and its figures.
#[derive(Clone, Debug, PartialEq)]
pub struct FilledTable<'s> {
    /// The table.
    pub table: &'s StudyTable,
    /// The rows, those that the table made of points without a trial left out.
    pub rows: Vec<&'s TableRow>,
    /// The cells, row by row.
    pub cells: Vec<Vec<TableCell>>,
    /// Trials that it lists one by one, in the order of its rows.
    pub listed: Vec<ListedTrial<'s>>,
}

/// Content of a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum TableCell {
    /// Nothing was measured.
    Nothing,
    /// A value with its interval.
    Value(stats::ConfidenceInterval),
    /// A fact from the record.
    Fact(String),
    /// A number of trials.
    Trials(usize),
    /// Number of trials in which a condition is true.
    Count {
        /// In which it is true.
        count: usize,
        /// In which it could be seen.
        of: usize,
    },
    /// The lowest and the highest rate that are not ruled out.
    Rate(f64, f64),
    /// The sum of a metric.
    Sum {
        /// The metric.
        metric: &'static Metric,
        /// The sum.
        value: f64,
        /// Trials in which it is above zero.
        count: usize,
        /// Trials that have it.
        of: usize,
    },
    /// A figure of a metric.
    Figure {
        /// The metric.
        metric: &'static Metric,
        /// The figure.
        value: f64,
    },
}

impl FilledTable<'_> {
    /// True if something was measured.
    #[must_use]
    pub fn has_figures(&self) -> bool {
        let is_empty = |cell: &TableCell| matches!(cell, TableCell::Nothing | TableCell::Trials(0));
        !self.cells.iter().flatten().all(is_empty)
    }
}

/// A trial that is listed.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedTrial<'s> {
    /// The row.
    pub row: &'s TableRow,
    /// The number.
    pub number: usize,
    /// Figures of the table's columns, as far as the trial has them.
    pub figures: Vec<(&'static Metric, f64)>,
    /// Notes on the trial.
    pub notes: Vec<Note>,
}

/// Fills the tables of a study. Only trials that count are in them.
pub fn tables<'s>(
    study: &'s Study,
    facts: &[MachineFact],
    trials: &[Trial],
) -> Vec<FilledTable<'s>> {
    study.tables.iter().map(|table| fill(study, table, facts, trials)).collect()
}

fn fill<'s>(
    study: &'s Study,
    table: &'s StudyTable,
    facts: &[MachineFact],
    trials: &[Trial],
) -> FilledTable<'s> {
    let (mut rows, mut cells, mut listed) = (Vec::new(), Vec::new(), Vec::new());
    for row in &table.rows {
        let is_own = |trial: &&Trial| {
            let point = study.point(&trial.variant, &trial.scenario, &trial.axes);
            point.is_some_and(|point| row.points.contains(&point))
        };
        let was_run = trials.iter().any(|trial| is_own(&trial));
        if row.is_of_each && !was_run {
            continue;
        }
        rows.push(row);
        let counts = |trial: &&Trial| trial.ending == AttemptEnding::Done && is_own(trial);
        let own: Vec<&Trial> = trials.iter().filter(counts).collect();
        let figures = table.columns.iter().map(|column| match &column.figure {
            ColumnFigure::Value(name) => {
                let expression = row.values.get(name);
                let value = expression.and_then(|one| value::estimate(study, one, trials));
                value.map_or(TableCell::Nothing, TableCell::Value)
            }
            figure => cell(figure, &column.of, row, facts, &own),
        });
        cells.push(figures.collect());
        let Some(condition) = &table.listed else { continue };
        let is_listed = |trial: &&&Trial| is_true(condition, "", trial) == Some(true);
        listed.extend(own.iter().filter(is_listed).map(|trial| list(table, row, trial)));
    }
    FilledTable { table, rows, cells, listed }
}

/// A cell that rests on the row's own trials, or on a fact.
fn cell(
    figure: &ColumnFigure,
    of: &str,
    row: &TableRow,
    facts: &[MachineFact],
    trials: &[&Trial],
) -> TableCell {
    let values = |metric: &Metric| -> Vec<f64> {
        trials.iter().filter_map(|trial| value_of(trial, metric, of)).collect()
    };
    let truths = |condition: &TrialCondition| -> Vec<bool> {
        trials.iter().filter_map(|trial| is_true(condition, of, trial)).collect()
    };
    let of_metric = |metric, value: Option<f64>| {
        value.map_or(TableCell::Nothing, |value| TableCell::Figure { metric, value })
    };
    match figure {
        ColumnFigure::Value(_) => TableCell::Nothing,
        ColumnFigure::Fact(group) => {
            let fact = facts.iter().find(|fact| fact.group == *group && fact.name == row.fact);
            fact.map_or(TableCell::Nothing, |fact| TableCell::Fact(fact.value.clone()))
        }
        ColumnFigure::Trials(metric) => TableCell::Trials(values(metric).len()),
        ColumnFigure::Count(condition) => match truths(condition) {
            seen if seen.is_empty() => TableCell::Nothing,
            seen => TableCell::Count { count: count(&seen), of: seen.len() },
        },
        ColumnFigure::Rate(condition) => match truths(condition) {
            seen if seen.is_empty() => TableCell::Nothing,
            seen => {
                let (low, high) =
                    stats::failure_rate::rates(count(&seen) as u64, seen.len() as u64);
                TableCell::Rate(low, high)
            }
        },
        ColumnFigure::Median(metric) => of_metric(metric, stats::sample::median(&values(metric))),
        ColumnFigure::Max(metric) => of_metric(metric, values(metric).into_iter().reduce(f64::max)),
        ColumnFigure::Sum(metric) => match values(metric) {
            seen if seen.is_empty() => TableCell::Nothing,
            seen => TableCell::Sum {
                metric,
                value: seen.iter().sum(),
                count: seen.iter().filter(|value| **value > 0.0).count(),
                of: seen.len(),
            },
        },
    }
}

fn list<'s>(table: &StudyTable, row: &'s TableRow, trial: &Trial) -> ListedTrial<'s> {
    let mut figures: Vec<(&'static Metric, f64)> = Vec::new();
    for column in &table.columns {
        for metric in column.figure.metrics() {
            if let (Some(value), false) = (
                value_of(trial, metric, &column.of),
                figures.iter().any(|(known, _)| known.name == metric.name),
            ) {
                figures.push((metric, value));
            }
        }
    }
    ListedTrial { row, number: trial.number, figures, notes: trial.notes.clone() }
}

/// True if the condition holds in a trial; none if that was not measured.
fn is_true(condition: &TrialCondition, of: &str, trial: &Trial) -> Option<bool> {
    let metrics = condition.metrics().iter();
    let values: Option<Vec<f64>> = metrics.map(|one| value_of(trial, one, of)).collect();
    Some(condition.is_true(&values?))
}

fn count(truths: &[bool]) -> usize {
    truths.iter().filter(|is| **is).count()
}
