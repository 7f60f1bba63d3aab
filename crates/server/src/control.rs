//! The handle by which the caller ends a load.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

/// Ends a load early. Cheap to clone and safe to use from a signal handler's thread.
#[derive(Clone, Debug, Default)]
pub struct Control(Arc<AtomicU8>);

/// Urgency with which the end was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// Not at all.
    None,
    /// End the window now, cancel what runs, and report.
    Clean,
    /// Close every connection as it stands.
    AtOnce,
}

impl Control {
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
    pub fn urgency(&self) -> Urgency {
        match self.0.load(Ordering::Relaxed) {
            0 => Urgency::None,
            1 => Urgency::Clean,
            _ => Urgency::AtOnce,
        }
    }
}
