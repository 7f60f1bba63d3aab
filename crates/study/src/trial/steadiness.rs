//! Was the window steady?

use record::{Interval, Window};
use stats::{SteadyState, Unsteady, steady_state};

/// Steadiness of the window's throughput.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Steadiness {
    /// One level.
    Steady,
    /// Not one level, but little enough; or too short to say.
    Noted(String),
    /// Not one level: it stalled, slumped or drifted, which is a result.
    NotSteady(String),
}

/// Judges the throughput of all workloads together, interval by interval.
///
/// A level that moves by no more than [`CHANGE_MAX`] is noted: rounds are interleaved, so that what
/// moves it falls on all points alike.
pub(crate) fn judge(intervals: &[Interval], window: Window, interval_ms: u64) -> Steadiness {
    let bin_s = interval_ms as f64 / 1e3;
    match steady_state(&rates(intervals, window, interval_ms), bin_s) {
        SteadyState::Steady { .. } => Steadiness::Steady,
        SteadyState::TooShort { length_s, needed_s } => Steadiness::Noted(format!(
            "too short to say whether it was steady: {length_s:.1} s, needs {needed_s:.1} s"
        )),
        SteadyState::NotSteady { reason: reason @ Unsteady::Drift { slope_per_10s } } => {
            moved(slope_per_10s.abs() * window.seconds() / 10.0, reason)
        }
        SteadyState::NotSteady { reason: reason @ Unsteady::LateChange { before, after, .. } } => {
            moved((after - before).abs() / before.max(after), reason)
        }
        SteadyState::NotSteady { reason } => Steadiness::NotSteady(reason.to_string()),
    }
}

/// The level moved by this share of itself.
fn moved(change: f64, reason: Unsteady) -> Steadiness {
    match change > CHANGE_MAX {
        true => Steadiness::NotSteady(reason.to_string()),
        false => Steadiness::Noted(reason.to_string()),
    }
}

/// Transactions a second in each whole interval of the window.
fn rates(intervals: &[Interval], window: Window, interval_ms: u64) -> Vec<f64> {
    let whole_ns = interval_ms * 1_000_000;
    let mut rates: Vec<f64> = Vec::new();
    let mut last = None;
    let inside = |interval: &&Interval| {
        interval.start >= window.open && interval.start.plus_ns(whole_ns) <= window.close
    };
    for interval in intervals.iter().filter(inside) {
        let rate = interval.counts.transactions as f64 / (whole_ns as f64 / 1e9);
        match rates.last_mut() {
            Some(sum) if last == Some(interval.start) => *sum += rate,
            _ => rates.push(rate),
        }
        last = Some(interval.start);
    }
    rates
}

/// By how much the level may move within a window, as a share of it.
const CHANGE_MAX: f64 = 0.1;

#[cfg(test)]
mod tests {
    use record::{Counts, Moment};

    use super::*;

    fn cell(second: u64, workload: usize, transactions: u64) -> Interval {
        Interval {
            start: Moment(second * 1_000_000_000),
            length_ns: 1_000_000_000,
            workload,
            counts: Counts { transactions, ..Counts::default() },
            ..Interval::default()
        }
    }

    fn judged(rate: impl Fn(u64) -> u64) -> Steadiness {
        let cells: Vec<Interval> = (0..60)
            .flat_map(|second| [cell(second, 0, rate(second)), cell(second, 1, 500)])
            .collect();
        let moment = |seconds: u64| Moment(seconds * 1_000_000_000);
        let window = Window { load_began: moment(0), open: moment(10), close: moment(60) };
        judge(&cells, window, 1_000)
    }

    #[test]
    fn one_level_is_steady_whatever_came_before_the_window() {
        let noise = |second: u64| second * 7919 % 20;
        assert_eq!(judged(|s| if s < 10 { 5 } else { 1_000 + noise(s) }), Steadiness::Steady);
    }

    #[test]
    fn a_level_that_moves_much_is_not_steady_and_one_that_moves_little_is_noted() {
        assert!(matches!(judged(|s| if s < 45 { 1_000 } else { 600 }), Steadiness::NotSteady(_)));
        assert!(matches!(judged(|s| if s < 45 { 1_000 } else { 950 }), Steadiness::Noted(_)));
        assert!(matches!(judged(|s| 1_000 + 2 * s), Steadiness::Noted(_)));
        assert!(matches!(judged(|s| 1_000 + 20 * s), Steadiness::NotSteady(_)));
    }
}
