//! The order of blocks.

use record::comparison::OCTET_PAIRS;
use stats::Prng;

/// What the sides are called: A is side 0, B is side 1.
pub const SIDES: [&str; 2] = ["A", "B"];

/// Blocks of an octet.
pub(crate) const OCTET: usize = 2 * OCTET_PAIRS;

/// The sides of an octet's blocks: the order of Thue and Morse.
pub(crate) const ORDER: [usize; OCTET] = [0, 1, 1, 0, 1, 0, 0, 1];

/// Blocks from the beginning of an octet to that of the next: one that leads in, and the octet.
pub(crate) const CYCLE: usize = 1 + OCTET;

/// The side that each block belongs to: octets ABBABAAB or BAABABBA at random, each led in by a block
/// of the side that does not begin it.
///
/// Within an octet, what rises or falls steadily, or along a parabola, meets both sides alike. So does
/// what a block gains from following one of its own side, whose data and code are still in the CPUs'
/// caches: each side has one such block. The block that leads in is not observed. What the rig does
/// between two octets falls into it, and the first block of every octet follows the other side.
pub(crate) fn order(octets: usize, seed: u64) -> Vec<usize> {
    let mut prng = Prng::new(seed);
    let mut blocks = Vec::with_capacity(octets * CYCLE);
    for _ in 0..octets {
        let first = usize::from(prng.unit() < 0.5);
        blocks.push(1 - first);
        blocks.extend(ORDER.map(|side| side ^ first));
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_octet_is_balanced_against_trends_and_carry_over() {
        for seed in 0..20 {
            for cycle in order(50, seed).chunks(CYCLE) {
                let octet = &cycle[1..];
                let sign = |side: usize| if side == 0 { 1_i64 } else { -1 };
                for degree in 0..=2 {
                    let trend = |at: usize| (at as i64).pow(degree);
                    let sum: i64 = (0..OCTET).map(|at| sign(octet[at]) * trend(at)).sum();
                    assert_eq!(sum, 0, "degree {degree}: {octet:?}");
                }
                let after_its_own = cycle.windows(2).filter(|two| two[0] == two[1]);
                let sum: i64 = after_its_own.map(|two| sign(two[0])).sum();
                assert_eq!(sum, 0, "{octet:?}");
            }
        }
    }

    #[test]
    fn seeds_differ_and_repeat() {
        assert_eq!(order(20, 7), order(20, 7));
        assert_ne!(order(20, 7), order(20, 8));
    }
}
