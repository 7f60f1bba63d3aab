//! An interval that stays valid however often one looks at it: a confidence sequence.
//!
//! An ordinary 95 % interval covers the truth in 95 % of measurements of a length that was fixed
//! beforehand. A measurement that stops as soon as its interval says what is hoped for covers
//! it less often. A confidence sequence covers the truth at every moment at once, so any rule may
//! decide when to stop.

use crate::interval::{Interval, Method, NoInterval};

/// Observations before the first interval: the normal approximation is poor with fewer. Octets of
/// blocks were simulated with log-normal noise, outliers, stalls, two peaks and drift, 400
/// measurements of 50 octets each: from 10 on, 1 to 4.5 % of them missed the truth, from 8 on up to
/// 5 %. The tests below repeat this with wider bounds.
pub const OBSERVATIONS_MIN: usize = 10;

/// One term of a [`product of totals`](totals): what is summed up, and whether it is above or below
/// the fraction line.
#[derive(Clone, Copy, Debug)]
pub struct Term<'a> {
    /// One value for each observation, not negative.
    pub values: &'a [f64],
    /// Whether the total multiplies or divides.
    pub place: Place,
}

/// Where a total stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Above the fraction line.
    Above,
    /// Below it.
    Below,
}

/// A quotient of totals over observations, such as `Σb / Σa`, or `(Σcpu_b / Σtx_b) / (Σcpu_a /
/// Σtx_a)`, with an interval that is valid at any number of observations.
///
/// Totals weigh each observation by the time that it stands for: a second in which one side stood
/// still counts as a second without work, where the mean of ratios would have no value.
///
/// The bounds are the asymptotic confidence sequence of Waudby-Smith, Arbour, Sinha, Kennedy and
/// Ramdas, "Time-uniform central limit theory and asymptotic confidence sequences" (2021; Annals of
/// Statistics 2024), theorem 2.2, for the logarithm of the quotient, which is linearized (delta
/// method):
/// `σ̂ · √(2(nρ² + 1)/(n²ρ²) · ln(√(nρ² + 1)/α))`. It is narrowest near `tuned_for` observations
/// (their equation for ρ), and wider than an interval for a fixed number by half or more. σ̂² is the
/// long-run variance of Newey and West (1987), but never less than the variance of independent
/// observations.
///
/// # Errors
/// With fewer than [`OBSERVATIONS_MIN`] observations, terms of different lengths, a negative or
/// infinite value, a total of zero, or a confidence that is not within 0..1.
pub fn totals(
    terms: &[Term<'_>],
    confidence: f64,
    tuned_for: usize,
) -> Result<Interval, NoInterval> {
    let n = terms.first().map_or(0, |term| term.values.len());
    let error = crate::interval::check(&[], confidence)?;
    if n < OBSERVATIONS_MIN {
        return Err(NoInterval::TooFew { n, needed: OBSERVATIONS_MIN });
    }
    let mut logarithm = 0.0;
    // By how much each observation pulls the logarithm of the quotient.
    let mut pulls = vec![0.0; n];
    for term in terms {
        if term.values.len() != n {
            return Err(NoInterval::Unpaired { left: n, right: term.values.len() });
        }
        if term.values.iter().any(|value| !value.is_finite()) {
            return Err(NoInterval::NotFinite);
        }
        let mean = term.values.iter().sum::<f64>() / n as f64;
        if mean <= 0.0 || term.values.iter().any(|value| *value < 0.0) {
            return Err(NoInterval::NotPositive);
        }
        let sign = match term.place {
            Place::Above => 1.0,
            Place::Below => -1.0,
        };
        logarithm += sign * mean.ln();
        for (pull, value) in pulls.iter_mut().zip(term.values) {
            *pull += sign * (value / mean - 1.0);
        }
    }
    let half = long_run_variance(&pulls).sqrt() * width(n, error, tuned_for);
    let method = Method::ConfidenceSequence;
    let (low, high) = (logarithm - half, logarithm + half);
    Ok(Interval { point: logarithm, low, high, confidence, n, method }.map(f64::exp))
}

/// The quotient of two totals, `Σabove / Σbelow`.
///
/// # Errors
/// As [`totals`] has them.
pub fn ratio(
    above: &[f64],
    below: &[f64],
    confidence: f64,
    tuned_for: usize,
) -> Result<Interval, NoInterval> {
    let above = Term { values: above, place: Place::Above };
    let below = Term { values: below, place: Place::Below };
    totals(&[above, below], confidence, tuned_for)
}

/// The smallest error (1 − confidence) at which the interval of [`ratio`] leaves out `bound`: an
/// anytime-valid p-value for "the quotient is `bound`". 1 where no interval does.
///
/// # Errors
/// As [`totals`] has them.
pub fn ratio_p(
    above: &[f64],
    below: &[f64],
    bound: f64,
    tuned_for: usize,
) -> Result<f64, NoInterval> {
    let leaves_out = |error: f64| -> Result<bool, NoInterval> {
        let interval = ratio(above, below, 1.0 - error, tuned_for)?;
        Ok(bound < interval.low || bound > interval.high)
    };
    // On the logarithmic scale, between an error that nothing is decided at and one beyond which
    // 1 − error is 1.
    let (mut low, mut high) = (1e-15_f64.ln(), 0.5_f64.ln());
    if !leaves_out(high.exp())? {
        return Ok(1.0);
    }
    if leaves_out(low.exp())? {
        return Ok(low.exp());
    }
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        match leaves_out(middle.exp())? {
            true => high = middle,
            false => low = middle,
        }
    }
    Ok(high.exp())
}

/// The half-width of the confidence sequence for observations of standard deviation 1.
fn width(n: usize, error: f64, tuned_for: usize) -> f64 {
    let n = n as f64;
    let tail = -2.0 * error.ln();
    let rho_squared = (tail + tail.ln() + 1.0) / tuned_for.max(1) as f64;
    let grown = n * rho_squared + 1.0;
    (2.0 * grown / (n * n * rho_squared) * (grown.sqrt() / error).ln()).sqrt()
}

/// The variance that the sum of centred, dependent values has, per value: Bartlett weights over
/// ∛n neighbours.
fn long_run_variance(centred: &[f64]) -> f64 {
    let n = centred.len();
    // One mean was estimated for each side of the fraction line.
    let freedom = n.saturating_sub(2).max(1) as f64;
    let covariance = |lag: usize| -> f64 {
        centred[lag..].iter().zip(centred).map(|(late, early)| late * early).sum::<f64>() / freedom
    };
    let variance = covariance(0);
    let lags = (n as f64).cbrt() as usize;
    let weight = |lag: usize| 2.0 * (1.0 - lag as f64 / (lags + 1) as f64);
    let dependent: f64 = (1..=lags).map(|lag| weight(lag) * covariance(lag)).sum();
    variance + dependent.max(0.0)
}

#[cfg(test)]
mod tests {
    use statrs::distribution::{ContinuousCDF, Normal};

    use super::*;
    use crate::prng::Prng;

    fn ratio(b: &[f64], a: &[f64], tuned_for: usize) -> Result<Interval, NoInterval> {
        super::ratio(b, a, 0.95, tuned_for)
    }

    #[test]
    fn a_p_value_is_the_error_at_which_the_interval_ends_at_the_bound() {
        let a: Vec<f64> = (0..60).map(|i| 100.0 + f64::from(i % 7)).collect();
        let b: Vec<f64> = (0..60).map(|i| 96.0 + f64::from(i % 5)).collect();
        let interval = ratio(&b, &a, 60).expect("60 pairs");
        let p = |bound| ratio_p(&b, &a, bound, 60).expect("60 pairs");
        assert!((p(interval.high) - 0.05).abs() < 1e-3, "{}", p(interval.high));
        assert!((p(interval.low) - 0.05).abs() < 1e-3, "{}", p(interval.low));
        assert!(p(interval.high * 1.01) < 0.05 && p(interval.point) == 1.0);
        assert!(p(3.0) <= 1e-14);
    }

    #[test]
    fn a_constant_factor_is_found_whatever_pairs_have_in_common() {
        let a: Vec<f64> = (0..20).map(|i| 100.0 + f64::from(i)).collect();
        let b: Vec<f64> = a.iter().map(|a| a * 0.9).collect();
        let found = ratio(&b, &a, 100).expect("20 pairs");
        for bound in [found.low, found.point, found.high] {
            assert!((bound - 0.9).abs() < 1e-12, "{found:?}");
        }
    }

    #[test]
    fn a_side_that_stood_still_for_a_while_loses_that_time() {
        let a = vec![100.0; 40];
        let mut b = a.clone();
        b[7] = 0.0;
        let found = ratio(&b, &a, 40).expect("40 pairs");
        assert!((found.point - 39.0 / 40.0).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn a_quotient_of_quotients() {
        let (ones, twos, threes) = (vec![1.0; 10], vec![2.0; 10], vec![3.0; 10]);
        let term = |values, place| Term { values, place };
        let terms = [
            term(threes.as_slice(), Place::Above),
            term(&twos, Place::Below),
            term(&twos, Place::Below),
            term(&ones, Place::Above),
        ];
        let found = totals(&terms, 0.95, 10).expect("10 observations");
        assert!((found.point - 0.75).abs() < 1e-12);
    }

    #[test]
    fn reasons_for_no_interval() {
        let check = |b: &[f64], a: &[f64], expected| assert_eq!(ratio(b, a, 10), Err(expected));
        let (ones, zeros) = ([1.0; 10], [0.0; 10]);
        check(&[1.0; 9], &[1.0; 9], NoInterval::TooFew { n: 9, needed: 10 });
        check(&ones, &[1.0; 11], NoInterval::Unpaired { left: 10, right: 11 });
        check(&ones, &zeros, NoInterval::NotPositive);
        check(&[-1.0; 10], &ones, NoInterval::NotPositive);
        check(&[f64::NAN; 10], &ones, NoInterval::NotFinite);
    }

    /// What one machine does to blocks of equal work.
    #[derive(Clone, Copy, Debug)]
    enum Noise {
        LogNormal,
        Outliers,
        TwoPeaked,
        Stalls,
        /// Each block depends on the one before it.
        Drifting,
    }

    struct Blocks {
        noise: Noise,
        prng: Prng,
        level: f64,
    }

    impl Blocks {
        fn normal(&mut self) -> f64 {
            Normal::standard().inverse_cdf(self.prng.unit().clamp(1e-12, 1.0 - 1e-12))
        }

        fn next(&mut self) -> f64 {
            let logarithm = match self.noise {
                Noise::LogNormal => 0.1 * self.normal(),
                Noise::Outliers if self.prng.unit() < 0.08 => -0.7 + 0.05 * self.normal(),
                Noise::Outliers => 0.05 * self.normal(),
                Noise::TwoPeaked if self.prng.unit() < 0.5 => -0.3 + 0.03 * self.normal(),
                Noise::TwoPeaked => 0.03 * self.normal(),
                Noise::Stalls if self.prng.unit() < 0.05 => return 0.0,
                Noise::Stalls => 0.05 * self.normal(),
                Noise::Drifting => {
                    self.level = 0.9 * self.level + 0.1 * self.normal();
                    self.level
                }
            };
            1_000.0 * logarithm.exp()
        }
    }

    /// How often, of `repeats` measurements of 100 octets, some interval missed a true factor, and
    /// how often some interval lay wholly below 1.
    fn simulate(noise: Noise, factor: f64, repeats: u64) -> (f64, f64) {
        let (mut missed, mut found) = (0, 0);
        for seed in 0..repeats {
            let mut blocks = Blocks { noise, prng: Prng::new(seed), level: 0.0 };
            let (mut a, mut b) = (Vec::new(), Vec::new());
            let (mut misses, mut finds) = (false, false);
            for n in 1..=100 {
                let octet: [f64; 8] = std::array::from_fn(|_| blocks.next());
                let first = octet[0] + octet[3] + octet[5] + octet[6];
                let second = octet[1] + octet[2] + octet[4] + octet[7];
                let a_is_first = blocks.prng.unit() < 0.5;
                let (x, y) = if a_is_first { (first, second) } else { (second, first) };
                a.push(x);
                b.push(factor * y);
                if n < OBSERVATIONS_MIN {
                    continue;
                }
                let seen = ratio(&b, &a, 50).expect("enough octets");
                misses |= !seen.contains(factor);
                finds |= seen.high < 1.0;
            }
            missed += u32::from(misses);
            found += u32::from(finds);
        }
        (f64::from(missed) / repeats as f64, f64::from(found) / repeats as f64)
    }

    #[test]
    fn looking_after_every_octet_misses_the_truth_in_one_measurement_of_twenty_at_most() {
        let noises =
            [Noise::LogNormal, Noise::Outliers, Noise::TwoPeaked, Noise::Stalls, Noise::Drifting];
        for noise in noises {
            let (missed, _) = simulate(noise, 1.0, 300);
            // 0.05 and three standard errors of 300 measurements.
            assert!(missed < 0.088, "{noise:?}: {missed}");
        }
    }

    #[test]
    fn five_percent_are_found() {
        for noise in [Noise::LogNormal, Noise::Drifting] {
            let (_, found) = simulate(noise, 0.95, 100);
            assert!(found > 0.95, "{noise:?}: {found}");
        }
    }
}
