//! The limits on the I/O of a site's servers in the trial under way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lab::IoLimit;

/// The limits on the I/O of servers, by their names. Clones are the same limits.
#[derive(Clone, Debug, Default)]
pub struct Throttles(Arc<Mutex<BTreeMap<String, IoLimit>>>);

impl Throttles {
    /// Puts these limits in place of all others.
    pub(crate) fn set(&self, limits: BTreeMap<String, IoLimit>) {
        *self.all() = limits;
    }

    /// Puts a limit in place of the one that a server has.
    pub(crate) fn add(&self, node: &str, limit: IoLimit) {
        self.all().insert(node.to_owned(), limit);
    }

    /// Lifts the limit of a server, and says whether it had one.
    pub fn lift(&self, node: &str) -> bool {
        self.all().remove(node).is_some()
    }

    /// Lifts all limits.
    pub fn lift_all(&self) {
        self.all().clear();
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, IoLimit>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
