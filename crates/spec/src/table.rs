//! Tables that a study makes of its trials: a row for each kind of them, a column for each figure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::catalogue::{Metric, catalogue, metric};
use crate::claim::{check_part, made_in, report};
use crate::expression::{ClaimExpression, Target, TrialCondition};
use crate::fields::{self, Fields};
use crate::problem::Problems;
use crate::profile::StudyProfile;
use crate::value::{Is, Value};

/// A table of a study's own.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyTable {
    /// Title of the table.
    pub title: String,
    /// Note for the reader.
    pub note: String,
    /// The figures.
    pub columns: Vec<TableColumn>,
    /// The rows.
    pub rows: Vec<TableRow>,
    /// True if it answers the study's question: it stands before the claims.
    pub is_first: bool,
    /// The trials that are listed one by one below it, with the command that runs each again.
    pub listed: Option<TrialCondition>,
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct TableColumn {
    /// In words.
    pub says: String,
    /// The figure.
    pub figure: ColumnFigure,
    /// The part of a trial whose metrics are meant; empty for those of the whole trial.
    pub of: String,
}

/// Figure of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnFigure {
    /// The row's own value of that name.
    Value(String),
    /// The row's fact of that group.
    Fact(String),
    /// Number of the row's trials that have a metric.
    Trials(&'static Metric),
    /// In how many of them a condition is true.
    Count(TrialCondition),
    /// The rate of that which they do not rule out, at 95 %.
    Rate(TrialCondition),
    /// The median of a metric over them.
    Median(&'static Metric),
    /// The largest value.
    Max(&'static Metric),
    /// The sum, and in how many of the trials it is above zero.
    Sum(&'static Metric),
}

impl ColumnFigure {
    /// The metrics of a trial that it rests on.
    pub fn metrics(&self) -> &[&'static Metric] {
        match self {
            ColumnFigure::Value(_) | ColumnFigure::Fact(_) => &[],
            ColumnFigure::Trials(metric)
            | ColumnFigure::Median(metric)
            | ColumnFigure::Max(metric)
            | ColumnFigure::Sum(metric) => std::slice::from_ref(metric),
            ColumnFigure::Count(condition) | ColumnFigure::Rate(condition) => condition.metrics(),
        }
    }
}

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub struct TableRow {
    /// In words.
    pub says: String,
    /// Indices of the points whose trials it speaks of.
    pub points: Vec<usize>,
    /// The values, by name.
    pub values: BTreeMap<String, ClaimExpression>,
    /// The name of its fact; empty where it has none.
    pub fact: String,
    /// True if the table made it, of one point: it is shown where that point was run.
    pub is_of_each: bool,
    /// The phase that it speaks of; empty for the whole window.
    pub phase: String,
}

impl StudyTable {
    /// Reads one table; `None` if it is not made in this profile, or is wrong.
    pub(crate) fn parse(
        value: &Value,
        text: &str,
        profile: StudyProfile,
        targets: &Arc<[Target]>,
        problems: &Problems,
    ) -> Option<StudyTable> {
        let fields = Fields::of("a table", value, problems)?;
        let is_made = made_in(&fields, profile);
        fields.required("title");
        let title = fields.text("title").unwrap_or_default().to_owned(); // That it is missing was said.
        let note = fields.text("note").unwrap_or_default().to_owned(); // Not every table has a note.
        let listed = fields.value("list").and_then(|value| condition("list", value, text, &fields));
        let columns: Vec<TableColumn> =
            fields.list("columns").iter().filter_map(|one| column(one, text, &fields)).collect();
        let rows = fields.list("rows").iter();
        let rows: Vec<TableRow> = match is_made {
            true => {
                let rows =
                    rows.filter_map(|one| row(one, text, profile, targets, &columns, problems));
                each(&fields, targets).into_iter().chain(rows).collect()
            }
            false => Vec::new(),
        };
        let is_first = fields.boolean("first").unwrap_or(false);
        let points: BTreeSet<usize> = rows.iter().flat_map(|row| row.points.clone()).collect();
        for (column, value) in columns.iter().zip(fields.list("columns")) {
            let given = Fields::of("a column", value, problems)?;
            check_part(&column.of, &given, points.iter().map(|point| &targets[*point]));
        }
        if columns.is_empty() {
            problems.add(fields.span(), "a table without columns");
        }
        fields.finish();
        is_made.then_some(StudyTable { title, note, columns, rows, is_first, listed })
    }
}

fn column(value: &Value, text: &str, table: &Fields<'_>) -> Option<TableColumn> {
    let problems = table.problems;
    let fields = Fields::of("a column", value, problems)?;
    fields.required("says");
    let says = fields.text("says").unwrap_or_default().to_owned(); // That it is missing was said.
    let keys: Vec<&'static str> =
        FIGURES.into_iter().filter(|key| fields.entry(key).is_some()).collect();
    let figure = match keys[..] {
        [key] => fields.value(key).and_then(|given| figure(key, given, text, &fields)),
        _ => {
            let hint = format!("one of {}", FIGURES.join(", "));
            problems.hinted(&value.span, "a column has one kind of figure", hint);
            None
        }
    };
    let of = fields.text("of").unwrap_or_default().to_owned(); // An empty scope is the whole trial.
    fields.finish();
    Some(TableColumn { says, figure: figure?, of })
}

fn figure(key: &str, value: &Value, text: &str, fields: &Fields<'_>) -> Option<ColumnFigure> {
    let named = || fields::text(key, value, fields.problems);
    let measured = || {
        let name = named()?;
        let found = metric(name);
        if found.is_none() {
            let known = catalogue().map(|metric| metric.name);
            fields.problems.unknown(&value.span, "metric", name, known);
        }
        found
    };
    Some(match key {
        "value" => ColumnFigure::Value(named()?.to_owned()),
        "fact" => ColumnFigure::Fact(named()?.to_owned()),
        "trials" => ColumnFigure::Trials(measured()?),
        "p50" => ColumnFigure::Median(measured()?),
        "max" => ColumnFigure::Max(measured()?),
        "sum" => ColumnFigure::Sum(measured()?),
        "count" => ColumnFigure::Count(condition(key, value, text, fields)?),
        _ => ColumnFigure::Rate(condition(key, value, text, fields)?),
    })
}

fn condition(key: &str, value: &Value, text: &str, fields: &Fields<'_>) -> Option<TrialCondition> {
    let source = fields::text(key, value, fields.problems)?;
    let condition = TrialCondition::parse(source);
    condition.map_err(|fault| report(fault, source, value, text, fields.problems)).ok()
}

fn row(
    value: &Value,
    text: &str,
    profile: StudyProfile,
    targets: &Arc<[Target]>,
    columns: &[TableColumn],
    problems: &Problems,
) -> Option<TableRow> {
    let fields = Fields::of("a row", value, problems)?;
    if !made_in(&fields, profile) {
        return None;
    }
    fields.required("says");
    let says = fields.text("says").unwrap_or_default().to_owned(); // That it is missing was said.
    let points = points("trials", &fields, targets);
    let mut values = BTreeMap::new();
    for entry in fields.named("values") {
        let shown = columns.iter().filter_map(|column| match &column.figure {
            ColumnFigure::Value(name) => Some(name),
            _ => None,
        });
        if !shown.into_iter().any(|name| *name == entry.key) {
            let message = format!("no column shows the value \"{}\"", entry.key);
            problems.add(&entry.key_span, message);
        }
        let Is::Text(source) = &entry.value.is else {
            problems.add(&entry.value.span, "a value is an expression, in quotes");
            continue;
        };
        match ClaimExpression::parse(source, targets) {
            Ok(expression) => {
                values.insert(entry.key.clone(), expression);
            }
            Err(fault) => report(fault, source, &entry.value, text, problems),
        }
    }
    let fact = fields.text("fact").unwrap_or_default().to_owned(); // Most rows have none.
    fields.finish();
    Some(TableRow { says, points, values, fact, is_of_each: false, phase: String::new() })
}

/// A row for each point that fits the table's pattern. What it says is the point's name until the words of
/// scenarios and variants are known.
fn each(table: &Fields<'_>, targets: &[Target]) -> Vec<TableRow> {
    let row = |point: usize| TableRow {
        says: targets[point].name.to_string(),
        points: vec![point],
        values: BTreeMap::new(),
        fact: String::new(),
        is_of_each: true,
        phase: String::new(),
    };
    points("each", table, targets).into_iter().map(row).collect()
}

/// Indices of the points that fit the pattern of a field; none without the field.
fn points(key: &'static str, fields: &Fields<'_>, targets: &[Target]) -> Vec<usize> {
    let Some(pattern) = fields.text(key) else { return Vec::new() };
    let fits = |point: &usize| targets[*point].name.fits(pattern);
    let points: Vec<usize> = (0..targets.len()).filter(fits).collect();
    if points.is_empty() {
        let span = fields.value(key).map_or(fields.span(), |value| &value.span);
        fields.problems.add(span, format!("no trial of this profile fits \"{pattern}\""));
    }
    points
}

const FIGURES: [&str; 8] = ["value", "fact", "trials", "count", "rate", "p50", "max", "sum"];
