//! Studies and records of somebody else.

use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use crate::{Desk, names};

#[test]
fn commands_of_a_study_are_named_and_have_no_rights() {
    let desk = Desk::new();
    desk.write_study("mine", "");
    // Root is 0, by which nothing can be divided.
    desk.write("mine/insert.sql", "\\setshell who id -u\nSELECT 1 / :who;\n");
    let named = "this study runs commands:\n  insert.sql:1\n";
    let said = desk.pgrig(&["check", "mine"]).ended(0);
    assert!(said.err.contains(named), "{}", said.err);
    let run = ["run", "mine", "--profile", "smoke", "--rounds", "1", "--out", "record"];
    let said = desk.pgrig(&run).ended(0);
    assert!(said.err.contains(named), "{}", said.err);
    let json = desk.pgrig(&["check", "mine", "--json"]).ended(0).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["commands"], serde_json::json!(["insert.sql:1"]));
    // Those of a shipped study are part of pgrig, until a value of it is set.
    let check = |arguments: &[&str], is_told: bool| {
        let said = desk.pgrig(&[&["check", "pgbench"], arguments].concat()).ended(0);
        assert_eq!(said.err.contains("this study runs commands"), is_told, "{}", said.err);
    };
    check(&[], false);
    check(&["--set", "settings.archive_command=/bin/true"], true);
}

#[test]
fn a_study_with_a_link_is_refused_before_anything_is_run() {
    let desk = Desk::new();
    desk.write_study("mine", "");
    symlink("/etc/passwd", desk.path("mine/leak.sql")).unwrap();
    for command in ["run", "check"] {
        let said = desk.pgrig(&[command, "mine"]).ended(1);
        assert!(said.err.contains("mine/leak.sql: it is a symbolic link"), "{}", said.err);
        assert!(said.err.contains("  hint:   remove it"), "{}", said.err);
    }
    assert_eq!(names(&desk.path("")), ["mine"], "no record was begun");
}

#[test]
fn a_pipe_in_the_place_of_a_file_keeps_nobody_waiting() {
    let check = |file: &str, arguments: &[&str]| {
        let desk = Desk::new();
        std::fs::create_dir(desk.path("record")).unwrap();
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, desk.path(file), mode).unwrap();
        let began = Instant::now();
        let said = desk.pgrig(arguments).ended(1);
        assert!(began.elapsed() < Duration::from_secs(10), "{arguments:?}");
        let what = said.err.contains("a FIFO") || said.err.contains("it is not a regular file");
        assert!(what, "{}", said.err);
    };
    check("record/record.json", &["show", "record"]);
    check("record/record.json", &["report", "record"]);
    check("record/record.json", &["run", "--resume", "record"]);
    check("record/study.toml", &["check", "record"]);
    check("history.jsonl", &["history", "show"]);
}
