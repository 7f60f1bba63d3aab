//! How a server is stopped.

use std::fmt;

/// How a server is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopMode {
    /// When the last client has left.
    Smart,
    /// After disconnecting all clients and a checkpoint.
    Fast,
    /// At once, so that the next start recovers from the WAL.
    Immediate,
}

impl fmt::Display for StopMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Smart => "smart",
            Self::Fast => "fast",
            Self::Immediate => "immediate",
        })
    }
}
