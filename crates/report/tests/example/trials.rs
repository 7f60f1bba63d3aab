//! The example's trials: three scenarios in six rounds, drawn from a fixed seed.

use std::collections::BTreeMap;

use record::{
    AttemptEnding, ConnectionPhase, FinishedTrial, GeneratorCost, LoadInterval, MarkKind,
    MeasuredWindow, Moment, PlannedTrial, PublishedWay, Sample, StatementResult, TimedAction,
    TimelineMark, TransactionCounts, Trial, WorkloadResult,
};
use stats::{LatencyHistogram, Prng};

use super::ROUNDS;

/// What distinguishes the three scenarios.
struct Shape {
    scenario: &'static str,
    tps: f64,
    latency_ms: f64,
    server_us: f64,
    statements: &'static [(&'static str, f64)],
    waits: &'static [(&'static str, f64)],
    wal_mb: f64,
}

const SHAPES: [Shape; 3] = [
    Shape {
        scenario: "read-only",
        tps: 31_400.0,
        latency_ms: 0.23,
        server_us: 38.0,
        statements: &[("SELECT abalance FROM pgbench_accounts WHERE aid = :aid;", 0.23)],
        waits: &[("CPU", 3.4), ("Client:ClientRead", 0.7)],
        wal_mb: 0.0,
    },
    Shape {
        scenario: "read-write",
        tps: 4_510.0,
        latency_ms: 1.72,
        server_us: 318.0,
        statements: &[
            ("BEGIN;", 0.09),
            ("UPDATE pgbench_accounts SET abalance = abalance + :delta;", 0.42),
            ("SELECT abalance FROM pgbench_accounts WHERE aid = :aid;", 0.13),
            ("UPDATE pgbench_tellers SET tbalance = tbalance + :delta;", 0.24),
            ("UPDATE pgbench_branches SET bbalance = bbalance + :delta;", 0.41),
            ("INSERT INTO pgbench_history (tid) VALUES (:tid);", 0.16),
            ("END;", 0.25),
        ],
        waits: &[
            ("CPU", 2.6),
            ("Lock:transactionid", 1.1),
            ("LWLock:WALWrite", 0.8),
            ("Lock:tuple", 0.5),
            ("IO:DataFileRead", 0.3),
            ("IO:WALSync", 0.2),
            ("LWLock:BufferContent", 0.1),
            ("IO:DataFileExtend", 0.05),
            ("Client:ClientRead", 0.9),
        ],
        wal_mb: 11.0,
    },
    Shape {
        scenario: "function",
        tps: 5_890.0,
        latency_ms: 1.31,
        server_us: 236.0,
        statements: &[("SELECT tpcb(:aid, :bid, :tid, :delta);", 1.31)],
        waits: &[
            ("CPU", 3.1),
            ("Lock:transactionid", 0.9),
            ("LWLock:WALWrite", 0.9),
            ("Lock:tuple", 0.3),
            ("IO:WALSync", 0.2),
            ("Client:ClientRead", 0.3),
        ],
        wal_mb: 14.0,
    },
];

const WARMUP_S: u64 = 5;
const WINDOW_S: u64 = 20;

/// All trials in the order of execution. The fourth round's read-only trial is void.
pub(crate) fn trials() -> Vec<FinishedTrial> {
    let mut prng = Prng::new(7141);
    let mut made = Vec::new();
    for round in 1..=ROUNDS {
        let mut order = [0, 1, 2];
        prng.shuffle(&mut order);
        for shape in order.map(|position| &SHAPES[position]) {
            let number = made.len() + 1;
            made.push(trial(shape, number, round, &mut prng));
        }
    }
    made
}

/// Nearly normal around 0 with deviation 1: the sum of twelve uniform numbers less six.
pub(super) fn normal(prng: &mut Prng) -> f64 {
    (0..12).map(|_| prng.unit()).sum::<f64>() - 6.0
}

fn trial(shape: &Shape, number: usize, round: usize, prng: &mut Prng) -> FinishedTrial {
    let began = Moment(number as u64 * 31_000_000_000);
    let load_began = began.plus_ns(1_200_000_000);
    let open = load_began.plus_ns(WARMUP_S * 1_000_000_000);
    let close = open.plus_ns(WINDOW_S * 1_000_000_000);
    let factor = 1.0 + 0.012 * normal(prng);
    let void = round == 4 && shape.scenario == "read-only";
    let checkpoint_s = (shape.wal_mb > 0.0).then_some(12 + (round as u64 % 3));
    let course = Course { factor, void, checkpoint_s, load_began };
    let intervals = intervals(shape, &course, prng);
    let workload = workload(shape, factor, &intervals, prng);
    let tps = workload.counts.transactions as f64 / WINDOW_S as f64;
    let ending = if void {
        AttemptEnding::void(
            record::VoidKind::NotSteady,
            "throughput was not steady within 30 s of warm-up",
        )
    } else {
        AttemptEnding::Done
    };
    let total = workload.counts_total.transactions;
    let metrics = metrics(shape, tps, &workload.latency, factor, total, prng);
    let planned = PlannedTrial {
        number,
        round,
        variant: "default".to_owned(),
        scenario: shape.scenario.to_owned(),
        axes: BTreeMap::new(),
    };
    let action = |name: &str, planned_ms: u64, began_ms: Option<u64>| {
        let at = |ms: u64| open.plus_ns(ms * 1_000_000);
        let (planned, possible, began) = (at(planned_ms), at(planned_ms), began_ms.map(at));
        let ended = began.map(|began| began.plus_ns(340_000_000));
        TimedAction {
            action: name.to_owned(),
            planned,
            possible,
            began,
            ended,
            limit_ns: 250_000_000,
            skipped: None,
        }
    };
    let actions = match number {
        2 => vec![
            action("stop standby1", 3_000, Some(3_001)),
            action("start standby1", 4_000, Some(4_812)),
            action("kill a standby now", 5_000, None),
        ],
        _ => Vec::new(),
    };
    let trial = Trial {
        ending,
        actions,
        made_anew: None,
        started_at: format!("2026-11-21T14:{:02}:{:02}Z", number / 2, (number % 2) * 30),
        began,
        ended: close.plus_ns(800_000_000),
        window: Some(MeasuredWindow { load_began, open, close }),
        connecting: phase(8, 12_000_000, prng),
        disconnecting: phase(8, 2_000_000, prng),
        workloads: vec![workload],
        generator: GeneratorCost {
            processes: 2,
            lanes: 2,
            cpu_ns: (tps * 20.0 * 9_000.0) as u64,
            busy_share_max: (tps * 9e-6).min(0.7),
            wanted_share_max: None,
            lag_p99_ns: 8_000,
            lag_max_ns: 740_000,
            lag_share: 0.004,
            run_delay_share: Some(0.002),
            io: None,
        },
        metrics,
        ..planned.attempt(1)
    };
    let marks = marks(number, checkpoint_s, load_began, open, close);
    let samples = samples(shape, factor, load_began, prng);
    FinishedTrial { trial, intervals, samples, marks, logs: BTreeMap::new() }
}

/// What distinguishes one trial of a scenario from another.
struct Course {
    factor: f64,
    void: bool,
    checkpoint_s: Option<u64>,
    load_began: Moment,
}

fn intervals(shape: &Shape, course: &Course, prng: &mut Prng) -> Vec<LoadInterval> {
    let Course { factor, void, checkpoint_s, load_began } = *course;
    let each = (0..WARMUP_S + WINDOW_S).map(|second| {
        let warm = 1.0 - 0.55 * (-(second as f64 + 0.3) / 1.1).exp();
        let writing = checkpoint_s.is_some_and(|at| (at..at + 4).contains(&second));
        let slow = if writing { 0.86 } else { 1.0 };
        let wave = if void { 1.0 + 0.4 * (second as f64 / 2.0).sin() } else { 1.0 };
        let rate = shape.tps * factor * warm * slow * wave * (1.0 + 0.02 * normal(prng));
        let latency = latency(shape.latency_ms * factor / (warm * slow * wave), writing, 400, prng);
        LoadInterval {
            start: load_began.plus_ns(second * 1_000_000_000),
            length_ns: 1_000_000_000,
            workload: 0,
            counts: TransactionCounts {
                transactions: rate.round() as u64,
                ..TransactionCounts::default()
            },
            service: latency.clone(),
            latency,
            lag: LatencyHistogram::new(),
            backlog: 0,
            ..LoadInterval::default()
        }
    });
    each.collect()
}

fn workload(
    shape: &Shape,
    factor: f64,
    intervals: &[LoadInterval],
    prng: &mut Prng,
) -> WorkloadResult {
    let (mut latency, mut counts, mut counts_total) =
        (LatencyHistogram::new(), TransactionCounts::default(), TransactionCounts::default());
    for (second, interval) in intervals.iter().enumerate() {
        if second as u64 >= WARMUP_S {
            latency.merge(&interval.latency);
            counts.add(&interval.counts);
        }
        counts_total.add(&interval.counts);
    }
    let each = counts.transactions as f64 / 8.0;
    WorkloadResult {
        name: shape.scenario.to_owned(),
        clients: 8,
        counts,
        unknown: 0,
        service: latency.clone(),
        lag: LatencyHistogram::new(),
        statements: statements(shape, factor, prng),
        per_client: (0..8).map(|_| (each * (1.0 + 0.01 * normal(prng))) as u64).collect(),
        per_client_good: Vec::new(),
        served: LatencyHistogram::new(),
        unserved: LatencyHistogram::new(),
        longest_wait_ns: latency.max_ns().unwrap_or(0),
        longest_wait_is_open: false,
        open: LatencyHistogram::new(),
        never_started: 0,
        latency,
        published_way: PublishedWay {
            transactions: counts_total.transactions,
            seconds: (WARMUP_S + WINDOW_S) as f64,
        },
        counts_total,
    }
}

pub(super) fn latency(
    typical_ms: f64,
    stalled: bool,
    count: usize,
    prng: &mut Prng,
) -> LatencyHistogram {
    let mut latency = LatencyHistogram::new();
    for _ in 0..count {
        let tail = if prng.unit() < 0.02 { 2.0 + 4.0 * prng.unit() } else { 1.0 };
        let stall = if stalled && prng.unit() < 0.03 { 9.0 } else { 1.0 };
        let ms = typical_ms * (0.28 * normal(prng)).exp() * tail * stall;
        latency.record_ns((ms * 1e6) as u64);
    }
    latency
}

fn statements(shape: &Shape, factor: f64, prng: &mut Prng) -> Vec<StatementResult> {
    let each = shape.statements.iter().enumerate().map(|(index, (text, ms))| StatementResult {
        script: format!("{}.sql", shape.scenario),
        line: index as u32 + 5,
        text: (*text).to_owned(),
        failures: 0,
        retries: 0,
        latency: latency(ms * factor, false, 2_000, prng),
    });
    each.collect()
}

pub(super) fn phase(count: u64, length_ns: u64, prng: &mut Prng) -> ConnectionPhase {
    let latency = latency(length_ns as f64 / 1e6 / 3.0, false, count as usize, prng);
    let generator_cpu_ns = length_ns / 4;
    ConnectionPhase { count, failures: BTreeMap::new(), length_ns, latency, generator_cpu_ns }
}

fn metrics(
    shape: &Shape,
    tps: f64,
    window: &LatencyHistogram,
    factor: f64,
    transactions: u64,
    prng: &mut Prng,
) -> BTreeMap<String, BTreeMap<String, f64>> {
    let quantile = |q: f64| window.quantile_ns(q).unwrap_or(0) as f64 / 1e6;
    let whole = |value: f64| BTreeMap::from([(String::new(), value)]);
    let server_us = shape.server_us / factor * (1.0 + 0.01 * normal(prng));
    let mut metrics = BTreeMap::from([
        ("tps".to_owned(), whole(tps)),
        ("tps_published".to_owned(), whole(tps * 0.985)),
        ("latency_mean_ms".to_owned(), whole(window.mean_ns().unwrap_or(0.0) / 1e6)),
        ("latency_p50_ms".to_owned(), whole(quantile(0.5))),
        ("latency_p99_ms".to_owned(), whole(quantile(0.99))),
        ("latency_max_ms".to_owned(), whole(quantile(1.0))),
        ("server_cpu_us_per_tx".to_owned(), whole(server_us)),
        ("transactions_total".to_owned(), whole(transactions as f64)),
        ("server_calls".to_owned(), whole(transactions as f64)),
        ("count_difference".to_owned(), whole(0.0)),
        ("generator_cpu_share".to_owned(), whole(0.17 + 0.02 * prng.unit())),
        ("generator_busy_max".to_owned(), whole((tps * 9e-6).min(0.7))),
        ("loop_lag_p99_ms".to_owned(), whole(0.008)),
        ("hit_ratio".to_owned(), BTreeMap::from([("primary".to_owned(), 0.9987)])),
        ("residency".to_owned(), BTreeMap::from([("primary".to_owned(), 1.0)])),
    ]);
    let active = shape.waits.iter().filter(|(event, _)| *event != "Client:ClientRead");
    let all: f64 = active.clone().map(|(_, sessions)| sessions).sum();
    let share = active.map(|(event, sessions)| ((*event).to_owned(), sessions / all));
    metrics.insert("wait_share".to_owned(), share.collect());
    if shape.scenario == "read-write" {
        let scope = "UPDATE pgbench_accounts".to_owned();
        metrics.insert("server_statement_s".to_owned(), BTreeMap::from([(scope, 31.4 * factor)]));
    }
    metrics
}

fn marks(
    number: usize,
    checkpoint_s: Option<u64>,
    load_began: Moment,
    open: Moment,
    close: Moment,
) -> Vec<TimelineMark> {
    let mark = |at, length_ns, kind, node: &str, text: &str| TimelineMark {
        at,
        length_ns,
        kind,
        node: node.to_owned(),
        text: text.to_owned(),
    };
    let mut marks = vec![
        mark(load_began, 0, MarkKind::Phase, "generator", "all 8 clients connected"),
        mark(open, 0, MarkKind::Phase, "generator", "window opens"),
        mark(close, 0, MarkKind::Phase, "generator", "window closes"),
    ];
    if let Some(second) = checkpoint_s {
        let at = load_began.plus_ns(second * 1_000_000_000);
        let text = "checkpoint: wal, 4,218 buffers";
        marks.push(mark(at, 3_600_000_000, MarkKind::Checkpoint, "primary", text));
    }
    if number.is_multiple_of(3) {
        let at = load_began.plus_ns(19_000_000_000);
        let text = "autovacuum of pgbench_tellers";
        marks.push(mark(at, 1_300_000_000, MarkKind::Autovacuum, "primary", text));
    }
    marks
}

fn samples(shape: &Shape, factor: f64, load_began: Moment, prng: &mut Prng) -> Vec<Sample> {
    let mut samples = Vec::new();
    for second in 0..WARMUP_S + WINDOW_S {
        let at = load_began.plus_ns(second * 1_000_000_000 + 990_000_000);
        let mut add = |node: &str, metric: &str, label: &str, value: f64| {
            let (node, metric, label) = (node.to_owned(), metric.to_owned(), label.to_owned());
            samples.push(Sample { at, node, metric, label, value });
        };
        for (event, sessions) in shape.waits {
            let value = (sessions * (1.0 + 0.35 * normal(prng))).max(0.0).round();
            if value > 0.0 {
                add("primary", "waiting_sessions", event, value);
            }
        }
        let server = shape.tps * factor * shape.server_us / 1e6 * (1.0 + 0.02 * normal(prng));
        let own = shape.tps * 9e-6;
        add("primary", "group_cpu_user_cores", "", server * 0.72);
        add("primary", "group_cpu_system_cores", "", server * 0.28);
        add("generator", "group_cpu_user_cores", "", own * 0.35);
        add("generator", "group_cpu_system_cores", "", own * 0.65);
        add("machine", "cpu_user_pct", "", (server * 0.72 + own * 0.35) * 50.0);
        add("machine", "cpu_system_pct", "", (server * 0.28 + own * 0.65) * 50.0);
        add("machine", "cpu_iowait_pct", "", shape.wal_mb * 0.15);
        add("machine", "cpu_steal_pct", "", 0.3 * prng.unit());
        add("machine", "pressure_pct", "cpu", 18.0 + 4.0 * prng.unit());
        add("machine", "pressure_pct", "io", shape.wal_mb * 0.2);
        if shape.wal_mb > 0.0 {
            add("primary", "wal_bytes", "", shape.wal_mb * 1e6 * (1.0 + 0.05 * normal(prng)));
            let disk = shape.wal_mb * 1.4e6 * (1.0 + 0.2 * normal(prng).abs());
            add("machine", "disk_write_bytes", "vda", disk);
        }
    }
    samples
}
