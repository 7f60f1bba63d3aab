//! The monotonic clock of the host that this process runs on.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// CLOCK_MONOTONIC in nanoseconds. Processes of one host (in one time namespace) share it.
pub fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CLOCK_MONOTONIC in nanoseconds at an instant.
pub fn monotonic_ns_at(instant: Instant) -> u64 {
    let (now, now_ns) = read_together(monotonic_ns);
    let ahead = instant.saturating_duration_since(now).as_nanos() as u64;
    let ago = now.saturating_duration_since(instant).as_nanos() as u64;
    (now_ns + ahead).saturating_sub(ago)
}

/// The latest that CLOCK_MONOTONIC can have shown at an instant, in nanoseconds: it is read between two readings
/// of the other clock, and a thread may lose its CPU between them.
pub fn latest_monotonic_ns_at(instant: Instant) -> u64 {
    latest_at(instant, shortest(&mut monotonic_ns))
}

/// The latest that a clock can have shown at an instant, from one reading.
fn latest_at(instant: Instant, Reading { before, shown, .. }: Reading<u64>) -> u64 {
    // It was `shown` at `before` or later.
    let ahead = instant.saturating_duration_since(before).as_nanos() as u64;
    let ago = before.saturating_duration_since(instant).as_nanos() as u64;
    (shown + ahead).saturating_sub(ago)
}

/// One reading of a clock between two instants.
struct Reading<T> {
    took: Duration,
    before: Instant,
    shown: T,
}

/// The shortest of several readings.
fn shortest<T>(clock: &mut impl FnMut() -> T) -> Reading<T> {
    let mut read = || {
        let before = Instant::now();
        let shown = clock();
        Reading { took: before.elapsed(), before, shown }
    };
    let mut best = read();
    for _ in 1..READS {
        let again = read();
        if again.took < best.took {
            best = again;
        }
    }
    best
}

/// Reads a clock, and the instant at which it was read. A thread that loses its CPU between two
/// reads would take clocks to differ by the milliseconds until it has one again, so the other clock
/// is read between two instants, several times, and the shortest reading counts.
pub fn read_together<T>(mut clock: impl FnMut() -> T) -> (Instant, T) {
    let Reading { took, before, shown } = shortest(&mut clock);
    (before + took / 2, shown)
}

/// Readings of which the shortest counts; a reading takes less than a microsecond.
const READS: usize = 8;

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::thread;

    use super::*;

    #[test]
    fn a_reading_that_was_interrupted_does_not_count() {
        let pause = Duration::from_millis(20);
        let reads = Cell::new(0);
        let began = Instant::now();
        let (at, since) = read_together(|| {
            let since = began.elapsed();
            reads.set(reads.get() + 1);
            if reads.get() % 2 == 1 {
                thread::sleep(pause);
            }
            since
        });
        assert!(at.duration_since(began).abs_diff(since) < pause / 2);
    }

    /// A thread that lost its CPU in every reading: what was shown may belong to any moment of it.
    #[test]
    fn a_clock_is_never_taken_to_have_been_earlier_than_it_was() {
        let pause = Duration::from_millis(2);
        for sleeps_first in [false, true] {
            let began = Instant::now();
            let reading = shortest(&mut || {
                if sleeps_first {
                    thread::sleep(pause);
                }
                let shown = began.elapsed().as_nanos() as u64;
                if !sleeps_first {
                    thread::sleep(pause);
                }
                shown
            });
            let latest = latest_at(began + Duration::from_secs(1), reading);
            assert!(latest >= 1_000_000_000, "{latest} {sleeps_first}");
        }
    }

    #[test]
    fn instants_are_as_far_apart_as_their_moments() {
        let now = Instant::now();
        let hour = Duration::from_secs(3600);
        let [before, at, after] =
            [now.checked_sub(Duration::from_secs(1)).unwrap(), now, now + hour]
                .map(monotonic_ns_at);
        assert!(before < at && after - at > 3_500_000_000_000, "{before} {at} {after}");
    }
}
