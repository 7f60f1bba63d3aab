//! `pgrig compare` with the programs of two sides: whose files B can read, and whose it cannot.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use lab::Installation;
use lab::find::InstallationSearch;

use crate::Desk;

/// The oldest and the newest PostgreSQL here, if their major versions differ.
fn two_majors() -> Option<[Installation; 2]> {
    let mut all = InstallationSearch::here(None).all();
    all.sort_by(|one, other| one.version().cmp(other.version()));
    let (first, last) = (all.first()?.clone(), all.last()?.clone());
    (first.version().major < last.version().major).then_some([first, last])
}

#[test]
#[ignore = "needs two major versions: scripts/versions"]
fn two_majors_load_the_same_data_each_and_that_is_said() {
    let sides = two_majors().expect("two major versions of PostgreSQL");
    let [a, b] = sides.each_ref().map(|one| one.bin().display().to_string());
    let desk = Desk::new();
    let arguments = ["compare", "--a-bin", &a, "--b-bin", &b, "-S", "-c", "2", "-M", "prepared"];
    let more = ["--max-time", "16s", "--json", "found.json"];
    let said = desk.pgrig(&[&arguments[..], &more].concat()).ended(0);
    let [old, new] = sides.map(|one| one.version().to_string());
    let built = said.err.lines().find(|line| line.starts_with("  built "));
    for words in [
        &format!("A PostgreSQL {old}, B PostgreSQL {new}, "),
        ", the same data, made twice from the same seed  ",
    ] {
        assert!(built.is_some_and(|line| line.contains(words)), "no {words:?} in {}", said.err);
    }
    let json = std::fs::read_to_string(desk.path("found.json")).expect("the JSON file");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["data"], "loaded_twice");
}

/// B's data are A's, by pg_upgrade: its durations and what it asks for are in the record, and the planner has statistics.
#[test]
#[ignore = "needs two major versions: scripts/versions"]
fn data_are_upgraded_for_b() {
    let sides = two_majors().expect("two major versions of PostgreSQL");
    let [a, b] = sides.each_ref().map(|one| one.bin().display().to_string());
    for mode in ["--b-upgrade", "--b-upgrade=link"] {
        let desk = Desk::new();
        let arguments = ["compare", "--a-bin", &a, "--b-bin", &b, mode, "-S", "-c", "2"];
        let more = ["--max-time", "16s", "--json", "found.json"];
        let said = desk.pgrig(&[&arguments[..], &more].concat()).ended(0);
        assert!(said.err.contains("A's data, upgraded by pg_upgrade for B"), "{}", said.err);
        let told = [
            "B's data are A's by pg_upgrade: its check took ",
            "pg_upgrade asks for: vacuumdb ",
            "From the end of the upgrade until the planner had all statistics it took ",
        ];
        for words in told {
            assert!(said.out.contains(words), "{words}: {}", said.out);
        }
        assert!(!said.out.contains("no option names"), "{}", said.out);
        let json = std::fs::read_to_string(desk.path("found.json")).expect("the JSON file");
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        crate::schemas::check("show", &json);
        assert_eq!(json["comparison"]["data"], "upgraded");
    }
}

#[test]
fn an_upgrade_needs_a_later_version() {
    let bin = testing::servers::installation().bin().display().to_string();
    let desk = Desk::new();
    let arguments = ["compare", "--a-bin", &bin, "--b-bin", &bin, "--b-upgrade=clone", "-S"];
    let said = desk.pgrig(&arguments).ended(1);
    assert!(
        said.err.contains("--b-upgrade=clone upgrades A's data, of PostgreSQL "),
        "{}",
        said.err
    );
    assert!(said.err.contains("name the programs of the old version"), "{}", said.err);
}

/// Programs in a folder of their own, each of which runs the real one of `real`; the server only
/// after `before`, a part of a shell script.
fn write_programs(desk: &Desk, real: &Installation, before: &str) {
    for program in ["postgres", "initdb", "pg_controldata"] {
        let before = if program == "postgres" { before } else { "" };
        let real = real.program(program).display().to_string();
        let name = format!("bin/{program}");
        desk.write(&name, &format!("#!/bin/sh\n{before}\nexec '{real}' \"$@\"\n"));
        std::fs::set_permissions(desk.path(&name), Permissions::from_mode(0o755)).unwrap();
    }
    // The servers' user runs them.
    for folder in ["", "bin"] {
        std::fs::set_permissions(desk.path(folder), Permissions::from_mode(0o755)).unwrap();
    }
}

fn compare_with(desk: &Desk) -> crate::Said {
    let bin = desk.path("bin").display().to_string();
    desk.write("sleep.sql", "SELECT pg_sleep(0.01);\n");
    let mut arguments = vec!["compare", "--b-bin", &bin, "-f", "sleep.sql", "-c", "2"];
    arguments.extend(["--max-time", "16s"]);
    desk.pgrig(&arguments)
}

#[test]
fn other_programs_whose_files_are_alike_get_a_copy() {
    let desk = Desk::new();
    write_programs(&desk, &testing::servers::installation(), "");
    let said = compare_with(&desk).ended(0);
    assert!(said.err.contains(", the same files  "), "{}", said.err);
}

/// The server of B fails at its first start only. Data that are loaded instead would hide it.
#[test]
fn a_copy_that_does_not_start_is_told_and_not_worked_around() {
    let desk = Desk::new();
    let failed = desk.path("failed");
    let before = format!(
        "case \"$*\" in\n\
         '-D '*) [ -e '{failed}/once' ] || {{\n\
             : >'{failed}/once'; echo 'FATAL:  a library is broken' >&2; exit 1; }} ;;\n\
         esac",
        failed = failed.display()
    );
    write_programs(&desk, &testing::servers::installation(), &before);
    std::fs::create_dir(&failed).unwrap();
    std::fs::set_permissions(&failed, Permissions::from_mode(0o777)).unwrap();
    let said = compare_with(&desk).ended(1);
    assert!(failed.join("once").exists(), "B was never started: {}", said.err);
    assert!(said.err.contains("starting node"), "{}", said.err);
    assert!(said.err.contains("a library is broken"), "{}", said.err);
}
