//! The length of a block, chosen by a short load of one side alone.
//!
//! One side against itself is a true A/A comparison. Its throughput, counted in small slices, is
//! cut into octets of blocks of each candidate length, as if every other block belonged to another
//! server, and the length is chosen whose octets say most in a second of measuring.

use record::comparison::OCTET_PAIRS;

use crate::pair::design::{CYCLE, OCTET, ORDER, QUAD};

/// Length of a slice, in milliseconds.
pub(crate) const SLICE_MS: u64 = 50;

/// Candidates, in milliseconds. Multiples of a slice.
pub(crate) const LENGTHS_MS: [u64; 5] = [200, 350, 600, 1_000, 2_000];

/// A given length, and the candidates that are longer.
pub(crate) fn at_least(given_ms: u64) -> impl Iterator<Item = u64> {
    let longer = LENGTHS_MS.into_iter().filter(move |length_ms| *length_ms > given_ms);
    std::iter::once(given_ms).chain(longer)
}

/// Transactions under way when a block ends have this multiple of their mean latency to end in,
/// before the next block begins.
const REST_LATENCIES: f64 = 3.0;

/// Octets of a length that a pilot must hold for its variance to be judged.
const OCTETS_MIN: usize = 3;

/// Transactions of one client that a block must have room for.
const TRANSACTIONS_MIN: f64 = 10.0;

/// A turn takes about this, and one transaction at least.
const TURN_S: f64 = 1.0;

/// Connecting for a turn.
const CONNECT_S: f64 = 0.1;

/// The length and the rest of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BlockShape {
    /// From the beginning of a block to that of the next, in milliseconds; of turns, what one takes on
    /// average.
    pub length_ms: u64,
    /// The part at its end in which no transaction begins, in milliseconds.
    pub rest_ms: u64,
    /// Transactions of each client in a block that ends with the last of them, where they are too long
    /// for blocks of a fixed length.
    pub turn: Option<u64>,
    /// Transactions a second that the slower side did in its pilot.
    pub tps: f64,
    /// The variance of the logarithm of B ÷ A in an octet times the seconds that it takes, of the noisier side against
    /// itself in its pilot; none where that showed none.
    pub variance_s: Option<f64>,
}

impl BlockShape {
    /// Length of an octet of blocks, in seconds, the block that leads in included.
    pub(crate) fn octet_s(self) -> f64 {
        let blocks = if self.turn.is_some() { QUAD } else { CYCLE };
        blocks as f64 * self.length_ms as f64 / 1e3
    }

    /// Length of the block that follows the last octet of a segment, in milliseconds; turns have none.
    pub(crate) fn led_out_ms(self) -> u64 {
        if self.turn.is_some() { 0 } else { self.length_ms }
    }

    /// The pairs of such an octet; of turns, of a quad.
    pub(crate) fn pairs(self) -> usize {
        if self.turn.is_some() { QUAD / 2 } else { OCTET_PAIRS }
    }

    /// Time during which a block begins transactions, in seconds.
    pub(crate) fn active_s(self) -> f64 {
        (self.length_ms - self.rest_ms) as f64 / 1e3
    }

    /// Blocks of so many transactions that a turn of the slower side takes about a second, for sides
    /// with these mean latencies.
    pub(crate) fn of_turns(means_s: [f64; 2], clients: u32) -> BlockShape {
        let [a, b] = means_s;
        let turn = (TURN_S / a.max(b)).round().max(1.0);
        let length_ms = ((turn * (a + b) / 2.0 + CONNECT_S) * 1e3).ceil() as u64;
        let tps = f64::from(clients) / a.max(b);
        BlockShape { length_ms, rest_ms: 0, turn: Some(turn as u64), tps, variance_s: None }
    }
}

/// Chooses the length and the rest of a block for a side that did `slices` transactions, one count each [`SLICE_MS`], with
/// this mean latency, from these lengths. None where transactions are too long for all of them.
pub(crate) fn shape(slices: &[u64], mean_latency_s: f64, lengths_ms: &[u64]) -> Option<(u64, u64)> {
    let rest_ms = ((REST_LATENCIES * mean_latency_s * 1e3).ceil() as u64).max(5);
    let fits = |length_ms: &&u64| {
        let active_s = length_ms.saturating_sub(rest_ms) as f64 / 1e3;
        active_s >= TRANSACTIONS_MIN * mean_latency_s && rest_ms * 4 <= **length_ms
    };
    let fitting: Vec<u64> = lengths_ms.iter().filter(fits).copied().collect();
    let judged = fitting.iter().filter_map(|&length_ms| {
        let active = (length_ms - rest_ms) as f64 / length_ms as f64;
        // A rest costs time in which nothing is measured.
        variance_per_second(slices, length_ms).map(|cost| (cost / active, length_ms))
    });
    let best = judged.min_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, length)| length);
    let length_ms = best.or(fitting.first().copied())?;
    Some((length_ms, rest_ms))
}

/// The variance of an octet's log-ratio, times the seconds that the octet takes; none where there are
/// too few octets to tell. Octets overlap, which makes the most of a short pilot.
pub(crate) fn variance_per_second(slices: &[u64], length_ms: u64) -> Option<f64> {
    let each = (length_ms / SLICE_MS) as usize;
    if slices.len() < OCTETS_MIN * OCTET * each {
        return None;
    }
    let mut squares = 0.0;
    let mut n = 0;
    for octet in slices.windows(OCTET * each).step_by(each.div_ceil(4)) {
        let block = |index: usize| octet[index * each..(index + 1) * each].iter().sum::<u64>();
        let mut sums = [0_u64; 2];
        (0..OCTET).for_each(|index| sums[ORDER[index]] += block(index));
        let [a, b] = sums.map(|sum| sum as f64);
        if a == 0.0 || b == 0.0 {
            continue;
        }
        squares += (b / a).ln().powi(2);
        n += 1;
    }
    let seconds = OCTET as f64 * length_ms as f64 / 1e3;
    (n > 0).then(|| squares / f64::from(n) * seconds)
}

#[cfg(test)]
mod tests {
    use stats::Prng;

    use super::*;

    /// 20 s of slices whose level stays for `hold` slices and then moves.
    fn slices(hold: usize) -> Vec<u64> {
        let mut prng = Prng::new(3);
        let mut level = 0.0;
        (0..400)
            .map(|index| {
                if index % hold == 0 {
                    level = 0.3 * (prng.unit() - 0.5);
                }
                (1_000.0 * (1.0 + level + 0.02 * (prng.unit() - 0.5))) as u64
            })
            .collect()
    }

    #[test]
    fn slow_changes_ask_for_short_blocks() {
        let shape = shape(&slices(40), 0.001, &LENGTHS_MS).expect("a shape");
        assert_eq!(shape, (200, 5));
    }

    #[test]
    fn a_block_holds_many_transactions_and_a_rest_for_the_last() {
        let check = |latency_s: f64, expected: Option<(u64, u64)>| {
            let seen = shape(&slices(40), latency_s, &LENGTHS_MS);
            assert_eq!(seen, expected, "{latency_s} s");
        };
        check(0.010, Some((200, 30)));
        check(0.040, Some((600, 120)));
        check(0.150, Some((2_000, 450)));
        check(0.500, None);
    }

    #[test]
    fn a_short_pilot_takes_the_shortest_block_that_fits() {
        assert_eq!(shape(&[100; 10], 0.001, &LENGTHS_MS).expect("a shape").0, 200);
    }

    #[test]
    fn turns_hold_whole_transactions() {
        let check = |means: [f64; 2], turn: u64, quad_s: f64| {
            let shape = BlockShape::of_turns(means, 1);
            assert_eq!(shape.turn, Some(turn), "{means:?}");
            assert!((shape.octet_s() - quad_s).abs() < 0.01, "{means:?}: {}", shape.octet_s());
        };
        check([0.25, 0.25], 4, 4.4);
        check([30.0, 0.1], 1, 60.6);
    }
}
