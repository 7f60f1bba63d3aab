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
        source: postgres::Error,
    },
    /// The server did not answer, or refused.
    #[error("{what}: {}", reason(.source))]
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
}

/// The server's own words where it has some; the client library says only "db error".
pub(crate) fn reason(error: &postgres::Error) -> String {
    if let Some(db) = error.as_db_error() {
        return format!("{} ({})", db.message(), db.code().code());
    }
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
