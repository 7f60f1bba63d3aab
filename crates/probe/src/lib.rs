//! Samplers that read the figures of servers and machine, second by second.
//!
//! A trial has one sampler ([`Probes::start`] → [`Running::stop`] → [`Readings`]), which gives
//! samples once a second on the run's clock, marks from the servers' logs, and for every server
//! what it did in all ([`Delta`]). Beside it stand what a runner asks for directly: the CPU time
//! of a server over a window ([`cpu_time_ns`]), a [`Snapshot`] of a server's counters, the
//! [`residency`] of relations in memory.
//!
//! Reading order: `probes` is the sampler and its thread, `node` one server in it, `session` the
//! connection and its limits, `versions` what each PostgreSQL is asked,
//! `looks` how often its sessions are looked at; `pooler` one PgBouncer,
//! `activity` samples what every backend waits for, many times a second, for the tail of the latency;
//! `remote` is a sampler on another host; `link` one link; `machine` and `group` read `/proc`; `log` reads the server's log.
//!
//! Limits: Linux; PostgreSQL 13 and later. What can not be read becomes a note and fails nothing.
//! A backend that lives shorter than a second shows in CPU and counters, hardly among the sessions.

mod activity;
mod book;
mod clock;
mod error;
#[cfg(fuzzing)]
pub mod fuzzing;
mod group;
mod horizon;
mod link;
mod log;
mod looks;
mod machine;
mod node;
mod pace;
mod pooler;
mod probes;
mod reading;
mod remote;
mod residency;
mod session;
mod shown;
mod snapshot;
mod standbys;
mod versions;

pub use activity::{ActivitySampler, SampledActivity};
pub use error::ProbeError;
pub use group::{ServerUse, Used, cpu_time_ns};
pub use horizon::VacuumHorizon;
pub use link::Tap;
pub use log::{CrashKind, CrashSign, Takeover, crash_lines};
pub use node::Server;
pub use pooler::Pooler;
pub use probes::{Config, Cost, Probes, Readings, Running};
pub use remote::{RemoteProbe, serve};
pub use residency::{Found, Residency, Unseen, residency};
pub use session::statements;
pub use snapshot::{Delta, Snapshot, Statement, await_sessions_end, reset_statements};
