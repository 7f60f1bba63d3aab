//! Errors of a bisection.

use std::path::PathBuf;

/// Why a bisection could not be made.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum Error {
    #[error("running git: {0}")]
    NoGit(std::io::Error),
    #[error("opening the repository {}: {source}", .directory.display())]
    Directory {
        directory: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the working directory of {} has nothing that is not committed", .directory.display())]
    Clean { directory: PathBuf },
    #[error("git {doing}: {why}")]
    Git { doing: String, why: String },
    #[error("{good} is not an ancestor of {bad}")]
    NotAncestor {
        /// As it was named.
        good: String,
        /// As it was named.
        bad: String,
    },
    #[error("{good} and {bad} are the same commit")]
    SameCommit {
        /// As it was named.
        good: String,
        /// As it was named.
        bad: String,
    },
    #[error("{doing} {}: {source}", .path.display())]
    File { doing: &'static str, path: PathBuf, source: std::io::Error },
    #[error("building {commit}: {why}")]
    Build { commit: String, why: String },
    #[error("comparing {what}: {source}")]
    Compare {
        what: String,
        #[source]
        source: Box<study::Error>,
    },
    #[error(
        "the good commit and the bad one cannot be told apart in {minutes} min: {figure} {ratio}"
    )]
    NoEffect { minutes: u64, figure: String, ratio: String },
    #[error(
        "the good commit and a copy of it cannot be told from the good commit and the bad one: \
         {figure} {ratio}"
    )]
    NotIdentical { figure: String, ratio: String },
    #[error("reading or writing {}: {why}", .path.display())]
    State { path: PathBuf, why: String },
    #[error("{} is a bisection of something else: {what}", .directory.display())]
    Other { directory: PathBuf, what: &'static str },
    #[error(transparent)]
    Record(#[from] record::Error),
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// Says what to do next.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Error::NoGit(_) => "install git".to_owned(),
            Error::Directory { .. } | Error::Git { .. } => {
                "name commits of this repository, or another one with --repository (compare: --repo)".to_owned()
            }
            Error::Clean { .. } => "name another commit, or a patch".to_owned(),
            Error::NotAncestor { .. } => {
                "name the older commit first, on the line of the newer one".to_owned()
            }
            Error::SameCommit { .. } => "name two commits".to_owned(),
            Error::Build { .. } => {
                "try the command in a clone of that commit; its last line is the folder \
                of PostgreSQL programs that it has made"
                    .to_owned()
            }
            Error::Compare { source, .. } => return source.hint(),
            Error::NoEffect { .. } => {
                "give it more time for each step (--step-time), or choose a load or a \
                --figure that shows the difference"
                    .to_owned()
            }
            Error::NotIdentical { .. } => "use a quieter machine, or more --step-time".to_owned(),
            Error::State { .. } => "name the directory of a bisection".to_owned(),
            Error::Other { .. } => {
                "leave out --resume, or repeat the command that began it".to_owned()
            }
            Error::Record(error) => return error.hint(),
            Error::File { .. } | Error::Interrupted => return None,
        })
    }
}
