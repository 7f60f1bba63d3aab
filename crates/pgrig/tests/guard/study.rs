//! A guard as a node of a study: the rig runs it, and its record is part of the trial's.

use std::path::Path;
use std::process::Command;

use record::{AttemptEnding, MarkKind, RecordReader, TimelineMark, Trial};

#[test]
fn a_study_with_a_guard_records_when_commits_were_exposed() {
    let place = tempfile::tempdir().unwrap();
    let timeline = r#"{ at = "1s", kill = "s1" }, { at = "8s", start = "s1" }"#;
    let (trial, marks) = run(place.path(), timeline, "");
    let figure = |metric: &str| trial.metrics[metric]["primary"];
    assert_eq!(figure("exposure_windows"), 1.0);
    assert_eq!(figure("guard_changes"), 2.0);
    println!("sync mode back {:.0} ms after catch-up", figure("sync_restored_ms"));
    let at = |kind: MarkKind, words: &str| {
        let found = marks.iter().find(|mark| mark.kind == kind && mark.text.starts_with(words));
        found.unwrap_or_else(|| panic!("no {words}: {marks:?}"))
    };
    let exposure = at(MarkKind::Exposure, "exposed: commits were on the primary alone");
    let (kill, start) = (at(MarkKind::Action, "kill s1"), at(MarkKind::Action, "start s1"));
    assert!(exposure.at > kill.at && exposure.at < start.at);
    assert!(exposure.at.plus_ns(exposure.length_ns) > start.at);
    assert_eq!(exposure.node, "primary");
    let longest_s = trial.workloads[0].longest_wait_ns as f64 / 1e9;
    println!("longest transaction {longest_s:.2} s, exposed for {:.2} s", figure("exposure_s"));
    assert!(longest_s <= 5.0, "{longest_s} s with a grace of 1 s");
}

/// The primary dies while it commits alone, and the standby that knows nothing of it is promoted.
#[test]
fn what_is_lost_after_a_promotion_lies_inside_the_exposure() {
    let place = tempfile::tempdir().unwrap();
    let timeline = r#"{ at = "1s", kill = "s1" }, { at = "5s", kill = "primary" },
        { at = "5500ms", start = "s1" }, { at = "6500ms", promote = "s1" }"#;
    let checks = r#"checks = [{ ledger = "s1" }]"#;
    let (trial, marks) = run(place.path(), timeline, checks);
    let end = |words: &str| {
        let mark = marks.iter().find(|mark| mark.text.starts_with(words)).unwrap();
        mark.at.plus_ns(mark.length_ns)
    };
    // What the new primary acknowledges is exposed no longer.
    assert_eq!(end("exposed: "), end("kill primary: "));
    let figure = |metric: &str| trial.metrics[metric]["insert"];
    assert!(figure("ledger_acknowledged_alone") < figure("ledger_acknowledged"));
    println!("no acknowledgement for {:.0} ms at most", figure("ack_pause_max_ms"));
    println!("{} acknowledged, {} lost", figure("ledger_acknowledged"), figure("ledger_lost"));
    assert!(figure("ledger_lost") > 0.0, "{:?}", trial.notes);
    assert_eq!(figure("ledger_lost_covered"), 0.0, "{:?}", trial.notes);
    assert_eq!(figure("ledger_anomalies"), figure("ledger_lost"), "{:?}", trial.notes);
}

/// Runs the study in a directory; its one trial and that one's marks.
fn run(place: &Path, timeline: &str, more: &str) -> (Trial, Vec<TimelineMark>) {
    let study = place.join("mine");
    std::fs::create_dir(&study).unwrap();
    let text = STUDY.replace("TIMELINE", timeline).replace("MORE", more);
    std::fs::write(study.join("study.toml"), text).unwrap();
    let init = "CREATE TABLE t (client int, seq bigint, chain bigint, PRIMARY KEY (client, seq));";
    std::fs::write(study.join("init.sql"), init).unwrap();
    let insert = "INSERT INTO t VALUES (:ledger_client, :ledger_seq, :ledger_chain);\n";
    std::fs::write(study.join("insert.sql"), insert).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_pgrig"))
        .args(["run", "./mine", "--profile", "smoke", "--out", "record"])
        .current_dir(place)
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let reader = RecordReader::open(&place.join("record")).unwrap_or_else(|_| panic!("{said}"));
    let [trial] = reader.trials() else { panic!("{said}") };
    assert_eq!(trial.ending, AttemptEnding::Done, "{said}\n{:?}", trial.notes);
    (trial.clone(), reader.whole(trial).unwrap().marks)
}

const STUDY: &str = r#"
question = "When were commits exposed?"
window = "15s"
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
to = ["primary", "s1"]
ledger = { insert = "t" }
[scenarios.dies]
run = ["insert"]
on_loss = "reconnect"
timeline = [TIMELINE]
MORE
[[claims]]
says = "something is inserted"
every = "tps > 0"
kind = "invariant"
"#;
