//! Why a comparison could not be made.

use std::path::PathBuf;

use thiserror::Error;

/// Why a comparison could not be made.
#[derive(Debug, Error)]
pub enum Error {
    /// A server, its programs or its directory.
    #[error(transparent)]
    Lab(#[from] lab::Error),
    /// The load could not begin.
    #[error("loading side {side}: {source}")]
    Load {
        /// Which side, or both.
        side: String,
        /// Why.
        #[source]
        source: Box<load::LoadError>,
    },
    /// What pgbench's options ask for.
    #[error("{0}")]
    Workload(pgbench::Complaint),
    /// An option of pgbench's that a comparison cannot follow.
    #[error("option {option} does not fit a comparison: {why}")]
    Option {
        /// As it is typed.
        option: &'static str,
        /// Why it does not fit.
        why: &'static str,
    },
    /// Both sides are the same, and nothing says that this is meant.
    #[error("both sides are the same: nothing but their names would differ")]
    SameSides,
    /// `--self` with options that make the sides differ.
    #[error(
        "--self compares a server with a copy of itself, but side {side} is given {option} of its own"
    )]
    NotSelf {
        /// The side.
        side: &'static str,
        /// The option.
        option: &'static str,
    },
    /// A file could not be read.
    #[error("reading {path}: {source}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file could not be written.
    #[error("writing {path}: {source}")]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// pgbench's tables or a script could not be loaded.
    #[error("filling side {side}: {why}")]
    Data {
        /// The side.
        side: &'static str,
        /// In the server's or pgbench's words.
        why: String,
    },
    /// Every transaction of a side fails.
    #[error("no transaction of side {side} ended well: {why}")]
    Failing {
        /// The side.
        side: &'static str,
        /// The first message.
        why: String,
    },
    /// A side's clients were lost in the middle.
    #[error("side {side} stopped answering in the middle of the comparison: {why}")]
    Died {
        /// The side.
        side: &'static str,
        /// The first message.
        why: String,
    },
    /// Transactions take too long for blocks.
    #[error("a transaction takes {seconds:.1} s on average, too long for blocks of two seconds")]
    TooSlow {
        /// Mean latency.
        seconds: f64,
    },
    /// The user interrupted it before there was anything to say.
    #[error("interrupted while {doing}")]
    Interrupted {
        /// What was being done.
        doing: &'static str,
    },
}

impl Error {
    /// What to do next.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Error::Lab(error) => return error.hint(),
            Error::Load { source, .. } => return source.hint().map(|hint| hint.to_string()),
            Error::SameSides => {
                "give a side something of its own (--b-bin, --b-set, --b-sql), or measure what \
                 identical servers differ by with --self"
            }
            Error::NotSelf { .. } => "leave out --self, or the option",
            Error::Failing { .. } => "run the script alone first: pgrig bench -f FILE -t 1",
            Error::TooSlow { .. } => "compare a shorter transaction, or whole runs: pgrig new",
            _ => return None,
        };
        Some(hint.to_owned())
    }
}
