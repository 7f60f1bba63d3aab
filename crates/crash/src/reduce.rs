//! Delta debugging: the smallest part of what failed that still fails.

/// Leaves out of `items` whatever is not needed for `fails` to be true, with at most `budget` calls;
/// with more calls nothing that is left could be left out alone (Zeller and Hildebrandt, 2002).
/// `fails` is true for all of them.
pub fn reduce<T: Clone>(items: &[T], budget: usize, mut fails: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let (mut left, mut calls) = (items.to_vec(), 0);
    let mut try_it = |some: &[T]| {
        calls += 1;
        (calls <= budget).then(|| fails(some))
    };
    // A failure that needs no loss at all is the most telling one.
    match try_it(&[]) {
        Some(true) => return Vec::new(),
        Some(false) => {}
        None => return left,
    }
    let mut parts = 2;
    while left.len() >= 2 {
        let size = left.len().div_ceil(parts);
        let mut smaller = None;
        for start in (0..left.len()).step_by(size) {
            let end = (start + size).min(left.len());
            let rest = [&left[..start], &left[end..]].concat();
            // At the first step the rest of one half is the other one.
            for some in [left[start..end].to_vec(), rest] {
                if some.len() == left.len() || some.is_empty() {
                    continue;
                }
                match try_it(&some) {
                    Some(true) => smaller = Some(some),
                    Some(false) => continue,
                    None => return left,
                }
                break;
            }
            if smaller.is_some() {
                break;
            }
        }
        match smaller {
            Some(some) => {
                parts = if some.len() <= size { 2 } else { (parts - 1).max(2) };
                left = some;
            }
            None if size == 1 => break,
            None => parts = (parts * 2).min(left.len()),
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::reduce;

    proptest! {
        #[test]
        fn only_what_is_needed_is_left(
            needed in prop::collection::btree_set(0..60_u32, 0..5),
            budget in 0..400_usize,
        ) {
            let items: Vec<u32> = (0..60).collect();
            let fails = |some: &[u32]| needed.iter().all(|item| some.contains(item));
            let all = reduce(&items, usize::MAX, fails);
            prop_assert_eq!(&all.iter().copied().collect::<BTreeSet<_>>(), &needed);
            let mut calls = 0;
            let some = reduce(&items, budget, |some| {
                calls += 1;
                fails(some)
            });
            prop_assert!(calls <= budget);
            // Whatever is given back fails.
            prop_assert!(fails(&some));
        }
    }
}
