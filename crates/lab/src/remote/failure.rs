//! An error of a lab on another host, as the line carries it.

use serde::{Deserialize, Serialize};

use crate::error::{Error, HostError, HostErrorKind};

/// An error, with as much of its type as decisions rest on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Failure {
    kind: Kind,
    text: String,
    hint: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Start { node: String, why: String, log: String },
    DataLost { node: String, why: String },
    Timeout,
    Missing,
    Other,
}

impl Failure {
    /// The error at this end of the line. `host` is where it happened.
    pub(crate) fn at(self, host: &str) -> Error {
        let (host, Failure { kind, text, hint }) = (host.to_owned(), self);
        let kind = match kind {
            Kind::Start { node, why, log } => return Error::Start { node, why, log },
            Kind::DataLost { node, why } => return Error::DataLost { node, why },
            Kind::Timeout => HostErrorKind::Timeout,
            Kind::Missing => HostErrorKind::Missing,
            Kind::Other => HostErrorKind::Other,
        };
        Error::Host(HostError::Says { host, text, hint, kind })
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let (text, hint) = (error.to_string(), error.hint());
        let kind = match error {
            Error::Start { node, why, log } => Kind::Start { node, why, log },
            Error::DataLost { node, why } => Kind::DataLost { node, why },
            Error::Timeout { .. } => Kind::Timeout,
            Error::NoPostgres { .. }
            | Error::TooOld { .. }
            | Error::MissingPart { .. }
            | Error::NoPgBouncer { .. } => Kind::Missing,
            _ => Kind::Other,
        };
        Failure { kind, text, hint }
    }
}
