//! The fate of a state.

use std::fmt;

/// The fate of a state when a server was started on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
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

impl Fate {
    pub(super) fn is_sound(&self) -> bool {
        *self == Fate::Sound
    }

    pub(super) fn has_failed(&self) -> bool {
        !self.is_sound()
    }

    /// True if both failed in the same manner.
    pub(super) fn is_like(&self, other: &Fate) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fate::Sound => f.write_str("sound"),
            Fate::NotMounted(why) => write!(f, "nothing is left: {why}"),
            Fate::NotStarted(why) => write!(f, "the server does not start: {why}"),
            Fate::Lost(count, first) => write!(f, "{count} acknowledged are lost; {first}"),
            Fate::Damaged(why) => write!(f, "damaged: {why}"),
        }
    }
}
