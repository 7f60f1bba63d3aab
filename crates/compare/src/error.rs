//! Errors of a comparison.

use std::path::PathBuf;

use thiserror::Error;

/// The reason why a comparison could not be made.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum Error {
    /// A server, its programs or its directory.
    #[error(transparent)]
    Lab(#[from] lab::Error),
    /// A side's server.
    #[error("side {side}: {source}")]
    Server {
        side: String,
        #[source]
        source: lab::Error,
    },
    /// The address of a server of the user's.
    #[error("reading the address of side {side}: {source}")]
    Conninfo {
        side: &'static str,
        #[source]
        source: wire::conninfo::ConninfoError,
    },
    /// A setting of a side that changes nothing.
    #[error("setting {name} of side {side} has no effect: it is {value} on both sides")]
    SameSetting {
        side: &'static str,
        name: String,
        /// Its value on both sides, in the server's form.
        value: String,
    },
    /// A file of data or a script of a side.
    #[error("{}{source}", .side.as_ref().map_or(String::new(), |side| format!("filling side {side}: ")))]
    Import {
        /// The side; none where it was only looked at.
        side: Option<String>,
        #[source]
        source: Box<import::Error>,
    },
    /// Both addresses lead to the same database, in which both sides would make their data.
    #[error("A and B are the same database of the same server")]
    SameDatabase,
    /// The sides hold different data.
    #[error("the data of A and B differ: {what}")]
    DifferentData { what: String },
    /// Two servers do not fit.
    #[error(
        "two servers need about {} MiB of {what}, and {} MiB are free", .needs >> 20, .has >> 20
    )]
    TooLittle {
        /// The resource that is scarce.
        what: &'static str,
        /// Bytes that both servers need.
        needs: u64,
        /// Bytes that there are.
        has: u64,
    },
    /// The load could not begin.
    #[error("loading side {side}: {source}")]
    Load {
        /// The side, or both.
        side: String,
        #[source]
        source: Box<load::LoadError>,
    },
    /// pgbench's options that are wrong.
    #[error("{}", .0.message())]
    Workload(pgbench::Complaint),
    /// An option of pgbench's that a comparison cannot follow.
    #[error("option {option} does not fit a comparison: {why}")]
    Option {
        /// As it is typed.
        option: String,
        /// The reason why it does not fit.
        why: &'static str,
    },
    /// Both sides are the same, and nothing says that this is meant.
    #[error("both sides are the same: nothing but their names would differ")]
    SameSides,
    /// `--self` with options that make the sides differ.
    #[error(
        "--self compares a server with a copy of itself, but side {side} is given {option} of its own"
    )]
    NotSelf { side: &'static str, option: &'static str },
    /// A file could not be read.
    #[error("reading {path}: {source}")]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// A file could not be written.
    #[error("writing {path}: {source}")]
    Write {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// pgbench's tables or a script could not be loaded.
    #[error("filling side {side}: {why}")]
    Data {
        side: String,
        /// In the server's or pgbench's words.
        why: String,
    },
    /// The servers of a side were to be restarted.
    #[error("restarting the servers of side {side}: {why}")]
    Renewal { side: String, why: String },
    /// Every transaction of a side fails.
    #[error("no transaction of side {side} ended well: {why}")]
    Failing { side: String, why: String },
    /// A client of a side ended before there were enough pairs for an interval.
    #[error("a client of side {side} ended before there was anything to say: {why}")]
    Died { side: String, why: String },
    /// perf is not there, may not sample, or failed.
    #[error("sampling the servers for --profile: {why}")]
    Profile {
        /// In perf's words, where it said any.
        why: String,
    },
    /// Transactions take too long for blocks.
    #[error("a transaction takes {seconds:.3} s on average, too long for blocks of {block_s} s")]
    TooSlow { seconds: f64, block_s: f64 },
    /// The user interrupted it before there was anything to say.
    #[error("interrupted while {doing}")]
    Interrupted {
        /// The step that was interrupted.
        doing: &'static str,
    },
}

impl Error {
    /// A statement that a side's server refused.
    #[must_use]
    pub fn failed(side: &str, statement: &str, source: postgres::Error) -> Error {
        let statement = statement.split_whitespace().collect::<Vec<_>>().join(" ");
        let source = lab::Error::Query { server: side.to_owned(), statement, source };
        Error::Server { side: side.to_owned(), source }
    }

    /// Says what to do next.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Error::Lab(error) => return error.hint(),
            Error::Server { source, .. } => return source.hint(),
            Error::Workload(complaint) => return complaint.hint(),
            Error::Conninfo { source, .. } => return source.hint().map(str::to_owned),
            Error::Import { source, .. } => return source.hint(),
            Error::SameSetting { .. } => {
                "give the sides different values, or leave the setting out"
            }
            Error::SameDatabase => {
                "give two databases, or compare on the tables that are there (--no-init), \
                 which may be reached in two ways"
            }
            Error::DifferentData { .. } => {
                "both sides need the same rows; in a script of data, random() is seeded, while \
                 gen_random_uuid(), now() and the like differ"
            }
            Error::TooLittle { what: "memory", .. } => {
                "use smaller buffers (--set shared_buffers=256MB) or fewer clients (-c)"
            }
            Error::TooLittle { .. } => {
                "use a smaller scale (-s), or put the servers on another disk (TMPDIR)"
            }
            Error::Load { source, .. } => return source.hint().map(|hint| hint.to_string()),
            Error::SameSides => {
                "give a side something of its own (--b-bin, --b-set, --b-sql, --b-conninfo), or \
                 measure what identical servers differ by with --self"
            }
            Error::NotSelf { .. } => "leave out --self, or the option",
            Error::Failing { .. } => {
                "run the script alone on such a server first: pgrig bench -f FILE -t 1"
            }
            Error::Profile { .. } => {
                "install perf (Debian: linux-perf) and let it sample (sysctl \
                 kernel.perf_event_paranoid=2, or root), or leave out --profile"
            }
            Error::TooSlow { .. } => {
                "leave out -R: without a rate, sides take turns of whole transactions"
            }
            _ => return None,
        };
        Some(hint.to_owned())
    }
}
