//! The judgement of windows whose truth is known.

use proptest::prelude::*;
use stats::{
    IntervalSummary, Prng, SteadyState, UnsteadyReason, WindowQuantity, detectable, steady_state,
};

/// Windows of one kind that are simulated.
const WINDOWS: usize = 200;

/// A closed loop of eight clients at these rates.
fn closed(rates: &[f64]) -> Vec<IntervalSummary> {
    let interval = |rate: &f64| IntervalSummary {
        transactions: *rate,
        latency_sum_ns: if *rate > 0.0 { 8e9 } else { 0.0 },
        backlog: 0.0,
    };
    rates.iter().map(interval).collect()
}

/// `seconds` of normal values with a variance of 1, each correlated with the one before.
fn noise(prng: &mut Prng, seconds: usize, correlation: f64) -> Vec<f64> {
    let mut normal = || {
        let radius = (-2.0 * prng.unit().max(1e-300).ln()).sqrt();
        radius * (std::f64::consts::TAU * prng.unit()).cos()
    };
    let mut value = normal();
    let fresh = (1.0 - correlation * correlation).sqrt();
    let next = |_| {
        let next = correlation * value + fresh * normal();
        std::mem::replace(&mut value, next)
    };
    (0..seconds).map(next).collect()
}

/// Rates around `level(second)` with noise of 3 %.
fn series(
    prng: &mut Prng,
    seconds: usize,
    correlation: f64,
    level: impl Fn(usize) -> f64,
) -> Vec<IntervalSummary> {
    let noise = noise(prng, seconds, correlation);
    let rate = |(second, noise): (usize, &f64)| (level(second) * (1.0 + 0.03 * noise)).max(0.0);
    closed(&noise.iter().enumerate().map(rate).collect::<Vec<f64>>())
}

fn share(mut is_so: impl FnMut() -> bool) -> f64 {
    (0..WINDOWS).filter(|_| is_so()).count() as f64 / WINDOWS as f64
}

fn is_unsteady(intervals: &[IntervalSummary]) -> bool {
    matches!(steady_state(intervals, 1.0), SteadyState::NotSteady { .. })
}

fn reasons(intervals: &[IntervalSummary], interval_s: f64) -> Vec<UnsteadyReason> {
    match steady_state(intervals, interval_s) {
        SteadyState::NotSteady { reasons } => reasons,
        other => panic!("{other:?}"),
    }
}

const CORRELATIONS: [f64; 3] = [0.0, 0.5, 0.9];

/// A window that fell counts as such if a change is found where it was, to within three seconds.
#[test]
fn a_fall_is_found_wherever_it_is_and_a_steady_window_is_rarely_called_unsteady() {
    for (seconds, correlation) in [60, 120].into_iter().flat_map(|n| CORRELATIONS.map(|c| (n, c))) {
        let mut prng = Prng::new(seconds as u64);
        let alarms = share(|| is_unsteady(&series(&mut prng, seconds, correlation, |_| 1_000.0)));
        assert!(alarms <= 0.05, "{seconds} s, {correlation}: {alarms} are false alarms");
        for length in [10, 25, seconds] {
            let found = share(|| {
                let from = 3 + prng.below(seconds - 12);
                let fallen = from..from + length;
                let level = |s| if fallen.contains(&s) { 850.0 } else { 1_000.0 };
                let window = series(&mut prng, seconds, correlation, level);
                let SteadyState::NotSteady { reasons } = steady_state(&window, 1.0) else {
                    return false;
                };
                reasons.iter().any(|reason| match reason {
                    UnsteadyReason::Change { at_s, length_s, .. } => {
                        let end = at_s + length_s.unwrap_or(seconds as f64);
                        [*at_s, end].iter().any(|place| {
                            let off = |edge: usize| (place - edge.min(seconds) as f64).abs();
                            off(from) <= 3.0 || off(from + length) <= 3.0
                        })
                    }
                    _ => false,
                })
            });
            assert!(found >= 0.95, "{seconds} s, {correlation}, {length}: {found} are found");
        }
    }
}

/// The window's change on a line is in its interval.
#[test]
fn the_interval_covers() {
    for (seconds, correlation) in [20, 60].into_iter().flat_map(|n| CORRELATIONS.map(|c| (n, c))) {
        let mut prng = Prng::new(7);
        let mut judged = 0.0;
        let outside = share(|| {
            let level = |s| 1_000.0 * (1.0 + 0.04 * s as f64 / (seconds - 1) as f64);
            let window = series(&mut prng, seconds, correlation, level);
            let (SteadyState::Steady { shift, .. } | SteadyState::CannotTell { shift, .. }) =
                steady_state(&window, 1.0)
            else {
                return false;
            };
            judged += 1.0;
            let truth = 0.04 / 1.02;
            shift.quantity == WindowQuantity::Throughput
                && !(shift.low..=shift.high).contains(&truth)
        });
        assert!(outside <= 0.05, "{seconds} s, {correlation}: {outside} of {judged}");
    }
}

#[test]
fn each_reason_is_named_with_its_time_and_size() {
    let check = |intervals: &[IntervalSummary], expected: &[&str]| {
        let reasons = reasons(intervals, 1.0);
        let words: Vec<String> = reasons.iter().map(UnsteadyReason::to_string).collect();
        for words in &words {
            assert!(expected.iter().any(|one| words.starts_with(one)), "{words}, not {expected:?}");
        }
        assert_eq!(words.len(), expected.len(), "{words:?}, not {expected:?}");
    };
    let mut prng = Prng::new(1);
    let noise = noise(&mut prng, 60, 0.0);
    let with = |seconds: usize, level: &dyn Fn(usize) -> f64| {
        let rates = (0..seconds).map(|s| (level(s) * (1.0 + 0.005 * noise[s])).round());
        closed(&rates.collect::<Vec<f64>>())
    };
    let step = |at: usize, before: f64, after: f64| move |s| if s < at { before } else { after };
    check(
        &with(40, &step(30, 10_000.0, 1_000.0)),
        &[
            "throughput fell from 9990 to 998 a second at 30 s",
            "latency rose from 0.801 to 8.02 ms at 30 s",
        ],
    );
    check(
        &with(60, &step(12, 2_000.0, 1_000.0)),
        &[
            "throughput fell from 1997 to 999 a second at 12 s",
            "latency rose from 4.01 to 8.01 ms at 12 s",
        ],
    );
    let dip = |from: usize, to: usize| {
        with(60, &|s| if (from..to).contains(&s) { 700.0 } else { 1_000.0 })
    };
    check(
        &dip(5, 20),
        &[
            "throughput fell from 999 to 699 a second at 5 s for 15 s",
            "latency rose from 8.01 to 11.4 ms at 5 s for 15 s",
        ],
    );
    check(
        &dip(2, 17),
        &[
            "throughput rose from 702 to 999 a second at 17 s",
            "latency fell from 11.4 to 8.01 ms at 17 s",
        ],
    );
    check(
        &with(60, &|s| if (40..52).contains(&s) { 0.0 } else { 1_000.0 }),
        &["no transaction ended for 12 s at 40 s"],
    );
    check(
        &with(60, &|s| if s == 40 { 0.0 } else { 1_000.0 }),
        &["no transaction ended for 1 s at"],
    );
    check(&with(40, &|_| 0.0), &["no transaction ended for 40 s at 0 s"]);
    check(
        &with(60, &|s| 1_000.0 - 10.0 * s as f64),
        &["throughput changed by -8", "latency changed by +"],
    );
    check(&closed(&[f64::NAN; 30]), &["a rate is not a number above zero"]);
    check(&closed(&[-1.0; 30]), &["a rate is not a number above zero"]);
    // An open loop whose server falls behind: throughput stays what it was for long.
    let mut open = with(60, &|_| 500.0);
    for (second, interval) in open.iter_mut().enumerate() {
        let latency_ms = 21.0 + if second < 20 { 0.0 } else { 20.0 * (second - 20) as f64 };
        interval.latency_sum_ns = interval.transactions * latency_ms * 1e6;
    }
    let found = reasons(&open, 1.0);
    let is_latency = |reason: &UnsteadyReason| match reason {
        UnsteadyReason::Change { quantity, .. } => *quantity == WindowQuantity::Latency,
        UnsteadyReason::Drift(shift) => shift.quantity == WindowQuantity::Latency,
        UnsteadyReason::Standstill { .. } | UnsteadyReason::NotARate => false,
    };
    assert!(
        found.iter().all(is_latency) && found.iter().any(UnsteadyReason::is_large),
        "{found:?}"
    );
    let mut behind = with(60, &|_| 500.0);
    (30..60).for_each(|second| behind[second].backlog = 100.0 * (second - 29) as f64);
    assert!(reasons(&behind, 1.0).iter().any(|reason| reason.to_string().starts_with("backlog")));
}

/// Of twenty minutes, too, each second is looked at; a long change is placed to within a few seconds.
#[test]
fn a_fall_in_a_long_window_is_found() {
    for (from, length) in [(703, 10), (101, 500), (1_189, 11), (20, 1_180)] {
        let fallen = from..from + length;
        let level = |s| if fallen.contains(&s) { 850.0 } else { 1_000.0 };
        let found = reasons(&series(&mut Prng::new(4), 1_200, 0.5, level), 1.0);
        let is_it = |reason: &UnsteadyReason| {
            let UnsteadyReason::Change { at_s, length_s, .. } = reason else { return false };
            let end = at_s + length_s.unwrap_or(1_200.0 - at_s);
            (at_s - from as f64).abs() <= 5.0 && (end - (from + length) as f64).abs() <= 5.0
        };
        assert!(found.iter().any(is_it), "{from} {length}: {found:?}");
    }
}

#[test]
fn a_window_that_is_even_is_steady() {
    let check = |intervals: &[IntervalSummary], interval_s: f64, warm_up_s: f64| {
        let state = steady_state(intervals, interval_s);
        let SteadyState::Steady { warmup_s, shift } = state else { panic!("{state:?}") };
        assert!((warmup_s - warm_up_s).abs() < 1e-9, "{warmup_s}, not {warm_up_s}");
        assert!(shift.low <= 0.0 && 0.0 <= shift.high, "{shift:?}");
    };
    check(&closed(&[100.0; 10]), 1.0, 0.0);
    check(&closed(&[100.0; 600]), 0.1, 0.0);
    let climb = |seconds: usize| (0..seconds).map(|s| 1_000.0 * (0.4 + 0.15 * s as f64).min(1.0));
    check(&closed(&climb(60).collect::<Vec<f64>>()), 1.0, 5.0);
    check(&closed(&climb(20).collect::<Vec<f64>>()), 1.0, 4.0);
    // Four clients whose transactions take 2.5 s: more than half of the seconds have none.
    let mut long = [0.0; 60];
    (1..24).for_each(|n| long[5 * n / 2] = 4.0);
    let state = steady_state(&closed(&long), 1.0);
    assert!(!matches!(state, SteadyState::NotSteady { .. }), "{state:?}");
    // Of an even series, however short, any fall would have been seen.
    let found = detectable(&closed(&[100.0; 10]), 1.0);
    assert!(found.is_some_and(|found| found.share < 0.05), "{found:?}");
}

#[test]
fn what_cannot_be_told_is_said() {
    let expected = SteadyState::TooShort { length_s: 4.0, needed_s: 10.0 };
    assert_eq!(steady_state(&closed(&[100.0; 4]), 1.0), expected);
    let expected = SteadyState::TooShort { length_s: 0.0, needed_s: 2.0 };
    assert_eq!(steady_state(&[], 0.2), expected);
    let mut prng = Prng::new(5);
    let few = series(&mut prng, 12, 0.0, |_| 1_000.0);
    assert!(matches!(steady_state(&few, 1.0), SteadyState::CannotTell { .. }));
    // The longer the window, the smaller the fall that it would have shown.
    let share = |seconds: usize| {
        let found = detectable(&series(&mut Prng::new(5), seconds, 0.5, |_| 1_000.0), 1.0);
        found.map_or(1.0, |found| found.share)
    };
    let shares = [12, 60, 240].map(share);
    assert!(shares[0] > shares[1] && shares[1] < 0.15 && shares[2] < 0.12, "{shares:?}");
}

#[test]
fn a_window_that_never_settles_is_never_called_steady() {
    for (seconds, expected) in [(20, 0.2), (40, 0.97), (120, 0.99)] {
        let mut prng = Prng::new(1);
        let found = share(|| {
            let level = |s| 1_000.0 * (0.7 + 0.3 * s as f64 / seconds as f64);
            let window = series(&mut prng, seconds, 0.0, level);
            assert!(!matches!(steady_state(&window, 1.0), SteadyState::Steady { .. }));
            is_unsteady(&window)
        });
        assert!(found >= expected, "{seconds} s: {found} are called unsteady");
    }
}

#[test]
fn a_ramp_is_left_out() {
    for seconds in [20, 30, 60, 120] {
        let mut prng = Prng::new(2);
        let found = share(|| {
            let level = |s| 1_000.0 * (0.4 + 0.15 * s as f64).min(1.0);
            let batch = (seconds / 10).min(5) as f64;
            matches!(steady_state(&series(&mut prng, seconds, 0.0, level), 1.0),
                SteadyState::Steady { warmup_s, .. } | SteadyState::CannotTell { warmup_s, .. }
                    if warmup_s >= 4.0 - batch)
        });
        assert!(found > 0.9, "{seconds} s: {found}");
    }
}

proptest! {
    #[test]
    fn no_input_panics(
        figures in prop::collection::vec((any::<f64>(), any::<f64>(), any::<f64>()), 0..60),
        interval_s in any::<f64>(),
    ) {
        let intervals: Vec<IntervalSummary> = figures
            .iter()
            .map(|(transactions, latency_sum_ns, backlog)| IntervalSummary {
                transactions: *transactions,
                latency_sum_ns: *latency_sum_ns,
                backlog: *backlog,
            })
            .collect();
        let _ = (steady_state(&intervals, interval_s), detectable(&intervals, interval_s));
        let positive: Vec<IntervalSummary> = intervals
            .iter()
            .map(|one| IntervalSummary {
                transactions: one.transactions.abs(),
                latency_sum_ns: one.latency_sum_ns.abs(),
                backlog: one.backlog.abs(),
            })
            .collect();
        let _ = (steady_state(&positive, interval_s), detectable(&positive, 1.0));
    }

    #[test]
    fn the_warm_up_is_at_most_half(rates in prop::collection::vec(0.0..1e6f64, 10..80)) {
        let state = steady_state(&closed(&rates), 1.0);
        if let SteadyState::Steady { warmup_s, .. } | SteadyState::CannotTell { warmup_s, .. } = state {
            prop_assert!(warmup_s <= rates.len() as f64 / 2.0);
        }
    }
}
