//! What is said about claims, given trials whose figures are made up.

use std::collections::BTreeMap;

use record::{Ending, Fact, Generator, Header, Moment, Phase, State, Trial, VoidKind};
use spec::{Folder, Profile, Quantifier, Study};
use stats::{Latency, Method};
use verdict::{Change, ClaimVerdict, Diff, Measured, Side, Source, Verdict, diff, judge};

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
    parse(STUDY)
}

fn parse(study: &str) -> Study {
    let files = BTreeMap::from([("study.toml".to_owned(), study.to_owned())]);
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
        attempt: 1,
        round,
        variant: variant.to_owned(),
        scenario: "s".to_owned(),
        axes: BTreeMap::from([("clients".to_owned(), "8".to_owned())]),
        ending: Ending::Done,
        started_at: String::new(),
        began: Moment(0),
        ended: Moment(0),
        window: None,
        connecting: phase(),
        disconnecting: phase(),
        workloads: Vec::new(),
        generator: Generator::default(),
        metrics: metrics.collect(),
        at_least: BTreeMap::new(),
        notes: Vec::new(),
    }
}

/// Rounds of both variants; `a` and `b` are their throughputs. Even rounds are slow for both.
fn rounds(n: usize, a: f64, b: f64) -> Vec<Trial> {
    let both = (1..=n).flat_map(|round| {
        let weather = if round % 2 == 0 { 0.5 } else { 1.0 };
        let step = [-2.0, 3.0, -1.0, 2.0, 0.0, 1.0, -2.0][round - 1];
        let jitter = 1.0 + 0.01 * step;
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
                    ("server_cpu_us_per_tx", 93.0 + step),
                    ("count_difference", 0.0),
                ],
            ),
        ]
    });
    both.collect()
}

fn first(trials: &[Trial]) -> ClaimVerdict {
    judge(&study(), &[], trials).claims.remove(0)
}

fn interval(claim: &ClaimVerdict) -> (f64, f64, f64) {
    let Measured::Value { interval, .. } = &claim.measured else { panic!("{claim:?}") };
    (interval.low, interval.point, interval.high)
}

#[test]
fn the_interval_of_a_ratio_is_that_of_its_rounds_whatever_the_weather() {
    let judged = judge(&study(), &[], &rounds(6, 1000.0, 1300.0));
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
    assert_eq!(judge(&study(), &[], &rounds(6, 1000.0, 1300.0)), judged);
}

#[test]
fn an_answer_adds_what_was_measured_and_leaves_out_what_was_not_published() {
    let adds = r#"unsure = "Maybe: {value}×."
adds = [
  { says = "It takes {value} µs {interval}.", value = "server_cpu_us_per_tx('a/s')" },
  { says = "It loses {value}.", value = "ledger_lost('b/s')" },
]"#;
    let added = STUDY.replacen("unsure = \"Maybe: {value}×.\"", adds, 1);
    let mut trials = rounds(6, 1000.0, 1300.0);
    for trial in &mut trials {
        trial.metrics.insert("server_cpu_us_per_tx".to_owned(), [(String::new(), 250.0)].into());
    }
    let answer = judge(&parse(&added), &[], &trials).answer;
    assert!(answer.ends_with("published 1.144. It takes 250 µs [250, 250]."), "{answer}");
    let unpublished = added
        .replace("published = 1.144\n", "")
        .replace(", n {n}, published {published}.", ". Published: {published}×.");
    let answer = judge(&parse(&unpublished), &[], &trials).answer;
    assert!(answer.starts_with("Yes: ") && !answer.contains("ublished"), "{answer}");
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
    let why = "no interval: a value is zero or negative, which has no ratio";
    check(&idle, Verdict::CannotTell, why);
}

#[test]
fn counted_trials_in_words() {
    let check = |quantifier, trials: u64, failures: u64, expected: &str| {
        let count = Measured::Count { quantifier, trials, failures, rate_max: 1.0 };
        assert_eq!(count.counted().as_deref(), Some(expected));
    };
    check(Quantifier::Every, 20, 0, "in all 20 trials");
    check(Quantifier::Every, 1, 0, "in the one trial");
    check(Quantifier::Every, 20, 3, "not in 3 of 20");
    check(Quantifier::Every, 1, 1, "not in 1 of 1");
    check(Quantifier::Some, 20, 17, "seen in 3 of 20");
    check(Quantifier::Some, 20, 20, "seen in none of 20");
    assert_eq!(Measured::Nothing.counted(), None);
}

/// Where one side completed nothing in a round, its ratio is 0 or infinite, and still a result.
#[test]
fn a_round_in_which_one_side_stood_still_counts() {
    let check = |still: &str, rounds_still: usize, verdict, bounds: (f64, f64)| {
        let mut trials = rounds(6, 1000.0, 1300.0);
        let side = trials.iter_mut().filter(|trial| trial.variant == still).take(rounds_still);
        side.for_each(|trial| {
            trial.metrics.get_mut("tps").unwrap().insert(String::new(), 0.0);
        });
        let claim = first(&trials);
        let Measured::Value { interval, .. } = &claim.measured else { panic!("{claim:?}") };
        let near = |value: f64, bound: f64| value == bound || (value - bound).abs() < 0.05;
        assert_eq!(claim.verdict, verdict);
        assert!(near(interval.low, bounds.0) && near(interval.high, bounds.1), "{interval:?}");
    };
    check("a", 1, Verdict::Holds, (1.3, f64::INFINITY));
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
        let claim = &judge(&apart(rounds_of_a), &[], &trials).claims[0];
        assert_eq!((claim.verdict, claim.why.as_str()), (Verdict::Holds, why));
    }
}

#[test]
fn trials_that_do_not_count_take_their_round_with_them() {
    let mut trials = rounds(7, 1000.0, 1300.0);
    trials[2].ending = Ending::void(VoidKind::NotSteady, "not steady");
    let judged = judge(&study(), &[], &trials);
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
    let judged = judge(&study(), &[], &trials);
    assert_eq!(judged.claims[0].verdict, Verdict::CannotTell);
    assert_eq!(judged.claims[0].why, "the generator was the limit in b/s clients=8: 93 % busy");
    assert!(judged.answer.starts_with("Maybe: "));
    assert_eq!(judged.claims[1].verdict, Verdict::Holds, "the servers' CPU is still right");
    // Each trial is looked at: one of six is enough.
    let mut trials = rounds(6, 1000.0, 1300.0);
    trials[0].generator.busy_share_max = 1.0;
    let why =
        "the generator was the limit in a/s clients=8: 100 % busy (at worst; in 1 of 6 trials)";
    let claim = first(&trials);
    assert_eq!((claim.verdict, claim.why.as_str()), (Verdict::CannotTell, why));
}

#[test]
fn no_starved_rig_no_open_wait_and_no_backlog_ends_in_holds() {
    let about_every = |condition: &str| {
        STUDY.replacen("every = \"count_difference == 0\"", &format!("every = \"{condition}\""), 1)
    };
    let check = |condition: &str, spoil: &dyn Fn(&mut Trial), verdict, word: &str| {
        let mut trials = rounds(6, 1000.0, 1300.0);
        for trial in &mut trials {
            let figures =
                [("longest_wait_ms", 5.0), ("latency_p99_ms", 4.0), ("transactions", 9000.0)];
            for (name, value) in figures {
                let scopes = BTreeMap::from([(String::new(), value)]);
                trial.metrics.insert(name.to_owned(), scopes);
            }
        }
        spoil(&mut trials[3]);
        let claim = judge(&parse(&about_every(condition)), &[], &trials).claims.remove(2);
        assert_eq!(claim.verdict, verdict, "{condition}: {}", claim.why);
        assert!(claim.why.contains(word), "{condition}: {}", claim.why);
    };
    fn set(trial: &mut Trial, name: &str, value: f64) {
        trial.metrics.entry(name.to_owned()).or_default().insert(String::new(), value);
    }
    fn open(trial: &mut Trial, name: &str, value: f64) {
        set(trial, name, value);
        trial.at_least.entry(name.to_owned()).or_default().insert(String::new());
    }
    let (wait, p99) = ("longest_wait_ms <= 50", "latency_p99_ms <= 50");
    check(wait, &|_| {}, Verdict::Holds, "");
    // A client that hangs at the close.
    check(wait, &|t| open(t, "longest_wait_ms", 40.0), Verdict::CannotTell, "longest_wait_ms > 40");
    check(
        wait,
        &|t| open(t, "longest_wait_ms", 60.0),
        Verdict::DoesNotHold,
        "longest_wait_ms > 60",
    );
    check(p99, &|t| open(t, "latency_p99_ms", 4.0), Verdict::CannotTell, "latency_p99_ms > 4");
    // A backlog that grows.
    check(p99, &|t| set(t, "backlog_growth", 0.2), Verdict::CannotTell, "backlog");
    check("tps > 1", &|t| set(t, "backlog_growth", 0.2), Verdict::Holds, "");
    // A percentile of too few transactions.
    check(p99, &|t| set(t, "transactions", 298.0), Verdict::CannotTell, "takes 299");
    // A generator without CPU, or on a machine that has none left.
    check(
        wait,
        &|t| t.generator.run_delay_share = Some(0.2),
        Verdict::CannotTell,
        "waited for a CPU",
    );
    check(wait, &|t| t.generator.lag_share = 0.2, Verdict::CannotTell, "looked late");
    check(wait, &|t| set(t, "cpu_steal_pct", 9.0), Verdict::CannotTell, "hypervisor");
    let crowded = |t: &mut Trial| {
        set(t, "generator_cpu_share", 0.6);
        set(t, "cpu_idle_pct", 1.0);
    };
    check(wait, &crowded, Verdict::CannotTell, "competed");
    check("count_difference == 0", &crowded, Verdict::Holds, "");
}

#[test]
fn a_value_over_an_open_wait_cannot_be_told_and_checkpoints_are() {
    let study = STUDY.replacen(
        "tps('b/s') / tps('a/s', 'clients=8')",
        "latency_max_ms('b/s') / latency_max_ms('a/s')",
        1,
    );
    let mut trials = rounds(6, 1000.0, 1300.0);
    for trial in &mut trials {
        let value = if trial.variant == "b" {
            13.0
        } else {
            10.0 + [-0.2, 0.3, -0.1, 0.2, 0.0, 0.1][trial.round - 1]
        };
        for (name, value) in [("latency_max_ms", value), ("checkpoints", 1.0)] {
            trial.metrics.insert(name.to_owned(), BTreeMap::from([(String::new(), value)]));
        }
    }
    let claim = |trials: &[Trial]| judge(&parse(&study), &[], trials).claims.remove(0);
    assert_eq!((claim(&trials).verdict, claim(&trials).why.as_str()), (Verdict::Holds, ""));
    trials[1].metrics.get_mut("checkpoints").unwrap().insert(String::new(), 2.0);
    let why = "compared windows hold different numbers of checkpoints in 1 of 6 rounds";
    assert_eq!((claim(&trials).verdict, claim(&trials).why.as_str()), (Verdict::Holds, why));
    let scopes = [String::new()].into_iter().collect();
    trials[5].at_least.insert("latency_max_ms".to_owned(), scopes);
    let found = claim(&trials);
    assert_eq!(found.verdict, Verdict::CannotTell);
    assert!(found.why.contains("latency_max_ms > 13.000"), "{}", found.why);
}

#[test]
fn an_invariant_is_counted_in_every_trial() {
    let mut trials = rounds(6, 1000.0, 1300.0);
    let claim = |trials: &[Trial]| judge(&study(), &[], trials).claims.remove(2);
    let found = claim(&trials);
    let quantifier = Quantifier::Every;
    let all = Measured::Count { quantifier, trials: 12, failures: 0, rate_max: 0.25 };
    assert_eq!(
        (&found.measured, found.measured.counted().as_deref()),
        (&all, Some("in all 12 trials"))
    );
    assert_eq!(found.verdict, Verdict::Holds);

    trials[3].metrics.get_mut("count_difference").unwrap().insert(String::new(), 2.0);
    trials[3].ending = Ending::void(VoidKind::NotSteady, "not steady");
    trials[4].metrics.remove("count_difference");
    let found = claim(&trials);
    assert_eq!(found.verdict, Verdict::DoesNotHold, "a void trial may not lose anything either");
    assert_eq!(
        found.why,
        "trial 5 (b/s clients=8): count_difference = 2; trial 6 (a/s clients=8) has no \
         count_difference"
    );
    assert_eq!(claim(&[]).verdict, Verdict::CannotTell);
    assert_eq!(claim(&[]).why, "no such trial was run");
}

#[test]
fn a_verdict_that_stands_by_itself_only_is_taken_back_and_shown() {
    // The first claim is clear; the CPU of b is lower, but not by much.
    let mut trials = rounds(6, 1000.0, 1300.0);
    for trial in trials.iter_mut().filter(|trial| trial.variant == "b") {
        let cpu = [88.0, 98.5, 90.0, 99.0, 89.0, 97.0][trial.round - 1];
        trial.metrics.get_mut("server_cpu_us_per_tx").unwrap().insert(String::new(), cpu);
    }
    let family = STUDY.replace(
        "[[claims]]\nsays = \"counts agree\"",
        "[[claims]]\nsays = \"b costs much less CPU\"\n\
         value = \"server_cpu_us_per_tx('b/s') / server_cpu_us_per_tx('a/s')\"\nexpect = \"< 0.98\"\n\
         [[claims]]\nsays = \"counts agree\"",
    );
    let judged = judge(&parse(&family), &[], &trials);
    assert_eq!(judged.claims[0].verdict, Verdict::Holds);
    let claim = &judged.claims[1];
    assert_eq!((claim.alone, claim.verdict), (Verdict::Holds, Verdict::CannotTell));
    let why = "holds by itself, but not among the study's 3 claims about values (p 0.06 after \
               Holm's correction)";
    assert_eq!(claim.why, why);
    // A study that claims nothing else keeps it.
    let [_, second, third]: [&str; 3] =
        STUDY.split("[[claims]]").skip(1).collect::<Vec<_>>().try_into().unwrap();
    let head = STUDY.split("[[claims]]").next().unwrap();
    let alone = judge(&parse(&format!("{head}[[claims]]{second}[[claims]]{third}")), &[], &trials);
    assert_eq!((alone.claims[0].verdict, alone.claims[0].why.as_str()), (Verdict::Holds, ""));
}

#[test]
fn each_kind_of_value_has_its_interval() {
    let check = |value: &str, b: [f64; 6], method: Method, expected: (f64, f64)| {
        let study = STUDY.replacen("tps('b/s') / tps('a/s', 'clients=8')", value, 1);
        let mut trials = rounds(6, 1000.0, 1000.0);
        for trial in &mut trials {
            let tps = if trial.variant == "b" { b[trial.round - 1] } else { 1000.0 };
            trial.metrics.get_mut("tps").unwrap().insert(String::new(), tps);
        }
        let claim = judge(&parse(&study), &[], &trials).claims.remove(0);
        let (low, _, high) = interval(&claim);
        let Measured::Value { interval, .. } = &claim.measured else { panic!() };
        assert_eq!(interval.method, method, "{value}");
        assert!(
            (low - expected.0).abs() < 2e-3 && (high - expected.1).abs() < 2e-3,
            "{low} {high}"
        );
    };
    let even = [1000.0, 1020.0, 980.0, 1010.0, 990.0, 1000.0];
    let outlying = [1000.0, 1020.0, 980.0, 1010.0, 990.0, 500.0];
    check("tps('b/s') / tps('a/s')", even, Method::Student, (0.985, 1.015));
    check("tps('b/s') / tps('a/s')", outlying, Method::SignedRank, (0.5, 1.02));
    check("(tps('b/s') - tps('a/s')) / 1000", even, Method::SignTest, (-0.02, 0.02));
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

#[test]
fn the_noise_of_each_metric_is_that_of_the_same_thing_twice() {
    let noise = judge(&study(), &[], &rounds(6, 1000.0, 1000.0)).noise;
    let names: Vec<&str> = noise.iter().map(|noise| noise.metric.name).collect();
    assert_eq!(names, ["tps", "server_cpu_us_per_tx"]);
    assert_eq!((noise[0].source, noise[0].rounds), (Source::Rounds { points: 2 }, 6));
    assert!(noise[0].one_percent > 100.0, "rounds differ by half: {noise:?}");
    assert!(noise[1].means_percent < 3.0 && noise[1].one_percent < 7.0, "{noise:?}");
    assert!(judge(&study(), &[], &rounds(1, 1000.0, 1000.0)).noise.is_empty());
    // A twin shows what is left once rounds are taken out: 2 % one way, 2 % the other.
    let study = study();
    let twin = study.twin.unwrap();
    let [original, copy] = [twin.of, twin.point].map(|point| study.points[point].name.clone());
    let mut trials = rounds(6, 1000.0, 1000.0);
    for round in 1..=6 {
        let tps = trials
            .iter()
            .find(|trial| trial.round == round && trial.variant == original.variant)
            .and_then(|trial| verdict::value_of(trial, "tps", ""))
            .unwrap();
        let off = if round % 2 == 0 { 1.02 } else { 1.0 / 1.02 };
        trials.push(trial(round, &copy.variant, &[("tps", tps * off)]));
    }
    let noise = judge(&study, &[], &trials).noise;
    assert_eq!(noise[0].source, Source::Twin { point: twin.of });
    assert!((noise[0].one_percent - 4.96).abs() < 0.05, "{noise:?}");
    assert!((noise[0].means_percent - 2.0).abs() < 0.05, "{noise:?}");
}

/// A header of a run on some PostgreSQL.
fn header(version: &str) -> Header {
    let fact = Fact {
        group: "PostgreSQL".to_owned(),
        name: "version".to_owned(),
        value: version.to_owned(),
    };
    Header {
        format: record::FORMAT,
        pgrig: "0.1.0".to_owned(),
        study: "mine".to_owned(),
        profile: "quick".to_owned(),
        seed: 1,
        rounds: None,
        only: None,
        again: String::new(),
        started_at: String::new(),
        ended_at: None,
        state: State::Done,
        plan: Vec::new(),
        facts: vec![fact],
        notes: Vec::new(),
    }
}

/// Six rounds of variant a whose figures spread by 0.2 %.
fn steady(tps: f64, p99_ms: f64) -> Vec<Trial> {
    let values = (0..6).map(|round| {
        let jitter = 1.0 + 0.002 * [0.3, -1.0, 1.2, -0.6, 0.9, -0.8][round];
        trial(round + 1, "a", &[("tps", tps * jitter), ("latency_p99_ms", p99_ms * jitter)])
    });
    values.collect()
}

fn compared(before: &[Trial], after: &[Trial]) -> Diff {
    let (study, header) = (study(), header("15.18"));
    let side = |trials| Side { header: &header, study: &study, trials };
    diff(side(before), side(after))
}

#[test]
fn two_records_differ_by_more_than_the_spread_of_their_rounds_or_nobody_can_tell() {
    use Change::{Better, CannotTell, Same, Worse};
    let check = |before: &[Trial], after: &[Trial], expected: [Change; 2]| {
        let found = compared(before, after).differences;
        assert_eq!(found.iter().map(|d| d.change).collect::<Vec<_>>(), expected);
    };
    check(&steady(1000.0, 5.0), &steady(1300.0, 4.0), [Better; 2]);
    check(&steady(1300.0, 4.0), &steady(1000.0, 5.0), [Worse; 2]);
    check(&steady(1000.0, 5.0), &steady(1002.0, 5.01), [Same; 2]);
    check(&steady(1000.0, 5.0), &steady(1020.0, 5.1), [CannotTell; 2]);
    check(&steady(1000.0, 5.0), &steady(1300.0, 4.0)[..3], [CannotTell; 2]);
    let found = compared(&steady(1000.0, 5.0), &steady(1300.0, 4.0)[..2]).differences;
    let ratio = found[0].ratio.unwrap();
    assert!(ratio.low < 1.3 && 1.3 < ratio.high * 1.01, "{ratio:?}");
    assert_eq!(found[0].point, "a/s clients=8");
    assert!((found[0].before - 1000.0).abs() < 0.1);
}

#[test]
fn a_figure_that_is_a_lower_bound_in_any_round_has_not_changed_as_far_as_is_known() {
    let (before, mut after) = (steady(1000.0, 5.0), steady(1300.0, 4.0));
    let scopes = [String::new()].into_iter().collect();
    after[2].at_least.insert("latency_p99_ms".to_owned(), scopes);
    let found = compared(&before, &after).differences;
    let shown: Vec<_> = found.iter().map(|one| (one.is_at_least, one.alone, one.change)).collect();
    let unknown = ([false, true], Change::CannotTell, Change::CannotTell);
    assert_eq!(shown, [([false, false], Change::Better, Change::Better), unknown]);
}

#[test]
fn each_metric_is_judged_by_its_own_noise() {
    // Throughput that spreads by half hides nothing of a latency that is steady.
    let noisy = |p99_ms: f64| -> Vec<Trial> {
        let mut trials = steady(1000.0, p99_ms);
        for trial in &mut trials {
            let tps = [600.0, 1400.0, 900.0, 1500.0, 700.0, 1100.0][trial.round - 1];
            trial.metrics.get_mut("tps").unwrap().insert(String::new(), tps);
        }
        trials
    };
    let diff = compared(&noisy(5.0), &noisy(5.5));
    let found: Vec<Change> = diff.differences.iter().map(|one| one.change).collect();
    assert_eq!(found, [Change::CannotTell, Change::Worse]);
    let summary = "Of 2 figures, 0 better, 1 worse, 0 the same, 1 cannot be told.";
    assert_eq!(diff.summary(), summary);
}

#[test]
fn what_two_runs_differ_in_is_said() {
    let with_settings = STUDY.replace("[answer]", "[settings]\nwork_mem = \"8MB\"\n[answer]");
    let (before, after) = (study(), parse(&with_settings));
    let (first, second) = (header("15.18"), header("18.1"));
    let trials = steady(1000.0, 5.0);
    let diff = diff(
        Side { header: &first, study: &before, trials: &trials },
        Side { header: &second, study: &after, trials: &trials },
    );
    let said: Vec<String> = diff
        .conditions
        .iter()
        .map(|one| format!("{}: {} → {} ({})", one.what, one.before, one.after, one.points.len()))
        .collect();
    assert_eq!(said, ["PostgreSQL version: 15.18 → 18.1 (0)", "work_mem of primary: – → 8MB (3)"]);
    assert!(diff.summary().ends_with("; the runs differ in more than time, see above."));
}
