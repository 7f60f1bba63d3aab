//! How many times as much: the ratio of two variants measured in the same rounds.

use crate::interval::{Interval, NoInterval};
use crate::signed_rank;

/// `numerators[i] / denominators[i]` over the rounds i, through logarithms: the Hodges–Lehmann
/// estimate of ln(bᵢ/aᵢ) and its exact interval, taken back by exp. Pairs cancel what a whole round
/// has in common, such as a noisy neighbour; logarithms make b/a and a/b say the same (Kalibera and
/// Jones, 2013, report ratios with intervals).
///
/// # Errors
/// When the sides differ in length, a value is not above zero or not finite, or there are too few
/// rounds for the confidence (six for 95 %).
pub fn paired_ratio(
    numerators: &[f64],
    denominators: &[f64],
    confidence: f64,
) -> Result<Interval, NoInterval> {
    let logs = log_ratios(numerators, denominators)?;
    Ok(signed_rank::hodges_lehmann_interval(&logs, confidence)?.map(f64::exp))
}

/// ln(bᵢ/aᵢ) for every pair.
///
/// # Errors
/// When the sides differ in length, or a value is not above zero or not finite.
pub fn log_ratios(numerators: &[f64], denominators: &[f64]) -> Result<Vec<f64>, NoInterval> {
    let (left, right) = (numerators.len(), denominators.len());
    if left != right {
        return Err(NoInterval::Unpaired { left, right });
    }
    numerators.iter().zip(denominators).map(|(b, a)| Ok(log(*b)? - log(*a)?)).collect()
}

/// The logarithm of a value that has one.
pub(crate) fn log(value: f64) -> Result<f64, NoInterval> {
    match value {
        value if !value.is_finite() => Err(NoInterval::NotFinite),
        value if value <= 0.0 => Err(NoInterval::NotPositive),
        value => Ok(value.ln()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: [f64; 6] = [100.0, 110.0, 90.0, 105.0, 95.0, 100.0];

    #[test]
    fn a_constant_factor_is_found_whatever_the_rounds_have_in_common() {
        let after = BEFORE.map(|tps| tps * 1.25);
        let ratio = paired_ratio(&after, &BEFORE, 0.95).expect("six pairs");
        for bound in [ratio.low, ratio.point, ratio.high] {
            assert!((bound - 1.25).abs() < 1e-12, "{ratio:?}");
        }
    }

    #[test]
    fn the_inverse_ratio_is_the_inverse() {
        let after = [130.0, 121.0, 117.0, 120.0, 130.0, 118.0];
        let up = paired_ratio(&after, &BEFORE, 0.95).expect("six pairs");
        let down = paired_ratio(&BEFORE, &after, 0.95).expect("six pairs");
        assert!((up.point * down.point - 1.0).abs() < 1e-12);
        assert!((up.low * down.high - 1.0).abs() < 1e-12);
    }

    #[test]
    fn reasons_for_no_ratio() {
        let check = |b: &[f64], a: &[f64], expected| {
            assert_eq!(paired_ratio(b, a, 0.95), Err(expected));
        };
        check(&[1.0], &[], NoInterval::Unpaired { left: 1, right: 0 });
        check(&[1.0], &[0.0], NoInterval::NotPositive);
        check(&[f64::NAN], &[1.0], NoInterval::NotFinite);
        check(&[1.0; 5], &[1.0; 5], NoInterval::TooFew { n: 5, needed: 6 });
    }
}
