//! The end of the warm-up, by the marginal standard error rule.

/// Truncations that leave fewer batches than this are not considered: of two batches that happen
/// to agree, the standard error is next to nothing.
const TAIL_BATCHES_MIN: usize = 3;

/// The number of batches d to leave out so that the standard error of the mean of the rest is
/// smallest: the d ≤ `truncation_max` that minimises Σ(zᵢ−z̄)² ÷ (k−d)² over the k−d batches left
/// (White, "An effective truncation heuristic for bias reduction in simulation output", 1997;
/// White, Cobb and Spratt, 2000, for means of batches: MSER-5). The smallest such d. `None` when
/// there are fewer than three batches.
pub(crate) fn truncation(batches: &[f64], truncation_max: usize) -> Option<usize> {
    let largest = batches.len().checked_sub(TAIL_BATCHES_MIN)?.min(truncation_max);
    let mut best: Option<(f64, usize)> = None;
    // From the end, so that each batch is added once (Welford's update of mean and squares).
    let (mut mean, mut squares) = (0.0, 0.0);
    for (first, batch) in batches.iter().enumerate().rev() {
        let count = (batches.len() - first) as f64;
        let off = batch - mean;
        mean += off / count;
        squares += off * (batch - mean);
        let error = squares / (count * count);
        if first <= largest && best.is_none_or(|(smallest, _)| error <= smallest) {
            best = Some((error, first));
        }
    }
    best.map(|(_, first)| first)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_ramp_is_cut_off() {
        let check = |batches: &[f64], expected: Option<usize>| {
            assert_eq!(truncation(batches, batches.len()), expected, "{batches:?}");
        };
        check(&[], None);
        check(&[1.0, 1.0], None);
        check(&[5.0, 5.0, 5.0, 5.0], Some(0));
        check(&[1.0, 5.0, 5.0, 5.0, 5.0], Some(1));
        check(&[1.0, 3.0, 4.9, 5.1, 5.0, 4.9, 5.0, 5.1], Some(2));
        // Rising to the end: whatever is left out, the rest still rises.
        check(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], Some(4));
    }

    proptest! {
        #[test]
        fn it_is_the_smallest_error(values in prop::collection::vec(0.0..1e4f64, 3..40)) {
            let chosen = truncation(&values, values.len()).expect("three or more");
            let error = |first: usize| {
                let rest = &values[first..];
                let mean = rest.iter().sum::<f64>() / rest.len() as f64;
                let squares: f64 = rest.iter().map(|value| (value - mean).powi(2)).sum();
                squares / (rest.len() as f64).powi(2)
            };
            for first in 0..=values.len() - 3 {
                prop_assert!(error(chosen) <= error(first) * (1.0 + 1e-9) + 1e-12);
            }
        }
    }
}
