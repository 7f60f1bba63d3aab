//! A guard as a node of a study: the rig runs it, and its record is part of the trial's.

use std::process::Command;

use record::{MarkKind, Reader, Status};

#[test]
fn a_study_with_a_guard_records_when_commits_were_exposed() {
    let place = tempfile::tempdir().unwrap();
    let study = place.path().join("mine");
    std::fs::create_dir(&study).unwrap();
    std::fs::write(study.join("study.toml"), STUDY).unwrap();
    std::fs::write(study.join("init.sql"), "CREATE TABLE t (i int);\n").unwrap();
    std::fs::write(study.join("insert.sql"), "INSERT INTO t VALUES (1);\n").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_pgrig"))
        .args(["run", "./mine", "--profile", "smoke", "--out", "record"])
        .current_dir(place.path())
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");

    let reader = Reader::open(&place.path().join("record")).unwrap();
    let [trial] = reader.trials() else { panic!("{said}") };
    assert_eq!(trial.status, Status::Done, "{said}");
    let figure = |metric: &str| trial.metrics[metric]["primary"];
    assert_eq!(figure("exposure_windows"), 1.0);
    assert_eq!(figure("guard_changes"), 2.0);
    let marks = reader.marks(trial).unwrap();
    let at = |kind: MarkKind, words: &str| {
        let found = marks.iter().find(|mark| mark.kind == kind && mark.text.starts_with(words));
        found.unwrap_or_else(|| panic!("no {words}: {marks:?}"))
    };
    let exposure = at(MarkKind::Exposure, "exposed: commits were on the primary alone");
    let (kill, start) = (at(MarkKind::Action, "kill s1"), at(MarkKind::Action, "start s1"));
    assert!(exposure.at > kill.at && exposure.at < start.at);
    assert!(exposure.at.plus_ns(exposure.length_ns) > start.at);
    assert_eq!(exposure.node, "primary");
    let logs = reader.logs(trial).unwrap();
    assert!(logs.is_empty() || logs.contains_key("watcher"));
}

const STUDY: &str = r#"
question = "When were commits exposed?"
window = "12s"
warmup = "200ms"
rounds = 1
[settings]
shared_buffers = "16MB"
[data]
script = "init.sql"
[topologies.t.nodes]
primary = {}
s1 = { of = "primary", sync = 1 }
watcher = { kind = "guard", to = "primary", grace = "1s" }
[workloads.insert]
script = "insert.sql"
clients = 2
[scenarios.dies]
run = ["insert"]
timeline = [{ at = "1s", kill = "s1" }, { at = "5s", start = "s1" }]
[[claims]]
says = "something is inserted"
every = "tps > 0"
kind = "invariant"
"#;
