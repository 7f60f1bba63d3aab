//! A study's own tables, as wide as the terminal, and as JSON.

use report::cell_words;
use serde_json::{Value, json};
use spec::ColumnFigure;
use verdict::{FilledTable, TableCell};

use crate::summary::wrapped;
use console::terminal::{self, FAINT, STRONG, styled};

/// Prints those tables that stand before the claims, or the others, as far as something was measured.
pub(crate) fn print(tables: &[FilledTable<'_>], first: bool) {
    let shown = tables.iter().filter(|one| one.table.is_first == first && one.has_figures());
    for tabled in shown {
        terminal::result("");
        terminal::result(format_args!("  {}", styled(STRONG, &tabled.table.title)));
        let head = tabled.table.columns.iter().map(|column| column.says.as_str());
        let rows = tabled.rows.iter().zip(&tabled.cells);
        let rows: Vec<(&str, Vec<String>)> =
            rows.map(|(row, cells)| (&*row.says, cells.iter().map(cell_words).collect())).collect();
        let columns = terminal::result_columns().saturating_sub(2);
        lines(&head.collect::<Vec<_>>(), &rows, columns).iter().for_each(|(is_head, line)| {
            let line = format!("  {line}");
            match is_head {
                true => terminal::result(styled(FAINT, line)),
                false => terminal::result(line),
            }
        });
    }
}

/// The lines of a table, and which are its head. A head is broken at spaces so that its column is no wider than
/// its cells need; where no room is left for what the rows say, each cell has a line of its own.
fn lines(head: &[&str], rows: &[(&str, Vec<String>)], columns: usize) -> Vec<(bool, String)> {
    let width = |text: &str| text.chars().count();
    let of_column = |column: usize| {
        let words = head[column].split(' ').map(width);
        let cells = rows.iter().map(|(_, cells)| width(&cells[column]));
        words.chain(cells).max().expect("even an empty head is one word")
    };
    let widths: Vec<usize> = (0..head.len()).map(of_column).collect();
    let figures: usize = widths.iter().map(|width| width + GAP).sum();
    // Without a row there is nothing to say beside the figures.
    let longest = rows.iter().map(|(says, _)| width(says)).max().unwrap_or(0);
    let says = longest.min(columns.saturating_sub(figures));
    if says < longest.min(SAYS_COLUMNS_MIN) {
        let cell = |(head, cell): (&&str, &String)| (false, format!("    {head}: {cell}"));
        let row = |(says, cells): &(&str, Vec<String>)| {
            let cells: Vec<_> = head.iter().zip(cells).map(cell).collect();
            [(false, (*says).to_owned())].into_iter().chain(cells)
        };
        return rows.iter().flat_map(row).collect();
    }
    let line = |first: &str, cells: &[&str]| {
        let cells =
            cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:>w$}", w = width + GAP));
        format!("{first:says$}{}", cells.collect::<String>()).trim_end().to_owned()
    };
    let heads: Vec<Vec<&str>> =
        head.iter().zip(&widths).map(|(text, width)| wrapped(text, *width)).collect();
    // A table without figures has no head.
    let height = heads.iter().map(Vec::len).max().unwrap_or(0);
    // Heads stand on the line above the figures.
    let head_line = |at: usize| {
        let cells = heads
            .iter()
            .map(|lines| (at + lines.len()).checked_sub(height).map_or("", |at| lines[at]));
        (true, line("", &cells.collect::<Vec<_>>()))
    };
    let row = |(text, cells): &(&str, Vec<String>)| {
        let mut lines = wrapped(text, says).into_iter();
        let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
        // A row whose text is empty has its figures alone.
        let first = (false, line(lines.next().unwrap_or_default(), &cells));
        [first].into_iter().chain(lines.map(|more| (false, more.to_owned()))).collect::<Vec<_>>()
    };
    (0..height).map(head_line).chain(rows.iter().flat_map(row)).collect()
}

/// Columns between two figures.
const GAP: usize = 3;

/// In fewer columns what a row says is not read.
const SAYS_COLUMNS_MIN: usize = 20;

/// The tables for programs: figures in the units of their metrics.
pub(crate) fn json(tables: &[FilledTable<'_>]) -> Vec<Value> {
    let table = |tabled: &FilledTable<'_>| {
        let columns = tabled.table.columns.iter().map(|column| {
            let metrics: Vec<&str> = column.figure.metrics().iter().map(|one| one.name).collect();
            json!({ "says": column.says, "figure": kind(&column.figure), "metrics": metrics, "of": column.of })
        });
        let rows = tabled.rows.iter().zip(&tabled.cells);
        let rows = rows.map(|(row, cells)| {
            let cells: Vec<Value> = cells.iter().map(cell).collect();
            json!({ "says": row.says, "cells": cells })
        });
        json!({
            "title": tabled.table.title,
            "columns": columns.collect::<Vec<_>>(),
            "rows": rows.collect::<Vec<_>>(),
        })
    };
    tables.iter().map(table).collect()
}

fn kind(figure: &ColumnFigure) -> &'static str {
    match figure {
        ColumnFigure::Value(_) => "value",
        ColumnFigure::Fact(_) => "fact",
        ColumnFigure::Trials(_) => "trials",
        ColumnFigure::Count(_) => "count",
        ColumnFigure::Rate(_) => "rate",
        ColumnFigure::Median(_) => "p50",
        ColumnFigure::Max(_) => "max",
        ColumnFigure::Sum(_) => "sum",
    }
}

fn cell(cell: &TableCell) -> Value {
    match cell {
        TableCell::Nothing => Value::Null,
        TableCell::Value(interval) => {
            json!({ "value": interval.point, "low": interval.low, "high": interval.high, "n": interval.n })
        }
        TableCell::Fact(text) => json!(text),
        TableCell::Trials(trials) => json!(trials),
        TableCell::Count { count, of } => json!({ "count": count, "of": of }),
        TableCell::Rate(low, high) => json!({ "low": low, "high": high }),
        TableCell::Sum { value, count, of, .. } => {
            json!({ "value": value, "count": count, "of": of })
        }
        TableCell::Figure { value, .. } => json!(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_fits_the_terminal_or_is_a_list() {
        let check = |columns: usize, expected: &[&str]| {
            let rows =
                [("the primary is killed: Patroni", vec!["12.0 s".to_owned(), "–".to_owned()])];
            let found = lines(&["Writes stopped", "Lost"], &rows, columns);
            let found: Vec<&str> = found.iter().map(|(_, line)| line.as_str()).collect();
            assert_eq!(found, expected, "{columns}");
        };
        check(
            80,
            &[
                "                                  Writes",
                "                                 stopped   Lost",
                "the primary is killed: Patroni    12.0 s      –",
            ],
        );
        check(
            40,
            &[
                "                           Writes",
                "                          stopped   Lost",
                "the primary is killed:     12.0 s      –",
                "Patroni",
            ],
        );
        check(30, &["the primary is killed: Patroni", "    Writes stopped: 12.0 s", "    Lost: –"]);
    }
}
