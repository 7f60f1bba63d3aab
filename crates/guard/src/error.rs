//! Errors of the guard.

use std::io;
use std::path::{Path, PathBuf};

/// Error of the guard.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum Error {
    /// There is no connection.
    #[error("connecting to {place}: {why}")]
    Connect {
        /// Address of the server.
        place: String,
        /// The error of the server, the network or the client library.
        why: String,
    },
    /// The server refused something, or the connection is lost.
    #[error("{doing}: {why}")]
    Server {
        /// The action that failed.
        doing: &'static str,
        /// The error of the server or the client library.
        why: String,
    },
    /// Nothing came within the time that the guard waits.
    #[error("{doing}: no answer within {seconds} s")]
    Silence {
        /// The action that failed.
        doing: &'static str,
        /// Seconds for which the answer was awaited.
        seconds: u64,
    },
    /// A file cannot be read or written.
    #[error("{doing} {}: {source}", path.display())]
    File {
        /// The action that failed.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file does not hold what it should.
    #[error("reading {}: {why}", path.display())]
    Content { path: PathBuf, why: String },
    /// The state directory is used by another guard.
    #[error("another guard uses the state directory {}", path.display())]
    StateInUse { path: PathBuf },
    /// Others could put their own files into the state directory.
    #[error("the state directory {} {why}", path.display())]
    NotPrivate { path: PathBuf, why: String },
    /// The state directory tells of another cluster.
    #[error(
        "{} is the state of another cluster: its system identifier is {theirs}, the server's is \
         {ours}", path.display()
    )]
    OtherCluster {
        path: PathBuf,
        /// The system identifier in the state.
        theirs: String,
        ours: String,
    },
    /// The server is watched already.
    #[error("another guard is in charge of this server: {who}")]
    SecondGuard {
        /// Its backend, and from where it is connected.
        who: String,
    },
    /// Something that promotes standbys by itself is in charge of the server.
    #[error("{manager} is in charge of this server: {evidence}")]
    Managed { manager: &'static str, evidence: String },
    /// `ALTER SYSTEM` would have no effect.
    #[error("synchronous_standby_names comes from the server's command line")]
    CommandLine,
    /// `ALTER SYSTEM` is not allowed to anybody.
    #[error("allow_alter_system is off on this server")]
    AlterSystemOff,
    /// The server is too old.
    #[error("the server is PostgreSQL {version}; the guard needs 10 or later")]
    Version {
        /// As it calls itself.
        version: String,
    },
    /// The role lacks rights.
    #[error("role {role} lacks rights: {missing}")]
    Rights {
        role: String,
        /// The missing rights, in words.
        missing: String,
        /// Statements for a superuser to run.
        grants: Vec<String>,
    },
}

impl Error {
    /// Next step for the user.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Error::Connect { .. } => {
                "name the primary as in `pgrig guard host=/run/postgresql`, or by PGHOST and so on"
            }
            Error::StateInUse { .. } => "give each guard a --state directory of its own",
            Error::NotPrivate { path, .. } => {
                return Some(format!(
                    "nobody but the guard's user may own it or write there: chmod go-w {0}, or chown, \
                     or name another --state",
                    path.display()
                ));
            }
            Error::OtherCluster { .. } => {
                "name this server's own state directory with --state, or a new one"
            }
            Error::SecondGuard { .. } => {
                "one guard a server; `pgrig guard status` says what it does"
            }
            Error::Managed { .. } => {
                "leave synchronous replication to it: it has settings for that, and with automatic \
                 promotion a primary without sync mode becomes split brain"
            }
            Error::CommandLine => {
                "take it from the command line (-c, or postgres's start script) and put it into \
                 postgresql.conf"
            }
            Error::AlterSystemOff => "the guard changes a setting; set allow_alter_system = on",
            Error::Rights { grants, .. } => {
                return Some(format!("as a superuser:\n{}", indented(grants)));
            }
            Error::Server { .. }
            | Error::Silence { .. }
            | Error::File { .. }
            | Error::Content { .. }
            | Error::Version { .. } => return None,
        };
        Some(hint.to_owned())
    }

    /// True if another connection may help.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self, Error::Connect { .. } | Error::Server { .. } | Error::Silence { .. })
    }
}

pub(crate) fn file(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File { doing, path, source }
}

fn indented(lines: &[String]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| format!("    {line}")).collect();
    lines.join("\n")
}
