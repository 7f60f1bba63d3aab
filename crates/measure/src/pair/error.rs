//! Errors of a comparison.

use thiserror::Error;

/// Why a comparison could not be made.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum PairError {
    #[error(transparent)]
    Lab(#[from] lab::Error),
    #[error("side {side}: {source}")]
    Server {
        side: String,
        #[source]
        source: lab::Error,
    },
    #[error("the data of A and B differ: {what}")]
    DifferentData { what: String },
    #[error("loading side {side}: {source}")]
    Load {
        side: String,
        #[source]
        source: Box<load::LoadError>,
    },
    #[error("restarting the servers of side {side}: {why}")]
    Renewal { side: String, why: String },
    #[error("no transaction of side {side} ended well: {why}")]
    Failing { side: String, why: String },
    #[error("a client of side {side} ended before there was anything to say: {why}")]
    Died { side: String, why: String },
    /// Both sides could be loaded, and then one could not.
    #[error("measuring ended before there was anything to say: {source}")]
    Ended {
        #[source]
        source: Box<PairError>,
    },
    #[error("sampling the servers for --profile: {why}")]
    Profile { why: String },
    #[error("a transaction takes {seconds:.3} s on average, too long for blocks of {block_s} s")]
    TooSlow { seconds: f64, block_s: f64 },
    #[error("interrupted while {doing}")]
    Interrupted { doing: &'static str },
}

impl PairError {
    /// A statement that a side's server refused.
    pub fn failed(side: &str, statement: &str, source: postgres::Error) -> PairError {
        let statement = statement.split_whitespace().collect::<Vec<_>>().join(" ");
        let source = lab::Error::Query { server: side.to_owned(), statement, source };
        PairError::Server { side: side.to_owned(), source }
    }

    /// Says what to do next.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            PairError::Lab(error) => return error.hint(),
            PairError::Server { source, .. } => return source.hint(),
            PairError::Ended { source } => return source.hint(),
            PairError::DifferentData { .. } => {
                "both sides need the same rows; in a script of data, random() is seeded, while \
                 gen_random_uuid(), now() and the like differ"
            }
            PairError::Load { source, .. } => return source.hint().map(|hint| hint.to_string()),
            PairError::Failing { .. } => {
                "run the script alone on such a server first: pgrig bench -f FILE -t 1"
            }
            PairError::Profile { .. } => {
                "install perf (Debian: linux-perf) and let it sample (sysctl \
                 kernel.perf_event_paranoid=2, or root), or leave out --profile"
            }
            PairError::TooSlow { .. } => {
                "leave out -R: without a rate, sides take turns of whole transactions"
            }
            _ => return None,
        };
        Some(hint.to_owned())
    }
}
