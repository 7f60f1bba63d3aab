//! Errors of checks.

use std::io;
use std::path::PathBuf;

use server::message::with_detail as server_words;

/// Error of a check.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum Error {
    /// A site's servers.
    #[error(transparent)]
    Site(#[from] site::Error),
    /// A server that could not be started, stopped or reached.
    #[error(transparent)]
    Lab(#[from] lab::Error),
    /// The ledger's files.
    #[error(transparent)]
    Record(#[from] record::Error),
    /// A server that could not be started after a power cut, for a reason that is not the cut's.
    #[error(transparent)]
    Power(#[from] site::PowerError),
    /// The log of a disk, or what is made of it.
    #[error("{doing} {}: {source}", .path.display())]
    File {
        /// The step, as in "opening".
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// A log that cannot be read.
    #[error("reading the log of the disk's writes: {0}")]
    Log(#[from] crash::Damaged),
    /// A state that was not kept.
    #[error("{} has no state {number}: it lists {states}", .list.display())]
    NoState {
        /// The number that was asked for.
        number: usize,
        /// Number of states that there are.
        states: usize,
        list: PathBuf,
    },
    /// A disk without a log.
    #[error("exploring {node}: its disk keeps no log")]
    NoLog { node: String },
    /// A server whose disk is elsewhere.
    #[error("exploring {node}: it is on another machine, and so is the log of its disk")]
    Elsewhere { node: String },
    /// No connection.
    #[error("{doing}: {source}")]
    Connect {
        /// Purpose of the connection, and the server.
        doing: String,
        source: server::ConnectError,
    },
    /// A statement failed.
    #[error("{doing}: {}", server_words(.source))]
    Query {
        /// Purpose of the statement, and the server.
        doing: String,
        source: postgres::Error,
    },
    /// A program would change or stop a server of the user's.
    #[error("{program} on {node}: it would {would} a server that is not ours")]
    NotOurs {
        program: &'static str,
        node: String,
        /// Change that it would make.
        would: &'static str,
    },
    /// A program that could not be started.
    #[error("{program} on {node}: {source}")]
    Start { program: &'static str, node: String, source: io::Error },
    /// A program that did not run to its end.
    #[error("{program} on {node}: {said}")]
    Program { program: &'static str, node: String, said: String },
    /// A standby that is far behind.
    #[error("{node} has not replayed what it received within {seconds} s")]
    NotReplayed {
        node: String,
        /// Seconds that were spent waiting.
        seconds: u64,
    },
    /// A ledger that no script of its workload writes.
    #[error("workload {workload} keeps a ledger, but no script of it writes :ledger_seq")]
    LedgerNotWritten { workload: String },
    /// A reader of whose reading nothing is known.
    #[error(
        "workload {workload} reads for a ledger, but no script of it sets ledger_read_client and \
         ledger_read_seq by \\gset"
    )]
    ReadingNotSaid { workload: String },
    /// A table of the ledger that is not there.
    #[error(
        "{place}: there is none; the data's script must make it, with the columns client int, seq \
         bigint and chain bigint"
    )]
    NoTable {
        /// The table and the server.
        place: String,
    },
    /// A table of the ledger that lacks columns.
    #[error(
        "{place}: it has no column {missing}; a ledger needs client int, seq bigint and chain \
         bigint"
    )]
    NoColumns {
        /// The table and the server.
        place: String,
        missing: String,
    },
    /// A table of the ledger that is not empty.
    #[error(
        "{place}: it holds rows of an earlier load; empty it in `before`, or let every trial begin \
         with a copy of the data: reset = \"clone\""
    )]
    NotEmpty {
        /// The table and the server.
        place: String,
    },
    /// The rows of a cluster could not be counted.
    #[error("counting rows: {0}")]
    Counting(site::Error),
}

impl Error {
    /// True if the study asks for what it has not made.
    #[must_use]
    pub fn is_of_study(&self) -> bool {
        matches!(
            self,
            Error::NotOurs { .. }
                | Error::LedgerNotWritten { .. }
                | Error::ReadingNotSaid { .. }
                | Error::NoTable { .. }
                | Error::NoColumns { .. }
                | Error::NotEmpty { .. }
        )
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
