//! The end of a hang: a part of a trial, or of a measurement in pairs, that takes far longer than it can take
//! is a result.
//!
//! The rig waits for its servers without a limit where a statement may take hours. When the time that a
//! part was given is over, its servers are killed, on this machine and on hosts, so that a
//! thread that waits for one gets an error.

use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Does some work within a time. Returns what came of it, and whether it had to be ended.
fn within<T>(limit: Duration, end: &(dyn Fn() + Sync), work: impl FnOnce() -> T) -> (T, bool) {
    thread::scope(|scope| {
        let (done, is_done) = channel::<()>();
        let watchdog = scope.spawn(move || {
            let (mut left, mut has_ended) = (limit, false);
            // What was started meanwhile is ended as well.
            while is_done.recv_timeout(left) == Err(RecvTimeoutError::Timeout) {
                end();
                (left, has_ended) = (AGAIN, true);
            }
            has_ended
        });
        let worked = work();
        drop(done);
        (worked, watchdog.join().unwrap_or_else(|it| resume_unwind(it)))
    })
}

/// Does a part of something, which ends by itself where it hangs: then its error is made of the reason.
pub fn patiently<T, E>(
    limit: Duration,
    part: &str,
    hung: impl FnOnce(String) -> E,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    match within(limit, &lab::kill_servers, work) {
        (worked, false) => worked,
        (_, true) => {
            let limit_s = limit.as_secs();
            Err(hung(format!("{part} did not end within {limit_s} s: its servers were killed")))
        }
    }
}

/// Between two kills.
const AGAIN: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn what_hangs_is_ended_and_what_ends_is_left_alone() {
        let ended = AtomicBool::new(false);
        let end = || ended.store(true, Ordering::Relaxed);
        assert_eq!(within(Duration::from_secs(600), &end, || 1), (1, false));
        assert!(!ended.load(Ordering::Relaxed));
        // It waits for what the watchdog ends.
        let hangs = || {
            while !ended.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(1))
            }
        };
        assert_eq!(within(Duration::from_millis(10), &end, hangs), ((), true));
    }
}
