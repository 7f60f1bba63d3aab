//! The end of a hang: a part of a trial, or of a measurement in pairs, that takes far longer than it can take
//! is a result.
//!
//! The rig waits for its servers without a limit where a statement may take hours. When the time that a
//! part was given is over, its servers are killed, on this machine and on hosts, so that a
//! thread that waits for one gets an error.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use lab::Server;
use site::Site;
use spec::Point;

use crate::fit::estimate;

/// Does some work within a time. Returns what came of it, and whether it had to be ended.
pub(crate) fn within<T>(
    limit: Duration,
    end: &(dyn Fn() + Sync),
    work: impl FnOnce() -> T,
) -> (T, bool) {
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
        // It cannot panic.
        (worked, watchdog.join().unwrap_or(false))
    })
}

/// Does a part of something, which ends by itself where it hangs: then its error is made of the reason.
pub(crate) fn patiently<T, E>(
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

/// The time for the load of a point, with its timeline.
pub(crate) fn load_limit(point: &Point) -> Duration {
    PATIENCE + Duration::from_millis(point.load_ms_max()) * 3
}

/// The time for what is done before or after the load of a point.
pub(crate) fn other_limit(point: &Point) -> Duration {
    let bytes_s = estimate::data_bytes(&point.data) / BYTES_PER_S;
    PATIENCE
        + Duration::from_secs_f64(estimate::trial_s(point) * 10.0)
        + Duration::from_secs(bytes_s)
}

/// The same for servers that stand with data of any origin: by their size.
pub(crate) fn standing_limit(point: &Point, site: &Site) -> Duration {
    let bytes = site.nodes.iter().map(|node| match &node.server {
        // The size of what cannot be read now does not count.
        Server::Node(server) => server.data_bytes().unwrap_or_default(),
        Server::Managed(_) | Server::Target(_) => 0,
    });
    other_limit(point) + Duration::from_secs(bytes.sum::<u64>() / BYTES_PER_S)
}

/// The time that a part of a trial may take besides its own, on a machine that others use too.
const PATIENCE: Duration = Duration::from_secs(180);

/// The least speed at which a check reads data.
const BYTES_PER_S: u64 = 1 << 20;

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
