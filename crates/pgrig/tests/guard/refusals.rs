//! What a guard does not put up with, said in one message each.

use std::process::Command;
use std::time::Duration;

use crate::rig::{Guard, Rig};

#[test]
fn what_it_does_not_put_up_with_is_said_before_anything_is_done() {
    let rig = Rig::new("FIRST 1 (s1)", 0);
    let primary = rig.primary.endpoint().to_string();
    let refused = |conninfo: &str, more: &[&str], expected: &[&str]| {
        let (code, said) = Guard::start(rig.command_to(conninfo, more)).wait();
        assert_eq!(code, Some(1), "{said}");
        for words in expected {
            assert!(said.contains(words), "{words:?} is not in:\n{said}");
        }
    };

    // A role that may only log in.
    let mut admin = rig.primary.connect().unwrap();
    admin.batch_execute("SET synchronous_commit = local; CREATE ROLE plain LOGIN").unwrap();
    let as_plain = format!("{} user=plain", rig.primary.endpoint());
    refused(
        &as_plain,
        &[],
        &[
            "error: role plain lacks rights: it may not see what other sessions wait for, nor \
             reload the configuration, nor change synchronous_standby_names",
            "GRANT pg_monitor TO \"plain\";",
            "GRANT EXECUTE ON FUNCTION pg_reload_conf() TO \"plain\";",
            "ON PARAMETER synchronous_standby_names, pgrig.guard_asked TO \"plain\";",
        ],
    );

    // Something that calls itself Patroni.
    let mut patroni = rig.primary.connect().unwrap();
    patroni.batch_execute("SET application_name = 'Patroni heartbeat'").unwrap();
    refused(&primary, &[], &["error: Patroni is in charge of this server", "split brain"]);
    patroni.batch_execute("SET application_name = ''").unwrap();

    // A second guard, whatever database it is connected to.
    let first = rig.guard(&[]);
    let elsewhere = rig.primary.endpoint().with_database("template1").to_string();
    let other_state = rig.state().with_extension("other").display().to_string();
    let more = ["--state", &other_state];
    refused(&elsewhere, &more, &["error: another guard is in charge of this server: process "]);
    refused(&primary, &[], &["error: another guard uses the state directory"]);
    drop(first);

    // The state of another cluster.
    let other = Rig::unrelated("");
    let state = rig.state().display().to_string();
    let (code, said) = Guard::start(other.command(&["--state", &state])).wait();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("is the state of another cluster"), "{said}");

    // No server.
    refused("host=/nonexistent user=postgres", &[], &["error: connecting to /nonexistent"]);
}

#[test]
fn the_rights_that_are_named_are_enough() {
    let rig = Rig::new("FIRST 1 (s1)", 0);
    let mut admin = rig.primary.connect().unwrap();
    admin.batch_execute("SET synchronous_commit = local; CREATE ROLE g LOGIN").unwrap();
    let as_g = format!("{} user=g", rig.primary.endpoint());
    let (_, said) = Guard::start(rig.command_to(&as_g, &[])).wait();
    let grants: Vec<&str> = said.lines().filter(|line| line.contains("GRANT ")).collect();
    assert_eq!(grants.len(), 3, "{said}");
    for grant in grants {
        admin.batch_execute(grant).unwrap();
    }
    let guard = rig.guard_of(&as_g, &["--grace", "1s"]);
    let writer = rig.writer();
    guard.wait_for("in_force");
    writer.wait_for_commit();
    // What is set by hand is left alone.
    admin.batch_execute("ALTER SYSTEM RESET synchronous_standby_names").unwrap();
    admin.batch_execute("ALTER SYSTEM RESET pgrig.guard_asked").unwrap();
}

#[test]
fn a_setting_from_the_command_line_is_refused() {
    let mut rig = Rig::new("", 0);
    rig.primary.stop(lab::StopMode::Fast).unwrap();
    let program = rig.lab.installation().program("postgres");
    let command = os::command::Command::new(program)
        .arg("-D")
        .arg(rig.primary.data())
        .arg("--synchronous_standby_names=s1")
        .user(rig.lab.user())
        .env("LC_ALL", "C");
    let mut server = rig.lab.process("by-hand", command).unwrap();
    server.start().unwrap();
    let is_up = lab::wait_until(crate::rig::PATIENCE, || {
        Ok::<_, ()>(rig.primary.value("SELECT 1").ok().map(drop))
    });
    assert_eq!(is_up, Ok(Some(())));
    let (code, said) = Guard::start(rig.command(&[])).wait();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("synchronous_standby_names comes from the server's command line"));
    assert!(said.contains("hint:"), "{said}");
    server.kill9().unwrap();
}

#[test]
fn automatic_failover_must_be_ruled_out_aloud() {
    let rig = Rig::new("FIRST 1 (s1)", 0);
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_pgrig"));
    command.args(["guard", "--state", "nowhere", &rig.primary.endpoint().to_string()]);
    let output = command.env("NO_COLOR", "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("--no-automatic-failover"), "{said}");
    assert!(said.contains("split brain"), "{said}");
}

#[test]
fn a_dry_run_says_what_it_would_do_and_leaves_no_trace() {
    let rig = Rig::new("FIRST 1 (s1)", 0);
    let guard = rig.guard(&["--dry-run", "--grace", "1s"]);
    let mut client = rig.primary.connect().unwrap();
    let waits = std::thread::spawn(move || client.batch_execute("INSERT INTO t VALUES (1)"));
    let (_, would) = guard.wait_for("would_change");
    assert_eq!((&would["from"], &would["to"]), (&"FIRST 1 (s1)".into(), &"".into()));
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(rig.setting(), "FIRST 1 (s1)");
    assert!(!rig.state().exists());
    assert!(!waits.is_finished());
    drop(rig);
    let _ = waits.join();
}

/// The unit of the manual is one that systemd takes, and its command is one that the guard takes.
#[test]
fn the_unit_of_the_manual_is_valid() {
    let unit = include_str!("../../../../docs/examples/pgrig-guard.service");
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/pgrig "));
    let place = tempfile::tempdir().unwrap();
    let start = start.expect("a command").replace("/run/postgresql", "/nowhere");
    let start = start.replace("%S", &place.path().display().to_string()).replace(":9188", ":0");
    let output =
        Command::new(env!("CARGO_BIN_EXE_pgrig")).args(start.split_whitespace()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("connecting to /nowhere:5432"), "{said}");

    let file = place.path().join("pgrig-guard.service");
    std::fs::write(&file, unit.replace("/usr/bin/pgrig", "/bin/true")).unwrap();
    let Ok(output) = Command::new("systemd-analyze").arg("verify").arg(&file).output() else {
        return testing::skip::because("there is no systemd-analyze");
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}
