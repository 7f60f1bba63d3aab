//! How often something rare happens that was counted: exact bounds of a Poisson rate, also where it was never seen.

use statrs::distribution::{ContinuousCDF, Gamma};

/// The rates for a unit of `exposure` that so many events leave open at this confidence, lowest and highest (Garwood,
/// "Fiducial limits for the Poisson distribution", 1936). Of none, the lowest is 0, and the highest is exact on its own
/// side: −ln(1 − confidence) ÷ exposure. Without exposure nothing is known: 0 and infinity.
#[must_use]
pub fn rates(events: u64, exposure: f64, confidence: f64) -> [f64; 2] {
    let error = 1.0 - confidence;
    if !(exposure > 0.0 && error > 0.0 && error < 1.0) {
        return [0.0, f64::INFINITY];
    }
    let quantile = |shape: f64, p: f64| {
        Gamma::new(shape, 1.0).map_or(f64::INFINITY, |gamma| gamma.inverse_cdf(p))
    };
    match events {
        0 => [0.0, -error.ln() / exposure],
        _ => {
            let events = events as f64;
            [quantile(events, error / 2.0), quantile(events + 1.0, 1.0 - error / 2.0)]
                .map(|bound| bound / exposure)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tables of Garwood.
    #[test]
    fn bounds_are_exact() {
        let check = |events, expected: [f64; 2]| {
            let seen = rates(events, 10.0, 0.95);
            for (seen, expected) in seen.iter().zip(expected) {
                assert!((seen - expected / 10.0).abs() < 1e-3, "{events}: {seen} {expected}");
            }
        };
        check(0, [0.0, 2.996]);
        check(1, [0.0253, 5.572]);
        check(4, [1.090, 10.242]);
        check(20, [12.217, 30.888]);
        assert_eq!(rates(3, 0.0, 0.95), [0.0, f64::INFINITY]);
        assert_eq!(rates(3, 1.0, 1.0), [0.0, f64::INFINITY]);
    }
}
