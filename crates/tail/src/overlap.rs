//! Looks, and the time that each stands for.

use crate::{Activity, Look};

/// A look stands for no more time than this, however long the sampler was away.
const STANDS_FOR_NS_MAX: u64 = 1_000_000_000;

/// The time that each look stands for, in seconds: from the middle of the gap before it to the middle
/// of the gap after it. Where looks were rare, because the machine was busy, each counts for more.
pub(crate) fn weights(activity: &Activity) -> Vec<f64> {
    let looks = activity.looks();
    let gap = |from: usize, to: usize| match (looks.get(from), looks.get(to)) {
        (Some(from), Some(to)) => to.at.saturating_sub(from.at).min(STANDS_FOR_NS_MAX) as f64 / 2e9,
        _ => 0.0,
    };
    let weight = |index: usize| {
        let before = index.checked_sub(1).map_or(0.0, |before| gap(before, index));
        (before + gap(index, index + 1)).max(1e-9)
    };
    (0..looks.len()).map(weight).collect()
}

/// Indexes of the looks between two moments.
pub(crate) fn within(looks: &[Look], from: u64, to: u64) -> std::ops::Range<usize> {
    let first = looks.partition_point(|look| look.at < from);
    let last = looks.partition_point(|look| look.at <= to);
    first..last.max(first)
}
