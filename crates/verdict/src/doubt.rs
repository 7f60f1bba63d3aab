//! Whether the rig itself was the limit.
//!
//! What clients measure is worth no more than the clients: one that is busy all the time sends as
//! fast as it can, not as fast as the server can, and one that looks late at an answer adds its
//! own delay to the server's.

use std::collections::BTreeSet;

use record::{Generator, Status, Trial};
use spec::{Reference, Study};

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
        && busy > Generator::BUSY_SHARE_MAX
    {
        let percent = busy * 100.0;
        reasons.push(format!("the generator was the limit in {name}: {percent:.0} % busy"));
    }
    if let Some(lag) = middle(&|trial| Some(trial.generator.lag_share))
        && lag > Generator::LAG_SHARE_MAX
    {
        let percent = lag * 100.0;
        let message = format!(
            "the generator looked late in {name}: its loop lag is {percent:.0} % of what its \
             clients waited"
        );
        reasons.push(message);
    }
    reasons
}
