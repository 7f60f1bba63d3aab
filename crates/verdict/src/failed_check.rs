//! Checks that failed. What a check found is evidence, whether or not a claim names it.

use record::{MetricFigure, Trial};
use spec::{ClaimSubject, Metric, MetricDirection, Study, metrics};

use crate::rounds::figure_of;
use crate::truth::truth;

/// The figures by which checks say that something is wrong: more than none is.
const FOUND_WRONG: [&Metric; 4] = [
    &metrics::AMCHECK_CORRUPTIONS,
    &metrics::CHECKSUM_FAILURES,
    &metrics::SQL_CHECK_FAILURES,
    &metrics::HISTORY_FORBIDDEN,
];

/// The checks of a trial that failed, in words; none where each has what it expects. A failure that a
/// claim about the trial expects, as that of a control does, is none; neither is one that a claim expects which
/// only another profile judges.
pub(crate) fn failed_checks(study: &Study, trial: &Trial) -> Option<String> {
    let failed = FOUND_WRONG.into_iter().filter_map(|metric| {
        let MetricFigure { value, .. } =
            figure_of(trial, metric, "").filter(|one| one.value > 0.0)?;
        (!is_expected(study, trial, metric)).then(|| format!("{} = {value}", metric.name))
    });
    let failed: Vec<String> = failed.collect();
    (!failed.is_empty()).then(|| format!("failed its checks: {}", failed.join(", ")))
}

/// True if a claim about such trials rests on figures of the same check, and the trial is as the claim
/// says. A claim that allows any value expects none.
fn is_expected(study: &Study, trial: &Trial, metric: &Metric) -> bool {
    let point = study.point(&trial.variant, &trial.scenario, &trial.axes);
    let made_here = study.claims.iter().map(|claim| &claim.about);
    made_here.chain(&study.expected).any(|about| {
        let ClaimSubject::Every { condition, of, points, .. } = about else { return false };
        let asked = condition.metrics();
        if !point.is_some_and(|point| points.contains(&point))
            || !asked.iter().any(|one| is_count_of(one, metric))
        {
            return false;
        }
        let figures: Option<Vec<MetricFigure>> =
            asked.iter().map(|metric| figure_of(trial, metric, of)).collect();
        let Some(figures) = figures else { return false };
        // With nothing wrong, the claim would not be true.
        let sound: Vec<f64> = asked
            .iter()
            .zip(&figures)
            .map(|(metric, figure)| value_where_all_is_well(metric, figure.value))
            .collect();
        truth(condition, &figures) == Some(true) && !condition.is_true(&sound)
    })
}

/// The value of a figure in a trial in which nothing is wrong: nothing is counted, and what is 1 where something
/// survived is 1.
fn value_where_all_is_well(metric: &Metric, value: f64) -> f64 {
    match metric.better {
        MetricDirection::Lower => 0.0,
        MetricDirection::Higher if metric.unit.is_empty() => value.max(1.0),
        MetricDirection::Higher | MetricDirection::Neither => value,
    }
}

/// True if a figure counts something wrong that the same check found. `corrupt` sums up what two checks found.
fn is_count_of(one: &Metric, metric: &Metric) -> bool {
    let sums_up = one.name == metrics::CORRUPT.name
        && [&metrics::AMCHECK_CORRUPTIONS, &metrics::CHECKSUM_FAILURES]
            .iter()
            .any(|part| part.name == metric.name);
    (one.source == metric.source || sums_up)
        && one.better == MetricDirection::Lower
        && one.unit.is_empty()
}
