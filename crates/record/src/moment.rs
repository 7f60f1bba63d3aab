//! The one clock of a run.

use serde::{Deserialize, Serialize};

/// Monotonic nanoseconds since the run began. Every sample, interval and mark carries one, so
/// that what clients, servers and the machine did can be laid on one axis.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Moment(pub u64);

impl Moment {
    /// This moment plus `ns` nanoseconds; stays at the end of time rather than wrapping.
    pub fn plus_ns(self, ns: u64) -> Moment {
        Moment(self.0.saturating_add(ns))
    }

    /// Nanoseconds from `earlier` to this moment, 0 when `earlier` is later.
    pub fn since(self, earlier: Moment) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Seconds since the run began.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}
