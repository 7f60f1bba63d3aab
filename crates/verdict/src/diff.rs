//! Two records of the same study, or of what they have in common: what has changed.
//!
//! Runs are not interleaved with each other, so rounds of one have no partner in the other: each
//! metric is judged by its own spread between rounds, on either side (Welch's interval on
//! logarithms). What changed on the machine between the two runs, and which memory and files its
//! servers got, is in the difference as well and cannot be taken out again: of two runs of the same
//! thing on a real machine, a third to a half differ by more than their rounds explain. So two runs
//! are called different, and never better or worse. That takes several runs of either side.

use record::{AttemptEnding, MetricFigure, PairingAttempt, RatioSeries, RecordHeader, Trial};
use spec::{Metric, MetricDirection, Study};
use stats::equivalence::{self, EquivalenceRegion};
use stats::{
    ConfidenceInterval, Expectation, FAMILY_ERROR, HEADLINE_ROUNDS_MIN, ratio, sample, student,
};

use crate::conditions::{self, RunCondition};
use crate::noise;
use crate::rounds::figure_of;

/// One side of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct DiffSide<'r> {
    /// Study, machine and programs of the run.
    pub header: &'r RecordHeader,
    /// The study as it was run.
    pub study: &'r Study,
    /// The trials.
    pub trials: &'r [Trial],
    /// What was measured in pairs.
    pub pairs: &'r [PairingAttempt],
}

/// Changes from one record to another.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordDiff {
    /// Conditions in which the runs differ: figures of different sizes or machines cannot be told
    /// apart from a change.
    pub conditions: Vec<RunCondition>,
    /// One for each figure that both have, in the order of the first.
    pub differences: Vec<MetricDifference>,
}

/// Difference of one metric of one point between two records.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricDifference {
    /// The point, `variant/scenario axis=value`; of pairs, the two that are divided.
    pub point: String,
    /// The metric.
    pub metric: &'static Metric,
    /// Geometric mean over the first record's rounds, or over its restarts in pairs.
    pub before: f64,
    /// Geometric mean over the second record's rounds.
    pub after: f64,
    /// True if the value rests on lower bounds, because something had not ended when a window
    /// closed: then it is larger.
    pub is_at_least: [bool; 2],
    /// after ÷ before, with its interval; none where it has none.
    pub ratio: Option<ConfidenceInterval>,
    /// Conclusion from the figure by itself.
    pub alone: DifferenceMeaning,
    /// Conclusion after the correction for all figures that were looked at (Holm's).
    pub change: DifferenceMeaning,
}

/// Meaning of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DifferenceMeaning {
    /// More in the second run, beyond what the spread of the rounds explains.
    More,
    /// Less in the second run, beyond what the spread of the rounds explains.
    Less,
    /// The same for all practical purposes: within 2 % either way.
    Same,
    /// The interval is too wide, or rests on too few rounds.
    CannotTell,
}

impl DifferenceMeaning {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            DifferenceMeaning::More => "differs between these two runs: more",
            DifferenceMeaning::Less => "differs between these two runs: less",
            DifferenceMeaning::Same => "same",
            DifferenceMeaning::CannotTell => "cannot tell",
        }
    }
}

impl RecordDiff {
    /// Number of figures with the conclusion `change`.
    pub fn count(&self, change: DifferenceMeaning) -> usize {
        self.differences.iter().filter(|one| one.change == change).count()
    }

    /// The changes in a sentence.
    pub fn summary(&self) -> String {
        let all = self.differences.len();
        let figures = if all == 1 { "figure" } else { "figures" };
        let [more, less, same, unsure] = [
            DifferenceMeaning::More,
            DifferenceMeaning::Less,
            DifferenceMeaning::Same,
            DifferenceMeaning::CannotTell,
        ]
        .map(|change| self.count(change));
        if more + less + same == 0 {
            return format!("Nothing can be told from {all} {figures}.");
        }
        let counted = format!(
            "Of {all} {figures}, {} differ between these two runs ({more} more, {less} less), \
             {same} are the same, {unsure} cannot be told. Two runs of the same thing may differ as \
             well: better or worse takes several runs of either side, or pgrig compare",
            more + less
        );
        match self.conditions.is_empty() {
            true => format!("{counted}."),
            false => format!("{counted}; the runs differ in more than time, see above."),
        }
    }
}

/// Compares every point that both have, in the order of the first, and what both have measured in pairs.
pub fn diff(before: DiffSide<'_>, after: DiffSide<'_>) -> RecordDiff {
    let (mut differences, mut p_values) = (Vec::new(), Vec::new());
    for (index, point) in before.study.points.iter().enumerate() {
        let Some(other) = after.study.points.iter().position(|p| p.name == point.name) else {
            continue;
        };
        for metric in noise::compared() {
            let sides = [values(before, index, metric), values(after, other, metric)];
            let name = point.name.to_string();
            if let Some((difference, p)) = difference(name, metric, &sides) {
                differences.push(difference);
                p_values.push(p);
            }
        }
    }
    for paired in measured(before.pairs) {
        let name = paired.name();
        let Some(other) = measured(after.pairs).find(|other| other.name() == name) else {
            continue;
        };
        for series in &paired.series {
            let of = |one: &&RatioSeries| {
                (one.metric, &one.workload) == (series.metric, &series.workload)
            };
            let (Some(other), Some(metric)) =
                (other.series.iter().find(of), series.metric.catalogued())
            else {
                continue;
            };
            let name = match &series.workload {
                Some(workload) => format!("{name} {workload}"),
                None => name.clone(),
            };
            let sides = [(ratios(series), false), (ratios(other), false)];
            if let Some((difference, p)) = difference(name, metric, &sides) {
                differences.push(difference);
                p_values.push(p);
            }
        }
    }
    correct(&mut differences, &p_values);
    RecordDiff { conditions: conditions::differing(before, after), differences }
}

/// The attempts at pairs that were measured to their end.
fn measured(pairs: &[PairingAttempt]) -> impl Iterator<Item = &PairingAttempt> {
    pairs.iter().filter(|paired| paired.ending == AttemptEnding::Done)
}

/// The quotients of a series, one for each restart of the servers.
fn ratios(series: &RatioSeries) -> Vec<f64> {
    series.above.iter().zip(&series.below).map(|(above, below)| above / below).collect()
}

/// Takes back what does not stand Holm's correction over all figures that could be judged.
fn correct(differences: &mut [MetricDifference], p_values: &[Option<f64>]) {
    let family: Vec<f64> = p_values.iter().copied().flatten().collect();
    let mut adjusted = stats::holm(&family).into_iter();
    for (difference, p) in differences.iter_mut().zip(p_values) {
        let adjusted = p.and_then(|_| adjusted.next());
        if adjusted.is_none_or(|p| p > FAMILY_ERROR) {
            difference.change = DifferenceMeaning::CannotTell;
        }
    }
}

/// A difference by itself, and the p-value that goes with what it means.
fn difference(
    point: String,
    metric: &'static Metric,
    [(before, before_at_least), (after, after_at_least)]: &[(Vec<f64>, bool); 2],
) -> Option<(MetricDifference, Option<f64>)> {
    let is_at_least = [*before_at_least, *after_at_least];
    let enough = before.len().min(after.len()) >= HEADLINE_ROUNDS_MIN;
    let logs = ratio::logs(before).ok().zip(ratio::logs(after).ok());
    let (middle_before, middle_after) = match &logs {
        Some((before, after)) => (sample::mean(before)?.exp(), sample::mean(after)?.exp()),
        None => (sample::mean(before)?, sample::mean(after)?),
    };
    let ratio = match enough {
        true => ratio::unpaired(after, before, 0.95).ok(),
        false => range(before, after, middle_after / middle_before),
    };
    // How much larger than a lower bound a value is, is not known, and so no ratio of it.
    let is_known = enough && is_at_least == [false, false];
    let judged = ratio.filter(|_| is_known).zip(logs);
    let change =
        judged.as_ref().map_or(DifferenceMeaning::CannotTell, |(ratio, _)| change(metric, ratio));
    let p = judged.map(|(ratio, (before, after))| {
        let EquivalenceRegion { low, high } = EquivalenceRegion::DEFAULT;
        let same = Expectation::Between { low, high };
        same.p_value(ratio.point, |bound, _| student::difference_p(&after, &before, bound.ln()))
    });
    let (before, after) = (middle_before, middle_after);
    let found = MetricDifference {
        point,
        metric,
        before,
        after,
        is_at_least,
        ratio,
        alone: change,
        change,
    };
    Some((found, p))
}

fn change(metric: &Metric, ratio: &ConfidenceInterval) -> DifferenceMeaning {
    match (EquivalenceRegion::DEFAULT.judge(ratio), metric.better) {
        (equivalence::RatioConclusion::CannotTell, _) | (_, MetricDirection::Neither) => {
            DifferenceMeaning::CannotTell
        }
        (equivalence::RatioConclusion::Equal, _) => DifferenceMeaning::Same,
        (equivalence::RatioConclusion::More, _) => DifferenceMeaning::More,
        (equivalence::RatioConclusion::Less, _) => DifferenceMeaning::Less,
    }
}

/// The widest ratio that two of too few rounds have.
fn range(before: &[f64], after: &[f64], point: f64) -> Option<ConfidenceInterval> {
    let extremes = before.iter().flat_map(|before| after.iter().map(move |after| after / before));
    let range = ConfidenceInterval::range(point, &extremes.collect::<Vec<f64>>())?;
    Some(ConfidenceInterval { n: before.len().min(after.len()), confidence: 0.0, ..range })
}

/// The values of a metric over the rounds, and whether any is only a lower bound.
fn values(side: DiffSide<'_>, point: usize, metric: &Metric) -> (Vec<f64>, bool) {
    let trials = side.trials.iter().filter(|trial| {
        trial.ending == AttemptEnding::Done
            && side.study.point(&trial.variant, &trial.scenario, &trial.axes) == Some(point)
    });
    let figures: Vec<MetricFigure> =
        trials.filter_map(|trial| figure_of(trial, metric, "")).collect();
    let is_at_least = figures.iter().any(|figure| figure.is_at_least);
    (figures.iter().map(|figure| figure.value).collect(), is_at_least)
}
