//! Rates that were asked for and not reached.

use record::{Ending, Trial};
use spec::Study;

use crate::name::trial_name;

/// A workload in an open loop that fell behind its rate.
#[derive(Clone, Debug, PartialEq)]
pub struct MissedRate {
    /// The trial's number.
    pub number: usize,
    /// The point that it ran: `variant/scenario axis=value`.
    pub name: String,
    /// The workload.
    pub workload: String,
    /// Transactions a second that were asked for.
    pub asked: f64,
    /// Transactions a second that succeeded inside the window.
    pub reached: f64,
    /// Transactions that were due at the close and never started.
    pub backlog: u64,
}

/// Every workload that fell behind the rate that was asked of it, in the order of the trials that
/// count.
pub fn missed_rates(study: &Study, trials: &[Trial]) -> Vec<MissedRate> {
    trials.iter().filter(|trial| trial.ending == Ending::Done).flat_map(|t| of(study, t)).collect()
}

fn of(study: &Study, trial: &Trial) -> Vec<MissedRate> {
    let point = study.point(&trial.variant, &trial.scenario, &trial.axes);
    let Some((point, window)) = point.zip(trial.window) else { return Vec::new() };
    let workloads = study.points[point].workloads.iter().zip(&trial.workloads);
    let missed = workloads.filter_map(|(workload, result)| {
        let asked = workload.pace.rate()?;
        let reached = result.counts.transactions as f64 / window.seconds();
        let backlog = result.never_started;
        stats::is_rate_missed(asked, reached, backlog, 1).then(|| MissedRate {
            number: trial.number,
            name: trial_name(trial),
            workload: workload.name.clone(),
            asked,
            reached,
            backlog,
        })
    });
    missed.collect()
}
