//! One run of one scenario at one point, and everything that was counted in it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stats::Latency;

use crate::{Counts, Moment};

/// One trial. Its intervals, samples and marks lie in files beside it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trial {
    /// Position in the order of execution, from 1.
    pub number: usize,
    /// Which round it belongs to, from 1.
    pub round: usize,
    /// The variant it ran on.
    pub variant: String,
    /// The scenario that ran.
    pub scenario: String,
    /// The point on the scenario's axes, axis → value as written in the study.
    pub axes: BTreeMap<String, String>,
    /// Whether it counts.
    pub status: Status,
    /// Wall clock at its beginning, RFC 3339.
    pub started_at: String,
    /// Its beginning on the run's clock.
    pub began: Moment,
    /// Its end on the run's clock, clean-up included.
    pub ended: Moment,
    /// The part that counts; none when it never opened.
    pub window: Option<Window>,
    /// Connecting: count, time, latency, failures.
    pub connecting: Phase,
    /// Disconnecting.
    pub disconnecting: Phase,
    /// One entry for each workload of the scenario, in its order.
    pub workloads: Vec<WorkloadResult>,
    /// What the rig itself cost.
    pub generator: Generator,
    /// Every metric of the catalogue that this trial has a value for: metric → scope → value. The
    /// scope is empty for the whole trial, else the name of a workload or of a node.
    pub metrics: BTreeMap<String, BTreeMap<String, f64>>,
    /// What a reader should know: a settled doubt, a limit that was met.
    pub notes: Vec<String>,
}

/// Whether a trial counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is", content = "why")]
pub enum Status {
    /// It counts.
    Done,
    /// It ran, but something makes its figures worthless: not steady, an action without effect.
    Void(String),
    /// It was not run: the machine or the variant cannot.
    Skipped(String),
    /// It broke.
    Failed(String),
}

/// The part of a trial that counts: after every client is connected, prepared and warm, before
/// the first one leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// When every client was connected and the first transaction began.
    pub load_began: Moment,
    /// When the window opened: load began plus warm-up.
    pub open: Moment,
    /// When it closed, with every client still running.
    pub close: Moment,
}

impl Window {
    /// Length in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.close.since(self.open) as f64 / 1e9
    }
}

/// Connecting or disconnecting, as a measured phase.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// Connections made or ended.
    pub count: u64,
    /// Attempts that failed, by SQLSTATE or by the operating system's error name.
    pub failures: BTreeMap<String, u64>,
    /// From the first attempt to the last success, in nanoseconds.
    pub length_ns: u64,
    /// Each connection's own time.
    #[serde(with = "crate::histogram_text")]
    pub latency: Latency,
    /// CPU that the rig spent in the phase, user + system, in nanoseconds.
    pub generator_cpu_ns: u64,
}

/// What one workload achieved inside the window.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadResult {
    /// The workload's name in the study.
    pub name: String,
    /// Clients that ran it.
    pub clients: u32,
    /// How transactions ended inside the window.
    pub counts: Counts,
    /// The same over the whole life of the clients, from all-connected until drained: what the
    /// server's own counters are compared with.
    pub counts_total: Counts,
    /// Transactions whose outcome nobody knows: connection lost while committing.
    pub unknown: u64,
    /// Latency from the intended start, successful transactions of the window.
    #[serde(with = "crate::histogram_text")]
    pub latency: Latency,
    /// Latency from the send.
    #[serde(with = "crate::histogram_text")]
    pub service: Latency,
    /// Open loop: how far behind schedule.
    #[serde(with = "crate::histogram_text")]
    pub lag: Latency,
    /// Per statement, in script order.
    pub statements: Vec<StatementResult>,
    /// Transactions of each client inside the window, in client order: fairness comes from it.
    pub per_client: Vec<u64>,
    /// Longest time that any client waited for one transaction, in nanoseconds.
    pub longest_wait_ns: u64,
    /// The way pgbench counts.
    pub published_way: PublishedWay,
}

/// One command of a script.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatementResult {
    /// The script it stands in.
    pub script: String,
    /// Line of the script, from 1.
    pub line: u32,
    /// Its text, first line.
    pub text: String,
    /// Executions inside the window whose failure ended the transaction.
    pub failures: u64,
    /// Executions inside the window after whose failure the transaction was tried again.
    #[serde(default)]
    pub retries: u64,
    /// Time of each successful execution inside the window.
    #[serde(with = "crate::histogram_text")]
    pub latency: Latency,
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

/// What the rig itself cost, and whether it was the limit.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generator {
    /// Generator processes.
    pub processes: u32,
    /// Lanes (threads) in all.
    pub lanes: u32,
    /// CPU inside the window, user + system, in nanoseconds.
    pub cpu_ns: u64,
    /// Share of the window that the busiest lane spent on the CPU, 0 to 1.
    pub busy_share_max: f64,
    /// Loop lag (handled − wake), 99th percentile in nanoseconds.
    pub lag_p99_ns: u64,
    /// Loop lag, largest, in nanoseconds.
    pub lag_max_ns: u64,
    /// What share of the clients' waiting the loop lag is, 0 to 1: the sum of all lags over the
    /// sum of all latencies from the send.
    pub lag_share: f64,
}

impl Generator {
    /// Above this [`Generator::busy_share_max`], a lane is no longer waiting for the server.
    pub const BUSY_SHARE_MAX: f64 = 0.8;

    /// Above this [`Generator::lag_share`], the rig's own delay is part of what is measured.
    pub const LAG_SHARE_MAX: f64 = 0.05;
}
