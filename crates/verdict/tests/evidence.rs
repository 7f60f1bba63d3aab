//! No attempt disappears: what any of them showed stands against a claim, and what nobody saw
//! keeps it open.

use std::collections::BTreeMap;

use record::{Ending, Fault, Generator, Moment, Phase, SkipKind, Trial, VoidKind};
use spec::{Folder, Profile, Study};
use stats::Latency;
use verdict::{ClaimVerdict, Verdict, judge};

const STUDY: &str = r#"
question = "?"
[variants.a]
[variants.b]
[workloads.w]
builtin = "select-only"
[scenarios.s]
run = ["w"]
[[claims]]
says = "nothing is lost"
every = "ledger_lost == 0"
kind = "invariant"
[[claims]]
says = "something is lost at times"
some = "ledger_lost > 0"
[[claims]]
says = "b is as fast"
value = "tps('b/s') / tps('a/s')"
expect = ">= 0.9"
"#;

type Figures<'f> = &'f [(&'f str, f64)];

const CLEAN: Figures<'static> =
    &[("ledger_lost", 0.0), ("ledger_acknowledged", 900.0), ("ledger_in_flight", 8.0)];
const LOST: Figures<'static> = &[("ledger_lost", 1.0), ("ledger_acknowledged", 900.0)];

fn attempt(number: usize, attempt: usize, ending: Ending, figures: Figures<'_>) -> Trial {
    let phase = || Phase {
        count: 0,
        failures: BTreeMap::new(),
        length_ns: 0,
        latency: Latency::new(),
        generator_cpu_ns: 0,
    };
    let metrics = figures
        .iter()
        .map(|(name, value)| ((*name).to_owned(), BTreeMap::from([(String::new(), *value)])));
    Trial {
        number,
        attempt,
        round: number.div_ceil(2),
        variant: if number.is_multiple_of(2) { "b" } else { "a" }.to_owned(),
        scenario: "s".to_owned(),
        axes: BTreeMap::new(),
        ending,
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

fn claims(trials: &[Trial]) -> Vec<ClaimVerdict> {
    let files = BTreeMap::from([("study.toml".to_owned(), STUDY.to_owned())]);
    let folder = Folder { name: "mine".to_owned(), files };
    judge(&Study::parse(&folder, Profile::Quick).unwrap(), trials).claims
}

/// Nine clean trials and these attempts at a tenth.
fn with_tenth(tenth: &[(Ending, Figures<'_>)]) -> Vec<Trial> {
    let clean = (1..10).map(|number| attempt(number, 1, Ending::Done, CLEAN));
    let tenth =
        (1..).zip(tenth).map(|(n, (ending, figures))| attempt(10, n, ending.clone(), figures));
    clean.chain(tenth).collect()
}

#[test]
fn what_any_attempt_shows_or_does_not_show_counts_for_every_trial() {
    use Verdict::{CannotTell, DoesNotHold, Holds};
    let unsteady = || Ending::void(VoidKind::NotSteady, "not steady: it drifts");
    let died = || Ending::failed(Fault::Server, "the server died");
    let rig = || Ending::failed(Fault::Rig, "no port was free");
    let check = |tenth: &[(Ending, Figures<'_>)], expected: Verdict, why: &str| {
        // The order in which attempts are read does not matter.
        for reversed in [false, true] {
            let mut trials = with_tenth(tenth);
            if reversed {
                trials.reverse();
            }
            let claim = claims(&trials).remove(0);
            assert_eq!((claim.verdict, claim.why.as_str()), (expected, why), "{tenth:?}");
        }
    };
    check(&[(Ending::Done, CLEAN)], Holds, "");
    check(&[(unsteady(), CLEAN), (Ending::Done, CLEAN)], Holds, "");
    let first = "trial 10 (b/s): ledger_lost = 1";
    check(&[(unsteady(), LOST), (Ending::Done, CLEAN)], DoesNotHold, first);
    check(&[(died(), LOST), (Ending::Done, CLEAN)], DoesNotHold, first);
    let action = Ending::void(VoidKind::Action, "the cut had nothing to lose");
    check(&[(action.clone(), LOST)], DoesNotHold, first);
    // It is not evidence for anything either, and the other nine are.
    check(&[(action, CLEAN)], Holds, "");

    let broken = "trial 10 (b/s) failed: the server died";
    check(&[(died(), &[])], CannotTell, broken);
    check(&[(died(), &[]), (Ending::Done, CLEAN)], CannotTell, broken);
    check(&[(rig(), &[])], CannotTell, "trial 10 (b/s) failed: no port was free");
    check(&[(rig(), &[]), (Ending::Done, CLEAN)], Holds, "");
    let skipped = Ending::skipped(SkipKind::Rig, "no host was free");
    check(&[(skipped, &[])], CannotTell, "trial 10 (b/s) was skipped: no host was free");
    let skipped = Ending::skipped(SkipKind::CannotRunHere, "no FUSE");
    check(&[(skipped, &[])], Holds, "");

    let lacks = "trial 10 (b/s) has no ledger_lost";
    check(&[(Ending::Done, &[])], CannotTell, lacks);
    check(&[(unsteady(), &[]), (Ending::Done, CLEAN)], CannotTell, {
        "trial 10 (b/s) has no ledger_lost"
    });
    let idle: Figures<'_> = &[("ledger_lost", 0.0), ("ledger_acknowledged", 0.0)];
    check(&[(Ending::Done, idle)], CannotTell, "trial 10 (b/s) acknowledged no transaction");
    let quiet: Figures<'_> =
        &[("ledger_lost", 0.0), ("ledger_acknowledged", 9.0), ("ledger_in_flight", 0.0)];
    let why = "trial 10 (b/s) had no transaction in flight at the fault";
    check(&[(Ending::Done, quiet)], CannotTell, why);
}

#[test]
fn one_witness_is_enough_for_some_and_none_proves_the_contrary_while_a_trial_is_open() {
    use Verdict::{CannotTell, DoesNotHold, Holds};
    let died = || Ending::failed(Fault::Server, "the server died");
    let check = |tenth: &[(Ending, Figures<'_>)], expected: Verdict| {
        assert_eq!(claims(&with_tenth(tenth))[1].verdict, expected, "{tenth:?}");
    };
    check(&[(Ending::Done, CLEAN)], DoesNotHold);
    check(&[(Ending::Done, LOST)], Holds);
    check(&[(died(), &[]), (Ending::Done, LOST)], Holds);
    check(&[(died(), &[])], CannotTell);
    // A fault that had no effect is no witness.
    check(&[(Ending::void(VoidKind::Action, "no effect"), LOST)], DoesNotHold);
}

#[test]
fn stalls_that_were_run_again_keep_a_verdict_open_where_they_matter() {
    use Verdict::{CannotTell, Holds};
    // b stalls in the first attempt at some of its trials; run again, it is as fast as a.
    let trials = |stalled: &[usize], to: f64| {
        let mut trials = Vec::new();
        for number in 1..=12 {
            let tps: Figures<'_> = &[("tps", 1000.0 + number as f64)];
            if stalled.contains(&number) {
                let unsteady = Ending::void(VoidKind::NotSteady, "not steady: it stalls");
                trials.push(attempt(number, 1, unsteady, &[("tps", to)]));
                trials.push(attempt(number, 2, Ending::Done, tps));
            } else {
                trials.push(attempt(number, 1, Ending::Done, tps));
            }
        }
        trials
    };
    let check = |stalled: &[usize], to: f64, expected: Verdict| {
        let claim = claims(&trials(stalled, to)).remove(2);
        assert_eq!(claim.verdict, expected, "{stalled:?} {to}: {}", claim.why);
        let said = claim.why.starts_with("steady attempts alone: holds");
        assert_eq!(said, expected == CannotTell, "{}", claim.why);
    };
    check(&[], 0.0, Holds);
    check(&[4, 8], 995.0, Holds);
    check(&[2, 6, 10], 400.0, CannotTell);
    check(&[2], 0.0, CannotTell);
}
