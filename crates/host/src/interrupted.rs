//! The user's wish for the end.

use std::sync::Arc;

/// Returns true if the user has asked for the end. Every wait for a host looks at it, and a host is given
/// up a few seconds later.
pub type Interrupted = Arc<dyn Fn() -> bool + Send + Sync>;
