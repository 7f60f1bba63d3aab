//! Latency in figures: percentiles of each line, and every statement of a transaction.

use record::Trial;
use stats::Latency;

use crate::grouping::Group;
use crate::json::Json;
use crate::number;
use crate::percentiles::{self, Distribution};
use crate::view::{Cell, Table};

/// The percentiles of a report, everywhere the same.
const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)];

/// Latencies of all groups: the tables, and the figures for the curves.
pub(crate) fn latency(groups: &[Group], trials: &[Trial]) -> (Vec<Table>, Vec<Json>) {
    let mut tables = Vec::new();
    let mut curves = Vec::new();
    for group in groups {
        let distributions = percentiles::distributions(group, trials);
        if distributions[0].lines.iter().all(Option::is_none) {
            continue;
        }
        let title = |what: &str| match group.label.as_str() {
            "" => what.to_owned(),
            label => format!("{what}, {label}"),
        };
        tables.push(percentile_table(&title("Latency in ms"), group, &distributions[0]));
        tables.extend(statement_table(&title("Statements"), group, &distributions));
        let label = if group.label.is_empty() { "all" } else { &group.label };
        curves.push(Json::Object(vec![
            ("label", Json::text(label)),
            ("of", Json::list(&distributions, |distribution| curve(group, distribution))),
        ]));
    }
    (tables, curves)
}

fn percentile_table(title: &str, group: &Group, whole: &Distribution) -> Table {
    let mut columns = vec![""];
    let names: Vec<String> = QUANTILES.iter().map(|(name, _)| format!("#{name}")).collect();
    columns.extend(names.iter().map(String::as_str));
    columns.extend(["#max", "#mean", "#std dev", "#transactions"]);
    let several = group.lines.iter().any(|line| line.trials.len() > 1);
    let rounds = if several { ", all rounds together" } else { "" };
    let note = format!("of whole transactions inside the window{rounds}");
    let mut table = Table::new(title, &note, &columns);
    for (line, latency) in group.lines.iter().zip(&whole.lines) {
        let Some(latency) = latency else {
            continue;
        };
        let mut row = vec![line.label.clone()];
        row.extend(QUANTILES.iter().map(|&(_, q)| ms(latency.quantile_ns(q).map(|v| v as f64))));
        row.push(ms(latency.max_ns().map(|v| v as f64)));
        row.push(ms(latency.mean_ns()));
        row.push(ms(latency.stddev_ns()));
        row.push(number::count(latency.count()));
        table.row(row);
    }
    table
}

/// Statements of all lines, in script order; the share says where a transaction's time goes.
fn statement_table(title: &str, group: &Group, distributions: &[Distribution]) -> Option<Table> {
    let statements = &distributions[1..];
    if statements.is_empty() {
        return None;
    }
    let columns =
        ["Statement", "Of", "#mean ms", "#p50 ms", "#p99 ms", "#share of the time", "#executions"];
    let note = "time from sending a statement to its answer";
    let mut table = Table::new(title, note, &columns);
    for (position, line) in group.lines.iter().enumerate() {
        let each = statements.iter().filter_map(|d| Some((&d.of, d.lines[position].as_ref()?)));
        let each: Vec<(&String, &Latency)> = each.collect();
        let total_ns: u128 = each.iter().map(|(_, latency)| latency.sum_ns()).sum();
        for (of, latency) in &each {
            let share = latency.sum_ns() as f64 / (total_ns.max(1)) as f64;
            table.rows.push(
                [
                    (*of).clone(),
                    line.label.clone(),
                    ms(latency.mean_ns()),
                    ms(latency.quantile_ns(0.5).map(|v| v as f64)),
                    ms(latency.quantile_ns(0.99).map(|v| v as f64)),
                    number::percent(share),
                    number::count(latency.count()),
                ]
                .map(Cell::from)
                .into(),
            );
        }
    }
    Some(table)
}

fn ms(ns: Option<f64>) -> String {
    ns.map_or_else(|| "–".to_owned(), |ns| number::figure(ns / 1e6))
}

fn curve(group: &Group, distribution: &Distribution) -> Json {
    let most = distribution.lines.iter().flatten().map(Latency::count).max().unwrap_or(1);
    let grid = percentiles::grid(most);
    let lines = group.lines.iter().zip(&distribution.lines).enumerate();
    let lines = lines.filter_map(|(colour, (line, latency))| {
        let values = percentiles::curve(latency.as_ref()?, &grid);
        Some(Json::Object(vec![
            ("label", Json::text(&line.label)),
            ("colour", Json::Exact(colour as u64 % 9)),
            ("dashed", Json::Flag(colour % 2 == 1)),
            ("values", Json::series(values)),
        ]))
    });
    Json::Object(vec![
        ("label", Json::text(&distribution.of)),
        ("x", Json::series(grid.iter().map(|share| Some(1.0 / share)))),
        ("lines", Json::List(lines.collect())),
    ])
}
