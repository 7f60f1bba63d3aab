//! The plan of a load: everything that a generator process needs to know.
//!
//! A plan is plain data. It crosses to generator processes as JSON, so connection strings and
//! scripts are text here and are resolved where they are used.

use script::{Protocol, ScriptSyntax};
use serde::{Deserialize, Serialize};

use crate::{LedgerTables, RetryPolicy, ScriptRows};
use terms::{OnLoss, Pace, WarmUp};

use crate::{BlockSchedule, RateCourse, WorkRecord};

/// A whole load.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadPlan {
    /// The workloads that run together.
    pub workloads: Vec<ClientGroup>,
    /// Lanes (threads) of each generator process; at most as many as it has clients.
    pub lanes: u32,
    /// Seed of pgbench's base random sequence.
    pub seed: u64,
    /// The way in which connections are made.
    pub connecting: ConnectionMode,
    /// The length of the load.
    pub limit: LoadLimit,
    /// Time after the window's close for which an answer is waited for before queries are
    /// cancelled, in milliseconds; none waits for ever, as pgbench does. Without a limit, a client
    /// disconnects as soon as it is done and the window has closed; with one, all disconnect
    /// together afterwards.
    pub drain_ms: Option<u64>,
    /// Length of an interval, in milliseconds: how often a lane hands over what it counted.
    pub interval_ms: u64,
    /// Keep the slowest transactions of the window, each with its backend.
    #[serde(default)]
    pub slowest: bool,
    /// Note what the statements do.
    #[serde(default)]
    pub work: WorkRecord,
    /// Workloads in turn instead of at once.
    #[serde(default)]
    pub blocks: Option<BlockSchedule>,
    /// Rates of the open-loop workloads that change in the window; none for one rate.
    #[serde(default)]
    pub rates: Option<RateCourse>,
    /// Keep a histogram for each statement of each script.
    pub statements: bool,
    /// Write a log of transactions in pgbench's format.
    pub log: Option<LogPlan>,
    /// Keep a ledger of every transaction whose script writes `:ledger_seq`.
    pub ledger: Option<LedgerPlan>,
    /// Keep a history of every transaction whose script has notes of one.
    #[serde(default)]
    pub history: Option<HistoryPlan>,
    /// Stop everything as soon as one client aborts (pgbench's `--exit-on-abort`).
    pub exit_on_abort: bool,
    /// Report every error in full, retried ones too (pgbench's `--verbose-errors`).
    pub verbose_errors: bool,
    /// Narrate what every client sends and receives (pgbench's `--debug`).
    pub debug: bool,
    /// Send and receive by io_uring where the kernel permits it; else by epoll.
    pub io_uring: bool,
}

impl LoadPlan {
    /// A plan with pgbench's defaults: one lane, intervals of a second, every answer is waited for,
    /// and nothing is logged.
    pub fn new(workloads: Vec<ClientGroup>, limit: LoadLimit) -> LoadPlan {
        LoadPlan {
            workloads,
            lanes: 1,
            seed: 0,
            connecting: ConnectionMode::default(),
            limit,
            drain_ms: None,
            interval_ms: 1_000,
            slowest: false,
            work: WorkRecord::Nothing,
            blocks: None,
            rates: None,
            statements: false,
            log: None,
            ledger: None,
            history: None,
            exit_on_abort: false,
            verbose_errors: false,
            debug: false,
            io_uring: true,
        }
    }
}

/// One group of clients that do the same.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientGroup {
    /// The name in output.
    pub name: String,
    /// The server: a resolved conninfo in keyword form, as `wire` prints it losslessly.
    pub conninfo: String,
    /// Weighted scripts.
    pub scripts: Vec<LoadScript>,
    /// The rows that they draw from.
    #[serde(default)]
    pub rows: Vec<ScriptRows>,
    /// Clients over all generator processes.
    pub clients: u32,
    /// The protocol of their statements.
    #[serde(with = "ProtocolText")]
    pub protocol: Protocol,
    /// Closed loop or open loop.
    pub pace: Pace,
    /// Transactions slower than this are counted as late; in open loop, those that are already
    /// later than this before they start are skipped. Microseconds.
    pub latency_limit_us: Option<u64>,
    /// Variables set before the first transaction: name and text, as after `-D`.
    pub variables: Vec<(String, String)>,
    /// Settings given to each session in its start-up packet: name and value.
    pub session: Vec<(String, String)>,
    /// The fate of a transaction that fails.
    pub on_error: OnError,
    /// Retries by the client's own rule; none for those of `on_error`.
    #[serde(default)]
    pub retry: Option<RetryPolicy>,
    /// Time since it was due within which a transaction must have ended to be good; microseconds. None where all are
    /// good that end well.
    #[serde(default)]
    pub deadline_us: Option<u64>,
    /// Moments, in milliseconds since the window opened, at which all clients drop their connections and connect anew
    /// at once, as many at a time as the server takes. What is under way then is lost.
    #[serde(default)]
    pub storms_ms: Vec<u64>,
    /// A connection for each transaction (pgbench's `--connect`).
    pub connect_each: bool,
    /// With a connection for each transaction: derive the keys of SCRAM once, and not for each
    /// connection as libpq does.
    pub caches_keys: bool,
    /// The fate of a client whose connection is lost.
    pub on_loss: OnLoss,
    /// Ask for RowDescription with every execution, as libpq does. Leaving it out saves the
    /// server and the wire some work, so it is not like for like.
    pub describe: bool,
    /// The user that runs the commands of its scripts.
    #[serde(default)]
    pub shell: ShellUser,
    /// The tables of its ledger, where it keeps one. Without them each statement that has `:ledger_seq` is
    /// taken for one that writes into all of them.
    #[serde(default)]
    pub ledger: Option<LedgerTables>,
}

/// The user that runs the commands of `\shell` and `\setshell`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShellUser {
    /// The user of this program: the scripts are this user's own.
    #[default]
    Own,
    /// The user that servers run as, with nothing of this program's environment: somebody else may
    /// have written the scripts.
    Unprivileged,
}

impl ClientGroup {
    /// A workload with pgbench's defaults: closed loop, one try of each transaction, a client that
    /// loses its connection is aborted. `conninfo` is in keyword form.
    pub fn new(
        name: &str,
        conninfo: String,
        scripts: Vec<LoadScript>,
        clients: u32,
        protocol: Protocol,
    ) -> ClientGroup {
        ClientGroup {
            name: name.to_owned(),
            conninfo,
            scripts,
            rows: Vec::new(),
            clients,
            protocol,
            pace: Pace::Closed,
            latency_limit_us: None,
            variables: Vec::new(),
            session: Vec::new(),
            on_error: OnError { tries_max: 1, go_on: false },
            retry: None,
            deadline_us: None,
            storms_ms: Vec::new(),
            connect_each: false,
            caches_keys: false,
            on_loss: OnLoss::Abort,
            describe: true,
            shell: ShellUser::Own,
            ledger: None,
        }
    }
}

/// One script with its weight.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadScript {
    /// File name, or pgbench's description of a built-in.
    pub name: String,
    /// The script.
    pub text: String,
    /// The share is its weight over the sum of weights.
    pub weight: u32,
    /// The version of pgbench whose syntax it has.
    #[serde(with = "SyntaxText")]
    pub syntax: ScriptSyntax,
}

/// The form of a [`ScriptSyntax`] for a generator process: its own room writes nothing.
#[derive(Serialize, Deserialize)]
#[serde(remote = "ScriptSyntax", rename_all = "snake_case")]
enum SyntaxText {
    Current,
    Pgbench,
    NineX,
}

/// The form of a [`Protocol`] for a generator process.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Protocol", rename_all = "snake_case")]
enum ProtocolText {
    Simple,
    Extended,
    Prepared,
}

/// The treatment of a failed transaction, by pgbench's rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OnError {
    /// Tries of a transaction that fails with 40001 or 40P01; 0 for no limit, 1 for no retry.
    pub tries_max: u32,
    /// After any other SQL error: go on with the next transaction instead of aborting the client
    /// (pgbench 19's `--continue-on-error`).
    pub go_on: bool,
}

/// The way in which connections are made.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectionMode {
    /// Attempts under way at once, in each generator process.
    pub at_once: u32,
    /// Attempts begun a second, at most, in each generator process; none for no limit.
    pub rate: Option<f64>,
}

impl Default for ConnectionMode {
    /// 64 at once: below the listen backlog of a default server (max_connections 100 gives 200),
    /// so a Unix socket does not answer EAGAIN, and enough to keep every core of a server busy.
    fn default() -> Self {
        ConnectionMode { at_once: 64, rate: None }
    }
}

/// The length of a load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadLimit {
    /// So many transactions for each client; no warm-up.
    Transactions(u64),
    /// A warm-up, then a window.
    Time {
        /// The part that does not count.
        warm_up: WarmUp,
        /// The part that counts, in milliseconds.
        window_ms: u64,
    },
}

impl LoadLimit {
    /// True if a part does not count.
    pub fn has_warm_up(self) -> bool {
        !matches!(
            self,
            LoadLimit::Transactions(_) | LoadLimit::Time { warm_up: WarmUp::Fixed(0), .. }
        )
    }
}

/// A ledger: before each transaction `:ledger_client`, `:ledger_seq` and `:ledger_chain` are set,
/// and what becomes of it is noted in a file. See [`record::ledger`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerPlan {
    /// Directory of the files, one for each lane. It must exist, and outlive whatever the load is
    /// held against.
    pub directory: String,
    /// Seed of the chains.
    pub seed: u64,
}

/// A history: before each transaction `:history_value` and `:history_ms` are set, and what its
/// statements write and read, as notes in its script say, goes into a file. See [`history::file`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistoryPlan {
    /// Directory of the files, one for each lane.
    pub directory: String,
    /// Each workload as the history names it, in the order of the plan.
    pub groups: Vec<HistoryGroup>,
}

/// A workload as a history names it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistoryGroup {
    /// The server that it speaks to.
    pub server: String,
    /// The isolation level that it asks for.
    pub isolation: String,
    /// The name.
    pub workload: String,
}

impl HistoryPlan {
    /// The first lines of each of so many files.
    pub(crate) fn header(&self, files: usize) -> Vec<u8> {
        let groups: Vec<history::HistoryWorkload> = self
            .groups
            .iter()
            .cloned()
            .map(|HistoryGroup { server, isolation, workload }| history::HistoryWorkload {
                server,
                isolation,
                workload,
            })
            .collect();
        history::file::HistoryWriter::header(&groups, files)
    }
}

/// pgbench's transaction log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogPlan {
    /// File name prefix; `.PID` follows, and `.N` for every lane but the first.
    pub prefix: String,
    /// Share of transactions to log, 0 to 1.
    pub sampling_rate: f64,
    /// Seconds to sum up in one line; none for a line each transaction.
    pub aggregate_s: Option<u64>,
    /// Write the last stretch of an aggregated log, too, which is not over; pgbench leaves it out.
    #[serde(default)]
    pub last_stretch: bool,
    /// Include the column of other failures, which pgbench's aggregates have since 19.
    pub other_failures: bool,
    /// Write failures by kind (pgbench's `--failures-detailed`).
    pub failures_detailed: bool,
    /// The start of the run on the wall clock, in microseconds since 1970; log lines count on.
    pub epoch_us: u64,
}
