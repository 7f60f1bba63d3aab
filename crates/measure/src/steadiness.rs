//! The steadiness of a window: one level of throughput, latency and backlog, or not.

use record::{LoadInterval, MeasuredWindow};
use stats::{SteadyState, UnsteadyReason, detectable, steady_state};

/// Steadiness of the window's throughput, latency and backlog.
#[derive(Clone, Debug, PartialEq)]
pub enum Steadiness {
    /// One level.
    Steady,
    /// Not one level, but little enough; or it cannot be told.
    Noted(String),
    /// Not one level: it stalled, slumped or drifted, which is a result.
    NotSteady(String),
}

/// Judges all workloads together, interval by interval.
///
/// A level that moves by no more than a steady window may ([`UnsteadyReason::is_large`]) is noted: rounds are interleaved, so that what
/// moves it falls on all points alike.
#[must_use]
pub fn judge_steadiness(
    intervals: &[LoadInterval],
    window: MeasuredWindow,
    interval_ms: u64,
) -> Steadiness {
    let interval_s = interval_ms as f64 / 1e3;
    let summaries = record::summaries(intervals, window, interval_ms);
    match steady_state(&summaries, interval_s) {
        SteadyState::Steady { .. } => Steadiness::Steady,
        SteadyState::CannotTell { shift, .. } => {
            let found = detectable(&summaries, interval_s)
                .map_or(String::new(), |fall| format!("; {fall} would have been found"));
            Steadiness::Noted(format!("cannot tell whether it was steady: {shift}{found}"))
        }
        SteadyState::TooShort { length_s, needed_s } => Steadiness::Noted(format!(
            "too short to say whether it was steady: {length_s:.1} s, needs {needed_s:.1} s"
        )),
        SteadyState::NotSteady { reasons } => {
            let words =
                reasons.iter().map(UnsteadyReason::to_string).collect::<Vec<_>>().join("; ");
            match reasons.iter().any(UnsteadyReason::is_large) {
                true => Steadiness::NotSteady(words),
                false => Steadiness::Noted(words),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use record::{Moment, TransactionCounts};

    use super::*;

    fn cell(second: u64, workload: usize, transactions: u64) -> LoadInterval {
        LoadInterval {
            start: Moment(second * 1_000_000_000),
            length_ns: 1_000_000_000,
            workload,
            counts: TransactionCounts { transactions, ..TransactionCounts::default() },
            ..LoadInterval::default()
        }
    }

    fn judged(rate: impl Fn(u64) -> u64) -> Steadiness {
        let cells: Vec<LoadInterval> = (0..60)
            .flat_map(|second| [cell(second, 0, rate(second)), cell(second, 1, 500)])
            .collect();
        let moment = |seconds: u64| Moment(seconds * 1_000_000_000);
        let window = MeasuredWindow { load_began: moment(0), open: moment(10), close: moment(60) };
        judge_steadiness(&cells, window, 1_000)
    }

    #[test]
    fn one_level_is_steady_whatever_came_before_the_window() {
        let noise = |second: u64| second * 7919 % 20;
        assert_eq!(judged(|s| if s < 10 { 5 } else { 1_000 + noise(s) }), Steadiness::Steady);
    }

    #[test]
    fn a_level_that_moves_much_is_not_steady_and_one_that_moves_little_is_noted() {
        let check = |rate: &dyn Fn(u64) -> u64, expected: fn(String) -> Steadiness, words: &str| {
            let found = judged(rate);
            let (Steadiness::NotSteady(text) | Steadiness::Noted(text)) = &found else {
                panic!("steady, and not: {words}")
            };
            assert!(text.contains(words), "{text}, and not: {words}");
            assert_eq!(found, expected(text.clone()));
        };
        check(
            &|s| if s < 45 { 1_000 } else { 600 },
            Steadiness::NotSteady,
            "fell from 1500 to 1100",
        );
        // What is good before a collapse is no warm-up.
        check(
            &|s| if s < 25 { 1_000 } else { 500 },
            Steadiness::NotSteady,
            "1000 a second at 15 s",
        );
        check(&|s| if s < 45 { 1_000 } else { 950 }, Steadiness::Noted, "fell from 1500 to 1450");
        check(&|s| 1_000 + 2 * s, Steadiness::Noted, "throughput changed by +5.9 %");
        check(&|s| 1_000 + 20 * s, Steadiness::NotSteady, "throughput changed by +");
    }

    /// At a fixed rate, latency and backlog say what throughput does not.
    #[test]
    fn latency_and_standstills_count_as_well() {
        let window = |change: &dyn Fn(u64, &mut LoadInterval)| {
            let second = |second| {
                let mut cell = cell(second, 0, 100);
                let latency_ms = |s| if s < 30 { 20 } else { 200 };
                (0..100).for_each(|_| cell.latency.record_ns(latency_ms(second) * 1_000_000));
                change(second, &mut cell);
                cell
            };
            let cells: Vec<LoadInterval> = (0..60).map(second).collect();
            let window = MeasuredWindow {
                load_began: Moment(0),
                open: Moment(0),
                close: Moment(60_000_000_000),
            };
            judge_steadiness(&cells, window, 1_000)
        };
        let check = |found: Steadiness, words: &str| {
            let is_so = matches!(&found, Steadiness::NotSteady(text) if text.contains(words));
            assert!(is_so, "{found:?}, and not: {words}");
        };
        check(window(&|_, _| ()), "latency rose from 20.0 to 200 ms at 30 s");
        let standing = |second: u64, cell: &mut LoadInterval| {
            if (50..52).contains(&second) {
                *cell = self::cell(second, 0, 0);
            }
        };
        check(window(&standing), "no transaction ended for 2 s at 50 s");
        check(window(&|second, cell| cell.backlog = 20 * second), "backlog changed by");
    }
}
