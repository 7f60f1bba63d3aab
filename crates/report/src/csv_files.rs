//! The figures of a record as CSV, for further calculation.
//!
//! Numbers keep all their digits. An empty field is a value that does not exist. Texts are such that no spreadsheet takes
//! one for a formula.

use record::Trial;
use spec::{ClaimSubject, metric};
use terms::foreign::csv_field;
use verdict::ClaimFigures;

use crate::glance::not_counted;
use crate::grouping::in_study_order;
use crate::report::Report;

/// Columns of [`Report::trials_csv`], a row for each trial, metric and scope:
///
/// | column | meaning |
/// |---|---|
/// | `trial`, `round` | position in the order of execution, and round; both from 1 |
/// | `variant`, `scenario` | what ran, by the study's names |
/// | `axes` | the point, `axis=value,axis=value` |
/// | `status` | `done`, or `void`, `skipped`, `failed`: such a trial counts nowhere |
/// | `metric`, `unit` | name and unit in the catalogue of metrics |
/// | `scope` | a workload, node or statement; empty for the trial as a whole |
/// | `value` | the figure |
pub const TRIAL_COLUMNS: [&str; 10] =
    ["trial", "round", "variant", "scenario", "axes", "status", "metric", "unit", "scope", "value"];

/// Columns of [`Report::verdicts_csv`], a row for each claim:
///
/// | column | meaning |
/// |---|---|
/// | `claim`, `kind` | in words; `finding` or `invariant` |
/// | `expression`, `expected` | how it is computed, and where it is expected |
/// | `published` | what was published |
/// | `measured`, `low`, `high` | the value and its interval; of an invariant the share of trials |
/// | `confidence`, `method` | what the interval promises, and how it was found |
/// | `n` | rounds, for an invariant trials |
/// | `alone` | the verdict that the claim's own figures give, several claims not corrected for |
/// | `verdict`, `why` | `holds`, `does not hold`, `cannot tell`; and the reason, if one is needed |
pub const VERDICT_COLUMNS: [&str; 14] = [
    "claim",
    "kind",
    "expression",
    "expected",
    "published",
    "measured",
    "low",
    "high",
    "confidence",
    "method",
    "n",
    "alone",
    "verdict",
    "why",
];

impl Report<'_> {
    /// Every figure of every trial in long form, [`TRIAL_COLUMNS`].
    #[must_use]
    pub fn trials_csv(&self) -> String {
        let mut table = CsvTable::new(TRIAL_COLUMNS);
        for index in in_study_order(self.study, &self.trials) {
            let trial = &self.trials[index];
            for (name, scopes) in &trial.metrics {
                let unit = metric(name).map_or("", |metric| metric.unit);
                for (scope, value) in scopes {
                    trial_row(&mut table, trial, [name, unit, scope], *value);
                }
            }
            if trial.metrics.is_empty() {
                trial_row(&mut table, trial, ["", "", ""], f64::NAN);
            }
        }
        table.into_text()
    }

    /// Every claim and its verdict, [`VERDICT_COLUMNS`].
    #[must_use]
    pub fn verdicts_csv(&self) -> String {
        let mut table = CsvTable::new(VERDICT_COLUMNS);
        // Beyond those of the study are the ones that a comparison has of its own.
        let claims = self.study.claims.iter().map(Some).chain(std::iter::repeat(None));
        for (claim, judged) in claims.zip(&self.judgement.claims) {
            let expression = match claim.map(|claim| &claim.about) {
                None => "",
                Some(ClaimSubject::Value { value, .. }) => value.source(),
                Some(ClaimSubject::Every { condition, .. }) => condition.source(),
            };
            let ClaimFigures { measured, low, high, confidence, method, n } =
                judged.measured.figures();
            table.row([
                judged.says.as_str(),
                judged.kind.name(),
                expression,
                &judged.expected,
                &cell(judged.published.map(digits)),
                &cell(measured.map(digits)),
                &cell(low.map(digits)),
                &cell(high.map(digits)),
                &cell(confidence.map(digits)),
                method,
                &cell(n.map(|n| n.to_string())),
                judged.alone.words(),
                judged.verdict.words(),
                &judged.why,
            ]);
        }
        table.into_text()
    }
}

fn trial_row(table: &mut CsvTable, trial: &Trial, metric: [&str; 3], value: f64) {
    let axes: Vec<String> =
        trial.axes.iter().map(|(axis, value)| format!("{axis}={value}")).collect();
    let status = not_counted(&trial.ending).map_or("done", |(word, _)| word);
    let [name, unit, scope] = metric;
    table.row([
        trial.number.to_string().as_str(),
        &trial.round.to_string(),
        &trial.variant,
        &trial.scenario,
        &axes.join(","),
        status,
        name,
        unit,
        scope,
        &digits(value),
    ]);
}

/// The text of a cell.
fn cell(known: Option<String>) -> String {
    // What is not known is an empty cell, which no program reads as 0.
    known.unwrap_or_default()
}

fn digits(value: f64) -> String {
    if value.is_finite() { value.to_string() } else { String::new() }
}

/// A table that grows in memory, where writing cannot fail.
struct CsvTable(csv::Writer<Vec<u8>>);

impl CsvTable {
    fn new<const N: usize>(columns: [&str; N]) -> CsvTable {
        let mut table = CsvTable(csv::Writer::from_writer(Vec::new()));
        table.row(columns);
        table
    }

    fn row<const N: usize>(&mut self, fields: [&str; N]) {
        self.0.write_record(fields.map(csv_field)).expect("rows of one length, written to memory");
    }

    fn into_text(self) -> String {
        let bytes = self.0.into_inner().expect("memory takes what is left in the buffer");
        String::from_utf8(bytes).expect("made of texts")
    }
}
