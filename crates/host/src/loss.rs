//! The loss of a process or of its host.

/// The reason why a process, or the host that it was on, is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostLoss {
    /// The reason.
    pub why: String,
}

impl HostLoss {
    pub(crate) fn of(why: &str) -> HostLoss {
        HostLoss { why: why.to_owned() }
    }
}
