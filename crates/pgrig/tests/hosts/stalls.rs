//! The rig's machine stands still, and not a host; a host stands still again and again.

use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testing::until;

use crate::desk::{LEDGER_INIT, LEDGER_WRITE, doing, inventory, run, write};
use crate::lost::{ledgers_begun, trials};
use crate::study::{expect_nothing, pgrig};

const STUDY: &str = r#"
question = "Who stood still?"
rounds = 1
window = "8s"
warmup = "100ms"
[settings]
shared_buffers = "16MB"
[data]
script = "init.sql"
[topologies.one.nodes.primary]
listen = "tcp"
[variants.one]
topology = "one"
[workloads.writes]
script = "write.sql"
clients = 4
ledger = { insert = "log", update = "state" }
[scenarios.load]
run = ["writes"]
steady = false
checks = ["ledger"]
[[claims]]
says = "no pause of a third of a second"
every = "longest_wait_ms <= 330"
kind = "invariant"
[[claims]]
says = "it is fast"
every = "transactions >= 100_000_000"
"#;

/// Runs the study and does something to its processes while clients are at work: its only trial, and each claim's verdict
/// and reason.
fn with(disturb: impl FnOnce(i32)) -> (Value, Vec<(String, String)>) {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    write(folder, "study.toml", STUDY);
    write(folder, "init.sql", LEDGER_INIT);
    write(folder, "write.sql", LEDGER_WRITE);
    write(folder, "lab.toml", &inventory(&["load"]));
    let mut command = pgrig(folder, "run . --hosts lab.toml --out out --profile quick");
    let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).stdout(Stdio::piped());
    let child = child.spawn().expect("pgrig starts");
    until("clients at work", || ledgers_begun(folder) >= 1);
    thread::sleep(Duration::from_secs(1));
    disturb(child.id().cast_signed());
    let output = child.wait_with_output().expect("it ends");
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{err}");
    let trial = trials(folder).pop().unwrap_or_else(|| panic!("{err}"));
    let verdicts = verdicts(folder);
    expect_nothing(folder);
    (trial, verdicts)
}

fn verdicts(folder: &Path) -> Vec<(String, String)> {
    let shown = run(&mut pgrig(folder, "show out --json"));
    let shown: Value = serde_json::from_str(&shown.out).unwrap_or_else(|_| panic!("{shown:?}"));
    let text = |claim: &Value, name: &str| claim[name].as_str().unwrap_or_default().to_owned();
    let claims = shown["claims"].as_array().expect("claims").iter();
    claims.map(|one| (text(one, "verdict"), text(one, "why"))).collect()
}

fn send(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).expect("a process id"), signal).expect("a process of ours");
}

/// The notes of a trial.
fn notes(trial: &Value) -> Vec<&str> {
    trial["notes"]
        .as_array()
        .expect("notes")
        .iter()
        .filter_map(|note| note["text"].as_str())
        .collect()
}

/// While the rig stands still, it hears of no host. That is no gap of theirs, nor is a host lost.
pub(crate) fn a_rig_that_stands_still_blames_no_host() {
    let (trial, verdicts) = with(|rig| {
        send(rig, Signal::STOP);
        // A host that is silent for 4 s would be lost.
        thread::sleep(Duration::from_millis(4_500));
        send(rig, Signal::CONT);
    });
    assert_eq!(trial["ending"]["is"], "done", "{}", trial["ending"]);
    let notes = notes(&trial);
    let told = notes.iter().find(|note| note.starts_with("pgrig itself stood still for "));
    let told = told.unwrap_or_else(|| panic!("{notes:#?}"));
    assert!(told.contains(" 4."), "{told}");
    for host in trial["hosts"].as_array().expect("hosts") {
        for figure in ["stall_max_ns", "link_gap_max_ns"] {
            let gap_ns = host[figure].as_u64().unwrap_or_default();
            assert!(gap_ns < 2_000_000_000, "{figure} of {host}\n{notes:#?}");
        }
    }
    let (_, why) = &verdicts[0];
    assert!(!why.contains("stood still for 4.") && !why.contains("cut off for 4."), "{verdicts:?}");
}

/// Each time is short, and together they are half of the window: what clients waited, and how much they did, is not the
/// server's doing.
pub(crate) fn a_host_that_stands_still_again_and_again_is_named() {
    let (trial, verdicts) = with(|_| {
        let labs = doing("lab");
        let table = os::processes::all().expect("/proc");
        let host = doing("host")
            .into_iter()
            .find(|pid| os::processes::tree(&table, *pid).contains(&labs[0]))
            .expect("the host with the server");
        for _ in 0..6 {
            let table = os::processes::all().expect("/proc");
            let all = os::processes::tree(&table, host);
            // One that has ended meanwhile is fine.
            let each = |signal: Signal| {
                for pid in &all {
                    let _ = kill_process(Pid::from_raw(*pid).expect("a process id"), signal);
                }
            };
            each(Signal::STOP);
            thread::sleep(Duration::from_millis(400));
            each(Signal::CONT);
            thread::sleep(Duration::from_millis(300));
        }
    });
    let db = &trial["hosts"][0];
    let gaps = db["gaps"].as_array().unwrap_or_else(|| panic!("{db}"));
    let stalls = gaps.iter().filter(|gap| gap["kind"] == "stall");
    let stalled_ns: u64 = stalls.filter_map(|gap| gap["length_ns"].as_u64()).sum();
    assert!(stalled_ns > 2_000_000_000, "{db}");
    for (verdict, why) in &verdicts {
        assert_eq!(verdict, "cannot tell", "{why}");
        assert!(why.contains("host db"), "{why}");
    }
    let told = notes(&trial).into_iter().find(|note| note.starts_with("host db stood still for "));
    assert!(told.is_some_and(|note| note.contains(" in all, ")), "{:#?}", notes(&trial));
}
