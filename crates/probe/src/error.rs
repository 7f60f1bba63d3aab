//! Errors of probes.

/// Error of a probe. During a trial it becomes a note; only a direct question of a caller fails
/// with it.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum ProbeError {
    #[error("read the conninfo of node {node}: {source}")]
    Conninfo { node: String, source: server::ConninfoError },
    #[error("connect: {0}")]
    Connect(#[from] server::ConnectError),
    #[error("{what}: {}", server::message::reason(.source))]
    Query { what: &'static str, source: postgres::Error },
    #[error("{what}: no answer within {seconds} s")]
    Silence { what: &'static str, seconds: u64 },
    #[error("{what}: {source}")]
    System { what: &'static str, source: std::io::Error },
    #[error("sampling on host {host}: {why}")]
    Host { host: String, why: String },
}
