//! Several comparisons at once: the more are made, the more differ by chance.

/// The chance that is allowed for that any verdict of a family of them is wrong.
pub const FAMILY_ERROR: f64 = 0.05;

/// The p-values of a family of comparisons, adjusted by Holm's step-down method ("A simple
/// sequentially rejective multiple test procedure", 1979) and in the order given: those that stay
/// at or below α are differences, with a chance of at most α that any of them is there by chance alone. NaN counts
/// as 1.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let p_of = |index: usize| match p_values[index] {
        p if p.is_nan() => 1.0,
        p => p.clamp(0.0, 1.0),
    };
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_of(a).total_cmp(&p_of(b)));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut largest = 0.0f64;
    for (step, &index) in order.iter().enumerate() {
        let factor = (p_values.len() - step) as f64;
        largest = largest.max((p_of(index) * factor).min(1.0));
        adjusted[index] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjusted_as_by_r() {
        let check = |given: &[f64], expected: &[f64]| {
            let adjusted = holm(given);
            let close = adjusted.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12);
            assert!(close && adjusted.len() == expected.len(), "{given:?}: {adjusted:?}");
        };
        check(&[], &[]);
        check(&[0.03], &[0.03]);
        check(&[0.01, 0.04, 0.03, 0.005], &[0.03, 0.06, 0.06, 0.02]);
        check(&[0.9, 0.8], &[1.0, 1.0]);
        check(&[f64::NAN, 0.01], &[1.0, 0.02]);
    }
}
