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

    /// When the next slot is due, in nanoseconds.
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
