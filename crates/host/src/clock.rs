//! Knowledge of a host's clock: its offset from this machine's, its drift, and the error of both.
//! Pure.
//!
//! A ping leaves here at `sent`, meets the other clock at `there`, and its answer is here at
//! `received`. At some moment between `sent` and `received` the other clock showed `there`, so its
//! offset then lay between `there − received` and `there − sent` (Cristian, "Probabilistic clock
//! synchronization", Distributed Computing 3, 1989). The middle is off by half of the round trip at
//! most, whatever the two ways took. Of many round trips the shortest bounds it best; over time the
//! shortest of each second give the drift, by least squares weighted with their bounds.

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
    /// The best ping of each second, oldest first.
    best: VecDeque<Ping>,
    pings: u64,
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
        let second = |ping: &Ping| ping.received / 1_000_000_000;
        match self.best.back_mut() {
            Some(last) if second(last) == second(&ping) => {
                if ping.bound() < last.bound() {
                    *last = ping;
                }
            }
            _ => self.best.push_back(ping),
        }
        if self.best.len() > SECONDS_KEPT {
            self.best.pop_front();
        }
    }

    /// Round trips so far.
    pub fn pings(&self) -> u64 {
        self.pings
    }

    /// The shortest round trip of those kept, in nanoseconds.
    pub fn round_trip_ns(&self) -> Option<u64> {
        self.best.iter().map(|ping| ping.received.saturating_sub(ping.sent)).min()
    }

    /// The best line through what is known, at the last ping; none before the first.
    pub fn course(&self) -> Option<ClockModel> {
        let last = self.best.back()?;
        let at_ns = last.at();
        let first = self.best.front()?;
        // Around the last ping, so that the numbers are small.
        let point = |ping: &Ping| {
            let x = ping.at() as f64 - at_ns as f64;
            let y = (ping.offset() - last.offset()) as f64;
            (x, y, 1.0 / (ping.bound().max(1) as f64).powi(2))
        };
        let points = self.best.iter().map(point);
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
            let best = self.best.iter().min_by_key(|ping| ping.bound())?;
            return Some(ClockModel { at_ns, offset_ns: clamp(best.offset()), drift_ppb: 0.0 });
        }
        let at_last = y_mean - drift_ppb * 1e-9 * x_mean;
        Some(ClockModel { at_ns, offset_ns: clamp(last.offset() + at_last as i128), drift_ppb })
    }

    /// Bound on the error of `course` between two moments of this machine's clock, in nanoseconds.
    /// At each moment the ping with the narrowest bound counts: its distance from the course, its
    /// own bound, and what the clocks may have drifted apart since, beyond the course. None before
    /// the first ping.
    pub fn bound_ns(&self, course: &ClockModel, from_ns: u64, to_ns: u64) -> Option<u64> {
        let bounds: Vec<(u64, u64)> =
            self.best.iter().map(|ping| (ping.at(), bound_by(course, ping))).collect();
        let at = |moment: u64| {
            let drifted = |at: u64| (at.abs_diff(moment) as f64 * UNKNOWN_DRIFT) as u64;
            bounds.iter().map(|(at, bound)| bound.saturating_add(drifted(*at))).min()
        };
        // It is largest at an end, or farthest from every ping: a step of a second adds little.
        let (first, last) = (self.best.front()?.at(), self.best.back()?.at());
        let (from_ns, to_ns) = (from_ns.max(first), to_ns.min(last).max(from_ns.max(first)));
        let steps = (0..).map(|step| from_ns.saturating_add(step * 1_000_000_000));
        steps.take_while(|moment| *moment < to_ns).chain([to_ns]).filter_map(at).max()
    }
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
        clock.add(Ping { sent: 10 * S + MS, there: 16 * S, received: 10 * S + 800 * MS });
        let course = clock.course().unwrap();
        assert_eq!(course.offset_ns, (5 * S - 50_000) as i64);
        assert_eq!(clock.bound_ns(&course, 0, u64::MAX), Some(50_000));
        assert_eq!((clock.pings(), clock.round_trip_ns()), (2, Some(100_000)));
        assert_eq!(Clock::default().bound_ns(&course, 20 * S, 30 * S), None);
    }

    #[test]
    fn a_wrong_course_is_bounded_by_what_the_pings_say() {
        let ping = Ping { sent: 10 * S, there: 15 * S, received: 10 * S + 100_000 };
        let course =
            ClockModel { at_ns: 10 * S, offset_ns: (5 * S + 7 * MS) as i64, drift_ppb: 0.0 };
        assert_eq!(bound_by(&course, &ping), 7 * MS + 50_000 + 50_000);
    }
}
