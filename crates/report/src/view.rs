//! Contents of the page, ready to be printed: words, figures already formatted, plots drawn.
//!
//! Everything between a record and a template passes through these types, and nothing in them
//! knows where it came from.

use std::fmt::Write as _;

use crate::marked::Marked;

/// Outcome of something; shown as colour, symbol and word, so that each alone is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It holds.
    Holds,
    /// It does not hold.
    Fails,
    /// It cannot be told.
    Unsure,
    /// It holds because harm was seen.
    Harm,
}

impl Outcome {
    /// The class in the style sheet.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Outcome::Holds => "holds",
            Outcome::Fails => "fails",
            Outcome::Unsure => "unsure",
            Outcome::Harm => "harm",
        }
    }

    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Outcome::Holds => "✓",
            Outcome::Fails => "✗",
            Outcome::Unsure => "?",
            Outcome::Harm => "!",
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Outcome::Holds => "holds",
            Outcome::Fails => "does not hold",
            Outcome::Unsure => "cannot tell",
            Outcome::Harm => "harm seen, as expected",
        }
    }
}

/// The answer to the study's question.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    /// Outcome of the headline claim.
    pub(crate) mark: Outcome,
    pub(crate) sentence: String,
    /// Measures of certainty, a line each.
    pub(crate) sure: Vec<String>,
    /// Differences that are too small to be seen on this machine.
    pub(crate) noise: Option<String>,
}

/// Number of claims with one outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) mark: Outcome,
    pub(crate) count: usize,
    /// The verb that goes with the number.
    pub(crate) words: &'static str,
}

/// One claim.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClaimRow {
    pub(crate) mark: Outcome,
    /// Text of the claim.
    pub(crate) says: String,
    /// Expression of the claim, and the expected value.
    pub(crate) code: String,
    pub(crate) kind: String,
    pub(crate) published: String,
    pub(crate) here: String,
    /// The interval, `[1.27, 1.35]`.
    pub(crate) interval: String,
    /// Rounds, or trials, that it rests on.
    pub(crate) n: String,
    /// Meaning of that number.
    pub(crate) basis: String,
    /// A condition or a doubt that the study itself states.
    pub(crate) note: Marked,
    /// Why it cannot be told, or what failed.
    pub(crate) why: String,
    /// The plot, empty where there is nothing to plot.
    pub(crate) plot: String,
}

/// Figures that compare the same lines.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Comparison {
    /// The scenario and point that they have in common.
    pub(crate) heading: String,
    /// One figure a metric.
    pub(crate) figures: Vec<DotFigure>,
    /// Likely causes of their differences.
    pub(crate) why: Option<Table>,
}

/// One metric of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DotFigure {
    /// The metric and its unit.
    pub(crate) title: String,
    /// Meaning of the metric, and the direction that is better.
    pub(crate) note: String,
    /// True if any row has a published figure.
    pub(crate) has_published: bool,
    /// One row a line.
    pub(crate) rows: Vec<DotRow>,
    /// The axis under them.
    pub(crate) axis: String,
}

/// One line of a figure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DotRow {
    pub(crate) label: String,
    pub(crate) plot: String,
    pub(crate) here: String,
    pub(crate) interval: String,
    pub(crate) n: usize,
    pub(crate) published: String,
}

/// Curves of one scenario over one axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CurveSet {
    /// The scenario and axis that they have in common.
    pub(crate) heading: String,
    /// Positions in the page's list of curves.
    pub(crate) ids: Vec<usize>,
    /// Likely causes of their differences, a table for each point.
    pub(crate) why: Vec<Table>,
}

/// Two points that were measured in pairs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PairsBlock {
    pub(crate) heading: String,
    /// The method of measurement, and reasons for doubt.
    pub(crate) words: Vec<String>,
    /// Positions in the page's list of curves.
    pub(crate) ids: Vec<usize>,
    pub(crate) tables: Vec<Table>,
    /// Flame graph of the CPU time, as SVG.
    pub(crate) flame: Option<String>,
}

/// A row of trials at a glance.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GlanceRow {
    /// The variant, scenario and point that they have in common.
    pub(crate) label: String,
    pub(crate) cells: Vec<GlanceCell>,
}

/// One trial at a glance.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum GlanceCell {
    /// It can be looked at.
    Trial {
        /// Position in the page's list of trials.
        index: usize,
        plot: String,
        words: String,
        /// Text for a screen reader.
        spoken: String,
        /// True if it does not count.
        void: bool,
    },
    /// A text without a plot.
    Words {
        words: String,
        /// True if it does not count.
        void: bool,
    },
    /// The study has no such trial.
    Nothing,
}

/// Any table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) note: String,
    pub(crate) head: Vec<Head>,
    /// Rows, each as long as the head; the first cell names the row.
    pub(crate) rows: Vec<Vec<Cell>>,
    /// True if it is folded away behind its title.
    pub(crate) folded: bool,
    /// True if readers can sort its rows by a column, and filter them.
    pub(crate) sorts: bool,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) text: String,
    /// True if it contains figures.
    pub(crate) numeric: bool,
}

/// A cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) text: String,
    /// Outcome, if the cell is a verdict.
    pub(crate) mark: Option<Outcome>,
}

impl Table {
    /// A table without rows. A column whose name begins with `#` holds figures.
    pub(crate) fn new(title: &str, note: &str, columns: &[&str]) -> Table {
        let head = columns.iter().map(|column| match column.strip_prefix('#') {
            Some(text) => Head { text: text.to_owned(), numeric: true },
            None => Head { text: (*column).to_owned(), numeric: false },
        });
        let (title, note) = (title.to_owned(), note.to_owned());
        Table { title, note, head: head.collect(), rows: Vec::new(), folded: false, sorts: false }
    }

    /// Without the columns in which no row says anything; the first one names the rows.
    pub(crate) fn without_empty_columns(mut self) -> Table {
        let says = |cell: &Cell| !["", "–"].contains(&cell.text.as_str());
        let keep: Vec<bool> = (0..self.head.len())
            .map(|column| column == 0 || self.rows.iter().any(|row| says(&row[column])))
            .collect();
        let mut kept = keep.iter();
        self.head.retain(|_| kept.next().copied().unwrap_or(true));
        for row in &mut self.rows {
            let mut kept = keep.iter();
            row.retain(|_| kept.next().copied().unwrap_or(true));
        }
        self
    }

    /// Adds a row of plain texts.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(Cell::from).collect());
    }
}

impl Cell {
    /// The classes of its element.
    pub(crate) fn class(&self, numeric: &bool) -> String {
        let mut class = String::new();
        if *numeric {
            class.push_str("num");
        }
        if let Some(mark) = self.mark {
            let _ = write!(class, " {}", mark.class());
        }
        class
    }

    /// A verdict: symbol and words.
    pub(crate) fn verdict(mark: Outcome, words: impl Into<String>) -> Cell {
        Cell { text: format!("{} {}", mark.symbol(), words.into()), mark: Some(mark) }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell { text, mark: None }
    }
}

/// Facts that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FactGroup {
    /// Subject of the figures.
    pub(crate) name: String,
    /// Name and value of each.
    pub(crate) facts: Vec<(String, String)>,
    /// True if there are too many to be shown unfolded.
    pub(crate) folded: bool,
}

/// The end of a server's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Log {
    pub(crate) title: String,
    pub(crate) text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_that_says_nothing_is_left_out() {
        let mut table = Table::new("t", "", &["", "#a", "b", "c"]);
        table.row(["", "–", "x", ""].map(str::to_owned));
        table.row(["y", "", "", "–"].map(str::to_owned));
        let tidy = table.without_empty_columns();
        assert_eq!(tidy.head.iter().map(|head| head.text.as_str()).collect::<Vec<_>>(), ["", "b"]);
        assert_eq!(tidy.rows[0].iter().map(|c| c.text.as_str()).collect::<Vec<_>>(), ["", "x"]);
    }
}

/// An anomaly that a history showed, with its smallest witness.
#[derive(Debug)]
pub(crate) struct WitnessBlock {
    pub(crate) title: String,
    /// The meaning, and the trial that showed it.
    pub(crate) note: String,
    pub(crate) plot: String,
    pub(crate) transactions: Vec<String>,
    /// Pairs of transactions, one before the other, and the reason.
    pub(crate) links: Vec<String>,
}
