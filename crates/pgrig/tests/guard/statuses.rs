//! `pgrig guard status` says 0 only where commits wait for a standby that confirms, and a guard runs.

use crate::rig::{PATIENCE, Rig};

#[test]
fn each_exit_code_has_its_sentence() {
    let mut rig = Rig::new("s1", 1);
    let reload = "SELECT pg_reload_conf()";
    let check = |rig: &Rig, expected: (i32, &str)| {
        let (code, said) = rig.status(&[]);
        assert_eq!(code, expected.0, "{said}");
        assert!(said.lines().next().is_some_and(|line| line.contains(expected.1)), "{said}");
        said
    };
    // No state directory, and one of no guard.
    assert_eq!(rig.status(&[]).0, 2);
    let empty = tempfile::tempdir().unwrap();
    let state = ["--state", empty.path().to_str().unwrap()];
    assert_eq!(rig.status_of(&rig.primary, &state).0, 2);
    // Commits wait for a standby that confirms, and no guard runs.
    let (code, said) = rig.status_of(&rig.primary, &[]);
    assert!(code == 4 && said.contains("unguarded: commits wait for s1"), "{said}");

    let guard = rig.guard(&["--grace", "600s"]);
    let said = check(&rig, (0, "covered: commits wait for s1, which confirm, and a guard runs"));
    let process = format!("runs: process {} on ", guard.pid());
    assert!(said.contains(&process), "{process:?} is not in:\n{said}");
    assert_eq!(said.matches("process").count(), 1, "one process is named:\n{said}");

    rig.by_hand(&["ALTER SYSTEM SET synchronous_commit = off", reload]);
    check(&rig, (1, "exposed: synchronous_commit is off by default"));
    rig.by_hand(&["ALTER SYSTEM SET synchronous_commit = remote_write", reload]);
    check(&rig, (0, "covered: "));
    rig.by_hand(&["ALTER SYSTEM RESET synchronous_commit", reload]);

    // Connected, and silent: what is written meanwhile is not confirmed.
    rig.standbys[0].pause().unwrap();
    rig.by_hand(&["INSERT INTO t VALUES (1)", "SELECT pg_switch_wal()"]);
    check(&rig, (3, "stalled: the standbys of s1 have not confirmed"));
    rig.standbys[0].resume().unwrap();
    rig.wait_until_caught_up(0);
    check(&rig, (0, "covered: "));
    // It confirms, and replays nothing: commits of remote_apply wait for ever.
    rig.by_hand(&["ALTER SYSTEM SET synchronous_commit = remote_apply", reload]);
    check(&rig, (0, "covered: "));
    rig.standbys[0].value("SELECT pg_wal_replay_pause()").unwrap();
    let paused = "SELECT pg_get_wal_replay_pause_state()";
    rig.standbys[0].poll_query_until(paused, "paused", PATIENCE).unwrap();
    rig.by_hand(&["SET synchronous_commit = local; INSERT INTO t VALUES (2)"]);
    check(&rig, (3, "stalled: the standbys of s1 have not confirmed"));
    rig.standbys[0].value("SELECT pg_wal_replay_resume()").unwrap();
    rig.by_hand(&["ALTER SYSTEM RESET synchronous_commit", reload]);
    rig.wait_until_caught_up(0);
    rig.standbys[0].kill9().unwrap();
    let gone = "SELECT count(*) FROM pg_stat_replication";
    rig.primary.poll_query_until(gone, "0", PATIENCE).unwrap();
    check(&rig, (3, "stalled: "));
    rig.start_and_catch_up(0);

    rig.by_hand(&["ALTER SYSTEM SET synchronous_standby_names = ''", reload]);
    guard.wait_for("adopted");
    check(&rig, (1, "exposed: synchronous_standby_names is empty"));
    rig.by_hand(&["ALTER SYSTEM RESET synchronous_standby_names", reload]);
    let (code, said) = rig.status_of(&rig.standbys[0], &[]);
    assert!(code == 5 && said.contains("standby: the server has no commits"), "{said}");

    // A role that may not see what standbys confirm is told so.
    rig.by_hand(&["CREATE ROLE blind LOGIN"]);
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_pgrig"));
    let blind = format!("{} user=blind", rig.primary.endpoint());
    let output = command.args(["guard", "status", &blind]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("GRANT pg_monitor TO"), "{said}");
}
