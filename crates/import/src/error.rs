//! Errors of loading a user's data.

use std::io;
use std::path::PathBuf;

/// Why a user's data could not be loaded.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum Error {
    #[error("reading {}: {source}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{name} cannot be loaded: {why}")]
    Unfit { name: String, why: &'static str, hint: &'static str },
    #[error("{name} cannot be loaded: the servers' user may not read it")]
    Closed { name: String },
    #[error("{name} was dumped from PostgreSQL {dumped}, and the server is {server}")]
    Newer { name: String, dumped: String, server: String },
    #[error("{name} cannot be copied: the server with process {pid} uses it")]
    InUse { name: String, pid: i32 },
    #[error("{name} is a copy of PostgreSQL {major}'s data, and the server is {server}")]
    OtherMajor { name: String, major: u32, server: String },
    #[error(
        "{name} was not made by a build like PostgreSQL {server}: another architecture, or other sizes of blocks"
    )]
    OtherFormat { name: String, server: String },
    #[error("{name} cannot be read by pg_restore {version}: {why}")]
    Archive { name: String, version: String, why: String },
    #[error("reading the settings in line {line} of {}: {why}", .path.display())]
    Configuration { path: PathBuf, line: usize, why: &'static str },
    #[error("{name}: {source}")]
    Part { name: String, source: lab::Error },
    #[error(transparent)]
    Lab(#[from] lab::Error),
    #[error("running {program}: {source}")]
    Program { program: &'static str, source: io::Error },
    #[error("{why}")]
    Failed {
        /// In its words, which begin with file and line of a script.
        why: String,
        hint: String,
    },
    #[error("interrupted while loading the data")]
    Interrupted,
    #[error("{doing} {}: {source}", .path.display())]
    Cache { doing: &'static str, path: PathBuf, source: io::Error },
}

impl Error {
    /// Says what to do next.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Error::Unfit { hint, .. } => (*hint).to_owned(),
            Error::Closed { .. } => {
                "make it readable for the servers' user (chmod -R o+rX), or use a dump of one file: \
                 pg_dump --format=custom"
                    .to_owned()
            }
            Error::Newer { .. } => {
                "give that side the programs of a version that is at least as new (--a-bin, --b-bin), or give the \
                 data as a script that both versions read: CREATE TABLE, and \\copy FROM a file of \\copy TO"
                    .to_owned()
            }
            Error::Archive { .. } => {
                "restore it with the pg_restore of the pg_dump that made it, or newer (--a-bin, \
                 --b-bin), or use a plain dump"
                    .to_owned()
            }
            Error::InUse { .. } => {
                "take a base backup of that server: pg_basebackup --pgdata DIR".to_owned()
            }
            Error::OtherMajor { major, .. } => format!(
                "give both sides the programs of PostgreSQL {major} (--a-bin, --b-bin), or have B upgraded: --a-bin of \
                 {major}, --b-upgrade"
            ),
            Error::OtherFormat { .. } => {
                "give the sides programs of the same build (--a-bin, --b-bin), or the data as a dump".to_owned()
            }
            Error::Configuration { .. } => {
                "name a postgresql.conf, or rows of pg_settings with a header: psql --csv -c 'SELECT * FROM \
                 pg_settings'"
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
