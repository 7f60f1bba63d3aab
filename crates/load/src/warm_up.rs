//! Automatic warm-up: when throughput and latency have become steady.

use stats::WindowQuantity;

/// Throughput and latency since the load began, and whether they still change.
///
/// Steady means that the mean throughput of the last block of intervals differs from that of the block
/// before by less than [`TOLERANCE`], and that the mean latency does not differ by more than a steady window allows:
/// at a fixed rate, throughput is level from the beginning. A block is [`BLOCK_NS`] long, or three time constants of the
/// climb that is seen, whichever is longer: of a slow climb two short blocks always look alike. The
/// rule must decide while the load runs. Whether the window itself was steady is judged afterwards,
/// over the whole series, by `stats`. At the bound it is enough that throughput does not rise: what
/// only falls, as under growing queues of locks, will not become warmer. Of latency it is enough that it does not fall.
pub(crate) struct Ramp {
    min_ns: u64,
    max_ns: u64,
    /// Intervals in a block, at least.
    block: usize,
    /// Transactions in each interval.
    rates: Vec<u64>,
    /// The sum of their latencies in nanoseconds.
    latencies_ns: Vec<u128>,
    steady: bool,
}

/// Least length of each of the two blocks that are compared. A bound of less than two blocks shortens
/// them to half of it.
const BLOCK_NS: u64 = 3_000_000_000;

/// Time constants of the climb in a block: after three, 5 % of the climb are left.
const TIME_CONSTANTS: usize = 3;

/// Largest relative difference of two steady blocks. Two blocks of three seconds on a shared
/// machine differ by about 3 % when nothing changes.
const TOLERANCE: f64 = 0.05;

impl Ramp {
    /// A warm-up in intervals of this length, between these bounds.
    pub(crate) fn new(min_ns: u64, max_ns: u64, interval_ns: u64) -> Self {
        let block_ns = BLOCK_NS.min(max_ns / 2);
        let block = (block_ns / interval_ns.max(1)).max(1) as usize;
        Ramp { min_ns, max_ns, block, rates: Vec::new(), latencies_ns: Vec::new(), steady: false }
    }

    /// Adds an interval that ended `elapsed_ns` after the beginning, with the sum of its transactions' latencies; true when
    /// the window should open now, steady or not.
    pub(crate) fn add(&mut self, transactions: u64, latency_ns: u128, elapsed_ns: u64) -> bool {
        self.rates.push(transactions);
        self.latencies_ns.push(latency_ns);
        if elapsed_ns < self.min_ns {
            return false;
        }
        let bound = elapsed_ns >= self.max_ns;
        // At the bound there may not have been time enough: the blocks are then thirds of what there
        // was.
        let most = if bound { self.rates.len() / 3 } else { usize::MAX };
        let block = (TIME_CONSTANTS * self.time_constant()).min(most).max(self.block);
        self.steady = self
            .last_change(block)
            .is_some_and(|change| change <= TOLERANCE && (bound || change >= -TOLERANCE))
            && self.latency_change(block).is_none_or(|change| {
                let tolerance = WindowQuantity::Latency.tolerance();
                change >= -tolerance && (bound || change <= tolerance)
            });
        self.steady || bound
    }

    pub(crate) fn is_steady(&self) -> bool {
        self.steady
    }

    /// By which share of itself the last block differs from the one before.
    fn last_change(&self, block: usize) -> Option<f64> {
        let last = self.rates.len().checked_sub(2 * block)?;
        let (before, after) = self.rates[last..].split_at(block);
        let (before, after) = (mean(before), mean(after));
        (before > 0.0).then(|| after / before - 1.0)
    }

    /// By which share of itself the mean latency of the last block differs from that of the one before.
    fn latency_change(&self, block: usize) -> Option<f64> {
        let last = self.rates.len().checked_sub(2 * block)?;
        let mean_ns = |from: usize| {
            let ns: u128 = self.latencies_ns[from..from + block].iter().sum();
            let transactions: u64 = self.rates[from..from + block].iter().sum();
            (transactions > 0).then(|| ns as f64 / transactions as f64)
        };
        let before = mean_ns(last).filter(|before| *before > 0.0)?;
        Some(mean_ns(last + block)? / before - 1.0)
    }

    /// After how many intervals the climb that is seen had done 1 − 1/e of its way, from the first
    /// sixth of a block to the last block; 0 where there is none.
    fn time_constant(&self) -> usize {
        let part = (self.block / 6).max(1);
        let Some(last) = self.rates.len().checked_sub(self.block) else { return 0 };
        let (first, level) =
            (mean(&self.rates[..part.min(self.rates.len())]), mean(&self.rates[last..]));
        if level - first <= TOLERANCE * level {
            return 0;
        }
        let most = first + (level - first) * (1.0 - (-1.0_f64).exp());
        self.rates.windows(part).position(|few| mean(few) >= most).unwrap_or(self.rates.len())
    }
}

fn mean(block: &[u64]) -> f64 {
    block.iter().sum::<u64>() as f64 / block.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    /// Time at which the window opens, in intervals since the beginning, and whether it was steady.
    fn opened(
        (min_s, max_s): (u64, u64),
        interval_ns: u64,
        rate: impl Fn(u64) -> u64,
    ) -> Option<(u64, bool)> {
        let mut ramp = Ramp::new(min_s * SECOND_NS, max_s * SECOND_NS, interval_ns);
        let at = (1..=2_000).find(|n| ramp.add(rate(*n), 0, n * interval_ns))?;
        Some((at, ramp.is_steady()))
    }

    #[test]
    fn the_window_opens_when_throughput_is_level_or_the_bound_is_reached() {
        let check = |rates: &[u64], expected| {
            let last = rates.len() - 1;
            let found = opened((2, 10), SECOND_NS, |n| rates[(n as usize - 1).min(last)]);
            assert_eq!(found, Some(expected), "{rates:?}");
        };
        check(&[100], (6, true));
        check(&[10, 50, 90, 100, 100, 100, 101, 99, 100], (10, true));
        check(&[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024], (10, false));
        check(&[1024, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1], (10, true));
        check(&[0], (10, false));
    }

    #[test]
    fn blocks_are_three_seconds_whatever_the_intervals() {
        let tenth_ns = SECOND_NS / 10;
        assert_eq!(opened((0, 60), tenth_ns, |_| 100), Some((60, true)));
        // A bound that leaves less time shortens them.
        assert_eq!(opened((0, 2), tenth_ns, |_| 100), Some((20, true)));
    }

    #[test]
    fn a_slow_climb_is_waited_for() {
        let tenth_ns = SECOND_NS / 10;
        // From 30 % of the level with a time constant of ten seconds.
        let climb = |n: u64| (10_000.0 * (1.0 - 0.7 * (-(n as f64) / 100.0).exp())) as u64;
        let (at, steady) = opened((2, 120), tenth_ns, climb).unwrap();
        assert!(steady && climb(at) > 9_700, "opened at {at}: {}", climb(at));
    }
    #[test]
    fn at_a_fixed_rate_latency_is_waited_for() {
        let check = |latency_ms: &dyn Fn(u64) -> u64, expected: (u64, bool)| {
            let mut ramp = Ramp::new(2 * SECOND_NS, 30 * SECOND_NS, SECOND_NS);
            let latency_ns = |n| 100 * u128::from(latency_ms(n)) * 1_000_000;
            let at = (1..=30).find(|n| ramp.add(100, latency_ns(*n), n * SECOND_NS));
            assert_eq!(at.map(|at| (at, ramp.is_steady())), Some(expected));
        };
        check(&|_| 20, (6, true));
        // Caches are cold for twelve seconds.
        check(&|n| if n <= 12 { 20 + 30 * (12 - n) } else { 20 }, (17, true));
        // A backlog grows until the bound: it will not become warmer.
        check(&|n| 1 << n, (30, true));
        check(&|n| 1 << (31 - n), (30, false));
    }
}
