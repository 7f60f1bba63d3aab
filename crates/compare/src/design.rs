//! The order of blocks.

use stats::Prng;

/// What the sides are called: A is side 0, B is side 1.
pub const SIDES: [&str; 2] = ["A", "B"];

/// Blocks of a quad.
pub(crate) const QUAD: usize = 4;

/// The side that each block belongs to: quads ABBA and their mirror image BAAB.
///
/// Within a quad, whatever rises or falls steadily meets both sides alike. Of two consecutive quads
/// one begins with A and one with B, in random order, so that a disturbance with a period of its
/// own favours no side.
pub(crate) fn order(quads: usize, seed: u64) -> Vec<usize> {
    let mut prng = Prng::new(seed);
    let mut blocks = Vec::with_capacity(quads * QUAD);
    let mut second = None;
    for _ in 0..quads {
        let outer = match second.take() {
            Some(outer) => outer,
            None => {
                let outer = usize::from(prng.unit() < 0.5);
                second = Some(1 - outer);
                outer
            }
        };
        let inner = 1 - outer;
        blocks.extend([outer, inner, inner, outer]);
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_quad_is_balanced_and_so_are_two_neighbours() {
        for seed in 0..20 {
            let order = order(50, seed);
            for quad in order.chunks(QUAD) {
                assert_eq!((quad[0], quad[1]), (quad[3], quad[2]));
                assert_ne!(quad[0], quad[1]);
            }
            for two in order.chunks(2 * QUAD) {
                assert_ne!(two[0], two[QUAD], "seed {seed}");
            }
        }
    }

    #[test]
    fn seeds_differ_and_repeat() {
        assert_eq!(order(20, 7), order(20, 7));
        assert_ne!(order(20, 7), order(20, 8));
    }
}
