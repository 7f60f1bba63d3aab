//! What others write into `postgresql.auto.conf` beside the guard, and a guard that only looks.

use std::time::Duration;

use crate::rig::{PATIENCE, Rig};

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
    rig.by_hand(&["ALTER SYSTEM RESET ALL", RELOAD]);
    guard.wait_for("in_force");
    assert_eq!(mark(&rig), "below FIRST 1 (s1)");
    // The same setting, in another place.
    rig.by_hand(&["ALTER SYSTEM SET synchronous_standby_names = 's1'", RELOAD]);
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
    rig.by_hand(&[
        &format!("SET pgrig.guard_asked = {asked}"),
        &format!("ALTER SYSTEM SET pgrig.guard_asked = {asked}"),
        "ALTER SYSTEM SET synchronous_standby_names = ''",
        RELOAD,
    ]);
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
    rig.by_hand(&["ALTER SYSTEM SET synchronous_standby_names = ''", RELOAD]);
    let (_, adopted) = guard.wait_for("adopted");
    assert_eq!(adopted["setting"], "");
    guard.wait_for("closed");
    let no_mark = "SELECT coalesce(current_setting('pgrig.guard_asked', true), '')";
    rig.primary.poll_query_until(no_mark, "", PATIENCE).unwrap();
    let (code, said) = rig.status(&[]);
    assert!(code == 1 && said.contains("synchronous_standby_names is empty"), "{said}");
    drop(writer);
}

/// What a person writes while a window is open, loaded or not, in the file that the guard's value covers
/// or by ALTER SYSTEM, is in force and is what is asked for.
#[test]
fn what_a_person_sets_in_an_open_window_wins_and_is_named() {
    let check = |edit: &dyn Fn(&Rig), expected: &str, place: &str| {
        let mut rig = Rig::new("FIRST 1 (s1)", 1);
        let guard = rig.guard(&["--grace", "1s"]);
        rig.standbys[0].kill9().unwrap();
        let writer = rig.writer();
        guard.wait_for("in_force");
        edit(&rig);
        let (_, adopted) = guard.wait_for("adopted");
        assert_eq!(adopted["setting"], expected, "{adopted}");
        let named = adopted["place"].as_str().unwrap_or_default();
        assert!(named.contains(place), "{adopted}");
        // It is lowered again, and restored as it was set.
        guard.wait_for("in_force");
        let caught_up = rig.start_and_catch_up(0);
        guard.wait_for("closed");
        assert_eq!(rig.setting(), expected, "{caught_up:?}");
        drop(writer);
        rig.primary.restart().unwrap();
        assert_eq!(rig.setting(), expected);
    };
    let line = "synchronous_standby_names = 'ANY 1 (s1, s9)'";
    check(
        &|rig| {
            rig.edit(line);
            rig.by_hand(&[RELOAD]);
        },
        "ANY 1 (s1, s9)",
        "postgresql.conf, line ",
    );
    check(
        &|rig| rig.by_hand(&["ALTER SYSTEM SET synchronous_standby_names = 's9, s1'", RELOAD]),
        "s9, s1",
        "postgresql.auto.conf, line ",
    );
    // Not loaded: the guard sees it before its next change.
    let is_late = |rig: &mut Rig, edit: &dyn Fn(&Rig), expected: &str| {
        let guard = rig.guard(&["--grace", "1s"]);
        rig.standbys[0].kill9().unwrap();
        let writer = rig.writer();
        guard.wait_for("in_force");
        edit(rig);
        rig.start_and_catch_up(0);
        let (_, adopted) = guard.wait_for("adopted");
        assert_eq!(adopted["setting"], expected, "{adopted}");
        guard.wait_for("closed");
        assert_eq!(rig.setting(), expected);
        drop(writer);
    };
    is_late(&mut Rig::new("FIRST 1 (s1)", 1), &|rig| rig.edit(line), "ANY 1 (s1, s9)");
}

/// The same before the guard's first change, which would overwrite it.
#[test]
fn what_a_person_has_not_loaded_yet_is_not_overwritten() {
    let alter: &dyn Fn(&Rig) =
        &|rig| rig.by_hand(&["ALTER SYSTEM SET synchronous_standby_names = 's2'"]);
    let edit: &dyn Fn(&Rig) = &|rig| rig.edit("synchronous_standby_names = 's2'");
    for act in [alter, edit] {
        let mut rig = Rig::new("FIRST 1 (s1)", 2);
        let guard = rig.guard(&["--grace", "2s"]);
        let writer = rig.writer();
        writer.wait_for_commit();
        act(&rig);
        rig.standbys[0].kill9().unwrap();
        let (_, adopted) = guard.wait_for("adopted");
        assert_eq!(adopted["setting"], "s2", "{adopted}");
        writer.longest();
        writer.wait_for_commit();
        assert_eq!(rig.setting(), "s2");
        assert!(rig.windows().is_empty(), "{:?}", rig.windows());
        drop(writer);
    }
}

/// An error in the file hides no value, and the value of before holds.
#[test]
fn a_value_that_the_server_does_not_take_is_named_and_not_adopted() {
    let mut rig = Rig::new("FIRST 1 (s1)", 1);
    let guard = rig.guard(&["--grace", "1s"]);
    rig.edit("synchronous_standby_names = 's1,,'");
    rig.by_hand(&[RELOAD]);
    let (_, fault) = guard.wait_for("file_fault");
    assert!(fault["why"].as_str().unwrap().contains("postgresql.conf, line "), "{fault}");
    rig.standbys[0].kill9().unwrap();
    let writer = rig.writer();
    guard.wait_for("in_force");
    rig.start_and_catch_up(0);
    guard.wait_for("closed");
    assert_eq!(rig.setting(), "FIRST 1 (s1)");
    assert!(!guard.narration().contains("another session"), "{}", guard.narration());
    drop(writer);
}

/// A person changes a lowering back once or twice. A program that does it each time has the setting.
#[test]
fn a_guard_gives_up_where_a_program_changes_the_setting_back() {
    let mut rig = Rig::new("FIRST 1 (s1)", 1);
    rig.by_hand(&["ALTER SYSTEM SET synchronous_standby_names = 's1'", RELOAD]);
    let mut guard = rig.guard(&["--grace", "1s"]);
    rig.standbys[0].kill9().unwrap();
    let writer = rig.writer();
    for _ in 0..3 {
        guard.wait_for("in_force");
        rig.by_hand(&["ALTER SYSTEM SET synchronous_standby_names = 's1'", RELOAD]);
    }
    let (code, said) = guard.wait();
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("another program changes synchronous_standby_names back"), "{said}");
    assert_eq!(rig.setting(), "s1");
    rig.by_hand(&["ALTER SYSTEM SET synchronous_standby_names = ''", RELOAD]);
    drop(writer);
}
