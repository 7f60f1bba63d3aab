//! The times in which this process itself stood still: its machine was stopped, or had no CPU for it.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use crate::gaps::{SilentGap, SilentGaps};
use crate::monotonic_ns;

/// Time between two looks of a process at its own clock, and between two questions to a peer.
pub const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Shorter gaps of an own clock, of a link and of a disk are not seen: three looks. What a machine is late for in the
/// ordinary course is shorter.
pub const GAP_MIN: Duration = Duration::from_millis(150);

/// Tells when this process stood still, as long as it lives.
pub(crate) fn watch_own_clock(tell: &mut dyn FnMut(SilentGap)) -> ! {
    let mut from_ns = monotonic_ns();
    loop {
        thread::sleep(LOOK_EVERY);
        let to_ns = monotonic_ns();
        if to_ns.saturating_sub(from_ns) >= GAP_MIN.as_nanos() as u64 {
            tell(SilentGap { from_ns, to_ns });
        }
        from_ns = to_ns;
    }
}

/// The times in which this process stood still, since they were asked for first.
fn own() -> MutexGuard<'static, SilentGaps> {
    static OWN: OnceLock<Mutex<SilentGaps>> = OnceLock::new();
    let own = OWN.get_or_init(|| {
        thread::spawn(|| {
            watch_own_clock(&mut note_own_gap);
        });
        Mutex::new(SilentGaps::new(GAP_MIN))
    });
    own.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins to watch this process's own clock, if that was not done before.
pub(crate) fn begin_to_watch_own_clock() {
    drop(own());
}

/// Notes that this process stood still, as one of its threads has seen that was not woken in time.
pub(crate) fn note_own_gap(gap: SilentGap) {
    own().add(gap);
}

/// The times between two moments of this machine's monotonic clock in which this process stood still, for
/// [`GAP_MIN`] or more; in their order. Nothing is known of the time before a host was reached.
pub fn own_gaps(from_ns: u64, to_ns: u64) -> Vec<SilentGap> {
    own().between(from_ns, to_ns, to_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_thread_has_noted_is_known() {
        begin_to_watch_own_clock();
        let from_ns = monotonic_ns() + 1_000_000_000_000;
        let gap = SilentGap { from_ns, to_ns: from_ns + 1_000_000_000 };
        note_own_gap(gap);
        assert_eq!(own_gaps(from_ns - 1, from_ns + 2_000_000_000), [gap]);
        assert!(own_gaps(from_ns + 1_000_000_000, from_ns + 2_000_000_000).is_empty());
    }
}
