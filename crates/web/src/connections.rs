//! The connections that are open, limited in number.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::AbortHandle;

/// True once a connection was given the page that it asked for.
pub(crate) type IsServed = Arc<AtomicBool>;

/// The connections that are open, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct OpenConnections(VecDeque<OpenConnection>);

#[derive(Debug)]
struct OpenConnection {
    task: AbortHandle,
    is_served: IsServed,
}

/// Connections that are open at the same time.
const CONNECTIONS_MAX: usize = 512;

impl OpenConnections {
    /// Adds one. If there are too many, the oldest of those that have asked for nothing ends: who asks at once
    /// is answered, however many wait. A page under way is cut off only for another page.
    pub(crate) fn add(&mut self, task: AbortHandle, is_served: IsServed) {
        self.0.retain(|open| !open.task.is_finished());
        if self.0.len() >= CONNECTIONS_MAX {
            let waits = |open: &OpenConnection| !open.is_served.load(Ordering::Relaxed);
            // Where all have asked for a page, the oldest one ends.
            let oldest = self.0.iter().position(waits).unwrap_or(0);
            if let Some(open) = self.0.remove(oldest) {
                open.task.abort();
            }
        }
        self.0.push_back(OpenConnection { task, is_served });
    }

    /// True if a page is still being sent.
    pub(crate) fn is_sending(&self) -> bool {
        let is_sent = |open: &OpenConnection| open.is_served.load(Ordering::Relaxed);
        self.0.iter().any(|open| is_sent(open) && !open.task.is_finished())
    }
}
