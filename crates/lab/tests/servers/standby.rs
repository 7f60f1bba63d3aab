//! Streaming replication, on a real PostgreSQL.

use std::time::Duration;

use crate::common::{node, open, settings};
use lab::{Error, Isolation, Lab, Node, NodeConfig, StopMode};

/// A busy machine may take this long for what takes milliseconds.
const LONG: Duration = Duration::from_secs(60);

fn standby(lab: &Lab, name: &str, primary: &Node) -> Node {
    let mut standby = lab.node(name, NodeConfig::new(settings(&[]))).unwrap();
    standby.init_from_backup(primary, None).unwrap();
    standby
}

fn run(node: &Node, statements: &str) {
    node.connect().unwrap().batch_execute(statements).unwrap();
}

#[test]
fn standbys_stream_in_their_roles_and_one_is_promoted() {
    let lab = open();
    let names = "FIRST 1 (standby1, \"standby-2\")";
    let mut primary = node(&lab, "primary", &[("synchronous_standby_names", names)]);
    primary.start().unwrap();
    run(&primary, "SET synchronous_commit = local; CREATE TABLE t AS SELECT 1 AS i");
    let mut first = standby(&lab, "standby1", &primary);
    let mut second = standby(&lab, "standby-2", &primary);
    for standby in [&mut first, &mut second] {
        assert!(standby.is_standby().unwrap());
        standby.start().unwrap();
    }

    primary.wait_for_standby(&first, Some("sync"), LONG).unwrap();
    primary.wait_for_standby(&second, Some("potential"), LONG).unwrap();
    let seen: Vec<_> = primary.replication().unwrap().into_iter().map(|row| row.standby).collect();
    assert_eq!(seen, ["standby-2", "standby1"]);
    run(&primary, "SET synchronous_commit = off; INSERT INTO t VALUES (2)");
    primary.wait_for_catchup(&second, LONG).unwrap();
    assert_eq!(second.value("SELECT count(*) FROM t").unwrap().as_deref(), Some("2"));

    first.kill9().unwrap();
    primary.wait_for_standby(&second, Some("sync"), LONG).unwrap();
    first.start().unwrap();
    primary.wait_for_standby(&first, Some("sync"), LONG).unwrap();

    primary.kill9().unwrap();
    if !matches!(lab.isolation(), Isolation::Keeper { .. }) {
        let segments = "SELECT count(*) - 2 FROM regexp_split_to_table(\
            pg_read_file('/proc/sysvipc/shm'), '\\n')";
        let segments = second.value(segments).unwrap();
        assert_eq!(segments.as_deref(), Some("2"), "those of the standbys");
    }
    first.promote().unwrap();
    assert!(!first.is_standby().unwrap());
    second.follow(&first, None).unwrap();
    second.reload().unwrap();
    first.wait_for_standby(&second, Some("async"), LONG).unwrap();
    run(&first, "INSERT INTO t VALUES (3)");
    first.wait_for_catchup(&second, LONG).unwrap();
    assert_eq!(second.value("SELECT count(*) FROM t").unwrap().as_deref(), Some("3"));
}

#[test]
fn a_standby_made_from_a_snapshot_streams_again() {
    let lab = open();
    let mut primary = node(&lab, "primary", &[]);
    primary.start().unwrap();
    let mut standby = standby(&lab, "standby1", &primary);
    standby.start().unwrap();
    primary.wait_for_catchup(&standby, LONG).unwrap();
    primary.stop(StopMode::Fast).unwrap();
    standby.stop(StopMode::Fast).unwrap();
    let snapshots = (primary.snapshot().unwrap(), standby.snapshot().unwrap());
    for _ in 0..2 {
        primary.init_from_snapshot(&snapshots.0).unwrap();
        standby.init_from_snapshot(&snapshots.1).unwrap();
        primary.start().unwrap();
        standby.start().unwrap();
        run(&primary, "CREATE TABLE t AS SELECT 1 AS i");
        primary.wait_for_catchup(&standby, LONG).unwrap();
        assert_eq!(standby.value("SELECT count(*) FROM t").unwrap().as_deref(), Some("1"));
        standby.kill9().unwrap();
        primary.kill9().unwrap();
    }
}

#[test]
fn a_standby_that_cannot_stream_says_why() {
    let lab = open();
    let mut primary = node(&lab, "primary", &[]);
    primary.start().unwrap();
    let mut standby = standby(&lab, "standby1", &primary);
    run(&primary, "SELECT pg_drop_replication_slot('standby1')");
    standby.start().unwrap();
    let short = Duration::from_secs(2);

    let error = primary.wait_for_standby(&standby, None, short).unwrap_err();
    let text = error.to_string();
    let expected = "waiting for standby standby1 of node primary: it is not connected after 2 s";
    assert!(text.starts_with(expected), "{text}");
    assert!(text.contains("replication slot \"standby1\" does not exist"), "{text}");
    assert!(error.hint().unwrap().contains("replication slot"));
    run(&primary, "CREATE TABLE t (i int)");
    let error = primary.wait_for_catchup(&standby, short).unwrap_err().to_string();
    assert!(error.contains("it has replayed up to 0/"), "{error}");

    // It is none the worse for it, and is then not what it should be.
    standby.follow(&primary, None).unwrap();
    primary.wait_for_standby(&standby, None, LONG).unwrap();
    let error = primary.wait_for_standby(&standby, Some("sync"), Duration::ZERO).unwrap_err();
    assert!(error.to_string().contains("it is async and not sync"), "{error}");
    assert_eq!(error.hint().as_deref(), Some("see synchronous_standby_names of the primary"));
}

#[test]
fn a_lost_slot_is_told_at_once() {
    let lab = open();
    let mut primary = node(&lab, "primary", &[("min_wal_size", "32MB")]);
    primary.start().unwrap();
    let mut standby = standby(&lab, "standby1", &primary);
    // A backup would lose its own slot, in PostgreSQL 18.
    run(&primary, "ALTER SYSTEM SET max_slot_wal_keep_size = 0");
    run(&primary, "SELECT pg_reload_conf()");
    for _ in 0..3 {
        run(&primary, "CREATE TABLE IF NOT EXISTS t (i int); SELECT pg_switch_wal(); CHECKPOINT");
    }
    standby.start().unwrap();
    let error = primary.wait_for_standby(&standby, None, LONG).unwrap_err();
    assert!(matches!(error, Error::SlotLost { .. }), "{error}");
    assert!(error.to_string().contains("its replication slot standby1 is lost"), "{error}");
    assert!(error.hint().unwrap().contains("max_slot_wal_keep_size"));

    // As the hint says.
    run(&primary, "ALTER SYSTEM RESET max_slot_wal_keep_size");
    run(&primary, "SELECT pg_reload_conf()");
    standby.stop(StopMode::Fast).unwrap();
    standby.init_from_backup(&primary, None).unwrap();
    standby.start().unwrap();
    primary.wait_for_standby(&standby, None, LONG).unwrap();
}

#[test]
fn what_cannot_become_a_standby_is_refused() {
    let lab = open();
    let mut primary = node(&lab, "primary", &[("max_wal_senders", "0")]);
    let mut other = lab.node("other", NodeConfig::new(settings(&[]))).unwrap();
    let error = other.init_from_backup(&primary, None).unwrap_err().to_string();
    assert_eq!(error, "backing up node primary: it is not running");
    primary.start().unwrap();
    let error = primary.promote().unwrap_err().to_string();
    assert_eq!(error, "promoting node primary: it is no standby");

    let error = other.init_from_backup(&primary, None).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("backing up node primary to other: pg_basebackup ended"), "{text}");
    assert_eq!(error.hint().as_deref(), Some("raise max_wal_senders"), "{text}");

    // The server refuses the same values of synchronous_standby_names.
    let mut wrong = node(&lab, "wrong", &[("synchronous_standby_names", "FIRST 0 (a)")]);
    let text = wrong.start().unwrap_err().to_string();
    assert!(text.contains("number of synchronous standbys (0) must be"), "{text}");
}
