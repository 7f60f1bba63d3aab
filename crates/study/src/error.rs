//! Why a study could not be run, or not to its end.

pub(crate) use server::message::with_detail as server_words;
use std::path::PathBuf;

use crate::preflight::Preflight;

/// Why a study could not be run. A single trial that breaks is no error of the run: it is recorded
/// and the next one begins.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No trial of the plan fits the pattern.
    #[error("no trial fits \"{pattern}\"")]
    NothingFits {
        /// The pattern.
        pattern: String,
        /// The points that there are.
        points: Vec<String>,
    },
    /// The plan has no trial of that number.
    #[error("the plan has no trial {number}: it has {planned}")]
    NoTrial {
        /// The number.
        number: usize,
        /// How many it has.
        planned: usize,
    },
    /// The machine is too small, or a part is missing.
    #[error("the study does not fit this machine")]
    DoesNotFit(Box<Preflight>),
    /// No PostgreSQL, or no lab.
    #[error(transparent)]
    Lab(#[from] lab::Error),
    /// The outside server's address.
    #[error("reading the target's address: {0}")]
    Target(#[from] wire::conninfo::ConninfoError),
    /// The outside server's certificates, or ours.
    #[error("connecting to the target: {0}")]
    TargetTls(#[source] server::TlsError),
    /// A host stands for a node that the study does not have.
    #[error("the study has no node \"{name}\"")]
    NoSuchNode {
        /// The name that was given.
        name: String,
        /// The nodes that there are.
        known: Vec<String>,
    },
    /// Two nodes have the same host and database.
    #[error("nodes {first} and {second} are given the same database")]
    HostTwice {
        /// One of them.
        first: String,
        /// The other one.
        second: String,
    },
    /// A statement of a workload's failed that was not expected to.
    #[error("trial {trial} stopped at a statement that failed\n{why}")]
    Statement {
        /// The trial's point.
        trial: String,
        /// File, line, and the server's message.
        why: String,
        /// The record, which holds every trial that was over by then.
        directory: PathBuf,
    },
    /// The record could not be read or written.
    #[error(transparent)]
    Record(#[from] record::Error),
    /// The record could not be written any more.
    #[error("{source}")]
    Stopped {
        /// The record, which holds every trial that was over by then.
        directory: PathBuf,
        /// Why.
        source: record::Error,
    },
    /// The study's data could not be built.
    #[error("building the data of {site}: {why}")]
    Data {
        /// The topology.
        site: String,
        /// Why.
        why: String,
        /// What to do next.
        hint: Option<String>,
    },
    /// A guard that does not take charge, or has given up.
    #[error("{why}")]
    Guard {
        /// Which, and what it wrote.
        why: String,
    },
    /// A fault that does no harm where it must: the rest of the study would prove nothing.
    #[error("{why}")]
    Control {
        /// Which control does not hold, and after how many trials.
        why: String,
    },
    /// Somebody interrupted before the first trial.
    #[error("interrupted while {doing}")]
    Interrupted {
        /// What was being done.
        doing: String,
    },
}

impl Error {
    /// What to do next, where that can be said.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::NothingFits { points, .. } => {
                let shown: Vec<&str> =
                    points.iter().take(POINTS_SHOWN).map(String::as_str).collect();
                let more = if points.len() > shown.len() { ", …" } else { "" };
                Some(format!("there is {}{more}", shown.join(", ")))
            }
            Error::NoTrial { .. } => {
                let plan = "a number counts in a plan: give profile, seed, rounds and pattern too";
                Some(plan.to_owned())
            }
            Error::DoesNotFit(_)
            | Error::Guard { .. }
            | Error::Control { .. }
            | Error::Interrupted { .. } => None,
            Error::Lab(error) => error.hint(),
            Error::NoSuchNode { known, .. } => Some(format!("there is {}", known.join(", "))),
            Error::HostTwice { .. } => Some("a database holds one shard".to_owned()),
            Error::Target(error) => error.hint().map(str::to_owned),
            Error::TargetTls(error) => Some(error.hint().to_owned()),
            Error::Statement { directory, .. } => Some(format!(
                "correct the script; where failures are part of the question, say \
                 expect_failures = true in the workload. The record is {}",
                directory.display()
            )),
            Error::Record(error) => error.hint(),
            Error::Stopped { directory, .. } => Some(format!(
                "trials that were over are kept; make room and go on with: pgrig run --resume {}",
                directory.display()
            )),
            Error::Data { hint, .. } => hint.clone(),
        }
    }
}

/// More names than these are a list and not a hint.
const POINTS_SHOWN: usize = 8;
