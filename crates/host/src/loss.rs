//! The loss of a process or of its host.

/// Why a process, or the host that it was on, is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// What happened.
    pub why: String,
}

impl Loss {
    pub(crate) fn of(why: &str) -> Loss {
        Loss { why: why.to_owned() }
    }
}
