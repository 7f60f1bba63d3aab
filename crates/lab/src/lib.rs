//! Nodes and topologies: build, start, stop, kill, pause, remove.
//!
//! A [`Lab`] is a directory with an init that watches over it, on this machine or on a host behind a
//! launcher ([`serve()`] is the other end). A [`Node`] is one PostgreSQL server in it, with the verbs of
//! PostgreSQL's own test framework (`PostgreSQL::Test::Cluster`), a [`Pooler`] a PgBouncer, a
//! [`Process`] any other program. Each is a [`Part`]: it is started, stopped, killed and paused, and is
//! killed when it is dropped; the init kills it when the rig is killed. A [`Link`] is a way to any of
//! them that can be slow, and be cut. A [`Target`] is a server of the user's. [`find`] looks for the
//! installed PostgreSQL, [`machine`] tells what the machine is made of.
//!
//! These are handles. A handle has the number of an object, and a method of it asks the object by one
//! verb (`verb`). A `carrier` takes the verb there: to the objects of this process (`inner`), or by a
//! line to those of a host (`remote`), where the same dispatcher obeys it.
//!
//! Limits: the lab knows nothing of studies, and it does not measure.

mod admin;
mod advice;
mod answer;
mod archive;
mod carried_password;
mod carrier;
mod checksums;
mod clean;
mod client_run;
mod console;
mod copy;
mod crowd;
mod database_locale;
mod directory;
mod effective;
mod ending;
mod endpoint;
mod error;
pub mod estimate;
mod files;
pub mod find;
mod flush;
mod format;
pub mod guest;
mod identity;
mod inner;
mod lab;
mod lab_config;
mod limit;
mod link;
mod link_config;
mod listen;
mod log;
pub mod machine;
mod managed;
mod network;
mod node;
mod node_config;
mod open_lab;
mod part;
mod pooler;
mod pooler_config;
mod process;
mod random;
mod refusal;
mod remote;
mod replication;
mod resources;
mod scratch;
mod server;
mod settings;
mod snapshot;
mod station;
mod station_config;
mod target;
mod target_name;
mod upgrade;
mod verb;
mod version;
mod wait;

pub use ::server::Password;
pub use archive::{ArchiveConfig, ArchiveTool, ArchivedFile, BackupVerdict, RestoreOrder};
pub use checksums::Checksums;
pub use clean::{CleanResult, clean};
pub use console::ConsoleRow;
pub use copy::copy_foreign_tree;
pub use crowd::MachineContention;
pub use database_locale::{DatabaseLocale, LocaleProvider, UnfitLocale};
pub use effective::effective;
pub use ending::{end_labs, kill_servers};
pub use endpoint::{Encryption, Endpoint, Host};
pub use error::{
    BoundaryFault, Error, GuestError, HostError, HostErrorKind, NotStreaming, RefusedSetting,
    SettingFault, StreamingLag,
};
pub use fault::link::{LinkCounters, RoundTrips, TrafficShape};
pub use find::Installation;
pub use flush::Flush;
pub use format::Format;
pub use inner::templates::shared_password;
pub use lab::Lab;
pub use lab_config::{AtEnd, Isolation, IsolationWish, LabConfig};
pub use limit::{CpuLimit, IoLimit};
pub use link::Link;
pub use link_config::{LinkBy, LinkConfig, LinkCost, LinkTap};
pub use listen::{Listen, RemoteAccess};
pub use log::LogFormat;
pub use managed::Managed;
pub use network::Network;
pub use node::Node;
pub use node_config::NodeConfig;
pub use os::cpu_limit::CPUS_MIN;
pub use os::init::ProcessExit;
pub use os::throttle::IoLimits;
pub use part::Part;
pub use pooler::Pooler;
pub use pooler_config::{PoolerConfig, PoolerProgram};
pub use process::Process;
pub use random::new_password;
#[cfg(fuzzing)]
pub use remote::fuzzing;
pub use remote::serve;
pub use replication::Replication;
pub use resources::Resources;
pub use scratch::Scratch;
pub use server::{Server, Way};
pub use snapshot::Snapshot;
pub use station::Station;
pub use station_config::{Peer, ProcessAct, StationConfig, StationProcess};
pub use target::{Target, TargetConfig};
pub use target_name::{TARGET, TARGET_SCHEMA};
pub use terms::Settings;
pub use terms::{Direction, EndSignal, PoolMode, StopMode};
pub use upgrade::{UpgradeMode, UpgradeReport};
pub use version::Version;
pub use wait::wait_until;
