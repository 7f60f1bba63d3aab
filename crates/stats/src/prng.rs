//! A small pseudo-random generator: the same seed gives the same numbers on every machine.
//!
//! xoshiro256++ seeded through splitmix64 (Blackman and Vigna, "Scrambled linear pseudorandom
//! number generators", 2021). For resampling and shuffling; not for secrets.

/// A generator's state.
#[derive(Clone, Debug)]
pub struct Prng {
    state: [u64; 4],
}

impl Prng {
    /// Seeds the generator. Every seed is good, 0 too.
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        Prng { state: std::array::from_fn(|_| splitmix64(&mut state)) }
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// A number in 0..`bound`, without bias to speak of (Lemire's multiplication; the bias is
    /// below `bound` ÷ 2⁶⁴). 0 when `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next_u64()) * bound as u128) >> 64) as usize
    }

    /// A number in 0..1, in steps of 2⁻⁵³.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * 2f64.powi(-53)
    }

    /// Puts `items` in random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

fn splitmix64(state: &mut u64) -> u64 {
    let number = mix(*state);
    *state = state.wrapping_add(GAMMA);
    number
}

/// SplitMix64's increment.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The number that SplitMix64 gives in the state `value` (Steele, Lea and Flood, "Fast splittable
/// pseudorandom number generators", OOPSLA 2014): a bijection in which every input bit changes half
/// of the output's.
pub fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(GAMMA);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_reference_implementation() {
        let mut prng = Prng { state: [1, 2, 3, 4] };
        let numbers: [u64; 4] = std::array::from_fn(|_| prng.next_u64());
        assert_eq!(numbers, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
        let mut state = 1_234_567;
        assert_eq!(splitmix64(&mut state), 6_457_827_717_110_365_317);
    }

    #[test]
    fn numbers_are_spread_evenly() {
        let mut prng = Prng::new(0);
        let mut seen = [0; 7];
        for _ in 0..70_000 {
            seen[prng.below(7)] += 1;
            assert!((0.0..1.0).contains(&prng.unit()));
        }
        assert!(seen.iter().all(|count| (9_600..10_400).contains(count)), "{seen:?}");
        assert_eq!(prng.below(0), 0);
    }

    #[test]
    fn shuffling_keeps_every_item() {
        let mut items: Vec<u32> = (0..50).collect();
        Prng::new(7).shuffle(&mut items);
        assert!(!items.is_sorted());
        items.sort_unstable();
        assert!(items.into_iter().eq(0..50));
    }
}
