//! Why a probe could not tell.

/// Why something could not be read. During a trial it becomes a note; only what a caller asks for
/// directly fails with it.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The conninfo string is not one.
    #[error("read the conninfo of node {node}: {source}")]
    Conninfo {
        /// The node.
        node: String,
        /// What the client library says.
        source: server::ConninfoError,
    },
    /// No session.
    #[error("connect: {0}")]
    Connect(#[from] server::ConnectError),
    /// The server did not answer, or refused.
    #[error("{what}: {}", server::message::reason(.source))]
    Query {
        /// What was asked.
        what: &'static str,
        /// What the server or the network says.
        source: postgres::Error,
    },
    /// Nothing came within the time that a probe waits.
    #[error("{what}: no answer within {seconds} s")]
    Silence {
        /// What was asked.
        what: &'static str,
        /// How long it was waited for.
        seconds: u64,
    },
    /// The operating system refused.
    #[error("{what}: {source}")]
    System {
        /// What was to be done.
        what: &'static str,
        /// What the system says.
        source: std::io::Error,
    },
    /// A sampler on another host.
    #[error("sampling on host {host}: {why}")]
    Host {
        /// Its name in the inventory.
        host: String,
        /// What happened.
        why: String,
    },
}
