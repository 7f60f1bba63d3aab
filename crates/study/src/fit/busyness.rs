//! How busy the machine is with other things, felt as its processes feel it: by threads that want to compute.

use std::time::{Duration, Instant};

/// How many times as long the same work takes now as on the idle machine, at least 1. Takes [`LOOK`].
pub(crate) fn slowdown() -> f64 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let shares: Vec<f64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(|| share(moments(LOOK)))).collect();
        // A thread that could not be waited for has seen nothing that slows work down.
        threads.into_iter().map(|thread| thread.join().unwrap_or(1.0)).collect()
    });
    let share = shares.iter().sum::<f64>() / shares.len() as f64;
    of_share(share)
}

/// The slowdown where a thread that never waits gets this share of a processor. Work that waits often for other
/// processes and the disk goes before threads that never do, so that it is slowed down less.
fn of_share(share: f64) -> f64 {
    (1.0 / share).max(1.0).powf(WAITS)
}

/// As measured on two processors that 25 to 30 processes wanted: with a share of 1/22 the smoke of `replication`
/// took 8.4 times as long beside its loads as on the idle machine, and with 1/25 that of `pgbench` 5.8 times.
const WAITS: f64 = 0.62;

/// Longer than the slices of time in which a scheduler lets processes take turns.
const LOOK: Duration = Duration::from_millis(300);

/// Reading the clock again and again takes far less; a longer step was somebody else's turn.
const STEP: Duration = Duration::from_micros(100);

/// Steps of a clock that is read without a pause for so long.
fn moments(look: Duration) -> impl Iterator<Item = Duration> {
    let began = Instant::now();
    let mut last = began;
    std::iter::from_fn(move || {
        let now = Instant::now();
        let step = now - last;
        // The last step counts as well, however long it was.
        let goes_on = last - began < look;
        last = now;
        goes_on.then_some(step)
    })
}

/// The share of the time in which whoever made these steps was on a processor; more than 0.
fn share(steps: impl Iterator<Item = Duration>) -> f64 {
    let (mut own, mut all) = (Duration::ZERO, Duration::ZERO);
    for step in steps {
        all += step;
        own += step.min(STEP);
    }
    if all.is_zero() { 1.0 } else { own.as_secs_f64() / all.as_secs_f64() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_what_the_turns_of_others_leave() {
        let check = |steps_us: &[u64], expected: f64| {
            let seen = share(steps_us.iter().map(|us| Duration::from_micros(*us)));
            assert!((seen - expected).abs() < 1e-9, "{steps_us:?}: {seen}");
        };
        check(&[], 1.0);
        check(&[10, 20, 30], 1.0);
        // One turn of 900 µs, of which 100 may have been the reader's own.
        check(&[50, 50, 900], 0.2);
        check(&[4_000], 0.025);
    }

    #[test]
    fn a_smaller_share_slows_down_less_than_in_proportion() {
        let check = |share: f64, least: f64, most: f64| {
            let seen = of_share(share);
            assert!((least..=most).contains(&seen), "{share}: {seen}");
        };
        check(1.0, 1.0, 1.0);
        check(0.25, 2.2, 2.4);
        // Measured: 5.8 and 8.4 times, each within 30 %.
        check(1.0 / 25.0, 5.8 / 1.3, 5.8 * 1.3);
        check(1.0 / 22.0, 8.4 / 1.3, 8.4 * 1.3);
    }

    #[test]
    fn no_machine_is_faster_than_idle() {
        assert!(slowdown() >= 1.0);
    }
}
