//! Count, sum, sum of squares and extremes of durations, exactly.
//!
//! A histogram rounds every value to three digits; what pgbench prints as "latency average" and
//! "latency stddev" must not be rounded so. Sums are 128 bits wide, hence merging is exact and
//! does not depend on the order.

/// Exact sums over durations in nanoseconds. The fields are public so that they can be carried
/// between processes; an empty one is [`DurationSums::default`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DurationSums {
    /// Number of durations.
    pub count: u64,
    /// Their sum, ns.
    pub sum_ns: u128,
    /// The sum of their squares, ns².
    pub sum_squares_ns2: u128,
    /// The shortest, ns; 0 when there is none.
    pub min_ns: u64,
    /// The longest, ns; 0 when there is none.
    pub max_ns: u64,
}

impl DurationSums {
    /// Adds one duration.
    #[inline]
    pub fn record_ns(&mut self, value_ns: u64) {
        self.record_n_ns(value_ns, 1);
    }

    /// Adds the same duration `count` times. Sums that would overflow stay at their limit.
    #[inline]
    pub fn record_n_ns(&mut self, value_ns: u64, count: u64) {
        if count == 0 {
            return;
        }
        let value = u128::from(value_ns);
        let times = u128::from(count);
        self.min_ns = if self.count == 0 { value_ns } else { self.min_ns.min(value_ns) };
        self.max_ns = self.max_ns.max(value_ns);
        self.count = self.count.saturating_add(count);
        self.sum_ns = self.sum_ns.saturating_add(value * times);
        let squares = (value * value).saturating_mul(times);
        self.sum_squares_ns2 = self.sum_squares_ns2.saturating_add(squares);
    }

    /// Adds what `other` has seen.
    pub fn merge(&mut self, other: &DurationSums) {
        if other.count == 0 {
            return;
        }
        self.min_ns = if self.count == 0 { other.min_ns } else { self.min_ns.min(other.min_ns) };
        self.max_ns = self.max_ns.max(other.max_ns);
        self.count = self.count.saturating_add(other.count);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.sum_squares_ns2 = self.sum_squares_ns2.saturating_add(other.sum_squares_ns2);
    }

    /// Arithmetic mean, ns. `None` when nothing was recorded.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64)
    }

    /// Standard deviation of the population, ns: √(Σx²/n − (Σx/n)²), as pgbench computes it.
    /// `None` when nothing was recorded.
    pub fn stddev_ns(&self) -> Option<f64> {
        let mean_ns = self.mean_ns()?;
        let count = u128::from(self.count);
        // While the products fit, the difference is taken in integers: in floating point it
        // would cancel when the spread is tiny beside the mean.
        let exact = self
            .sum_squares_ns2
            .checked_mul(count)
            .zip(self.sum_ns.checked_mul(self.sum_ns))
            .map(|(left, right)| left.saturating_sub(right) as f64 / (count * count) as f64);
        let variance =
            exact.unwrap_or_else(|| self.sum_squares_ns2 as f64 / count as f64 - mean_ns.powi(2));
        Some(variance.max(0.0).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[u64], mean: Option<f64>, stddev: Option<f64>) {
        let mut moments = DurationSums::default();
        for &value in values {
            moments.record_ns(value);
        }
        assert_eq!(moments.mean_ns(), mean, "{values:?}");
        assert_eq!(moments.stddev_ns(), stddev, "{values:?}");
    }

    #[test]
    fn mean_and_population_stddev() {
        check(&[], None, None);
        check(&[7], Some(7.0), Some(0.0));
        check(&[2, 4, 4, 4, 5, 5, 7, 9], Some(5.0), Some(2.0));
        // One nanosecond of spread at ten seconds survives.
        check(&[10_000_000_000, 10_000_000_002], Some(10_000_000_001.0), Some(1.0));
    }

    #[test]
    fn extreme_values_saturate() {
        let mut moments = DurationSums::default();
        for _ in 0..5 {
            moments.record_ns(u64::MAX);
        }
        assert_eq!(moments.max_ns, u64::MAX);
        assert!(moments.stddev_ns().is_some_and(f64::is_finite));
    }

    #[test]
    fn merging_with_empty_keeps_the_minimum() {
        let mut left = DurationSums::default();
        let mut right = DurationSums::default();
        right.record_ns(5);
        left.merge(&DurationSums::default());
        left.merge(&right);
        left.merge(&DurationSums::default());
        assert_eq!(left, right);
    }
}
