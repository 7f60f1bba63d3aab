//! A standby that dies every ten seconds, for long. `make soak-guard` runs it;
//! PGRIG_SOAK_MINUTES says how long.

use std::time::{Duration, Instant};

use crate::rig::Rig;
use crate::{GRACE, check_commits_went_on};

const EVERY: Duration = Duration::from_secs(10);
/// Longer than a setting that was raised too early a few times waits for the next raise.
const CALMS_WITHIN: Duration = Duration::from_secs(600);

#[test]
#[ignore = "takes minutes: make soak-guard"]
fn a_standby_that_dies_every_ten_seconds_does_not_make_the_setting_flap() {
    let given = std::env::var("PGRIG_SOAK_MINUTES").ok();
    let minutes: u32 = given.map_or(10, |minutes| minutes.parse().expect("a number of minutes"));
    let mut rig = Rig::new("FIRST 1 (s1)", 1);
    let guard = rig.guard(&["--grace", &format!("{}s", GRACE.as_secs())]);
    let writer = rig.writer();
    let began = Instant::now();
    let mut deaths = 0;
    while began.elapsed() < Duration::from_secs(60) * minutes {
        // Half of the time it is there, and half of the time it is not: longer than the grace.
        std::thread::sleep(
            (began + EVERY * deaths + EVERY / 2).saturating_duration_since(Instant::now()),
        );
        rig.standbys[0].kill9().unwrap();
        deaths += 1;
        std::thread::sleep((began + EVERY * deaths).saturating_duration_since(Instant::now()));
        rig.start_and_catch_up(0);
    }
    let windows = rig.windows();
    let changes: usize = windows.iter().map(|window| 1 + window.changes.len()).sum();
    let longest = writer.longest();
    let calm = Instant::now();
    while rig.windows().iter().any(|window| window.closed.is_none()) {
        assert!(calm.elapsed() < CALMS_WITHIN, "it stays off:\n{}", guard.narration());
        std::thread::sleep(Duration::from_secs(1));
    }
    println!(
        "{deaths} deaths in {minutes} min: {changes} changes in {} exposure windows, longest \
         commit {longest:.2?} with a grace of {GRACE:?}; sync mode back {:.0?} after the last",
        windows.len(),
        calm.elapsed(),
    );
    assert!(changes <= minutes as usize, "{changes} changes:\n{}", guard.narration());
    check_commits_went_on(&rig, longest);
}
