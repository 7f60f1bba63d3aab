//! PostgreSQL's pseudo-random numbers.
//!
//! xoroshiro128** (Blackman and Vigna), seeded through splitmix64: the generator of `pg_prng.c`
//! since PostgreSQL 15, so that a seed gives pgbench's numbers.

/// The state of one generator: 16 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Xoroshiro128 {
    s0: u64,
    s1: u64,
}

impl Xoroshiro128 {
    /// A generator seeded as `pg_prng_seed` seeds it.
    pub fn from_seed(seed: u64) -> Xoroshiro128 {
        let mut seed = seed;
        Xoroshiro128 { s0: splitmix64(&mut seed), s1: splitmix64(&mut seed) }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let s0 = self.s0;
        let mixed = self.s1 ^ s0;
        self.s0 = s0.rotate_left(24) ^ mixed ^ (mixed << 16);
        self.s1 = mixed.rotate_left(37);
        s0.wrapping_mul(5).rotate_left(7).wrapping_mul(9)
    }

    /// Uniform over `low..=high` by rejection: as many leading bits as the range needs are drawn
    /// until they fall into it. `low` without a draw where the range is empty or one number.
    pub fn u64_range(&mut self, low: u64, high: u64) -> u64 {
        if high <= low {
            return low;
        }
        let range = high - low;
        loop {
            let drawn = self.next_u64() >> range.leading_zeros();
            if drawn <= range {
                return low + drawn;
            }
        }
    }

    /// Uniform over [0, 1), 52 bits of it.
    pub fn double(&mut self) -> f64 {
        const SCALE: f64 = 1.0 / (1_u64 << 52) as f64;
        (self.next_u64() >> 12) as f64 * SCALE
    }

    /// Standard normal, by the basic form of Box and Muller's transform.
    pub fn normal(&mut self) -> f64 {
        let radius = 1.0 - self.double();
        let angle = 1.0 - self.double();
        (-2.0 * radius.ln()).sqrt() * (2.0 * std::f64::consts::PI * angle).sin()
    }
}

fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published reference values: splitmix64 from 0, xoroshiro128** from (1, 2).
    #[test]
    fn agrees_with_the_published_generators() {
        let mut state = 0;
        assert_eq!(splitmix64(&mut state), 0xe220_a839_7b1d_cdaf);
        assert_eq!(splitmix64(&mut state), 0x6e78_9e6a_a1b9_65f4);
        let mut prng = Xoroshiro128 { s0: 1, s1: 2 };
        assert_eq!(prng.next_u64(), 5760);
        assert_eq!(prng.next_u64(), 97_769_243_520);
    }

    #[test]
    fn ranges_are_inclusive_and_one_number_draws_nothing() {
        let mut prng = Xoroshiro128::from_seed(1);
        let before = prng.clone();
        assert_eq!(prng.u64_range(7, 7), 7);
        assert_eq!(prng, before);
        let drawn: Vec<u64> = (0..200).map(|_| prng.u64_range(3, 5)).collect();
        assert_eq!(drawn.iter().min(), Some(&3));
        assert_eq!(drawn.iter().max(), Some(&5));
    }
}
