//! Latency in figures: percentiles of each line, and every statement of a transaction.

use record::Trial;
use stats::{LatencyHistogram, censored};

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
        tables.push(percentile_table(&title("Latency in ms"), group, &distributions[0], trials));
        tables.extend(statement_table(&title("Statements"), group, &distributions));
        let label = if group.label.is_empty() { "all" } else { &group.label };
        curves.push(Json::Object(vec![
            ("label", Json::text(label)),
            ("of", Json::list(&distributions, |distribution| curve(group, distribution))),
        ]));
    }
    (tables, curves)
}

fn percentile_table(title: &str, group: &Group, whole: &Distribution, trials: &[Trial]) -> Table {
    let mut columns = vec![""];
    let names: Vec<String> = QUANTILES.iter().map(|(name, _)| format!("#{name}")).collect();
    columns.extend(names.iter().map(String::as_str));
    columns.extend(["#max", "#mean", "#std dev", "#transactions"]);
    let several = group.lines.iter().any(|line| line.trials.len() > 1);
    let rounds = if several { ", all rounds together" } else { "" };
    let [p99, p99_9] = [0.99, 0.999].map(|q| number::count(censored::samples_needed(q)));
    let note = format!(
        "of whole transactions inside the window{rounds}; to know p99 takes {p99} transactions, and \
         p99.9 {p99_9}: in parentheses from fewer; > where transactions that had not ended at the \
         close leave a lower bound only"
    );
    let mut table = Table::new(title, &note, &columns);
    for (line, latency) in group.lines.iter().zip(&whole.lines) {
        let Some(latency) = latency else {
            continue;
        };
        let open = percentiles::open(line, trials);
        let mut row = vec![line.label.clone()];
        row.extend(QUANTILES.iter().map(|&(_, q)| percentile(latency, &open, q)));
        row.push(percentile(latency, &open, 1.0));
        row.push(ms(latency.mean_ns()));
        row.push(ms(latency.stddev_ns()));
        row.push(number::count(latency.count()));
        table.row(row);
    }
    table
}

/// A percentile in milliseconds, or what is known of it. A quantile of 1 is the longest.
fn percentile(ended: &LatencyHistogram, open: &LatencyHistogram, quantile: f64) -> String {
    let Some(found) = censored::quantile(ended, open, quantile) else { return ms(None) };
    let sign = if found.is_at_least { "> " } else { "" };
    let value = format!("{sign}{}", ms(Some(found.value_ns as f64)));
    let is_known = quantile == 1.0 || ended.count() >= censored::samples_needed(quantile);
    if is_known { value } else { format!("({value})") }
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
        let each: Vec<(&String, &LatencyHistogram)> = each.collect();
        let total_ns: u128 = each.iter().map(|(_, latency)| latency.sum_ns()).sum();
        for (of, latency) in &each {
            let share = latency.sum_ns() as f64 / (total_ns.max(1)) as f64;
            table.rows.push(
                [
                    (*of).clone(),
                    line.label.clone(),
                    ms(latency.mean_ns()),
                    ms(latency.quantile_ns(0.5).map(|v| v as f64)),
                    percentile(latency, &LatencyHistogram::new(), 0.99),
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
    let most = distribution.lines.iter().flatten().map(LatencyHistogram::count).max().unwrap_or(1);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_says_what_is_known_of_it() {
        let of = |ms: &[(u64, u64)]| {
            let mut latency = LatencyHistogram::new();
            ms.iter().for_each(|(ms, times)| {
                (0..*times).for_each(|_| latency.record_ns(ms * 1_000_000));
            });
            latency
        };
        let check = |ended: &[(u64, u64)], open: &[(u64, u64)], quantile: f64, expected: &str| {
            let value = percentile(&of(ended), &of(open), quantile);
            assert_eq!(value, expected, "{ended:?} {open:?} {quantile}");
        };
        check(&[(10, 500)], &[], 0.99, "10.0");
        check(&[(10, 200)], &[], 0.99, "(10.0)");
        check(&[(10, 200)], &[], 0.5, "10.0");
        check(&[(10, 500)], &[(900, 20)], 0.99, "> 900");
        check(&[(10, 500)], &[(900, 20)], 0.5, "10.0");
        check(&[(10, 500)], &[(900, 1)], 1.0, "> 900");
        check(&[], &[], 0.5, "–");
    }
}
