//! One figure over the rounds of a line: where it lies and how sure that is.

use stats::sample;
use stats::signed_rank::hodges_lehmann_interval;

/// A figure over several rounds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) point: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Rounds that it rests on.
    pub(crate) n: usize,
    /// True if the bounds are a 95 % interval; below six rounds they are the range that was seen.
    pub(crate) is_interval: bool,
}

/// The Hodges–Lehmann estimate with its exact 95 % interval, or median and range where there are
/// too few rounds for one. None without a finite value.
pub(crate) fn estimate(rounds: &[f64]) -> Option<Estimate> {
    let finite: Vec<f64> = rounds.iter().copied().filter(|value| value.is_finite()).collect();
    let n = finite.len();
    if let Ok(interval) = hodges_lehmann_interval(&finite, 0.95) {
        let stats::ConfidenceInterval { point, low, high, .. } = interval;
        return Some(Estimate { point, low, high, n, is_interval: true });
    }
    let low = finite.iter().copied().reduce(f64::min)?;
    let high = finite.iter().copied().reduce(f64::max)?;
    let point = sample::median(&finite)?;
    Some(Estimate { point, low, high, n, is_interval: false })
}
