//! The tables that a study makes of its trials, and the trials that they list one by one.

use record::Header;
use spec::{Figure, Metric};
use verdict::{Cell as Found, Listed, Tabled};

use crate::number;
use crate::view::Table;

/// Each table of which something was measured, with the list below it where it has one.
pub(crate) fn tables(tabled: &[Tabled<'_>], header: &Header) -> Vec<Table> {
    let is_empty = |cell: &Found| matches!(cell, Found::Nothing | Found::Trials(0));
    let filled = tabled.iter().filter(|one| !one.cells.iter().flatten().all(is_empty));
    filled.flat_map(|one| [Some(table(one)), list(one, header)]).flatten().collect()
}

fn table(tabled: &Tabled<'_>) -> Table {
    let columns = tabled.table.columns.iter().map(|column| match &column.figure {
        Figure::Fact(_) => column.says.clone(),
        _ => format!("#{}", column.says),
    });
    let columns: Vec<String> = [String::new()].into_iter().chain(columns).collect();
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut table = Table::new(&tabled.table.title, &tabled.table.note, &columns);
    for (row, cells) in tabled.table.rows.iter().zip(&tabled.cells) {
        let cells = cells.iter().map(words);
        table.row([row.says.clone()].into_iter().chain(cells));
    }
    table
}

fn words(cell: &Found) -> String {
    match cell {
        Found::Nothing => "–".to_owned(),
        Found::Value(interval) if interval.n == 1 => number::figure(interval.point),
        Found::Value(interval) => {
            let (middle, range) =
                number::with_interval(interval.point, interval.low, interval.high);
            format!("{middle} {range}")
        }
        Found::Fact(text) => text.clone(),
        Found::Trials(trials) => number::count(*trials as u64),
        Found::Count { count, of } => format!("{count} of {of}"),
        Found::Rate(rate) if *rate < 1.0 => format!("≤ {}", number::percent(*rate)),
        Found::Rate(_) => "any".to_owned(),
        Found::Figure { metric, value } => plain(metric, *value),
    }
}

/// Formats a value; counts stay whole numbers.
fn plain(metric: &Metric, value: f64) -> String {
    match metric.unit {
        "" if value.fract() == 0.0 && value >= 0.0 => number::count(value as u64),
        unit => number::with_unit(value, unit),
    }
}

/// The trials that a table lists, each with the command that runs it again.
fn list(tabled: &Tabled<'_>, header: &Header) -> Option<Table> {
    let title = format!("{}: one by one", tabled.table.title);
    let note = "the command draws the same seeds: the same keys, the same moments, the same \
                choices; what servers and kernel do meanwhile is theirs";
    let columns = ["#Trial", "Row", "Figures", "What was said", "Again"];
    let mut table = Table::new(&title, note, &columns);
    for one in &tabled.listed {
        let figures: Vec<String> = one.figures.iter().map(figure).collect();
        let figures = figures.join(", ");
        let row = one.row.says.clone();
        table.row([one.number.to_string(), row, figures, said(one), again(header, one.number)]);
    }
    table.folded = table.rows.len() > SHOWN_MAX;
    (!table.rows.is_empty()).then_some(table)
}

fn figure((metric, value): &(&'static Metric, f64)) -> String {
    format!("{} {}", metric.name, plain(metric, *value))
}

/// The first thing that was noted: what checks found is noted before anything else.
fn said(listed: &Listed<'_>) -> String {
    listed.notes.first().map(|note| note.text.clone()).unwrap_or_default()
}

/// The command that runs one trial of a record again.
fn again(header: &Header, number: usize) -> String {
    match header.plan.len() {
        1 => header.again.clone(),
        _ => format!("{} --trial {number}", header.again),
    }
}

/// More rows than these are folded away.
const SHOWN_MAX: usize = 10;
