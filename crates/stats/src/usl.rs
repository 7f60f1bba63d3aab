//! The Universal Scalability Law: how throughput grows with concurrency, and where it turns.
//!
//! X(N) = λN ÷ (1 + α(N−1) + βN(N−1)): λ the throughput of one client, α contention (what is
//! serialised), β coherency (what every client costs every other one). Neil Gunther, "Guerrilla
//! capacity planning", 2007. Gunther's account of fitting PostgreSQL ("PostgreSQL scalability
//! analysis deconstructed", 2012) lists what goes wrong: dividing by one bad X(1), too few points,
//! a chosen subset. So λ is fitted too, six client counts are required, and no peak is stated
//! beyond what was measured.

use thiserror::Error;

use crate::least_squares;
use crate::sample;

/// Different client counts that a fit takes.
pub const POINTS_MIN: usize = 6;

/// Residuals smaller than this (root mean square, as a share) are good whatever their order.
const RESIDUAL_SMALL: f64 = 0.02;
/// The chance at which an order of residuals is called a pattern.
const PATTERN_P_MAX: f64 = 0.05;

/// A fitted law.
#[derive(Clone, Debug, PartialEq)]
pub struct Usl {
    /// The throughput of one client, in the unit of the throughputs given.
    pub lambda: f64,
    /// Contention, ≥ 0.
    pub alpha: f64,
    /// Coherency, ≥ 0.
    pub beta: f64,
    /// The largest client count that was measured.
    pub clients_max: f64,
    /// Root mean square of (X − X̂) ÷ X.
    pub residual: f64,
}

/// Why no law was fitted.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
pub enum NoFit {
    /// Fewer client counts than three parameters can be trusted to.
    #[error("{n} client counts, at least {POINTS_MIN} are needed")]
    TooFewPoints {
        /// How many different ones there are.
        n: usize,
    },
    /// A client count or throughput is not above zero or not finite.
    #[error("a client count or throughput is not a number above zero")]
    NotPositive,
    /// Over the client counts, the law is first too low and then too high, or the other way: it
    /// has not the shape of these points.
    #[error("the points have another shape than the law ({:.0} % off)", residual * 100.0)]
    Pattern {
        /// Root mean square of the relative residuals.
        residual: f64,
    },
}

impl Usl {
    /// Fits the law to (clients, throughput) by least squares of the relative residuals (weights
    /// 1/X²), with α, β ≥ 0. Repeated client counts are welcome.
    ///
    /// # Errors
    /// Fewer than six different client counts, values that are not above zero, or residuals over
    /// 2 % whose signs come in so few runs along the client counts that chance gives them one time
    /// in twenty (Wald and Wolfowitz, 1940).
    pub fn fit(points: &[(f64, f64)]) -> Result<Self, NoFit> {
        let positive = |value: f64| value.is_finite() && value > 0.0;
        if points.iter().any(|(clients, rate)| !positive(*clients) || !positive(*rate)) {
            return Err(NoFit::NotPositive);
        }
        let mut sorted = points.to_vec();
        sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let n = sorted.chunk_by(|a, b| a.0 == b.0).count();
        if n < POINTS_MIN {
            return Err(NoFit::TooFewPoints { n });
        }
        let usl = best_fit(&sorted);
        let residuals: Vec<f64> = sorted
            .chunk_by(|a, b| a.0 == b.0)
            .map(|same| same.iter().map(|point| usl.residual_of(*point)).sum::<f64>())
            .collect();
        if usl.residual > RESIDUAL_SMALL && few_runs_p(&residuals) <= PATTERN_P_MAX {
            return Err(NoFit::Pattern { residual: usl.residual });
        }
        Ok(usl)
    }

    /// The throughput that the law gives for `clients`. `None` beyond twice the largest count that
    /// was measured, and below zero.
    pub fn throughput(&self, clients: f64) -> Option<f64> {
        (clients >= 0.0 && clients <= 2.0 * self.clients_max).then(|| self.value(clients))
    }

    /// The client count of the largest throughput, √((1−α)/β). `None` when it lies outside what
    /// was measured: then nothing supports it.
    pub fn peak_clients(&self) -> Option<f64> {
        let peak = ((1.0 - self.alpha) / self.beta).sqrt();
        (peak >= 1.0 && peak <= self.clients_max).then_some(peak)
    }

    fn value(&self, n: f64) -> f64 {
        self.lambda * n / (1.0 + self.alpha * (n - 1.0) + self.beta * n * (n - 1.0))
    }

    fn residual_of(&self, (clients, rate): (f64, f64)) -> f64 {
        1.0 - self.value(clients) / rate
    }
}

/// The best of a few descents: the squares α = p², β = q² keep both from going below zero, and
/// starting points on either side of typical values keep p and q from being stuck at zero.
fn best_fit(points: &[(f64, f64)]) -> Usl {
    let clients_max = points[points.len() - 1].0;
    let per_client: Vec<f64> = points.iter().map(|(clients, rate)| rate / clients).collect();
    let scale = per_client.iter().copied().fold(0.0, f64::max);
    let law = |parameters: &[f64; 3]| Usl {
        lambda: scale * parameters[0].exp(),
        alpha: parameters[1].powi(2),
        beta: parameters[2].powi(2),
        clients_max,
        residual: 0.0,
    };
    let residuals = |parameters: &[f64; 3]| -> Vec<f64> {
        let usl = law(parameters);
        points.iter().map(|point| usl.residual_of(*point)).collect()
    };
    let rough = 1.0 / clients_max.max(2.0);
    let starts = [(0.3, rough), (0.05, rough.sqrt() / 10.0), (0.9, rough / 10.0), (0.01, 0.01)];
    let fits = starts.map(|(p, q)| least_squares::minimise([0.0, p, q], residuals));
    let squares = |parameters: &[f64; 3]| -> f64 {
        residuals(parameters).iter().map(|residual| residual.powi(2)).sum()
    };
    let best = fits.iter().min_by(|a, b| squares(a).total_cmp(&squares(b))).unwrap_or(&fits[0]);
    Usl { residual: (squares(best) / points.len() as f64).sqrt(), ..law(best) }
}

/// The probability of at most as many runs of equal sign, if the order were random.
fn few_runs_p(residuals: &[f64]) -> f64 {
    let signs: Vec<bool> = residuals.iter().filter(|r| **r != 0.0).map(|r| *r > 0.0).collect();
    let ups = signs.iter().filter(|sign| **sign).count();
    let downs = signs.len() - ups;
    if ups == 0 || downs == 0 {
        // All on one side: a matter of the size, which least squares keeps small.
        return 1.0;
    }
    let runs = signs.chunk_by(|a, b| a == b).count();
    let ways = |up_runs: usize, down_runs: usize| {
        choose(ups - 1, up_runs - 1) * choose(downs - 1, down_runs - 1)
    };
    let with = |count: usize| match count % 2 {
        0 => 2.0 * ways(count / 2, count / 2),
        _ => ways(count / 2, count / 2 + 1) + ways(count / 2 + 1, count / 2),
    };
    (2..=runs).map(with).sum::<f64>() / choose(ups + downs, ups)
}

fn choose(n: usize, k: usize) -> f64 {
    if k > n {
        return 0.0;
    }
    (0..k).fold(1.0, |ways, i| ways * (n - i) as f64 / (i + 1) as f64)
}

/// A summary of how well the law describes the points: 1 − Σ(X−X̂)² ÷ Σ(X−X̄)². `None` when all
/// throughputs are equal. Printed for readers who expect it; the decision is [`NoFit::Pattern`]'s.
pub fn r_squared(usl: &Usl, points: &[(f64, f64)]) -> Option<f64> {
    let rates: Vec<f64> = points.iter().map(|point| point.1).collect();
    let mean = sample::mean(&rates)?;
    let total: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    let left: f64 = points.iter().map(|(n, rate)| (rate - usl.value(*n)).powi(2)).sum();
    (total > 0.0).then(|| 1.0 - left / total)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::prng::Prng;

    const CLIENTS: [f64; 10] = [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0];

    fn points(lambda: f64, alpha: f64, beta: f64) -> Vec<(f64, f64)> {
        let law = Usl { lambda, alpha, beta, clients_max: 32.0, residual: 0.0 };
        CLIENTS.iter().map(|&clients| (clients, law.value(clients))).collect()
    }

    #[test]
    fn the_law_is_recovered_from_its_own_points() {
        let check = |lambda: f64, alpha: f64, beta: f64, peak: Option<f64>| {
            let usl = Usl::fit(&points(lambda, alpha, beta)).expect("the law's own points");
            let close = |a: f64, b: f64| (a - b).abs() < 1e-5 * (1.0 + b.abs());
            assert!(close(usl.lambda, lambda), "{usl:?}");
            assert!(close(usl.alpha, alpha) && close(usl.beta, beta), "{usl:?}");
            match (usl.peak_clients(), peak) {
                (Some(found), Some(expected)) => assert!((found - expected).abs() < 0.01),
                (found, expected) => assert_eq!(found, expected, "{usl:?}"),
            }
        };
        check(1_000.0, 0.05, 0.002, Some(21.794));
        check(20_000.0, 0.3, 0.0, None);
        check(50.0, 0.0, 0.01, Some(10.0));
        check(7.0, 0.0, 0.0, None);
        // The peak would be at 97 clients, three times as many as were measured.
        check(1_000.0, 0.05, 0.0001, None);
    }

    #[test]
    fn noise_is_tolerated_and_a_pattern_is_not() {
        let mut prng = Prng::new(3);
        let mut noisy = points(1_000.0, 0.05, 0.002);
        noisy.iter_mut().for_each(|point| point.1 *= 0.97 + 0.06 * prng.unit());
        let usl = Usl::fit(&noisy).expect("noise without a pattern");
        assert!((usl.peak_clients().expect("inside") - 21.8).abs() < 4.0, "{usl:?}");
        assert!(r_squared(&usl, &noisy).expect("it varies") > 0.97);
        // A fourfold drop beyond eight clients, as when the generator runs out of processors.
        let rate = |n: u32| if n <= 8 { 100.0 * f64::from(n) } else { 200.0 };
        let cliff: Vec<_> = (1..=16).map(|n| (f64::from(n), rate(n))).collect();
        assert!(matches!(Usl::fit(&cliff), Err(NoFit::Pattern { .. })), "{:?}", Usl::fit(&cliff));
    }

    #[test]
    fn nothing_is_said_far_beyond_what_was_measured() {
        let usl = Usl::fit(&points(100.0, 0.1, 0.001)).expect("the law's own points");
        assert!(usl.throughput(64.0).is_some() && usl.throughput(65.0).is_none());
        assert_eq!(usl.throughput(0.0), Some(0.0));
        assert_eq!(usl.throughput(-1.0), None);
    }

    #[test]
    fn reasons_for_no_fit() {
        let check = |points: &[(f64, f64)], expected: &str| {
            assert_eq!(Usl::fit(points).expect_err("no fit").to_string(), expected);
        };
        check(&[], "0 client counts, at least 6 are needed");
        check(&[(1.0, 5.0); 8], "1 client counts, at least 6 are needed");
        check(&[(1.0, 0.0); 8], "a client count or throughput is not a number above zero");
        check(&[(f64::NAN, 1.0)], "a client count or throughput is not a number above zero");
    }

    #[test]
    fn runs() {
        let check = |residuals: &[f64], expected: f64| {
            assert!((few_runs_p(residuals) - expected).abs() < 1e-12, "{residuals:?}");
        };
        check(&[1.0, 1.0, 1.0, -1.0, -1.0, -1.0], 2.0 / 20.0);
        check(&[1.0, -1.0, 1.0, -1.0], 1.0);
        check(&[1.0, 1.0, 1.0], 1.0);
        check(&[], 1.0);
    }

    proptest! {
        #[test]
        fn no_points_panic(points in prop::collection::vec((1e-3..1e6f64, 1e-3..1e9f64), 0..20)) {
            if let Ok(usl) = Usl::fit(&points) {
                prop_assert!(usl.alpha >= 0.0 && usl.beta >= 0.0);
            }
        }
    }
}
