//! A server as the sessions of a ledger see it.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// A server that acknowledges, from one start to its end, as it says itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AcknowledgingServer {
    /// The database system identifier, which only servers share whose data descend from the same initdb; 0 in
    /// ledgers of format 3.
    pub cluster: i64,
    /// When its postmaster started, in microseconds since 1970: no two servers have started in the same one. In
    /// ledgers of format 3, the number that a script gave it.
    pub server: i64,
    /// The timeline.
    pub timeline: i64,
    /// The address at which clients reach it; none for a Unix socket.
    pub address: Option<IpAddr>,
    /// The port; 0 in ledgers of format 3.
    pub port: u16,
}

impl fmt::Display for AcknowledgingServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.address, self.port) {
            (Some(address), port) => write!(f, "the server at {}", SocketAddr::new(address, port))?,
            (None, 0) => write!(f, "server {}", self.server)?,
            (None, port) => write!(f, "the server with port {port}")?,
        }
        write!(f, " on timeline {}", self.timeline)
    }
}

/// What a client's session says of its server at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLook {
    /// The server.
    pub giver: AcknowledgingServer,
    /// True if commits of the session wait for a standby: `synchronous_standby_names` and `max_wal_senders` are
    /// set, and `synchronous_commit` is neither off nor local. None where the session's script sets it itself.
    pub awaits_standby: Option<bool>,
    /// The connection stays with this server to its end. Behind a pooler, only the transaction does.
    pub lasts: bool,
}
