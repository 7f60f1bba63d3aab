//! The configuration of a station.

use std::path::PathBuf;

use fault::disk::DiskConfig;
use serde::{Deserialize, Serialize};
use terms::EndSignal;

/// A place for processes that are not the lab's own kinds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StationConfig {
    /// True if it has a network namespace with an address of its own.
    pub own_network: bool,
    /// Number of ports of the loopback that are kept free for it.
    pub ports: usize,
    /// The data directory of the PostgreSQL server that one of its processes starts, below the
    /// station's disk, where it has one, or below its directory.
    pub data: Option<PathBuf>,
    /// A disk of its own for that server.
    pub disk: Option<DiskConfig>,
}

/// A process of a station.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StationProcess {
    /// Its name, which is that of its directory and its log.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its environment beside PATH, HOME and LC_ALL.
    pub environment: Vec<(String, String)>,
    /// The files of its directory: name and text.
    pub files: Vec<(String, String)>,
    /// The signal that asks it to end.
    pub ends_by: EndSignal,
    /// True if it runs as root.
    pub as_root: bool,
}

/// Something done to one process of a station, and to all that descend from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessAct {
    /// Start it.
    Start,
    /// Ask it to end, and wait for its end.
    Stop,
    /// Send SIGKILL.
    Kill,
    /// Send SIGSTOP.
    Pause,
    /// Send SIGCONT.
    Resume,
    /// Do nothing: 1 if it runs, else 0.
    Look,
}

/// An end of a cut: who cannot reach the station any more, or cannot be reached from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Peer {
    /// Another station, by its number in the lab and its address.
    Station(u32, String),
    /// The clients of the load and the rig itself.
    Clients,
}

impl StationProcess {
    /// The name by which [`ProcessAct`]s mean the PostgreSQL server that a process has started.
    pub const SERVER: &'static str = "server";
}
