//! Ctrl-C, once and twice, and going on afterwards.

use std::io::{BufRead, BufReader, Read};
use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::{Desk, names};

#[test]
fn once_ends_cleanly_and_resume_goes_on() {
    let desk = Desk::new();
    desk.write_study("mine", "");
    let run = ["run", "mine", "--out", "record", "--rounds", "4"];
    let mut child = desk.command(&run).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    // The second trial is under way when the first one has been told.
    assert!(lines.any(|line| line.unwrap().contains("round 1/4")));
    signal(&child, Signal::INT);
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    let told: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{told:?}");
    assert!(told.iter().any(|line| line.contains("--resume record")), "{told:?}");
    assert!(out.contains("something is inserted"), "{out}");
    assert!(desk.path("record/report.html").is_file());
    let done = names(&desk.path("record/trials")).len();
    assert!((1..4).contains(&done), "{done} trials");
    let said = desk.pgrig(&["show", "record"]).ended(0);
    assert!(said.err.contains("go on with: pgrig run --resume record"), "{}", said.err);

    let said = desk.pgrig(&["run", "--resume", "record"]).ended(0);
    let attempts = names(&desk.path("record/trials"));
    // An unsteady trial is run again, and every attempt stays.
    let trials = attempts.iter().filter(|name| !name.contains("-attempt-"));
    assert_eq!(trials.count(), 4, "{attempts:?}");
    assert!(said.out.contains("in all 4 trials"), "{}", said.out);
}

/// The failed attempt stays in the record beside the one that makes up for it.
#[test]
fn a_statement_that_fails_ends_the_run_and_resume_adds_an_attempt() {
    let desk = Desk::new();
    desk.write_study("mine", "");
    desk.write("mine/insert.sql", "INSERT INTO missing VALUES (1);\n");
    let said = desk.pgrig(&["run", "mine", "--out", "record", "--rounds", "2"]).ended(2);
    assert!(said.err.contains("insert.sql:1") && said.err.contains("missing"), "{}", said.err);
    let attempts = || names(&desk.path("record/trials"));
    assert_eq!(attempts().len(), 1, "others would fail, too: {:?}", attempts());
    let said = desk.pgrig(&["show", "record"]).ended(0);
    let words = said.out.split_whitespace().collect::<Vec<&str>>().join(" ");
    assert!(words.contains("trial 2 (default/load) was planned and not run"), "{}", said.out);
    assert!(!words.contains("holds"), "{}", said.out);

    desk.write("record/study/mine/insert.sql", "INSERT INTO t VALUES (1);\n");
    desk.pgrig(&["run", "--resume", "record"]).ended(0);
    let second = attempts().iter().filter(|name| name.ends_with("-attempt-2")).count();
    assert_eq!((attempts().len(), second), (3, 1), "{:?}", attempts());
    let said = desk.pgrig(&["show", "record"]).ended(0);
    assert!(said.out.contains("in both trials"), "{}", said.out);
}

#[test]
fn twice_ends_at_once_and_leaves_no_server() {
    let desk = Desk::new();
    desk.write_study("mine", "");
    std::fs::create_dir(desk.path("tmp")).unwrap();
    open_to_all(&desk);
    let mut command = desk.command(&["run", "mine", "--out", "record"]);
    let mut child = command.env("TMPDIR", desk.path("tmp")).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("preparing")));
    signal(&child, Signal::INT);
    std::thread::sleep(Duration::from_millis(50));
    signal(&child, Signal::TERM);
    let told: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{told:?}");
    // Where the disk is busy, the init goes on removing what the lab has made.
    testing::until("the lab is gone", || names(&desk.path("tmp")).is_empty());
}

/// The servers' user must be able to enter.
fn open_to_all(desk: &Desk) {
    use std::os::unix::fs::PermissionsExt;
    for name in ["", "tmp"] {
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(desk.path(name), mode).unwrap();
    }
}

pub(crate) fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}
