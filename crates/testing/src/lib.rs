//! Tools that the tests of all crates share: skips that are counted, a harness for test programs
//! that are also processes of what they test, JSON documents against their schemas, servers, Prometheus,
//! terminals, programs that are run to their end, waiting for a condition, and limits on times that hold on a busy machine.
//!
//! A dev-dependency only.

pub mod harness;
pub mod lag;
pub mod program;
pub mod prometheus;
pub mod schema;
#[cfg(feature = "servers")]
pub mod servers;
pub mod skip;
pub mod terminal;

use std::time::{Duration, Instant};

/// Waits until `is_so`, for three minutes at most.
///
/// # Panics
/// After three minutes, naming `what` was waited for.
pub fn until(what: &str, is_so: impl FnMut() -> bool) {
    assert!(in_time(is_so), "still waiting after {LONG:?}: {what}");
}

/// Waits until `is_so`, for three minutes at most: whether it is.
fn in_time(mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + LONG;
    // The last look happens after the deadline, so that a slow machine is not taken for a failure.
    loop {
        let is_late = Instant::now() >= deadline;
        let is_reached = is_so();
        if is_reached || is_late {
            return is_reached;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A busy machine may take this long for what takes seconds: other test programs run at the same
/// time.
const LONG: Duration = Duration::from_secs(180);
