//! Open loop: when transactions are due.

use script::Xoroshiro128;
use stats::LatencyHistogram;

use crate::Pace;

/// The due times of one workload within one lane. Slots are taken in order; a slot that nobody is
/// free to take stays due, which is the backlog.
#[derive(Debug)]
pub(crate) struct Schedule {
    gap_us: f64,
    offset: f64,
    arrivals: Arrivals,
    prng: Xoroshiro128,
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
    pub(crate) fn new(pace: Pace, share: f64, offset: f64, prng: Xoroshiro128) -> Option<Self> {
        let (rate, arrivals) = match pace {
            Pace::Closed => return None,
            Pace::Poisson(rate) => (rate, Arrivals::Poisson),
            Pace::Constant(rate) => (rate, Arrivals::Constant),
        };
        let gap_us = 1e6 / (rate * share);
        // Gaps that are drawn are whole microseconds: of shorter ones most would be 0, and no slot would ever
        // lie ahead.
        let arrivals = if gap_us < 1.0 { Arrivals::Constant } else { arrivals };
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

    /// Takes all slots that are due before `close_ns` on the clock of the schedule: their ages at that moment,
    /// as `age_ns` has them for a due time. The gaps of very many are not drawn: a lane has no time for them at the
    /// close.
    pub(crate) fn take_all(
        &mut self,
        close_ns: u64,
        age_ns: impl Fn(u64) -> u64,
    ) -> LatencyHistogram {
        let mut ages = LatencyHistogram::new();
        let due = self.backlog(close_ns.saturating_sub(1));
        if due < TAKEN_MAX {
            while self.due_ns() < close_ns {
                ages.record_ns(age_ns(self.take()));
            }
            return ages;
        }
        let oldest_ns = self.due_ns();
        let length_ns = close_ns - oldest_ns;
        self.next_us = close_ns.div_ceil(1_000);
        let evenly = |count: u64| {
            let mut ages = LatencyHistogram::new();
            let gap_ns = length_ns as f64 / count as f64;
            let due_ns = |n: u64| oldest_ns + (n as f64 * gap_ns) as u64;
            (0..count).for_each(|n| ages.record_ns(age_ns(due_ns(n))));
            ages
        };
        // Each of some stands for as many others.
        let (mut same, mut times) = (evenly(TAKEN_MAX), due / TAKEN_MAX);
        while times > 0 {
            if times % 2 == 1 {
                ages.merge(&same);
            }
            same.merge(&same.clone());
            times /= 2;
        }
        ages.merge(&evenly(due % TAKEN_MAX));
        ages
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

/// Fewer slots than these are taken one by one at the close: that takes a millisecond.
const TAKEN_MAX: u64 = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// Due times of the first slots, in nanoseconds since the beginning.
    fn slots(pace: Pace, share: f64, offset: f64, n: usize) -> Vec<u64> {
        let mut schedule = Schedule::new(pace, share, offset, Xoroshiro128::from_seed(1)).unwrap();
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
        assert!(Schedule::new(Pace::Closed, 1.0, 1.0, Xoroshiro128::from_seed(1)).is_none());
    }

    #[test]
    fn the_backlog_is_what_is_due_and_not_taken() {
        let pace = Pace::Constant(1_000.0);
        let mut schedule = Schedule::new(pace, 1.0, 1.0, Xoroshiro128::from_seed(1)).unwrap();
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
    fn all_slots_that_are_due_at_the_close_are_taken_in_no_time() {
        let check = |pace: Pace, expected: f64| {
            let mut schedule = Schedule::new(pace, 1.0, 1.0, Xoroshiro128::from_seed(1)).unwrap();
            schedule.begin(0);
            let close_ns = 10_000_000_000;
            let ages = schedule.take_all(close_ns, |due| close_ns - due);
            let (count, mean) = (ages.count() as f64, ages.mean_ns().unwrap());
            let part = if matches!(pace, Pace::Constant(_)) { 1e-6 } else { 0.05 };
            assert!((count / expected - 1.0).abs() < part, "{pace:?}: {count}");
            assert!((mean / 5e9 - 1.0).abs() < 0.02, "{pace:?}: {mean}");
            assert!(schedule.due_ns() >= close_ns, "{pace:?}");
            assert_eq!(schedule.take_all(close_ns, |due| close_ns - due).count(), 0, "{pace:?}");
        };
        check(Pace::Constant(1_000.0), 9_999.0);
        check(Pace::Constant(19_999.0), 199_989.0);
        check(Pace::Poisson(10_000.0), 1e5);
        check(Pace::Poisson(1e6), 1e7);
        check(Pace::Constant(3e6), 3e7);
        check(Pace::Poisson(1e9), 1e10);
        check(Pace::Constant(1e15), 1e16);
    }

    #[test]
    fn slots_closer_than_a_microsecond_advance() {
        let last = *slots(Pace::Poisson(1e9), 1.0, 1.0, 100_000).last().unwrap();
        assert!(last.abs_diff(100_000) < 2_000, "{last}");
    }

    #[test]
    fn a_lane_without_clients_has_nothing_due() {
        let slots = slots(Pace::Constant(1_000.0), 0.0, 1.0, 1);
        assert!(slots[0] > u64::MAX / 2, "{slots:?}");
    }
}
