//! The clock of a lane: nanoseconds since the run began.
//!
//! On the machine of the conductor that is the time since a common origin. A lane on another host
//! has another clock, with an offset and a drift: it follows a [`ClockModel`] that the conductor has
//! measured, so that every moment that it notes or waits for is the conductor's. While the load
//! runs a new course is approached over [`BEND_NS`] and never jumped to, so that no latency is
//! measured across a jump.

use std::{
    cell::Cell,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use serde::{Deserialize, Serialize};

/// Relation of a host's clock to the conductor's: when the host's monotonic clock shows `there_ns`,
/// it is `moment_ns`, and its second lasts 1 + `rate_ppb` / 10⁹ of the conductor's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClockModel {
    pub(crate) there_ns: u64,
    pub(crate) moment_ns: i64,
    pub(crate) rate_ppb: f64,
}

impl ClockModel {
    fn moment(&self, there_ns: u64) -> i64 {
        let since = (there_ns as i64).wrapping_sub(self.there_ns as i64);
        self.moment_ns + since + (since as f64 * self.rate_ppb * 1e-9) as i64
    }
}

/// Time in which a clock changes to a new course: the difference is microseconds, so no clock runs
/// faster or slower than real ones do.
const BEND_NS: u64 = 1_000_000_000;

/// The way from one course to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Way {
    /// Until its end, along this.
    bend: ClockModel,
    end_ns: u64,
    /// After it, along this.
    course: ClockModel,
}

impl Way {
    fn moment(&self, there_ns: u64) -> i64 {
        if there_ns < self.end_ns {
            self.bend.moment(there_ns)
        } else {
            self.course.moment(there_ns)
        }
    }

    fn straight(course: ClockModel) -> Way {
        Way { bend: course, end_ns: 0, course }
    }

    /// From where the clock is at `now_ns` to `course`.
    fn bent(&self, course: ClockModel, now_ns: u64) -> Way {
        let from = self.moment(now_ns);
        let end_ns = now_ns + BEND_NS;
        let gained = course.moment(end_ns) - from - BEND_NS as i64;
        let rate_ppb = gained as f64 / BEND_NS as f64 * 1e9;
        Way { bend: ClockModel { there_ns: now_ns, moment_ns: from, rate_ppb }, end_ns, course }
    }
}

/// The course that all lanes of a process follow.
#[derive(Debug)]
pub(crate) struct Followed {
    version: AtomicU64,
    way: Mutex<Way>,
    bound: Mutex<Bound>,
}

/// The largest distance of moments from the conductor's, as the conductor told it.
#[derive(Clone, Copy, Debug)]
struct Bound {
    ns: u64,
    /// What the host's clock showed when it was told.
    at_there_ns: u64,
}

impl Bound {
    /// The bound when the host's clock shows `there_ns`: since it was told, the clocks may have drifted apart.
    fn at(self, there_ns: u64) -> u64 {
        let since = there_ns.saturating_sub(self.at_there_ns) as f64;
        self.ns.saturating_add((since * host::clock::UNKNOWN_DRIFT) as u64)
    }
}

impl Followed {
    pub(crate) fn new(course: ClockModel) -> Self {
        Followed {
            version: AtomicU64::new(0),
            way: Mutex::new(Way::straight(course)),
            // Nothing is known until it is told.
            bound: Mutex::new(Bound { ns: u64::MAX, at_there_ns: course.there_ns }),
        }
    }

    /// Follows another course from now on; `jump` at once, while nothing is measured yet.
    pub(crate) fn follow(&self, course: ClockModel, jump: bool, now_ns: u64) {
        let mut way = self.way.lock().unwrap_or_else(PoisonError::into_inner);
        *way = if jump { Way::straight(course) } else { way.bent(course, now_ns) };
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Moments are within so many nanoseconds of the conductor's from now on.
    pub(crate) fn is_within(&self, ns: u64, at_there_ns: u64) {
        *self.bound.lock().unwrap_or_else(PoisonError::into_inner) = Bound { ns, at_there_ns };
    }

    fn way(&self) -> Way {
        *self.way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Clock that a process's lanes have in common.
#[derive(Clone, Debug)]
pub(crate) enum Time {
    /// The conductor's own machine.
    Here(Instant),
    /// Another host: what its monotonic clock showed at a moment of this process's, and the course.
    There { zero: Instant, zero_ns: u64, followed: Arc<Followed> },
}

impl Time {
    /// A clock for one lane.
    pub(crate) fn clock(&self) -> Clock {
        match self {
            Time::Here(origin) => Clock { origin: *origin, there: None },
            Time::There { zero, zero_ns, followed } => {
                let version = followed.version.load(Ordering::Acquire);
                let there = There {
                    zero_ns: *zero_ns,
                    followed: Arc::clone(followed),
                    version: Cell::new(version),
                    way: Cell::new(followed.way()),
                    last: Cell::new(0),
                };
                Clock { origin: *zero, there: Some(there) }
            }
        }
    }
}

/// One lane's clock. It never goes back.
#[derive(Debug)]
pub(crate) struct Clock {
    origin: Instant,
    there: Option<There>,
}

#[derive(Debug)]
struct There {
    zero_ns: u64,
    followed: Arc<Followed>,
    version: Cell<u64>,
    way: Cell<Way>,
    last: Cell<u64>,
}

impl Clock {
    /// Largest distance of its moments from the conductor's, in nanoseconds.
    pub(crate) fn bound_ns(&self) -> u64 {
        match &self.there {
            None => 0,
            Some(there) => {
                let bound = *there.followed.bound.lock().unwrap_or_else(PoisonError::into_inner);
                bound.at(there.zero_ns + self.origin.elapsed().as_nanos() as u64)
            }
        }
    }

    /// Nanoseconds since the run began.
    pub(crate) fn now(&self) -> u64 {
        let elapsed = self.origin.elapsed().as_nanos() as u64;
        match &self.there {
            None => elapsed,
            Some(there) => there.moment(elapsed),
        }
    }
}

impl There {
    fn moment(&self, elapsed: u64) -> u64 {
        let version = self.followed.version.load(Ordering::Acquire);
        if version != self.version.get() {
            self.version.set(version);
            self.way.set(self.followed.way());
        }
        let moment = self.way.get().moment(self.zero_ns + elapsed).max(0) as u64;
        let moment = moment.max(self.last.get());
        self.last.set(moment);
        moment
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// What is said of the clocks of hosts before a run holds for its histories.
    #[test]
    fn hosts_and_histories_have_one_bound() {
        assert_eq!(host::clock::BOUND_MAX_NS, history::CLOCK_BOUND_MAX_NS);
    }

    #[test]
    fn a_course_maps_a_clock_that_is_hours_off_and_drifts() {
        let course =
            ClockModel { there_ns: 20_000 * S, moment_ns: 5 * S as i64, rate_ppb: -100_000.0 };
        assert_eq!(course.moment(20_000 * S), 5 * S as i64);
        assert_eq!(course.moment(20_100 * S), 105 * S as i64 - 10_000_000);
        assert_eq!(course.moment(19_999 * S), 4 * S as i64 + 100_000);
    }

    #[test]
    fn another_course_is_approached_without_a_jump() {
        let first = ClockModel { there_ns: 0, moment_ns: 0, rate_ppb: 0.0 };
        let second = ClockModel { there_ns: 0, moment_ns: 400_000, rate_ppb: 50_000.0 };
        let way = Way::straight(first).bent(second, 10 * S);
        assert_eq!(way.moment(10 * S), 10 * S as i64, "where it was");
        let at_end = way.moment(11 * S);
        assert!((at_end - second.moment(11 * S)).abs() < 2, "{at_end}");
        assert_eq!(way.moment(20 * S), second.moment(20 * S));
        let mut last = 0;
        for step in 0..30 {
            let moment = way.moment(10 * S + step * S / 10);
            let gained = moment - last - if step == 0 { last } else { S as i64 / 10 };
            assert!(step == 0 || gained.abs() < 200_000, "{gained} ns at step {step}");
            last = moment;
        }
    }

    #[test]
    fn a_bound_grows_until_it_is_told_again() {
        let course = ClockModel { there_ns: 100 * S, moment_ns: 7 * S as i64, rate_ppb: 0.0 };
        let followed = Arc::new(Followed::new(course));
        let zero_ns = 100 * S;
        let time = Time::There { zero: Instant::now(), zero_ns, followed: Arc::clone(&followed) };
        let clock = time.clock();
        assert_eq!(clock.bound_ns(), u64::MAX, "nothing is known");
        followed.is_within(300_000, 100 * S);
        assert!((300_000..1_300_000).contains(&clock.bound_ns()), "{}", clock.bound_ns());
        let check = |since_s: u64, expected_ns: u64| {
            let bound = Bound { ns: 300_000, at_there_ns: 50 * S };
            assert_eq!(bound.at((50 + since_s) * S), expected_ns, "after {since_s} s");
        };
        check(0, 300_000);
        check(1, 500_000);
        check(10, 2_300_000);
        assert_eq!(Time::Here(Instant::now()).clock().bound_ns(), 0);
    }

    #[test]
    fn lanes_see_a_new_course_and_never_go_back() {
        let course = ClockModel { there_ns: 100 * S, moment_ns: 7 * S as i64, rate_ppb: 0.0 };
        let followed = Arc::new(Followed::new(course));
        let time =
            Time::There { zero: Instant::now(), zero_ns: 100 * S, followed: Arc::clone(&followed) };
        let clock = time.clock();
        let before = clock.now();
        assert!((7 * S..8 * S).contains(&before), "{before}");
        followed.follow(ClockModel { moment_ns: 2 * S as i64, ..course }, true, 0);
        assert_eq!(clock.now(), before, "not back");
        followed.follow(ClockModel { moment_ns: 50 * S as i64, ..course }, true, 0);
        assert!(clock.now() >= 50 * S);
    }
}
