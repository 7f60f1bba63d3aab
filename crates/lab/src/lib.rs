//! Nodes and topologies: build, start, stop, kill, pause, remove.
//!
//! A [`Lab`] is a directory with an init that watches over it, on this machine or on a host behind a
//! launcher ([`serve()`] is the other end); a [`Node`] is one PostgreSQL server in it, with the verbs of PostgreSQL's own test framework (`PostgreSQL::Test::Cluster`). Both
//! clean up when they are dropped, and the init does when the rig is killed. A [`Pooler`] is a
//! PgBouncer, a [`Process`] any other program, with the same verbs. A [`Link`] is a way to any of
//! them that can be slow, and be cut. A [`Target`] is a
//! server of the user's. [`find`] looks for the installed PostgreSQL, [`machine`] tells
//! what the machine is made of.
//!
//! Limits: the lab knows nothing of studies, and it does not measure.

mod advice;
mod anywhere;
mod clean;
mod copy;
mod directory;
mod ending;
mod endpoint;
mod error;
mod files;
pub mod find;
mod flush;
pub mod guest;
mod identity;
mod initdb;
mod lab;
mod lab_config;
mod link;
mod listen;
mod log;
pub mod machine;
mod network;
mod node;
mod pooler;
mod port;
mod process;
mod program;
mod random;
mod refusal;
mod remote;
mod replication;
mod resources;
mod scratch;
mod server;
mod settings;
mod shared;
mod target;
mod target_name;
mod version;
mod wait;

pub use anywhere::copy::Snapshot;
pub use anywhere::lab::Lab;
pub use anywhere::limit::IoLimit;
pub use anywhere::link::Link;
pub use anywhere::node::Node;
pub use anywhere::pooler::Pooler;
pub use anywhere::process::Process;
pub use clean::{Cleaned, clean};
pub use ending::end_labs;
pub use endpoint::{Encryption, Endpoint, Host};
pub use error::{Behind, Error, GuestError, HostError, HostErrorKind, NotStreaming, SettingFault};
pub use fault::link::{Counters, RoundTrips, Shape};
pub use find::Installation;
pub use flush::Flush;
pub use lab_config::{AtEnd, Isolation, LabConfig, Wish};
pub use link::{LinkBy, LinkConfig, LinkCost, LinkTap};
pub use listen::{Listen, RemoteAccess};
pub use log::LogFormat;
pub use network::Network;
pub use node::{Checksums, Format, NodeConfig};
pub use os::init::Exit;
pub use os::throttle::Limits;
pub use pooler::{ConsoleRow, PoolerConfig, PoolerProgram};
pub use random::new_password;
#[cfg(fuzzing)]
pub use remote::fuzzing;
pub use remote::serve;
pub use replication::Replication;
pub use resources::Resources;
pub use scratch::Scratch;
pub use server::Server;
pub use settings::Settings;
pub use target::{Target, TargetConfig};
pub use target_name::{TARGET, TARGET_SCHEMA};
pub use terms::{Direction, PoolMode, StopMode};
pub use version::Version;
pub use wait::wait_until;
