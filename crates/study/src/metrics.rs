//! The catalogue's figures of one trial, made of everything that was measured in it.
//!
//! A figure is filed under its metric and a scope: empty for the trial as a whole, else a
//! workload, a node, a statement or a generator process (`generator 1`). A label within a metric
//! (a device, a wait event) stands for its scope, behind the node's name where there are several
//! nodes.

use std::collections::{BTreeMap, BTreeSet};

use load::Outcome;
use probe::{Delta, Readings};
use record::{Interval, MarkKind, Window, WorkloadResult};
use spec::{Kind, Point, Scope, metric};
use stats::{Latency, censored};

use crate::counts::{self, Counted};
use crate::meter::{Death, Metered};
use crate::replication;
use crate::sharded::Placement;
use crate::warm::Warmed;

/// Metric → scope → value.
pub(crate) type Metrics = BTreeMap<String, BTreeMap<String, f64>>;

/// Everything that was measured in a trial.
pub(crate) struct Evidence<'a> {
    pub(crate) point: &'a Point,
    pub(crate) outcome: &'a Outcome,
    pub(crate) window: Window,
    pub(crate) readings: &'a Readings,
    pub(crate) metered: &'a Metered,
    pub(crate) warmed: &'a Warmed,
    pub(crate) counted: &'a Counted,
    pub(crate) placement: Option<Placement>,
}

/// All figures that this trial has a value for.
pub(crate) fn all(evidence: &Evidence<'_>) -> Figures {
    let mut figures = Figures::default();
    samples(evidence, &mut figures);
    let whole = whole(&evidence.outcome.workloads);
    for (index, workload) in evidence.outcome.workloads.iter().enumerate() {
        clients(evidence, Some(index), workload, &workload.name, &mut figures);
    }
    if let Some(whole) = &whole {
        clients(evidence, None, whole, "", &mut figures);
    }
    statements(&evidence.outcome.workloads, &mut figures);
    phases(evidence, &mut figures);
    generators(evidence, &mut figures);
    let transactions = whole.as_ref().map_or(0, |whole| whole.counts.transactions);
    cpu(evidence, transactions, &mut figures);
    let total = whole.as_ref().map_or(0, |whole| whole.counts_total.transactions);
    server(evidence, total, &mut figures);
    warmth(evidence, &mut figures);
    handovers(evidence, &mut figures);
    sharding(evidence, &mut figures);
    figures
}

/// The figures of a trial.
#[derive(Default)]
pub(crate) struct Figures {
    pub(crate) metrics: Metrics,
    /// Those that are lower bounds: metric → scopes.
    pub(crate) at_least: BTreeMap<String, BTreeSet<String>>,
}

impl Figures {
    /// A value that is no number is no value.
    fn set(&mut self, name: &'static str, scope: &str, value: f64) {
        debug_assert!(metric(name).is_some(), "{name} is not in the catalogue");
        self.insert(name, scope.to_owned(), value);
    }

    fn insert(&mut self, name: &str, scope: String, value: f64) {
        if value.is_finite() {
            self.metrics.entry(name.to_owned()).or_default().insert(scope, value);
        }
    }

    /// A value of which only a lower bound may be known.
    fn set_bounded(&mut self, name: &'static str, scope: &str, value: f64, is_at_least: bool) {
        self.set(name, scope, value);
        if is_at_least && value.is_finite() {
            self.at_least.entry(name.to_owned()).or_default().insert(scope.to_owned());
        }
    }
}

/// How long it took until another standby was in the place of one that had gone.
fn handovers(evidence: &Evidence<'_>, figures: &mut Figures) {
    let marks = &evidence.readings.marks;
    for node in &evidence.point.topology.nodes {
        let standbys = evidence.point.topology.standbys(&node.name);
        let is_mine = |death: &&Death| standbys.iter().any(|standby| standby.name == death.node);
        let deaths = || evidence.metered.deaths.iter().filter(is_mine);
        if let Some(ns) = replication::handover_ns(&node.name, deaths(), marks) {
            figures.set("sync_handover_ms", &node.name, ms(ns as f64));
        }
        if let Some(ns) = replication::return_ns(&node.name, deaths(), marks) {
            figures.set("sync_return_ms", &node.name, ms(ns as f64));
        }
    }
}

/// What moved between the nodes of a cluster, and where its rows are.
fn sharding(evidence: &Evidence<'_>, figures: &mut Figures) {
    if let Some(moved) = &evidence.metered.moved {
        figures.set("moved_buckets", "", moved.buckets as f64);
        figures.set("moved_rows", "", moved.rows as f64);
        figures.set("moved_bytes", "", moved.bytes as f64);
        figures.set("rebalance_s", "", moved.seconds);
        if let Some((longest, p99)) = moved.fence_ms() {
            figures.set("fence_max_ms", "", longest);
            figures.set("fence_p99_ms", "", p99);
        }
    }
    if let Some(placement) = evidence.placement {
        figures.set("rows_misplaced", "", placement.misplaced as f64);
        figures.set("rows_lost", "", placement.lost as f64);
    }
}

/// All workloads together, as if they were one.
fn whole(workloads: &[WorkloadResult]) -> Option<WorkloadResult> {
    let (first, others) = workloads.split_first()?;
    let mut whole = first.clone();
    for other in others {
        whole.clients += other.clients;
        whole.counts.add(&other.counts);
        whole.counts_total.add(&other.counts_total);
        whole.unknown += other.unknown;
        whole.latency.merge(&other.latency);
        whole.service.merge(&other.service);
        whole.lag.merge(&other.lag);
        whole.per_client.extend(&other.per_client);
        whole.open.merge(&other.open);
        whole.never_started += other.never_started;
        whole.longest_wait_ns = whole.longest_wait_ns.max(other.longest_wait_ns);
        whole.longest_wait_is_open |= other.longest_wait_is_open;
        whole.published_way.transactions += other.published_way.transactions;
        whole.published_way.seconds = whole.published_way.seconds.max(other.published_way.seconds);
    }
    Some(whole)
}

fn clients(
    evidence: &Evidence<'_>,
    index: Option<usize>,
    workload: &WorkloadResult,
    scope: &str,
    figures: &mut Figures,
) {
    let (counts, total) = (&workload.counts, &workload.counts_total);
    figures.set("tps", scope, counts.transactions as f64 / evidence.window.seconds());
    let published = workload.published_way;
    figures.set("tps_published", scope, published.transactions as f64 / published.seconds);
    let seconds = seconds(evidence, index);
    for (name, value) in [
        ("tps_second_min", seconds.iter().copied().reduce(f64::min)),
        ("tps_second_max", seconds.iter().copied().reduce(f64::max)),
        ("tps_cv", stats::sample::coefficient_of_variation(&seconds)),
    ] {
        figures.set(name, scope, value.unwrap_or(f64::NAN));
    }
    let standstills = standstills(&seconds);
    figures.set("standstills", scope, standstills.len() as f64);
    figures.set("standstill_s", scope, standstills.iter().sum::<usize>() as f64);
    figures.set("standstill_max_s", scope, standstills.iter().max().copied().unwrap_or(0) as f64);
    latency(&workload.latency, LATENCY, scope, figures);
    waits(workload, scope, figures);
    let is_paced = evidence.point.workloads.iter().enumerate().any(|(at, workload)| {
        index.is_none_or(|index| index == at) && workload.pace != spec::Pace::Closed
    });
    if is_paced {
        latency(&workload.service, SERVICE, scope, figures);
        latency(&workload.lag, LAG, scope, figures);
        let backlog = backlog(evidence, index);
        figures.set("backlog_max", scope, backlog.iter().copied().max().unwrap_or(0) as f64);
        let due = counts.transactions + counts.failed() + counts.skipped;
        figures.set("backlog_growth", scope, growth(&backlog, due));
        figures.set("never_started", scope, workload.never_started as f64);
    }
    let errors: u64 = total.errors.values().sum();
    for (name, count) in [
        ("transactions", counts.transactions),
        ("transactions_total", total.transactions),
        ("failed", total.failed()),
        ("skipped", counts.skipped),
        ("late", counts.late),
        ("retried", counts.retried),
        ("retries", counts.retries),
        ("errors", errors),
        ("reconnects", total.reconnects),
        ("unknown", workload.unknown),
    ] {
        figures.set(name, scope, count as f64);
    }
    let sum: f64 = workload.per_client.iter().map(|n| *n as f64).sum();
    let squares: f64 = workload.per_client.iter().map(|n| (*n as f64).powi(2)).sum();
    // Jain, Chiu, Hawe: A quantitative measure of fairness, DEC-TR-301, 1984.
    figures.set("jain", scope, sum * sum / (workload.per_client.len() as f64 * squares));
    if let Some(fewest) = workload.per_client.iter().min() {
        figures.set("client_transactions_min", scope, *fewest as f64);
    }
}

/// Percentiles and the longest wait, what was open at the close included.
fn waits(workload: &WorkloadResult, scope: &str, figures: &mut Figures) {
    for (name, quantile) in PERCENTILES {
        if let Some(found) = censored::quantile(&workload.latency, &workload.open, *quantile) {
            figures.set_bounded(name, scope, ms(found.value_ns as f64), found.is_at_least);
        }
    }
    let (longest_ms, is_open) =
        (ms(workload.longest_wait_ns as f64), workload.longest_wait_is_open);
    figures.set_bounded("longest_wait_ms", scope, longest_ms, is_open);
    if !workload.latency.is_empty() || !workload.open.is_empty() {
        figures.set_bounded("latency_max_ms", scope, longest_ms, is_open);
    }
}

/// By how many transactions the backlog grew from the first to the last quarter of the window, as a
/// share of those that were due in it.
fn growth(backlog: &[u64], ended: u64) -> f64 {
    let quarter = (backlog.len() / 4).max(1);
    let mean = |part: &[u64]| part.iter().sum::<u64>() as f64 / part.len().max(1) as f64;
    let (Some(first), Some(last)) = (backlog.get(..quarter), backlog.rchunks(quarter).next())
    else {
        return 0.0;
    };
    let grown = (mean(last) - mean(first)).max(0.0);
    if grown == 0.0 { 0.0 } else { grown / (ended as f64 + grown) }
}

/// Successful transactions in each whole second of the window.
fn seconds(evidence: &Evidence<'_>, index: Option<usize>) -> Vec<f64> {
    let open = evidence.window.open;
    let whole = (evidence.window.seconds() + 1e-6).floor() as usize;
    let mut seconds = vec![0.0; whole];
    for interval in &evidence.outcome.intervals {
        if interval.start < open || index.is_some_and(|index| interval.workload != index) {
            continue;
        }
        let second = interval.start.since(open) / 1_000_000_000;
        if let Some(sum) = usize::try_from(second).ok().and_then(|at| seconds.get_mut(at)) {
            *sum += interval.counts.transactions as f64;
        }
    }
    seconds
}

/// The lengths of the runs of seconds in which nothing succeeded.
fn standstills(seconds: &[f64]) -> Vec<usize> {
    let runs = seconds.chunk_by(|before, after| (*before == 0.0) == (*after == 0.0));
    runs.filter(|run| run[0] == 0.0).map(<[f64]>::len).collect()
}

/// Transactions that were due and not started at the end of each interval of the window.
fn backlog(evidence: &Evidence<'_>, index: Option<usize>) -> Vec<u64> {
    let window = evidence.window;
    let inside = |interval: &&Interval| {
        interval.start >= window.open
            && interval.start < window.close
            && index.is_none_or(|index| interval.workload == index)
    };
    let mut by_start: BTreeMap<u64, u64> = BTreeMap::new();
    for interval in evidence.outcome.intervals.iter().filter(inside) {
        *by_start.entry(interval.start.0).or_default() += interval.backlog;
    }
    by_start.into_values().collect()
}

/// The metrics of one kind of latency and how each is taken.
type Names = &'static [(&'static str, Take)];

#[derive(Clone, Copy)]
enum Take {
    Mean,
    Stddev,
    Quantile(f64),
    Max,
}

const LATENCY: Names = &[("latency_mean_ms", Take::Mean), ("latency_stddev_ms", Take::Stddev)];
const PERCENTILES: &[(&str, f64)] = &[
    ("latency_p50_ms", 0.5),
    ("latency_p90_ms", 0.9),
    ("latency_p95_ms", 0.95),
    ("latency_p99_ms", 0.99),
    ("latency_p999_ms", 0.999),
];
const SERVICE: Names = &[
    ("service_mean_ms", Take::Mean),
    ("service_stddev_ms", Take::Stddev),
    ("service_p50_ms", Take::Quantile(0.5)),
    ("service_p90_ms", Take::Quantile(0.9)),
    ("service_p95_ms", Take::Quantile(0.95)),
    ("service_p99_ms", Take::Quantile(0.99)),
    ("service_p999_ms", Take::Quantile(0.999)),
    ("service_max_ms", Take::Max),
];
const LAG: Names =
    &[("lag_mean_ms", Take::Mean), ("lag_p99_ms", Take::Quantile(0.99)), ("lag_max_ms", Take::Max)];
const STATEMENT: Names = &[
    ("statement_mean_ms", Take::Mean),
    ("statement_stddev_ms", Take::Stddev),
    ("statement_p50_ms", Take::Quantile(0.5)),
    ("statement_p99_ms", Take::Quantile(0.99)),
];
const CONNECT: Names = &[("connect_mean_ms", Take::Mean), ("connect_p99_ms", Take::Quantile(0.99))];

fn latency(latency: &Latency, names: Names, scope: &str, figures: &mut Figures) {
    for (name, take) in names {
        let ns = match take {
            Take::Mean => latency.mean_ns(),
            Take::Stddev => latency.stddev_ns(),
            Take::Quantile(quantile) => latency.quantile_ns(*quantile).map(|ns| ns as f64),
            Take::Max => latency.max_ns().map(|ns| ns as f64),
        };
        if let Some(ns) = ns {
            figures.set(name, scope, ms(ns));
        }
    }
}

/// Statements of the same name, in whatever script, count as one.
fn statements(workloads: &[WorkloadResult], figures: &mut Figures) {
    let mut by_label: BTreeMap<String, Latency> = BTreeMap::new();
    for statement in workloads.iter().flat_map(|workload| &workload.statements) {
        if !statement.text.starts_with('\\') {
            let label = counts::label(&statement.text);
            by_label.entry(label).or_default().merge(&statement.latency);
        }
    }
    for workload in workloads {
        if let Some(sum_ns) = between_begin_and_commit_ns(workload) {
            figures.set("statements_ms", &workload.name, ms(sum_ns));
            if workloads.len() == 1 {
                figures.set("statements_ms", "", ms(sum_ns));
            }
        }
    }
    for (label, merged) in by_label {
        latency(&merged, STATEMENT, &label, figures);
    }
}

/// Time of a transaction's statements without the commands that begin and end it; none where no
/// transaction succeeded.
fn between_begin_and_commit_ns(workload: &WorkloadResult) -> Option<f64> {
    let is_inside = |text: &str| {
        let verb = counts::label(text);
        !text.starts_with('\\') && !TRANSACTION_CONTROL.contains(&verb.as_str())
    };
    let inside = workload.statements.iter().filter(|statement| is_inside(&statement.text));
    let sum: f64 = inside
        .filter_map(|statement| {
            Some(statement.latency.mean_ns()? * statement.latency.count() as f64)
        })
        .sum();
    let transactions = workload.counts.transactions;
    (transactions > 0).then(|| sum / transactions as f64)
}

const TRANSACTION_CONTROL: [&str; 6] = ["BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT"];

fn phases(evidence: &Evidence<'_>, figures: &mut Figures) {
    let (outcome, window) = (evidence.outcome, evidence.window);
    let connecting = &outcome.connecting;
    figures.set("connect_s", "", connecting.length_ns as f64 / 1e9);
    latency(&connecting.latency, CONNECT, "", figures);
    figures.set("connect_failures", "", connecting.failures.values().sum::<u64>() as f64);
    figures.set("connect_generator_cpu_s", "", connecting.generator_cpu_ns as f64 / 1e9);
    figures.set("disconnect_s", "", outcome.disconnecting.length_ns as f64 / 1e9);
    figures.set("warmup_s", "", window.open.since(window.load_began) as f64 / 1e9);
    figures.set("window_s", "", window.seconds());
    let generator = &outcome.generator;
    figures.set("generator_cores", "", generator.cpu_ns as f64 / 1e9 / window.seconds());
    figures.set("generator_busy_max", "", generator.busy_share_max);
    figures.set("loop_lag_p99_ms", "", ms(generator.lag_p99_ns as f64));
    figures.set("loop_lag_max_ms", "", ms(generator.lag_max_ns as f64));
    figures.set("loop_lag_share", "", generator.lag_share);
    if let Some(share) = generator.run_delay_share {
        figures.set("generator_run_delay_share", "", share);
    }
}

/// Each generator process by itself, where several share the load.
fn generators(evidence: &Evidence<'_>, figures: &mut Figures) {
    let generators = &evidence.outcome.generators;
    for (number, generator) in (1..).zip(generators).filter(|_| generators.len() > 1) {
        let scope = format!("generator {number}");
        let published = generator.published_way;
        figures.set("transactions_total", &scope, published.transactions as f64);
        figures.set("tps_published", &scope, published.transactions as f64 / published.seconds);
        let cpu_s = generator.cpu_ns as f64 / 1e9;
        figures.set("generator_cores", &scope, cpu_s / evidence.window.seconds());
    }
}

fn cpu(evidence: &Evidence<'_>, transactions: u64, figures: &mut Figures) {
    let mut servers: Option<f64> = None;
    for node in &evidence.point.topology.nodes {
        let metered = evidence.metered.cpu.get(&node.name).map(|span| span.cores());
        let sampled = || {
            let mean = |name| mean_of(evidence, name, &node.name);
            let cores = mean("group_cpu_user_cores")? + mean("group_cpu_system_cores")?;
            // Nothing at all is what is seen of a server whose processes are not here.
            (cores > 0.0).then_some(cores)
        };
        if let Some(cores) = metered.or_else(sampled) {
            figures.set("server_cpu_cores", &node.name, cores);
            servers = Some(servers.unwrap_or(0.0) + cores);
        }
    }
    // What a relay costs is no server's, and no client's.
    for link in &evidence.point.topology.links {
        if let Some(span) = evidence.metered.cpu.get(&link.name) {
            figures.set("server_cpu_cores", &link.name, span.cores());
        }
    }
    let generator = evidence.outcome.generator.cpu_ns as f64 / 1e9 / evidence.window.seconds();
    let per_transaction =
        |cores: f64| cores * evidence.window.seconds() * 1e6 / transactions as f64;
    figures.set("generator_cpu_us_per_tx", "", per_transaction(generator));
    if let Some(servers) = servers {
        figures.set("server_cpu_cores", "", servers);
        figures.set("server_cpu_us_per_tx", "", per_transaction(servers));
        figures.set("generator_cpu_share", "", generator / (generator + servers));
    }
}

/// What the servers counted from before the first client came until after the last one left.
fn server(evidence: &Evidence<'_>, transactions_total: u64, figures: &mut Figures) {
    let deltas = &evidence.readings.deltas;
    for (node, delta) in deltas {
        let mut set = |name, value: Option<f64>| {
            if let Some(value) = value {
                for scope in scopes(evidence, node) {
                    figures.set(name, &scope, value);
                }
            }
        };
        set("hit_ratio", delta.hit_ratio());
        set("server_transactions", delta.transactions().map(|count| count as f64));
        let images = mean_of(evidence, "wal_fpi", node);
        let wal = mean_of(evidence, "wal_bytes", node).filter(|rate| *rate > 0.0);
        let share = images.zip(wal).map(|(images, wal)| (images * PAGE_BYTES / wal).min(1.0));
        set("full_page_share", share);
        set("full_page_images", images.map(|rate| rate * evidence.window.seconds()));
        let memory = inside(evidence)
            .filter(|sample| sample.metric == "group_memory_mb" && sample.node == *node)
            .map(|sample| sample.value);
        set("server_memory_mb", memory.reduce(f64::max));
        let checkpoints = evidence.readings.marks.iter().filter(|mark| {
            mark.kind == MarkKind::Checkpoint
                && mark.node == *node
                && mark.at >= evidence.window.open
                && mark.at < evidence.window.close
        });
        set("checkpoints", Some(checkpoints.count() as f64));
        wait_shares(evidence, node, figures);
    }
    let wal: f64 = deltas.values().filter_map(|delta| delta.counter("wal_bytes")).sum();
    if !deltas.is_empty() {
        figures.set("wal_bytes_per_tx", "", wal / transactions_total as f64);
    }
    if let Some(calls) = evidence.counted.server_calls {
        figures.set("server_calls", "", calls as f64);
    }
    if let Some(difference) = evidence.counted.difference {
        figures.set("count_difference", "", difference as f64);
    }
    server_statements(evidence.point, deltas, figures);
}

/// PostgreSQL's default block size.
const PAGE_BYTES: f64 = 8192.0;

/// The statements of the point's scripts, and those inside functions where they are tracked.
fn server_statements(point: &Point, deltas: &BTreeMap<String, Delta>, figures: &mut Figures) {
    let own = counts::scripts(point);
    let mut by_label: BTreeMap<String, [f64; 4]> = BTreeMap::new();
    let statements = deltas.values().filter_map(|delta| delta.statements.as_ref()).flatten();
    for statement in statements {
        let label = counts::label(&statement.query);
        if statement.toplevel && !own.iter().any(|script| script.contains_key(&label)) {
            continue;
        }
        let sums = by_label.entry(label).or_default();
        sums[0] += statement.calls as f64;
        sums[1] += statement.total_exec_ms;
        sums[2] += statement.shared_blocks_hit as f64;
        sums[3] += statement.shared_blocks_read as f64;
    }
    for (label, [calls, total_ms, hit, read]) in by_label {
        figures.set("server_statement_calls", &label, calls);
        figures.set("server_statement_s", &label, total_ms / 1e3);
        figures.set("server_statement_mean_ms", &label, total_ms / calls);
        figures.set("server_statement_hit_ratio", &label, hit / (hit + read));
    }
}

/// Of the sessions that were seen active inside the window, the share in each wait event.
fn wait_shares(evidence: &Evidence<'_>, node: &str, figures: &mut Figures) {
    let mut by_event: BTreeMap<&str, f64> = BTreeMap::new();
    for sample in inside(evidence) {
        if sample.metric == "waiting_sessions" && sample.node == node {
            *by_event.entry(&sample.label).or_default() += sample.value;
        }
    }
    let all: f64 = by_event.values().sum();
    let of_wal: f64 = by_event.iter().filter(|(event, _)| is_of_wal(event)).map(|(_, n)| n).sum();
    let waiting: f64 = by_event.iter().filter(|(event, _)| **event != "CPU").map(|(_, n)| n).sum();
    figures.set("wal_wait_share", node, of_wal / waiting);
    for (event, sum) in by_event {
        figures.set("wait_share", &label_scope(evidence, node, event), sum / all);
    }
}

/// Whether a wait event is one of writing or flushing WAL, which `synchronous_commit = local` waits
/// for too. Waiting for a standby is none.
fn is_of_wal(event: &str) -> bool {
    let (kind, name) = event.split_once(':').unwrap_or_default();
    name.starts_with("WAL") && ["IO", "LWLock"].contains(&kind)
}

fn warmth(evidence: &Evidence<'_>, figures: &mut Figures) {
    let node = &evidence.point.data.node;
    let residency = &evidence.warmed.residency;
    for (relation, (resident, all)) in residency {
        let scope = label_scope(evidence, node, relation);
        figures.set("relation_residency", &scope, resident / all);
    }
    let sum = |part: fn(&(f64, f64)) -> f64| residency.values().map(part).sum::<f64>();
    for scope in scopes(evidence, node) {
        figures.set("residency", &scope, sum(|blocks| blocks.0) / sum(|blocks| blocks.1));
    }
}

/// The mean, inside the window, of everything that was read second by second.
fn samples(evidence: &Evidence<'_>, figures: &mut Figures) {
    let mut sums: BTreeMap<(&str, &str, &str), (f64, u32)> = BTreeMap::new();
    for sample in inside(evidence) {
        let key = (sample.metric.as_str(), sample.node.as_str(), sample.label.as_str());
        let (sum, count) = sums.entry(key).or_default();
        *sum += sample.value;
        *count += 1;
    }
    for ((name, node, label), (sum, count)) in sums {
        let Some(metric) = metric(name).filter(|metric| metric.kind != Kind::Total) else {
            continue;
        };
        let mean = sum / f64::from(count);
        let scopes = match (metric.scope, label) {
            (Scope::Machine, label) => vec![label.to_owned()],
            (_, "") => scopes(evidence, node),
            (_, label) => vec![label_scope(evidence, node, label)],
        };
        for scope in scopes {
            figures.insert(name, scope, mean);
        }
    }
}

fn mean_of(evidence: &Evidence<'_>, name: &str, node: &str) -> Option<f64> {
    let values: Vec<f64> = inside(evidence)
        .filter(|sample| sample.metric == name && sample.node == node && sample.label.is_empty())
        .map(|sample| sample.value)
        .collect();
    stats::sample::mean(&values)
}

fn inside<'a>(evidence: &'a Evidence<'_>) -> impl Iterator<Item = &'a record::Sample> {
    let window = evidence.window;
    let samples = evidence.readings.samples.iter();
    samples.filter(move |sample| sample.at > window.open && sample.at <= window.close)
}

/// A node's own scope; and the trial's, if it is the only node.
fn scopes(evidence: &Evidence<'_>, node: &str) -> Vec<String> {
    let nodes = &evidence.point.topology.nodes;
    match nodes.as_slice() {
        [only] if only.name == node => vec![node.to_owned(), String::new()],
        _ => vec![node.to_owned()],
    }
}

fn label_scope(evidence: &Evidence<'_>, node: &str, label: &str) -> String {
    match evidence.point.topology.nodes.as_slice() {
        [only] if only.name == node => label.to_owned(),
        _ => format!("{node}/{label}"),
    }
}

fn ms(ns: f64) -> f64 {
    ns / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standstills_are_runs_of_seconds_without_a_success() {
        let check = |seconds: &[f64], expected: &[usize]| {
            assert_eq!(standstills(seconds), expected, "{seconds:?}");
        };
        check(&[], &[]);
        check(&[5.0, 1.0], &[]);
        check(&[0.0, 0.0, 7.0, 0.0], &[2, 1]);
        check(&[7.0, 0.0, 0.0, 0.0, 1.0], &[3]);
    }

    #[test]
    fn waiting_for_wal_is_inserting_writing_or_flushing_it() {
        let check = |event: &str, expected: bool| assert_eq!(is_of_wal(event), expected, "{event}");
        check("LWLock:WALWrite", true);
        check("LWLock:WALInsert", true);
        check("IO:WALSync", true);
        check("IO:DataFileRead", false);
        check("IPC:SyncRep", false);
        check("CPU", false);
    }
}
