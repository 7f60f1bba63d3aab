//! The end of the warm-up, and the steadiness of what follows.
//!
//! Most systems under test warm up, some never settle (Barrett et al., OOPSLA 2017), so a steady
//! state is looked for and not assumed. MSER-5 finds the truncation point, a Theil–Sen slope what
//! still drifts after it. MSER alone calls a quarter of all perfectly steady series "not steady"
//! when they are as short as trials are (simulated below), because a few late batches agree by
//! chance; so a late truncation only counts when the level before it differs from the level after
//! it, by more than noise and by enough to matter.

use std::fmt;

use crate::mser;
use crate::sample;
use crate::theil_sen::theil_sen;

/// Fewer observations than this are not judged.
pub const OBSERVATIONS_MIN: usize = 10;

/// The trend that is still called steady, as a share of the level in ten seconds.
pub const SLOPE_PER_10S_MAX: f64 = 0.01;

/// Observations in a batch, where the series is long enough: the 5 of MSER-5.
const BATCH_MAX: usize = 5;
/// Batches that a series is cut into at least; a short one gets smaller batches.
const BATCHES_MIN: usize = 10;
/// Levels closer than this are the same for all practical purposes.
const LEVEL_SHARE_MIN: f64 = 0.02;
/// Levels closer than so many standard errors differ by chance: there are several places to cut,
/// hence three and not two.
const LEVEL_ERRORS_MIN: f64 = 3.0;
/// High, as neighbouring seconds resemble each other, which makes the interval too narrow.
const SLOPE_CONFIDENCE: f64 = 0.99;

/// Steadiness of a series of rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SteadyState {
    /// Steady from `warmup_s` on.
    Steady {
        /// Length of the beginning to leave out, in seconds.
        warmup_s: f64,
        /// The trend that is left, as a share of the level in ten seconds.
        slope_per_10s: f64,
    },
    /// Not steady: the trial runs longer or is void.
    NotSteady {
        /// The reason.
        reason: Unsteady,
    },
    /// The series is too short to say, as in a smoke test: nothing is left out.
    TooShort {
        /// Length of the series in seconds.
        length_s: f64,
        /// Length that is needed, in seconds.
        needed_s: f64,
    },
}

/// The reason why a series is not steady.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unsteady {
    /// The level changed in the second half.
    LateChange {
        /// Time from the beginning, in seconds.
        at_s: f64,
        /// The mean rate before, after the warm-up found so far.
        before: f64,
        /// The mean rate after.
        after: f64,
    },
    /// The rate rises or falls all the time.
    Drift {
        /// The trend, as a share of the level in ten seconds.
        slope_per_10s: f64,
    },
    /// At least half of the time nothing happened.
    Stalled,
    /// A rate is NaN, infinite or negative.
    NotARate,
}

/// Finds the warm-up in `rates`, one observation every `bin_s` seconds (transactions per second,
/// say). MSER over means of 5 observations (fewer in series shorter than 50, so that there are ten
/// batches or more), then the Theil–Sen slope of what remains: 1 % in ten seconds or more, with a
/// 99 % interval on one side of zero, is a drift.
pub fn steady_state(rates: &[f64], bin_s: f64) -> SteadyState {
    let not_steady = |reason| SteadyState::NotSteady { reason };
    if rates.len() < OBSERVATIONS_MIN {
        let (length_s, needed_s) = (rates.len() as f64 * bin_s, OBSERVATIONS_MIN as f64 * bin_s);
        return SteadyState::TooShort { length_s, needed_s };
    }
    if rates.iter().any(|rate| !rate.is_finite() || *rate < 0.0) {
        return not_steady(Unsteady::NotARate);
    }
    let batch = (rates.len() / BATCHES_MIN).clamp(1, BATCH_MAX);
    let batches: Vec<f64> = rates.chunks_exact(batch).filter_map(sample::mean).collect();
    let early = mser::truncation(&batches, batches.len() / 2).unwrap_or(0);
    let anywhere = mser::truncation(&batches, batches.len()).unwrap_or(0);
    if let Some((before, after)) = late_change(&batches, early, anywhere) {
        let at_s = (anywhere * batch) as f64 * bin_s;
        return not_steady(Unsteady::LateChange { at_s, before, after });
    }
    let settled = &rates[early * batch..];
    let level = sample::median(settled).unwrap_or(0.0);
    if level == 0.0 {
        return not_steady(Unsteady::Stalled);
    }
    let per_10s = 10.0 / bin_s / level;
    let Some(slope) = theil_sen(settled, SLOPE_CONFIDENCE) else {
        return not_steady(Unsteady::NotARate);
    };
    let slope_per_10s = slope.point * per_10s;
    let one_sided = slope.low > 0.0 || slope.high < 0.0;
    if slope_per_10s.abs() >= SLOPE_PER_10S_MAX && one_sided {
        return not_steady(Unsteady::Drift { slope_per_10s });
    }
    SteadyState::Steady { warmup_s: (early * batch) as f64 * bin_s, slope_per_10s }
}

/// The levels before and after a truncation point in the second half, if they really differ.
fn late_change(batches: &[f64], early: usize, late: usize) -> Option<(f64, f64)> {
    if late <= batches.len() / 2 {
        return None;
    }
    let (before, after) = (&batches[early..late], &batches[late..]);
    let (level_before, level_after) = (sample::mean(before)?, sample::mean(after)?);
    let squares = |part: &[f64], level: f64| -> f64 {
        part.iter().map(|batch| (batch - level).powi(2)).sum()
    };
    let freedom = (before.len() + after.len()).saturating_sub(2).max(1) as f64;
    let variance = (squares(before, level_before) + squares(after, level_after)) / freedom;
    let error = (variance * (1.0 / before.len() as f64 + 1.0 / after.len() as f64)).sqrt();
    let off = (level_before - level_after).abs();
    let matters = off > LEVEL_SHARE_MIN * level_after && off > LEVEL_ERRORS_MIN * error;
    matters.then_some((level_before, level_after))
}

impl fmt::Display for Unsteady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsteady::LateChange { at_s, before, after } => {
                write!(f, "the rate changed from {before:.0} to {after:.0} after {at_s:.0} s")
            }
            Unsteady::Drift { slope_per_10s } => {
                write!(f, "the rate drifts by {:+.1} % in 10 s", slope_per_10s * 100.0)
            }
            Unsteady::Stalled => write!(f, "half of the time nothing happened"),
            Unsteady::NotARate => write!(f, "a rate is not a number above zero"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use statrs::distribution::{ContinuousCDF, Normal};

    use super::*;
    use crate::prng::Prng;

    /// `seconds` of rates around `level(second)` with normal noise of 3 %.
    fn series(seed: u64, seconds: usize, level: impl Fn(f64) -> f64) -> Vec<f64> {
        let mut prng = Prng::new(seed);
        let normal = Normal::standard();
        let mut noise = || 1.0 + 0.03 * normal.inverse_cdf(prng.unit().max(1e-12));
        (0..seconds).map(|second| level(second as f64) * noise()).collect()
    }

    #[test]
    fn a_short_series_is_not_judged() {
        let expected = SteadyState::TooShort { length_s: 4.0, needed_s: 10.0 };
        assert_eq!(steady_state(&[100.0; 4], 1.0), expected);
        let expected = SteadyState::TooShort { length_s: 0.0, needed_s: 2.0 };
        assert_eq!(steady_state(&[], 0.2), expected);
    }

    #[test]
    fn a_constant_rate_is_steady_from_the_beginning() {
        let expected = SteadyState::Steady { warmup_s: 0.0, slope_per_10s: 0.0 };
        assert_eq!(steady_state(&[100.0; 10], 1.0), expected);
        assert_eq!(steady_state(&[100.0; 600], 0.1), expected);
    }

    #[test]
    fn reasons() {
        let check = |rates: &[f64], expected: &str| {
            let SteadyState::NotSteady { reason } = steady_state(rates, 1.0) else {
                panic!("{expected}: {:?}", steady_state(rates, 1.0))
            };
            assert_eq!(reason.to_string(), expected);
        };
        let mut step = [100.0; 50];
        step[..35].fill(80.0);
        check(&step, "the rate changed from 80 to 100 after 35 s");
        check(&[0.0; 30], "half of the time nothing happened");
        check(&[f64::NAN; 30], "a rate is not a number above zero");
        check(&[-1.0; 30], "a rate is not a number above zero");
        // The wave keeps any one place from looking like a step.
        let wave = |s: f64| 100.0 + 0.12 * s + 4.0 * (s / 3.5).sin();
        let drifting: Vec<f64> = (0..60).map(|s| wave(f64::from(s))).collect();
        check(&drifting, "the rate drifts by +1.1 % in 10 s");
    }

    fn share(trials: u64, mut matches: impl FnMut(u64) -> bool) -> f64 {
        (0..trials).filter(|seed| matches(*seed)).count() as f64 / trials as f64
    }

    #[test]
    fn an_injected_ramp_is_found() {
        // Four seconds from 40 % to the full rate, in as many seconds as a quick trial has.
        for seconds in [20, 30, 60, 120] {
            let found = share(200, |seed| {
                let rates = series(seed, seconds, |s| 1_000.0 * (0.4 + 0.15 * s).min(1.0));
                let batch = (seconds / 10).min(5) as f64;
                matches!(steady_state(&rates, 1.0),
                    SteadyState::Steady { warmup_s, .. } if warmup_s >= 4.0 - batch)
            });
            assert!(found > 0.9, "{seconds} s: {found}");
        }
    }

    #[test]
    fn a_steady_series_is_rarely_called_unsteady() {
        for seconds in [10, 20, 30, 60, 120] {
            let alarms = share(400, |seed| {
                let rates = series(seed, seconds, |_| 1_000.0);
                matches!(steady_state(&rates, 1.0), SteadyState::NotSteady { .. })
            });
            assert!(alarms < 0.05, "{seconds} s: {alarms}");
        }
    }

    #[test]
    fn a_series_that_never_settles_is_called_unsteady() {
        for (seconds, expected) in [(20, 0.8), (40, 0.97), (120, 0.99)] {
            let found = share(200, |seed| {
                let length = seconds as f64;
                let rates = series(seed, seconds, |s| 1_000.0 * (0.7 + 0.3 * s / length));
                matches!(steady_state(&rates, 1.0), SteadyState::NotSteady { .. })
            });
            assert!(found >= expected, "{seconds} s: {found}");
        }
    }

    proptest! {
        #[test]
        fn the_warm_up_is_at_most_half(
            rates in prop::collection::vec(0.0..1e6f64, 10..80),
        ) {
            if let SteadyState::Steady { warmup_s, .. } = steady_state(&rates, 1.0) {
                prop_assert!(warmup_s <= rates.len() as f64 / 2.0);
            }
        }

        #[test]
        fn no_input_panics(
            rates in prop::collection::vec(any::<f64>(), 0..60),
            bin in any::<f64>(),
        ) {
            let _ = steady_state(&rates, bin);
        }
    }
}
