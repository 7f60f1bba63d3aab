//! Values over rounds and their intervals.

use super::*;

#[test]
fn the_interval_of_a_ratio_is_that_of_its_rounds_whatever_the_weather() {
    let judged = judge(&study(), &[], &rounds(6, 1000.0, 1300.0), &[]);
    let claim = &judged.claims[0];
    let (low, point, high) = interval(claim);
    assert!((point - 1.3).abs() < 0.02, "{point}");
    // Rounds differ by half from each other, but the ratio within a round by 1 %.
    assert!(high - low < 0.08, "{low} {high}");
    assert!(low < point && point < high);
    assert_eq!((claim.verdict, claim.why.as_str()), (Verdict::Holds, ""));
    assert_eq!(claim.published, Some(1.144));
    let ClaimMeasurement::Value { per_round, .. } = &claim.measured else { panic!() };
    assert_eq!(per_round.len(), 6);
    assert!((per_round[0] - 1.3 * 0.98).abs() < 1e-9);
    let answer = format!(
        "Yes: {}× [{}, {}], n 6, published 1.144.",
        terms::figure(point),
        terms::figure(low),
        terms::figure(high)
    );
    assert_eq!(judged.answer, answer);
    assert_eq!(judge(&study(), &[], &rounds(6, 1000.0, 1300.0), &[]), judged);
}

/// Where one side completed nothing in a round, its ratio is 0 or infinite, and still a result; that
/// the quotient holds is refused then, whichever side it was.
#[test]
fn a_round_in_which_one_side_stood_still_counts() {
    let check = |still: &str, rounds_still: usize, verdict, bounds: (f64, f64)| {
        let mut trials = rounds(6, 1000.0, 1300.0);
        let side = trials.iter_mut().filter(|trial| trial.variant == still).take(rounds_still);
        side.for_each(|trial| {
            trial.metrics.get_mut("tps").unwrap().insert(String::new(), 0.0);
        });
        let claim = first(&trials);
        let ClaimMeasurement::Value { interval, .. } = &claim.measured else { panic!("{claim:?}") };
        let near = |value: f64, bound: f64| value == bound || (value - bound).abs() < 0.05;
        assert_eq!(claim.verdict, verdict);
        assert!(near(interval.low, bounds.0) && near(interval.high, bounds.1), "{interval:?}");
    };
    check("a", 1, Verdict::CannotTell, (1.3, f64::INFINITY));
    check("a", 6, Verdict::Holds, (f64::INFINITY, f64::INFINITY));
    check("b", 1, Verdict::CannotTell, (0.0, 1.32));
    check("b", 6, Verdict::DoesNotHold, (0.0, 0.0));
}

/// A side with more rounds than the other is alone in the last of them by plan.
#[test]
fn a_round_that_was_planned_for_one_side_is_not_incomplete() {
    let apart = |rounds_of_a: u32| {
        let other = "[scenarios.t]\nrun = [\"w\"]\nover = { clients = [8] }\n[answer]";
        let own = format!("[scenarios.s]\nrounds = {rounds_of_a}\n");
        let text = STUDY.replacen("[answer]", other, 1).replacen("[scenarios.s]\n", &own, 1);
        parse(&text.replace("'b/s'", "'b/t'"))
    };
    let mut trials = rounds(7, 1000.0, 1300.0);
    trials.retain(|trial| trial.variant == "a" || trial.round < 7);
    trials.iter_mut().filter(|trial| trial.variant == "b").for_each(|trial| {
        trial.scenario = "t".to_owned();
    });
    for (rounds_of_a, why) in [(7, ""), (6, "1 round is incomplete")] {
        let claim = &judge(&apart(rounds_of_a), &[], &trials, &[]).claims[0];
        assert_eq!((claim.verdict, claim.why.as_str()), (Verdict::Holds, why));
    }
}

#[test]
fn each_kind_of_value_has_its_interval() {
    let check = |value: &str, b: [f64; 6], method: IntervalMethod, expected: (f64, f64)| {
        let study = STUDY.replacen("tps('b/s') / tps('a/s', 'clients=8')", value, 1);
        let mut trials = rounds(6, 1000.0, 1000.0);
        for trial in &mut trials {
            let tps = if trial.variant == "b" { b[trial.round - 1] } else { 1000.0 };
            trial.metrics.get_mut("tps").unwrap().insert(String::new(), tps);
        }
        let claim = judge(&parse(&study), &[], &trials, &[]).claims.remove(0);
        let (low, _, high) = interval(&claim);
        let ClaimMeasurement::Value { interval, .. } = &claim.measured else { panic!() };
        assert_eq!(interval.method, method, "{value}");
        assert!(
            (low - expected.0).abs() < 2e-3 && (high - expected.1).abs() < 2e-3,
            "{low} {high}"
        );
    };
    let even = [1000.0, 1020.0, 980.0, 1010.0, 990.0, 1000.0];
    let outlying = [1000.0, 1020.0, 980.0, 1010.0, 990.0, 500.0];
    check("tps('b/s') / tps('a/s')", even, IntervalMethod::Student, (0.985, 1.015));
    check("tps('b/s') / tps('a/s')", outlying, IntervalMethod::SignedRank, (0.5, 1.02));
    check("(tps('b/s') - tps('a/s')) / 1000", even, IntervalMethod::SignTest, (-0.02, 0.02));
}

#[test]
fn rounds_that_resemble_their_neighbours_widen_the_interval() {
    let mut drifting = rounds(6, 1000.0, 1000.0);
    for trial in &mut drifting {
        let gain = if trial.variant == "b" { 0.97 + 0.01 * trial.round as f64 } else { 1.0 };
        trial.metrics.get_mut("tps").unwrap().insert(String::new(), 1000.0 * gain);
    }
    let claim = first(&drifting);
    let (low, point, high) = interval(&claim);
    assert!(low < 0.93 && high > 1.08 && (point - 1.005).abs() < 1e-3, "{low} {point} {high}");
    let why = "the interval reaches across the bound; rounds resemble their neighbours (lag-1 \
               autocorrelation 0.50): the interval is 4.4 times as wide as it would be for \
               independent rounds";
    assert_eq!(claim.why, why);
}

/// A quotient is doubted for the generator's delay if it would be another one without it, and not otherwise.
#[test]
fn the_generators_delay_takes_back_what_depends_on_it() {
    let mut a = rounds(6, 1000.0, 1300.0);
    for trial in &mut a {
        // The same in milliseconds, as far as a closed loop of clients goes.
        let tps = trial.metrics["tps"][""];
        trial.metrics.insert("latency_mean_ms".to_owned(), [(String::new(), 8_000.0 / tps)].into());
    }
    let check = |value: &str, expect: &str, slow: &str, lag: f64, expected, why: &str| {
        let study = STUDY.replacen("tps('b/s') / tps('a/s', 'clients=8')", value, 1).replacen(
            "expect = \">= 1.0\"",
            &format!("expect = \"{expect}\""),
            1,
        );
        let mut trials = a.clone();
        trials
            .iter_mut()
            .filter(|trial| trial.variant == slow)
            .for_each(|trial| trial.generator.lag_share = lag);
        let claim = judge(&parse(&study), &[], &trials, &[]).claims.remove(0);
        assert_eq!(claim.verdict, expected, "{value} {expect} {slow} {lag}: {}", claim.why);
        assert!(claim.why.contains(why), "{}", claim.why);
    };
    let (rate, mean) = (
        "tps('b/s') / tps('a/s', 'clients=8')",
        "latency_mean_ms('b/s') / latency_mean_ms('a/s', 'clients=8')",
    );
    use Verdict::{CannotTell, DoesNotHold, Holds};
    check(rate, ">= 1.0", "a", 0.08, Holds, "");
    check(rate, ">= 1.0", "a", 0.40, CannotTell, "looked late");
    // Without the delay of b it would be larger still.
    check(rate, ">= 1.0", "b", 0.40, Holds, "");
    check(rate, ">= 5.0", "b", 0.08, DoesNotHold, "");
    check(mean, "<= 1.0", "a", 0.08, Holds, "");
    check(mean, "<= 1.0", "a", 0.40, CannotTell, "looked late");
}
