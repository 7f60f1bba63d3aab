//! Errors of a load that could not begin.

use thiserror::Error;

/// Error of a load that could not begin, or could not go on at all. What single clients meet while
/// it runs is counted and told as messages instead.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum LoadError {
    /// A connection string is no good.
    #[error("invalid connection string of workload \"{workload}\": {why}")]
    Conninfo { workload: String, why: String },
    /// A script does not parse.
    #[error("{0}")]
    Script(#[from] script::ParseError),
    /// A statement cannot be sent by the chosen protocol.
    #[error("script \"{script}\": {why}")]
    Statement { script: String, why: String },
    /// A variable's value is no good.
    #[error("invalid value of variable \"{name}\": {why}")]
    Variable { name: String, why: String },
    /// No host of a connection string has an address.
    #[error("{why}")]
    Resolve {
        /// The reason, in libpq's words.
        why: String,
    },
    /// Certificates could not be read.
    #[error(transparent)]
    Tls(#[from] server::TlsError),
    /// A client could not connect.
    #[error("{message}")]
    Connect {
        message: String,
        /// SQLSTATE, where the server gave one.
        sqlstate: Option<wire::SqlState>,
        /// Clients that did get in.
        connected: u32,
        /// Clients that wanted to.
        clients: u32,
        /// Next step for the user.
        hint: Option<String>,
    },
    /// The limit on open files is below what the clients need.
    #[error("need at least {needed} open files, but the system allows {allowed}")]
    OpenFiles {
        /// One for each client, and some.
        needed: u64,
        allowed: u64,
    },
    /// The log of transactions cannot be written where it shall be.
    #[error("could not open logfile \"{path}\": {why}")]
    LogFile {
        path: String,
        /// The error of the system.
        why: String,
    },
    /// A note of a history in a script is wrong, or is where none can be.
    #[error("{script}:{line}: {why}")]
    HistoryNote {
        script: String,
        line: u32,
        /// The fault, and the text to write.
        why: String,
    },
    /// The operating system refused something.
    #[error("{doing}: {source}")]
    System {
        /// The action that failed.
        doing: &'static str,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A generator process died or said something unexpected.
    #[error("generator process {number}: {why}")]
    Generator {
        /// Number of the process, from 1.
        number: u32,
        why: String,
        /// Next step for the user.
        hint: Option<String>,
    },
    /// A host was lost before the load began, or said something unexpected.
    #[error("host {name}: {why}")]
    Host {
        /// Its name in the inventory.
        name: String,
        why: String,
        /// Next step for the user.
        hint: Option<String>,
    },
    /// The interruption came before the load began.
    #[error("interrupted while {connected} of {clients} clients were connected")]
    Interrupted {
        /// Clients that were in.
        connected: u32,
        clients: u32,
    },
}

impl LoadError {
    /// Next step for the user.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            LoadError::Connect { hint, .. }
            | LoadError::Generator { hint, .. }
            | LoadError::Host { hint, .. } => hint.clone(),
            LoadError::OpenFiles { needed, .. } => {
                Some(format!("raise the hard limit (ulimit -Hn {needed}) or use fewer clients"))
            }
            LoadError::Tls(error) => Some(error.hint().to_owned()),
            _ => None,
        }
    }
}
