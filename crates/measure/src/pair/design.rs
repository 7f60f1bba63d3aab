//! The order of blocks.

use load::ScheduledBlock;
use record::comparison::OCTET_PAIRS;
use stats::Prng;

/// Names of the sides: A is side 0, B is side 1.
pub const SIDES: [&str; 2] = ["A", "B"];

/// Blocks of an octet.
pub(crate) const OCTET: usize = 2 * OCTET_PAIRS;

/// Blocks of a quad, ABBA or BAAB, where blocks are single turns.
pub(crate) const QUAD: usize = 4;

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
///
/// The first blocks of both sides in an octet draw the same random numbers, and so do the second, the
/// third and the fourth ones.
pub(crate) fn order(octets: usize, seed: u64) -> Vec<ScheduledBlock> {
    let mut prng = Prng::new(seed);
    let mut turns = Vec::with_capacity(octets * CYCLE);
    let mut draws = 0;
    for _ in 0..octets {
        let first = usize::from(prng.unit() < 0.5);
        turns.push(ScheduledBlock { side: 1 - first, draws });
        let mut next = [draws; 2];
        for side in ORDER.map(|side| side ^ first) {
            next[side] += 1;
            turns.push(ScheduledBlock { side, draws: next[side] });
        }
        draws = next[first] + 1;
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_octet_is_balanced_against_trends_and_carry_over() {
        for seed in 0..20 {
            for cycle in order(50, seed).chunks(CYCLE) {
                let side = |turn: &ScheduledBlock| turn.side;
                let octet: Vec<usize> = cycle[1..].iter().map(side).collect();
                let sign = |side: usize| if side == 0 { 1_i64 } else { -1 };
                for degree in 0..=2 {
                    let trend = |at: usize| (at as i64).pow(degree);
                    let sum: i64 = (0..OCTET).map(|at| sign(octet[at]) * trend(at)).sum();
                    assert_eq!(sum, 0, "degree {degree}: {octet:?}");
                }
                let after_its_own = cycle.windows(2).filter(|two| side(&two[0]) == side(&two[1]));
                let sum: i64 = after_its_own.map(|two| sign(side(&two[0]))).sum();
                assert_eq!(sum, 0, "{octet:?}");
            }
        }
    }

    #[test]
    fn both_sides_draw_the_numbers_of_a_pair_and_no_others() {
        let turns = order(20, 3);
        let draws = |side: usize| -> Vec<u64> {
            let cycles = turns.chunks(CYCLE).flat_map(|cycle| &cycle[1..]);
            cycles.filter(|turn| turn.side == side).map(|turn| turn.draws).collect()
        };
        assert_eq!(draws(0), draws(1));
        let leads = turns.iter().step_by(CYCLE).map(|turn| turn.draws);
        let mut all: Vec<u64> = draws(0).into_iter().chain(leads).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 20 * (1 + OCTET / 2), "no numbers are drawn twice by a side");
    }

    #[test]
    fn seeds_differ_and_repeat() {
        assert_eq!(order(20, 7), order(20, 7));
        assert_ne!(order(20, 7), order(20, 8));
    }
}
