//! Rounds of which a part is not there or stood still, sides that fail the slow ones, and rounds that
//! depend on each other.

use record::{AttemptEnding, FaultyParty, Trial};
use spec::Study;
use stats::Prng;
use verdict::{ClaimMeasurement, Verdict, judge};

use crate::machine::Kind;
use crate::run::{plan, run, study, study_that_runs_on};
use crate::{at_least, studies};

const CLAIM: &str = "\
[[claims]]\nsays = \"b is as fast\"\nvalue = \"tps('b/s') / tps('a/s')\"\nexpect = \">= 0.95\"\n";

/// Changes the trials of a run in which b does 1.2 times as much as a.
type Spoil = fn(&mut Vec<Trial>, &mut Prng);

/// What is planted into 20 rounds, and whether b may still be called as fast.
const PLANTED: [(&str, bool, Spoil); 7] = [
    ("nothing", true, |_, _| {}),
    ("b's server died in 14 rounds", false, |trials, prng| {
        each_of(trials, prng, 14, |trial| {
            trial.ending = AttemptEnding::failed(FaultyParty::Server, "the server died");
            trial.metrics.clear();
        });
    }),
    ("every client of b gave up in 8 rounds", false, |trials, prng| {
        each_of(trials, prng, 8, |trial| {
            trial.ending = AttemptEnding::failed(FaultyParty::Unknown, "every client gave up");
            trial.metrics.clear();
        });
    }),
    ("8 trials of b were never run", false, |trials, prng| {
        let gone = numbers(trials, prng, 8);
        trials.retain(|trial| !gone.contains(&trial.number));
    }),
    ("one trial of b was never run", true, |trials, prng| {
        let gone = numbers(trials, prng, 1);
        trials.retain(|trial| !gone.contains(&trial.number));
    }),
    ("b did nothing in 5 rounds", false, |trials, prng| {
        each_of(trials, prng, 5, |trial| set(trial, "tps", 0.0));
    }),
    ("b answers its slow transactions with an error", false, |trials, _| {
        for trial in trials.iter_mut() {
            let failed = if trial.variant == "b" { 250.0 } else { 0.0 };
            set(trial, "transactions_total", 10_000.0);
            set(trial, "failed", failed);
        }
    }),
];

fn set(trial: &mut Trial, metric: &str, value: f64) {
    trial.metrics.entry(metric.to_owned()).or_default().insert(String::new(), value);
}

/// The numbers of so many trials of b, chosen at random.
fn numbers(trials: &[Trial], prng: &mut Prng, n: usize) -> Vec<usize> {
    let mut of_b: Vec<usize> =
        trials.iter().filter(|trial| trial.variant == "b").map(|trial| trial.number).collect();
    prng.shuffle(&mut of_b);
    of_b.truncate(n);
    of_b
}

fn each_of(trials: &mut [Trial], prng: &mut Prng, n: usize, change: fn(&mut Trial)) {
    let chosen = numbers(trials, prng, n);
    trials.iter_mut().filter(|trial| chosen.contains(&trial.number)).for_each(change);
}

#[test]
fn what_survived_proves_nothing() {
    let few = studies(60);
    let study = study(CLAIM, "[8]", 20);
    for (what, may_hold, spoil) in PLANTED {
        let mut held = 0;
        for seed in 0..few as u64 {
            let study: Study = study.clone().with_seed(seed);
            let gain = |variant: &str| if variant == "b" { 1.2 } else { 1.0 };
            let mut trials = run(&study, &mut Kind::Quiet.start(seed), gain);
            spoil(&mut trials, &mut Prng::new(seed ^ 0x5b));
            let claim = &judge(&study, &plan(&study), &trials, &[]).claims[0];
            held += usize::from(claim.verdict == Verdict::Holds);
            let is_said = claim.verdict == Verdict::Holds || !claim.why.is_empty();
            assert!(is_said, "{what}: {claim:?}");
        }
        println!("{what}: held in {held} of {few}");
        assert_eq!(held, if may_hold { few } else { 0 }, "{what}");
    }
}

/// The ratio of each round has half of what the round before had.
#[test]
fn rounds_that_depend_on_each_other_are_covered() {
    let few = studies(400);
    for rounds in [6, 10, 20] {
        let study = study_that_runs_on(CLAIM, "[8]", rounds);
        let covered = (0..few as u64).filter(|seed| {
            let study = study.clone().with_seed(*seed);
            let mut trials = run(&study, &mut Kind::Quiet.start(*seed), |_| 1.0);
            let mut prng = Prng::new(seed ^ 0xf1);
            let mut normal = || {
                let radius = (-2.0 * prng.unit().max(1e-300).ln()).sqrt();
                radius * (std::f64::consts::TAU * prng.unit()).cos()
            };
            let mut level = normal();
            let levels: Vec<f64> = (0..rounds)
                .map(|_| {
                    let next = 0.5 * level + 0.75f64.sqrt() * normal();
                    std::mem::replace(&mut level, next)
                })
                .collect();
            for trial in trials.iter_mut().filter(|trial| trial.variant == "b") {
                let tps = trial.metrics["tps"][""] * (0.2 * levels[trial.round - 1]).exp();
                set(trial, "tps", tps);
            }
            let claim = &judge(&study, &plan(&study), &trials, &[]).claims[0];
            let ClaimMeasurement::Value { interval, .. } = &claim.measured else {
                panic!("{claim:?}")
            };
            interval.contains(1.0)
        });
        let share = covered.count() as f64 / few as f64;
        println!("rounds that depend on each other with 0.5, {rounds} rounds: {share:.3}");
        assert!(share >= at_least(0.93, few), "{rounds} rounds: {share}");
    }
}
