//! The configuration of a pooler.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use terms::PoolMode;

use crate::endpoint::Endpoint;
use crate::find::PgBouncer;
use crate::listen::{Listen, RemoteAccess};
use terms::Settings;

/// The PgBouncer that a pooler runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PoolerProgram {
    /// One that was found.
    Found(PgBouncer),
    /// The newest that is installed where the pooler runs: of this version, if one is given.
    Newest(Option<String>),
}

/// The configuration of a pooler.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PoolerConfig {
    /// The PgBouncer that it runs.
    pub program: PoolerProgram,
    /// The server behind it.
    pub to: Endpoint,
    /// Server connections for each database and user (`default_pool_size`).
    pub pool: u32,
    /// The moment when a server connection goes back to the pool.
    pub mode: PoolMode,
    /// Clients that it lets in (`max_client_conn`).
    pub clients: u32,
    /// Further settings of its section `[pgbouncer]`.
    pub settings: Settings,
    /// SQL that it runs on each server connection before the first client gets it, as in SET.
    pub connect_query: Option<String>,
    /// The address for clients.
    pub listen: Listen,
    /// The address for clients on other hosts; none where only processes of this machine do.
    pub remote: Option<RemoteAccess>,
    /// The time that a start and a stop may take.
    pub timeout: Duration,
}

impl PoolerConfig {
    /// PgBouncer's own pool size of 20 in transaction mode before `to`, on a Unix socket.
    pub fn new(program: PoolerProgram, to: Endpoint) -> Self {
        Self {
            program,
            to,
            pool: 20,
            mode: PoolMode::Transaction,
            clients: 10_000,
            settings: Settings::new(),
            connect_query: None,
            listen: Listen::Unix,
            remote: None,
            timeout: Duration::from_secs(60),
        }
    }
}
