//! Knowledge of a host's clock: its offset from this machine's, its drift, and the error of both.
//! Pure.
//!
//! A ping leaves here at `sent`, meets the other clock at `there`, and its answer is here at
//! `received`. At some moment between `sent` and `received` the other clock showed `there`, so its
//! offset then lay between `there − received` and `there − sent` (Cristian, "Probabilistic clock
//! synchronization", Distributed Computing 3, 1989). The middle is off by half of the round trip at
//! most, whatever the two ways took. Of many round trips the shortest bounds it best; over time the
//! shortest of each second give the drift, by least squares weighted with their bounds.
//!
//! Two pings that exclude each other, whatever clocks may drift, show that the other clock has jumped between them, as
//! that of a virtual machine does that was suspended. Between the two, each of both truths may be the one; before and
//! after, only the pings of the same side say something.

use std::collections::VecDeque;

/// One round trip; every time in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ping {
    /// This machine's monotonic clock when the ping left.
    pub sent: u64,
    /// The other clock when it arrived.
    pub there: u64,
    /// This machine's clock when the answer was here.
    pub received: u64,
}

impl Ping {
    fn offset(&self) -> i128 {
        i128::from(self.there) - i128::from(self.at())
    }

    fn at(&self) -> u64 {
        self.sent / 2 + self.received / 2
    }

    fn bound(&self) -> u64 {
        self.received.saturating_sub(self.sent).div_ceil(2)
    }

    /// True if no clock that goes on steadily can have given both answers.
    fn excludes(&self, other: &Ping) -> bool {
        let apart_ns = (self.offset() - other.offset()).unsigned_abs();
        let drifted_ns = self.at().abs_diff(other.at()) as f64 * DRIFT_MAX_PPB * 1e-9;
        apart_ns > u128::from(self.bound()) + u128::from(other.bound()) + drifted_ns as u128
    }
}

/// A bound beyond which moments on several hosts no longer count as one.
pub const BOUND_MAX_NS: u64 = 5_000_000;

/// A line through the offsets: the other clock is `at_ns + offset_ns` when this one is `at_ns`, and
/// gains `drift_ppb` nanoseconds each second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClockModel {
    /// This machine's clock.
    pub at_ns: u64,
    /// The other clock less this one, then.
    pub offset_ns: i64,
    /// Parts in 10⁹.
    pub drift_ppb: f64,
}

impl ClockModel {
    /// The offset at another moment of this machine's clock.
    pub fn offset_at(&self, at_ns: u64) -> i64 {
        let since = at_ns as f64 - self.at_ns as f64;
        self.offset_ns + (since * self.drift_ppb * 1e-9) as i64
    }
}

/// Estimate of a clock.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    /// The best ping of each second and steady part of the clock, oldest first.
    best: VecDeque<Kept>,
    pings: u64,
    /// The jumps so far.
    jumps: u64,
}

/// A ping that is kept.
#[derive(Clone, Copy, Debug)]
struct Kept {
    ping: Ping,
    /// The jumps of the clock before it.
    after_jumps: u64,
}

/// Seconds over which the drift is estimated. A clock that a time service disciplines changes its
/// rate slowly.
const SECONDS_KEPT: usize = 64;
/// A drift is estimated from pings over this long at least: before that the bounds say less about
/// the drift than the assumption that there is none.
const DRIFT_AFTER_NS: u64 = 2_000_000_000;
/// No quartz and no time service goes beyond (adjtimex(2) allows 500 parts in 10⁶).
const DRIFT_MAX_PPB: f64 = 1_000_000.0;

impl Clock {
    /// Takes a round trip into account.
    pub fn add(&mut self, ping: Ping) {
        self.pings += 1;
        if self.steady().any(|known| known.excludes(&ping)) {
            self.jumps += 1;
        }
        let second = |ping: &Ping| ping.received / 1_000_000_000;
        let kept = Kept { ping, after_jumps: self.jumps };
        match self.best.back_mut() {
            Some(last) if last.after_jumps == self.jumps && second(&last.ping) == second(&ping) => {
                if ping.bound() < last.ping.bound() {
                    *last = kept;
                }
            }
            _ => self.best.push_back(kept),
        }
        if self.best.len() > SECONDS_KEPT {
            self.best.pop_front();
        }
    }

    /// The pings since the last jump, oldest first.
    fn steady(&self) -> impl Iterator<Item = &Ping> + Clone {
        let jumps = self.jumps;
        let is_steady = move |kept: &&Kept| kept.after_jumps == jumps;
        self.best.iter().filter(is_steady).map(|kept| &kept.ping)
    }

    /// How often it was seen to jump.
    pub fn jumps(&self) -> u64 {
        self.jumps
    }

    /// Round trips so far.
    pub fn pings(&self) -> u64 {
        self.pings
    }

    /// The shortest round trip of those kept, in nanoseconds.
    pub fn round_trip_ns(&self) -> Option<u64> {
        self.best.iter().map(|kept| kept.ping.received.saturating_sub(kept.ping.sent)).min()
    }

    /// The best line through what is known since the last jump, at the last ping; none before the first.
    pub fn course(&self) -> Option<ClockModel> {
        let (first, last) = (self.steady().next()?, self.steady().last()?);
        let at_ns = last.at();
        // Around the last ping, so that the numbers are small.
        let point = |ping: &Ping| {
            let x = ping.at() as f64 - at_ns as f64;
            let y = (ping.offset() - last.offset()) as f64;
            (x, y, 1.0 / (ping.bound().max(1) as f64).powi(2))
        };
        let points = self.steady().map(point);
        let sum = |f: &dyn Fn((f64, f64, f64)) -> f64| points.clone().map(f).sum::<f64>();
        let weight = sum(&|(_, _, w)| w);
        let (x_mean, y_mean) = (sum(&|(x, _, w)| w * x) / weight, sum(&|(_, y, w)| w * y) / weight);
        let spread = sum(&|(x, _, w)| w * (x - x_mean).powi(2));
        let together = sum(&|(x, y, w)| w * (x - x_mean) * (y - y_mean));
        let knows_drift = at_ns.saturating_sub(first.at()) >= DRIFT_AFTER_NS && spread > 0.0;
        let slope = if knows_drift { together / spread } else { 0.0 };
        let drift_ppb = (slope * 1e9).clamp(-DRIFT_MAX_PPB, DRIFT_MAX_PPB);
        if !knows_drift {
            // The shortest of all, as if there were no drift.
            let best = self.steady().min_by_key(|ping| ping.bound())?;
            return Some(ClockModel { at_ns, offset_ns: clamp(best.offset()), drift_ppb: 0.0 });
        }
        let at_last = y_mean - drift_ppb * 1e-9 * x_mean;
        Some(ClockModel { at_ns, offset_ns: clamp(last.offset() + at_last as i128), drift_ppb })
    }

    /// Bound on the error of `course` between two moments of this machine's clock, in nanoseconds.
    /// At each moment the ping with the narrowest bound counts, of those on the same side of each jump: its distance from
    /// the course, its own bound, and what the clocks may have drifted apart since, beyond the course. Where a jump may
    /// lie before the moment or after it, the wider one of both sides counts. None before the first ping.
    pub fn bound_ns(&self, course: &ClockModel, from_ns: u64, to_ns: u64) -> Option<u64> {
        let (first, last) = (self.best.front()?.ping.at(), self.best.back()?.ping.at());
        let (from_ns, to_ns) = (from_ns.max(first), to_ns.min(last).max(from_ns.max(first)));
        // A step of a second adds little to what is largest at an end, or farthest from every ping.
        let step = |from: u64, to: u64| {
            let steps = (0..).map(move |step| from.saturating_add(step * 1_000_000_000));
            steps.take_while(move |moment| *moment < to).chain([to])
        };
        let parts = self.parts().into_iter().filter_map(|part| {
            let (from, to) = (part.from_ns.max(from_ns), part.to_ns.min(to_ns));
            (from <= to).then_some((part.after_jumps, from, to))
        });
        let bounds = parts.filter_map(|(after_jumps, from, to)| {
            let own = self.best.iter().filter(|kept| kept.after_jumps == after_jumps);
            let own: Vec<(u64, u64)> =
                own.map(|kept| (kept.ping.at(), bound_by(course, &kept.ping))).collect();
            let at = |moment: u64| {
                let drifted = |at: u64| (at.abs_diff(moment) as f64 * UNKNOWN_DRIFT) as u64;
                own.iter().map(|(at, bound)| bound.saturating_add(drifted(*at))).min()
            };
            step(from, to).filter_map(at).max()
        });
        bounds.max()
    }

    /// The steady parts of the clock. Around a jump two of them overlap: it lies between the last ping that excludes one
    /// after it, and the first that one before it excludes.
    fn parts(&self) -> Vec<SteadyPart> {
        let mut parts: Vec<SteadyPart> = Vec::new();
        for kept in &self.best {
            if parts.last().is_some_and(|last| last.after_jumps == kept.after_jumps) {
                continue;
            }
            // The first ping after a jump excludes one before it.
            let excluded = self.best.iter().rfind(|one| {
                one.after_jumps + 1 == kept.after_jumps && one.ping.excludes(&kept.ping)
            });
            if let Some(last) = parts.last_mut() {
                last.to_ns = kept.ping.received;
            }
            // What lies before the jump may be older than what is kept.
            let from_ns = excluded.map_or(0, |one| one.ping.sent);
            parts.push(SteadyPart { after_jumps: kept.after_jumps, from_ns, to_ns: u64::MAX });
        }
        parts
    }
}

/// A part of a clock without a jump, on this machine's clock.
struct SteadyPart {
    after_jumps: u64,
    from_ns: u64,
    to_ns: u64,
}

/// Drift of two clocks from each other beyond a measured course: a quartz in each, ± 100 parts in
/// 10⁶.
pub const UNKNOWN_DRIFT: f64 = 200e-6;

/// Bound on the error of a course by one ping, when it was sent.
fn bound_by(course: &ClockModel, ping: &Ping) -> u64 {
    let distance = ping.offset() - i128::from(course.offset_at(ping.at()));
    u64::try_from(distance.unsigned_abs()).unwrap_or(u64::MAX).saturating_add(ping.bound())
}

fn clamp(offset: i128) -> i64 {
    i64::try_from(offset).unwrap_or(if offset < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const S: u64 = 1_000 * MS;

    /// A clock whose truth is known, asked over a way that takes a random time each way.
    struct World {
        offset_ns: i64,
        drift_ppb: f64,
        random: u64,
    }

    impl World {
        fn there(&self, here: u64) -> u64 {
            let drifted = here as f64 * self.drift_ppb * 1e-9;
            (i128::from(here) + i128::from(self.offset_ns) + drifted as i128) as u64
        }

        /// From `least` on, mostly little more, sometimes much.
        fn way(&mut self, least: u64) -> u64 {
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let uniform = (self.random >> 11) as f64 / (1_u64 << 53) as f64;
            least + (-(1.0 - uniform).ln() * 200_000.0) as u64
        }

        fn ping(&mut self, sent: u64, out_ns: u64, back_ns: u64) -> Ping {
            let arrives = sent + self.way(out_ns);
            let there = self.there(arrives);
            Ping { sent, there, received: arrives + self.way(back_ns) }
        }
    }

    #[test]
    fn offset_and_drift_are_found_whatever_they_are_and_the_bound_holds() {
        let check = |hours: i64, drift_ppm: f64, out_us: u64, back_us: u64| {
            let drift_ppb = drift_ppm * 1e3;
            let mut world = World { offset_ns: hours * 3_600 * S as i64, drift_ppb, random: 7 };
            let mut clock = Clock::default();
            let start = 100_000 * S;
            for i in 0..300 {
                clock.add(world.ping(start + i * 100 * MS, out_us * 1_000, back_us * 1_000));
            }
            let end = start + 30 * S;
            let course = clock.course().unwrap();
            let bound = clock.bound_ns(&course, start, end).unwrap();
            let what = format!("{hours} h, {drift_ppm} ppm, {out_us} and {back_us} µs");
            for at in [start + S, end - S, end] {
                let truth = world.there(at) as i128 - i128::from(at);
                let error = (i128::from(course.offset_at(at)) - truth).unsigned_abs() as u64;
                assert!(error <= bound, "{what}: off by {error} ns, bound {bound} ns");
            }
            assert!((course.drift_ppb - drift_ppb).abs() < 5_000.0, "{what}: {course:?}");
            assert!(bound < 5 * MS, "{what}: {bound} ns");
            // A minute later, without another message.
            let later = end + 60 * S;
            let truth = world.there(later) as i128 - i128::from(later);
            let error = (i128::from(course.offset_at(later)) - truth).unsigned_abs() as u64;
            assert!(error < 5 * MS, "{what}: off by {error} ns after a minute");
        };
        check(0, 0.0, 50, 50);
        check(5, 100.0, 50, 50);
        check(-11, -100.0, 50, 50);
        check(3, 500.0, 200, 200);
        // Another way back than out cannot be seen, but is bounded.
        check(7, 100.0, 50, 3_000);
    }

    #[test]
    fn a_ping_that_took_long_says_little() {
        let mut clock = Clock::default();
        clock.add(Ping { sent: 10 * S, there: 15 * S, received: 10 * S + 100_000 });
        clock.add(Ping {
            sent: 10 * S + MS,
            there: 15 * S + 300 * MS,
            received: 10 * S + 800 * MS,
        });
        let course = clock.course().unwrap();
        assert_eq!(course.offset_ns, (5 * S - 50_000) as i64);
        assert_eq!(clock.bound_ns(&course, 0, u64::MAX), Some(50_000));
        assert_eq!((clock.pings(), clock.round_trip_ns()), (2, Some(100_000)));
        assert_eq!(Clock::default().bound_ns(&course, 20 * S, 30 * S), None);
    }

    /// Pings each 200 ms for 20 s, of which the other clock stands still for so many milliseconds after 10 s.
    fn suspended(pings: std::ops::Range<u64>, missing_ms: u64, trip_us: u64) -> Clock {
        let mut clock = Clock::default();
        for number in pings {
            let sent = 1_000 * S + number * 200 * MS;
            let behind = if number < 50 { 0 } else { missing_ms * MS };
            let there = sent + trip_us * 500 + 7 * S - behind;
            clock.add(Ping { sent, there, received: sent + trip_us * 1_000 });
        }
        clock
    }

    #[test]
    fn a_clock_that_has_jumped_is_known_on_both_sides_and_not_between() {
        let check = |missing_ms: u64, trip_us: u64, jumps: u64| {
            let what = format!("{missing_ms} ms, {trip_us} µs");
            let clock = suspended(0..100, missing_ms, trip_us);
            assert_eq!(clock.jumps(), jumps, "{what}");
            let course = clock.course().unwrap();
            let bound = |from_ms: u64, to_ms: u64| {
                let at = |ms: u64| 1_000 * S + ms * MS;
                clock.bound_ns(&course, at(from_ms), at(to_ms)).unwrap()
            };
            let expected = if jumps > 0 { missing_ms * MS } else { 0 };
            // The course is that since the jump: what was before it is off by the whole of it.
            for (from, to) in [(0, 20_000), (0, 5_000), (9_850, 9_900), (9_850, 11_000)] {
                assert!(bound(from, to) >= expected, "{what}: {from} to {to}: {}", bound(from, to));
            }
            let most = 2 * MS + trip_us * 1_000;
            assert!(bound(10_300, 20_000) < most, "{what}: {}", bound(10_300, 20_000));
            let truth = 7_000_000_000 - (missing_ms * MS) as i64;
            let error = course.offset_at(1_019 * S).abs_diff(truth);
            assert!(jumps == 0 || error < MS, "{what}: off by {error} ns");
        };
        check(0, 300, 0);
        check(5_000, 300, 1);
        check(30, 300, 1);
        // What is told from afar leaves such a jump open, and bounds it.
        check(20, 60_000, 0);
        check(20, 300, 1);
    }

    /// The rig follows a course that it has told before the jump, until the next ping shows it.
    #[test]
    fn the_course_from_before_a_jump_is_not_bounded_by_it_any_more() {
        let before = suspended(0..50, 5_000, 300);
        let course = before.course().unwrap();
        let at = |ms: u64| 1_000 * S + ms * MS;
        assert!(before.bound_ns(&course, at(5_000), at(10_000)).unwrap() < MS);
        let after = suspended(0..51, 5_000, 300);
        assert!(after.bound_ns(&course, at(9_900), at(10_000)).unwrap() >= 5_000 * MS);
        assert!(after.bound_ns(&course, at(5_000), at(8_900)).unwrap() < MS);
    }

    #[test]
    fn a_wrong_course_is_bounded_by_what_the_pings_say() {
        let ping = Ping { sent: 10 * S, there: 15 * S, received: 10 * S + 100_000 };
        let course =
            ClockModel { at_ns: 10 * S, offset_ns: (5 * S + 7 * MS) as i64, drift_ppb: 0.0 };
        assert_eq!(bound_by(&course, &ping), 7 * MS + 50_000 + 50_000);
    }
}
