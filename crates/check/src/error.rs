//! Errors of checks.

use std::io;
use std::path::PathBuf;

use server::message::with_detail as server_words;

/// Error of a check.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum Error {
    #[error(transparent)]
    Site(#[from] site::Error),
    #[error(transparent)]
    Lab(#[from] lab::Error),
    #[error(transparent)]
    Record(#[from] record::Error),
    /// A server that could not be started after a power cut, for a reason that is not the cut's.
    #[error(transparent)]
    Power(#[from] site::PowerError),
    #[error("{doing} {}: {source}", .path.display())]
    File {
        /// The step, as in "opening".
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("reading the log of a disk's writes, {}: {source}", .path.display())]
    Log { path: PathBuf, source: crash::LogDamage },
    #[error("the image {} has a block beyond its disk of {size_bytes} bytes", .path.display())]
    BeyondDisk { path: PathBuf, size_bytes: u64 },
    #[error("{} has no state {number}: it lists {states}", .list.display())]
    NoState { number: usize, states: usize, list: PathBuf },
    #[error("exploring {node}: its disk keeps no log")]
    NoLog { node: String },
    #[error("exploring {node}: it is on another machine, and so is the log of its disk")]
    Elsewhere { node: String },
    #[error("{doing}: {source}")]
    Connect { doing: String, source: server::ConnectError },
    #[error("{doing}: {}", server_words(.source))]
    Query { doing: String, source: postgres::Error },
    #[error("{program} on {node}: it would {would} a server that is not ours")]
    NotOurs { program: &'static str, node: String, would: &'static str },
    #[error("{program} on {node}: {source}")]
    Start { program: &'static str, node: String, source: io::Error },
    #[error("{program} on {node}: {said}")]
    Program { program: &'static str, node: String, said: String },
    #[error("{node} has not replayed what it received within {seconds} s")]
    NotReplayed { node: String, seconds: u64 },
    #[error("workload {workload} keeps a ledger, but no script of it writes :ledger_seq")]
    LedgerNotWritten { workload: String },
    #[error(
        "workload {workload} reads for a ledger, but no script of it sets ledger_read_client and \
         ledger_read_seq by \\gset"
    )]
    ReadingNotSaid { workload: String },
    #[error(
        "{place}: there is none; the data's script must make it, with the columns client int, seq \
         bigint and chain bigint"
    )]
    NoTable { place: String },
    #[error(
        "{place}: it has no column {missing}; a ledger needs client int, seq bigint and chain \
         bigint"
    )]
    NoColumns { place: String, missing: String },
    #[error(
        "{place}: it holds rows of an earlier load; empty it in `before`, or let every trial begin \
         with a copy of the data: reset = \"clone\""
    )]
    NotEmpty { place: String },
    #[error(transparent)]
    Verify(#[from] verify::Error),
    #[error("counting rows: {0}")]
    Counting(site::Error),
}

impl Error {
    /// True if the study asks for what it has not made.
    pub fn is_of_study(&self) -> bool {
        matches!(
            self,
            Error::NotOurs { .. }
                | Error::LedgerNotWritten { .. }
                | Error::ReadingNotSaid { .. }
                | Error::NoTable { .. }
                | Error::NoColumns { .. }
                | Error::NotEmpty { .. }
        ) || matches!(self, Error::Verify(error) if error.is_of_caller())
    }

    /// True if the server says that it cannot read what it has: an internal error, or one of the system.
    pub(crate) fn is_damage(&self) -> bool {
        let Error::Query { source, .. } = self else { return false };
        let state = source.code().map(|state| state.code());
        state.is_some_and(|state| state.starts_with("XX") || state.starts_with("58"))
    }

    pub(crate) fn query(doing: impl Into<String>) -> impl FnOnce(postgres::Error) -> Error {
        |source| Error::Query { doing: doing.into(), source }
    }
}
