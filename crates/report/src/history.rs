//! The page of a history, `pgrig history plot`: figures of many records over time.

use std::collections::BTreeSet;

use askama::Template;

use crate::json::Json;
use crate::number;
use crate::page::HistoryPage;
use crate::view::Table;

/// One figure over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The study, or `compare`.
    pub study: String,
    /// Where it was measured: a side, a point.
    pub benchmark: String,
    /// What it is.
    pub name: String,
    /// Its unit; empty of a ratio.
    pub unit: String,
    /// Whether more is better.
    pub more_is_better: bool,
    /// In the order of time.
    pub points: Vec<Point>,
}

/// One result.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Wall clock, RFC 3339.
    pub time: String,
    /// The commit; empty where none is known.
    pub commit: String,
    /// The machine's fingerprint: only results of the same machine can be compared.
    pub machine: String,
    /// The value.
    pub value: f64,
    /// Lower and upper bound.
    pub bounds: Option<[f64; 2]>,
}

impl Series {
    /// `compare, B ÷ A: throughput`
    #[must_use]
    pub fn title(&self) -> String {
        format!("{}, {}: {}", self.study, self.benchmark, self.name)
    }
}

/// Every series as a chart with a line for each machine, and as a table: one HTML file that needs
/// nothing beside it.
#[must_use]
pub fn history(series: &[Series]) -> String {
    let results: BTreeSet<&str> = series
        .iter()
        .flat_map(|series| series.points.iter().map(|point| point.time.as_str()))
        .collect();
    let page = HistoryPage {
        title: format!("{} figures of {} results", series.len(), results.len()),
        curves: (0..series.len()).collect(),
        tables: series.iter().map(table).collect(),
        data: Json::Object(vec![
            ("trials", Json::List(Vec::new())),
            ("percentiles", Json::List(Vec::new())),
            ("curves", Json::list(series, curve)),
        ])
        .to_string(),
    };
    page.render().expect("writing into a string cannot fail")
}

fn curve(series: &Series) -> Json {
    let mut machines: Vec<&str> = Vec::new();
    for point in &series.points {
        if !machines.contains(&point.machine.as_str()) {
            machines.push(&point.machine);
        }
    }
    let lines = machines.iter().zip(0..).map(|(machine, colour)| {
        let of = |pick: &dyn Fn(&Point) -> f64| {
            Json::series(
                series.points.iter().map(|point| (point.machine == *machine).then(|| pick(point))),
            )
        };
        let bound = |index: usize| {
            move |point: &Point| point.bounds.map_or(point.value, |bounds| bounds[index])
        };
        let empty = || Json::List(series.points.iter().map(|_| Json::List(Vec::new())).collect());
        Json::Object(vec![
            ("label", Json::text(*machine)),
            ("colour", Json::Exact(colour)),
            ("dashed", Json::Flag(false)),
            ("values", of(&|point| point.value)),
            ("low", of(&bound(0))),
            ("high", of(&bound(1))),
            ("rounds", empty()),
            ("published", Json::series(series.points.iter().map(|_| None))),
        ])
    });
    let positions = (1..=series.points.len()).map(|position| Some(position as f64));
    Json::Object(vec![
        ("title", Json::text(series.title())),
        ("unit", Json::text(&series.unit)),
        ("axis", Json::text("result, in the order of time")),
        ("log", Json::Flag(false)),
        ("x", Json::series(positions)),
        ("lines", Json::List(lines.collect())),
    ])
}

fn table(series: &Series) -> Table {
    let better = if series.more_is_better { "more is better" } else { "less is better" };
    let columns = ["Result", "Time", "Commit", "#Value", "#Interval", "Machine"];
    let mut table = Table::new(&series.title(), better, &columns);
    for (point, position) in series.points.iter().zip(1..) {
        let (value, interval) = match point.bounds {
            Some([low, high]) => number::with_interval(point.value, low, high),
            None => (number::figure(point.value), String::new()),
        };
        let texts = [position.to_string(), point.time.clone(), point.commit.clone()];
        table.row(texts.into_iter().chain([value, interval, point.machine.clone()]));
    }
    table.folded = true;
    table
}
