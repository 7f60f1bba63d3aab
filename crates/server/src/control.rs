//! The handle by which the caller ends a load.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

/// Ends a load early. Cheap to clone and safe to use from a signal handler's thread.
#[derive(Clone, Debug, Default)]
pub struct LoadControl(Arc<AtomicU8>);

/// Urgency with which the end was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopUrgency {
    /// Not at all.
    None,
    /// End the window now, cancel what runs, and report.
    Clean,
    /// Close every connection as it stands.
    AtOnce,
}

impl LoadControl {
    /// A handle that was not used yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The first call ends the window cleanly, the second stops at once.
    pub fn interrupt(&self) {
        let _ = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| Some(n.saturating_add(1)));
    }

    /// Greatest urgency that has been asked for so far.
    pub fn urgency(&self) -> StopUrgency {
        match self.0.load(Ordering::Relaxed) {
            0 => StopUrgency::None,
            1 => StopUrgency::Clean,
            _ => StopUrgency::AtOnce,
        }
    }
}
