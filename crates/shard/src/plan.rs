//! The buckets that have to move, so that every node holds its share: as few as possible.

use std::collections::BTreeMap;

/// Buckets that move together from one node to another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Batch {
    /// The node that they leave.
    pub from: i32,
    /// The node that they go to.
    pub to: i32,
    /// The buckets, ascending.
    pub buckets: Vec<i32>,
}

/// The moves after which each of `nodes` holds ⌊b/n⌋ or ⌈b/n⌉ of the b buckets, and no other node
/// holds any. `owners` names each bucket's node; a batch has at most `batch_max` buckets.
///
/// The number of moved buckets is the minimum: a node that has more than its share gives only
/// what is too much, and the larger shares go to the nodes that hold most already.
///
/// Without nodes there is nowhere to move to, and no moves.
pub fn plan(owners: &[i32], nodes: &[i32], batch_max: usize) -> Vec<Batch> {
    if nodes.is_empty() {
        return Vec::new();
    }
    let mut held: BTreeMap<i32, Vec<i32>> = nodes.iter().map(|node| (*node, Vec::new())).collect();
    for (bucket, owner) in (0..).zip(owners) {
        held.entry(*owner).or_default().push(bucket);
    }
    let shares = shares(&held, nodes, owners.len());
    let mut surplus = Vec::new();
    for (node, buckets) in &mut held {
        // A node that is to be emptied has no share.
        let share = shares.get(node).copied().unwrap_or(0);
        let extra = buckets.split_off(share.min(buckets.len()));
        surplus.extend(extra.into_iter().map(|bucket| (*node, bucket)));
    }
    let mut moves: BTreeMap<(i32, i32), Vec<i32>> = BTreeMap::new();
    for (node, share) in &shares {
        let wanted = share - held[node].len().min(*share);
        for (from, bucket) in surplus.drain(..wanted.min(surplus.len())) {
            moves.entry((from, *node)).or_default().push(bucket);
        }
    }
    let mut batches = Vec::new();
    for ((from, to), mut buckets) in moves {
        buckets.sort_unstable();
        let chunks = buckets.chunks(batch_max.max(1));
        batches.extend(chunks.map(|chunk| Batch { from, to, buckets: chunk.to_vec() }));
    }
    batches
}

/// Number of buckets that each node shall hold. The remainder goes to those that hold most.
fn shares(held: &BTreeMap<i32, Vec<i32>>, nodes: &[i32], buckets: usize) -> BTreeMap<i32, usize> {
    let mut by_holding: Vec<i32> = held.keys().copied().filter(|n| nodes.contains(n)).collect();
    by_holding.sort_by_key(|node| (std::cmp::Reverse(held[node].len()), *node));
    let (share, remainder) = (buckets / by_holding.len(), buckets % by_holding.len());
    let shares = by_holding.into_iter().enumerate();
    shares.map(|(rank, node)| (node, share + usize::from(rank < remainder))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counts(owners: &[i32], nodes: &[i32]) -> Vec<usize> {
        nodes.iter().map(|node| owners.iter().filter(|owner| *owner == node).count()).collect()
    }

    fn spread(buckets: i32, nodes: i32) -> Vec<i32> {
        (0..buckets).map(|bucket| bucket % nodes).collect()
    }

    #[test]
    fn adding_and_removing_move_no_more_than_they_have_to() {
        let check = |owners: Vec<i32>, nodes: &[i32], moved: usize| {
            let batches = plan(&owners, nodes, 8);
            assert_eq!(batches.iter().map(|batch| batch.buckets.len()).sum::<usize>(), moved);
        };
        check(spread(128, 4), &[0, 1, 2, 3, 4], 25);
        check(spread(128, 4), &[0, 1, 2, 3, 4, 5, 6, 7], 64);
        check(spread(128, 5), &[0, 1, 2, 3], 25);
        check(spread(128, 4), &[0, 1, 2, 3], 0);
        check(spread(128, 3), &[0, 1, 2], 0);
        check(vec![0; 128], &[0, 1], 64);
        check(spread(128, 4), &[], 0);
    }

    #[test]
    fn batches_belong_to_one_source_and_target() {
        let batches = plan(&[0; 8], &[0, 1], 3);
        let expected = [
            Batch { from: 0, to: 1, buckets: vec![4, 5, 6] },
            Batch { from: 0, to: 1, buckets: vec![7] },
        ];
        assert_eq!(batches, expected);
    }

    proptest! {
        #[test]
        fn afterwards_all_is_balanced_and_nothing_lost_and_no_move_was_idle(
            owners in proptest::collection::vec(0..9_i32, 1..300),
            nodes in proptest::collection::btree_set(0..9_i32, 1..9),
            batch_max in 1..20_usize,
        ) {
            let nodes: Vec<i32> = nodes.into_iter().collect();
            let batches = plan(&owners, &nodes, batch_max);
            let mut after = owners.clone();
            for batch in &batches {
                prop_assert!(batch.buckets.len() <= batch_max && batch.from != batch.to);
                for bucket in &batch.buckets {
                    let owner = &mut after[usize::try_from(*bucket).unwrap()];
                    prop_assert_eq!(*owner, batch.from, "each bucket moves once");
                    *owner = batch.to;
                }
            }
            let counts_after = counts(&after, &nodes);
            prop_assert_eq!(counts_after.iter().sum::<usize>(), owners.len());
            let (low, high) = (counts_after.iter().min(), counts_after.iter().max());
            prop_assert!(high.unwrap() - low.unwrap() <= 1);

            // The fewest: what nodes hold above any fair share has to leave them, and with the
            // larger shares at the fullest nodes nothing else does.
            let moved: usize = batches.iter().map(|batch| batch.buckets.len()).sum();
            let mut before = counts(&owners, &nodes);
            before.sort_unstable_by(|a, b| b.cmp(a));
            let (share, rest) = (owners.len() / nodes.len(), owners.len() % nodes.len());
            let kept: usize = before.iter().enumerate()
                .map(|(rank, count)| *count.min(&(share + usize::from(rank < rest)))).sum();
            prop_assert_eq!(moved, owners.len() - kept);
        }
    }
}
