//! What a control does to the other claims of its scenarios.

use std::collections::BTreeMap;

use record::{PlannedTrial, Trial};
use spec::{Study, StudyFolder, StudyProfile};
use verdict::{Verdict, judge};

const STUDY: &str = r#"
question = "?"
[variants.safe]
[variants.reckless]
[workloads.w]
builtin = "select-only"
[scenarios.cut]
run = ["w"]
[scenarios.other]
run = ["w"]
[[claims]]
says = "nothing is lost"
every = "count_difference == 0"
trials = "safe/cut"
kind = "invariant"
[[claims]]
says = "the reckless lose something"
some = "count_difference > 0"
trials = "reckless/cut"
kind = "control"
[[claims]]
says = "elsewhere nothing is lost"
every = "count_difference == 0"
trials = "safe/other"
kind = "invariant"
"#;

/// A value of a scenario whose control does not hold proves nothing either.
#[test]
fn a_value_of_a_scenario_rests_on_its_control() {
    use Verdict::{CannotTell, Holds};
    let study = "\
        [[claims]]\nsays = \"the safe are as fast\"\n\
        value = \"tps('safe/cut') / tps('reckless/cut')\"\nexpect = \">= 0.9\"\n\
        [[claims]]\nsays = \"elsewhere they are as fast\"\n\
        value = \"tps('safe/other') / tps('reckless/other')\"\nexpect = \">= 0.9\"\n";
    let study = parse(&format!("{STUDY}{study}"));
    let judged = |lost: f64| {
        let mut trials = Vec::new();
        for round in 1..=6 {
            for (variant, scenario) in
                [("safe", "cut"), ("reckless", "cut"), ("safe", "other"), ("reckless", "other")]
            {
                let is_reckless = variant == "reckless" && scenario == "cut";
                let mut trial = trial(variant, scenario, if is_reckless { lost } else { 0.0 });
                let tps = 1000.0 + [1.0, -2.0, 3.0, -1.0, 2.0, 0.0][round - 1];
                trial.metrics.insert("tps".to_owned(), [(String::new(), tps)].into());
                (trial.round, trial.number) = (round, trials.len() + 1);
                trials.push(trial);
            }
        }
        let claims = judge(&study, &[], &trials, &[]).claims;
        [claims[3].verdict, claims[4].verdict]
    };
    assert_eq!(judged(2.0), [Holds, Holds]);
    assert_eq!(judged(0.0), [CannotTell, Holds]);
}

/// A control whose scenario the run left out takes no ground from a claim about others, and none takes it from
/// what says only what there was to judge.
#[test]
fn an_unrelated_control_leaves_a_claim_alone() {
    let text = STUDY.replacen("trials = \"safe/cut\"\n", "trials = \"safe/*\"\n", 1);
    let judged = "[[claims]]\nsays = \"every history could be judged\"\n\
                  every = \"history_unjudged == 0\"\n";
    let study = parse(&format!("{text}{judged}"));
    let check = |scenarios: &[&str], expected: [Verdict; 2]| {
        let mut trials: Vec<Trial> = scenarios.iter().map(|one| trial("safe", one, 0.0)).collect();
        trials.push(trial("reckless", scenarios[0], 0.0));
        for (number, trial) in (1..).zip(&mut trials) {
            trial.number = number;
            trial.metrics.insert("history_unjudged".to_owned(), [(String::new(), 0.0)].into());
        }
        let plan: Vec<PlannedTrial> = trials
            .iter()
            .map(|trial| PlannedTrial {
                number: trial.number,
                round: trial.round,
                variant: trial.variant.clone(),
                scenario: trial.scenario.clone(),
                axes: BTreeMap::new(),
            })
            .collect();
        let claims = judge(&study, &plan, &trials, &[]).claims;
        assert_eq!([claims[0].verdict, claims[3].verdict], expected, "{scenarios:?}");
    };
    use Verdict::{CannotTell, Holds};
    check(&["other"], [Holds, Holds]);
    check(&["cut", "other"], [CannotTell, Holds]);
}

fn parse(text: &str) -> Study {
    let folder = StudyFolder {
        name: "mine".to_owned(),
        files: BTreeMap::from([("study.toml".to_owned(), text.to_owned())]),
        is_private: false,
    };
    Study::parse(&folder, StudyProfile::Quick).unwrap()
}

#[test]
fn a_control_that_does_not_hold_takes_the_ground_from_its_scenarios() {
    use Verdict::{CannotTell, DoesNotHold, Holds};
    let failed = "control \"the reckless lose something\" failed: \
                  this machine cannot reproduce the fault";
    let left_out = "nothing shows that the fault does harm here: \
                    control \"the reckless lose something\": no such trial was run";
    // What each trial of the reckless, and of the safe, has lost.
    check(&[0.0, 3.0], &[0.0, 0.0], [Holds, Holds, Holds], "");
    check(&[0.0, 0.0], &[0.0, 0.0], [CannotTell, DoesNotHold, Holds], failed);
    check(&[], &[0.0, 0.0], [CannotTell, CannotTell, Holds], left_out);
    // A loss is a loss.
    check(&[0.0, 0.0], &[0.0, 1.0], [DoesNotHold, DoesNotHold, Holds], "");
}

fn check(reckless: &[f64], safe: &[f64], expected: [Verdict; 3], why: &str) {
    let study = parse(STUDY);
    let mut trials: Vec<Trial> =
        reckless.iter().map(|lost| trial("reckless", "cut", *lost)).collect();
    trials.extend(safe.iter().map(|lost| trial("safe", "cut", *lost)));
    trials.push(trial("safe", "other", 0.0));
    (1..).zip(&mut trials).for_each(|(number, trial)| trial.number = number);
    let judgement = judge(&study, &[], &trials, &[]);
    let verdicts: Vec<Verdict> = judgement.claims.iter().map(|claim| claim.verdict).collect();
    assert_eq!(verdicts, expected, "{reckless:?} {safe:?}");
    if expected[0] == Verdict::CannotTell {
        assert_eq!(judgement.claims[0].why, why);
    }
}

fn trial(variant: &str, scenario: &str, lost: f64) -> Trial {
    let figure = BTreeMap::from([(String::new(), lost)]);
    let planned = PlannedTrial {
        number: 1,
        round: 1,
        variant: variant.to_owned(),
        scenario: scenario.to_owned(),
        axes: BTreeMap::new(),
    };
    let metrics = BTreeMap::from([("count_difference".to_owned(), figure)]);
    Trial { metrics, ..planned.attempt(1) }
}
