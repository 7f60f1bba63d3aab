//! Whether the rig itself was the limit.
//!
//! What clients measure is worth no more than the clients: one that is busy all the time sends as
//! fast as it can, not as fast as the server can, and one that looks late at an answer adds its
//! own delay to the server's.

use std::collections::BTreeSet;

use record::{Status, Trial};
use spec::{Reference, Study};

/// Above this share of the window on the CPU, a lane is no longer waiting for the server.
const BUSY_SHARE_MAX: f64 = 0.8;

/// Above this share of the median latency, the loop's own delay is part of the measurement.
const LAG_SHARE_MAX: f64 = 0.05;

/// Reasons to doubt the figures that references stand for; none where the rig was fast enough.
/// The middle trial of a point decides: one bad second must not spoil six rounds.
pub(crate) fn limits(study: &Study, references: &[Reference], trials: &[Trial]) -> Vec<String> {
    let from_clients = references.iter().filter(|reference| reference.metric.is_from_clients());
    let points: BTreeSet<usize> = from_clients.map(|reference| reference.point).collect();
    points.into_iter().flat_map(|point| limits_of(study, point, trials)).collect()
}

fn limits_of(study: &Study, point: usize, trials: &[Trial]) -> Vec<String> {
    let trials: Vec<&Trial> = trials
        .iter()
        .filter(|trial| trial.status == Status::Done)
        .filter(|trial| study.point(&trial.variant, &trial.scenario, &trial.axes) == Some(point))
        .collect();
    let middle = |of: &dyn Fn(&Trial) -> Option<f64>| {
        let values: Vec<f64> = trials.iter().filter_map(|trial| of(trial)).collect();
        stats::sample::median(&values)
    };
    let name = &study.points[point].name;
    let mut reasons = Vec::new();
    if let Some(busy) = middle(&|trial| Some(trial.generator.busy_share_max))
        && busy > BUSY_SHARE_MAX
    {
        let percent = busy * 100.0;
        reasons.push(format!("the generator was the limit in {name}: {percent:.0} % busy"));
    }
    if let Some(lag) = middle(&lag_share)
        && lag > LAG_SHARE_MAX
    {
        let percent = lag * 100.0;
        let message = format!(
            "the generator looked late in {name}: its loop lag p99 is {percent:.0} % of the \
             median latency"
        );
        reasons.push(message);
    }
    reasons
}

/// Loop lag p99 as a share of the median latency of the trial's fastest workload.
fn lag_share(trial: &Trial) -> Option<f64> {
    let medians = trial.workloads.iter().filter_map(|workload| workload.latency.quantile_ns(0.5));
    let fastest_ns = medians.min().filter(|ns| *ns > 0)?;
    Some(trial.generator.lag_p99_ns as f64 / fastest_ns as f64)
}
