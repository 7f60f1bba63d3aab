//! Whether the clock of a server went as fast as that of this machine between looks at it.

use std::time::Instant;

use site::ClockLook;

/// The difference between a server's clock and the run's at one look, in microseconds, between two bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct OffsetBounds {
    at: Instant,
    least_us: f64,
    most_us: f64,
}

/// The longest step between two looks that follow each other, beyond what their bounds and a drift of
/// [`DRIFT`] allow, in microseconds; negative where the server's clock went back. 0 without a step.
pub(super) fn longest_step_us(looks: &[ClockLook], origin: Instant) -> f64 {
    let since = |moment: Instant| moment.saturating_duration_since(origin).as_secs_f64() * 1e6;
    let mut all: Vec<OffsetBounds> = looks
        .iter()
        .map(|look| OffsetBounds {
            at: look.read.earliest,
            least_us: look.server_us as f64 - since(look.read.latest),
            most_us: look.server_us as f64 - since(look.read.earliest),
        })
        .collect();
    all.sort_by_key(|one| one.at);
    let steps = all.windows(2).map(|pair| {
        let drift_us = (pair[1].at - pair[0].at).as_secs_f64() * 1e6 * DRIFT + SLACK_US;
        let forth = pair[1].least_us - pair[0].most_us - drift_us;
        let back = pair[1].most_us - pair[0].least_us + drift_us;
        if forth > 0.0 { forth } else { back.min(0.0) }
    });
    steps.fold(0.0, |most: f64, step| if step.abs() > most.abs() { step } else { most })
}

/// NTP slews by 500 ppm at most.
const DRIFT: f64 = 500e-6;
/// The clock of a server is read in whole microseconds.
const SLACK_US: f64 = 2.0;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use site::ClockInterval;

    use super::*;

    #[test]
    fn a_step_is_what_bounds_and_drift_do_not_explain() {
        let origin = Instant::now();
        let look = |at_ms: u64, server_ms: i64| {
            let earliest = origin + Duration::from_millis(at_ms);
            let latest = earliest + Duration::from_millis(2);
            ClockLook { read: ClockInterval { earliest, latest }, server_us: server_ms * 1000 }
        };
        let check = |looks: &[ClockLook], expected_ms: f64| {
            let found = longest_step_us(looks, origin) / 1000.0;
            assert!((found - expected_ms).abs() < 10.0, "{found} {expected_ms}");
        };
        check(&[], 0.0);
        check(&[look(0, 5_000_001), look(1000, 5_001_001), look(2000, 5_002_001)], 0.0);
        // The bounds are 2 ms wide, and the clocks may differ by half of a thousandth.
        assert_eq!(longest_step_us(&[look(0, 1), look(1000, 1003)], origin), 0.0);
        check(&[look(0, 1), look(1000, 6001), look(2000, 7001)], 5000.0);
        check(&[look(1000, -3999), look(0, 1)], -5000.0);
    }
}
