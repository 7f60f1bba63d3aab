//! Why a trial broke, before it becomes an ending.

use std::error::Error as StdError;
use std::fmt;

use record::{EndingReason, FaultyParty};

use crate::trial::blame;

/// Why a trial broke.
pub(crate) enum TrialFailure {
    /// In one way or another.
    Somehow(EndingReason<FaultyParty>),
    /// By a statement that is wrong: its place and the server's words.
    Statement(String),
    /// The user has asked for the end.
    Interrupted,
    /// The record could not be written.
    Record(record::Error),
}

impl TrialFailure {
    /// It is not known whose fault it is.
    pub(crate) fn unknown(error: impl fmt::Display) -> TrialFailure {
        TrialFailure::somehow(FaultyParty::Unknown, error)
    }

    pub(crate) fn somehow(kind: FaultyParty, error: impl fmt::Display) -> TrialFailure {
        TrialFailure::Somehow(EndingReason { kind, text: error.to_string() })
    }

    /// By what is below an error.
    pub(crate) fn by(error: &(impl StdError + 'static)) -> TrialFailure {
        TrialFailure::somehow(blame::of(error), error)
    }

    /// The same after the load.
    pub(crate) fn after(error: &(impl StdError + 'static)) -> TrialFailure {
        TrialFailure::somehow(blame::of(error), format_args!("after the load: {error}"))
    }

    /// A failure of a server that should run.
    pub(crate) fn server(error: impl fmt::Display) -> TrialFailure {
        TrialFailure::somehow(FaultyParty::Server, error)
    }
}
