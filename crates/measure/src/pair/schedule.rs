//! The time of a contest: how long a segment is, and how many of them there are.

use std::time::Duration;

use stats::sequence::OBSERVATIONS_MIN;

use crate::pair::contest::{WARM_MS, pilots_s};
use crate::pair::design::CYCLE;

/// From one restart to the next, restart and warm-up left out. With instances that differ by 1.5 %,
/// octets of 1.8 s by 7.5 % and restarts of 4 s, this gives the narrowest intervals
/// (crates/stats/tests/instances.rs says how often they cover).
const SEGMENT_S: f64 = 15.0;

/// Segments that a contest has time for if it is short: a segment has an octet at least.
const SEGMENTS: f64 = 40.0;

/// Segments, pilots among them, with which sides can be told equal at the usual threshold where there is time for it: fewer
/// restarts do not exclude that some are slower.
const SEGMENTS_EQUAL: f64 = 33.0;

/// Segments below which none is made longer for what comes before it.
const SEGMENTS_LEAST: f64 = 10.0;

/// Length of a segment in a contest of `max_s`, where `between_s` passes before each: tidying, a restart,
/// warming up. It is at least as long as that, so that half of the time is measured, unless there are then
/// too few segments; and it is never shorter than an octet.
pub(crate) fn segment_s(max_s: f64, octet_s: f64, between_s: f64) -> f64 {
    let mut asked = SEGMENT_S.min(max_s / SEGMENTS);
    if max_s >= SEGMENT_S * SEGMENTS {
        asked = asked.min(max_s / SEGMENTS_EQUAL - between_s);
    }
    let asked = asked.max(between_s);
    asked.min(max_s / SEGMENTS_LEAST - between_s).max(octet_s)
}

/// The time that a contest of at most `max_time` takes until its ratio has an interval, in seconds, where
/// blocks have this length and `before_s` passes before each segment, warming up left out.
pub fn interval_s(max_time: Duration, block_ms: Option<u64>, before_s: f64) -> f64 {
    let octet_s = CYCLE as f64 * block_ms.unwrap_or(BLOCK_MS) as f64 / 1e3;
    let between_s = before_s + WARM_MS as f64 / 1e3;
    let segment_s = segment_s(max_time.as_secs_f64(), octet_s, between_s);
    pilots_s(max_time, block_ms) + OBSERVATIONS_MIN as f64 * (between_s + segment_s)
}

/// A length of blocks that pilots often find.
const BLOCK_MS: u64 = 350;

/// Number of segments that fit into `left_s`, where `between_s` passes before each but the first.
pub(crate) fn segments(left_s: f64, segment_s: f64, between_s: f64) -> usize {
    ((left_s + between_s) / (segment_s + between_s)).floor().max(0.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_as_long_as_what_comes_before_it() {
        let check = |max_s: f64, octet_s: f64, between_s: f64, expected: f64| {
            let seen = segment_s(max_s, octet_s, between_s);
            assert!((seen - expected).abs() < 1e-9, "{max_s} {octet_s} {between_s}: {seen}");
        };
        // A quick restart takes nothing from what was chosen.
        check(600.0, 1.8, 3.0, 15.0);
        // Enough restarts fit to tell that sides are equal.
        check(600.0, 1.8, 5.0, 600.0 / 33.0 - 5.0);
        check(600.0, 1.8, 12.0, 12.0);
        check(100.0, 1.8, 1.0, 2.5);
        check(1800.0, 1.8, 20.0, 20.0);
        // Ten segments fit, even if more time passes before them than in them.
        check(100.0, 1.8, 7.0, 3.0);
        // One octet is the least.
        check(100.0, 1.8, 9.5, 1.8);
        check(50.0, 4.5, 100.0, 4.5);
    }

    #[test]
    fn segments_fit_with_what_comes_between() {
        let check = |left_s: f64, expected: usize| assert_eq!(segments(left_s, 3.0, 7.0), expected);
        check(2.9, 0);
        check(3.0, 1);
        check(12.9, 1);
        check(13.0, 2);
        check(93.0, 10);
    }
}
