//! The values of metrics, round by round.

use std::collections::BTreeMap;

use record::{MetricFigure, Trial};
use spec::{Metric, MetricReference, Study};

use crate::attempts::{self, AttemptChoice};

/// Values that an expression refers to, one row for each round in which all of them were measured.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundValues {
    /// One row a round, in their order; one value for each reference, in theirs.
    pub rows: Vec<Vec<f64>>,
    /// Rounds in which some, but not all, was measured although all of it was planned.
    pub incomplete: usize,
    /// Trials with a value that is only a lower bound, and which.
    pub at_least: Vec<String>,
}

impl RoundValues {
    /// Collects the references' values from the attempts that count.
    pub fn collect(study: &Study, references: &[MetricReference], trials: &[Trial]) -> RoundValues {
        RoundValues::of(study, references, trials, AttemptChoice::Counted)
    }

    /// Collects the references' values from the chosen attempt of each trial.
    pub(crate) fn of(
        study: &Study,
        references: &[MetricReference],
        trials: &[Trial],
        which: AttemptChoice,
    ) -> RoundValues {
        let mut by_round: BTreeMap<usize, Vec<Option<f64>>> = BTreeMap::new();
        let mut at_least = Vec::new();
        for trial in attempts::chosen(trials, which) {
            let point = study.point(&trial.variant, &trial.scenario, &trial.axes);
            for (index, reference) in references.iter().enumerate() {
                if point != Some(reference.point) {
                    continue;
                }
                let figure = figure_of(trial, reference.metric, &reference.scope);
                if let Some(figure) = figure.filter(|figure| figure.is_at_least) {
                    let (number, name) = (trial.number, reference.metric.name);
                    at_least.push(format!("trial {number}: {name} > {:.3}", figure.value));
                }
                let row = by_round.entry(trial.round).or_insert(vec![None; references.len()]);
                row[index] = figure.map(|figure| figure.value);
            }
        }
        // A point with more rounds than another is alone in the last of them by plan.
        let planned = references.iter().map(|one| study.points[one.point].rounds as usize);
        // Without a reference there is no round, and none is incomplete.
        let alone = planned.clone().min().unwrap_or(0)..planned.max().unwrap_or(0);
        let mut incomplete = 0;
        let mut rows = Vec::new();
        for (round, row) in by_round {
            match row.into_iter().collect::<Option<Vec<f64>>>() {
                Some(row) => rows.push(row),
                None if alone.contains(&(round - 1)) => {}
                None => incomplete += 1,
            }
        }
        RoundValues { rows, incomplete, at_least }
    }
}

/// A trial's value of a metric. Without a scope: that of the trial as a whole, or, where it has
/// none but only one part has a value, that part's.
pub fn value_of(trial: &Trial, metric: &Metric, scope: &str) -> Option<f64> {
    figure_of(trial, metric, scope).map(|figure| figure.value)
}

/// The same, and whether it is only a lower bound.
pub(crate) fn figure_of(trial: &Trial, metric: &Metric, scope: &str) -> Option<MetricFigure> {
    let scopes = trial.scopes(metric)?;
    let only = || scopes.keys().next().filter(|_| scopes.len() == 1 && scope.is_empty());
    let only = only().map(String::as_str);
    let figure = trial.figure(metric, scope).or_else(|| trial.figure(metric, only?))?;
    Some(figure).filter(|figure| figure.value.is_finite())
}
