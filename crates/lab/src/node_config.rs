//! The configuration of a node.

use std::collections::BTreeMap;
use std::time::Duration;

use fault::disk::DiskConfig;
use serde::{Deserialize, Serialize};
use terms::{DataPart, SwallowedFlushes};

use crate::archive::ArchiveConfig;
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
    /// Disks for parts of its data, which lose their power with that of the rest; none for a part that is with it.
    pub apart: BTreeMap<DataPart, DiskConfig>,
    /// The flushes that do nothing, if some do.
    pub swallow_fsync: Option<SwallowedFlushes>,
    /// The archive of its WAL, which is on no disk of a node's own; none where its WAL is not archived.
    pub archive: Option<ArchiveConfig>,
    /// True if it has a clock of its own, which can be stepped.
    pub has_own_clock: bool,
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
        let (archive, own_network) = (None, false);
        Self {
            settings,
            initdb,
            listen,
            remote: None,
            application_name,
            disk,
            apart: BTreeMap::new(),
            swallow_fsync: None,
            archive,
            has_own_clock: false,
            own_network,
            timeout,
        }
    }

    /// Its disks: that of its data first, then those of parts of them.
    pub(crate) fn disks_mut(&mut self) -> impl Iterator<Item = &mut DiskConfig> {
        self.disk.iter_mut().chain(self.apart.values_mut())
    }
}
