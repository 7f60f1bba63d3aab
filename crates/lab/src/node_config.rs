//! The configuration of a node.

use std::time::Duration;

use fault::disk::DiskConfig;
use serde::{Deserialize, Serialize};
use terms::SwallowedFlushes;

use crate::listen::{Listen, RemoteAccess};
use terms::Settings;

/// The configuration of a node.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NodeConfig {
    /// Its settings.
    pub settings: Settings,
    /// Further options of initdb, as in `--data-checksums`.
    pub initdb: Vec<String>,
    /// The address for clients.
    pub listen: Listen,
    /// The address for clients on other hosts; none where only processes of this machine do. Not with a
    /// network of its own.
    pub remote: Option<RemoteAccess>,
    /// The name of its stream if it is a standby; its name where nothing is given.
    pub application_name: Option<String>,
    /// A disk of its own whose power can be cut; none where its data lie in the lab's directory.
    pub disk: Option<DiskConfig>,
    /// A disk for its WAL that loses its power with that of its data; none where the WAL is with the data.
    pub wal_disk: Option<DiskConfig>,
    /// The flushes that do nothing, if some do.
    pub swallow_fsync: Option<SwallowedFlushes>,
    /// True if its WAL is archived, beside its data and not on its disk.
    pub is_archived: bool,
    /// True if it has a network of its own, as links by namespace need; its clients then come by
    /// Unix socket. Only root can make one.
    pub own_network: bool,
    /// The time that a start (crash recovery included) and a stop may take.
    pub timeout: Duration,
}

impl NodeConfig {
    /// A node with these settings that listens on a Unix socket.
    pub fn new(settings: Settings) -> Self {
        // The time that PostgreSQL's own tests allow.
        let timeout = Duration::from_secs(180);
        let (initdb, listen, application_name, disk) = (Vec::new(), Listen::Unix, None, None);
        let (is_archived, own_network) = (false, false);
        Self {
            settings,
            initdb,
            listen,
            remote: None,
            application_name,
            disk,
            wal_disk: None,
            swallow_fsync: None,
            is_archived,
            own_network,
            timeout,
        }
    }
}
