//! Errors of a load that could not begin.

use thiserror::Error;

use crate::RowsError;

/// Error of a load that could not begin, or could not go on at all. What single clients meet while
/// it runs is counted and told as messages instead.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum LoadError {
    #[error("invalid connection string of workload \"{workload}\": {why}")]
    Conninfo { workload: String, why: String },
    #[error("{0}")]
    Script(#[from] script::ParseError),
    #[error("script \"{script}\": {why}")]
    Statement { script: String, why: String },
    #[error("{place}: {source}")]
    Rows {
        /// The file, behind the script and the line that name it where these matter.
        place: String,
        source: Box<RowsError>,
    },
    #[error("invalid value of variable \"{name}\": {why}")]
    Variable { name: String, why: String },
    #[error(
        "the rate of {rate} transactions per second of workload \"{workload}\" is more than a million for one thread, \
         which cannot even skip those that are too late for the latency limit"
    )]
    Rate { workload: String, rate: f64 },
    #[error("{why}")]
    Resolve { why: String },
    #[error(transparent)]
    Tls(#[from] server::TlsError),
    #[error("{message}")]
    Connect {
        message: String,
        sqlstate: Option<wire::SqlState>,
        connected: u32,
        clients: u32,
        hint: Option<String>,
    },
    #[error("need at least {needed} open files, but the system allows {allowed}")]
    OpenFiles {
        /// One for each client, and some.
        needed: u64,
        allowed: u64,
    },
    #[error("could not open logfile \"{path}\": {why}")]
    LogFile { path: String, why: String },
    #[error("{script}:{line}: {why}")]
    HistoryNote { script: String, line: u32, why: String },
    #[error("{doing}: {source}")]
    System { doing: &'static str, source: std::io::Error },
    #[error("generator process {number}: {why}")]
    Generator {
        /// Number of the process, from 1.
        number: u32,
        why: String,
        hint: Option<String>,
    },
    #[error("host {name}: {why}")]
    Host { name: String, why: String, hint: Option<String> },
    #[error("interrupted while {connected} of {clients} clients were connected")]
    Interrupted { connected: u32, clients: u32 },
}

impl LoadError {
    /// Next step for the user.
    pub fn hint(&self) -> Option<String> {
        match self {
            LoadError::Connect { hint, .. }
            | LoadError::Generator { hint, .. }
            | LoadError::Host { hint, .. } => hint.clone(),
            LoadError::OpenFiles { needed, .. } => {
                Some(format!("raise the hard limit (ulimit -Hn {needed}) or use fewer clients"))
            }
            LoadError::Rate { .. } => {
                Some("give a lower rate, more threads, or no latency limit".to_owned())
            }
            LoadError::Script(error) => error.hint.clone(),
            LoadError::Rows { source, .. } => source.hint(),
            LoadError::Tls(error) => Some(error.hint().to_owned()),
            _ => None,
        }
    }
}
