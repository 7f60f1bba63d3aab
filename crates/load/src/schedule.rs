//! Open loop: when transactions are due.

use script::Prng;

use crate::Pace;

/// The due times of one workload within one lane. Slots are taken in order; a slot that nobody is
/// free to take stays due, which is the backlog.
#[derive(Debug)]
pub(crate) struct Schedule {
    gap_us: f64,
    offset: f64,
    arrivals: Arrivals,
    prng: Prng,
    next_us: u64,
    /// Constant arrivals keep the fraction that a whole microsecond loses: at 300,000 a second
    /// rounding each gap would be a tenth off.
    fraction_us: f64,
}

#[derive(Clone, Copy, Debug)]
enum Arrivals {
    Poisson,
    Constant,
}

impl Schedule {
    /// This lane's `share` of the pace, 0 to 1; none in closed loop. A constant rate begins at
    /// `offset` of its first gap. `prng` is the thread's throttle state: pgbench draws the same
    /// gaps from it.
    pub(crate) fn new(pace: Pace, share: f64, offset: f64, prng: Prng) -> Option<Self> {
        let (rate, arrivals) = match pace {
            Pace::Closed => return None,
            Pace::Poisson(rate) => (rate, Arrivals::Poisson),
            Pace::Constant(rate) => (rate, Arrivals::Constant),
        };
        let gap_us = 1e6 / (rate * share);
        Some(Schedule { gap_us, offset, arrivals, prng, next_us: 0, fraction_us: 0.0 })
    }

    /// Starts the clock: the first slot lies one gap after `now`, or part of a constant one.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        self.next_us = now_ns / 1_000;
        match self.arrivals {
            Arrivals::Poisson => self.advance(),
            Arrivals::Constant => {
                let first_us = (self.gap_us * self.offset) as u64;
                self.next_us = self.next_us.saturating_add(first_us);
            }
        }
    }

    /// Time at which the next slot is due, in nanoseconds.
    pub(crate) fn due_ns(&self) -> u64 {
        self.next_us.saturating_mul(1_000)
    }

    /// Takes the next slot: its due time in nanoseconds.
    pub(crate) fn take(&mut self) -> u64 {
        let due = self.due_ns();
        self.advance();
        due
    }

    /// Transactions that should have started by `now` and have not. Exact for constant arrivals;
    /// for Poisson the expected number, since the gaps of the backlog are not drawn yet.
    pub(crate) fn backlog(&self, now_ns: u64) -> u64 {
        let now_us = now_ns / 1_000;
        if now_us < self.next_us {
            return 0;
        }
        1 + ((now_us - self.next_us) as f64 / self.gap_us) as u64
    }

    fn advance(&mut self) {
        let gap_us = match self.arrivals {
            Arrivals::Poisson => self.prng.poisson_gap(self.gap_us).max(0) as u64,
            Arrivals::Constant => {
                let exact = self.gap_us + self.fraction_us;
                self.fraction_us = exact.fract();
                exact as u64
            }
        };
        self.next_us = self.next_us.saturating_add(gap_us);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Due times of the first slots, in nanoseconds since the beginning.
    fn slots(pace: Pace, share: f64, offset: f64, n: usize) -> Vec<u64> {
        let mut schedule = Schedule::new(pace, share, offset, Prng::from_seed(1)).unwrap();
        schedule.begin(5_000_000);
        (0..n).map(|_| schedule.take() - 5_000_000).collect()
    }

    #[test]
    fn constant_gaps_add_up_and_lanes_take_turns() {
        assert_eq!(slots(Pace::Constant(1_000.0), 1.0, 1.0, 3), [1_000_000, 2_000_000, 3_000_000]);
        // Two lanes with half of the clients each.
        assert_eq!(slots(Pace::Constant(1_000.0), 0.5, 0.5, 2), [1_000_000, 3_000_000]);
        assert_eq!(slots(Pace::Constant(1_000.0), 0.5, 1.0, 2), [2_000_000, 4_000_000]);
        // A gap of 3.33 µs loses nothing although slots lie on whole microseconds.
        let last = *slots(Pace::Constant(300_000.0), 1.0, 1.0, 300_000).last().unwrap();
        assert!(last.abs_diff(1_000_000_000) < 10_000, "{last}");
    }

    #[test]
    fn poisson_gaps_have_the_right_mean() {
        let last = *slots(Pace::Poisson(1_000.0), 1.0, 1.0, 10_000).last().unwrap();
        assert!((last as f64 / 10e9 - 1.0).abs() < 0.05, "{last}");
        assert!(Schedule::new(Pace::Closed, 1.0, 1.0, Prng::from_seed(1)).is_none());
    }

    #[test]
    fn the_backlog_is_what_is_due_and_not_taken() {
        let pace = Pace::Constant(1_000.0);
        let mut schedule = Schedule::new(pace, 1.0, 1.0, Prng::from_seed(1)).unwrap();
        schedule.begin(0);
        let mut check = |now_ms: u64, taken: u64, expected| {
            for _ in 0..taken {
                schedule.take();
            }
            assert_eq!(schedule.backlog(now_ms * 1_000_000), expected, "at {now_ms} ms");
        };
        check(0, 0, 0);
        check(1, 0, 1);
        check(10, 0, 10);
        check(10, 4, 6);
        check(10, 6, 0);
    }

    #[test]
    fn a_lane_without_clients_has_nothing_due() {
        let slots = slots(Pace::Constant(1_000.0), 0.0, 1.0, 1);
        assert!(slots[0] > u64::MAX / 2, "{slots:?}");
    }
}
