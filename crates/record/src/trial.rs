//! One attempt at one scenario at one point, and everything that was counted in it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use spec::Metric;
use stats::LatencyHistogram;
use tail::SlowTransactions;

use crate::{
    AttemptEnding, HostUse, Moment, Note, NoteKind, PlannedTrial, TimedAction, TransactionCounts,
    WitnessPicture,
};

/// One attempt at a trial. Its intervals, samples and marks lie in files beside it.
///
/// An attempt is the unit of evidence: each is kept as it was, and what it proved counts. A trial,
/// all attempts of one number, is the unit of replication: at most one of them, the one that is
/// [`AttemptEnding::Done`], gives its figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trial {
    /// Position in the order of execution, from 1.
    pub number: usize,
    /// Number of the attempt at this trial, from 1.
    pub attempt: usize,
    /// Number of its round, from 1.
    pub round: usize,
    /// The variant it ran on.
    pub variant: String,
    /// The scenario that ran.
    pub scenario: String,
    /// The point on the scenario's axes, axis → value as written in the study.
    pub axes: BTreeMap<String, String>,
    /// The end, which decides whether its figures count.
    pub ending: AttemptEnding,
    /// Wall clock at its beginning, RFC 3339.
    pub started_at: String,
    /// The beginning on the run's clock.
    pub began: Moment,
    /// The end on the run's clock, clean-up included.
    pub ended: Moment,
    /// The part that counts; none when it never opened.
    pub window: Option<MeasuredWindow>,
    /// The actions of its timeline, in the order in which they were due.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<TimedAction>,
    /// What the cluster lacked to be whole, so that it was made anew for this attempt; none where it went on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_anew: Option<String>,
    /// Connecting: count, time, latency, failures.
    pub connecting: ConnectionPhase,
    /// Disconnecting.
    pub disconnecting: ConnectionPhase,
    /// One entry for each workload of the scenario, in its order.
    pub workloads: Vec<WorkloadResult>,
    /// Cost of the rig itself.
    pub generator: GeneratorCost,
    /// Figures of each host; empty if everything ran on one machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostUse>,
    /// Every metric of the catalogue that this trial has a value for: metric → scope → value. The
    /// scope is empty for the whole trial, else the name of a workload or of a node.
    pub metrics: BTreeMap<String, BTreeMap<String, f64>>,
    /// Those of the metrics that are lower bounds: metric → scopes. How much larger the value is, is
    /// not known, because something had not ended when the window closed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub at_least: BTreeMap<String, BTreeSet<String>>,
    /// The slow transactions by cause, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<SlowTransactions>,
    /// Anomalies in its clients' history: the smallest witness of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub witnesses: Vec<WitnessPicture>,
    /// Notes for the reader: a settled doubt, a limit that was met.
    pub notes: Vec<Note>,
}

impl PlannedTrial {
    /// An attempt at this trial before anything was measured. `attempt` counts from 1.
    pub fn attempt(&self, attempt: usize) -> Trial {
        Trial {
            number: self.number,
            attempt,
            round: self.round,
            variant: self.variant.clone(),
            scenario: self.scenario.clone(),
            axes: self.axes.clone(),
            ending: AttemptEnding::Done,
            started_at: String::new(),
            began: Moment::default(),
            ended: Moment::default(),
            window: None,
            actions: Vec::new(),
            made_anew: None,
            connecting: ConnectionPhase::default(),
            disconnecting: ConnectionPhase::default(),
            workloads: Vec::new(),
            generator: GeneratorCost::default(),
            hosts: Vec::new(),
            tail: None,
            witnesses: Vec::new(),
            metrics: BTreeMap::new(),
            at_least: BTreeMap::new(),
            notes: Vec::new(),
        }
    }
}

/// One value of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MetricFigure {
    /// The value, or its lower bound.
    pub value: f64,
    /// The value is at least that.
    pub is_at_least: bool,
}

impl Trial {
    /// The first host that was lost and had clients in this trial: its figures are those of the others.
    pub fn lost_clients(&self) -> Option<&HostUse> {
        let had_clients = |host: &&HostUse| host.load.is_some_and(|load| load.clients > 0);
        self.hosts.iter().find(|host| host.lost.is_some() && had_clients(host))
    }

    /// The first host with clients whose clock is not known well enough for the order in time of a history.
    pub fn unclocked_host(&self) -> Option<(&HostUse, u64)> {
        let hosts = self.hosts.iter().filter(|host| host.load.is_some());
        let mut bounds = hosts.filter_map(|host| Some((host, host.clock_bound_ns?)));
        bounds.find(|(_, bound_ns)| *bound_ns > history::CLOCK_BOUND_MAX_NS)
    }

    /// The values of a metric in all its scopes.
    pub fn scopes(&self, metric: &Metric) -> Option<&BTreeMap<String, f64>> {
        self.metrics.get(metric.name)
    }

    /// The value of a metric in a scope.
    pub fn figure(&self, metric: &Metric, scope: &str) -> Option<MetricFigure> {
        let value = *self.scopes(metric)?.get(scope)?;
        let at_least = self.at_least.get(metric.name);
        let is_at_least = at_least.is_some_and(|scopes| scopes.contains(scope));
        Some(MetricFigure { value, is_at_least })
    }

    /// True if its figures count and its throughput had one level.
    pub fn is_steady(&self) -> bool {
        let is_unsteady = |note: &Note| note.kind == NoteKind::Unsteady;
        self.ending == AttemptEnding::Done && !self.notes.iter().any(is_unsteady)
    }
}

/// The part of a trial that counts: after every client is connected, prepared and warm, before
/// the first one leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredWindow {
    /// Time at which every client was connected and the first transaction began.
    pub load_began: Moment,
    /// Time at which the window opened: load began plus warm-up.
    pub open: Moment,
    /// Time at which it closed, with every client still running.
    pub close: Moment,
}

impl MeasuredWindow {
    /// Length in seconds.
    pub fn seconds(&self) -> f64 {
        self.close.since(self.open) as f64 / 1e9
    }
}

/// Connecting or disconnecting, as a measured phase.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectionPhase {
    /// Connections made or ended.
    pub count: u64,
    /// Attempts that failed, by SQLSTATE or by the operating system's error name.
    pub failures: BTreeMap<String, u64>,
    /// From the first attempt to the last success, in nanoseconds.
    pub length_ns: u64,
    /// Each connection's own time.
    #[serde(with = "crate::histogram_text")]
    pub latency: LatencyHistogram,
    /// CPU that the rig spent in the phase, user + system, in nanoseconds.
    pub generator_cpu_ns: u64,
}

/// Results of one workload inside the window.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadResult {
    /// The workload's name in the study.
    pub name: String,
    /// Clients that ran it.
    pub clients: u32,
    /// Transactions inside the window by the way they ended.
    pub counts: TransactionCounts,
    /// The same over the whole life of the clients, from all-connected until drained: what the
    /// server's own counters are compared with.
    pub counts_total: TransactionCounts,
    /// Transactions with an unknown outcome: the connection was lost while committing, or the rig
    /// itself cancelled or abandoned them. The latter are in no count.
    pub unknown: u64,
    /// Latency of the successful transactions of the window: in an open loop from the moment at
    /// which they were due, in a closed loop from the first send.
    #[serde(with = "crate::histogram_text")]
    pub latency: LatencyHistogram,
    /// Ages, at the close, of the transactions that had not ended: under way, or in an open loop due
    /// and never started. Their latencies are at least that.
    #[serde(with = "crate::histogram_text")]
    pub open: LatencyHistogram,
    /// Those of them that were never started.
    pub never_started: u64,
    /// Open loop: latency from the first send.
    #[serde(with = "crate::histogram_text")]
    pub service: LatencyHistogram,
    /// Open loop: how far behind schedule.
    #[serde(with = "crate::histogram_text")]
    pub lag: LatencyHistogram,
    /// Per statement, in script order.
    pub statements: Vec<StatementResult>,
    /// Transactions of each client inside the window, in client order: fairness comes from it.
    pub per_client: Vec<u64>,
    /// Those of them that ended within the deadline, in client order; empty where the workload has none.
    #[serde(default)]
    pub per_client_good: Vec<u64>,
    /// Time of each client from the loss of its connection, in the window, until a transaction of it succeeded.
    #[serde(default, with = "crate::histogram_text")]
    pub served: LatencyHistogram,
    /// Time, at the close, since the clients lost their connections of which no transaction has succeeded since.
    #[serde(default, with = "crate::histogram_text")]
    pub unserved: LatencyHistogram,
    /// Longest time that any client waited for one transaction, in nanoseconds. One that was under
    /// way at the close is followed until its end.
    pub longest_wait_ns: u64,
    /// That transaction never ended while the rig waited, or was never started: the wait was at least
    /// that long.
    pub longest_wait_is_open: bool,
    /// The way pgbench counts.
    pub published_way: PublishedWay,
}

/// One command of a script: its executions inside the window; without a warm-up, as pgbench counts, those
/// after its close as well.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatementResult {
    /// The script it stands in.
    pub script: String,
    /// Line of the script, from 1.
    pub line: u32,
    /// The text, first line.
    pub text: String,
    /// Executions whose failure ended the transaction.
    pub failures: u64,
    /// Executions after whose failure the transaction was tried again.
    pub retries: u64,
    /// Time of each successful execution.
    #[serde(with = "crate::histogram_text")]
    pub latency: LatencyHistogram,
}

/// Transactions as pgbench counts them: all that ended well from all-connected until the last
/// client was done, over that time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedWay {
    /// Transactions.
    pub transactions: u64,
    /// Seconds.
    pub seconds: f64,
}

/// Cost of the rig itself, and whether it was the limit.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeneratorCost {
    /// Generator processes.
    pub processes: u32,
    /// Lanes (threads) in all.
    pub lanes: u32,
    /// CPU inside the window, user + system, in nanoseconds.
    pub cpu_ns: u64,
    /// Share of the window that the busiest lane spent on the CPU, 0 to 1.
    pub busy_share_max: f64,
    /// Share of the window that one lane was on the CPU, could run and had none, or was held up with its
    /// control group: the largest, 0 to 1. None in records that do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted_share_max: Option<f64>,
    /// Loop lag (handled − wake), 99th percentile in nanoseconds.
    pub lag_p99_ns: u64,
    /// Loop lag, largest, in nanoseconds.
    pub lag_max_ns: u64,
    /// Share of the loop lag in the clients' waiting, 0 to 1: the sum of all lags over the sum of
    /// all latencies from the send.
    pub lag_share: f64,
    /// Share of the clients' waiting that passed while lanes could run and had no CPU (the second
    /// field of `/proc/PID/task/TID/schedstat`), 0 to 1; none if the kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_delay_share: Option<f64>,
    /// The kernel's interface by which connections sent and received; none in records that do not
    /// tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io: Option<SocketIo>,
}

/// The kernel's interface by which connections send and receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SocketIo {
    /// epoll, and a system call for each send and each receive.
    Epoll,
    /// io_uring.
    IoUring,
    /// Some connections by one, some by the other.
    Both,
}

impl SocketIo {
    /// That of connections of which some have one and some another.
    pub fn and(self, other: SocketIo) -> SocketIo {
        if self == other { self } else { SocketIo::Both }
    }
}

impl GeneratorCost {
    /// Above this [`GeneratorCost::busy_share_max`], a lane is no longer waiting for the server.
    pub const BUSY_SHARE_MAX: f64 = 0.8;

    /// True if a thread that was on the CPU for this share of the window (`busy`) and wanted one for that share
    /// (`wanted`) was kept from it: it had nothing to spare, and was not busy.
    pub fn is_starved(wanted: f64, busy: f64) -> bool {
        wanted > GeneratorCost::BUSY_SHARE_MAX && busy <= GeneratorCost::BUSY_SHARE_MAX
    }

    /// Above this [`GeneratorCost::lag_share`], the rig's own delay is part of what is measured: it makes
    /// a mean latency longer by as much. Six rounds on a quiet machine give an interval of ± 5 % (the
    /// simulation in `verdict/tests/honesty`), in which less is lost.
    pub const LAG_SHARE_MAX: f64 = 0.05;

    /// Above this [`GeneratorCost::run_delay_share`], waiting for a CPU is part of what is measured, for
    /// the reason that [`GeneratorCost::LAG_SHARE_MAX`] has.
    pub const RUN_DELAY_SHARE_MAX: f64 = 0.05;
}
