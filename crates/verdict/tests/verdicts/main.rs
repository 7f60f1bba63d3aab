//! What is said about claims, given trials whose figures are made up.

mod compared;
mod controls;
mod diffs;
mod evidence;
mod explored;
mod harm;
mod sources;
mod values;

use std::collections::BTreeMap;

use record::comparison::PairResults;
use record::{
    AttemptEnding, FaultyParty, MachineFact, Moment, PairingAttempt, PlannedTrial, RecordHeader,
    RunState, SkipKind, Trial, VoidKind,
};
use spec::{ClaimKind, Quantifier, Study, StudyFolder, StudyProfile};
use stats::IntervalMethod;
use verdict::{
    ClaimMeasurement, ClaimVerdict, DiffSide, DifferenceMeaning, NoiseSource, RecordDiff,
    StudyVerdicts, Verdict, diff, judge,
};

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
    let folder = StudyFolder { name: "mine".to_owned(), files, is_private: false };
    Study::parse(&folder, StudyProfile::Quick).unwrap()
}

/// With `--only`, claims about other points are no open questions of the run.
#[test]
fn claims_about_points_that_a_run_left_out_are_told_apart() {
    let trials: Vec<Trial> = rounds(6, 1000.0, 1000.0)
        .into_iter()
        .filter(|trial| trial.variant == "a")
        .map(|mut trial| {
            trial.metrics.insert("count_difference".to_owned(), [(String::new(), 0.0)].into());
            trial
        })
        .collect();
    let plan: Vec<PlannedTrial> = trials
        .iter()
        .map(|trial| PlannedTrial {
            number: trial.number,
            round: trial.round,
            variant: trial.variant.clone(),
            scenario: trial.scenario.clone(),
            axes: trial.axes.clone(),
        })
        .collect();
    let judged = judge(&study(), &plan, &trials, &[]);
    let left_out: Vec<bool> = judged.claims.iter().map(ClaimVerdict::is_left_out).collect();
    assert_eq!(left_out, [true, true, false]);
    let words = "2 claims are about points that this run left out";
    assert_eq!(judged.left_out_words().as_deref(), Some(words));
    assert_eq!(judged.answer, "“counts agree” holds: in all 6 trials.");
    // The sentence counts what the claims' table counts.
    let mut wrong = trials.clone();
    for trial in &mut wrong[..4] {
        trial.metrics.insert("count_difference".to_owned(), [(String::new(), 1.0)].into());
    }
    let wrong = judge(&study(), &plan, &wrong, &[]);
    assert_eq!(wrong.answer, "“counts agree” does not hold: not in 4 of 6.");
    // A record that does not say what was planned leaves nothing out.
    assert_eq!(judge(&study(), &[], &trials, &[]).left_out_words(), None);
}

/// One round gives no interval: profile smoke leaves claims about values to quick, in one line.
#[test]
fn a_smoke_run_asks_no_claim_that_it_cannot_judge() {
    let check = |profile: StudyProfile, judged_says: &[&str], words: Option<&str>| {
        let files = BTreeMap::from([("study.toml".to_owned(), STUDY.to_owned())]);
        let folder = StudyFolder { name: "mine".to_owned(), files, is_private: false };
        let study = Study::parse(&folder, profile).unwrap();
        let mut trials = rounds(1, 1000.0, 1000.0);
        for trial in &mut trials {
            trial.metrics.insert("count_difference".to_owned(), [(String::new(), 0.0)].into());
        }
        let judged = judge(&study, &[], &trials, &[]);
        let shown: Vec<&str> = judged.judged().map(|claim| claim.says.as_str()).collect();
        assert_eq!(shown, judged_says, "{profile}");
        assert_eq!(judged.left_out_words().as_deref(), words, "{profile}");
    };
    let words = "2 claims are judged by profile quick, not by smoke";
    check(StudyProfile::Smoke, &["counts agree"], Some(words));
    check(StudyProfile::Quick, &["b is faster", "b costs less CPU", "counts agree"], None);
}

fn trial(round: usize, variant: &str, metrics: &[(&str, f64)]) -> Trial {
    let metrics = metrics
        .iter()
        .map(|(name, value)| ((*name).to_owned(), BTreeMap::from([(String::new(), *value)])));
    let planned = PlannedTrial {
        number: round * 2 + usize::from(variant == "b"),
        round,
        variant: variant.to_owned(),
        scenario: "s".to_owned(),
        axes: BTreeMap::from([("clients".to_owned(), "8".to_owned())]),
    };
    Trial { metrics: metrics.collect(), ..planned.attempt(1) }
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
    judge(&study(), &[], trials, &[]).claims.remove(0)
}

fn interval(claim: &ClaimVerdict) -> (f64, f64, f64) {
    let ClaimMeasurement::Value { interval, .. } = &claim.measured else { panic!("{claim:?}") };
    (interval.low, interval.point, interval.high)
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
    let answer = judge(&parse(&added), &[], &trials, &[]).answer;
    assert!(answer.ends_with("published 1.144. It takes 250 µs [250, 250]."), "{answer}");
    let unpublished = added
        .replace("published = 1.144\n", "")
        .replace(", n {n}, published {published}.", ". Published: {published}×.");
    let answer = judge(&parse(&unpublished), &[], &trials, &[]).answer;
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
        "five rounds were measured; a verdict needs six",
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
        let count = ClaimMeasurement::Count { quantifier, trials, failures, rates: (0.0, 1.0) };
        assert_eq!(count.counted().as_deref(), Some(expected));
    };
    check(Quantifier::Every, 20, 0, "in all 20 trials");
    check(Quantifier::Every, 2, 0, "in both trials");
    check(Quantifier::Every, 1, 0, "in the one trial");
    check(Quantifier::Every, 20, 3, "not in 3 of 20");
    check(Quantifier::Every, 1, 1, "not in 1 of 1");
    check(Quantifier::Some, 20, 17, "seen in 3 of 20");
    check(Quantifier::Some, 20, 20, "seen in none of 20");
    assert_eq!(ClaimMeasurement::Nothing.counted(), None);
}

#[test]
fn a_round_that_is_not_whole_decides_unless_it_makes_no_difference() {
    let mut trials = rounds(7, 1000.0, 1300.0);
    trials[2].ending = AttemptEnding::void(VoidKind::NotSteady, "not steady");
    let judged = judge(&study(), &[], &trials, &[]);
    let claim = &judged.claims[0];
    let ClaimMeasurement::Value { interval, .. } = &claim.measured else { panic!() };
    assert_eq!(interval.n, 6);
    // Of seven rounds, one that counts as nothing leaves the median's interval too wide.
    assert_eq!(claim.verdict, Verdict::CannotTell);
    assert!(
        claim.why.contains("has no figure or was not run: holds without that, but not with"),
        "{}",
        claim.why
    );
    assert!(claim.why.ends_with("1 round is incomplete"), "{}", claim.why);
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
    let judged = judge(&study(), &[], &trials, &[]);
    assert_eq!(judged.claims[0].verdict, Verdict::CannotTell);
    assert_eq!(judged.claims[0].why, "the generator was the limit in b/s clients=8: 93 % busy");
    assert!(judged.answer.starts_with("Maybe: "));
    assert_eq!(judged.claims[1].verdict, Verdict::Holds, "the servers' CPU is still right");
    // Each trial is checked: one of six is enough.
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
        let claim = judge(&parse(&about_every(condition)), &[], &trials, &[]).claims.remove(2);
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
    check(p99, &|t| set(t, "transactions", 1_999.0), Verdict::CannotTell, "takes 2000");
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
    let claim = |trials: &[Trial]| judge(&parse(&study), &[], trials, &[]).claims.remove(0);
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
    let claim = |trials: &[Trial]| judge(&study(), &[], trials, &[]).claims.remove(2);
    let found = claim(&trials);
    let quantifier = Quantifier::Every;
    let all = ClaimMeasurement::Count { quantifier, trials: 12, failures: 0, rates: (0.0, 0.25) };
    assert_eq!(
        (&found.measured, found.measured.counted().as_deref()),
        (&all, Some("in all 12 trials"))
    );
    assert_eq!(found.verdict, Verdict::Holds);

    trials[3].metrics.get_mut("count_difference").unwrap().insert(String::new(), 2.0);
    trials[3].ending = AttemptEnding::void(VoidKind::NotSteady, "not steady");
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
    let judged = judge(&parse(&family), &[], &trials, &[]);
    assert_eq!(judged.claims[0].verdict, Verdict::Holds);
    let claim = &judged.claims[1];
    assert_eq!((claim.alone, claim.verdict), (Verdict::Holds, Verdict::CannotTell));
    let why = "holds by its own interval, but not among 3 headline claims (Holm: p 0.06)";
    assert_eq!(claim.why, why);
    // Beside one headline the others keep what their own interval says.
    let marked = family.replacen("published = 1.144", "published = 1.144\nheadline = true", 1);
    let claims = judge(&parse(&marked), &[], &trials, &[]).claims;
    let said: Vec<(String, Verdict, &str)> =
        claims[..3].iter().map(|one| (one.label(), one.verdict, one.why.as_str())).collect();
    assert_eq!(said[0], ("finding, headline".to_owned(), Verdict::Holds, ""));
    assert_eq!(said[1], ("finding, by its own interval".to_owned(), Verdict::Holds, ""));
    // A study that claims nothing else keeps it.
    let [_, second, third]: [&str; 3] =
        STUDY.split("[[claims]]").skip(1).collect::<Vec<_>>().try_into().unwrap();
    let head = STUDY.split("[[claims]]").next().unwrap();
    let alone =
        judge(&parse(&format!("{head}[[claims]]{second}[[claims]]{third}")), &[], &trials, &[]);
    assert_eq!((alone.claims[0].verdict, alone.claims[0].why.as_str()), (Verdict::Holds, ""));
}

/// A claim whose clients fell back to another protocol says so; one that is about the protocol cannot be told then.
#[test]
fn a_fallen_back_protocol_is_said_and_takes_back_what_is_about_it() {
    let text = STUDY.replace("[variants.b]", "[variants.b]\noverride = { w = OF_B }");
    let check = |of_b: &str, why: Option<&str>, expected: Verdict, said: &str| {
        let mut study = parse(&text.replace("OF_B", of_b));
        if let Some(why) = why {
            let workloads = study.points.iter_mut().flat_map(|point| &mut point.workloads);
            workloads.for_each(|workload| workload.fall_back(why));
        }
        let claim = judge(&study, &[], &rounds(6, 1000.0, 1300.0), &[]).claims.remove(0);
        assert_eq!((claim.verdict, claim.why.as_str()), (expected, said), "{of_b}");
    };
    let falls = "{ fallback = \"extended\" }";
    check(falls, None, Verdict::Holds, "");
    let said = "w by the extended protocol, because of an old pooler";
    check(falls, Some("an old pooler"), Verdict::Holds, said);
    // The other side keeps prepared statements, or has the extended protocol by itself.
    let text = text
        .replace("[variants.a]", "[variants.a]\noverride = { w = { protocol = \"extended\" } }");
    let mut study = parse(&text.replace("OF_B", falls));
    let judged =
        |study: &Study| judge(study, &[], &rounds(6, 1000.0, 1300.0), &[]).claims.remove(0);
    assert_eq!(judged(&study).verdict, Verdict::Holds);
    study.points.iter_mut().flat_map(|point| &mut point.workloads).for_each(|w| w.fall_back("it"));
    let claim = judged(&study);
    assert_eq!(claim.verdict, Verdict::CannotTell);
    assert!(claim.why.ends_with("both sides have the same protocol here"), "{}", claim.why);
}

#[test]
fn a_claim_in_pairs_that_were_not_measured_is_judged_by_whole_trials() {
    let paired = STUDY.replace("published = 1", "pairs = { precision = \"2%\" }\npublished = 1");
    let judged = |trials: &[Trial], pairs: &[PairingAttempt]| {
        judge(&parse(&paired), &[], trials, pairs).claims.remove(0)
    };
    let skipped = attempt_at_pairs(AttemptEnding::skipped(SkipKind::CannotRunHere, "needs 8 GiB"));
    let six = rounds(6, 1000.0, 1300.0);
    let claim = judged(&six, std::slice::from_ref(&skipped));
    assert_eq!(claim.verdict, Verdict::Holds);
    assert_eq!(claim.why, "in whole trials, because needs 8 GiB");
    // Pairs that were tried, or are not there yet, are not made up for.
    let died = attempt_at_pairs(AttemptEnding::failed(FaultyParty::Server, "it crashed"));
    for pairs in [vec![], vec![died.clone()], vec![died, skipped.clone()]] {
        let claim = judged(&six, &pairs);
        assert_eq!(
            (claim.verdict, claim.measured),
            (Verdict::CannotTell, ClaimMeasurement::Nothing)
        );
    }
    let judged = |trials: &[Trial]| judged(trials, std::slice::from_ref(&skipped));
    let claim = judged(&rounds(2, 1000.0, 1300.0));
    assert_eq!(claim.verdict, Verdict::CannotTell);
    assert!(claim.why.ends_with("a verdict needs six"), "{}", claim.why);
    let claim = judged(&[]);
    assert_eq!(claim.measured, ClaimMeasurement::Nothing);
}

/// An attempt at the pairs of both variants that measured nothing.
fn attempt_at_pairs(ending: AttemptEnding) -> PairingAttempt {
    PairingAttempt {
        number: 1,
        attempt: 1,
        above: "b".to_owned(),
        below: "a".to_owned(),
        scenario: "s".to_owned(),
        below_scenario: None,
        axes: BTreeMap::from([("clients".to_owned(), "8".to_owned())]),
        below_axes: None,
        ending,
        started_at: String::new(),
        began: Moment(0),
        ended: Moment(0),
        precision: 0.02,
        series: Vec::new(),
        shown: PairResults { clients: 1, seed: 1, ..PairResults::default() },
    }
}

#[test]
fn the_noise_of_each_metric_is_that_of_the_same_thing_twice() {
    let noise = judge(&study(), &[], &rounds(6, 1000.0, 1000.0), &[]).noise;
    let names: Vec<&str> = noise.iter().map(|noise| noise.metric.name).collect();
    assert_eq!(names, ["tps", "server_cpu_us_per_tx"]);
    assert_eq!((noise[0].source, noise[0].rounds), (NoiseSource::Rounds { points: 2 }, 6));
    assert!(noise[0].one_percent > 100.0, "rounds differ by half: {noise:?}");
    assert!(noise[1].means_percent < 3.0 && noise[1].one_percent < 7.0, "{noise:?}");
    assert!(judge(&study(), &[], &rounds(1, 1000.0, 1000.0), &[]).noise.is_empty());
    // A twin shows what is left once rounds are taken out: 2 % one way, 2 % the other.
    let study = study();
    let twin = study.twin.unwrap();
    let [original, copy] = [twin.of, twin.point].map(|point| study.points[point].name.clone());
    let mut trials = rounds(6, 1000.0, 1000.0);
    for round in 1..=6 {
        let tps = trials
            .iter()
            .find(|trial| trial.round == round && trial.variant == original.variant)
            .and_then(|trial| verdict::value_of(trial, &spec::metrics::TPS, ""))
            .unwrap();
        let off = if round % 2 == 0 { 1.02 } else { 1.0 / 1.02 };
        trials.push(trial(round, &copy.variant, &[("tps", tps * off)]));
    }
    let noise = judge(&study, &[], &trials, &[]).noise;
    assert_eq!(noise[0].source, NoiseSource::Twin { point: twin.of });
    assert!((noise[0].one_percent - 4.96).abs() < 0.05, "{noise:?}");
    let check = |percents: [f64; 2], expected: [&str; 2]| {
        let [one_percent, means_percent] = percents;
        let found = verdict::MetricNoise { one_percent, means_percent, ..noise[0] }.words();
        assert_eq!(found, expected, "{percents:?}");
    };
    check([4.96, 99.9], ["5.0 %", "100 %"]);
    check([350.0, 2_000.0], ["a factor of 4.50", "a factor of 21.0"]);
    check([44_830_140_890_409.0, f64::INFINITY], ["a factor of more than 100"; 2]);
    assert!((noise[0].means_percent - 2.0).abs() < 0.05, "{noise:?}");
}
