//! Phases of a trial: each has its rate, its actions and its figures.

use record::{AttemptEnding, MarkKind};
use study::RecordPlace;

use super::{figure, finished, folder, request, run};

const PHASED: &str = r#"
question = "Does each phase have its own rate?"
rounds = 1
warmup = "300ms"
[workloads.sleep]
script = "sleep.sql"
clients = 4
rate = 40
pacing = "constant"
[scenarios.hours]
run = ["sleep"]
[[scenarios.hours.phases]]
name = "clean"
for = "1s"
[[scenarios.hours.phases]]
name = "pressure"
for = "2s"
rate = "3x"
timeline = [{ at = "200ms", checkpoint = "primary" }]
[[scenarios.hours.phases]]
name = "recovery"
for = "1s"
rate = "0.5x"
[[claims]]
says = "the rate is three times as high"
value = "tps('default/hours', 'phase=pressure') / tps('default/hours', 'phase=clean')"
expect = ">= 2"
"#;

#[test]
fn each_phase_has_its_rate_its_actions_and_its_figures() {
    let place = tempfile::tempdir().unwrap();
    let files = [("study.toml", PHASED), ("sleep.sql", "SELECT 1;\n")];
    let ended = run(&request(folder(&files), RecordPlace::Below(place.path().to_owned()))).unwrap();
    let trials = finished(&ended.directory);
    let one = &trials[0];
    assert_eq!(one.trial.ending, AttemptEnding::Done, "{:?}", one.trial.notes);
    // What is due is sent on any machine, some of it late.
    let sent = |phase: &str| figure(one, "transactions", phase);
    let whole = figure(one, "transactions", "");
    assert_eq!(sent("@clean") + sent("@pressure") + sent("@recovery"), whole);
    assert!((300.0 - 25.0..=300.0 + 2.0).contains(&whole), "{whole}");
    assert!(sent("@pressure") > 2.0 * sent("@clean"), "{} {}", sent("@pressure"), sent("@clean"));
    assert!(sent("@recovery") < sent("@clean"), "{} {}", sent("@recovery"), sent("@clean"));
    assert_eq!(sent("sleep@clean"), sent("@clean"));
    assert_eq!(figure(one, "tps_recovered", "@recovery"), 0.0);
    assert!(one.trial.at_least["tps_recovery_s"].contains("@recovery"));
    assert!(figure(one, "db_commits", "primary@pressure") > 0.0);
    let marks: Vec<_> = one.marks.iter().filter(|mark| mark.text.starts_with("phase ")).collect();
    let texts: Vec<&str> = marks.iter().map(|mark| mark.text.as_str()).collect();
    assert_eq!(texts, ["phase clean", "phase pressure, rate × 3", "phase recovery, rate × 0.5"]);
    assert_eq!(marks[1].length_ns, 2_000_000_000);
    let checkpoint = one.marks.iter().find(|mark| mark.kind == MarkKind::Action).unwrap();
    assert!(checkpoint.at >= marks[1].at.plus_ns(200_000_000), "{checkpoint:?}");
}

#[test]
fn who_holds_the_oldest_xmin_is_named_in_its_phase_and_nobody_else() {
    let place = tempfile::tempdir().unwrap();
    let study = PHASED
        .replace("for = \"2s\"\nrate = \"3x\"", "for = \"5s\"")
        .replace(
            "at = \"200ms\", checkpoint = \"primary\" }",
            "at = \"100ms\", hold_snapshot = \"primary\" }",
        )
        .replace(
            "[[claims]]",
            "[[scenarios.hours.phases]]\nname = \"last\"\nfor = \"3s\"\n[[claims]]",
        )
        .replace(
            "name = \"recovery\"",
            "name = \"recovery\"\ntimeline = [{ at = \"0s\", release_snapshot = \"primary\" }]",
        );
    let files = [("study.toml", study.as_str()), ("sleep.sql", "SELECT txid_current();\n")];
    let ended = run(&request(folder(&files), RecordPlace::Below(place.path().to_owned()))).unwrap();
    let one = &finished(&ended.directory)[0];
    assert_eq!(one.trial.ending, AttemptEnding::Done, "{:?}", one.trial.notes);
    assert!(figure(one, "xmin_held", "session@pressure") > 0.0, "{:?}", one.marks);
    for (kind, phase) in [("session", "clean"), ("session", "last"), ("slot", "pressure")] {
        assert_eq!(figure(one, "xmin_held", &format!("{kind}@{phase}")), 0.0, "{kind} {phase}");
    }
    let held: Vec<_> = one.marks.iter().filter(|mark| mark.kind == MarkKind::Horizon).collect();
    assert_eq!(held.len(), 1, "{held:?}");
    assert!(held[0].text.contains("idle in transaction: "), "{held:?}");
    assert!(held[0].text.contains("SELECT ? FROM pg_class"), "{held:?}");
}
