//! Samplers that read the figures of servers and machine, second by second.
//!
//! A trial has one sampler ([`Probes::start`] → [`RunningSampler::stop`] → [`SamplerReadings`]), which gives
//! samples once a second on the run's clock, marks from the servers' logs, and for every server
//! what it did in all ([`CounterDelta`]). Beside it stand what a runner asks for directly: the CPU time
//! of a server over a window ([`cpu_time_ns`]), a [`CounterSnapshot`] of a server's counters, the
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
pub use group::{GroupUsage, ServerUse, cpu_time_ns};
pub use horizon::VacuumHorizon;
pub use link::LinkReading;
pub use log::{CrashKind, CrashSign, StandbyTakeover, crash_lines};
pub use node::WatchedServer;
pub use pooler::WatchedPooler;
pub use probes::{Probes, RunningSampler, SamplerConfig, SamplerReadings, SamplingCost};
pub use remote::{RemoteProbe, serve};
pub use residency::{RelationResidency, ResidencyFindings, UnreadResidency, residency};
pub use session::statements;
pub use snapshot::{
    CounterDelta, CounterSnapshot, StatementCounters, await_sessions_end, reset_statements,
};
