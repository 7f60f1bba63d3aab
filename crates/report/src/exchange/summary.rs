//! Results in Markdown, for the summary of a CI job.

use std::fmt::Write as _;

use terms::foreign::markdown;

use super::{CaseOutcome, ExportedResults};
use crate::number;

/// Rows of a table that a summary shows.
const ROWS_MAX: usize = 60;

impl ExportedResults {
    /// The answer, what was judged, and the figures.
    pub fn summary(&self) -> String {
        let mut text = format!("### pgrig {}\n", markdown(&self.name));
        for line in self.harm.iter().chain([&self.answer]).chain(&self.sides) {
            let _ = write!(text, "\n{}\n", markdown(line));
        }
        if !self.cases.is_empty() {
            text.push_str("\n| | Judged | Figures |\n|---|---|---|\n");
        }
        for case in self.cases.iter().take(ROWS_MAX) {
            let mark = match case.outcome {
                CaseOutcome::Passed => "✅",
                CaseOutcome::Harm => "❗",
                CaseOutcome::Failed => "❌",
                CaseOutcome::Broken => "⚠️",
                CaseOutcome::Skipped => "❔",
            };
            // Writing to a String cannot fail.
            let _ =
                writeln!(text, "| {mark} | {} | {} |", markdown(&case.name), markdown(&case.text));
        }
        if !self.figures.is_empty() {
            text.push_str("\n| Of | Figure | Value | Interval |\n|---|---|---:|---|\n");
        }
        for figure in self.figures.iter().take(ROWS_MAX) {
            let unit = match figure.unit.as_str() {
                "" => String::new(),
                unit => format!(", {}", markdown(unit)),
            };
            let (value, interval) = match figure.bounds {
                Some([low, high]) => number::with_interval(figure.value, low, high),
                None => (number::figure(figure.value), String::new()),
            };
            let (of, name) = (markdown(&figure.benchmark), markdown(&figure.name));
            let _ = writeln!(text, "| {of} | {name}{unit} | {value} | {interval} |");
        }
        let hidden = self.figures.len().saturating_sub(ROWS_MAX);
        if hidden > 0 {
            let _ = writeln!(text, "\n{hidden} more figures are in the record.");
        }
        for doubt in &self.doubts {
            let _ = write!(text, "\nDoubt: {}\n", markdown(doubt));
        }
        terms::visible(&text).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{JudgedCase, MeasuredFigure};
    use super::*;

    #[test]
    fn a_summary_shows_what_was_judged_and_measured() {
        let results = ExportedResults {
            name: "compare".to_owned(),
            started_at: String::new(),
            sides: vec!["A: as it is. B: index.sql.".to_owned()],
            harm: Vec::new(),
            answer: "B is slower.".to_owned(),
            cases: vec![JudgedCase {
                name: "throughput".to_owned(),
                outcome: CaseOutcome::Failed,
                text: "0.9 | worse".to_owned(),
            }],
            figures: vec![MeasuredFigure {
                benchmark: "B ÷ A".to_owned(),
                name: "throughput".to_owned(),
                unit: String::new(),
                value: 0.9,
                bounds: Some([0.88, 0.92]),
                more_is_better: true,
            }],
            doubts: vec!["steal".to_owned()],
        };
        let expected = "### pgrig compare\n\nB is slower.\n\nA: as it is. B: index.sql.\n\n| | Judged | Figures |\n|---|---|---|\n\
            | ❌ | throughput | 0.9 \\| worse |\n\n| Of | Figure | Value | Interval |\n\
            |---|---|---:|---|\n| B ÷ A | throughput | 0.900 | [0.880, 0.920] |\n\nDoubt: steal\n";
        assert_eq!(results.summary(), expected);
    }
}
