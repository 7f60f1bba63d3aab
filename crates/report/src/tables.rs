//! The tables that a study makes of its trials, and the trials that they list one by one.

use record::RecordHeader;
use spec::{ColumnFigure, Metric};
use verdict::{FilledTable, ListedTrial, TableCell as Found};

use crate::number;
use crate::view::Table;

/// Each table of which something was measured, with the list below it where it has one: those that stand before
/// the claims, and the others.
pub(crate) fn tables(
    tabled: &[FilledTable<'_>],
    header: &RecordHeader,
) -> (Vec<Table>, Vec<Table>) {
    let filled = tabled.iter().filter(|one| one.has_figures());
    let (first, others): (Vec<_>, Vec<_>) = filled.partition(|one| one.table.is_first);
    let shown = |tabled: Vec<&FilledTable<'_>>| -> Vec<Table> {
        tabled.into_iter().flat_map(|one| [Some(table(one)), list(one, header)]).flatten().collect()
    };
    (shown(first), shown(others))
}

fn table(tabled: &FilledTable<'_>) -> Table {
    let columns = tabled.table.columns.iter().map(|column| match &column.figure {
        ColumnFigure::Fact(_) => column.says.clone(),
        _ => format!("#{}", column.says),
    });
    let columns: Vec<String> = [String::new()].into_iter().chain(columns).collect();
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut table = Table::new(&tabled.table.title, &tabled.table.note, &columns);
    for (row, cells) in tabled.rows.iter().zip(&tabled.cells) {
        let cells = cells.iter().map(cell_words);
        table.row([row.says.clone()].into_iter().chain(cells));
    }
    table
}

/// A cell of a study's own table, for a person.
pub fn cell_words(cell: &Found) -> String {
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
        Found::Rate(low, high) if *low > 0.0 => {
            format!("{} to {}", number::percent(*low), number::percent(*high))
        }
        Found::Rate(_, high) if *high < 1.0 => format!("≤ {}", number::percent(*high)),
        Found::Rate(..) => "any".to_owned(),
        Found::Sum { metric, value, count, of } => match *value > 0.0 {
            true => format!("{} in {count} of {of}", plain(metric, *value)),
            false => format!("0 of {of}"),
        },
        Found::Figure { metric, value } => plain(metric, *value),
    }
}

/// Formats a value; counts stay whole numbers, and long times are in seconds.
fn plain(metric: &Metric, value: f64) -> String {
    match metric.unit {
        "" if value.fract() == 0.0 && value >= 0.0 => number::count(value as u64),
        "ms" if value >= 1e3 => number::duration_ns(value * 1e6),
        unit => number::with_unit(value, unit),
    }
}

/// The trials that a table lists, each with the command that runs it again.
fn list(tabled: &FilledTable<'_>, header: &RecordHeader) -> Option<Table> {
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
fn said(listed: &ListedTrial<'_>) -> String {
    // A trial of which nothing was noted has an empty cell.
    listed.notes.first().map(|note| note.text.clone()).unwrap_or_default()
}

/// The command that runs one trial of a record again.
fn again(header: &RecordHeader, number: usize) -> String {
    match header.plan.len() {
        1 => header.again.clone(),
        _ => format!("{} --trial {number}", header.again),
    }
}

/// More rows than these are folded away.
const SHOWN_MAX: usize = 10;
