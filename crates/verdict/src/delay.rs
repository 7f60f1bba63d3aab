//! The generator's own delay in a quotient.
//!
//! A loop that looks late at an answer and a thread that waits for a CPU add to what every client waits. Of clients
//! that begin a transaction as soon as the one before has ended, a rate without the delay is at most
//! 1 ÷ (1 − its share) times as high, and a mean latency at least (1 − its share) times as long. A verdict that is the
//! same with the delay and without it does not depend on the delay, however large it is.

use std::collections::BTreeSet;

use record::{AttemptEnding, GeneratorCost, Trial};
use spec::{ClaimExpression, Metric, Study, metrics};

/// The trials as they would be without a delay.
pub(crate) struct DelayCase {
    /// The delay, in words.
    pub(crate) says: String,
    pub(crate) trials: Vec<Trial>,
}

/// True if a quotient without the delay follows from the one with it: both of its figures are rates or mean latencies.
pub(crate) fn is_computed(expression: &ClaimExpression) -> bool {
    let of = |metric: &Metric| metric.is_speed() && (!metric.is_latency() || is_mean(metric));
    expression.ratio().is_some() && expression.references().iter().all(|one| of(one.metric))
}

/// The cases in which a verdict has to be the same; none where the delay is too small to matter.
///
/// The kernel measures the wait for a CPU, so it is taken out of all points at once; it pulls a quotient towards 1, which
/// matters only where `is_pulled`. A server that was asked earlier may have answered later, so that the loop lag is
/// taken out of each point alone, too.
pub(crate) fn cases(
    study: &Study,
    expression: &ClaimExpression,
    is_pulled: bool,
    trials: &[Trial],
) -> Vec<DelayCase> {
    let points: BTreeSet<usize> = expression.references().iter().map(|one| one.point).collect();
    let most = |share: fn(&Trial) -> f64| {
        let own = trials.iter().filter(|trial| {
            trial.ending == AttemptEnding::Done
                && point_of(study, trial).is_some_and(|point| points.contains(&point))
        });
        own.map(share).fold(0.0, f64::max)
    };
    let without = |points: &BTreeSet<usize>, share: fn(&Trial) -> f64| {
        let mut trials = trials.to_vec();
        for trial in trials.iter_mut().filter(|trial| trial.ending == AttemptEnding::Done) {
            let is_meant = point_of(study, trial).is_some_and(|point| points.contains(&point));
            if is_meant {
                shorten(expression, trial, share(trial).clamp(0.0, 0.99));
            }
        }
        trials
    };
    let mut cases = Vec::new();
    let (wait_most, lag_most) = (most(wait), most(lag));
    if wait_most > GeneratorCost::RUN_DELAY_SHARE_MAX && is_pulled {
        let says = format!(
            "the generator waited for a CPU during up to {:.0} % of what its clients waited, which pulls a \
             quotient towards 1",
            wait_most * 100.0
        );
        cases.push(DelayCase { says, trials: without(&points, wait) });
    }
    if lag_most > GeneratorCost::LAG_SHARE_MAX {
        let says = format!(
            "the generator looked late: its loop lag is up to {:.0} % of what its clients waited",
            lag_most * 100.0
        );
        let alone = points.iter().map(|point| BTreeSet::from([*point]));
        for points in alone.chain([points.clone()]) {
            cases.push(DelayCase { says: says.clone(), trials: without(&points, lag) });
        }
    }
    cases
}

fn point_of(study: &Study, trial: &Trial) -> Option<usize> {
    study.point(&trial.variant, &trial.scenario, &trial.axes)
}

fn wait(trial: &Trial) -> f64 {
    // Where the kernel does not keep the wait, none can be taken out; the report says so (`trust`).
    trial.generator.run_delay_share.unwrap_or(0.0)
}

fn lag(trial: &Trial) -> f64 {
    trial.generator.lag_share
}

fn is_mean(metric: &Metric) -> bool {
    metric.name == metrics::LATENCY_MEAN_MS.name
}

/// Takes a share of the clients' waiting out of the figures that an expression refers to.
fn shorten(expression: &ClaimExpression, trial: &mut Trial, share: f64) {
    let names: BTreeSet<_> =
        expression.references().iter().map(|one| (one.metric.name, is_mean(one.metric))).collect();
    for (name, is_mean) in names {
        let factor = if is_mean { 1.0 - share } else { 1.0 / (1.0 - share) };
        trial.metrics.get_mut(name).into_iter().flatten().for_each(|(_, value)| *value *= factor);
    }
}
