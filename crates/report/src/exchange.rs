//! Results of a record for other programs: cases that passed or failed, figures with their intervals, and all figures as
//! CSV for further calculation.
//!
//! Numbers in CSV keep all their digits. An empty field is a value that does not exist. Texts are such that no spreadsheet
//! takes one for a formula.

mod junit;
mod summary;

use record::comparison::{ComparisonStop, FailOn};
use record::{AttemptEnding, Comparison, PairingAttempt, Trial};
use spec::{ClaimKind, ClaimSubject, Metric, MetricDirection, metric, metrics};
use terms::foreign::csv_field;
use verdict::{ClaimFigures, ClaimMeasurement, ClaimVerdict, Verdict};

use crate::estimate::estimate;
use crate::glance::not_counted;
use crate::grouping::in_study_order;
use crate::report::Report;

/// Metrics of a study's points that are told.
const TOLD: [&Metric; 3] =
    [&metrics::TPS, &metrics::LATENCY_P99_MS, &metrics::SERVER_CPU_US_PER_TX];

/// Results of a record, for other programs.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportedResults {
    /// The study's name, or that of a comparison.
    pub name: String,
    /// Wall clock at the beginning, RFC 3339.
    pub started_at: String,
    /// What the sides of a comparison are, in sentences; nothing of a study.
    pub sides: Vec<String>,
    /// Harm that clients suffered, a sentence each.
    pub harm: Vec<String>,
    /// One sentence.
    pub answer: String,
    /// Cases that were judged.
    pub cases: Vec<JudgedCase>,
    /// Figures that were measured.
    pub figures: Vec<MeasuredFigure>,
    /// Reasons to doubt the answer.
    pub doubts: Vec<String>,
}

/// Something that was judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgedCase {
    /// The claim, or the figure.
    pub name: String,
    /// Outcome of the case.
    pub outcome: CaseOutcome,
    /// The figures behind it, for people.
    pub text: String,
}

/// Outcome of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseOutcome {
    /// It holds; B is not worse.
    Passed,
    /// It holds because harm was seen, as it is expected to be.
    Harm,
    /// It does not hold; B is worse.
    Failed,
    /// It must hold and cannot be told.
    Broken,
    /// Cannot tell; or a published finding does not hold here, which fails no gate.
    Skipped,
}

/// A figure with its interval.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredFigure {
    /// Subject of the measurement: a side of a comparison, a point of a study.
    pub benchmark: String,
    /// Name of the metric: `throughput`, `tps`.
    pub name: String,
    /// The unit; empty of a ratio.
    pub unit: String,
    /// The value.
    pub value: f64,
    /// Lower and upper bound of its interval, where there is one.
    pub bounds: Option<[f64; 2]>,
    /// True if more is better.
    pub more_is_better: bool,
}

impl Report<'_> {
    /// Results for other programs: every claim is a case, the usual metrics of every point and the ratios of
    /// all pairs are figures.
    #[must_use]
    pub fn results(&self) -> ExportedResults {
        let lines = self
            .groups
            .iter()
            .flat_map(|group| group.lines.iter().map(move |line| (group.label.as_str(), line)));
        let figures = lines.flat_map(|(group, line)| {
            let parts = [group, line.label.as_str()];
            let parts = parts.iter().filter(|part| !part.is_empty()).copied();
            let mut benchmark = parts.collect::<Vec<_>>().join(", ");
            if benchmark.is_empty() {
                benchmark.clone_from(&line.scenario);
            }
            TOLD.iter().filter_map(move |metric| {
                let found = estimate(&line.values(&self.trials, metric))?;
                Some(MeasuredFigure {
                    benchmark: benchmark.clone(),
                    name: metric.name.to_owned(),
                    unit: metric.unit.to_owned(),
                    value: found.point,
                    // One round has no interval.
                    bounds: (found.n > 1).then_some([found.low, found.high]),
                    more_is_better: metric.better == MetricDirection::Higher,
                })
            })
        });
        let comparison = self.header.comparison.as_ref();
        let cases = self.judgement.asked().map(|claim| {
            let case = case(claim);
            match case.outcome {
                CaseOutcome::Broken if comparison.is_some_and(|one| !self.fails_untold(one)) => {
                    JudgedCase { outcome: CaseOutcome::Skipped, ..case }
                }
                _ => case,
            }
        });
        let doubts = self.pairs.iter().flat_map(|paired| paired.shown.doubts.iter().cloned());
        ExportedResults {
            name: comparison.map_or(self.header.study.clone(), record::Comparison::title),
            started_at: self.header.started_at.clone(),
            // A study that is no comparison has no sides.
            sides: comparison.map(Comparison::sides_words).unwrap_or_default(),
            harm: self.judgement.harm.iter().map(verdict::HarmCount::words).collect(),
            answer: self.judgement.answer.clone(),
            cases: cases.collect(),
            figures: figures.chain(self.pairs.iter().flat_map(|one| self.ratios(one))).collect(),
            doubts: self.header.notes.iter().cloned().chain(doubts).collect(),
        }
    }

    /// True if a comparison fails where it cannot be told whether B is worse: it was asked to, or did not
    /// run to its end.
    fn fails_untold(&self, comparison: &Comparison) -> bool {
        let is_cut = |paired: &PairingAttempt| {
            matches!(paired.shown.stop, ComparisonStop::Died | ComparisonStop::Interrupted)
        };
        comparison.fail_on == Some(FailOn::WorseOrUnknown) || self.pairs.iter().any(is_cut)
    }

    /// The ratios of an attempt at pairs that was measured to its end.
    fn ratios(&self, paired: &PairingAttempt) -> Vec<MeasuredFigure> {
        let benchmark = match self.header.comparison {
            Some(_) => "B ÷ A".to_owned(),
            None => paired.name(),
        };
        let is_done = paired.ending == AttemptEnding::Done;
        let figures = paired.shown.figures.iter().filter(|_| is_done);
        let ratios = figures.filter_map(|figure| {
            let ratio = figure.b_over_a.as_ref()?;
            Some(MeasuredFigure {
                benchmark: benchmark.clone(),
                name: figure.metric.name().to_owned(),
                unit: String::new(),
                value: ratio.value,
                bounds: Some([ratio.low, ratio.high]),
                more_is_better: figure.metric.higher_is_better(),
            })
        });
        ratios.collect()
    }
}

fn case(claim: &ClaimVerdict) -> JudgedCase {
    let (outcome, remark) = match (claim.verdict, claim.kind) {
        (Verdict::Holds, _) if claim.saw_harm() => (CaseOutcome::Harm, ""),
        (Verdict::Holds, _) => (CaseOutcome::Passed, ""),
        (Verdict::DoesNotHold, ClaimKind::Finding) => {
            (CaseOutcome::Skipped, "a published finding, which does not hold here; ")
        }
        (Verdict::DoesNotHold, ClaimKind::Invariant | ClaimKind::Control) => {
            (CaseOutcome::Failed, "")
        }
        (Verdict::CannotTell, ClaimKind::Finding) => (CaseOutcome::Skipped, ""),
        (Verdict::CannotTell, ClaimKind::Invariant | ClaimKind::Control) => {
            (CaseOutcome::Broken, "")
        }
    };
    let figures = claim.measured.figures();
    let is_one_round =
        matches!(&claim.measured, ClaimMeasurement::Value { interval, .. } if interval.n == 1);
    let measured = match (figures.measured, figures.low, figures.high) {
        (Some(value), ..) if is_one_round => {
            format!("{} (one round, no interval)", terms::figure(value))
        }
        (Some(value), Some(low), Some(high)) => {
            let (value, range) = terms::figure_with_interval(value, low, high);
            format!("{value} {range}")
        }
        (Some(value), ..) => terms::figure(value),
        _ => "nothing measured".to_owned(),
    };
    // Trials are counted, and nothing is expected of the count but all or one.
    let measured = claim.measured.counted().unwrap_or(measured);
    let (expected, verdict) = (&claim.expected, claim.words());
    let expected = match expected.as_str() {
        "" => String::new(),
        expected => format!(", expected {expected}"),
    };
    let text = match (&claim.measured, claim.why.as_str()) {
        (ClaimMeasurement::Nothing, why) if expected.is_empty() => format!("{verdict}: {why}"),
        (_, "") => format!("{remark}{verdict}: {measured}{expected}"),
        (_, why) => format!("{remark}{verdict}: {measured}{expected}; {why}"),
    };
    JudgedCase { name: claim.says.clone(), outcome, text }
}

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
