//! What others write into `postgresql.auto.conf` beside the guard, and a guard that only looks.

use std::time::Duration;

use crate::rig::{PATIENCE, Rig};

/// Statements of an operator, none of which waits for a standby.
fn by_hand(rig: &Rig, statements: &[&str]) {
    let mut client = rig.primary.connect().unwrap();
    client.batch_execute("SET synchronous_commit = local").unwrap();
    for statement in statements {
        client.batch_execute(statement).unwrap();
    }
}

fn mark(rig: &Rig) -> String {
    rig.value("SELECT current_setting('pgrig.guard_asked', true)")
}

const RELOAD: &str = "SELECT pg_reload_conf()";

#[test]
fn each_lowering_leaves_the_mark_of_what_is_asked_for_then() {
    let mut rig = Rig::new("FIRST 1 (s1)", 1);
    let guard = rig.guard(&["--grace", "1s"]);
    rig.standbys[0].kill9().unwrap();
    let writer = rig.writer();
    guard.wait_for("in_force");
    assert_eq!(mark(&rig), "below FIRST 1 (s1)");
    // The window ended by hand takes the mark away, and the setting is as it was asked for.
    by_hand(&rig, &["ALTER SYSTEM RESET ALL", RELOAD]);
    guard.wait_for("in_force");
    assert_eq!(mark(&rig), "below FIRST 1 (s1)");
    // The same setting, in another place.
    by_hand(&rig, &["ALTER SYSTEM SET synchronous_standby_names = 's1'", RELOAD]);
    guard.wait_for("in_force");
    assert_eq!(mark(&rig), "auto s1");
    guard.kill9();
    std::fs::remove_dir_all(rig.state()).unwrap();
    let guard = rig.guard(&["--grace", "1s"]);
    rig.start_and_catch_up(0);
    guard.wait_for("closed");
    assert_eq!(rig.setting(), "s1");
    drop(writer);
}

/// A guard has died between writing a setting and having it read, and its record is lost.
#[test]
fn a_lowered_setting_that_is_loaded_late_is_not_the_operators() {
    let rig = Rig::new("FIRST 1 (s1)", 1);
    let guard = rig.guard(&["--grace", "1s"]);
    let asked = "'below FIRST 1 (s1)'";
    by_hand(
        &rig,
        &[
            &format!("SET pgrig.guard_asked = {asked}"),
            &format!("ALTER SYSTEM SET pgrig.guard_asked = {asked}"),
            "ALTER SYSTEM SET synchronous_standby_names = ''",
            RELOAD,
        ],
    );
    let (_, guarding) = guard.wait_for("guarding");
    assert_eq!(
        (&guarding["asked"], &guarding["in_force"]),
        (&"FIRST 1 (s1)".into(), &"".into()),
        "{guarding}"
    );
    guard.wait_for("closed");
    assert_eq!((rig.setting(), mark(&rig)), ("FIRST 1 (s1)".to_owned(), String::new()));
    let windows = rig.windows();
    assert_eq!(windows[0].opened.why, "found lowered, without a record of it");
}

#[test]
fn a_dry_run_beside_a_guard_takes_nothing_from_it() {
    let mut rig = Rig::new("ANY 2 (s1, s2)", 2);
    let guard = rig.guard(&["--grace", "1s"]);
    rig.standbys[1].kill9().unwrap();
    let writer = rig.writer();
    guard.wait_for("in_force");
    let looks = rig.guard(&["--grace", "1s", "--dry-run"]);
    rig.standbys[0].kill9().unwrap();
    guard.wait_for("in_force");
    // It looks four times a second.
    let (_, guarding) = looks.wait_for("guarding");
    assert_eq!(guarding["in_force"], "", "{guarding}");
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!((rig.setting(), mark(&rig)), (String::new(), "below ANY 2 (s1, s2)".to_owned()));
    let (code, said) = looks.end();
    assert!(code == Some(0) && !said.contains("another session"), "{said}");

    // An operator decides against the guard: it goes by that, and the mark is gone for all.
    guard.forget();
    rig.start_and_catch_up(0);
    guard.wait_for("in_force");
    assert_eq!(rig.setting(), "ANY 1 (s1, s2)");
    // The guard has looked at what it has put in force.
    std::thread::sleep(Duration::from_secs(1));
    by_hand(&rig, &["ALTER SYSTEM SET synchronous_standby_names = ''", RELOAD]);
    let (_, adopted) = guard.wait_for("adopted");
    assert_eq!(adopted["setting"], "");
    guard.wait_for("closed");
    let no_mark = "SELECT coalesce(current_setting('pgrig.guard_asked', true), '')";
    rig.primary.poll_query_until(no_mark, "", PATIENCE).unwrap();
    let (code, said) = rig.status(&[]);
    assert_eq!(code, 0, "{said}");
    drop(writer);
}
