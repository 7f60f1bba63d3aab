//! Actions of a timeline: what they do, and what becomes of one that does nothing.

use std::process::Command;

use record::{AttemptEnding, MarkKind};
use study::{Error, RecordPlace};

use super::{BUMP, COUNTERS, INIT, figure, finished, folder, request, run};

#[test]
fn actions_happen_in_the_window_and_prove_their_effect() {
    let place = tempfile::tempdir().unwrap();
    let study = COUNTERS
        .replace("rounds = 2", "rounds = 1")
        .replace("window = \"600ms\"", "window = \"6s\"")
        .replace("[variants.fast]\nsettings = { synchronous_commit = \"off\" }\n", "")
        .replace(
            "checks = [\"counts\"]",
            "on_loss = \"reconnect\"\ntimeline = [\n\
             { at = \"300ms\", checkpoint = \"primary\" },\n\
             { at = \"700ms\", kill = \"primary\" },\n\
             { at = \"1s\", start = \"primary\" },\n\
             { at = \"2s\", pause = \"primary\" },\n\
             { at = \"2200ms\", continue = \"primary\" },\n]",
        )
        .replace("every = \"count_difference == 0\"", "every = \"tps > 0\"");
    let files = [("study.toml", study.as_str()), ("init.sql", INIT), ("bump.sql", BUMP)];
    let ended = run(&request(folder(&files), RecordPlace::Below(place.path().to_owned()))).unwrap();

    let trials = finished(&ended.directory);
    assert_eq!(trials[0].trial.ending, AttemptEnding::Done, "{:?}", trials[0].trial.notes);
    let actions: Vec<&record::TimelineMark> =
        trials[0].marks.iter().filter(|mark| mark.kind == MarkKind::Action).collect();
    let texts: Vec<&str> = actions.iter().map(|mark| mark.text.as_str()).collect();
    let verbs = ["checkpoint", "kill", "start", "pause", "continue"];
    for (text, verb) in texts.iter().zip(verbs) {
        assert!(text.starts_with(&format!("{verb} primary: ")), "{texts:?}");
    }
    assert_eq!(texts.len(), verbs.len(), "{texts:?}");
    let window = trials[0].trial.window.unwrap();
    assert!(actions[1].at >= window.open.plus_ns(700_000_000));
    assert!(actions[1].at < window.open.plus_ns(3_000_000_000));
    assert!(figure(&trials[0], "reconnects", "") >= 1.0);
    let workload = &trials[0].trial.workloads[0];
    assert!(workload.counts.aborted_clients == 0, "clients came back");
}

#[test]
fn an_action_without_effect_voids_the_trial() {
    let place = tempfile::tempdir().unwrap();
    let study = COUNTERS
        .replace("rounds = 2", "rounds = 1")
        .replace("checks = [\"counts\"]", "timeline = [{ at = \"100ms\", sql = \"SELECT 1 / 0\" }]")
        .replace("every = \"count_difference == 0\"", "every = \"tps > 0\"");
    let files = [("study.toml", study.as_str()), ("init.sql", INIT), ("bump.sql", BUMP)];
    let ended = run(&request(folder(&files), RecordPlace::Below(place.path().to_owned()))).unwrap();
    let trials = finished(&ended.directory);
    let AttemptEnding::Void(why) = &trials[0].trial.ending else {
        panic!("{:?}", trials[0].trial.ending);
    };
    assert!(why.text.contains("division by zero"), "{why:?}");
}

/// COUNTERS with one trial of six seconds and this timeline.
fn timeline(actions: &str) -> String {
    COUNTERS
        .replace("rounds = 2", "rounds = 1")
        .replace("window = \"600ms\"", "window = \"6s\"")
        .replace("[variants.fast]\nsettings = { synchronous_commit = \"off\" }\n", "")
        .replace(
            "checks = [\"counts\"]",
            &format!("on_loss = \"reconnect\"\ntimeline = [{actions}]"),
        )
        .replace("every = \"count_difference == 0\"", "every = \"tps > 0\"")
}

#[test]
fn a_killed_backend_makes_the_server_recover() {
    let place = tempfile::tempdir().unwrap();
    let study = timeline("{ at = \"500ms\", kill_backend = \"primary\" }");
    let files = [("study.toml", study.as_str()), ("init.sql", INIT), ("bump.sql", BUMP)];
    let ended = run(&request(folder(&files), RecordPlace::Below(place.path().to_owned()))).unwrap();
    let trial = &finished(&ended.directory)[0];
    assert_eq!(trial.trial.ending, AttemptEnding::Done, "{:?}", trial.trial.notes);
    let action = trial.marks.iter().find(|mark| mark.kind == MarkKind::Action).unwrap();
    let expected = "kill_backend primary: it accepted connections again after ";
    assert!(action.text.starts_with(expected), "{}", action.text);
    let recovery = figure(trial, "crash_recovery_s", "primary");
    assert!(recovery > 0.0 && recovery * 1e9 <= action.length_ns as f64, "{recovery} s");
    let said = |mark: &record::TimelineMark| mark.text.contains("was terminated by signal 9");
    assert!(trial.marks.iter().any(said), "{:?}", trial.marks);
    assert!(figure(trial, "reconnects", "") >= 1.0);
}

/// A statement that keeps all that it has read: 200 MB, so that the kernel kills its process, and that it does not take
/// the memory of the machine when nothing limits it any more.
const GREEDY: &str = "SELECT sum(length(kept)) FROM (SELECT first_value(pad) OVER (ROWS UNBOUNDED PRECEDING) AS kept \
    FROM (SELECT generate_series(1, 200000), repeat('x', 1000) AS pad) AS read) AS all_read;\n";

#[test]
fn the_kernel_kills_a_process_of_a_server_that_uses_up_its_memory() {
    if !lab::machine::is_root() {
        return testing::skip::no_root();
    }
    match lab::machine::memory_limits(std::path::Path::new(ON_DISK)) {
        Ok(()) => on_disk("actions::the_kernel_kills_a_process"),
        Err(error) => testing::skip::because(error),
    }
}

#[test]
#[ignore = "run by the other test"]
fn the_kernel_kills_a_process() {
    let place = tempfile::tempdir().unwrap();
    let study = timeline("{ at = \"100ms\", kill_backend = \"primary\", memory = \"64MB\" }")
        .replace("clients = 2", "clients = 1\nsession = { work_mem = \"8GB\" }");
    let files = [("study.toml", study.as_str()), ("init.sql", INIT), ("bump.sql", GREEDY)];
    let ended = run(&request(folder(&files), RecordPlace::Below(place.path().to_owned()))).unwrap();
    let trial = &finished(&ended.directory)[0];
    let said: Vec<&str> = trial.marks.iter().map(|mark| mark.text.as_str()).collect();
    let expected = "kill_backend primary: it accepted connections again after ";
    assert!(
        said.iter().any(|text| text.starts_with(expected)),
        "{said:?} {:?}",
        trial.trial.ending
    );
    assert!(said.iter().any(|text| text.contains("was terminated by signal 9")), "{said:?}");
    assert_eq!(figure(trial, "unasked_crashes", "primary"), 0.0);
}

/// A directory that is no file system in memory.
const ON_DISK: &str = "/var/tmp";

/// Runs an ignored test with its servers on a disk: only a disk has limits, what is written to memory counts as memory,
/// and tests may have their servers there.
fn on_disk(test: &str) {
    let mut program = Command::new(std::env::current_exe().unwrap());
    let output =
        program.args(["--ignored", "--exact", test]).env("TMPDIR", ON_DISK).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn a_limit_on_io_can_be_lifted_once() {
    on_disk("actions::a_limit_is_lifted");
    if !lab::machine::is_root() {
        testing::skip::no_root();
    }
}

#[test]
#[ignore = "run by the other test"]
fn a_limit_is_lifted() {
    let place = tempfile::tempdir().unwrap();
    let study = timeline(
        "{ at = \"300ms\", unthrottle = \"primary\" }, \
         { at = \"400ms\", throttle = \"primary\", to = { write_iops = 200 } }, \
         { at = \"500ms\", unthrottle = \"primary\" }, { at = \"600ms\", unthrottle = \"primary\" }",
    );
    let study =
        format!("{study}\n[topologies.one.nodes.primary]\nthrottle = {{ write_iops = 100 }}\n");
    let files = [("study.toml", study.as_str()), ("init.sql", INIT), ("bump.sql", BUMP)];
    let request = request(folder(&files), RecordPlace::Below(place.path().to_owned()));
    let ended = match (run(&request), lab::machine::is_root()) {
        (Ok(ended), true) => ended,
        (Err(Error::DoesNotFit(_)), false) => return,
        (other, is_root) => panic!("root {is_root}: {other:?}"),
    };
    let trial = &finished(&ended.directory)[0];
    let why = "unthrottle primary: its I/O is not limited";
    assert_eq!(trial.trial.ending, AttemptEnding::void(record::VoidKind::Action, why));
    let actions = trial.marks.iter().filter(|mark| mark.kind == MarkKind::Action);
    let texts: Vec<&str> = actions.map(|mark| mark.text.as_str()).collect();
    let lifted = "unthrottle primary: its I/O is not limited any more";
    assert_eq!(texts, [lifted, "throttle primary: its I/O is limited", lifted, why]);
}

/// A disk whose power is cut while its clients only read.
const IDLE: &str = r#"
question = "Is there anything to lose?"
window = "1500ms"
warmup = "200ms"
rounds = 1
[topologies.cut.nodes.primary]
disk = { cut = "filesystem", size = "256MB" }
settings = { shared_buffers = "16MB" }
[workloads.read]
script = "read.sql"
[scenarios.cut]
run = ["read"]
on_loss = "reconnect"
timeline = [{ at = "800ms", power_cut = "primary" }]
[[claims]]
every = "cut_started == 1"
kind = "invariant"
"#;

#[test]
fn a_cut_without_writes_does_not_count() {
    let place = tempfile::tempdir().unwrap();
    let files = [("study.toml", IDLE), ("read.sql", "SELECT 1;\n")];
    let request = request(folder(&files), RecordPlace::Directory(place.path().join("record")));
    let ended = match (run(&request), lab::machine::is_root()) {
        (Ok(ended), true) => ended,
        (Err(Error::DoesNotFit(_)), false) => return testing::skip::no_root(),
        (other, is_root) => panic!("root {is_root}: {other:?}"),
    };
    let trials = finished(&ended.directory);
    let why = "power_cut primary: nothing was unflushed: the cut had nothing to lose";
    assert_eq!(trials[0].trial.ending, AttemptEnding::void(record::VoidKind::Action, why));
    assert!(!trials[0].trial.metrics.contains_key("cut_started"));
}

/// A primary that stands still, a standby that takes its place and has a standby of its own, and the way
/// back of the old primary.
const RETURN: &str = r#"
question = "Does the old primary follow the new one?"
window = "6s"
warmup = "200ms"
rounds = 1
[data]
script = "init.sql"
rows = 1000
[topologies.three.nodes]
primary = { checksums = true, settings = { shared_buffers = "16MB" } }
standby1 = { of = "primary", settings = { shared_buffers = "16MB" } }
standby2 = { of = "standby1", settings = { shared_buffers = "16MB" } }
front = { kind = "pgbouncer", to = "primary" }
[workloads.bump]
script = "bump.sql"
protocol = "simple"
to = ["primary", "standby1"]
[scenarios.rewind]
run = ["bump"]
on_loss = "reconnect"
timeline = [
  { at = "100ms", sql = "PAUSE", on = "front" },
  { at = "200ms", sql = "RESUME", on = "front" },
  { at = "300ms", sql = "RECONNECT", on = "front" },
  { at = "500ms", kill = "primary" },
  { at = "700ms", promote = "standby1" },
  { at = "1s", rejoin = "primary", of = "standby1", by = "BY" },
]
checks = [{ sql = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'", as = "standbys", on = "standby1", expect = "2" }]
[[claims]]
every = "sql_check_failures == 0"
kind = "invariant"
"#;

#[test]
fn an_old_primary_follows_the_new_one_by_either_way() {
    for (by, expected) in [
        ("rewind", "rejoin primary: it streams from standby1: pg_rewind: "),
        ("backup", "rejoin primary: it streams from standby1: made anew from a base backup"),
    ] {
        let place = tempfile::tempdir().unwrap();
        let study = RETURN.replace("BY", by);
        let files = [("study.toml", study.as_str()), ("init.sql", INIT), ("bump.sql", BUMP)];
        let ended =
            run(&request(folder(&files), RecordPlace::Below(place.path().to_owned()))).unwrap();
        let trial = &finished(&ended.directory)[0];
        assert_eq!(trial.trial.ending, AttemptEnding::Done, "{by}: {:?}", trial.marks);
        let said = |mark: &record::TimelineMark| mark.text.starts_with(expected);
        assert!(trial.marks.iter().any(said), "{by}: {:?}", trial.marks);
        assert_eq!(figure(trial, "sql_check_failures", "standbys"), 0.0, "{by}");
    }
}
