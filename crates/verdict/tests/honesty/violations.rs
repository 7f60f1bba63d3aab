//! What was promised not to happen, and did: whatever else a record holds, no claim over it holds.

use record::{Ending, Trial, VoidKind};
use spec::Study;
use stats::Prng;
use verdict::{Verdict, judge};

use crate::machine::Kind;
use crate::run::{run, study};
use crate::studies;

const CLAIMS: &str = "\
[[claims]]\nsays = \"nothing is lost\"\nevery = \"ledger_lost == 0\"\nkind = \"invariant\"\n";

/// Something that goes wrong in one trial.
type Violation = fn(&mut Trial);

const VIOLATIONS: [(&str, Violation); 2] = [
    ("a lost row", |trial| lost(trial, 1.0)),
    ("a lost row in a trial whose figures do not count", |trial| {
        lost(trial, 1.0);
        trial.ending = Ending::void(VoidKind::NotSteady, "not steady");
    }),
];

#[test]
fn no_planted_violation_ends_in_holds() {
    let few = studies(1_000);
    let study = study(CLAIMS, "[8]", 6);
    for (what, violate) in VIOLATIONS {
        for seed in 0..few as u64 {
            let mut trials = clean(&study, seed);
            let chosen = Prng::new(seed ^ 0xbad).below(trials.len());
            violate(&mut trials[chosen]);
            let verdict = judge(&study, &trials).claims[0].verdict;
            assert_ne!(verdict, Verdict::Holds, "{what} in trial {chosen} of seed {seed}");
        }
    }
    assert_eq!(judge(&study, &clean(&study, 0)).claims[0].verdict, Verdict::Holds);
}

/// A run in which nothing went wrong.
fn clean(study: &Study, seed: u64) -> Vec<Trial> {
    let study = study.clone().with_seed(seed);
    let mut trials = run(&study, &mut Kind::Quiet.start(seed), |_| 1.0);
    trials.iter_mut().for_each(|trial| lost(trial, 0.0));
    trials
}

fn lost(trial: &mut Trial, rows: f64) {
    let figures = [("ledger_lost", rows), ("ledger_acknowledged", 1_000.0)];
    for (name, value) in figures {
        trial.metrics.entry(name.to_owned()).or_default().insert(String::new(), value);
    }
}
