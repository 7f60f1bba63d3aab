//! What was promised not to happen, and did: whatever else a record holds, no claim over it holds.

use record::{AttemptEnding, FaultyParty, InterruptedState, Note, NoteKind, Trial, VoidKind};
use spec::Study;
use stats::Prng;
use verdict::{Verdict, judge};

use crate::machine::Kind;
use crate::run::{plan, run, study};
use crate::studies;

/// What is promised, in the order of [`Promise`].
const CLAIMS: &str = "\
[[claims]]\nsays = \"nothing is lost\"\nevery = \"ledger_lost == 0\"\nkind = \"invariant\"\n\
[[claims]]\nsays = \"the server survives\"\nevery = \"cut_survived == 1\"\nkind = \"invariant\"\n\
[[claims]]\nsays = \"nobody waits\"\nevery = \"longest_wait_ms <= 5000\"\nkind = \"invariant\"\n\
[[claims]]\nsays = \"hardly anybody waits\"\nevery = \"latency_p99_ms <= 50\"\n\
[[claims]]\nsays = \"b is as fast\"\nvalue = \"tps('b/s') / tps('a/s')\"\nexpect = \">= 0.95\"\n";

/// A claim of [`CLAIMS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Promise {
    NothingLost,
    Survives,
    NobodyWaits,
    HardlyAnybodyWaits,
    AsFast,
}

use Promise::{AsFast, HardlyAnybodyWaits, NobodyWaits, NothingLost, Survives};

/// Puts something that goes wrong in place of a trial in which all was well: the attempts at it.
type Violation = fn(Trial) -> Vec<Trial>;

/// What goes wrong, and the promises that it breaks or leaves without evidence.
const VIOLATIONS: [(&str, &[Promise], Violation); 26] = [
    ("a lost row", &[NothingLost], |trial| vec![with(trial, "ledger_lost", 1.0)]),
    ("a lost row in a first attempt that still warmed up", &[NothingLost], |trial| {
        let lost = with(trial.clone(), "ledger_lost", 1.0);
        again(ended(lost, AttemptEnding::void(VoidKind::NotSteady, "not steady")), trial)
    }),
    ("a lost row in a first attempt whose action failed", &[NothingLost], |trial| {
        let lost = with(trial.clone(), "ledger_lost", 3.0);
        again(ended(lost, AttemptEnding::void(VoidKind::Action, "the promotion failed")), trial)
    }),
    ("a lost row in a first attempt that the rig broke", &[NothingLost], |trial| {
        let lost = with(trial.clone(), "ledger_lost", 1.0);
        again(ended(lost, AttemptEnding::failed(FaultyParty::Rig, "no port was free")), trial)
    }),
    ("a lost row in a trial that stalls", &[NothingLost], |trial| {
        vec![stalled(with(trial, "ledger_lost", 1.0))]
    }),
    ("a dead server", EVERY, |trial| {
        vec![ended(bare(trial), AttemptEnding::failed(FaultyParty::Server, "the server died"))]
    }),
    ("a dead server in a first attempt", EVERY, |trial| {
        let dead = ended(
            bare(trial.clone()),
            AttemptEnding::failed(FaultyParty::Server, "the server died"),
        );
        again(dead, trial)
    }),
    ("clients that gave up in a first attempt", EVERY, |trial| {
        let lost = AttemptEnding::failed(FaultyParty::Unknown, "every client gave up");
        again(ended(bare(trial.clone()), lost), trial)
    }),
    ("a server that does not survive a cut", &[Survives], |trial| {
        vec![with(trial, "cut_survived", 0.0)]
    }),
    ("a server that does not survive its first cut", &[Survives], |trial| {
        let broken = with(trial.clone(), "cut_survived", 0.0);
        again(ended(broken, AttemptEnding::void(VoidKind::NotSteady, "not steady")), trial)
    }),
    ("a cut with nothing under way", &[NothingLost, Survives], |trial| {
        vec![with(trial, "ledger_in_flight", 0.0)]
    }),
    ("a ledger without a transaction", &[NothingLost, Survives], |trial| {
        vec![with(trial, "ledger_acknowledged", 0.0)]
    }),
    ("a check that was not made", &[NothingLost], |mut trial| {
        trial.metrics.remove("ledger_lost");
        vec![trial]
    }),
    ("nothing but failed transactions", &[NothingLost, NobodyWaits], |trial| {
        vec![ended(trial, AttemptEnding::void(VoidKind::AllFailed, "every transaction failed"))]
    }),
    ("a client that is stuck at the close", &[NobodyWaits], |trial| {
        vec![at_least(trial, "longest_wait_ms", 3_000.0)]
    }),
    ("so many clients stuck that a percentile is unknown", &[HardlyAnybodyWaits], |trial| {
        vec![at_least(trial, "latency_p99_ms", 20.0)]
    }),
    ("a trial that was never run", EVERY, |_| Vec::new()),
    ("a bare void attempt", EVERY, |trial| {
        vec![ended(bare(trial), AttemptEnding::void(VoidKind::Action, "could not read block 10"))]
    }),
    ("a bare void attempt, run again", EVERY, |trial| {
        let void = AttemptEnding::void(VoidKind::Action, "could not read block 10");
        again(ended(bare(trial.clone()), void), trial)
    }),
    ("a proven fault of the rig's and no other attempt", EVERY, |trial| {
        vec![ended(bare(trial), AttemptEnding::failed(FaultyParty::Rig, "no port was free"))]
    }),
    ("rows that cannot be read in a first attempt", EVERY, |trial| {
        let damaged = AttemptEnding::failed(FaultyParty::Unknown, "invalid page in block 10");
        again(ended(bare(trial.clone()), damaged), trial)
    }),
    ("an interrupted attempt without figures", EVERY, |trial| {
        let signal = AttemptEnding::interrupted(InterruptedState::Unchecked, "by a signal");
        again(ended(bare(trial.clone()), signal), trial)
    }),
    ("a crash, and clients that connect again", EVERY, |trial| {
        vec![with(trial, "unasked_crashes", 1.0)]
    }),
    ("a crash in a first attempt that is done", EVERY, |trial| {
        again(with(trial.clone(), "unasked_crashes", 1.0), trial)
    }),
    ("a table of the ledger that cannot be read", &[NothingLost], |trial| {
        vec![with(with(trial, "ledger_unreadable", 1.0), "ledger_lost", 1_000.0)]
    }),
    (
        "one acknowledged transaction, one in flight, and no load besides",
        &[NothingLost, Survives],
        |trial| {
            let trial = with(with(trial, "ledger_acknowledged", 1.0), "ledger_in_flight", 1.0);
            vec![with(trial, "ledger_load_share", 0.1)]
        },
    ),
];

/// The promises about every trial.
const EVERY: &[Promise] = &[NothingLost, Survives, NobodyWaits, HardlyAnybodyWaits];

#[test]
fn no_planted_violation_ends_in_holds() {
    let few = studies(100);
    let study = study(CLAIMS, "[8]", 6);
    for (what, promises, violate) in VIOLATIONS {
        for seed in 0..few as u64 {
            let judged = |trials: &[Trial]| {
                let study = study.clone().with_seed(seed);
                judge(&study, &plan(&study), trials, &[]).claims
            };
            let mut trials = clean(&study, seed);
            let chosen = Prng::new(seed ^ 0xbad).below(trials.len());
            let attempts = violate(trials[chosen].clone());
            trials.splice(chosen..=chosen, attempts);
            let claims = judged(&trials);
            for promise in promises {
                let verdict = claims[*promise as usize].verdict;
                assert_ne!(verdict, Verdict::Holds, "{what}: {promise:?}, seed {seed}");
            }
        }
    }
    let study = study.with_seed(0);
    for claim in judge(&study, &plan(&study), &clean(&study, 0), &[]).claims {
        assert_eq!(claim.verdict, Verdict::Holds, "{}: {}", claim.says, claim.why);
    }
}

/// One stall in six rounds of b, whether it is kept as a result or was run again.
#[test]
fn a_stall_of_one_side_never_ends_in_as_fast() {
    let few = studies(100);
    let study = study(CLAIMS, "[8]", 6);
    for (is_run_again, seed) in
        [false, true].into_iter().flat_map(|is| (0..few as u64).map(move |seed| (is, seed)))
    {
        let study = study.clone().with_seed(seed);
        let mut trials = clean(&study, seed);
        let mut prng = Prng::new(seed ^ 0x57a1);
        let of_b: Vec<usize> = (0..trials.len()).filter(|at| trials[*at].variant == "b").collect();
        let chosen = of_b[prng.below(of_b.len())];
        let slow = with(trials[chosen].clone(), "tps", 800.0 * prng.unit());
        let attempts = match is_run_again {
            true => {
                let first = ended(slow, AttemptEnding::void(VoidKind::NotSteady, "not steady"));
                again(first, trials[chosen].clone())
            }
            false => vec![stalled(slow)],
        };
        trials.splice(chosen..=chosen, attempts);
        let claim = &judge(&study, &plan(&study), &trials, &[]).claims[AsFast as usize];
        assert_ne!(claim.verdict, Verdict::Holds, "again {is_run_again}, seed {seed}");
    }
}

/// A run on some machine in which every promise was kept.
fn clean(study: &Study, seed: u64) -> Vec<Trial> {
    let study = study.clone().with_seed(seed);
    let kept = [
        ("ledger_lost", 0.0),
        ("ledger_acknowledged", 1_000.0),
        ("ledger_in_flight", 8.0),
        ("cut_survived", 1.0),
        ("longest_wait_ms", 40.0),
        ("latency_p99_ms", 10.0),
        ("transactions", 10_000.0),
    ];
    let gain = |variant: &str| if variant == "b" { 1.2 } else { 1.0 };
    let mut trials = run(&study, &mut Kind::Quiet.start(seed), gain);
    for trial in &mut trials {
        for (name, value) in kept {
            *trial = with(trial.clone(), name, value);
        }
    }
    trials
}

fn with(mut trial: Trial, metric: &str, value: f64) -> Trial {
    trial.metrics.entry(metric.to_owned()).or_default().insert(String::new(), value);
    trial
}

/// The value is a lower bound.
fn at_least(trial: Trial, metric: &str, value: f64) -> Trial {
    let mut trial = with(trial, metric, value);
    trial.at_least.entry(metric.to_owned()).or_default().insert(String::new());
    trial
}

fn bare(mut trial: Trial) -> Trial {
    trial.metrics.clear();
    trial
}

fn ended(mut trial: Trial, ending: AttemptEnding) -> Trial {
    trial.ending = ending;
    trial
}

fn stalled(mut trial: Trial) -> Trial {
    trial.notes.push(Note::new(NoteKind::Unsteady, "not steady: it stalls"));
    trial
}

/// An attempt, and one after it in which all was well.
fn again(first: Trial, mut second: Trial) -> Vec<Trial> {
    second.attempt = 2;
    vec![first, second]
}

/// A dead server × every kind of claim: whether a claim is about every trial, about one, a value or a
/// control, and whether or not the run went on afterwards, it never holds by what others show.
#[test]
fn no_claim_holds_over_a_trial_whose_server_died() {
    const KINDS: [&str; 4] = [
        "every = \"ledger_lost == 0\"\nkind = \"invariant\"",
        "every = \"ledger_lost == 0\"\nkind = \"control\"",
        "some = \"ledger_lost == 0\"\nkind = \"control\"",
        "some = \"longest_wait_ms <= 5000\"",
    ];
    let endings = [
        AttemptEnding::failed(FaultyParty::Server, "the server died"),
        AttemptEnding::failed(FaultyParty::Unknown, "every client gave up"),
        AttemptEnding::interrupted(InterruptedState::Unchecked, "pgrig ended in the middle of it"),
    ];
    for kind in KINDS {
        let claims = format!("[[claims]]\nsays = \"it holds\"\n{kind}\n");
        let study = study(&claims, "[8]", 6);
        let verdict = |trials: &[Trial]| {
            let judged = judge(&study, &plan(&study), trials, &[]);
            (judged.claims[0].verdict, judged.against.len())
        };
        let clean = clean(&study, study.seed);
        assert_eq!(verdict(&clean), (Verdict::Holds, 0), "{kind}");
        for (chosen, ending) in (0..clean.len()).flat_map(|at| endings.iter().map(move |e| (at, e)))
        {
            for goes_on in [false, true] {
                let mut trials = clean.clone();
                let dead = ended(bare(trials[chosen].clone()), ending.clone());
                let attempts = match goes_on {
                    true => again(dead, trials[chosen].clone()),
                    false => vec![dead],
                };
                trials.splice(chosen..=chosen, attempts);
                let (verdict, against) = verdict(&trials);
                assert_ne!(
                    verdict,
                    Verdict::Holds,
                    "{kind}: trial {chosen}, {ending:?}, {goes_on}"
                );
                assert_eq!(against, 1, "the gate is told whatever the claims say");
            }
        }
    }
}
