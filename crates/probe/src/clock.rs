//! The run's clock, the sampler's beat, and how a server's wall clock is read on the run's.

use std::time::{Duration, Instant};

use record::Moment;

use crate::log::WallClock;

/// Time between two samples.
pub(crate) const PERIOD: Duration = Duration::from_secs(1);

/// The run's clock: monotonic, from its origin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
}

impl Clock {
    pub(crate) fn from(origin: Instant) -> Clock {
        Clock { origin }
    }

    pub(crate) fn now(&self) -> Moment {
        Moment(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

/// Deadlines a period apart. What comes late does not move the later ones; deadlines that were
/// slept through are left out.
#[derive(Debug)]
pub(crate) struct Ticks {
    next: tokio::time::Instant,
}

impl Ticks {
    pub(crate) fn from_now() -> Ticks {
        Ticks { next: tokio::time::Instant::now() + PERIOD }
    }

    pub(crate) fn next(&self) -> tokio::time::Instant {
        self.next
    }

    /// Goes on to the first deadline after `now`; tells how many were left out.
    pub(crate) fn advance(&mut self, now: tokio::time::Instant) -> u64 {
        self.next += PERIOD;
        let mut left_out = 0;
        while self.next <= now {
            self.next += PERIOD;
            left_out += 1;
        }
        left_out
    }
}

/// Offset of a server's wall clock from the run's clock.
///
/// Each reading brackets the server's answer between a question and its arrival, so that it is
/// wrong by half the round trip at most. The clocks may drift or be set, so that newer readings
/// replace older ones, as long as they are not much worse than the best.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ServerClock {
    best_round_trip_ns: Option<u64>,
    /// The server's microseconds less the run's.
    ahead_us: i64,
}

impl ServerClock {
    pub(crate) fn read(&mut self, clock: WallClock, asked: Moment, answered: Moment) {
        let round_trip_ns = answered.since(asked);
        let best = self.best_round_trip_ns.unwrap_or(u64::MAX);
        if self.best_round_trip_ns.is_none() || round_trip_ns / 2 <= best {
            let midpoint_ns = asked.0.midpoint(answered.0);
            self.ahead_us = clock.0.saturating_sub((midpoint_ns / 1_000) as i64);
        }
        self.best_round_trip_ns = Some(best.min(round_trip_ns));
    }

    /// The moment at which the server's clock showed `clock`; none before its first reading. What
    /// happened before the run happened at its beginning.
    pub(crate) fn moment(&self, clock: WallClock) -> Option<Moment> {
        self.best_round_trip_ns?;
        // Negative before the run.
        let us = u64::try_from(clock.0.saturating_sub(self.ahead_us)).unwrap_or(0);
        Some(Moment(us.saturating_mul(1_000)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_do_not_drift_and_missed_ones_are_left_out() {
        let mut ticks = Ticks::from_now();
        let first = ticks.next();
        assert_eq!(ticks.advance(first + Duration::from_millis(3)), 0);
        assert_eq!(ticks.next(), first + PERIOD);
        assert_eq!(ticks.advance(first + Duration::from_millis(3_500)), 2);
        assert_eq!(ticks.next(), first + 4 * PERIOD);
    }

    #[test]
    fn a_servers_clock_is_read_at_the_middle_of_the_round_trip() {
        let mut clock = ServerClock::default();
        assert_eq!(clock.moment(WallClock(5)), None);
        clock.read(WallClock(1_000_000), Moment(2_000_000), Moment(4_000_000));
        assert_eq!(clock.moment(WallClock(1_000_500)), Some(Moment(3_500_000)));
        assert_eq!(clock.moment(WallClock(0)), Some(Moment(0)));
        // A reading over a slow answer is passed over, one about as good is taken.
        clock.read(WallClock(1_000_000), Moment(0), Moment(900_000_000));
        assert_eq!(clock.moment(WallClock(1_000_500)), Some(Moment(3_500_000)));
        clock.read(WallClock(1_000_000), Moment(2_000_000), Moment(5_000_000));
        assert_eq!(clock.moment(WallClock(1_000_500)), Some(Moment(4_000_000)));
    }
}
