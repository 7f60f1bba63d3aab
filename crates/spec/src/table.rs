//! Tables that a study makes of its trials: a row for each kind of them, a column for each figure.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::catalogue::{Metric, catalogue, metric};
use crate::claim::{made_in, report};
use crate::expression::{Condition, Expression, Target};
use crate::fields::{self, Fields};
use crate::problem::Problems;
use crate::profile::Profile;
use crate::value::{Is, Value};

/// A table of a study's own.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Title of the table.
    pub title: String,
    /// Note for the reader.
    pub note: String,
    /// Its figures.
    pub columns: Vec<Column>,
    /// Its rows.
    pub rows: Vec<Row>,
    /// The trials that are listed one by one below it, with the command that runs each again.
    pub listed: Option<Condition>,
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// In words.
    pub says: String,
    /// Its figure.
    pub figure: Figure,
}

/// Figure of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Figure {
    /// The row's own value of that name.
    Value(String),
    /// The row's fact of that group.
    Fact(String),
    /// Number of the row's trials that have a metric.
    Trials(&'static Metric),
    /// In how many of them a condition is true.
    Count(Condition),
    /// The rate of that which they do not rule out, at 95 %.
    Rate(Condition),
    /// The median of a metric over them.
    Median(&'static Metric),
    /// Its largest value.
    Max(&'static Metric),
}

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// In words.
    pub says: String,
    /// Indices of the points whose trials it speaks of.
    pub points: Vec<usize>,
    /// Its values, by name.
    pub values: BTreeMap<String, Expression>,
    /// The name of its fact; empty where it has none.
    pub fact: String,
}

impl Table {
    /// Reads one table; `None` if it is not made in this profile, or is wrong.
    pub(crate) fn parse(
        value: &Value,
        text: &str,
        profile: Profile,
        targets: &Arc<[Target]>,
        problems: &Problems,
    ) -> Option<Table> {
        let fields = Fields::of("a table", value, problems)?;
        let is_made = made_in(&fields, profile);
        fields.required("title");
        let title = fields.text("title").unwrap_or_default().to_owned();
        let note = fields.text("note").unwrap_or_default().to_owned();
        let listed = fields.value("list").and_then(|value| condition("list", value, text, &fields));
        let columns: Vec<Column> =
            fields.list("columns").iter().filter_map(|one| column(one, text, &fields)).collect();
        let rows = fields.list("rows").iter();
        let rows: Vec<Row> = match is_made {
            true => {
                let rows =
                    rows.filter_map(|one| row(one, text, profile, targets, &columns, problems));
                rows.collect()
            }
            false => Vec::new(),
        };
        if columns.is_empty() {
            problems.add(fields.span(), "a table without columns");
        }
        fields.finish();
        is_made.then_some(Table { title, note, columns, rows, listed })
    }
}

fn column(value: &Value, text: &str, table: &Fields<'_>) -> Option<Column> {
    let problems = table.problems;
    let fields = Fields::of("a column", value, problems)?;
    fields.required("says");
    let says = fields.text("says").unwrap_or_default().to_owned();
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
    fields.finish();
    Some(Column { says, figure: figure? })
}

fn figure(key: &str, value: &Value, text: &str, fields: &Fields<'_>) -> Option<Figure> {
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
        "value" => Figure::Value(named()?.to_owned()),
        "fact" => Figure::Fact(named()?.to_owned()),
        "trials" => Figure::Trials(measured()?),
        "p50" => Figure::Median(measured()?),
        "max" => Figure::Max(measured()?),
        "count" => Figure::Count(condition(key, value, text, fields)?),
        _ => Figure::Rate(condition(key, value, text, fields)?),
    })
}

fn condition(key: &str, value: &Value, text: &str, fields: &Fields<'_>) -> Option<Condition> {
    let source = fields::text(key, value, fields.problems)?;
    let condition = Condition::parse(source);
    condition.map_err(|fault| report(fault, source, value, text, fields.problems)).ok()
}

fn row(
    value: &Value,
    text: &str,
    profile: Profile,
    targets: &Arc<[Target]>,
    columns: &[Column],
    problems: &Problems,
) -> Option<Row> {
    let fields = Fields::of("a row", value, problems)?;
    if !made_in(&fields, profile) {
        return None;
    }
    fields.required("says");
    let says = fields.text("says").unwrap_or_default().to_owned();
    let pattern = fields.text("trials");
    let fits = |target: &Target| pattern.is_some_and(|pattern| target.name.fits(pattern));
    let points: Vec<usize> = (0..targets.len()).filter(|point| fits(&targets[*point])).collect();
    if let (Some(pattern), true) = (pattern, points.is_empty()) {
        let span = fields.value("trials").map_or(fields.span(), |value| &value.span);
        problems.add(span, format!("no trial of this profile fits \"{pattern}\""));
    }
    let mut values = BTreeMap::new();
    for entry in fields.named("values") {
        let shown = columns.iter().filter_map(|column| match &column.figure {
            Figure::Value(name) => Some(name),
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
        match Expression::parse(source, targets) {
            Ok(expression) => {
                values.insert(entry.key.clone(), expression);
            }
            Err(fault) => report(fault, source, &entry.value, text, problems),
        }
    }
    let fact = fields.text("fact").unwrap_or_default().to_owned();
    fields.finish();
    Some(Row { says, points, values, fact })
}

const FIGURES: [&str; 7] = ["value", "fact", "trials", "count", "rate", "p50", "max"];
