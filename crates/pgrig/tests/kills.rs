//! The rig alone, or all processes of a study in one moment, are killed again and again, and nothing may
//! be left but what `pgrig clean` removes. `make soak-kills` runs it; PGRIG_KILLS says how often,
//! PGRIG_SEED at which moments, and PGRIG_KILLS_OF of which study alone.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use os::processes;
use rustix::process::{Pid, Signal, kill_process};
use testing::until;

/// The studies that have disks, cut power, standbys, links and machines, and a time that their smoke
/// profiles take longer than on two CPUs.
const STUDIES: [(&str, Duration); 3] = [
    ("fsync", Duration::from_secs(25)),
    ("replication", Duration::from_secs(25)),
    ("failover", Duration::from_secs(60)),
];

#[test]
#[ignore = "takes a quarter of an hour: make soak-kills"]
fn nothing_is_left_of_a_study_whose_processes_die_at_once() {
    if !testing::skip::is_root() {
        return testing::skip::no_root();
    }
    let kills: u64 = given("PGRIG_KILLS", 50);
    let mut state: u64 = given("PGRIG_SEED", 7);
    let of = std::env::var("PGRIG_KILLS_OF").unwrap_or_default();
    let studies: Vec<_> =
        STUDIES.iter().filter(|(name, _)| of.is_empty() || *name == of).copied().collect();
    assert!(!studies.is_empty(), "PGRIG_KILLS_OF is one of {STUDIES:?}");
    for number in 0..kills {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (study, latest) = studies[usize::try_from(number).unwrap() % studies.len()];
        let latest = u64::try_from(latest.as_millis()).unwrap();
        let after = Duration::from_millis((state >> 33) % latest);
        // By turns over all studies, so that each meets both.
        let is_rig_alone = number as usize / studies.len() % 2 == 1;
        let victims = if is_rig_alone { "the rig alone" } else { "all" };
        let at = format!("kill {number}, {study} after {after:?}, {victims}");
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut rig = start(study, directory.path());
        thread::sleep(after);
        let all = processes::tree(&processes::all().unwrap(), rig.id().cast_signed());
        let of_rig = [rig.id().cast_signed()];
        for pid in if is_rig_alone { &of_rig[..] } else { &all } {
            // One that has just ended by itself is killed already.
            let _ = kill_process(Pid::from_raw(*pid).unwrap(), Signal::KILL);
        }
        rig.wait().unwrap();
        eprintln!("{at}: {} processes", all.len());
        until(&format!("all processes end: {at}"), || all.iter().all(|pid| has_ended(*pid)));
        let cleaned = pgrig(directory.path(), &["clean"]).status().unwrap();
        assert!(cleaned.success(), "{at}");
        let own = format!("pgrig-{}-", rig.id());
        until(&format!("nothing is left: {at}"), || {
            left(directory.path()).is_empty() && groups(&own).is_empty()
        });
        let shown = directory.path().join("record/record.json");
        if shown.is_file() {
            assert!(
                pgrig(directory.path(), &["show", "record"]).status().unwrap().success(),
                "{at}"
            );
        }
    }
}

fn given(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |value| value.parse().expect("a whole number"))
}

fn start(study: &str, directory: &Path) -> Child {
    fs::create_dir(directory.join("tmp")).unwrap();
    fs::set_permissions(directory.join("tmp"), fs::Permissions::from_mode(0o1777)).unwrap();
    pgrig(directory, &["run", study, "--profile", "smoke", "--out", "record"]).spawn().unwrap()
}

fn pgrig(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgrig"));
    command.args(arguments).current_dir(directory).env("TMPDIR", directory.join("tmp"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// True once the process has ended. One that was handed to another parent stays a zombie until that one looks.
fn has_ended(pid: i32) -> bool {
    processes::of(pid).is_none_or(|process| process.is_zombie())
}

/// Control groups of the kernel's with names that begin so.
fn groups(own: &str) -> Vec<String> {
    let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/blkio", "/sys/fs/cgroup/memory"];
    let entries = roots.iter().filter_map(|root| fs::read_dir(root).ok()).flatten();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(own)).collect()
}

/// Entries of the temporary directory, mounts below the directory, loop devices on its files, and processes at
/// work there.
fn left(directory: &Path) -> Vec<String> {
    let name = directory.to_str().unwrap();
    let mut left: Vec<String> = fs::read_dir(directory.join("tmp"))
        .unwrap()
        .map(|entry| entry.unwrap().path().display().to_string())
        .collect();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    left.extend(mounts.lines().filter(|line| line.contains(name)).map(str::to_owned));
    for device in fs::read_dir("/sys/block").unwrap() {
        let backing = device.unwrap().path().join("loop/backing_file");
        left.extend(fs::read_to_string(backing).ok().filter(|file| file.contains(name)));
    }
    let here = processes::all().unwrap().into_iter().filter(|process| process.is_under(directory));
    left.extend(here.map(|process| format!("process {}", process.pid)));
    left
}
