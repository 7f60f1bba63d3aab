//! The ratio of two sides, through logarithms, so that b/a and a/b say the same and a factor costs
//! the same wherever it acts (Kalibera and Jones, "Rigorous benchmarking in reasonable time",
//! 2013).

use crate::centre;
use crate::interval::{ConfidenceInterval, NoInterval};
use crate::student;

/// `numerators[i] / denominators[i]` over the rounds i: the centre of ln(bᵢ/aᵢ) with its interval
/// by [`centre::interval`], taken back by exp; the point is a geometric mean. Pairs cancel what a
/// whole round has in common, such as a noisy neighbour, and make the noise of the logarithms
/// symmetric where both sides are disturbed alike.
///
/// # Errors
/// When the sides differ in length, a value is not above zero or not finite, or there are fewer
/// than two pairs.
pub fn paired(
    numerators: &[f64],
    denominators: &[f64],
    confidence: f64,
) -> Result<ConfidenceInterval, NoInterval> {
    let logs = log_ratios(numerators, denominators)?;
    Ok(centre::interval(&logs, confidence)?.map(f64::exp))
}

/// The ratio of two samples that are not paired, such as the rounds of two runs: Welch's interval
/// for the difference of the means of their logarithms, taken back by exp.
///
/// # Errors
/// When a value is not above zero or not finite, or a side has fewer than two values.
pub fn unpaired(
    numerators: &[f64],
    denominators: &[f64],
    confidence: f64,
) -> Result<ConfidenceInterval, NoInterval> {
    let (numerators, denominators) = (logs(numerators)?, logs(denominators)?);
    Ok(student::difference_interval(&numerators, &denominators, confidence)?.map(f64::exp))
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

/// bᵢ/(aᵢ+bᵢ) for every pair: it rises with the ratio, from 0 to 1, and exists where one side is
/// zero, as when a server completed nothing in a whole round.
///
/// # Errors
/// When the sides differ in length, a value is negative or not finite, or both sides of a pair are
/// zero.
pub fn shares(numerators: &[f64], denominators: &[f64]) -> Result<Vec<f64>, NoInterval> {
    let (left, right) = (numerators.len(), denominators.len());
    if left != right {
        return Err(NoInterval::Unpaired { left, right });
    }
    let share = |(b, a): (&f64, &f64)| match (*b, *a) {
        (b, a) if !b.is_finite() || !a.is_finite() => Err(NoInterval::NotFinite),
        (b, a) if b < 0.0 || a < 0.0 || b + a == 0.0 => Err(NoInterval::NotPositive),
        (b, a) => Ok(b / (a + b)),
    };
    numerators.iter().zip(denominators).map(share).collect()
}

/// The ratio that a share of [`shares`] stands for; 0 and infinity at its ends and beyond.
pub fn of_share(share: f64) -> f64 {
    match share {
        share if share >= 1.0 => f64::INFINITY,
        share => share.max(0.0) / (1.0 - share),
    }
}

/// The logarithms of values that have one.
///
/// # Errors
/// When a value is not above zero or not finite.
pub fn logs(values: &[f64]) -> Result<Vec<f64>, NoInterval> {
    values.iter().map(|value| log(*value)).collect()
}

fn log(value: f64) -> Result<f64, NoInterval> {
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
    const AFTER: [f64; 6] = [130.0, 121.0, 117.0, 120.0, 130.0, 118.0];

    #[test]
    fn a_constant_factor_is_found_whatever_the_rounds_have_in_common() {
        let after = BEFORE.map(|tps| tps * 1.25);
        let ratio = paired(&after, &BEFORE, 0.95).expect("six pairs");
        for bound in [ratio.low, ratio.point, ratio.high] {
            assert!((bound - 1.25).abs() < 1e-12, "{ratio:?}");
        }
        let apart = unpaired(&after, &BEFORE, 0.95).expect("six rounds each");
        assert!((apart.point - 1.25).abs() < 1e-12 && apart.low < 1.2 && apart.high > 1.3);
    }

    #[test]
    fn the_inverse_ratio_is_the_inverse() {
        for ratio in [paired, unpaired] {
            let up = ratio(&AFTER, &BEFORE, 0.95).expect("six rounds");
            let down = ratio(&BEFORE, &AFTER, 0.95).expect("six rounds");
            assert!((up.point * down.point - 1.0).abs() < 1e-12);
            assert!((up.low * down.high - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn a_side_of_zero_has_a_share() {
        let shares = shares(&[0.0, 3.0, 5.0], &[2.0, 1.0, 0.0]).expect("one side of each");
        assert_eq!(shares, [0.0, 0.75, 1.0]);
        assert_eq!([0.0, 0.75, 1.0].map(of_share), [0.0, 3.0, f64::INFINITY]);
        assert_eq!([-0.5, 1.5].map(of_share), [0.0, f64::INFINITY]);
        let check = |b: f64, a: f64, expected| assert_eq!(super::shares(&[b], &[a]), Err(expected));
        check(0.0, 0.0, NoInterval::NotPositive);
        check(-1.0, 2.0, NoInterval::NotPositive);
        check(f64::NAN, 2.0, NoInterval::NotFinite);
    }

    #[test]
    fn reasons_for_no_ratio() {
        let check = |b: &[f64], a: &[f64], expected| {
            assert_eq!(paired(b, a, 0.95), Err(expected));
        };
        check(&[1.0], &[], NoInterval::Unpaired { left: 1, right: 0 });
        check(&[1.0], &[0.0], NoInterval::NotPositive);
        check(&[f64::NAN], &[1.0], NoInterval::NotFinite);
        check(&[1.0], &[1.0], NoInterval::TooFew { n: 1, needed: 2 });
        assert_eq!(unpaired(&[1.0, 0.0], &[1.0, 2.0], 0.95), Err(NoInterval::NotPositive));
    }
}
