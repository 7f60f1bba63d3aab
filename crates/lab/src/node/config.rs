//! What a node is made from, and how it is stopped.

use std::fmt;
use std::time::Duration;

use fault::disk::DiskConfig;

use crate::settings::Settings;

/// What a node is made from.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    /// Its settings.
    pub settings: Settings,
    /// Further options of initdb, as in `--data-checksums`.
    pub initdb: Vec<String>,
    /// Where clients reach it.
    pub listen: Listen,
    /// What its stream is called if it is a standby; its name where nothing is given.
    pub application_name: Option<String>,
    /// A disk of its own whose power can be cut; none where its data lie in the lab's directory.
    pub disk: Option<DiskConfig>,
    /// Whether its WAL is archived, beside its data and not on its disk.
    pub is_archived: bool,
    /// Whether it has a network of its own, as links by namespace need; its clients then come by
    /// Unix socket. Only root can make one.
    pub own_network: bool,
    /// How long a start (crash recovery included) and a stop may take.
    pub timeout: Duration,
}

impl NodeConfig {
    /// A node with these settings that listens on a Unix socket.
    pub fn new(settings: Settings) -> Self {
        // The time that PostgreSQL's own tests allow.
        let timeout = Duration::from_secs(180);
        let (initdb, listen, application_name, disk) = (Vec::new(), Listen::Unix, None, None);
        let (is_archived, own_network) = (false, false);
        Self { settings, initdb, listen, application_name, disk, is_archived, own_network, timeout }
    }
}

/// Where clients reach a node. Its administrators always use the Unix socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listen {
    /// On a Unix socket in the lab's directory, without a password.
    Unix,
    /// On a free port of 127.0.0.1 as well, with SCRAM and the lab's password.
    Loopback,
}

/// How a server is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopMode {
    /// When the last client has left.
    Smart,
    /// After disconnecting all clients and a checkpoint.
    Fast,
    /// At once, so that the next start recovers from the WAL.
    Immediate,
}

impl fmt::Display for StopMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Smart => "smart",
            Self::Fast => "fast",
            Self::Immediate => "immediate",
        })
    }
}
