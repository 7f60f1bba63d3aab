//! What is said about claims, given trials whose figures are made up.

use std::collections::BTreeMap;

use record::{Generator, Moment, Phase, Status, Trial};
use spec::{Folder, Profile, Study};
use stats::Latency;
use verdict::{Change, ClaimVerdict, Measured, Side, Verdict, diff, judge};

const STUDY: &str = r#"
question = "?"
[variants.a]
[variants.b]
[workloads.w]
builtin = "select-only"
[scenarios.s]
run = ["w"]
over = { clients = [8] }
[answer]
holds = "Yes: {value}× {interval}, n {n}, published {published}."
fails = "No: {value}×, between {low} and {high}."
unsure = "Maybe: {value}×."
[[claims]]
says = "b is faster"
value = "tps('b/s') / tps('a/s', 'clients=8')"
expect = ">= 1.0"
published = 1.144
[[claims]]
says = "b costs less CPU"
value = "server_cpu_us_per_tx('b/s') / server_cpu_us_per_tx('a/s')"
expect = "< 1"
[[claims]]
says = "counts agree"
every = "count_difference == 0"
kind = "invariant"
"#;

fn study() -> Study {
    let files = BTreeMap::from([("study.toml".to_owned(), STUDY.to_owned())]);
    let folder = Folder { name: "mine".to_owned(), files };
    Study::parse(&folder, Profile::Quick).unwrap()
}

fn phase() -> Phase {
    Phase {
        count: 0,
        failures: BTreeMap::new(),
        length_ns: 0,
        latency: Latency::new(),
        generator_cpu_ns: 0,
    }
}

fn trial(round: usize, variant: &str, metrics: &[(&str, f64)]) -> Trial {
    let metrics = metrics
        .iter()
        .map(|(name, value)| ((*name).to_owned(), BTreeMap::from([(String::new(), *value)])));
    Trial {
        number: round * 2 + usize::from(variant == "b"),
        round,
        variant: variant.to_owned(),
        scenario: "s".to_owned(),
        axes: BTreeMap::from([("clients".to_owned(), "8".to_owned())]),
        status: Status::Done,
        started_at: String::new(),
        began: Moment(0),
        ended: Moment(0),
        window: None,
        connecting: phase(),
        disconnecting: phase(),
        workloads: Vec::new(),
        generator: Generator::default(),
        metrics: metrics.collect(),
        notes: Vec::new(),
    }
}

/// Rounds of both variants; `a` and `b` are their throughputs. Even rounds are slow for both.
fn rounds(n: usize, a: f64, b: f64) -> Vec<Trial> {
    let both = (1..=n).flat_map(|round| {
        let weather = if round % 2 == 0 { 0.5 } else { 1.0 };
        let jitter = 1.0 + 0.01 * (round as f64 - 3.0);
        [
            trial(
                round,
                "a",
                &[("tps", a * weather), ("server_cpu_us_per_tx", 100.0), ("count_difference", 0.0)],
            ),
            trial(
                round,
                "b",
                &[
                    ("tps", b * weather * jitter),
                    ("server_cpu_us_per_tx", 90.0 + round as f64),
                    ("count_difference", 0.0),
                ],
            ),
        ]
    });
    both.collect()
}

fn first(trials: &[Trial]) -> ClaimVerdict {
    judge(&study(), trials).claims.remove(0)
}

fn interval(claim: &ClaimVerdict) -> (f64, f64, f64) {
    let Measured::Value { interval, .. } = &claim.measured else { panic!("{claim:?}") };
    (interval.low, interval.point, interval.high)
}

#[test]
fn the_interval_of_a_ratio_is_that_of_its_rounds_whatever_the_weather() {
    let judged = judge(&study(), &rounds(6, 1000.0, 1300.0));
    let claim = &judged.claims[0];
    let (low, point, high) = interval(claim);
    assert!((point - 1.3).abs() < 0.02, "{point}");
    // Rounds differ by half from each other, but the ratio within a round by 1 %.
    assert!(high - low < 0.08, "{low} {high}");
    assert!(low < point && point < high);
    assert_eq!((claim.verdict, claim.why.as_str()), (Verdict::Holds, ""));
    assert_eq!(claim.published, Some(1.144));
    let Measured::Value { per_round, .. } = &claim.measured else { panic!() };
    assert_eq!(per_round.len(), 6);
    assert!((per_round[0] - 1.3 * 0.98).abs() < 1e-9);
    let answer = format!(
        "Yes: {}× [{}, {}], n 6, published 1.144.",
        verdict::number(point),
        verdict::number(low),
        verdict::number(high)
    );
    assert_eq!(judged.answer, answer);
    assert_eq!(judge(&study(), &rounds(6, 1000.0, 1300.0)), judged);
}

#[test]
fn a_claim_holds_does_not_hold_or_cannot_be_told() {
    let check = |trials: &[Trial], verdict, why: &str| {
        let claim = first(trials);
        assert_eq!((claim.verdict, claim.why.as_str()), (verdict, why));
    };
    check(&rounds(6, 1000.0, 1300.0), Verdict::Holds, "");
    check(&rounds(6, 1300.0, 1000.0), Verdict::DoesNotHold, "");
    check(&rounds(6, 1000.0, 1000.0), Verdict::CannotTell, "the interval reaches across the bound");
    check(
        &rounds(5, 1000.0, 1300.0),
        Verdict::CannotTell,
        "5 of the 6 rounds that a verdict takes",
    );
    check(&[], Verdict::CannotTell, "no trial of b/s clients=8 has tps");
    let half: Vec<Trial> = rounds(6, 1.0, 2.0).into_iter().filter(|t| t.variant == "b").collect();
    check(&half, Verdict::CannotTell, "no trial of a/s clients=8 has tps");
    let mut idle = rounds(6, 1000.0, 1300.0);
    idle.iter_mut().for_each(|trial| {
        trial.metrics.get_mut("tps").unwrap().insert(String::new(), 0.0);
    });
    check(&idle, Verdict::CannotTell, "no interval: a value is not a finite number");
}

#[test]
fn trials_that_do_not_count_take_their_round_with_them() {
    let mut trials = rounds(7, 1000.0, 1300.0);
    trials[2].status = Status::Void("not steady".to_owned());
    let judged = judge(&study(), &trials);
    let claim = &judged.claims[0];
    let Measured::Value { interval, .. } = &claim.measured else { panic!() };
    assert_eq!(interval.n, 6);
    assert_eq!((claim.verdict, claim.why.as_str()), (Verdict::Holds, "1 round is incomplete"));
    let discarded = &judged.discarded[0];
    assert_eq!((discarded.status, discarded.why.as_str()), ("void", "not steady"));
    assert_eq!(discarded.name, "a/s clients=8");
}

#[test]
fn a_rig_that_was_the_limit_spoils_what_clients_measured_and_nothing_else() {
    let mut trials = rounds(6, 1000.0, 1300.0);
    for trial in trials.iter_mut().filter(|trial| trial.variant == "b") {
        trial.generator.busy_share_max = 0.93;
    }
    let judged = judge(&study(), &trials);
    assert_eq!(judged.claims[0].verdict, Verdict::CannotTell);
    assert_eq!(judged.claims[0].why, "the generator was the limit in b/s clients=8: 93 % busy");
    assert!(judged.answer.starts_with("Maybe: "));
    assert_eq!(judged.claims[1].verdict, Verdict::Holds, "the servers' CPU is still right");
    // One bad round of six is weather.
    let mut trials = rounds(6, 1000.0, 1300.0);
    trials[0].generator.busy_share_max = 1.0;
    assert_eq!(first(&trials).verdict, Verdict::Holds);
}

#[test]
fn an_invariant_is_counted_in_every_trial() {
    let mut trials = rounds(6, 1000.0, 1300.0);
    let claim = |trials: &[Trial]| judge(&study(), trials).claims.remove(2);
    let found = claim(&trials);
    assert_eq!(found.measured, Measured::Count { trials: 12, failures: 0, rate_max: 0.25 });
    assert_eq!(found.verdict, Verdict::Holds);

    trials[3].metrics.get_mut("count_difference").unwrap().insert(String::new(), 2.0);
    trials[3].status = Status::Void("not steady".to_owned());
    trials[4].metrics.remove("count_difference");
    let found = claim(&trials);
    assert_eq!(found.verdict, Verdict::DoesNotHold, "a void trial may not lose anything either");
    assert_eq!(
        found.why,
        "trial 5 (b/s clients=8): count_difference = 2; 1 trial without count_difference"
    );
    assert_eq!(claim(&[]).verdict, Verdict::CannotTell);
    assert_eq!(claim(&[]).why, "no such trial was run");
}

#[test]
fn the_noise_is_that_of_the_same_thing_twice() {
    let same = judge(&study(), &rounds(6, 1000.0, 1000.0)).noise.unwrap();
    assert_eq!((same.points, same.rounds), (2, 6));
    assert!(same.percent > 20.0, "rounds differ by half: {}", same.percent);
    assert_eq!(judge(&study(), &rounds(1, 1000.0, 1000.0)).noise, None);
}

#[test]
fn two_records_differ_by_more_than_their_noise_or_nobody_can_tell() {
    let study = study();
    let steady = |tps: f64| -> Vec<Trial> {
        let values = (1..=6).map(|round| {
            let jitter = 1.0 + 0.002 * (round as f64 - 3.5);
            trial(round, "a", &[("tps", tps * jitter), ("latency_p99_ms", 1e3 / tps * jitter)])
        });
        values.collect()
    };
    let check = |before: &[Trial], after: &[Trial], expected: [Change; 2]| {
        let (before, after) =
            (Side { study: &study, trials: before }, Side { study: &study, trials: after });
        let found: Vec<Change> = diff(before, after).iter().map(|d| d.change).collect();
        assert_eq!(found, expected);
    };
    check(&steady(1000.0), &steady(1300.0), [Change::Better; 2]);
    check(&steady(1300.0), &steady(1000.0), [Change::Worse; 2]);
    check(&steady(1000.0), &steady(1002.0), [Change::Same; 2]);
    check(&steady(1000.0), &steady(1020.0), [Change::CannotTell; 2]);
    check(&steady(1000.0), &steady(1300.0)[..3], [Change::CannotTell; 2]);
    let sides = (
        Side { study: &study, trials: &steady(1000.0) },
        Side { study: &study, trials: &steady(1300.0)[..2] },
    );
    let found = diff(sides.0, sides.1);
    let ratio = found[0].ratio.unwrap();
    assert!(ratio.low < 1.3 && 1.3 < ratio.high * 1.01, "{ratio:?}");
    assert_eq!(found[0].point, "a/s clients=8");
    assert!((found[0].before - 1000.0).abs() < 1e-9);
}
