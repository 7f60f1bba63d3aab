//! What a lab on another host is asked, and what it answers.

use std::path::PathBuf;
use std::time::Duration;

use fault::link::Shape;
use os::throttle::Limits;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use terms::{Direction, StopMode};

use crate::endpoint::Endpoint;
use crate::find::Installation;
use crate::lab_config::Isolation;
use crate::node::{Backup, NodeConfig, Upstream};
use crate::pooler::PoolerConfig;
use crate::remote::Failure;
use crate::resources::Resources;
use crate::settings::Settings;

/// A question. `object` is what it is about; 0 is the lab itself.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ask {
    pub(crate) number: u64,
    pub(crate) object: u32,
    pub(crate) verb: Verb,
}

/// The answer to the question of that number.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answer {
    pub(crate) number: u64,
    pub(crate) result: Result<Value, Failure>,
}

/// What is to be done. Each variant says what it answers; nothing where it does not say.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verb {
    /// Open the lab: [`Opened`].
    Open(Opening),
    /// [`crate::Lab::sync`].
    SyncLab,
    /// [`crate::Lab::test_flush`]: a list of [`crate::Flush`].
    TestFlush(u64),
    /// The wall clock there, in microseconds since 1970.
    WallClock,
    /// Every file directly in a directory of the lab: [`Listing`].
    Read(PathBuf),
    /// Make the object a node: [`MadeNode`].
    MakeNode { name: String, config: NodeConfig },
    /// Make it a pooler: [`MadeProgram`].
    MakePooler { name: String, config: PoolerConfig },
    /// Make it a process of the rig's own program with these arguments: [`MadeProgram`].
    MakeProcess { name: String, arguments: Vec<String> },
    /// Make it a link by relay: where it is reached, and what the paths of its relay's sockets
    /// begin with.
    MakeRelay { name: String, wish: RelayWish },
    /// Give it up: what runs is killed.
    Drop,
    /// Of a node, a pooler or a process.
    Start,
    /// The same: [`os::init::Exit`].
    Stop(StopMode),
    /// The same, and of a link: how many processes.
    Kill,
    /// How many processes.
    Pause,
    /// How many processes.
    Resume,
    /// Whether it runs.
    IsRunning,
    /// How it ended by itself: [`os::init::Exit`] or none.
    Exit,
    /// Its root process, or none.
    Pid,
    /// The end of its log.
    LogTail,
    /// Its log.
    LogText,
    /// Of a node.
    Node(NodeVerb),
    /// Of a link: [`fault::link::Counters`].
    Counters,
    /// The same: [`crate::LinkCost`].
    Measure,
    /// The same, in bytes a second.
    Bandwidth(Option<u64>),
    /// The same; answers its proof in words.
    Delay(Duration),
    /// The same.
    Cut(Direction),
    /// The same.
    Reset,
    /// The same.
    Heal,
}

/// What only nodes do.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NodeVerb {
    /// initdb.
    Init,
    /// Settings for the next start or reload.
    Configure(Settings),
    /// Lines of configuration.
    AppendConf(String),
    /// Read the settings again.
    Reload,
    /// Limit its I/O; the limit becomes the object of that number.
    LimitIo { limit: u32, limits: Limits },
    /// Kill a server process: the time until it accepted connections.
    KillBackend(Duration),
    /// Make the data of a standby.
    InitFromBackup { from: Backup, upstream: Upstream },
    /// Stream from there.
    Follow(Upstream),
    /// Whether its data are those of a standby.
    IsStandby,
    /// Make it a primary.
    Promote,
    /// Copy its data; the copy becomes the object of that number. Answers its bytes.
    Snapshot(u32),
    /// Put back the copy of that number.
    InitFromSnapshot(u32),
    /// Take the data of the node of that number.
    CloneData(u32),
    /// pg_controldata: [`crate::Format`].
    Format,
    /// pg_checksums: [`crate::Checksums`].
    CheckChecksums,
    /// pg_resetwal.
    ResetWal,
    /// Take a base backup.
    TakeBackup,
    /// Restore it.
    Restore,
    /// Cut the power: [`fault::disk::Cut`].
    PowerCut(u64),
    /// Flush its disk.
    Sync,
    /// Bytes of its data.
    DataBytes,
    /// Run a client program of its installation: [`Ran`].
    RunClient(ClientRun),
}

/// How a lab is opened.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Opening {
    /// The folder of PostgreSQL's programs; the first one found without it.
    pub(crate) pg_bin: Option<PathBuf>,
    /// The superuser's password.
    pub(crate) password: String,
}

/// What an opened lab is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Opened {
    /// Its PostgreSQL.
    pub(crate) installation: Installation,
    /// The isolation that is in force.
    pub(crate) isolation: Isolation,
    /// Its directory.
    pub(crate) directory: PathBuf,
    /// The user and the group that its servers run as.
    pub(crate) user: (u32, u32),
    /// What the host has.
    pub(crate) resources: Resources,
}

/// A node that was made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MadeNode {
    /// Where it is reached.
    pub(crate) endpoint: Endpoint,
    /// Where processes of its own host reach it.
    pub(crate) inner: Endpoint,
    /// Its directory.
    pub(crate) directory: PathBuf,
    /// Its data directory, as processes of the lab see it.
    pub(crate) data: PathBuf,
    /// The log that people read.
    pub(crate) log: PathBuf,
    /// The log that programs read.
    pub(crate) structured_log: PathBuf,
}

/// A pooler or another program that was made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MadeProgram {
    /// Where a pooler is reached.
    pub(crate) endpoint: Option<Endpoint>,
    /// Its console as processes of its own host reach it.
    pub(crate) console: Option<Endpoint>,
    /// Its log.
    pub(crate) log: PathBuf,
}

/// A relay that is wanted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RelayWish {
    pub(crate) to: Endpoint,
    pub(crate) shape: Shape,
}

/// A client program to be run against a node.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ClientRun {
    pub(crate) program: String,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
}

/// How a client program ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Ran {
    /// Its exit code; none where a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Files by name.
pub(crate) type Listing = Vec<(String, Vec<u8>)>;
