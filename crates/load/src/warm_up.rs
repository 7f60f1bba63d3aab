//! Automatic warm-up: when throughput has become steady.

/// Throughput since the load began, and whether it still climbs.
///
/// Steady means that the mean of the last [`BLOCK`] intervals differs from the mean of the
/// [`BLOCK`] before by less than [`TOLERANCE`]. The rule is crude on purpose: it must decide while
/// the load runs. Whether the window itself was steady is judged afterwards, over the whole
/// series, by `stats`. At the bound it is enough that throughput does not rise: what only falls, as
/// under growing queues of locks, will not become warmer.
pub(crate) struct Ramp {
    min_ns: u64,
    max_ns: u64,
    rates: Vec<u64>,
    steady: bool,
}

/// Intervals in each of the two blocks that are compared.
const BLOCK: usize = 3;

/// Largest relative difference of two steady blocks. Two blocks of three seconds on a shared
/// machine differ by about 3 % when nothing changes.
const TOLERANCE: f64 = 0.05;

impl Ramp {
    pub(crate) fn new(min_ns: u64, max_ns: u64) -> Self {
        Ramp { min_ns, max_ns, rates: Vec::new(), steady: false }
    }

    /// Adds an interval that ended `elapsed_ns` after the beginning; true when the window should
    /// open now, steady or not.
    pub(crate) fn add(&mut self, transactions: u64, elapsed_ns: u64) -> bool {
        self.rates.push(transactions);
        if elapsed_ns < self.min_ns {
            return false;
        }
        let bound = elapsed_ns >= self.max_ns;
        self.steady = self
            .last_change()
            .is_some_and(|change| change <= TOLERANCE && (bound || change >= -TOLERANCE));
        self.steady || bound
    }

    pub(crate) fn is_steady(&self) -> bool {
        self.steady
    }

    /// By which share of itself the last block differs from the one before.
    fn last_change(&self) -> Option<f64> {
        let last = self.rates.len().checked_sub(2 * BLOCK)?;
        let (before, after) = self.rates[last..].split_at(BLOCK);
        let mean = |block: &[u64]| block.iter().sum::<u64>() as f64 / BLOCK as f64;
        let (before, after) = (mean(before), mean(after));
        (before > 0.0).then(|| after / before - 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_opens_when_throughput_is_level_or_the_bound_is_reached() {
        let check = |rates: &[u64], expected: Option<(usize, bool)>| {
            let mut ramp = Ramp::new(2, 10);
            let opened = rates
                .iter()
                .enumerate()
                .find(|(i, n)| ramp.add(**n, *i as u64 + 1))
                .map(|(i, _)| (i + 1, ramp.is_steady()));
            assert_eq!(opened, expected, "{rates:?}");
        };
        check(&[100; 12], Some((6, true)));
        check(&[10, 50, 90, 100, 100, 100, 101, 99, 100], Some((8, true)));
        check(&[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024], Some((10, false)));
        check(&[1024, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1], Some((10, true)));
        check(&[0; 12], Some((10, false)));
        check(&[100; 3], None);
    }
}
