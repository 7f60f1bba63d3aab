//! No attempt disappears: what any of them showed stands against a claim, and what nobody saw
//! keeps it open.

use std::collections::BTreeMap;

use record::{
    AttemptEnding, FaultyParty, HostGapKind, HostLoad, HostUse, InterruptedState, Note, NoteKind,
    PlannedTrial, PublishedWay, SkipKind, TransactionCounts, Trial, VoidKind, WorkloadResult,
};
use spec::{Study, StudyFolder, StudyProfile};
use stats::LatencyHistogram;
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

fn attempt(number: usize, attempt: usize, ending: AttemptEnding, figures: Figures<'_>) -> Trial {
    let metrics = figures
        .iter()
        .map(|(name, value)| ((*name).to_owned(), BTreeMap::from([(String::new(), *value)])));
    let planned = PlannedTrial {
        number,
        round: number.div_ceil(2),
        variant: if number.is_multiple_of(2) { "b" } else { "a" }.to_owned(),
        scenario: "s".to_owned(),
        axes: BTreeMap::new(),
    };
    Trial { ending, metrics: metrics.collect(), ..planned.attempt(attempt) }
}

/// An ending whose log is no part of a sentence.
fn died() -> AttemptEnding {
    AttemptEnding::failed(FaultyParty::Server, "the server died\nserver.log:\nPANIC: of a disk")
}

fn claims(trials: &[Trial]) -> Vec<ClaimVerdict> {
    judged(STUDY, &[], trials)
}

fn judged(study: &str, plan: &[PlannedTrial], trials: &[Trial]) -> Vec<ClaimVerdict> {
    let files = BTreeMap::from([("study.toml".to_owned(), study.to_owned())]);
    let folder = StudyFolder { name: "mine".to_owned(), files, is_private: false };
    judge(&Study::parse(&folder, StudyProfile::Quick).unwrap(), plan, trials, &[]).claims
}

/// Nine clean trials and these attempts at a tenth.
fn with_tenth(tenth: &[(AttemptEnding, Figures<'_>)]) -> Vec<Trial> {
    let clean = (1..10).map(|number| attempt(number, 1, AttemptEnding::Done, CLEAN));
    let tenth =
        (1..).zip(tenth).map(|(n, (ending, figures))| attempt(10, n, ending.clone(), figures));
    clean.chain(tenth).collect()
}

#[test]
fn what_any_attempt_shows_or_does_not_show_counts_for_every_trial() {
    use Verdict::{CannotTell, DoesNotHold, Holds};
    let unsteady = || AttemptEnding::void(VoidKind::NotSteady, "not steady: it drifts");
    let rig = || AttemptEnding::failed(FaultyParty::Rig, "no port was free");
    let check = |tenth: &[(AttemptEnding, Figures<'_>)], expected: Verdict, why: &str| {
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
    check(&[(AttemptEnding::Done, CLEAN)], Holds, "");
    check(&[(unsteady(), CLEAN), (AttemptEnding::Done, CLEAN)], Holds, "");
    let first = "trial 10 (b/s): ledger_lost = 1";
    check(&[(unsteady(), LOST), (AttemptEnding::Done, CLEAN)], DoesNotHold, first);
    check(&[(died(), LOST), (AttemptEnding::Done, CLEAN)], DoesNotHold, first);
    let action = AttemptEnding::void(VoidKind::Action, "the cut had nothing to lose");
    check(&[(action.clone(), LOST)], DoesNotHold, first);
    // It is not evidence for anything either, and the other nine are.
    check(&[(action.clone(), CLEAN)], Holds, "");
    // Without the figure the result is unknown.
    let void = "trial 10 (b/s) is void: the cut had nothing to lose";
    check(&[(action.clone(), &[])], CannotTell, void);
    check(&[(action, &[]), (AttemptEnding::Done, CLEAN)], CannotTell, void);

    let broken = "trial 10 (b/s) failed by a server's fault";
    check(&[(died(), &[])], CannotTell, broken);
    check(&[(died(), &[]), (AttemptEnding::Done, CLEAN)], CannotTell, broken);
    check(&[(rig(), &[])], CannotTell, "trial 10 (b/s) failed: no port was free");
    check(&[(rig(), &[]), (AttemptEnding::Done, CLEAN)], Holds, "");
    let signal = |kind| AttemptEnding::interrupted(kind, "by a signal");
    let open = "trial 10 (b/s) was interrupted: by a signal";
    for kind in
        [InterruptedState::BeforeLoad, InterruptedState::Checked, InterruptedState::Unchecked]
    {
        check(&[(signal(kind), &[])], CannotTell, open);
    }
    check(&[(signal(InterruptedState::BeforeLoad), &[]), (AttemptEnding::Done, CLEAN)], Holds, "");
    check(&[(signal(InterruptedState::Checked), &[]), (AttemptEnding::Done, CLEAN)], Holds, "");
    check(
        &[(signal(InterruptedState::Unchecked), &[]), (AttemptEnding::Done, CLEAN)],
        CannotTell,
        open,
    );
    let skipped = AttemptEnding::skipped(SkipKind::CannotRunHere, "no FUSE");
    check(&[(skipped, &[])], Holds, "");

    let nobody = || AttemptEnding::failed(FaultyParty::Unknown, "every client gave up");
    let open = "trial 10 (b/s) failed: every client gave up";
    check(&[(nobody(), &[]), (AttemptEnding::Done, CLEAN)], CannotTell, open);
    let none = || AttemptEnding::void(VoidKind::AllFailed, "every transaction failed: 7 of 7");
    let open = "trial 10 (b/s) is void: every transaction failed: 7 of 7";
    check(&[(none(), CLEAN)], CannotTell, open);
    check(&[(none(), CLEAN), (AttemptEnding::Done, CLEAN)], CannotTell, open);

    let lacks = "trial 10 (b/s) has no ledger_lost";
    check(&[(AttemptEnding::Done, &[])], CannotTell, lacks);
    check(&[(unsteady(), &[]), (AttemptEnding::Done, CLEAN)], CannotTell, {
        "trial 10 (b/s) has no ledger_lost"
    });
    let idle: Figures<'_> = &[("ledger_lost", 0.0), ("ledger_acknowledged", 0.0)];
    check(&[(AttemptEnding::Done, idle)], CannotTell, "trial 10 (b/s) acknowledged no transaction");
    let quiet: Figures<'_> =
        &[("ledger_lost", 0.0), ("ledger_acknowledged", 9.0), ("ledger_in_flight", 0.0)];
    let why = "trial 10 (b/s) had no transaction in flight at the fault";
    check(&[(AttemptEnding::Done, quiet)], CannotTell, why);
    let share = |share| [CLEAN, &[("ledger_load_share", share)]].concat();
    check(&[(AttemptEnding::Done, &share(0.9))], Holds, "");
    let why = "trial 10 (b/s) had clients at work in 80 % of its window only";
    check(&[(AttemptEnding::Done, &share(0.8))], CannotTell, why);
    let crashed = [CLEAN, &[("unasked_crashes", 1.0)]].concat();
    let why = "trial 10 (b/s) had a server that crashed unasked";
    check(&[(AttemptEnding::Done, &crashed)], CannotTell, why);
    check(&[(died(), &crashed), (AttemptEnding::Done, CLEAN)], CannotTell, broken);
}

/// Clients that gave up are no clients: what the others show is not what was asked for.
#[test]
fn clients_that_gave_up_leave_a_claim_open() {
    let mut trials = with_tenth(&[(AttemptEnding::Done, CLEAN)]);
    trials[9].workloads.push(WorkloadResult {
        name: "w".to_owned(),
        clients: 8,
        counts: TransactionCounts::default(),
        counts_total: TransactionCounts { aborted_clients: 3, ..TransactionCounts::default() },
        unknown: 0,
        latency: LatencyHistogram::default(),
        open: LatencyHistogram::default(),
        never_started: 0,
        service: LatencyHistogram::default(),
        lag: LatencyHistogram::default(),
        statements: Vec::new(),
        per_client: Vec::new(),
        per_client_good: Vec::new(),
        served: LatencyHistogram::new(),
        unserved: LatencyHistogram::new(),
        longest_wait_ns: 0,
        longest_wait_is_open: false,
        published_way: PublishedWay::default(),
    });
    let check = |trials: &[Trial], study: &str, expected: Verdict, why: &str| {
        let claim = judged(study, &[], trials).remove(0);
        assert_eq!((claim.verdict, claim.why.as_str()), (expected, why));
    };
    let why = "trial 10 (b/s) lost 3 of its clients, who gave up";
    check(&trials, STUDY, Verdict::CannotTell, why);
    // Where the study ends what they are connected to, they give up.
    let timeline = "run = [\"w\"]\ntimeline = [{ at = \"1s\", kill = \"primary\" }]";
    let study = STUDY.replacen("run = [\"w\"]", timeline, 1);
    check(&trials, &study, Verdict::Holds, "");
}

/// An attempt that broke stands against the whole run, whatever its claims speak of.
#[test]
fn a_run_with_something_that_broke_has_it_said() {
    let check = |tenth: &[(AttemptEnding, Figures<'_>)], expected: &[&str]| {
        let trials = with_tenth(tenth);
        let files = BTreeMap::from([("study.toml".to_owned(), STUDY.to_owned())]);
        let folder = StudyFolder { name: "mine".to_owned(), files, is_private: false };
        let study = Study::parse(&folder, StudyProfile::Quick).unwrap();
        assert_eq!(judge(&study, &[], &trials, &[]).against, expected, "{tenth:?}");
    };
    let text = "trial 10 (b/s) failed by a server's fault";
    check(&[(AttemptEnding::Done, CLEAN)], &[]);
    check(&[(died(), &[]), (AttemptEnding::Done, CLEAN)], &[text]);
    check(
        &[(AttemptEnding::failed(FaultyParty::Rig, "no port"), &[]), (AttemptEnding::Done, CLEAN)],
        &[],
    );
    check(&[(AttemptEnding::void(VoidKind::Action, "nothing to lose"), &[])], &[]);
    let signal = AttemptEnding::interrupted(InterruptedState::Unchecked, "by a signal");
    let text = "trial 10 (b/s) was interrupted: by a signal";
    check(&[(signal, &[]), (AttemptEnding::Done, CLEAN)], &[text]);
    let crashed = [("unasked_crashes", 1.0)];
    check(
        &[(AttemptEnding::Done, &crashed)],
        &["trial 10 (b/s) had a server that crashed unasked"],
    );
}

/// A check that failed stands against the run, whoever names it, unless a claim expects the failure.
#[test]
fn a_check_that_failed_stands_against_the_run() {
    let check = |figures: Figures<'_>, claim: &str, expected: &[&str]| {
        let text = format!("{STUDY}{claim}");
        let files = BTreeMap::from([("study.toml".to_owned(), text)]);
        let folder = StudyFolder { name: "mine".to_owned(), files, is_private: false };
        let study = Study::parse(&folder, StudyProfile::Quick).unwrap();
        let trials = [attempt(2, 1, AttemptEnding::Done, figures)];
        assert_eq!(judge(&study, &[], &trials, &[]).against, expected, "{figures:?} {claim}");
    };
    let corrupt = [("amcheck_corruptions", 2.0)];
    let text = "trial 2 (b/s) failed its checks: amcheck_corruptions = 2";
    check(&corrupt, "", &[text]);
    check(&[("amcheck_corruptions", 0.0)], "", &[]);
    check(
        &[("checksum_failures", 1.0), ("sql_check_failures", 3.0)],
        "",
        &["trial 2 (b/s) failed its checks: checksum_failures = 1, sql_check_failures = 3"],
    );
    check(
        &[("history_forbidden", 1.0)],
        "",
        &["trial 2 (b/s) failed its checks: history_forbidden = 1"],
    );
    let claim = |words: &str| format!("[[claims]]\nsays = \"x\"\n{words}\n");
    check(&corrupt, &claim("every = \"amcheck_corruptions == 0\""), &[text]);
    check(&corrupt, &claim("every = \"amcheck_corruptions >= 0\""), &[text]);
    check(&corrupt, &claim("some = \"amcheck_corruptions > 0\""), &[]);
    // What another profile judges is expected here as well.
    let of_full = |words| claim(&format!("{words}\nprofiles = [\"full\"]"));
    check(&corrupt, &of_full("some = \"amcheck_corruptions > 0\""), &[]);
    check(&corrupt, &of_full("every = \"amcheck_corruptions == 0\""), &[text]);
    // A claim about damage expects what both checks of it found.
    let damaged = [("amcheck_corruptions", 65.0), ("checksum_failures", 84.0), ("corrupt", 1.0)];
    check(&damaged, &of_full("some = \"corrupt == 1\""), &[]);
    // What a claim about a cycle expects is what its level forbids.
    let forbidden = [("history_forbidden", 4.0), ("history_long_fork", 4.0)];
    check(&forbidden, &claim("some = \"history_long_fork > 0\""), &[]);
}

#[test]
fn some_holds_by_one_witness_and_nothing_is_said_while_a_trial_is_open() {
    use Verdict::{CannotTell, DoesNotHold, Holds};
    let check = |tenth: &[(AttemptEnding, Figures<'_>)], expected: Verdict| {
        assert_eq!(claims(&with_tenth(tenth))[1].verdict, expected, "{tenth:?}");
    };
    check(&[(AttemptEnding::Done, CLEAN)], DoesNotHold);
    check(&[(AttemptEnding::Done, LOST)], Holds);
    check(&[(died(), &[]), (AttemptEnding::Done, LOST)], CannotTell);
    check(&[(died(), &[])], CannotTell);
    check(&[(AttemptEnding::Done, &[])], CannotTell);
    let mut trials = with_tenth(&[(died(), &[])]);
    trials[0].metrics.get_mut("ledger_lost").unwrap().insert(String::new(), 1.0);
    let claim = claims(&trials).remove(1);
    let why = "trial 10 (b/s) failed by a server's fault";
    assert_eq!((claim.verdict, claim.why.as_str()), (CannotTell, why), "a witness elsewhere");
    // A fault that had no effect is no witness.
    check(&[(AttemptEnding::void(VoidKind::Action, "no effect"), LOST)], DoesNotHold);
}

#[test]
fn a_trial_that_was_planned_and_not_run_keeps_claims_about_trials_open() {
    use Verdict::{CannotTell, DoesNotHold};
    let plan: Vec<PlannedTrial> = (1..=12)
        .map(|number| {
            let trial = attempt(number, 1, AttemptEnding::Done, &[]);
            let (round, variant) = (trial.round, trial.variant);
            let (scenario, axes) = (trial.scenario, trial.axes);
            PlannedTrial { number, round, variant, scenario, axes }
        })
        .collect();
    let check = |trials: &[Trial], planned: usize, expected: [(Verdict, &str); 2]| {
        let claims = judged(STUDY, &plan[..planned], trials);
        for (claim, (verdict, why)) in claims.iter().zip(expected) {
            assert_eq!((claim.verdict, claim.why.as_str()), (verdict, why), "{}", claim.says);
        }
    };
    let clean = with_tenth(&[(AttemptEnding::Done, CLEAN)]);
    let lost = with_tenth(&[(AttemptEnding::Done, LOST)]);
    check(&clean, 10, [(Verdict::Holds, ""), (DoesNotHold, "")]);
    let one = "trial 11 (a/s) was planned and not run";
    check(&clean, 11, [(CannotTell, one), (CannotTell, one)]);
    let two = "2 of 12 planned trials were not run (the first: trial 11, a/s)";
    check(&clean, 12, [(CannotTell, two), (CannotTell, two)]);
    let refuted = format!("trial 10 (b/s): ledger_lost = 1; {two}");
    check(&lost, 12, [(DoesNotHold, &refuted), (CannotTell, two)]);
    let none = "10 of 10 planned trials were not run (the first: trial 1, a/s)";
    check(&[], 10, [(CannotTell, none), (CannotTell, none)]);
}

/// What `--only` left out changes no verdict, and is named.
#[test]
fn points_that_a_run_left_out_are_named() {
    let only_a = |number| {
        let trial = attempt(number, 1, AttemptEnding::Done, CLEAN);
        let (round, variant, scenario) = (trial.round, trial.variant.clone(), "s".to_owned());
        let planned = PlannedTrial { number, round, variant, scenario, axes: BTreeMap::new() };
        (planned, trial)
    };
    let (plan, trials): (Vec<_>, Vec<_>) = [1, 3, 5].map(only_a).into_iter().unzip();
    let claim = &judged(STUDY, &plan, &trials)[0];
    let why = "this run left out 1 of the 2 points that the claim is about (the first: b/s)";
    assert_eq!((claim.verdict, claim.why.as_str()), (Verdict::Holds, why));
}

/// A trial whose scenario never makes the check is not asked, and where none makes it, each is.
#[test]
fn a_claim_asks_the_trials_that_can_have_the_figure() {
    let check = |checks: &str, expected: Verdict, why: &str| {
        let study = STUDY.replacen("ledger_lost == 0", "count_difference == 0", 1).replacen(
            "[scenarios.s]",
            &format!("[scenarios.other]\nrun = [\"w\"]\n[scenarios.s]{checks}"),
            1,
        );
        let counted = attempt(1, 1, AttemptEnding::Done, &[("count_difference", 0.0)]);
        let mut other = attempt(2, 1, AttemptEnding::Done, &[("tps", 5.0)]);
        other.scenario = "other".to_owned();
        let claim = judged(&study, &[], &[counted, other]).remove(0);
        assert_eq!((claim.verdict, claim.why.as_str()), (expected, why), "{checks}");
    };
    check("\nchecks = [\"counts\"]", Verdict::Holds, "");
    check("", Verdict::CannotTell, "trial 2 (b/other) has no count_difference");
}

#[test]
fn a_server_survives_only_what_it_was_asked_to_keep() {
    use Verdict::{CannotTell, DoesNotHold, Holds};
    let check = |condition: &str, figures: Figures<'_>, expected: Verdict, why: &str| {
        let study = STUDY.replacen("ledger_lost == 0", condition, 1);
        let claim = judged(&study, &[], &[attempt(1, 1, AttemptEnding::Done, figures)]).remove(0);
        assert_eq!((claim.verdict, claim.why.as_str()), (expected, why), "{condition} {figures:?}");
    };
    let (some, none) = (("ledger_acknowledged", 9.0), ("ledger_acknowledged", 0.0));
    let idle = ("ledger_in_flight", 0.0);
    let nothing = "trial 1 (a/s) acknowledged no transaction";
    for (condition, good, bad) in [
        ("cut_survived == 1", ("cut_survived", 1.0), ("cut_survived", 0.0)),
        ("restore_started == 1", ("restore_started", 1.0), ("restore_started", 0.0)),
        ("restore_lost == 0", ("restore_lost", 0.0), ("restore_lost", 2.0)),
        ("resetwal_lost == 0", ("resetwal_lost", 0.0), ("resetwal_lost", 2.0)),
    ] {
        check(condition, &[good, some], Holds, "");
        check(condition, &[good, none], CannotTell, nothing);
        check(condition, &[good], CannotTell, "trial 1 (a/s) has no ledger_acknowledged");
        let why = "trial 1 (a/s) had no transaction in flight at the fault";
        check(condition, &[good, some, idle], CannotTell, why);
        let why = format!("trial 1 (a/s): {} = {}", bad.0, bad.1);
        check(condition, &[bad], DoesNotHold, &why);
    }
    // That a server does not survive is true whatever it was asked to keep.
    check("cut_survived == 0", &[("cut_survived", 0.0)], Holds, "");
}

#[test]
fn a_stall_is_a_result_and_a_verdict_that_depends_on_it_cannot_be_told() {
    use Verdict::{CannotTell, DoesNotHold, Holds};
    // In some trials b does `to` transactions a second instead of about 1,000.
    let trials = |rounds: usize, stalled: &[usize], to: f64, is_run_again: bool| {
        let mut trials = Vec::new();
        for number in 1..=2 * rounds {
            let jitter = [-3.0, 5.0, -2.0, 1.0, -4.0, 3.0, -1.0][number % 7];
            let tps: Figures<'_> = &[("tps", 1000.0 + jitter)];
            if !stalled.contains(&number) {
                trials.push(attempt(number, 1, AttemptEnding::Done, tps));
            } else if is_run_again {
                let warming =
                    AttemptEnding::void(VoidKind::NotSteady, "not steady: it still warms up");
                trials.push(attempt(number, 1, warming, &[("tps", to)]));
                trials.push(attempt(number, 2, AttemptEnding::Done, tps));
            } else {
                let mut stalled = attempt(number, 1, AttemptEnding::Done, &[("tps", to)]);
                stalled.notes.push(Note::new(NoteKind::Unsteady, "not steady: it stalls"));
                trials.push(stalled);
            }
        }
        trials
    };
    let check = |trials: &[Trial], expected: Verdict, why: &str| {
        let claim = claims(trials).remove(2);
        assert_eq!(claim.verdict, expected, "{}", claim.why);
        assert!(claim.why.starts_with(why), "{}", claim.why);
        let differs = claim.why.contains("all trials that count");
        assert_eq!(differs, !why.is_empty(), "{}", claim.why);
    };
    check(&trials(8, &[], 0.0, false), Holds, "");
    // It counts: the interval has it, and where it changes nothing the verdict stands …
    check(&trials(8, &[4, 8], 995.0, false), Holds, "");
    check(&trials(6, &[4], 995.0, false), Holds, "");
    // … but that a side stood still in some rounds is no middle of them …
    check(&trials(20, &[2, 6], 400.0, false), CannotTell, "");
    check(&trials(20, &[2, 6], 600.0, false), CannotTell, "");
    check(&trials(20, &[2, 6], 850.0, false), Holds, "");
    // … and where steady trials alone would say something else, there is none.
    let differ = "all trials that count: does not hold";
    let most = (1..=24).filter(|round| round % 4 != 0).map(|round| 2 * round);
    check(&trials(24, &most.collect::<Vec<usize>>(), 400.0, false), CannotTell, differ);
    // Where every round stalls, the stalls are what was measured.
    let all: Vec<usize> = (1..=8).map(|round| 2 * round).collect();
    check(&trials(8, &all, 400.0, false), DoesNotHold, "");
    // What was run again because it still warmed up stays in the evidence as well.
    check(&trials(8, &[4, 8], 995.0, true), Holds, "");
    let differ = "all trials that count: holds";
    check(&trials(8, &[2, 6, 10], 400.0, true), CannotTell, differ);
    check(&trials(8, &[2], 0.0, true), CannotTell, differ);
}

/// A generator host that is lost takes figures of its clients along, and no proof of a loss.
#[test]
fn a_lost_host_of_clients_refutes_nothing_by_what_it_took_along() {
    use Verdict::{CannotTell, DoesNotHold, Holds};
    const STUDY: &str = r#"
question = "?"
[variants.a]
[workloads.w]
builtin = "select-only"
[scenarios.s]
run = ["w"]
[[claims]]
says = "nothing is lost"
every = "ledger_lost == 0"
[[claims]]
says = "both count the same"
every = "count_difference == 0"
[[claims]]
says = "it is fast"
every = "tps >= 500"
[[claims]]
says = "nobody waits"
every = "longest_wait_ms <= 1000"
[[claims]]
says = "the server took them"
every = "server_transactions >= 500"
"#;
    let host = |lost: Option<&str>, clients| HostUse {
        roles: vec!["generator".to_owned()],
        clock_bound_ns: Some(100_000),
        load: Some(HostLoad {
            clients,
            tps: 1.0,
            cpu_ns: 1,
            busy_share_max: 0.1,
            wanted_share_max: None,
            lag_p99_ns: 1,
        }),
        lost: lost.map(str::to_owned),
        ..HostUse::new("load2")
    };
    let check = |host: HostUse, unjudged: f64, lost: (f64, bool), expected: [Verdict; 5]| {
        let figures = [
            ("ledger_lost", lost.0),
            ("ledger_unjudged", unjudged),
            ("ledger_acknowledged", 900.0),
            ("count_difference", 17.0),
            ("tps", 100.0),
            ("longest_wait_ms", 3_000.0),
            ("server_transactions", 100.0),
        ];
        let is_lost = host.lost.is_some();
        let ending = match is_lost {
            true => AttemptEnding::failed(FaultyParty::GeneratorHost, "host load2 is lost"),
            false => AttemptEnding::Done,
        };
        let mut trial = Trial { hosts: vec![host], ..attempt(1, 1, ending, &figures) };
        if lost.1 {
            let scopes = std::collections::BTreeSet::from([String::new()]);
            trial.at_least.insert("ledger_lost".to_owned(), scopes);
        }
        let found = judged(STUDY, &[], &[trial]);
        let verdicts: Vec<Verdict> = found.iter().map(|claim| claim.verdict).collect();
        assert_eq!(verdicts, expected, "{lost:?}: {found:#?}");
        let named = found.iter().filter(|claim| claim.verdict == CannotTell);
        assert!(named.into_iter().all(|claim| claim.why.contains("load2")), "{found:#?}");
    };
    let fails = [DoesNotHold; 4];
    let [a, b, c, d] = fails;
    check(host(None, 4), 0.0, (0.0, false), [Holds, a, b, c, d]);
    check(host(Some("silence"), 4), 2.0, (0.0, true), [CannotTell; 5]);
    // What the others saw proves a loss.
    let [_, rest @ ..] = [CannotTell; 5];
    let [b, c, d, e] = rest;
    check(host(Some("silence"), 4), 2.0, (3.0, true), [DoesNotHold, b, c, d, e]);
}

/// A host that stood still for a while is no pause of the database.
#[test]
fn a_pause_that_a_host_may_have_made_shows_nothing() {
    use Verdict::{CannotTell, DoesNotHold, Holds};
    let check = |claim: &str, metric: &str, value: f64, gap_ms: u64, expected: Verdict| {
        check_gap(claim, metric, value, [Some(gap_ms), None, None], expected, "stood still");
    };
    let (pause, wait) = ("ack_pause_max_ms", "longest_wait_ms");
    check("ack_pause_max_ms <= 1000", pause, 3_022.0, 0, DoesNotHold);
    check("ack_pause_max_ms <= 1000", pause, 3_022.0, 3_004, CannotTell);
    check("longest_wait_ms <= 1000", wait, 3_022.0, 3_004, CannotTell);
    check("standstill_max_s <= 1", "standstill_max_s", 3.0, 2_900, CannotTell);
    // What is longer than the host explains is the database's.
    check("ack_pause_max_ms <= 1000", pause, 9_000.0, 3_004, DoesNotHold);
    check("ack_pause_max_ms <= 1000", pause, 700.0, 3_004, Holds);
    // That clients saw a pause is not shown either.
    check("longest_wait_ms >= 2000", wait, 3_022.0, 3_004, CannotTell);
    check("ledger_lost == 0", "ledger_lost", 1.0, 3_004, DoesNotHold);
    // Whichever gap is the longest is named.
    let gaps = [Some(900), Some(1_000), Some(3_004)];
    check_gap("longest_wait_ms <= 1000", wait, 3_022.0, gaps, CannotTell, "had a full disk");
    let gaps = [None, Some(3_004), Some(0)];
    check_gap(
        "longest_wait_ms <= 1000",
        wait,
        3_022.0,
        gaps,
        CannotTell,
        "was cut off from host db2",
    );
    // A rate of a window of which a host took a part shows nothing, whatever the bound.
    check("tps >= 500", "tps", 300.0, 3_004, CannotTell);
    check("tps <= 500", "tps", 300.0, 3_004, CannotTell);
    check("tps >= 500", "tps", 300.0, 0, DoesNotHold);
}

/// The verdict of a claim about a trial whose host stood still, was cut off or had a full disk for so many milliseconds,
/// and the words by which a verdict that is left open names that.
fn check_gap(
    claim: &str,
    metric: &str,
    value: f64,
    gaps_ms: [Option<u64>; 3],
    expected: Verdict,
    words: &str,
) {
    let [stall_max_ns, link_gap_max_ns, disk_full_max_ns] =
        gaps_ms.map(|ms| ms.map(|ms| ms * 1_000_000));
    let host = HostUse {
        stall_max_ns,
        link_gap_max_ns,
        link_gap_to: link_gap_max_ns.map(|_| "db2".to_owned()),
        disk_full_max_ns,
        ..HostUse::new("db1")
    };
    check_host(claim, (metric, value), host, expected, words);
}

/// The same with whatever happened to the host.
fn check_host(claim: &str, figure: (&str, f64), host: HostUse, expected: Verdict, words: &str) {
    let study = format!(
        "question = \"?\"\n[variants.a]\n[workloads.w]\nbuiltin = \"select-only\"\n[scenarios.s]\n\
             run = [\"w\"]\n[[claims]]\nsays = \"it\"\nevery = \"{claim}\"\n"
    );
    let figures = [figure, ("ledger_acknowledged", 900.0)];
    let at = |s: u64| record::Moment(s * 1_000_000_000);
    let window = record::MeasuredWindow { load_began: at(0), open: at(1), close: at(61) };
    let done = attempt(1, 1, AttemptEnding::Done, &figures);
    let trial = Trial { hosts: vec![host], window: Some(window), ..done };
    let found = judged(&study, &[], &[trial]).remove(0);
    assert_eq!(found.verdict, expected, "{claim}, {figure:?}: {}", found.why);
    let named = [format!("host db1 {words}"), "of the window in a/s (host db1)".to_owned()];
    let is_named = named.iter().any(|words| found.why.contains(words));
    assert!(expected != Verdict::CannotTell || is_named, "{}", found.why);
}

/// A host with gaps of so many milliseconds, one every three seconds of the window.
fn with_gaps(kind: HostGapKind, lengths_ms: &[u64]) -> HostUse {
    let gaps = (1..).zip(lengths_ms).map(|(at, ms)| record::HostGap {
        kind,
        from: record::Moment(at * 3_000_000_000),
        length_ns: ms * 1_000_000,
        other: None,
    });
    HostUse { gaps: gaps.collect(), ..HostUse::new("db1") }
}

/// Pauses of a host add up, and short ones are pauses as well.
#[test]
fn pauses_of_a_host_add_up_and_short_ones_count() {
    use Verdict::{CannotTell, DoesNotHold, Holds};
    let check = |value: f64, lengths_ms: &[u64], expected: Verdict| {
        for metric in ["ack_pause_max_ms", "longest_wait_ms", "latency_p99_ms"] {
            // What clients measure of a window of which a host took much is cannot tell in any case.
            if metric != "ack_pause_max_ms" && expected == DoesNotHold {
                continue;
            }
            let host = with_gaps(HostGapKind::Stall, lengths_ms);
            let claim = format!("{metric} <= 1000");
            check_host(&claim, (metric, value), host, expected, "stood still for ");
        }
    };
    check(1_300.0, &[450], CannotTell);
    check(1_700.0, &[450], DoesNotHold);
    check(900.0, &[450], Holds);
    check(3_000.0, &[450; 10], CannotTell);
    check(6_000.0, &[450; 10], DoesNotHold);
    check(1_100.0, &[150], CannotTell);
    let why =
        "stood still for 0.5 s (all such times of the window: 4.5 s), and longest_wait_ms = 3000";
    let host = with_gaps(HostGapKind::Stall, &[450; 10]);
    check_host("longest_wait_ms <= 1000", ("longest_wait_ms", 3_000.0), host, CannotTell, why);
}

/// What clients wait after a link was down until TCP sends again is not the server's doing.
#[test]
fn a_wait_until_tcp_sends_again_belongs_to_the_link() {
    use Verdict::{CannotTell, DoesNotHold};
    let check = |value: f64, kind: HostGapKind, expected: Verdict, words: &str| {
        let claim = "ack_pause_max_ms <= 1000";
        check_host(claim, ("ack_pause_max_ms", value), with_gaps(kind, &[2_000]), expected, words);
    };
    let words = "was cut off for 2.0 s, after which TCP sends again up to 3.0 s later, and";
    check(5_900.0, HostGapKind::Link, CannotTell, words);
    check(6_100.0, HostGapKind::Link, DoesNotHold, "");
    check(2_900.0, HostGapKind::Stall, CannotTell, "stood still for 2.0 s, and");
    check(3_100.0, HostGapKind::Stall, DoesNotHold, "");
}

/// Counts, shares and ages are what a machine makes of them, too.
#[test]
fn counts_and_ages_that_a_host_may_have_made_show_nothing() {
    use HostGapKind::{FullDisk, Link, Stall};
    use Verdict::{CannotTell, DoesNotHold, Holds};
    let check = |claim: &str, value: f64, kind: HostGapKind, ms: u64, expected: Verdict| {
        let metric = claim.split(' ').next().expect("a metric");
        let words = match kind {
            Stall => "stood still for ",
            Link => "was cut off for ",
            FullDisk => "had a full disk for ",
        };
        let host = with_gaps(kind, if ms > 0 { std::slice::from_ref(&ms) } else { &[] });
        check_host(claim, (metric, value), host, expected, words);
    };
    for (claim, value) in [
        ("failed == 0", 3.0),
        ("errors == 0", 3.0),
        ("reconnects == 0", 3.0),
        ("unknown <= 2", 3.0),
        ("standstills == 0", 1.0),
        ("ledger_failed == 0", 3.0),
        ("jain >= 0.9", 0.5),
        ("client_transactions_min >= 10", 0.0),
        ("read_behind_max == 0", 3.0),
        ("read_stale_share == 0", 0.1),
        ("read_age_max_ms <= 100", 1_200.0),
        ("transactions >= 500", 300.0),
        ("transactions <= 500", 300.0),
    ] {
        check(claim, value, Link, 3_000, CannotTell);
        let without = if claim == "transactions <= 500" { Holds } else { DoesNotHold };
        check(claim, value, Link, 0, without);
    }
    // None was made, whatever the host did.
    check("failed == 0", 0.0, Link, 3_000, Holds);
    // A longer time than a host has taken is the database's.
    check("read_age_max_ms <= 100", 20_000.0, Link, 3_000, DoesNotHold);
    // What a hundredth of the window and less may have changed.
    check("tps >= 500", 498.0, Stall, 450, CannotTell);
    check("tps >= 500", 490.0, Stall, 450, DoesNotHold);
    check("transactions >= 500", 498.0, Stall, 450, CannotTell);
    check("transactions >= 500", 490.0, Stall, 450, DoesNotHold);
    // A server ends for want of room, and not because its host stands still.
    check("unasked_crashes == 0", 1.0, FullDisk, 1_500, CannotTell);
    check("unasked_crashes == 0", 1.0, Stall, 1_500, DoesNotHold);
    // Proofs are proofs.
    check("ledger_anomalies == 0", 1.0, Stall, 3_000, DoesNotHold);
    check("history_g1a == 0", 1.0, Stall, 3_000, DoesNotHold);
    check("two_primaries_ms == 0", 200.0, Stall, 3_000, DoesNotHold);
}

/// Clocks that are not known tell of no order, and of no pause between what two hosts heard.
#[test]
fn a_clock_that_has_jumped_orders_nothing() {
    use Verdict::{CannotTell, DoesNotHold, Holds};
    let load = HostLoad {
        clients: 4,
        tps: 1.0,
        cpu_ns: 1,
        busy_share_max: 0.1,
        wanted_share_max: None,
        lag_p99_ns: 1,
    };
    let check = |claim: &str, value: f64, bound_ms: u64, expected: Verdict| {
        let clock_bound_ns = Some(bound_ms * 1_000_000);
        let host = HostUse { load: Some(load), clock_bound_ns, ..HostUse::new("load1") };
        let study = format!(
            "question = \"?\"\n[variants.a]\n[workloads.w]\nbuiltin = \"select-only\"\n[scenarios.s]\n\
             run = [\"w\"]\n[[claims]]\nsays = \"it\"\nevery = \"{claim}\"\n"
        );
        let metric = claim.split(' ').next().expect("a metric");
        let figures = [(metric, value), ("ledger_acknowledged", 900.0)];
        let mut trial = Trial { hosts: vec![host], ..attempt(1, 1, AttemptEnding::Done, &figures) };
        if metric.starts_with("read_age") && bound_ms > 5 {
            let scopes = std::collections::BTreeSet::from([String::new()]);
            trial.at_least.insert(metric.to_owned(), scopes);
        }
        let found = judged(&study, &[], &[trial]).remove(0);
        assert_eq!(found.verdict, expected, "{claim}, {value}, {bound_ms}: {}", found.why);
        let words = format!("the clock of host load1 is known to ± {bound_ms}.0 ms only");
        assert!(expected != CannotTell || found.why.contains(&words), "{}", found.why);
    };
    check("ledger_split == 0", 7.0, 1, DoesNotHold);
    check("ledger_split == 0", 7.0, 5_000, CannotTell);
    check("ledger_split == 0", 0.0, 5_000, CannotTell);
    check("ack_pause_max_ms <= 1000", 1_060.0, 40, CannotTell);
    check("ack_pause_max_ms <= 1000", 1_090.0, 40, DoesNotHold);
    check("ack_pause_max_ms <= 1000", 950.0, 40, CannotTell);
    check("ack_pause_max_ms <= 1000", 950.0, 1, Holds);
    check("read_age_max_ms <= 100", 0.0, 5_000, CannotTell);
    check("read_age_max_ms <= 100", 400.0, 5_000, DoesNotHold);
}

/// Clocks that were a few milliseconds off are no fault of a history, and the answer speaks of them.
#[test]
fn clocks_that_are_apart_leave_open_whether_a_history_could_be_judged() {
    use Verdict::{CannotTell, DoesNotHold, Holds};
    const STUDY: &str = "question = \"?\"\n[variants.a]\n[workloads.w]\nbuiltin = \"select-only\"\n\
        [scenarios.s]\nrun = [\"w\"]\n[[claims]]\nsays = \"every history could be judged\"\n\
        every = \"history_unjudged == 0\"\nkind = \"invariant\"\n";
    let check = |unjudged: f64, is_of_a_host: bool, expected: (Verdict, Option<&str>)| {
        let mut trial = attempt(1, 1, AttemptEnding::Done, &[("history_unjudged", unjudged)]);
        if is_of_a_host {
            let scopes = std::collections::BTreeSet::from([String::new()]);
            trial.at_least.insert("history_unjudged".to_owned(), scopes);
        }
        let found = judged(STUDY, &[], &[trial]).remove(0);
        assert_eq!(found.verdict, expected.0, "{found:?}");
        let words = expected.1.unwrap_or_default();
        assert!(found.why.contains(words), "{}", found.why);
    };
    check(0.0, false, (Holds, None));
    check(0.0, true, (CannotTell, Some("not judged, as the clocks of the clients are apart")));
    check(2.0, false, (DoesNotHold, None));
    // Lines that cannot be read are the history's own fault, whatever the clocks say.
    check(1.0, true, (DoesNotHold, None));
}

/// An attempt that lost a host of clients is made up for by a later one.
#[test]
fn a_later_attempt_makes_up_for_a_lost_generator_host_and_not_for_one_with_servers() {
    use Verdict::{CannotTell, Holds};
    let check = |fault: FaultyParty, expected: Verdict| {
        let trials = with_tenth(&[
            (AttemptEnding::failed(fault, "host x is lost"), &[]),
            (AttemptEnding::Done, CLEAN),
        ]);
        assert_eq!(claims(&trials).remove(0).verdict, expected, "{fault:?}");
    };
    check(FaultyParty::GeneratorHost, Holds);
    check(FaultyParty::ServerHost, CannotTell);
}

/// A claim that nothing is lost takes the whole ledger, whatever its figures say.
#[test]
fn a_ledger_that_is_cut_off_proves_no_durability() {
    let figures = [
        ("ledger_lost", 0.0),
        ("ledger_unjudged", 1.0),
        ("ledger_acknowledged", 900.0),
        ("ledger_in_flight", 8.0),
    ];
    let claim = claims(&with_tenth(&[(AttemptEnding::Done, &figures)])).remove(0);
    assert_eq!(claim.verdict, Verdict::CannotTell, "{}", claim.why);
    assert!(claim.why.contains("the ledger of 1 client"), "{}", claim.why);
}
