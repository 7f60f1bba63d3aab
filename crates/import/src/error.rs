//! Errors of loading a user's data.

use std::io;
use std::path::PathBuf;

/// The reason why a user's data could not be loaded.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum Error {
    /// A file that cannot be read.
    #[error("reading {}: {source}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    /// A file that is no script and no dump.
    #[error("{name} cannot be loaded: {why}")]
    Unfit {
        name: String,
        /// The kind of file that it is.
        why: &'static str,
        /// The advice on what to do next.
        hint: &'static str,
    },
    /// A directory of which the servers' user may not read something.
    #[error("{name} cannot be loaded: the servers' user may not read it")]
    Closed { name: String },
    /// A dump of a newer PostgreSQL.
    #[error("{name} was dumped from PostgreSQL {dumped}, and the server is {server}")]
    Newer {
        name: String,
        /// The version that it was dumped from.
        dumped: String,
        /// The version of the server that it is for.
        server: String,
    },
    /// An archive that this pg_restore cannot read.
    #[error("{name} cannot be read by pg_restore {version}: {why}")]
    Archive {
        name: String,
        /// The version of pg_restore.
        version: String,
        why: String,
    },
    /// A part that the installation lacks, or the lab's error.
    #[error("{name}: {source}")]
    Part { name: String, source: lab::Error },
    /// A server that could not be started, stopped or copied.
    #[error(transparent)]
    Lab(#[from] lab::Error),
    /// psql or pg_restore could not be run.
    #[error("running {program}: {source}")]
    Program { program: &'static str, source: io::Error },
    /// psql or pg_restore stopped at an error.
    #[error("{why}")]
    Failed {
        /// In its words, which begin with file and line of a script.
        why: String,
        /// The advice on what to do next.
        hint: String,
    },
    /// The user has interrupted it.
    #[error("interrupted while loading the data")]
    Interrupted,
    /// The directory of built data.
    #[error("{doing} {}: {source}", .path.display())]
    Cache { doing: &'static str, path: PathBuf, source: io::Error },
}

impl Error {
    /// Says what to do next.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Error::Unfit { hint, .. } => (*hint).to_owned(),
            Error::Closed { .. } => {
                "make it readable for the servers' user (chmod -R o+rX), or use a dump of one file: \
                 pg_dump --format=custom"
                    .to_owned()
            }
            Error::Newer { .. } => {
                "give that side the programs of a version that is at least as new (--a-bin, --b-bin)"
                    .to_owned()
            }
            Error::Archive { .. } => {
                "restore it with the pg_restore of the pg_dump that made it, or newer (--a-bin, \
                 --b-bin), or use a plain dump"
                    .to_owned()
            }
            Error::Failed { hint, .. } => hint.clone(),
            Error::Part { source, .. } | Error::Lab(source) => return source.hint(),
            Error::Cache { .. } => "name another place with XDG_CACHE_HOME".to_owned(),
            Error::Read { .. } | Error::Program { .. } | Error::Interrupted => {
                return None;
            }
        })
    }
}
