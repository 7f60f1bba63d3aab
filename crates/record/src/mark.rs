//! Something that happened at a moment.

use serde::{Deserialize, Serialize};

use crate::Moment;

/// Something that belongs on the timeline: a fault, a checkpoint, an autovacuum, an error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimelineMark {
    /// Time at which it began.
    pub at: Moment,
    /// The length in nanoseconds; 0 for an instant.
    pub length_ns: u64,
    /// The kind.
    pub kind: MarkKind,
    /// The node it happened on; `generator` for the rig itself.
    pub node: String,
    /// Text to show beside it.
    pub text: String,
}

/// The kinds of mark that a timeline shows, each in its own colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkKind {
    /// All clients connected, the window opened or closed, clients left.
    Phase,
    /// The runner did something to a node or link.
    Action,
    /// A checkpoint, from start to completion.
    Checkpoint,
    /// An autovacuum or autoanalyze.
    Autovacuum,
    /// Commits were exposed: fewer standbys than asked for had to confirm them.
    Exposure,
    /// A standby came, went, or changed its state or role.
    Replication,
    /// Something kept the oldest xmin, so that dead rows could not be removed.
    Horizon,
    /// An error, a crash or a restart that the server logged.
    ServerError,
}
