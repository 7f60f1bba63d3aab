//! In which order the points of a round are run, so that no point owes its figures to its place.
//!
//! The rows of a Williams design ("Experimental designs balanced for the estimation of residual
//! effects of treatments", 1949), points dealt to it at random. Rows come in pairs, each followed
//! by its mirror: over any pair of rounds each point is as often before another as after it, and
//! a drift that goes on evenly falls on all alike. Over a whole design each point also follows
//! each other one equally often. Where there are fewer rounds than rows, the rows that are run
//! are drawn at random; where there are more, points are dealt anew.

use stats::Prng;

/// The order of `points` for each of `rounds` rounds.
pub(crate) fn orders(points: &[usize], rounds: usize, random: &mut Prng) -> Vec<Vec<usize>> {
    let mut orders = Vec::with_capacity(rounds + 1);
    while orders.len() < rounds {
        let mut dealt = points.to_vec();
        random.shuffle(&mut dealt);
        let mut shifts: Vec<usize> = (0..rows(points.len())).collect();
        random.shuffle(&mut shifts);
        for shift in shifts {
            let row: Vec<usize> = row(points.len(), shift).map(|place| dealt[place]).collect();
            let mirror = row.iter().rev().copied().collect();
            orders.extend([row, mirror]);
        }
    }
    orders.truncate(rounds);
    orders
}

/// Rows of a design, mirrors not counted: of an even number of points the mirror of a row is
/// another row.
fn rows(points: usize) -> usize {
    if points.is_multiple_of(2) { (points / 2).max(1) } else { points }
}

/// Places 0, 1, n−1, 2, n−2, …, all moved on by `shift`.
fn row(points: usize, shift: usize) -> impl Iterator<Item = usize> {
    (0..points).map(move |index| {
        let step = index.div_ceil(2);
        let place = if index % 2 == 1 { step } else { points - step };
        (place + shift) % points
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Number of times that each point stands anywhere before another, and immediately before it.
    fn counts(points: usize, orders: &[Vec<usize>]) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
        let mut before = vec![vec![0; points]; points];
        let mut just_before = before.clone();
        for order in orders {
            for (at, &first) in order.iter().enumerate() {
                order[at + 1..].iter().for_each(|&second| before[first][second] += 1);
            }
            order.windows(2).for_each(|pair| just_before[pair[0]][pair[1]] += 1);
        }
        (before, just_before)
    }

    fn pairs(points: usize) -> impl Iterator<Item = (usize, usize)> {
        let all = (0..points).flat_map(move |a| (0..points).map(move |b| (a, b)));
        all.filter(|(a, b)| a != b)
    }

    #[test]
    fn over_a_whole_design_each_point_follows_each_other_equally_often() {
        for points in 2..=9usize {
            let indices: Vec<usize> = (0..points).collect();
            let (rounds, times) =
                if points.is_multiple_of(2) { (points, 1) } else { (2 * points, 2) };
            let orders = orders(&indices, rounds, &mut Prng::new(3));
            let (before, just_before) = counts(points, &orders);
            for (a, b) in pairs(points) {
                assert_eq!(before[a][b], rounds / 2, "{points} points: {a} before {b}");
                assert_eq!(just_before[a][b], times, "{points} points: {a} just before {b}");
            }
        }
    }

    proptest! {
        #[test]
        fn each_point_precedes_each_other_as_often_as_the_rounds_allow(
            points in 0usize..30, rounds in 0usize..25, seed: u64,
        ) {
            let indices: Vec<usize> = (0..points).collect();
            let orders = orders(&indices, rounds, &mut Prng::new(seed));
            prop_assert_eq!(orders.len(), rounds);
            for order in &orders {
                let mut sorted = order.clone();
                sorted.sort_unstable();
                prop_assert_eq!(&sorted, &indices);
            }
            let (before, _) = counts(points, &orders);
            for (a, b) in pairs(points) {
                prop_assert!(before[a][b].abs_diff(before[b][a]) <= rounds % 2);
            }
        }
    }
}
