//! Figures of overload: goodput, clients that starve, collapse, and how soon clients are served after a storm.

use check::TrialFigure;
use record::WorkloadResult;
use spec::{ScenarioPhase, metrics};

use super::clients::jain;
use super::evidence::Evidence;
use super::of_phases::{PhaseCourse, parts, window_of};

/// The figures of the workload of this index, or of all together.
pub(super) fn overload(
    evidence: &Evidence<'_>,
    index: Option<usize>,
    workload: &WorkloadResult,
    scope: &str,
) -> Vec<TrialFigure> {
    let figure = |metric, value| TrialFigure::new(metric, scope, value);
    let starved = workload.per_client.iter().filter(|count| **count == 0).count();
    let transactions: u64 = workload.per_client.iter().sum();
    let had_turns = transactions >= TURNS_MIN * workload.per_client.len() as u64;
    let fell = falls(&goodputs(evidence, index));
    let has_collapsed = fell || (starved > 0 && had_turns);
    let mut figures = vec![
        figure(&metrics::GOODPUT_TPS, workload.counts.good() as f64 / evidence.window.seconds()),
        figure(&metrics::MISSED, workload.counts.missed as f64),
        figure(&metrics::STARVED_CLIENTS, starved as f64),
        figure(&metrics::COLLAPSED, f64::from(u8::from(has_collapsed))),
        figure(&metrics::UNSERVED, workload.unserved.count() as f64),
    ];
    if !workload.per_client_good.is_empty() {
        figures.push(figure(&metrics::GOODPUT_JAIN, jain(&workload.per_client_good)));
    }
    figures.extend(served(workload, scope));
    figures
}

/// Transactions of a client, on average, from which one that had none was starved and did not only have no turn yet.
const TURNS_MIN: u64 = 2;

/// The first and the last client that was served after it had lost its connection.
fn served(workload: &WorkloadResult, scope: &str) -> Vec<TrialFigure> {
    let (served, unserved) = (&workload.served, &workload.unserved);
    let s = |ns: u64| ns as f64 / 1e9;
    let least = served.min_ns().map(|ns| (s(ns), false));
    let first = least.or(unserved.min_ns().map(|ns| (s(ns), true)));
    let open = unserved.max_ns();
    let last = served.max_ns().max(open).map(|ns| (s(ns), open.is_some()));
    let figures = [(&metrics::SERVED_FIRST_S, first), (&metrics::SERVED_LAST_S, last)];
    let figures = figures.into_iter().filter_map(|(metric, found)| {
        let (value, is_at_least) = found?;
        Some(TrialFigure::bounded(metric, scope, value, is_at_least))
    });
    figures.collect()
}

/// The errors of all workloads by SQLSTATE.
pub(super) fn sqlstates(whole: &WorkloadResult) -> Vec<TrialFigure> {
    let errors = whole.counts_total.errors.iter();
    errors
        .map(|(state, count)| TrialFigure::new(&metrics::SQLSTATE_ERRORS, state, *count as f64))
        .collect()
}

/// Rate, as a multiple, and goodput of each phase.
fn goodputs(evidence: &Evidence<'_>, index: Option<usize>) -> Vec<(f64, f64)> {
    let phases = evidence.point.phases.iter();
    let of = |phase: &ScenarioPhase| {
        let course = PhaseCourse::of(evidence, window_of(evidence.window, phase), index);
        (phase.rate_times, course.goodput())
    };
    phases.map(of).collect()
}

/// True if goodput fell below half of an earlier phase's although no less was asked for.
fn falls(phases: &[(f64, f64)]) -> bool {
    phases.iter().enumerate().any(|(at, (rate, goodput))| {
        let before = phases[..at].iter().filter(|(asked, _)| asked <= rate);
        before.clone().any(|(_, had)| *goodput < had * COLLAPSE_SHARE)
    })
}

/// The share of an earlier goodput below which a workload has collapsed.
const COLLAPSE_SHARE: f64 = 0.5;

/// Goodput, its share of the best phase's, and its recovery, for each phase.
pub(super) fn goodput_by_phase(evidence: &Evidence<'_>) -> Vec<TrialFigure> {
    let mut figures = Vec::new();
    for (index, names) in parts(&evidence.point.workloads) {
        let phases = evidence.point.phases.iter();
        let course = |phase: &ScenarioPhase| {
            PhaseCourse::of(evidence, window_of(evidence.window, phase), index)
        };
        let courses: Vec<PhaseCourse> = phases.clone().map(course).collect();
        let most = courses.iter().map(PhaseCourse::goodput).fold(0.0, f64::max);
        let clean = courses.first().map(PhaseCourse::goodput);
        for (number, (phase, course)) in phases.zip(&courses).enumerate() {
            for name in &names {
                let scope = ScenarioPhase::scope(name, &phase.name);
                let mut add = |metric, value, is_at_least| {
                    figures.push(TrialFigure::bounded(metric, &scope, value, is_at_least));
                };
                add(&metrics::GOODPUT_TPS, course.goodput(), false);
                add(&metrics::GOODPUT_SHARE, course.goodput() / most, false);
                add(&metrics::MISSED, course.counts.missed as f64, false);
                let Some(clean) = clean.filter(|_| number > 0) else { continue };
                let (after_s, is_there) = course.goodput_recovery(clean);
                add(&metrics::GOODPUT_RECOVERY_S, after_s, !is_there);
                add(&metrics::GOODPUT_RECOVERED, f64::from(u8::from(is_there)), false);
                if number + 1 == courses.len() {
                    let metric = &metrics::GOODPUT_RECOVERY_S;
                    figures.push(TrialFigure::bounded(metric, name, after_s, !is_there));
                }
            }
        }
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_collapses_where_more_is_asked_for_and_less_than_half_is_done() {
        let check =
            |phases: &[(f64, f64)], expected| assert_eq!(falls(phases), expected, "{phases:?}");
        check(&[(0.5, 500.0), (1.5, 900.0), (3.0, 880.0), (0.5, 500.0)], false);
        check(&[(0.5, 500.0), (1.5, 900.0), (3.0, 440.0), (0.5, 500.0)], true);
        // Overloaded once, and never well again at the rate that it had carried before.
        check(&[(0.5, 500.0), (3.0, 600.0), (0.5, 200.0)], true);
        check(&[(3.0, 900.0), (0.5, 400.0)], false);
        check(&[], false);
    }

    #[test]
    fn clients_are_served_from_the_first_to_the_last_and_those_who_never_were_bound_it() {
        let result = |served: &[u64], unserved: &[u64]| {
            let of = |seconds: &[u64]| {
                let mut times = stats::LatencyHistogram::new();
                seconds.iter().for_each(|s| times.record_ns(s * 1_000_000_000));
                times
            };
            (of(served), of(unserved))
        };
        let check = |served: &[u64], unserved: &[u64], expected: &[(f64, bool)]| {
            let (served, unserved) = result(served, unserved);
            let workload = WorkloadResult { served, unserved, ..nothing() };
            let found = super::served(&workload, "");
            let found = found.iter().map(|one| (one.value.round(), one.is_at_least));
            assert_eq!(found.collect::<Vec<_>>(), expected);
        };
        check(&[], &[], &[]);
        check(&[2, 9, 4], &[], &[(2.0, false), (9.0, false)]);
        check(&[2, 9], &[30], &[(2.0, false), (30.0, true)]);
        check(&[], &[30, 40], &[(30.0, true), (40.0, true)]);
    }

    fn nothing() -> WorkloadResult {
        WorkloadResult {
            name: "w".to_owned(),
            clients: 0,
            counts: record::TransactionCounts::default(),
            counts_total: record::TransactionCounts::default(),
            unknown: 0,
            latency: stats::LatencyHistogram::new(),
            open: stats::LatencyHistogram::new(),
            never_started: 0,
            service: stats::LatencyHistogram::new(),
            lag: stats::LatencyHistogram::new(),
            statements: Vec::new(),
            per_client: Vec::new(),
            per_client_good: Vec::new(),
            served: stats::LatencyHistogram::new(),
            unserved: stats::LatencyHistogram::new(),
            longest_wait_ns: 0,
            longest_wait_is_open: false,
            published_way: record::PublishedWay { transactions: 0, seconds: 1.0 },
        }
    }
}
