//! Errors of a lab on another host.

/// Error of a lab on another host.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum HostError {
    #[error("host {host} is lost: {why}")]
    Lost { host: String, why: String },
    #[error("on host {host}: {text}")]
    Says { host: String, text: String, hint: Option<String>, kind: HostErrorKind },
    #[error("{node} cannot be made on host {host}: only relays join servers there")]
    Network { node: String, host: String },
    /// An answer of another type than the question's; a bug.
    #[error("object {number} of the lab gave an answer to another question; this is a bug")]
    OtherAnswer { number: u32 },
    /// Two rigs of different minds; a bug.
    #[error("the lab has no such object {number}; this is a bug")]
    NoSuchObject { number: u32 },
}

/// Kind of error of a lab on another host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostErrorKind {
    /// It took too long.
    Timeout,
    /// Something is not installed there.
    Missing,
    /// Anything else.
    Other,
}

impl HostError {
    pub(super) fn hint(&self) -> Option<String> {
        match self {
            Self::Says { hint, .. } => hint.clone(),
            Self::Network { .. } => Some("make the link by = \"relay\"".to_owned()),
            Self::Lost { .. } | Self::OtherAnswer { .. } | Self::NoSuchObject { .. } => None,
        }
    }
}
