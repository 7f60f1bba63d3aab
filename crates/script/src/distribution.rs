//! pgbench's distributions, in the arithmetic that gives pgbench's numbers.
//!
//! Every function documents its preconditions; `Expr` checks them with pgbench's messages before.

use crate::prng::Xoroshiro128;

impl Xoroshiro128 {
    /// Uniform over `min..=max`. The width must fit in an i64.
    pub fn uniform(&mut self, min: i64, max: i64) -> i64 {
        min.wrapping_add(self.u64_range(0, max.wrapping_sub(min) as u64) as i64)
    }

    /// Truncated exponential over `min..=max`; `parameter` > 0 is the decay over the range.
    pub fn exponential(&mut self, min: i64, max: i64, parameter: f64) -> i64 {
        let cut = (-parameter).exp();
        let uniform = 1.0 - self.double();
        let position = -(cut + (1.0 - cut) * uniform).ln() / parameter;
        scaled(min, max, position)
    }

    /// Truncated normal around the middle of `min..=max`; the range spans ± `parameter` (≥ 2)
    /// standard deviations, and what falls outside is drawn again.
    pub fn gaussian(&mut self, min: i64, max: i64, parameter: f64) -> i64 {
        let deviation = loop {
            let deviation = self.normal();
            if (-parameter..parameter).contains(&deviation) {
                break deviation;
            }
        };
        scaled(min, max, (deviation + parameter) / (parameter * 2.0))
    }

    /// Zipfian over `min..=max` with exponent `parameter` > 1: Devroye's rejection method
    /// ("Non-Uniform Random Variate Generation", X.6.1), bounded to the range.
    pub fn zipfian(&mut self, min: i64, max: i64, parameter: f64) -> i64 {
        let count = max.wrapping_sub(min).wrapping_add(1);
        if count <= 1 {
            return min;
        }
        let power = parameter - 1.0;
        let b = 2.0_f64.powf(power);
        loop {
            let u = self.double();
            let v = self.double();
            let x = u.powf(-1.0 / power).floor();
            let t = (1.0 + 1.0 / x).powf(power);
            if v * x * (t - 1.0) / (b - 1.0) <= t / b && x <= count as f64 {
                return min.wrapping_sub(1).wrapping_add(x as i64);
            }
        }
    }

    /// An exponentially distributed wait with mean `center`, rounded to a whole number: the gap
    /// between two arrivals of a Poisson process, as `--rate` uses it.
    pub fn poisson_gap(&mut self, center: f64) -> i64 {
        let uniform = 1.0 - self.double();
        (-uniform.ln() * center + 0.5) as i64
    }
}

/// Number of `min..=max` at `position` in [0, 1).
fn scaled(min: i64, max: i64, position: f64) -> i64 {
    let width = max.wrapping_sub(min).wrapping_add(1);
    min.wrapping_add((width as f64 * position) as i64)
}

/// pgbench's `permute`: the place of `value` (mod `size`) in a permutation of `0..size` that
/// `seed` chooses. `size` must be positive.
///
/// Six rounds of multiply by an odd number, xor and rotate, on the lower and on the upper part of
/// the range whose length is the largest power of two that fits, then a random offset.
pub(crate) fn permute(value: i64, size: i64, seed: i64) -> i64 {
    if size < 2 {
        return 0;
    }
    let mut prng = Xoroshiro128::from_seed(seed as u64);
    let size = size as u64;
    let bits = size.ilog2();
    let mask = (1_u64 << bits) - 1;
    let mut at = (value as u64) % size;
    for _ in 0..6 {
        at = scramble(at, &mut prng, mask, bits);
        at = size - 1 - scramble(size - 1 - at, &mut prng, mask, bits);
        let offset = prng.u64_range(0, size - 1);
        // size < 2^63, so the sum cannot overflow.
        at = (at + offset) % size;
    }
    at as i64
}

/// A bijection of `0..=mask`; what lies above stays. Two draws either way.
fn scramble(at: u64, prng: &mut Xoroshiro128, mask: u64, bits: u32) -> u64 {
    let factor = (prng.next_u64() & mask) | 1;
    let pattern = prng.next_u64() & mask;
    if at > mask {
        return at;
    }
    let mixed = (at.wrapping_mul(factor) ^ pattern) & mask;
    ((mixed << 1) & mask) | (mixed >> (bits - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn permute_is_a_permutation(size in 1_i64..300, seed: i64) {
            let mut seen: Vec<i64> = (0..size).map(|value| permute(value, size, seed)).collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..size).collect::<Vec<_>>());
        }

        #[test]
        fn every_distribution_stays_in_its_range(
            seed: u64, min in -1000_i64..1000, width in 0_i64..100_000, parameter in 2.0..20.0_f64,
        ) {
            let mut prng = Xoroshiro128::from_seed(seed);
            let max = min + width;
            for _ in 0..20 {
                for drawn in [
                    prng.uniform(min, max),
                    prng.exponential(min, max, parameter),
                    prng.gaussian(min, max, parameter),
                    prng.zipfian(min, max, parameter),
                ] {
                    prop_assert!((min..=max).contains(&drawn));
                }
            }
        }
    }

    #[test]
    fn poisson_gaps_have_the_mean_asked_for() {
        let mut prng = Xoroshiro128::from_seed(7);
        let sum: i64 = (0..20_000).map(|_| prng.poisson_gap(1000.0)).sum();
        let mean = sum as f64 / 20_000.0;
        assert!((mean - 1000.0).abs() < 30.0, "{mean}");
    }
}
