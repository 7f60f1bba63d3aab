//! Do neighbouring rounds resemble each other? Every interval over rounds takes them for
//! independent; where the machine drifts from round to round they are not, and the interval is too
//! narrow.

use crate::prng::Prng;
use crate::sample;

/// Below this p-value rounds count as dependent.
const SIGNIFICANT: f64 = 0.05;

/// Orders that are drawn for the test. The smallest p-value is 1 ÷ (this + 1).
const ORDERS: usize = 1_999;

/// The lag-1 autocorrelation of values in the order of time, Σ(xᵢ−x̄)(xᵢ₊₁−x̄) ÷ Σ(xᵢ−x̄)²: near 1
/// where each is like the one before, around −1/n where their order means nothing. `None` below
/// three values, where all are equal, or where one is not finite.
fn autocorrelation(values: &[f64]) -> Option<f64> {
    let mean = sample::mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let usable = values.len() >= 3 && squares.is_finite() && squares > 0.0;
    usable.then(|| products(values, mean) / squares)
}

/// Dependence that was found, and what it does to an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SerialDependence {
    /// The lag-1 autocorrelation of the rounds.
    pub autocorrelation: f64,
    /// True if the rounds show it; else it is assumed.
    pub is_seen: bool,
    /// By how much the interval of their centre is to be wider on either side.
    pub widening: f64,
}

/// Factor by which the interval of the rounds' centre must be widened, if it must: √((1+ρ)/(1−ρ)),
/// which is the effect of first-order dependence on the error of a mean.
///
/// Six rounds that depend on each other with ρ = 0.5 look like independent ones in 85 of 100 cases,
/// and an interval that takes them for independent covers 78 %. Where nothing makes rounds independent
/// (`are_independent` is false), ρ is taken for [`DEPENDENCE_ASSUMED`] at least; such an interval
/// covers 94 % at ρ = 0.5, whatever the number of rounds, and 99.5 % of independent ones.
///
/// Where neighbours are alike, at [`SIGNIFICANT`], ρ is the autocorrelation, corrected for its bias in
/// short series, (n·r + 1) ÷ (n − 4) (Marriott and Pope, "Bias in the estimation of autocorrelations",
/// 1954), and at most [`DEPENDENCE_MAX`]: six rounds cannot tell how strong the dependence is, so there
/// the limit is what counts.
pub fn drift(values: &[f64], are_independent: bool) -> Option<SerialDependence> {
    let autocorrelation = autocorrelation(values)?;
    let is_seen = alike_p(values) <= SIGNIFICANT;
    let n = values.len() as f64;
    let corrected = (n * autocorrelation + 1.0) / (n - 4.0).max(1.0);
    let dependence = match (is_seen, are_independent) {
        (false, true) => return None,
        (false, false) => DEPENDENCE_ASSUMED,
        (true, true) => corrected.clamp(0.0, DEPENDENCE_MAX),
        (true, false) => corrected.clamp(DEPENDENCE_ASSUMED, DEPENDENCE_MAX),
    };
    Some(SerialDependence { autocorrelation, is_seen, widening: widening(dependence) })
}

/// The effect of first-order dependence on the error of a mean, √((1+ρ)/(1−ρ)).
pub(crate) fn widening(dependence: f64) -> f64 {
    ((1.0 + dependence) / (1.0 - dependence)).sqrt()
}

/// The first-order dependence that observations in the order of time are taken to have, whether it is significant or
/// not: their lag-1 autocorrelation without its expectation of −1/n, and not below 0. 0 where there is none.
pub(crate) fn dependence(values: &[f64]) -> f64 {
    let n = values.len().max(1) as f64;
    // Too few values, or equal ones, show no dependence.
    autocorrelation(values).map_or(0.0, |seen| (seen + 1.0 / n).clamp(0.0, DEPENDENCE_MAX))
}

/// How much neighbours among observations resemble each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NeighbourCorrelation {
    /// Their correlation: first-order, and not below 0.
    pub correlation: f64,
    /// True if independent observations have one as large in 1 of 100 cases at most. A wider interval does not make
    /// up for a dependence that is as clear as that.
    pub are_alike: bool,
}

/// 1 in 100 of a normal distribution lies above so many standard deviations.
const ONE_IN_A_HUNDRED: f64 = 2.326;

impl NeighbourCorrelation {
    /// Those of observations in the order of time. Of independent ones the correlation is normal, with a standard
    /// deviation of 1/√n (Anderson, "Distribution of the serial correlation coefficient", 1942).
    #[must_use]
    pub fn of(values: &[f64]) -> NeighbourCorrelation {
        let correlation = dependence(values);
        let are_alike = correlation * (values.len() as f64).sqrt() > ONE_IN_A_HUNDRED;
        NeighbourCorrelation { correlation, are_alike }
    }
}

/// The strongest dependence that is allowed for; it makes an interval 4.4 times as wide.
const DEPENDENCE_MAX: f64 = 0.9;

/// The dependence of rounds between which no server was restarted; it makes an interval 1.7 times as
/// wide.
const DEPENDENCE_ASSUMED: f64 = 0.5;

/// The one-sided p-value of the hypothesis that the order of `values` means nothing, against
/// neighbours being alike: the share of random orders whose lag-1 autocorrelation is at least as
/// large (a permutation test, valid for any distribution; Wald and Wolfowitz, "An exact test for
/// randomness", 1943). The same values give the same answer. 1 where there is no autocorrelation.
fn alike_p(values: &[f64]) -> f64 {
    let Some(_) = autocorrelation(values) else { return 1.0 };
    let mean = sample::mean(values).expect("values with an autocorrelation have a mean");
    // The tolerance keeps orders that give the same sum but for rounding.
    let seen = products(values, mean);
    let seen = seen - seen.abs() * 1e-9;
    let mut order = values.to_vec();
    let mut prng = Prng::new(values.len() as u64);
    let as_large = (0..ORDERS).filter(|_| {
        prng.shuffle(&mut order);
        products(&order, mean) >= seen
    });
    (as_large.count() + 1) as f64 / (ORDERS + 1) as f64
}

fn products(values: &[f64], mean: f64) -> f64 {
    values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trend_is_seen_and_alternation_is_not() {
        let rising = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        assert!(alike_p(&rising) < SIGNIFICANT, "{}", alike_p(&rising));
        let drift = drift(&rising, true).expect("a trend");
        assert!(
            (drift.autocorrelation - 0.5).abs() < 1e-12 && (drift.widening - 4.36).abs() < 0.01
        );
        let turning = [1.0, -1.0, 1.0, -1.0, 1.0, -1.0];
        assert!(alike_p(&turning) > 0.9);
        let step: Vec<f64> = (0..20).map(|round| f64::from(round / 10)).collect();
        assert!(alike_p(&step) < 0.001);
    }

    #[test]
    fn without_an_order_there_is_nothing_to_see() {
        for values in [&[][..], &[1.0, 2.0], &[3.0; 6], &[1.0, f64::NAN, 2.0]] {
            assert_eq!((autocorrelation(values), alike_p(values)), (None, 1.0), "{values:?}");
        }
    }

    /// Six rounds and more that depend on each other, whether they show it or not.
    #[test]
    fn a_widened_interval_covers_rounds_that_depend_on_each_other() {
        const SAMPLES: usize = 4_000;
        for (n, dependence) in [(6, 0.5), (10, 0.5), (20, 0.5), (6, 0.0)] {
            let mut prng = Prng::new(n as u64);
            let mut normal = || {
                let radius = (-2.0 * prng.unit().max(1e-300).ln()).sqrt();
                radius * (std::f64::consts::TAU * prng.unit()).cos()
            };
            let covered = (0..SAMPLES).filter(|_| {
                let mut level = normal();
                let values: Vec<f64> = (0..n)
                    .map(|_| {
                        let fresh = (1.0f64 - dependence * dependence).sqrt() * normal();
                        let next = dependence * level + fresh;
                        std::mem::replace(&mut level, next)
                    })
                    .collect();
                let interval = crate::centre::interval(&values, 0.95).expect("enough rounds");
                let widening = drift(&values, false).map_or(1.0, |drift| drift.widening);
                interval.widened(widening).contains(0.0)
            });
            let coverage = covered.count() as f64 / SAMPLES as f64;
            assert!(coverage >= 0.93, "{n} rounds, {dependence}: {coverage}");
        }
    }

    /// At most one in twenty of independent rounds is called dependent.
    #[test]
    fn independent_rounds_are_rarely_called_dependent() {
        const SAMPLES: usize = 4_000;
        for n in [6, 10] {
            let mut prng = Prng::new(n as u64);
            let called = (0..SAMPLES).filter(|_| {
                let values: Vec<f64> = (0..n).map(|_| prng.unit().powi(3)).collect();
                alike_p(&values) <= SIGNIFICANT
            });
            let share = called.count() as f64 / SAMPLES as f64;
            assert!((0.03..0.07).contains(&share), "{n}: {share}");
        }
    }
}
