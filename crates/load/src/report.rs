//! Reports of a lane to the conductor, across a channel or out of a generator process.

use std::collections::BTreeMap;

use record::{ConnectionPhase, LoadInterval, SocketIo, histogram_text};
use serde::{Deserialize, Serialize};
use stats::LatencyHistogram;
use tail::SlowestTransactions;
use wire::startup::ConnectionLimit;

use crate::{
    LoadError, ScriptOutcome, UserMessage, WorkloadWork,
    tally::{FirstErrors, Open},
};

/// One report of one lane.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    /// So many clients of this lane are connected and prepared.
    Connected(u32),
    /// All of them are.
    Ready,
    /// One could not connect; the load cannot begin.
    ConnectFailed(ConnectFailure),
    /// An interval is over: its index on the grid, and one entry a workload.
    Interval(i64, Vec<LoadInterval>),
    /// Things to tell the user.
    Said(Vec<UserMessage>),
    /// The process itself stood still from one moment to another one.
    Stalled(u64, u64),
    /// A client aborted.
    Aborted,
    /// The lane is gone.
    Lost(Loss),
    /// The lane has ended.
    Done(Box<LaneOutcome>),
}

/// Why a lane, or the process that it was to run in, is gone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Loss {
    pub(crate) why: String,
    pub(crate) hint: Option<String>,
}

impl From<String> for Loss {
    fn from(why: String) -> Loss {
        Loss { why, hint: None }
    }
}

/// Why a client could not connect.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ConnectFailure {
    pub(crate) message: String,
    pub(crate) sqlstate: Option<String>,
    pub(crate) hint: Option<String>,
    /// The limit on connections that was reached, if it is known.
    pub(crate) limit: Option<ReachedLimit>,
}

/// A limit on connections, with the name that it is set by.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReachedLimit {
    Role(String),
    Database(String),
    Slots,
    Reserved,
    Pooler,
}

impl From<server::dial::ReachedLimit> for ReachedLimit {
    fn from(reached: server::dial::ReachedLimit) -> ReachedLimit {
        match reached.limit {
            ConnectionLimit::Role => ReachedLimit::Role(reached.user),
            ConnectionLimit::Database => ReachedLimit::Database(reached.database),
            ConnectionLimit::Slots => ReachedLimit::Slots,
            ConnectionLimit::Reserved => ReachedLimit::Reserved,
            ConnectionLimit::Pooler => ReachedLimit::Pooler,
        }
    }
}

impl From<server::dial::RouteFailure> for ConnectFailure {
    fn from(failure: server::dial::RouteFailure) -> Self {
        ConnectFailure {
            message: failure.message,
            sqlstate: failure.sqlstate.map(|state| state.as_str().to_owned()),
            hint: failure.hint,
            limit: failure.limit.map(ReachedLimit::from),
        }
    }
}

impl ConnectFailure {
    /// A failure of which only the message is known.
    pub(crate) fn new(message: String) -> ConnectFailure {
        ConnectFailure { message, sqlstate: None, hint: None, limit: None }
    }

    /// The error of a load of which `connected` of `clients` got in.
    pub(crate) fn into_error(self, connected: u32, clients: u32) -> LoadError {
        let hint = self.limit.map(|limit| limit.hint(clients)).or(self.hint);
        let sqlstate = self.sqlstate.map(|state| wire::SqlState::from_bytes(state.as_bytes()));
        LoadError::Connect { message: self.message, sqlstate, connected, clients, hint }
    }
}

impl ReachedLimit {
    /// The advice on how to raise it for so many clients.
    fn hint(&self, clients: u32) -> String {
        let limit = match self {
            ReachedLimit::Role(name) => format!(
                "the limit is the role's own: ALTER ROLE \"{name}\" CONNECTION LIMIT {clients}"
            ),
            ReachedLimit::Database(name) => format!(
                "the limit is the database's own: ALTER DATABASE \"{name}\" CONNECTION LIMIT \
                 {clients}"
            ),
            ReachedLimit::Slots => "the limit is max_connections: ALTER SYSTEM SET \
                                    max_connections, then restart the server"
                .to_owned(),
            ReachedLimit::Reserved => {
                "the limit is max_connections less superuser_reserved_connections (and, since 16, \
                 reserved_connections): ALTER SYSTEM SET max_connections, then restart the server"
                    .to_owned()
            }
            ReachedLimit::Pooler => "the limit is the pooler's max_client_conn: raise it in its \
                                     configuration"
                .to_owned(),
        };
        format!("{limit}; or use fewer clients")
    }
}

/// Results that only the whole life of a lane gives.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LaneOutcome {
    pub(crate) connecting: ConnectionPhase,
    pub(crate) disconnecting: ConnectionPhase,
    /// The moments at which the first attempt to connect began and the last one ended.
    pub(crate) connect_span: (u64, u64),
    /// The same for disconnecting.
    pub(crate) disconnect_span: (u64, u64),
    /// The moment at which the last transaction ended.
    pub(crate) drained: u64,
    pub(crate) workloads: Vec<LaneWorkload>,
    /// CPU of this thread inside the window.
    pub(crate) cpu_ns: u64,
    /// Share of the window that this thread was on the CPU.
    pub(crate) busy_share: f64,
    /// Time inside the window in which this thread could run and had no CPU, ns; none where the
    /// kernel does not tell.
    pub(crate) run_delay_ns: Option<u64>,
    /// Share of the window in which this thread was on the CPU or wanted one; none where the kernel does
    /// not tell.
    #[serde(default)]
    pub(crate) wanted_share: Option<f64>,
    /// None if it had no connection.
    pub(crate) io: Option<SocketIo>,
    #[serde(with = "histogram_text")]
    pub(crate) lag: LatencyHistogram,
    pub(crate) messages_dropped: u64,
    /// The log of transactions could not be written to its end.
    pub(crate) log_is_cut: bool,
}

/// One workload's share of a lane.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LaneWorkload {
    /// Successful transactions, from the load's beginning until the lane was done.
    pub(crate) transactions: u64,
    pub(crate) unknown: u64,
    pub(crate) aborted: u64,
    /// The first error of each kind.
    pub(crate) first_errors: FirstErrors,
    pub(crate) longest_ns: u64,
    /// The slowest transactions, where they were asked for.
    #[serde(default)]
    pub(crate) slowest: SlowestTransactions,
    /// Stretches in which nothing succeeded: from and to, in nanoseconds since the run began.
    pub(crate) standstills: Vec<(u64, u64)>,
    pub(crate) open: Open,
    pub(crate) statements: Vec<Vec<LaneStatement>>,
    /// What the statements did, where it was asked for.
    #[serde(default)]
    pub(crate) work: Option<WorkloadWork>,
    /// Per script; empty where there is only one.
    pub(crate) scripts: Vec<ScriptOutcome>,
    /// Client number → transactions inside the window.
    pub(crate) clients: BTreeMap<u32, u64>,
    /// Client number → transactions inside the window that met their deadline; empty without a deadline.
    #[serde(default)]
    pub(crate) good_clients: BTreeMap<u32, u64>,
    /// Time from the loss of a connection, in the window, until its client's next success.
    #[serde(default, with = "histogram_text")]
    pub(crate) served: LatencyHistogram,
    /// Time at the close since the losses that no success of their client has followed.
    #[serde(default, with = "histogram_text")]
    pub(crate) unserved: LatencyHistogram,
}

/// One command of one script.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LaneStatement {
    pub(crate) failures: u64,
    pub(crate) retries: u64,
    #[serde(with = "histogram_text")]
    pub(crate) latency: LatencyHistogram,
}
