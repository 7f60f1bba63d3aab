//! The noise of this machine: by how much the same thing differs from itself between rounds.

use std::collections::BTreeMap;

use record::{Status, Trial};
use spec::Study;
use stats::resolution;

use crate::rounds::value_of;

/// By how much the same thing, measured twice, differs: what a difference must exceed to be seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// "The same thing twice differs by ± x %", of throughput, at 95 %.
    pub percent: f64,
    /// Points of the study that it was taken from.
    pub points: usize,
    /// Rounds that each has at least.
    pub rounds: usize,
}

/// The noise of the throughput, from all points that were run in at least two rounds.
pub(crate) fn noise(study: &Study, trials: &[Trial]) -> Option<Noise> {
    let mut by_point: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| trial.status == Status::Done) {
        // In open loop throughput is what was asked for, and its spread says nothing.
        let point = study.point(&trial.variant, &trial.scenario, &trial.axes);
        let closed = point.filter(|point| {
            let workloads = &study.points[*point].workloads;
            workloads.iter().all(|workload| workload.pace == spec::Pace::Closed)
        });
        if let (Some(point), Some(tps)) = (closed, value_of(trial, "tps", ""))
            && tps > 0.0
        {
            by_point.entry(point).or_default().push(tps);
        }
    }
    let repeated: Vec<&[f64]> =
        by_point.values().filter(|rounds| rounds.len() >= 2).map(Vec::as_slice).collect();
    let resolution = resolution::of_rounds(&repeated, 0.95).ok()?;
    let (points, rounds) = (repeated.len(), resolution.ratio.n);
    Some(Noise { percent: resolution.percent(), points, rounds })
}
