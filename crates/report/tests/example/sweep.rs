//! A made-up run in the shapes that the other studies have: curves over client counts, several
//! variants, and a long trial of two workloads in which a server dies and comes back.

use std::collections::BTreeMap;

use record::{
    FinishedTrial, LoadInterval, MarkKind, MeasuredWindow, Moment, PlannedTrial, Sample,
    TimelineMark, TransactionCounts, Trial,
};
use spec::{Study, StudyFolder, StudyProfile};
use stats::{LatencyHistogram, Prng};

use super::trials::{latency, normal, phase};
use super::{header, taken_up};

const STUDY: &str = r#"
question = "Where does throughput collapse, and what do clients see when a server dies?"
rounds = 3

[variants.plain]
[variants.governed]
settings = { work_mem = "8MB" }

[workloads.on]
script = "on.sql"
clients = 4
[workloads.local]
script = "on.sql"
clients = 4
[workloads.load]
script = "on.sql"

[scenarios.sweep]
run = ["load"]
over = { clients = [8, 64, 256, 1024, 2048] }
[scenarios.death]
run = ["on", "local"]

[[claims]]
says = "Three times the throughput with 2,048 clients"
value = "tps('governed/sweep', 'clients=2048') / tps('plain/sweep', 'clients=2048')"
expect = ">= 3"
published = 2.94
"#;

const PUBLISHED: &str = "\
metric,variant,scenario,scope,axes,value,unit,source,note
tps,plain,sweep,,clients=64,69216,1/s,2018,
tps,plain,sweep,,clients=2048,26791,1/s,2018,
tps,governed,sweep,,clients=64,67853,1/s,2018,
tps,governed,sweep,,clients=2048,38881,1/s,2018,
";

/// What becomes of its report.
pub(crate) fn report(write: impl FnOnce(&report::Report<'_>) -> String) -> String {
    let files = [("study.toml", STUDY), ("published.csv", PUBLISHED), ("on.sql", "SELECT 1;\n")];
    let files = files.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let folder =
        StudyFolder { name: "sweep".to_owned(), files: BTreeMap::from(files), is_private: false };
    let study = Study::parse(&folder, StudyProfile::Full).unwrap_or_else(|p| panic!("{p:?}"));
    let mut prng = Prng::new(1);
    let mut trials = Vec::new();
    for round in 1..=3 {
        for point in &study.points {
            let axes = BTreeMap::from_iter(point.name.axes.iter().cloned());
            let (variant, scenario) = (&point.name.variant, &point.name.scenario);
            let number = trials.len() + 1;
            trials.push(match axes.get("clients") {
                Some(clients) => swept(variant, clients, round, number, &mut prng),
                None => death(variant, round, number, &mut prng),
            });
            assert_eq!(&trials[number - 1].trial.scenario, scenario);
        }
    }
    let header = header(&study, &trials);
    write(&taken_up(&study, &header, trials))
}

fn swept(
    variant: &str,
    clients: &str,
    round: usize,
    number: usize,
    prng: &mut Prng,
) -> FinishedTrial {
    let n: f64 = clients.parse().expect("a number of clients");
    let collapse = if variant == "plain" { 300.0 } else { 4_000.0 };
    let tps = 9_000.0 * (n / (n + 4.0)) / (1.0 + n / collapse) * (1.0 + 0.03 * normal(prng));
    let axes = BTreeMap::from([("clients".to_owned(), clients.to_owned())]);
    let mut trial = trial(variant, "sweep", axes, round, number, prng);
    let whole = |value: f64| BTreeMap::from([(String::new(), value)]);
    trial.metrics.insert("tps".to_owned(), whole(tps));
    trial.metrics.insert("latency_p99_ms".to_owned(), whole(n / tps * 4_000.0));
    FinishedTrial {
        trial,
        intervals: vec![],
        samples: vec![],
        marks: vec![],
        logs: BTreeMap::new(),
    }
}

/// Seconds that the trial takes: more than the page has cells for.
const DEATH_S: u64 = 2_500;

fn death(variant: &str, round: usize, number: usize, prng: &mut Prng) -> FinishedTrial {
    let mut trial = trial(variant, "death", BTreeMap::new(), round, number, prng);
    let began = trial.window.expect("it has one").load_began;
    let at = |second: u64| began.plus_ns(second * 1_000_000_000);
    let typical = latency(1.0, false, 300, prng);
    let (mut intervals, mut samples) = (Vec::new(), Vec::new());
    for second in 0..DEATH_S {
        let dead = (900..1_300).contains(&second);
        for workload in 0..2 {
            let stopped = dead && workload == 0;
            let transactions = if stopped { 0 } else { 4_000 + second % 7 * 40 };
            let mut counts = TransactionCounts { transactions, ..TransactionCounts::default() };
            if second == 900 || second == 1_300 {
                counts.errors.insert("08006".to_owned(), 4);
            }
            intervals.push(LoadInterval {
                start: at(second),
                length_ns: 1_000_000_000,
                workload,
                counts,
                latency: if stopped { LatencyHistogram::new() } else { typical.clone() },
                service: LatencyHistogram::new(),
                lag: LatencyHistogram::new(),
                backlog: 0,
                ..LoadInterval::default()
            });
        }
        let waiting = if dead { 4.0 } else { 1.0 };
        samples.push(Sample {
            at: at(second + 1),
            node: "primary".to_owned(),
            metric: "waiting_sessions".to_owned(),
            label: "IPC:SyncRep".to_owned(),
            value: waiting,
        });
    }
    let mark = |second, kind, node: &str, text: &str| TimelineMark {
        at: at(second),
        length_ns: 0,
        kind,
        node: node.to_owned(),
        text: text.to_owned(),
    };
    let marks = vec![
        mark(900, MarkKind::Action, "standby1", "kill standby1"),
        mark(905, MarkKind::ServerError, "primary", "terminating walsender: connection lost"),
        mark(1_300, MarkKind::Action, "standby1", "start standby1"),
    ];
    for name in ["on", "local"] {
        let mut workload = super::trials()[0].trial.workloads[0].clone();
        workload.name = name.to_owned();
        trial.workloads.push(workload);
        let tps = BTreeMap::from([("on".to_owned(), 3_300.0), ("local".to_owned(), 4_100.0)]);
        trial.metrics.insert("tps".to_owned(), tps);
    }
    // The plain one loses something in the second round.
    let lost = if variant == "plain" && round == 2 { 41.0 } else { 0.0 };
    for (name, value) in [
        ("ledger_acknowledged", 1_234_567.0),
        ("ledger_failed", 2.0),
        ("ledger_unknown", 8.0),
        ("ledger_unknown_present", 3.0),
        ("ledger_lost", lost),
        ("ledger_lost_alone", lost),
        ("ledger_lost_max_run", lost / 4.0),
        ("ledger_lost_span_ms", lost * 1.5),
        ("ledger_anomalies", lost),
    ] {
        trial.metrics.insert(name.to_owned(), BTreeMap::from([(String::new(), value)]));
    }
    if lost > 0.0 {
        trial
            .notes
            .push(record::Note::new(record::NoteKind::Ledger, "lost: client 3 seq 17 at 901.2 s"));
    }
    FinishedTrial { trial, intervals, samples, marks, logs: BTreeMap::new() }
}

fn trial(
    variant: &str,
    scenario: &str,
    axes: BTreeMap<String, String>,
    round: usize,
    number: usize,
    prng: &mut Prng,
) -> Trial {
    let began = Moment(number as u64 * 3_000_000_000_000);
    let window = MeasuredWindow {
        load_began: began,
        open: began.plus_ns(20_000_000_000),
        close: began.plus_ns((DEATH_S - 10) * 1_000_000_000),
    };
    let planned = PlannedTrial {
        number,
        round,
        variant: variant.to_owned(),
        scenario: scenario.to_owned(),
        axes,
    };
    Trial {
        started_at: "2026-11-21T14:00:00Z".to_owned(),
        began,
        ended: window.close,
        window: Some(window),
        connecting: phase(8, 10_000_000, prng),
        disconnecting: phase(8, 10_000_000, prng),
        ..planned.attempt(1)
    }
}
