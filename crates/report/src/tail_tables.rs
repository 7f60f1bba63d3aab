//! Slow transactions by cause and by wait event, of one server or of several beside each other.

use std::collections::BTreeMap;

use record::Trial;
use tail::SlowTransactions;

use crate::grouping::{Group, Line};
use crate::number;
use crate::view::Table;

/// Rows of a table.
const ROWS_MAX: usize = 12;

/// The tables of some tails, each under its name; none where nothing was sampled.
pub(crate) fn tables(tails: &[(&str, Option<&SlowTransactions>)]) -> Vec<Table> {
    let tails: Vec<(&str, &SlowTransactions)> =
        tails.iter().filter_map(|(name, tail)| Some((*name, (*tail)?))).collect();
    if tails.is_empty() {
        return Vec::new();
    }
    let basis: Vec<String> = tails
        .iter()
        .map(|(name, tail)| match *name {
            "" => tail.basis(),
            name => format!("{name}: {}", tail.basis()),
        })
        .collect();
    let basis = basis.join(". ");
    let causes = |tail: &SlowTransactions| -> Vec<(String, f64)> {
        tail.causes.iter().map(|share| (share.words(), share.seconds)).collect()
    };
    let waits = |tail: &SlowTransactions| -> Vec<(String, f64)> {
        tail.waits.iter().map(|share| (share.words().to_owned(), share.seconds)).collect()
    };
    vec![
        table("Slow transactions by cause", "Cause", &basis, &tails, &causes),
        table("Slow transactions by wait event", "Wait event", "", &tails, &waits),
    ]
}

/// The tables of a study's trials, for each group of lines that stand side by side; lines of several
/// workloads of the same trials are one.
pub(crate) fn of_groups(groups: &[Group], trials: &[Trial]) -> Vec<Table> {
    let tables = groups.iter().flat_map(|group| {
        let mut lines: Vec<&Line> = group.lines.iter().collect();
        lines.dedup_by(|one, other| one.trials == other.trials);
        let sums: Vec<(&str, Option<SlowTransactions>)> = lines
            .iter()
            .map(|line| {
                let mut tails = line.trials.iter().filter_map(|index| trials[*index].tail.clone());
                let mut sum = tails.next();
                if let Some(sum) = &mut sum {
                    tails.for_each(|tail| sum.add(tail));
                }
                (line.label.as_str(), sum)
            })
            .collect();
        let sums: Vec<(&str, Option<&SlowTransactions>)> =
            sums.iter().map(|(label, sum)| (*label, sum.as_ref())).collect();
        let mut tables = tables(&sums);
        if !group.label.is_empty() {
            tables
                .iter_mut()
                .for_each(|table| table.title = format!("{}, {}", table.title, group.label));
        }
        tables
    });
    tables.collect()
}

fn table(
    title: &str,
    what: &str,
    note: &str,
    tails: &[(&str, &SlowTransactions)],
    shares: &dyn Fn(&SlowTransactions) -> Vec<(String, f64)>,
) -> Table {
    let mut seconds: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (index, (_, tail)) in tails.iter().enumerate() {
        for (name, own) in shares(tail) {
            seconds.entry(name).or_insert_with(|| vec![0.0; tails.len()])[index] += own;
        }
    }
    let mut rows: Vec<(String, Vec<f64>)> = seconds.into_iter().collect();
    let sum = |row: &(String, Vec<f64>)| row.1.iter().sum::<f64>();
    rows.sort_by(|one, other| sum(other).total_cmp(&sum(one)));
    rows.truncate(ROWS_MAX);
    let mut columns = vec![what.to_owned()];
    for (name, _) in tails {
        let of = if name.is_empty() { String::new() } else { format!(", {name}") };
        columns.extend([format!("#Seconds{of}"), format!("#Share{of}")]);
    }
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut table = Table::new(title, note, &columns);
    for (name, seconds) in rows {
        let cells = seconds.iter().zip(tails).flat_map(|(seconds, (_, tail))| {
            [number::figure(*seconds), number::percent(tail.share(*seconds))]
        });
        table.row(std::iter::once(name).chain(cells));
    }
    table
}
