//! Doubts about figures: whether the rig or the machine was the limit, and whether a latency can be
//! known at all.
//!
//! What clients measure is worth no more than the clients: one that is busy all the time sends as
//! fast as it can, not as fast as the server can, and one that looks late at an answer adds its
//! own delay to the server's. Every trial is checked; one is enough for a doubt.

use record::{AttemptEnding, GeneratorCost, HostLoad, HostUse, MeasuringConditions, Trial};
use spec::{ClaimExpression, HostGapEffect, Metric, Study, TrialCondition, metrics};
use stats::censored;

use crate::delay;
use crate::rounds::figure_of;

/// Above this share of CPU that the hypervisor gave to others, the machine is not the one that was
/// asked about, in percent.
const STEAL_PCT_MAX: f64 = MeasuringConditions::STEAL_SHARE_MAX * 100.0;

/// Hosts that stand still for more of the window than this, all together, change its rates and its slow transactions,
/// in percent.
const STALLED_PCT_MAX: f64 = 1.0;

/// The rig competes with the servers where it takes more than this share of the CPU that both use:
/// then it is the larger of the two, and the servers have less than half of the machine …
const CPU_SHARE_MAX: f64 = 0.5;

/// … and no more than this is idle, in percent: where a twentieth of the CPU is free, neither waits
/// for the other …
const IDLE_PCT_MIN: f64 = 5.0;

/// … and it uses at least so many cores. Otherwise other processes fill the machine: clients
/// that sleep use hundredths of a core, and more CPU than a server that has nothing to do.
const CORES_MIN: f64 = 0.25;

/// Above this growth of the backlog (a share of the transactions due), a latency is a matter of how
/// long one measures. Simulated for 60 windows of 5 and 10 s with Poisson arrivals, exponential
/// service and 300 or 1,000 transactions a second: a server at 90 % of its capacity exceeds it in no
/// more than 2 % of the windows, at 95 % in 3 %, at 102 % in 75 to 85 %, and at 105 % in 93 to 100 %.
const BACKLOG_GROWTH_MAX: f64 = 0.01;

/// Cause of doubt about a figure of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Busy,
    Lag,
    RunDelay,
    /// A host of the clients had too little CPU for them.
    Starved,
    /// A host stood still, or was cut off from a server.
    Stalled,
    Steal,
    CpuShare,
    Backlog,
    Failed,
}

const CAUSES: [Cause; 9] = [
    Cause::Busy,
    Cause::Lag,
    Cause::RunDelay,
    Cause::Starved,
    Cause::Stalled,
    Cause::Steal,
    Cause::CpuShare,
    Cause::Backlog,
    Cause::Failed,
];

/// Causes of doubt about a quotient whose value without the generator's delay is computed.
const CAUSES_BUT_DELAY: [Cause; 7] = [
    Cause::Busy,
    Cause::Starved,
    Cause::Stalled,
    Cause::Steal,
    Cause::CpuShare,
    Cause::Backlog,
    Cause::Failed,
];

/// Causes of doubt about a rate that is compared with a bound.
const CAUSES_OF_RATES: [Cause; 5] =
    [Cause::Busy, Cause::Starved, Cause::Stalled, Cause::Steal, Cause::CpuShare];

/// Causes of doubt about how much was done.
const CAUSES_OF_COUNTS: [Cause; 1] = [Cause::Stalled];

impl Cause {
    /// Amount of it in a trial, in percent, if that is too much.
    fn excess(self, trial: &Trial, metric: &Metric, scope: &str) -> Option<f64> {
        let generator = &trial.generator;
        let figure = |metric, scope| figure_of(trial, metric, scope).map(|figure| figure.value);
        let (percent, most) = match self {
            Cause::Busy => {
                (generator.busy_share_max * 100.0, GeneratorCost::BUSY_SHARE_MAX * 100.0)
            }
            Cause::Lag => (generator.lag_share * 100.0, GeneratorCost::LAG_SHARE_MAX * 100.0),
            // What the wait does to a quotient of rates is computed (see `delay`).
            Cause::RunDelay if metric.is_latency() => {
                (generator.run_delay_share? * 100.0, GeneratorCost::RUN_DELAY_SHARE_MAX * 100.0)
            }
            Cause::RunDelay => return None,
            Cause::Starved => {
                let (_, load) = starved(trial)?;
                (load.wanted_share_max? * 100.0, GeneratorCost::BUSY_SHARE_MAX * 100.0)
            }
            Cause::Stalled => {
                let lost = trial.host_time_lost()?;
                (lost.total_ns as f64 / 1e7 / trial.window?.seconds(), STALLED_PCT_MAX)
            }
            Cause::Steal => (figure(&metrics::CPU_STEAL_PCT, "")?, STEAL_PCT_MAX),
            Cause::CpuShare => {
                let is_full = figure(&metrics::CPU_IDLE_PCT, "")? < IDLE_PCT_MIN;
                let is_at_work = cores(trial).is_none_or(|cores| cores >= CORES_MIN);
                (
                    figure(&metrics::GENERATOR_CPU_SHARE, "").filter(|_| is_full && is_at_work)?
                        * 100.0,
                    CPU_SHARE_MAX * 100.0,
                )
            }
            Cause::Backlog if metric.is_latency() => {
                (figure(&metrics::BACKLOG_GROWTH, scope)? * 100.0, BACKLOG_GROWTH_MAX * 100.0)
            }
            Cause::Backlog => return None,
            Cause::Failed if metric.is_speed() => {
                let of = |metric| figure(metric, scope).or_else(|| figure(metric, ""));
                let failed = of(&metrics::FAILED)?;
                let all = failed + of(&metrics::TRANSACTIONS_TOTAL)?;
                (failed / all.max(1.0) * 100.0, MeasuringConditions::FAILED_SHARE_MAX * 100.0)
            }
            Cause::Failed => return None,
        };
        (percent > most).then_some(percent)
    }

    fn says(self, point: &str, percent: f64) -> String {
        match self {
            Cause::Busy => format!("the generator was the limit in {point}: {percent:.0} % busy"),
            Cause::Lag => format!(
                "the generator looked late in {point}: its loop lag is {percent:.0} % of what its \
                 clients waited"
            ),
            Cause::RunDelay => format!(
                "the generator waited for a CPU in {point}: {percent:.0} % of what its clients \
                 waited"
            ),
            Cause::Starved => format!(
                "a machine of the clients was the limit in {point}: a thread there wanted a CPU for \
                 {percent:.0} % of the time and did not get it"
            ),
            Cause::Stalled => format!(
                "hosts stood still, were cut off from a server or had a full disk for {percent:.0} % of the window in {point}"
            ),
            Cause::Steal => format!(
                "the hypervisor gave {percent:.0} % of the machine's CPU to others in {point}"
            ),
            Cause::CpuShare => format!(
                "the generator competed with the servers in {point}: it took {percent:.0} % of the \
                 CPU that both used, and none was idle"
            ),
            Cause::Failed => format!(
                "{percent:.1} % of the transactions of {point} failed, and would have taken longer \
                 than those that count"
            ),
            Cause::Backlog => format!(
                "the backlog of {point} grew by {percent:.0} % of the transactions that were due: \
                 its latencies depend on how long one measures"
            ),
        }
    }
}

/// Reasons to doubt the figures that an expression refers to; none if the figures are sound.
pub(crate) fn limits(study: &Study, expression: &ClaimExpression, trials: &[Trial]) -> Vec<String> {
    let causes = if delay::is_computed(expression) { &CAUSES_BUT_DELAY[..] } else { &CAUSES[..] };
    let mut reasons: Vec<String> = Vec::new();
    for reference in expression.references() {
        let points = [reference.point];
        for found in limits_of(study, reference.metric, &reference.scope, &points, trials, causes) {
            if !reasons.contains(&found) {
                reasons.push(found);
            }
        }
    }
    reasons
}

/// The same of what a condition asks of every trial of some points.
pub(crate) fn of_condition(
    study: &Study,
    condition: &TrialCondition,
    of: &str,
    points: &[usize],
    trials: &[Trial],
) -> Vec<String> {
    let mut reasons: Vec<String> = Vec::new();
    for metric in condition.metrics() {
        let causes = match metric.effect_of_host_gaps() {
            _ if metric.is_latency() => &CAUSES[..],
            // A bound for a rate is rough, and no clients' delay of some percent decides it.
            _ if metric.is_speed() => &CAUSES_OF_RATES[..],
            // A count is right or wrong whatever the speed of the clients. How much was done is another matter.
            HostGapEffect::TakesTime => &CAUSES_OF_COUNTS[..],
            _ => continue,
        };
        for found in limits_of(study, metric, of, points, trials, causes) {
            if !reasons.contains(&found) {
                reasons.push(found);
            }
        }
    }
    reasons
}

/// The same of one metric over some points.
fn limits_of(
    study: &Study,
    metric: &Metric,
    scope: &str,
    points: &[usize],
    trials: &[Trial],
    causes: &[Cause],
) -> Vec<String> {
    let mut reasons = Vec::new();
    if !metric.is_from_clients() {
        return reasons;
    }
    for &point in points {
        let own = |trial: &&Trial| {
            matches!(trial.ending, AttemptEnding::Done)
                && study.point(&trial.variant, &trial.scenario, &trial.axes) == Some(point)
        };
        let own: Vec<&Trial> = trials.iter().filter(own).collect();
        let name = study.points[point].name.to_string();
        for cause in causes.iter().copied() {
            // What an action of the timeline breaks is what the study asks for.
            if cause == Cause::Failed && !study.points[point].timeline.is_empty() {
                continue;
            }
            let found = own.iter().filter_map(|trial| cause.excess(trial, metric, scope));
            let found: Vec<f64> = found.collect();
            if let Some(worst) = found.iter().copied().reduce(f64::max) {
                let host = own.iter().find_map(|trial| match cause {
                    Cause::Starved => Some(starved(trial)?.0.name.as_str()),
                    Cause::Stalled => Some(trial.host_time_lost()?.host.name.as_str()),
                    _ => None,
                });
                let host = host.map_or(String::new(), |host| format!(" (host {host})"));
                reasons.push(cause.says(&name, worst) + &host + &in_some(found.len(), own.len()));
            }
        }
        reasons.extend(too_few(metric, scope, &name, &own));
    }
    reasons
}

/// The first host whose clients had too little CPU.
fn starved(trial: &Trial) -> Option<(&HostUse, HostLoad)> {
    let mut loads = trial.hosts.iter().filter_map(|host| Some((host, host.load?)));
    loads.find(|(_, load)| load.is_starved())
}

/// Cores that the generator used inside the window; none where it never opened.
fn cores(trial: &Trial) -> Option<f64> {
    let seconds = trial.window?.seconds();
    (seconds > 0.0).then(|| trial.generator.cpu_ns as f64 / 1e9 / seconds)
}

fn in_some(found: usize, of: usize) -> String {
    if found == of { String::new() } else { format!(" (at worst; in {found} of {of} trials)") }
}

/// Transactions beyond a percentile that it takes to know it.
const BEYOND_MIN: f64 = 20.0;

/// A percentile of fewer transactions than it takes to know it.
fn too_few(metric: &Metric, scope: &str, point: &str, trials: &[&Trial]) -> Option<String> {
    let quantile = metric.quantile?;
    // What delays one transaction delays those beside it: as many as `pgrig compare` asks for.
    let beyond = (BEYOND_MIN / (1.0 - quantile)).round() as u64;
    let needed = censored::samples_needed(quantile).max(beyond);
    let of_statement = metric.scope == spec::MetricScope::Statement;
    let scope = if of_statement { "" } else { scope };
    let count = |trial: &&&Trial| {
        let has = figure_of(trial, metric, scope).is_some();
        figure_of(trial, &metrics::TRANSACTIONS, scope).filter(|_| has || of_statement)
    };
    let counts = trials.iter().filter_map(|trial| count(&trial)).map(|figure| figure.value);
    let fewest = counts.reduce(f64::min)?;
    (fewest < needed as f64).then(|| {
        let name = metric.name;
        format!(
            "{name} takes {needed} transactions to know, and a trial of {point} has {fewest:.0}"
        )
    })
}
