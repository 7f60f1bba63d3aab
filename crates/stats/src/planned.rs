//! A few looks that are planned beforehand: group-sequential intervals by O'Brien and Fleming ("A multiple testing
//! procedure for clinical trials", Biometrics 1979).
//!
//! A measurement whose length is fixed is looked at five times, say. The bound on the standardized sum is the same at each
//! look, so that the first looks stop it only for what is large, and the last one is nearly as narrow as an interval
//! without looks. The bound is that of Brownian motion at the looks, integrated over them (Armitage, McPherson and Rowe,
//! 1969); where the variance is estimated, Student's quantile at the same level takes the place of the normal one (the
//! significance-level approach, Jennison and Turnbull, "Group Sequential Methods", 2000, chapter 4).

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Points of the integration over one look, an odd number.
const POINTS: usize = 41;

/// The t beyond which the mean of n observations is, at look `number` of `of`, outside of the interval with this error;
/// infinite below two observations, or where there is no such look.
pub(crate) fn t_bound(n: usize, error: f64, number: u32, of: u32) -> f64 {
    let (Some(t), true) = (student(n), (1..=of).contains(&number)) else { return f64::INFINITY };
    let z = bound(error, of) * (f64::from(of) / f64::from(number)).sqrt();
    t.inverse_cdf(1.0 - tail(z))
}

/// The smallest error at which the interval of [`t_bound`] leaves out what is `t` standard errors away.
pub(crate) fn p_value(n: usize, t: f64, number: u32, of: u32) -> f64 {
    let (Some(student), true) = (student(n), (1..=of).contains(&number)) else { return 1.0 };
    let p = student.cdf(-t.abs()).max(f64::MIN_POSITIVE);
    let z = -standard().inverse_cdf(p);
    crossing(z * (f64::from(number) / f64::from(of)).sqrt(), of)
}

fn standard() -> Normal {
    Normal::standard()
}

/// The probability that a standard normal number is above this.
pub(crate) fn tail(z: f64) -> f64 {
    standard().cdf(-z)
}

fn student(n: usize) -> Option<StudentsT> {
    StudentsT::new(0.0, 1.0, n.checked_sub(1)? as f64).ok()
}

/// The z at the last of so many looks that is crossed at some look with this probability.
fn bound(error: f64, of: u32) -> f64 {
    let (mut low, mut high) = (0.0, 9.0);
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if crossing(middle, of) > error { low = middle } else { high = middle }
    }
    high
}

/// The probability that a Brownian motion, looked at at 1, 2, …, `of`, is ever further from 0 than z·√of.
fn crossing(z: f64, of: u32) -> f64 {
    let half = z * f64::from(of).sqrt();
    if half <= 0.0 {
        return 1.0;
    }
    let step = 2.0 * half / (POINTS - 1) as f64;
    let density = |x: f64| (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
    let place = |index: usize| -half + step * index as f64;
    // Simpson's rule.
    let weight = |index: usize| match index {
        0 => step / 3.0,
        last if last == POINTS - 1 => step / 3.0,
        odd if odd % 2 == 1 => 4.0 * step / 3.0,
        _ => 2.0 * step / 3.0,
    };
    let kernel: Vec<f64> = (0..POINTS).map(|apart| density(step * apart as f64)).collect();
    let mut inside: Vec<f64> = (0..POINTS).map(|index| density(place(index))).collect();
    for _ in 1..of {
        inside = (0..POINTS)
            .map(|to| {
                let from = inside.iter().enumerate();
                from.map(|(from, value)| weight(from) * value * kernel[to.abs_diff(from)]).sum()
            })
            .collect();
    }
    let stayed: f64 = inside.iter().enumerate().map(|(index, one)| weight(index) * one).sum();
    (1.0 - stayed).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prng::Prng;

    /// Jennison and Turnbull, table 2.3.
    #[test]
    fn the_bounds_are_those_of_the_tables() {
        let check = |error: f64, of: u32, expected: f64| {
            let seen = bound(error, of);
            assert!((seen - expected).abs() < 2e-3, "{error} {of}: {seen}");
        };
        check(0.05, 1, 1.960);
        check(0.05, 2, 1.977);
        check(0.05, 5, 2.040);
        check(0.10, 2, 1.678);
        check(0.10, 5, 1.751);
    }

    #[test]
    fn a_p_value_is_the_error_whose_bound_it_is() {
        for (n, error, number) in [(30, 0.05, 5), (12, 0.025, 3), (6, 0.01, 5)] {
            let t = t_bound(n, error, number, 5);
            let p = p_value(n, t, number, 5);
            assert!((p / error - 1.0).abs() < 0.01, "{n} {error} {number}: {p}");
        }
        assert_eq!((t_bound(1, 0.05, 1, 5), p_value(9, 3.0, 6, 5)), (f64::INFINITY, 1.0));
    }

    #[test]
    fn intervals_at_planned_looks_cover_and_power_is_what_is_said() {
        const RUNS: usize = 4_000;
        let mut prng = Prng::new(3);
        let mut normal = || {
            let radius = (-2.0 * prng.unit().max(1e-300).ln()).sqrt();
            radius * (std::f64::consts::TAU * prng.unit()).cos()
        };
        for n in [10, 20, 30] {
            let bounds: Vec<f64> =
                (1..=5).map(|number| t_bound(n * number / 5, 0.05, number as u32, 5)).collect();
            let (mut missed, mut found) = (0, 0);
            for _ in 0..RUNS {
                let values: Vec<f64> = (0..n).map(|_| normal()).collect();
                let t = |upto: usize, shift: f64| {
                    let values = &values[..upto];
                    let mean = crate::sample::mean(values).unwrap_or(0.0);
                    let error = crate::sample::stddev(values).unwrap_or(1.0) / (upto as f64).sqrt();
                    ((mean + shift) / error).abs()
                };
                let looks = (1..=5).map(|number| n * number / 5).zip(&bounds);
                missed += usize::from(
                    looks.filter(|(upto, _)| *upto >= 5).any(|(upto, bound)| t(upto, 0.0) > *bound),
                );
                found += usize::from(t(n, 0.8) > bounds[4]);
            }
            let [missed, found] = [missed, found].map(|count| count as f64 / RUNS as f64);
            // Student's quantile makes it somewhat more than 5 % of ten observations; what `sequence` allows for
            // dependence makes up for that.
            assert!(missed <= 0.066, "{n}: {missed}");
            let said = crate::sequence::power(n, 0.8, 0.05, Some(5));
            assert!((found - said).abs() < 0.03, "{n}: {found} of {said}");
        }
    }
}
