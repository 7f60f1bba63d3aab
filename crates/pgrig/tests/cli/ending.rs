//! The end of a run that is asked for at any moment, and runs that get into each other's way.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::interruption::signal;
use crate::{Desk, names};

/// What the user is promised.
pub(crate) const ENDS_WITHIN: Duration = Duration::from_secs(10);

/// A desk with a place for labs that the servers' user may enter.
pub(crate) fn desk() -> Desk {
    let desk = Desk::new();
    fs::create_dir(desk.path("tmp")).unwrap();
    for name in ["", "tmp"] {
        fs::set_permissions(desk.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    desk
}

fn command(desk: &Desk, arguments: &[&str]) -> Command {
    let mut command = desk.command(arguments);
    command.env("TMPDIR", desk.path("tmp"));
    command
}

/// Sends SIGTERM, and gives what was said until the end, which comes in time and leaves nothing.
fn terminated(desk: &Desk, mut child: Child, at: &str) -> String {
    let asked = Instant::now();
    signal(&child, Signal::TERM);
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    let status = child.wait().unwrap();
    let took = asked.elapsed();
    // On a busy machine the signal can come before the program's first line.
    let is_early = said.is_empty() && status.signal() == Some(Signal::TERM.as_raw());
    assert!(is_early || status.code() == Some(130), "{at}: {status:?}: {said}");
    assert!(took < ENDS_WITHIN, "{at}: {took:?}: {said}");
    // Where the disk is busy, the init goes on removing what the lab has made.
    let is_gone = || names(&desk.path("tmp")).is_empty();
    testing::until("the lab is gone", is_gone);
    said
}

#[test]
fn a_signal_at_any_moment_ends_a_run_in_time_and_the_record_can_be_read() {
    let seed: u64 = std::env::var("PGRIG_SEED").map_or(7, |seed| seed.parse().unwrap());
    let mut state = seed;
    for study in ["replication", "pgbench"] {
        for turn in 0..3 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let after = Duration::from_millis((state >> 33) % 12_000);
            let (desk, at) = (desk(), format!("{study} {turn}, seed {seed}, {after:?}"));
            let run = ["run", study, "--profile", "smoke", "--rounds", "4", "--out", "record"];
            let child = command(&desk, &run).spawn().unwrap();
            std::thread::sleep(after);
            terminated(&desk, child, &at);
            if desk.path("record/record.json").is_file() {
                desk.pgrig(&["show", "record"]).ended(0);
            }
        }
    }
}

/// A server that archives its WAL shuts down when its archive command is over.
#[test]
fn what_waits_for_a_server_that_does_not_stop_ends_as_well() {
    let desk = desk();
    desk.write_study("mine", "");
    let text = fs::read_to_string(desk.path("mine/study.toml")).unwrap();
    let settings = "[settings]\narchive_mode = \"on\"\narchive_command = \"sleep 300\"\n";
    desk.write("mine/study.toml", &text.replace("[settings]\n", settings));
    let child = command(&desk, &["run", "mine", "--out", "record"]).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(8));
    let said = terminated(&desk, child, "stopping a server");
    assert!(!said.contains("by force"), "{said}");
}

#[test]
fn an_interrupted_attempt_stays_in_the_record_beside_the_one_that_makes_up_for_it() {
    let desk = desk();
    desk.write_study("mine", "");
    let run = ["run", "mine", "--out", "record", "--rounds", "2"];
    let mut child = command(&desk, &run).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.as_mut().unwrap());
    wait_for(&mut lines, "round 1/2");
    std::thread::sleep(Duration::from_millis(100));
    terminated(&desk, child, "in the second trial");
    let said = desk.pgrig(&["show", "record"]).ended(0);
    assert!(said.out.contains("trial 2 default/load is interrupted"), "{}", said.out);
    command(&desk, &["run", "--resume", "record"]).status().unwrap();
    let attempts = names(&desk.path("record/trials"));
    let of_second = attempts.iter().filter(|name| name.starts_with("0002")).count();
    assert!(of_second >= 2, "{attempts:?}");
    let endings = endings(&desk.path("record/trials"));
    assert!(endings.contains(&"interrupted".to_owned()), "{endings:?}");
    let said = desk.pgrig(&["show", "record"]).ended(0);
    assert!(said.out.contains("in both trials"), "{}", said.out);
}

#[test]
fn one_run_at_a_time_writes_into_a_record_and_the_other_one_is_told_whose_it_is() {
    let desk = desk();
    desk.write_study("mine", "");
    let run = ["run", "mine", "--out", "record", "--rounds", "4"];
    let mut child = command(&desk, &run).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.as_mut().unwrap());
    wait_for(&mut lines, "round 1/4");
    let said = desk.pgrig(&["run", "--resume", "record"]).ended(1);
    let holder = format!("process {} is running into it", child.id());
    assert!(said.err.contains(&holder), "{}", said.err);
    assert!(!said.err.contains("preparing"), "nothing is built: {}", said.err);
    terminated(&desk, child, "locked");
    assert!(!desk.path("record/running").exists());
    desk.pgrig(&["run", "--resume", "record"]).ended(0);
}

#[test]
fn a_place_that_cannot_be_written_is_found_before_anything_is_built() {
    let check = |more: &[&str], why: &str| {
        let desk = Desk::new();
        desk.write("file", "");
        if more.is_empty() {
            desk.write("runs", "");
        }
        let said = desk.pgrig(&[&["compare", "-S", "-c", "1"], more].concat()).ended(1);
        assert!(said.err.contains(why), "{more:?}: {}", said.err);
        assert!(!said.err.contains("building"), "{more:?}: {}", said.err);
    };
    check(&[], "creating runs");
    check(&["--json", "file/found.json"], "writing file/found.json");
    check(&["--junit", "none/junit.xml"], "writing none/junit.xml");
    check(&["--bencher", "none/bencher.json"], "writing none/bencher.json");
    check(&["--benchmark-action", "file"], "creating file");
}

#[test]
fn a_lab_that_has_ended_costs_one_trial() {
    let desk = desk();
    desk.write_study("mine", "");
    let run = ["run", "mine", "--out", "record", "--rounds", "4"];
    let mut child = command(&desk, &run).spawn().unwrap();
    let pgrig = child.id();
    let mut lines = BufReader::new(child.stderr.as_mut().unwrap());
    wait_for(&mut lines, "round 1/4");
    // The next trial is under way then; on a busy machine it may not have begun.
    std::thread::sleep(Duration::from_millis(400));
    kill_process(init_of(pgrig), Signal::KILL).unwrap();
    let mut said = String::new();
    lines.read_to_string(&mut said).unwrap();
    let code = child.wait().unwrap().code();
    let endings = endings(&desk.path("record/trials"));
    let failed = endings.iter().filter(|ending| *ending == "failed").count();
    assert_eq!(code, Some(if failed > 0 { 2 } else { 0 }), "{said}");
    assert_eq!((failed <= 1, endings.len() >= 4), (true, true), "{endings:?}: {said}");
    assert!(endings.iter().filter(|ending| *ending == "done").count() >= 3, "{endings:?}: {said}");
}

fn wait_for(lines: &mut impl BufRead, words: &str) {
    let mut line = String::new();
    while !line.contains(words) {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "no {words}");
    }
}

/// How the attempts of a record ended, in order.
fn endings(trials: &Path) -> Vec<String> {
    let ending = |name: String| {
        let text = fs::read_to_string(trials.join(name).join("trial.json")).unwrap();
        let trial: serde_json::Value = serde_json::from_str(&text).unwrap();
        trial["ending"]["is"].as_str().unwrap().to_owned()
    };
    names(trials).into_iter().map(ending).collect()
}

/// The init of the lab of a pgrig.
fn init_of(pgrig: u32) -> Pid {
    let is_init = |path: &PathBuf| {
        let stat = fs::read_to_string(path.join("stat")).unwrap_or_default();
        let Some((name, rest)) = stat.rsplit_once(") ") else { return false };
        let parent = rest.split(' ').nth(1).unwrap_or_default();
        name.ends_with("(pgrig lab init") && parent == pgrig.to_string()
    };
    let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let init = processes.into_iter().find(is_init).expect("an init");
    let pid = init.file_name().unwrap().to_str().unwrap().parse().unwrap();
    Pid::from_raw(pid).unwrap()
}
