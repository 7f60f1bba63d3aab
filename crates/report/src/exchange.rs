//! Results of a record for other programs: cases that passed or failed, and figures with their
//! intervals.

mod junit;
mod summary;

use record::comparison::{ComparisonStop, FailOn};
use record::{AttemptEnding, Comparison, PairingAttempt};
use spec::{ClaimKind, Metric, MetricDirection, metrics};
use verdict::{ClaimMeasurement, ClaimVerdict, Verdict};

use crate::estimate::estimate;
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
