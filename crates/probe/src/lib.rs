//! What the servers and the machine did, second by second.
mod book;
mod clock;
mod error;
mod group;
mod log;
mod machine;
mod metric;
mod node;
mod pace;
mod probes;
mod process;
mod reading;
mod session;
mod snapshot;
mod versions;

pub use error::ProbeError;
pub use group::cpu_time_ns;
pub use node::Server;
pub use probes::{Config, Cost, Probes, Readings, Running};
pub use snapshot::{Delta, Snapshot, Statement, reset_statements, settle};
