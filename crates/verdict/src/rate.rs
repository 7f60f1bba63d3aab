//! Rates that were asked for and not reached.

use record::{AttemptEnding, Trial};
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
/// count. Trials whose timeline disturbs clients are left out: a workload whose server was killed misses its
/// rate as the study intends.
pub fn missed_rates(study: &Study, trials: &[Trial]) -> Vec<MissedRate> {
    trials
        .iter()
        .filter(|trial| trial.ending == AttemptEnding::Done)
        .flat_map(|t| of(study, t))
        .collect()
}

fn of(study: &Study, trial: &Trial) -> Vec<MissedRate> {
    let point = study.point(&trial.variant, &trial.scenario, &trial.axes);
    let Some((point, window)) = point.zip(trial.window) else { return Vec::new() };
    let planned = &study.points[point];
    if planned.timeline.iter().any(|timed| timed.action.disturbs_clients()) {
        return Vec::new();
    }
    let workloads = planned.workloads.iter().zip(&trial.workloads);
    let missed = workloads.filter_map(|(workload, result)| {
        // How much a multiple of the capacity is, each trial finds out anew, and overload is what such a study is about.
        let asked = workload.pace.rate().filter(|_| !workload.is_rate_of_capacity)?;
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use record::{
        MeasuredWindow, Moment, PlannedTrial, PublishedWay, TransactionCounts, WorkloadResult,
    };
    use spec::{StudyFolder, StudyProfile};
    use stats::LatencyHistogram;

    use super::*;

    const STUDY: &str = r#"
question = "Does the rate hold?"
window = "4s"
[topologies.one.nodes.primary]
[variants.plain]
topology = "one"
[workloads.paced]
script = "read.sql"
rate = 100
[workloads.free]
script = "read.sql"
[scenarios.quiet]
run = ["paced", "free"]
[scenarios.checkpoints]
run = ["paced", "free"]
timeline = [{ at = "1s", checkpoint = "primary" }]
[scenarios.killed]
run = ["paced", "free"]
timeline = [{ at = "1s", kill = "primary" }, { at = "2s", start = "primary" }]
[[claims]]
value = "tps('plain/quiet')"
expect = "> 0"
"#;

    /// The workloads that are said to have missed their rate, after a trial in which one of them did.
    #[test]
    fn a_rate_is_missed_where_nothing_was_meant_to_disturb_it() {
        let files = [
            (StudyFolder::STUDY.to_owned(), STUDY.to_owned()),
            ("read.sql".to_owned(), "SELECT 1;\n".to_owned()),
        ];
        let folder = StudyFolder {
            name: "rates".to_owned(),
            files: BTreeMap::from(files),
            is_private: false,
        };
        let study = Study::parse(&folder, StudyProfile::Smoke).unwrap();
        let check = |scenario: &str, expected: &[&str]| {
            let planned = study.trials(None).into_iter();
            let mut planned =
                planned.filter(|one| study.points[one.point].name.scenario == scenario);
            let planned = planned.next().unwrap();
            let mut trial =
                PlannedTrial::new(&planned, &study.points[planned.point].name).attempt(1);
            let (load_began, open, close) = (Moment(0), Moment(0), Moment(4_000_000_000));
            trial.window = Some(MeasuredWindow { load_began, open, close });
            let result = |transactions, never_started| WorkloadResult {
                name: String::new(),
                clients: 1,
                counts: TransactionCounts { transactions, ..TransactionCounts::default() },
                counts_total: TransactionCounts::default(),
                unknown: 0,
                latency: LatencyHistogram::default(),
                open: LatencyHistogram::default(),
                never_started,
                service: LatencyHistogram::default(),
                lag: LatencyHistogram::default(),
                statements: Vec::new(),
                per_client: Vec::new(),
                per_client_good: Vec::new(),
                served: LatencyHistogram::new(),
                unserved: LatencyHistogram::new(),
                longest_wait_ns: 0,
                longest_wait_is_open: false,
                published_way: PublishedWay::default(),
            };
            trial.workloads = vec![result(200, 200), result(9_000, 0)];
            let missed = missed_rates(&study, &[trial]);
            let missed: Vec<&str> = missed.iter().map(|one| one.workload.as_str()).collect();
            assert_eq!(missed, expected, "{scenario}");
        };
        check("quiet", &["paced"]);
        check("checkpoints", &["paced"]);
        check("killed", &[]);
    }
}
