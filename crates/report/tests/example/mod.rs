//! A made-up run of a study of bank transfers: three workloads, six rounds, one
//! void trial, a checkpoint and an autovacuum. Every figure is invented; none was measured.

#![allow(dead_code)] // each test that includes this module uses a part of it

pub(crate) mod sweep;
mod trials;

pub(crate) use trials::trials;

use std::collections::BTreeMap;

use record::{FinishedTrial, MachineFact, PlannedTrial, RecordHeader, RunState};
use spec::{Study, StudyFolder, StudyProfile};

/// Rounds of the example.
pub(crate) const ROUNDS: usize = 6;

const STUDY: &str = r#"
question = "Does a function on the server beat the same work sent statement by statement?"
notes = ["Published in 2011, on other hardware."]
seed = 7141
rounds = 6

[data.pgbench]
scale = 50

[workloads.read-only]
script = "read-only.sql"
clients = 8

[workloads.read-write]
script = "read-write.sql"
clients = 8

[workloads.function]
script = "function.sql"
clients = 8

[scenarios.read-only]
run = ["read-only"]
[scenarios.read-write]
run = ["read-write"]
[scenarios.function]
run = ["function"]

[answer]
holds  = """
The function is faster than the plain script: {value}× {interval}. Published: {published}×."""
fails  = "The function is not faster: {value}× {interval}. Published: {published}×."
unsure = "Nobody can tell whether the function is faster: {value}× {interval}."

[[claims]]
says = "The function does at least as many transactions a second as the plain script"
value = "tps('default/function') / tps('default/read-write')"
expect = ">= 1.0"
published = 1.144

[[claims]]
says = "The function costs less server CPU a transaction"
value = "server_cpu_us_per_tx('default/function') / server_cpu_us_per_tx('default/read-write')"
expect = "< 1.0"

[[claims]]
says = "The function's slowest percentile is no slower"
value = "latency_p99_ms('default/function') / latency_p99_ms('default/read-write')"
expect = "<= 1.0"

[[claims]]
says = "The server counts as many transactions as the clients"
every = "count_difference == 0"
kind = "invariant"

[[tables]]
title = "What a function buys"
note = "against the same work statement by statement"
columns = [
  { says = "Times as fast", value = "gain" },
  { says = "Trials", trials = "tps" },
  { says = "Counted alike", count = "count_difference == 0" },
  { says = "Differs", rate = "count_difference > 0" },
  { says = "TPS, p50", p50 = "tps" },
  { says = "TPS, max", max = "tps" },
  { says = "Kernel", fact = "system" },
]
list = "tps > 5000"

[[tables.rows]]
says = "statement by statement"
trials = "*/read-write"
fact = "kernel"

[[tables.rows]]
says = "function"
trials = "*/function"
values = { gain = "tps('default/function') / tps('default/read-write')" }
"#;

const PUBLISHED: &str = "\
metric,variant,scenario,scope,axes,value,unit,source,note
tps,default,read-only,,,57296,1/s,\"pgbench on 9.0.4, 2011\",two load machines together
tps,default,read-write,,,7841,1/s,\"pgbench on 9.0.4, 2011\",two load machines together
tps,default,function,,,8968,1/s,\"pgbench on 9.0.4, 2011\",two load machines together
server_statement_s,default,read-write,UPDATE pgbench_accounts,,728.7,s,\"pgbench on 9.0.4, 2011\",
";

/// The study, as its folder would be read.
pub(crate) fn study() -> Study {
    let files = [
        ("study.toml", STUDY),
        ("published.csv", PUBLISHED),
        ("read-only.sql", "SELECT 1;\n"),
        ("read-write.sql", "BEGIN;\nEND;\n"),
        ("function.sql", "SELECT tpcb();\n"),
    ];
    let files = files.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let folder = StudyFolder {
        name: "transfer".to_owned(),
        files: BTreeMap::from(files),
        is_private: false,
    };
    Study::parse(&folder, StudyProfile::Quick).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// The first page of its record.
pub(crate) fn header(study: &Study, trials: &[FinishedTrial]) -> RecordHeader {
    let fact = |group: &str, name: &str, value: &str| MachineFact {
        group: group.to_owned(),
        name: name.to_owned(),
        value: value.to_owned(),
    };
    let plan = trials.iter().map(|finished| PlannedTrial {
        number: finished.trial.number,
        round: finished.trial.round,
        variant: finished.trial.variant.clone(),
        scenario: finished.trial.scenario.clone(),
        axes: finished.trial.axes.clone(),
    });
    RecordHeader {
        format: record::FORMAT,
        pgrig: "0.1.0".to_owned(),
        study: study.name.clone(),
        profile: "quick".to_owned(),
        seed: study.seed,
        rounds: None,
        only: None,
        again: format!("pgrig run {} --profile quick --seed {}", study.name, study.seed),
        started_at: "2026-11-21T14:00:00Z".to_owned(),
        ended_at: Some("2026-11-21T14:09:51Z".to_owned()),
        state: RunState::Done,
        plan: plan.collect(),
        facts: vec![
            fact("machine", "processor", "2 cores, Example CPU at 2.0 GHz"),
            fact("machine", "memory", "8.0 GiB"),
            fact("machine", "disk", "ext4 on a virtual disk, write cache on"),
            fact("system", "kernel", "Linux 6.1.0"),
            fact("PostgreSQL", "server", "15.10 (Debian 15.10-0+deb12u1)"),
            fact("PostgreSQL", "installed at", "/usr/lib/postgresql/15/bin"),
        ],
        notes: Vec::new(),
        comparison: None,
        unprepared: Vec::new(),
        search: None,
    }
}

/// What becomes of its report.
pub(crate) fn report(write: impl FnOnce(&report::Report<'_>) -> String) -> String {
    let study = study();
    let header = header(&study, &trials());
    write(&taken_up(&study, &header, trials()))
}

/// What becomes of the report of a run that was stopped before its first trial ended.
pub(crate) fn nothing(write: impl FnOnce(&report::Report<'_>) -> String) -> String {
    let study = study();
    let mut header = header(&study, &[]);
    header.state = RunState::Interrupted;
    write(&taken_up(&study, &header, Vec::new()))
}

/// What becomes of the report of a run of a single round.
pub(crate) fn one_round(write: impl FnOnce(&report::Report<'_>) -> String) -> String {
    let study = study();
    let trials: Vec<FinishedTrial> =
        trials().into_iter().filter(|one| one.trial.round == 1).collect();
    let header = header(&study, &trials);
    write(&taken_up(&study, &header, trials))
}

fn taken_up<'a>(
    study: &'a Study,
    header: &'a RecordHeader,
    trials: Vec<FinishedTrial>,
) -> report::Report<'a> {
    let trials = trials.into_iter().map(Ok::<_, std::convert::Infallible>);
    let Ok(report) = report::Report::new(study, header, trials, &[]);
    report
}

/// The read-write trial of the first round as if it had been a single load.
pub(crate) fn bench() -> report::BenchReport {
    let mut trials = trials().into_iter();
    let made = trials.find(|made| made.trial.scenario == "read-write").expect("there is one");
    let fact = MachineFact {
        group: "PostgreSQL".to_owned(),
        name: "server".to_owned(),
        value: "15.10".to_owned(),
    };
    report::BenchReport {
        tail: None,
        command: "pgrig bench -f read-write.sql -c 8 -T 25 <bank>".to_owned(),
        words:
            "pgbench (18.0, pgrig 0.1.0)\ntransaction type: read-write.sql\nscaling factor: 50\n\
                query mode: prepared\nnumber of clients: 8\nnumber of threads: 1\n"
                .to_owned(),
        what: "read-write.sql".to_owned(),
        started_at: made.trial.started_at.clone(),
        window: made.trial.window,
        connecting: made.trial.connecting,
        disconnecting: made.trial.disconnecting,
        workloads: made.trial.workloads,
        generator: made.trial.generator,
        intervals: made.intervals,
        samples: Vec::new(),
        marks: made.marks,
        facts: vec![fact],
        search: Some(report::SearchReport {
            axis: report::SearchAxis::Rate,
            goal: "p99 < 5ms".to_owned(),
            quantile: "p99".to_owned(),
            limit_ms: Some(5.0),
            words: "2,000 a second keep p99 < 5ms; 90 % interval 1,900 to 2,400 (6 windows)"
                .to_owned(),
            details: Vec::new(),
            end: report::SearchEnd::Found { load: 2_000.0, interval: (1_900.0, 2_400.0) },
            knee: Some(2_000.0),
            fitted: FITTED.to_vec(),
            windows: FITTED
                .into_iter()
                .map(|(load, ms)| report::SearchWindow {
                    load,
                    seconds: 5.0,
                    confirms: load >= 1_500.0,
                    rate: load,
                    ms: Some(ms),
                    holds: ms < 5.0,
                })
                .collect(),
            shown: 2_000.0,
        }),
    }
}

/// Load and p99 in milliseconds of a search.
const FITTED: [(f64, f64); 6] =
    [(500.0, 1.0), (1_000.0, 1.1), (1_500.0, 1.2), (2_000.0, 1.5), (3_000.0, 9.0), (3_500.0, 30.0)];
