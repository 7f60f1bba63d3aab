//! The fate of a state.

use std::fmt;

/// The fate of a state when a server was started on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StateFate {
    /// It starts, and all that was acknowledged is there, and nothing is damaged.
    Sound,
    /// The file system cannot be mounted, or has no data directory.
    NotMounted(String),
    /// The server does not start.
    NotStarted(String),
    /// So many acknowledged transactions are missing; the first one.
    Lost(u64, String),
    /// Something is damaged.
    Damaged(String),
}

impl StateFate {
    pub(super) fn is_sound(&self) -> bool {
        *self == StateFate::Sound
    }

    pub(super) fn has_failed(&self) -> bool {
        !self.is_sound()
    }

    /// True if both failed in the same manner.
    pub(super) fn is_like(&self, other: &StateFate) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl fmt::Display for StateFate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StateFate::Sound => f.write_str("sound"),
            StateFate::NotMounted(why) => write!(f, "nothing is left: {why}"),
            StateFate::NotStarted(why) => write!(f, "the server does not start: {why}"),
            StateFate::Lost(count, first) => write!(f, "{count} acknowledged are lost; {first}"),
            StateFate::Damaged(why) => write!(f, "damaged: {why}"),
        }
    }
}
