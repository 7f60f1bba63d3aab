//! Errors of a comparison.

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
    /// The sides hold different data.
    #[error("the data of A and B differ: {what}")]
    DifferentData { what: String },
    /// The load could not begin.
    #[error("loading side {side}: {source}")]
    Load {
        /// The side, or both.
        side: String,
        #[source]
        source: Box<load::LoadError>,
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
            Error::DifferentData { .. } => {
                "both sides need the same rows; in a script of data, random() is seeded, while \
                 gen_random_uuid(), now() and the like differ"
            }
            Error::Load { source, .. } => return source.hint().map(|hint| hint.to_string()),
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
