//! The loss of a process or of its host.

/// The reason why a process, or the host that it was on, is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The reason.
    pub why: String,
}

impl Loss {
    pub(crate) fn of(why: &str) -> Loss {
        Loss { why: why.to_owned() }
    }
}
