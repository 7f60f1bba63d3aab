//! The decision against a server made of numbers, in virtual time: how long commits wait, when sync
//! mode is back, how often the setting changes, and that no commit is acknowledged by the primary
//! alone outside a recorded window.

mod world;

use std::time::Duration;

use guard::{
    ChangeReason, GuardDecision, GuardKnowledge, GuardPolicy, Lsn, PrimaryState, SyncState,
    WalSenderRow,
};
use proptest::prelude::*;
use server::SyncStandbysSetting;
use world::{Fate, World};

const GRACE: Duration = Duration::from_secs(3);

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// What was in force after a scenario's changes, in order.
#[track_caller]
fn check_changes(world: &World, expected: &[&str]) {
    let changes: Vec<String> = world.changes.iter().map(|one| one.to.to_string()).collect();
    assert_eq!(changes, expected);
}

#[test]
fn the_only_standby_dies_and_returns() {
    let mut world = World::new("s1", &["s1"], GRACE);
    world.run_until(seconds(10.0));
    world.fate("s1", Fate::Gone);
    world.run_until(seconds(20.0));
    check_changes(&world, &[""]);
    assert!(matches!(world.changes[0].why, ChangeReason::NoStandby { .. }));
    assert!(world.changes[0].at < seconds(10.0) + GRACE + seconds(0.5));
    world.fate("s1", Fate::Well);
    world.run_until(seconds(30.0));
    check_changes(&world, &["", "FIRST 1 (s1)"]);
    assert!(world.changes[1].at < seconds(22.0), "{:?}", world.changes[1].at);
    world.check();
    assert_eq!(world.windows.len(), 1);
    assert!(world.windows[0].closed.is_some());
}

#[test]
fn a_paused_standby_is_told_from_one_that_is_merely_connected() {
    let mut world = World::new("s1", &["s1"], GRACE);
    world.run_until(seconds(10.0));
    world.fate("s1", Fate::Paused);
    world.run_until(seconds(40.0));
    check_changes(&world, &[""]);
    assert!(matches!(world.changes[0].why, ChangeReason::Silent { .. }));
    // Still connected: it must not be taken for one that has returned.
    world.fate("s1", Fate::Well);
    world.run_until(seconds(50.0));
    check_changes(&world, &["", "FIRST 1 (s1)"]);
    world.check();
}

#[test]
fn the_number_is_lowered_before_sync_mode_goes_off_and_raised_step_by_step() {
    let mut world = World::new("ANY 2 (s1, s2)", &["s1", "s2"], GRACE);
    world.run_until(seconds(10.0));
    world.fate("s1", Fate::Gone);
    world.run_until(seconds(20.0));
    world.fate("s2", Fate::Paused);
    world.run_until(seconds(40.0));
    world.fate("s1", Fate::Well);
    world.run_until(seconds(50.0));
    world.fate("s2", Fate::Well);
    world.run_until(seconds(60.0));
    let expected = ["ANY 1 (s1, s2)", "", "ANY 1 (s1, s2)", "ANY 2 (s1, s2)"];
    check_changes(&world, &expected);
    assert_eq!(world.windows.len(), 1, "one exposure from the first to the last");
    world.check();
}

#[test]
fn a_silent_standby_in_front_is_passed_over_while_another_confirms() {
    let mut world = World::new("FIRST 1 (s1, s2)", &["s1", "s2"], GRACE);
    world.run_until(seconds(10.0));
    world.fate("s1", Fate::Paused);
    world.run_until(seconds(20.0));
    check_changes(&world, &["ANY 1 (s1, s2)"]);
    world.fate("s1", Fate::Well);
    world.run_until(seconds(30.0));
    check_changes(&world, &["ANY 1 (s1, s2)", "FIRST 1 (s1, s2)"]);
    world.check();
}

/// One standby falls silent a moment after the other, with what the oldest commit waits for: the form that it
/// would satisfy is tried once, and sync mode goes off within the grace and two seconds.
#[test]
fn a_standby_that_has_confirmed_and_fell_silent_is_tried_once() {
    for asked in ["s1, *", "2 (s1, s2)", "ANY 2 (*)"] {
        let setting: SyncStandbysSetting = asked.parse().unwrap();
        let mut watch = GuardKnowledge::new(GuardPolicy { grace: GRACE }, setting.clone());
        let standby = |pid, name: &str, flush: u64| WalSenderRow {
            pid,
            name: name.into(),
            streams: true,
            flush: Some(Lsn::from(flush)),
            replay: Some(Lsn::from(flush)),
            sync_state: SyncState::Sync,
        };
        let mut look = PrimaryState {
            setting,
            loaded_at: String::new(),
            wal: Lsn::from(20),
            standbys: vec![standby(1, "s1", 10), standby(2, "s2", 20)],
            waiting: vec!["a".into(), "b".into()],
            settings_are_read: true,
        };
        let (mut now, mut made) = (Duration::ZERO, Vec::new());
        while look.setting != SyncStandbysSetting::Off && now < seconds(20.0) {
            if let GuardDecision::Change(change) = watch.decide(now, &look) {
                made.push(change.to.to_string());
                look.setting = change.to;
            }
            // A message of the guard's, and nothing of the standbys.
            look.wal = Lsn::from(30);
            now += seconds(0.05);
            watch.looked(now);
            now += seconds(0.05);
        }
        let [tried, off] = &made[..] else { panic!("{asked}: {made:?}") };
        assert!(tried.starts_with("ANY 1") && off.is_empty(), "{asked}: {made:?}");
        assert!(now <= GRACE + seconds(1.5), "{asked}: {now:?}");
    }
}

/// The record cannot be written, so that commits wait until their standby is back. A look that finds them waiting
/// for what it has flushed already is no sign that it does not replay.
#[test]
fn commits_that_a_standby_has_just_confirmed_are_let_go_on() {
    let check = |released_after: Duration, expected: Option<&str>| {
        let asked: SyncStandbysSetting = "s1".parse().unwrap();
        let mut watch = GuardKnowledge::new(GuardPolicy { grace: GRACE }, asked.clone());
        watch.resume(None, None, 1);
        let standby = WalSenderRow {
            pid: 1,
            name: "s1".into(),
            streams: true,
            flush: Some(Lsn::from(20)),
            replay: Some(Lsn::from(20)),
            sync_state: SyncState::Sync,
        };
        let mut look = PrimaryState {
            setting: asked,
            loaded_at: String::new(),
            wal: Lsn::from(20),
            standbys: Vec::new(),
            waiting: vec!["a".into()],
            settings_are_read: true,
        };
        let (mut now, mut made) = (Duration::ZERO, Vec::new());
        let back = seconds(10.0);
        while now < back + seconds(5.0) {
            if now >= back {
                look.standbys = vec![standby.clone()];
            }
            if now >= back + released_after {
                look.waiting.clear();
            }
            match watch.decide(now, &look) {
                GuardDecision::Change(_) if now < back => watch.unmade(),
                GuardDecision::Change(change) => {
                    made.push(change.to.to_string());
                    look.setting = change.to;
                }
                _ => {}
            }
            now += seconds(0.1);
        }
        assert_eq!(made.first().map(String::as_str), expected, "{released_after:?}");
        // A change that was not made is no sign that the setting was raised too early.
        assert_eq!(watch.flaps(), 1 + u32::from(expected.is_some()), "{released_after:?}");
    };
    check(seconds(0.0), None);
    check(seconds(0.5), None);
    // One that does not go on waits for more than what is flushed.
    check(seconds(4.0), Some("ANY 1 (s1)"));
}

#[test]
fn a_standby_that_takes_over_by_itself_needs_no_guard() {
    let mut world = World::new("FIRST 1 (s1, s2)", &["s1", "s2"], GRACE);
    world.run_until(seconds(10.0));
    world.fate("s1", Fate::Gone);
    world.run_until(seconds(60.0));
    world.fate("s1", Fate::Well);
    world.run_until(seconds(90.0));
    check_changes(&world, &[]);
    world.check();
}

#[test]
fn a_hiccup_shorter_than_the_grace_changes_nothing() {
    for fate in [Fate::Gone, Fate::Paused] {
        let mut world = World::new("s1", &["s1"], GRACE);
        world.run_until(seconds(10.0));
        world.fate("s1", fate);
        world.run_until(seconds(12.5));
        world.fate("s1", Fate::Well);
        world.run_until(seconds(60.0));
        check_changes(&world, &[]);
        world.check();
    }
}

#[test]
fn a_primary_that_nobody_writes_to_keeps_its_sync_mode() {
    let mut world = World::new("s1", &["s1"], GRACE);
    world.run_until(seconds(10.0));
    world.clients = 0;
    world.run_until(seconds(11.0));
    world.fate("s1", Fate::Gone);
    world.run_until(seconds(100.0));
    check_changes(&world, &[]);
    // The first commit finds that there has been no standby for long.
    world.clients = 1;
    world.run_until(seconds(101.0));
    check_changes(&world, &[""]);
    world.check();
}

#[test]
fn a_standby_that_dies_every_ten_seconds_does_not_make_the_setting_flap() {
    for (well, gone) in [(8.0, 2.0), (5.0, 5.0), (9.5, 0.5), (3.0, 7.0)] {
        let mut world = World::new("s1", &["s1"], GRACE);
        let mut at = 0.0;
        while at < 600.0 {
            world.fate("s1", Fate::Well);
            world.run_until(seconds(at + well));
            world.fate("s1", Fate::Gone);
            at += well + gone;
            world.run_until(seconds(at));
        }
        assert!(world.changes.len() <= 10, "{} changes in 10 minutes", world.changes.len());
        world.check();
    }
}

#[test]
fn what_somebody_else_sets_is_what_is_asked_for() {
    // While commits are served.
    let mut world = World::new("s1", &["s1", "s2"], GRACE);
    world.run_until(seconds(10.0));
    world.set("s2");
    world.run_until(seconds(20.0));
    assert_eq!(world.adopted, ["s2".parse::<SyncStandbysSetting>().unwrap()]);
    world.fate("s1", Fate::Gone);
    world.run_until(seconds(40.0));
    check_changes(&world, &[]);
    world.check();

    // While sync mode is off: the other's setting is in force, and the window ends under it.
    let mut world = World::new("s1", &["s1", "s2"], GRACE);
    world.fate("s1", Fate::Gone);
    world.run_until(seconds(10.0));
    check_changes(&world, &[""]);
    world.set("s2");
    world.run_until(seconds(20.0));
    check_changes(&world, &[""]);
    assert!(world.windows[0].closed.is_some());
    world.check();

    // Restored by hand too early: commits hang again, and the guard does its work again.
    let mut world = World::new("s1", &["s1"], GRACE);
    world.fate("s1", Fate::Gone);
    world.run_until(seconds(10.0));
    world.set("s1");
    world.run_until(seconds(20.0));
    check_changes(&world, &["", ""]);
    assert_eq!(world.windows.len(), 1);
    world.check();

    // Sync mode taken off by hand is nobody's exposure but that somebody's.
    let mut world = World::new("ANY 2 (s1, s2)", &["s1", "s2"], GRACE);
    world.fate("s1", Fate::Gone);
    world.run_until(seconds(10.0));
    check_changes(&world, &["ANY 1 (s1, s2)"]);
    world.set("");
    world.run_until(seconds(20.0));
    check_changes(&world, &["ANY 1 (s1, s2)"]);
    assert_eq!(world.windows[0].closed.map(|(_, lsn)| lsn), Some(None));
}

/// The guard could not record that it would take sync mode off, and the operator has taken it off.
#[test]
fn a_change_that_was_not_made_is_not_the_guards() {
    let mut world = World::new("s1", &["s1"], GRACE);
    world.disk_is_full = true;
    world.fate("s1", Fate::Gone);
    world.run_until(seconds(10.0));
    world.set("");
    world.run_until(seconds(11.0));
    assert_eq!(world.adopted, [SyncStandbysSetting::Off]);
    world.disk_is_full = false;
    world.fate("s1", Fate::Well);
    world.run_until(seconds(30.0));
    check_changes(&world, &[]);
    assert!(world.windows.is_empty());
}

#[test]
fn a_confirmed_position_that_the_primary_has_not_reached_is_forgotten() {
    for (wal, expected) in [(1000, Some(1000)), (999, None)] {
        let mut watch = GuardKnowledge::new(GuardPolicy { grace: GRACE }, "s1".parse().unwrap());
        watch.resume(None, Some(Lsn::from(1000)), 0);
        let look = PrimaryState {
            setting: "s1".parse().unwrap(),
            loaded_at: String::new(),
            wal: Lsn::from(wal),
            standbys: Vec::new(),
            waiting: Vec::new(),
            settings_are_read: true,
        };
        watch.decide(Duration::ZERO, &look);
        assert_eq!(watch.confirmed(), expected.map(Lsn::from));
    }
}

#[test]
fn a_guard_that_was_asleep_with_its_server_does_not_take_that_for_silence() {
    let mut world = World::new("s1", &["s1"], GRACE);
    world.run_until(seconds(10.0));
    world.suspend(seconds(60.0));
    world.run_until(seconds(90.0));
    check_changes(&world, &[]);
    world.check();
}

#[test]
fn standbys_that_do_not_replay_do_not_take_sync_mode_from_sessions_that_ask_for_flushing() {
    let mut world = World::new("s1", &["s1"], GRACE);
    world.waits_for_replay = true;
    world.run_until(seconds(10.0));
    world.fate("s1", Fate::ReplayPaused);
    world.run_until(seconds(50.0));
    check_changes(&world, &[]);
    assert!(world.longest_replay > seconds(30.0));
    world.check();

    // Another one that replays takes its place, and the number goes down to one at the least.
    for (setting, expected) in
        [("s1, s2", "ANY 1 (s1, s2)"), ("ANY 2 (s1, s2)", "ANY 1 (s1, s2)"), ("*", "ANY 1 (*)")]
    {
        let mut world = World::new(setting, &["s1", "s2"], GRACE);
        world.waits_for_replay = true;
        world.run_until(seconds(10.0));
        world.fate("s1", Fate::ReplayPaused);
        world.run_until(seconds(30.0));
        check_changes(&world, &[expected]);
        assert!(matches!(world.changes[0].why, ChangeReason::NotReplayed { .. }));
        assert!(world.longest_replay < GRACE + seconds(1.0));
        world.fate("s2", Fate::Gone);
        world.run_until(seconds(40.0));
        check_changes(&world, &[expected]);
        world.fate("s2", Fate::Well);
        world.fate("s1", Fate::Well);
        world.run_until(seconds(60.0));
        assert_eq!(world.setting, world.asked);
        world.check();
    }

    // Off for want of any standby: one that flushes and does not replay ends that.
    let mut world = World::new("s1", &["s1"], GRACE);
    world.waits_for_replay = true;
    world.run_until(seconds(10.0));
    world.fate("s1", Fate::Gone);
    world.run_until(seconds(20.0));
    world.fate("s1", Fate::ReplayPaused);
    world.run_until(seconds(30.0));
    check_changes(&world, &["", "FIRST 1 (s1)"]);
    world.check();
}

/// The server orders standbys of one priority by their WAL senders' places, which no row shows.
#[test]
fn among_standbys_of_one_priority_the_one_that_is_silent_is_passed_over() {
    for setting in ["*", "1 (*)", "s3, *", "s2, s1, *"] {
        for silent in ["s1", "s2"] {
            let mut world = World::new(setting, &["s1", "s2"], GRACE);
            world.run_until(seconds(10.0));
            world.fate(silent, Fate::Paused);
            world.run_until(seconds(40.0));
            let changes: Vec<String> = world.changes.iter().map(|one| one.to.to_string()).collect();
            assert!(changes.len() <= 1, "{setting}, {silent}: {changes:?}");
            assert!(changes.iter().all(|to| to.starts_with("ANY 1")), "{setting}: {changes:?}");
            world.fate(silent, Fate::Well);
            world.run_until(seconds(60.0));
            assert_eq!(world.setting, world.asked);
            world.check();
        }
    }
}

#[test]
fn an_old_connection_of_a_standby_that_has_come_back_is_passed_over() {
    for setting in ["s1", "s1, s2", "*", "s1, *"] {
        let mut world = World::new(setting, &["s1", "s2"], GRACE);
        world.run_until(seconds(10.0));
        world.fate("s1", Fate::Lost);
        world.run_until(seconds(10.5));
        world.fate("s1", Fate::Well);
        world.run_until(seconds(60.0));
        assert!(world.changes.len() == 1, "{setting}: {:?}", world.changes);
        assert!(world.changes[0].to.to_string().starts_with("ANY 1"), "{:?}", world.changes);
        // The server has noticed.
        world.run_until(seconds(90.0));
        assert_eq!(world.setting, world.asked);
        world.check();
    }
}

/// A server that is overloaded answers late, and a guard without a connection sees nothing; what has
/// been waited for meanwhile counts all the same.
#[test]
fn looks_that_come_late_do_not_begin_the_grace_anew() {
    for gap in [1.6, 3.0, 5.0] {
        let mut world = World::new("s1", &["s1"], GRACE);
        world.run_until(seconds(10.0));
        world.fate("s1", Fate::Gone);
        let mut at = 10.0;
        while at < 40.0 && world.changes.is_empty() {
            world.is_cut_off = true;
            world.run_until(seconds(at + gap));
            world.is_cut_off = false;
            at += gap + 0.25;
            world.run_until(seconds(at));
        }
        let allowed = (GRACE + seconds(1.0)).max(seconds(gap * 2.0)) + seconds(gap + 0.5);
        let last = world.changes.last().expect("a change");
        assert!(last.at <= seconds(10.0) + allowed, "{gap}: {:?}", last.at);
    }
}

#[test]
fn a_window_stays_open_while_the_checkpointer_has_not_read_the_setting() {
    let mut world = World::new("s1", &["s1"], GRACE);
    world.fate("s1", Fate::Gone);
    world.run_until(seconds(10.0));
    world.checkpointer_is_busy = true;
    world.fate("s1", Fate::Well);
    world.run_until(seconds(30.0));
    check_changes(&world, &["", "FIRST 1 (s1)"]);
    assert!(world.windows[0].closed.is_none(), "commits are still acknowledged by nobody else");
    world.checkpointer_is_busy = false;
    world.run_until(seconds(32.0));
    assert!(world.windows[0].closed.is_some());
    world.check();
}

#[test]
fn a_guard_that_is_killed_at_any_moment_goes_on_from_there() {
    for kill_at in (0..80).map(|quarter| f64::from(quarter) / 4.0) {
        let mut world = World::new("s1", &["s1"], GRACE);
        world.run_until(seconds(2.0));
        world.fate("s1", Fate::Gone);
        let (mut is_back, mut is_killed) = (false, false);
        while world.now < seconds(40.0) {
            if !is_killed && world.now >= seconds(kill_at) {
                is_killed = true;
                world.restart_guard();
            }
            if !is_back && world.now >= seconds(12.0) {
                is_back = true;
                world.fate("s1", Fate::Well);
            }
            let next = world.now + world::TICK;
            world.run_until(next);
        }
        check_changes(&world, &["", "FIRST 1 (s1)"]);
        assert_eq!(world.setting, "s1".parse().unwrap());
        assert!(world.windows.iter().all(|window| window.closed.is_some()));
        world.check();
    }
}

fn fates() -> impl Strategy<Value = Vec<(u16, usize, Fate)>> {
    let fate = prop_oneof![
        3 => Just(Fate::Well),
        2 => Just(Fate::Gone),
        2 => Just(Fate::Paused),
        2 => Just(Fate::Lost),
        1 => Just(Fate::ReplayPaused),
    ];
    prop::collection::vec((0_u16..2400, 0_usize..3, fate), 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// Whatever the standbys do in ten minutes.
    #[test]
    fn commits_go_on_and_none_is_exposed_unrecorded(
        mut fates in fates(),
        setting in prop::sample::select(vec![
            "s1", "s1, s2", "*", "FIRST 2 (s1, s2, s3)", "ANY 1 (s1, s2)", "ANY 2 (s1, s2, s3)",
            "ANY 2 (*)", "ANY 3 (s1, s2, s3)", "s2, *", "2 (s3, *)", "3 (*)",
        ]),
        restart_at in prop::option::of(0_u16..2400),
    ) {
        fates.sort_by_key(|(at, ..)| *at);
        let names = ["s1", "s2", "s3"];
        let mut world = World::new(setting, &names, GRACE);
        let mut restart_at = restart_at.map(|quarter| seconds(f64::from(quarter) / 4.0));
        for (quarter, standby, fate) in fates {
            let at = seconds(f64::from(quarter) / 4.0);
            if let Some(restart) = restart_at.take_if(|restart| *restart <= at) {
                world.run_until(restart);
                world.restart_guard();
            }
            world.run_until(at);
            world.fate(names[standby], fate);
        }
        world.run_until(seconds(600.0));
        // A fall and a rise can each stop at every level.
        let most = 10 + 2 * world.asked.levels().len();
        prop_assert!(world.changes.len() <= most, "{} changes", world.changes.len());
        // Everything back: so is the setting, however impatient the standbys were before.
        names.iter().for_each(|name| world.fate(name, Fate::Well));
        world.run_until(seconds(1300.0));
        prop_assert_eq!(&world.setting, &world.asked);
        prop_assert!(world.windows.iter().all(|window| window.closed.is_some()));
        world.check();
    }
}
