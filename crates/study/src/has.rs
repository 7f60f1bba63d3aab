//! What a machine, or somebody else's server, has for a study.

use std::collections::BTreeMap;
use std::path::Path;

use lab::find::PgBouncer;
use lab::machine::{Disk, HugePages, Machine};
use lab::{Installation, Target};

use crate::hosts::Hosts;

/// What the machine has.
#[derive(Clone, Debug)]
pub struct Has {
    /// Memory that can be used without swapping, in bytes.
    pub memory_bytes: u64,
    /// Its huge pages.
    pub huge_pages: HugePages,
    /// Room on the disk of the lab, in bytes.
    pub disk_bytes: u64,
    /// Files that one process may hold open.
    pub open_files: u64,
    /// Whether the rig runs as root.
    pub is_root: bool,
    /// Every PgBouncer that is installed, the newest first.
    pub pgbouncers: Vec<PgBouncer>,
    /// The servers' side.
    pub servers: HasServers,
    /// Free connections of hosts that stand for shards, by the node's name.
    pub hosts: BTreeMap<String, u32>,
}

/// What the servers are.
#[derive(Clone, Debug)]
pub enum HasServers {
    /// The rig builds them from this.
    Built(Installation),
    /// Somebody else's, with so many connections to spare.
    Outside {
        /// Free connections.
        connections: u32,
        /// Extensions that are there, or could be created.
        extensions: Vec<String>,
    },
}

impl Has {
    /// What this machine has for servers of this installation, with labs in `labs`.
    ///
    /// # Errors
    /// When the file system cannot be asked.
    pub fn here(installation: Installation, labs: &Path) -> Result<Has, lab::Error> {
        Has::with(HasServers::Built(installation), labs)
    }

    /// What this machine has for loading somebody else's server.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn outside(target: &Target, labs: &Path) -> Result<Has, lab::Error> {
        let connections = number(target, FREE_CONNECTIONS)?;
        let listed = target.value(AVAILABLE_EXTENSIONS)?.unwrap_or_default();
        let extensions = listed.split(',').map(str::to_owned).collect();
        Has::with(HasServers::Outside { connections, extensions }, labs)
    }

    fn with(servers: HasServers, labs: &Path) -> Result<Has, lab::Error> {
        let machine = Machine::here();
        Ok(Has {
            memory_bytes: machine.memory.available_bytes,
            huge_pages: machine.huge_pages,
            disk_bytes: Disk::at(labs)?.free_bytes,
            open_files: machine.open_files.hard.unwrap_or(u64::MAX),
            is_root: lab::machine::is_root(),
            pgbouncers: lab::find::pgbouncers(),
            servers,
            hosts: BTreeMap::new(),
        })
    }

    /// The same with hosts that stand for shards.
    ///
    /// # Errors
    /// When one does not answer.
    pub(crate) fn with_hosts(mut self, hosts: &Hosts) -> Result<Has, lab::Error> {
        for (name, host) in hosts {
            self.hosts.insert(name.clone(), number(host, FREE_CONNECTIONS)?);
        }
        Ok(self)
    }
}

fn number(target: &Target, sql: &str) -> Result<u32, lab::Error> {
    Ok(target.value(sql)?.and_then(|text| text.parse().ok()).unwrap_or(0))
}

const FREE_CONNECTIONS: &str = "SELECT current_setting('max_connections')::int \
    - current_setting('superuser_reserved_connections')::int \
    - (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')";
const AVAILABLE_EXTENSIONS: &str =
    "SELECT string_agg(name::text, ',' ORDER BY name) FROM pg_available_extensions";
