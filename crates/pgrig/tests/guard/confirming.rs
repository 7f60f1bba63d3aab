//! Which standbys commits wait for is the server's choice, and is read from it.

use lab::Direction;

use crate::check_commits_went_on;
use crate::rig::{Guard, Rig};

/// No change but to this form, and one confirmation at least all the time.
#[track_caller]
fn check_form(rig: &Rig, guard: &Guard, expected: &str) {
    let (_, changing) = guard.wait_for("changing");
    assert_eq!(changing["to"], expected, "{changing}");
    guard.wait_for("in_force");
    assert_eq!(rig.setting(), expected);
    assert!(rig.windows().iter().all(|window| window.confirmations() == 1));
}

/// The server chooses among standbys of one priority by the places of their WAL senders.
#[test]
fn the_standby_that_the_server_has_chosen_is_passed_over_when_it_is_silent() {
    let mut rig = Rig::new("*", 2);
    // s1 comes back to the first place, by a process that the server lists behind that of s2.
    rig.standbys[0].stop(lab::StopMode::Fast).unwrap();
    let _first = rig.primary.connect().unwrap();
    rig.start_and_catch_up(0);
    let chosen = "SELECT application_name FROM pg_stat_replication WHERE sync_state = 'sync'";
    let chosen = rig.value(chosen);
    let index = usize::from(chosen == "s2");
    let guard = rig.guard(&["--grace", "2s"]);
    let writer = rig.writer();
    writer.wait_for_commit();
    rig.standbys[index].pause().unwrap();
    check_form(&rig, &guard, "ANY 1 (*)");
    check_commits_went_on(&rig, writer.longest());
    // Confirmed as asked is what the chosen one has confirmed: it stands still.
    let (code, said) = rig.status(&[]);
    assert_eq!(code, 1, "{said}");
    rig.standbys[index].resume().unwrap();
    guard.wait_for("closed");
    assert_eq!(rig.setting(), "*");
    drop(writer);
}

/// Its old connection lingers, first in line and silent, while it streams by a new one.
#[test]
fn an_old_connection_of_a_standby_that_is_back_does_not_end_sync_mode() {
    let mut rig = Rig::new("s1", 1);
    let mut link = rig.link("l1");
    // A slot would keep it from coming back before the old connection is given up.
    rig.standbys[0].value("ALTER SYSTEM SET primary_slot_name = ''").unwrap();
    rig.standbys[0].follow(&rig.primary, Some(link.endpoint())).unwrap();
    rig.standbys[0].restart().unwrap();
    rig.wait_until_caught_up(0);
    let guard = rig.guard(&["--grace", "2s"]);
    let writer = rig.writer();
    writer.wait_for_commit();
    link.cut(Direction::Both).unwrap();
    rig.standbys[0].follow(&rig.primary, None).unwrap();
    rig.standbys[0].restart().unwrap();
    let two = "SELECT count(*) FROM pg_stat_replication WHERE application_name = 's1' \
        AND state = 'streaming'";
    rig.primary.poll_query_until(two, "2", crate::rig::PATIENCE).unwrap();
    check_form(&rig, &guard, "ANY 1 (s1)");
    link.heal().unwrap();
    guard.wait_for("closed");
    assert_eq!(rig.setting(), "s1");
    drop(writer);
}

/// A standby that flushes and does not replay holds up the sessions that ask for replay, and no other.
#[test]
fn a_standby_that_does_not_replay_does_not_end_sync_mode() {
    let rig = Rig::new("s1", 1);
    let guard = rig.guard(&["--grace", "1s"]);
    let writer = rig.writer();
    writer.wait_for_commit();
    rig.standbys[0].value("SELECT pg_wal_replay_pause()").unwrap();
    let mut client = rig.primary.connect().unwrap();
    let waits = std::thread::spawn(move || {
        client.batch_execute("SET synchronous_commit = remote_apply").unwrap();
        client.batch_execute("INSERT INTO t VALUES (1)").unwrap();
    });
    guard.wait_for("not_replayed");
    writer.longest();
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!((rig.setting(), rig.windows().len()), ("s1".to_owned(), 0));
    assert!(!waits.is_finished());
    check_commits_went_on(&rig, writer.longest());
    rig.standbys[0].value("SELECT pg_wal_replay_resume()").unwrap();
    waits.join().unwrap();
    drop(writer);
}
