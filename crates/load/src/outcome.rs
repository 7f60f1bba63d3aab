//! The outcome of a load, and its events while it runs.

use std::collections::BTreeMap;

use record::{
    ConnectionPhase, GeneratorCost, LoadInterval, MeasuredWindow, Moment, PublishedWay,
    TransactionCounts, WorkloadResult, histogram_text,
};
use serde::{Deserialize, Serialize};
use stats::LatencyHistogram;
use tail::SlowestTransactions;

use crate::{Standstill, WorkloadWork};

/// The outcome of a load.
#[derive(Clone, Debug)]
pub struct LoadOutcome {
    /// The window; none when it never opened.
    pub window: Option<MeasuredWindow>,
    /// True if warm-up found steady throughput; `None` where it was not asked for.
    pub steady: Option<bool>,
    /// Connecting.
    pub connecting: ConnectionPhase,
    /// Disconnecting.
    pub disconnecting: ConnectionPhase,
    /// One entry a workload.
    pub workloads: Vec<WorkloadResult>,
    /// One entry a workload, in it one entry a script.
    pub scripts: Vec<Vec<ScriptOutcome>>,
    /// One entry a workload: when no transaction of it succeeded, of a workload that connects
    /// again.
    pub standstills: Vec<Vec<Standstill>>,
    /// One entry a workload: the place of the first error of each kind.
    pub first_errors: Vec<BTreeMap<String, CommandPlace>>,
    /// The cost of the rig.
    pub generator: GeneratorCost,
    /// One entry a generator process, in their order.
    pub generators: Vec<GeneratorOutcome>,
    /// One entry a host, in the order of `generators`; empty where all ran on this machine.
    pub hosts: Vec<HostOutcome>,
    /// Every interval since the load began, warm-up included, in order of time, then workload.
    pub intervals: Vec<LoadInterval>,
    /// The way in which it ended.
    pub end: LoadEnd,
    /// Narration that was left out because there was too much of it.
    pub messages_dropped: u64,
    /// A log of transactions could not be written to its end.
    pub log_is_cut: bool,
    /// One entry a workload: the slowest transactions of the window, where they were asked for.
    pub slowest: Vec<SlowestTransactions>,
    /// One entry a workload: what its statements did, where it was asked for.
    pub work: Vec<WorkloadWork>,
}

impl LoadOutcome {
    /// True if clients were lost with their host: what was measured is that of the others.
    pub fn has_lost_clients(&self) -> bool {
        self.hosts.iter().any(|host| host.clients > 0 && host.lost.is_some())
    }

    /// The bound of the moments of a host's clients where its clock has jumped, in nanoseconds: the largest; 0 where none
    /// has.
    pub fn clocks_within_ns(&self) -> u64 {
        let jumped = self.hosts.iter().filter(|host| host.clock.has_jumped);
        // A clock that has jumped and of which nothing was heard in the window is not known at all.
        jumped.map(|host| host.clock.bound_ns.unwrap_or(u64::MAX)).fold(0, u64::max)
    }

    /// The transactions of these workloads that were under way at a moment, on average over its interval:
    /// the time that they took, divided by its length (Little's law). None where no interval holds the moment.
    pub fn under_way(&self, at: Moment, is_own: impl Fn(usize) -> bool) -> Option<f64> {
        let holds = |one: &&LoadInterval| {
            is_own(one.workload) && (one.start.0..one.start.0 + one.length_ns).contains(&at.0)
        };
        let running = self.intervals.iter().filter(holds);
        running
            .map(|one| one.service.sum_ns() as f64 / (one.length_ns as f64).max(1.0))
            .reduce(|sum, own| sum + own)
    }
}

/// One script's share of a workload: what ended in the window; without a warm-up, as pgbench counts,
/// the last answers after its close included.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptOutcome {
    /// The transactions by the way in which they ended; errors by SQLSTATE are counted by workload only.
    pub counts: TransactionCounts,
    /// Latency of the successful ones, from the intended start.
    #[serde(with = "histogram_text")]
    pub latency: LatencyHistogram,
    /// Open loop: how far behind schedule they started.
    #[serde(with = "histogram_text")]
    pub lag: LatencyHistogram,
}

/// One generator process's share of a load.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratorOutcome {
    /// As a pgbench of its own would have counted: over all its workloads, until the last one of
    /// its clients was done.
    pub published_way: PublishedWay,
    /// Transactions of its clients that ended inside the window: those of all processes are the load's.
    pub in_window: u64,
    /// CPU inside the window, user + system, in nanoseconds.
    pub cpu_ns: u64,
    /// Share of the window that the busiest of its threads was on the CPU.
    pub busy_share_max: f64,
    /// Share of the window that one of its threads was on the CPU or wanted one, the largest; none where the
    /// kernel does not tell.
    pub wanted_share_max: Option<f64>,
    /// 99th percentile of the lateness with which its loops woke, in nanoseconds.
    pub lag_p99_ns: u64,
    /// The parts of the window in which its process stood still, by its own clock. Those of [`host::GAP_MIN`] or more are
    /// seen.
    pub stalls: Vec<HostStall>,
}

/// A part of the window in which a host, or a process on it, stood still.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostStall {
    /// The beginning.
    pub from: Moment,
    /// The end.
    pub to: Moment,
}

impl HostStall {
    /// The length in nanoseconds.
    pub fn length_ns(self) -> u64 {
        self.to.since(self.from)
    }
}

/// A host of a load.
#[derive(Clone, Debug, PartialEq)]
pub struct HostOutcome {
    /// The name in the inventory.
    pub name: String,
    /// Clients that were dealt to it, over all workloads.
    pub clients: u32,
    /// Facts about its machine: name and value.
    pub facts: Vec<(String, String)>,
    /// The clock.
    pub clock: HostClock,
    /// The parts of the window in which it stood still, as its silence, its own clock or its generator's shows; apart, in
    /// their order. Those of [`host::GAP_MIN`] or more are seen.
    pub stalls: Vec<HostStall>,
    /// The moment at which it was lost, and the reason.
    pub lost: Option<(Moment, String)>,
}

impl HostOutcome {
    /// The longest part of the window in which it stood still, in nanoseconds; 0 where it did not.
    pub fn longest_stall_ns(&self) -> u64 {
        self.stalls.iter().map(|stall| stall.length_ns()).fold(0, u64::max)
    }

    /// Time in the window for which it stood still, in nanoseconds.
    pub fn stalled_ns(&self) -> u64 {
        self.stalls.iter().map(|stall| stall.length_ns()).sum()
    }
}

/// A host's clock while a load ran, as the conductor measured it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HostClock {
    /// The monotonic clock less the conductor's, in nanoseconds.
    pub offset_ns: i64,
    /// Gain of its clock, in parts of 10⁹.
    pub drift_ppb: f64,
    /// The shortest round trip, in nanoseconds.
    pub round_trip_ns: u64,
    /// Largest distance of a moment of this host in the window, its edges included, from the
    /// conductor's, in nanoseconds; none where nothing was heard in it.
    pub bound_ns: Option<u64>,
    /// It jumped, as that of a virtual machine does that was suspended. What was noted until that was seen has a bound
    /// that is too narrow.
    pub has_jumped: bool,
}

/// The way in which a load ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadEnd {
    /// As planned.
    Completed,
    /// It was interrupted; what was measured until then is there.
    Interrupted,
    /// Every client aborted.
    Aborted,
    /// A host was lost; what the others measured until then is there.
    HostLost,
    /// With `exit_on_abort`, a client of this lane aborted. Lanes are counted from 0 over all
    /// generator processes, as pgbench counts its threads.
    ExitedOnAbort(usize),
}

/// An event of a load while it runs. Events of one load arrive in order, on one thread.
#[derive(Debug)]
pub enum LoadEvent<'a> {
    /// Generator processes have started: their process ids.
    Generators(&'a [u32]),
    /// Connections made so far.
    Connecting {
        /// Made.
        done: u32,
        /// Planned.
        of: u32,
    },
    /// All clients are connected.
    LoadBegan {
        /// The moment at which the first transactions begin, a moment ahead.
        at: Moment,
    },
    /// It is decided when the window opens.
    WindowOpens {
        /// The moment at which it opens, which lies ahead.
        at: Moment,
    },
    /// An interval is complete: one entry a workload.
    Interval(&'a [LoadInterval]),
    /// Something to tell the user, in pgbench's words, without a prefix.
    Message(UserMessage),
}

/// Something to tell the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserMessage {
    /// The level.
    pub level: MessageLevel,
    /// In pgbench's words, without `pgbench: error: `.
    pub text: String,
    /// The command of a script that it is about, where a client ends because of one.
    #[serde(default)]
    pub at: Option<CommandPlace>,
}

/// A command in a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandPlace {
    /// The script's name.
    pub script: String,
    /// The line there, from 1.
    pub line: u32,
}

/// The level of a message; pgbench's log levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageLevel {
    /// A client ends because of it.
    Error,
    /// The run goes on.
    Info,
    /// Only wanted with `--debug`.
    Debug,
    /// Output of `debug()` in a script: goes to stderr bare.
    Script,
    /// Output of a `\shell` command: goes to stdout as it is.
    Output,
}
