//! Errors of probes.

/// Error of a probe. During a trial it becomes a note; only a direct question of a caller fails
/// with it.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum ProbeError {
    /// The conninfo string is not one.
    #[error("read the conninfo of node {node}: {source}")]
    Conninfo {
        node: String,
        /// The error of the client library.
        source: server::ConninfoError,
    },
    /// No session.
    #[error("connect: {0}")]
    Connect(#[from] server::ConnectError),
    /// The server did not answer, or refused.
    #[error("{what}: {}", server::message::reason(.source))]
    Query {
        /// The question that was asked.
        what: &'static str,
        /// The error of the server or the network.
        source: postgres::Error,
    },
    /// Nothing came within the time that a probe waits.
    #[error("{what}: no answer within {seconds} s")]
    Silence {
        /// The question that was asked.
        what: &'static str,
        /// Seconds for which the answer was awaited.
        seconds: u64,
    },
    /// The operating system refused.
    #[error("{what}: {source}")]
    System {
        /// The action that failed.
        what: &'static str,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A sampler on another host.
    #[error("sampling on host {host}: {why}")]
    Host {
        /// Its name in the inventory.
        host: String,
        why: String,
    },
}
