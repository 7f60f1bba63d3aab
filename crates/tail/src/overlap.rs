//! Looks, and the time that each stands for.

use crate::{ActivityLook, ActivitySamples};

/// A look stands for no more time than this, however long the sampler was away.
const STANDS_FOR_NS_MAX: u64 = 1_000_000_000;

/// The time that each look stands for, in seconds: from the middle of the gap before it to the middle
/// of the gap after it. Where looks were rare, because the machine was busy, each counts for more. A pause
/// is nobody's time.
pub(crate) fn weights(activity: &ActivitySamples) -> Vec<f64> {
    let looks = activity.looks();
    let gap = |from: usize, to: usize| match (looks.get(from), looks.get(to)) {
        (Some(_), Some(to)) if to.follows_pause => 0.0,
        (Some(from), Some(to)) => to.at.saturating_sub(from.at).min(STANDS_FOR_NS_MAX) as f64 / 2e9,
        _ => 0.0,
    };
    let weight = |index: usize| {
        // Nothing comes before the first look.
        let before = index.checked_sub(1).map_or(0.0, |before| gap(before, index));
        (before + gap(index, index + 1)).max(1e-9)
    };
    (0..looks.len()).map(weight).collect()
}

/// Indexes of the looks between two moments.
pub(crate) fn within(looks: &[ActivityLook], from: u64, to: u64) -> std::ops::Range<usize> {
    let first = looks.partition_point(|look| look.at < from);
    let last = looks.partition_point(|look| look.at <= to);
    first..last.max(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BackgroundActivity, SamplingMethod};

    #[test]
    fn a_look_stands_for_the_time_around_it_but_for_pauses() {
        let mut activity = ActivitySamples::from(SamplingMethod::View);
        // In tenths of a second; a pause is before the fourth look.
        for (at, pauses) in [(0, true), (2, false), (6, false), (20, true), (22, false)] {
            if pauses {
                activity.pause();
            }
            activity.add(at * 100_000_000, BackgroundActivity::default(), []);
        }
        let tenths: Vec<f64> = weights(&activity).iter().map(|weight| weight * 10.0).collect();
        let expected = [1.0, 3.0, 2.0, 1.0, 1.0];
        assert!(
            tenths.iter().zip(expected).all(|(one, other)| (one - other).abs() < 1e-6),
            "{tenths:?}"
        );
    }
}
