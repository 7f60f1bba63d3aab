//! The guard's state on a disk whose power is cut at every moment: it is the last one that was written, or
//! the one before, and whole.
//!
//! This program is also the process of a block disk, by its first argument; without one it runs the test.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::Path;
use std::process::ExitCode;

use crash::{DiskLog, FlushEffect, StateCursor, StatePlanRequest, WriteKind};
use fault::disk::{self, DiskConfig, DiskProgram, FaultyDisk, ImagePatch, PowerCutMethod, now_ns};
use guard::{GuardState, load_state};
use os::init::{Init, ProcessIsolation};
use os::user::SystemUser;
use terms::FileSystem;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    if arguments.first().is_some_and(|word| word == "disk") {
        disk::serve(&arguments[1..]).expect("a disk");
        return ExitCode::SUCCESS;
    }
    testing::run![a_state_is_whole_after_every_cut]
}

fn a_state_is_whole_after_every_cut() {
    if !testing::skip::is_root() {
        return testing::skip::no_root();
    }
    let init = Init::start(ProcessIsolation::Namespaces, None, &[]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let program = || DiskProgram { path: env::current_exe().unwrap(), args: vec!["disk".into()] };
    let logged = PowerCutMethod::Block {
        sector_bytes: 512,
        is_lying: false,
        log_bytes: Some(64 << 20),
        program: program(),
    };
    let mut disk = new_disk(directory.path(), "logged", logged);
    disk.format(&init).unwrap();
    let place = disk.outside(&init).unwrap().join("guard");
    fs::create_dir(&place).unwrap();
    state(0).replace(&place).unwrap();
    disk.record(&init).unwrap();
    let mut acknowledged = Vec::new();
    for number in 1..=SAVES {
        state(number).replace(&place).unwrap();
        acknowledged.push(now_ns());
    }
    let recorded = disk.end_record(&init).unwrap();
    let base = recorded.base.expect("the image from before the log");
    let contents = directory.path().join("contents");
    let log = DiskLog::read(
        &mut File::open(&recorded.log).unwrap(),
        &mut File::create(&contents).unwrap(),
    );
    let log = log.unwrap();
    let kinds: Vec<Vec<WriteKind>> = log
        .entries
        .iter()
        .map(|entry| if entry.is_flush() { Vec::new() } else { vec![WriteKind::Other] })
        .collect();
    let mut replica =
        new_disk(directory.path(), "state", PowerCutMethod::State { base, program: program() });
    // What a disk that lies may have lost shows that a loss would be seen.
    for (flushes, states) in [(FlushEffect::Honest, 40), (FlushEffect::Lying, 12)] {
        let request = StatePlanRequest { states, seed: 7, flushes, sector_bytes: 512 };
        let (mut cursor, mut older) = (StateCursor::new(&log, flushes), 0);
        let plan = crash::plan(&log, &kinds, &request);
        assert!(plan.states.len() > states / 2, "{} states", plan.states.len());
        for planned in &plan.states {
            let mut patch = ImagePatch::default();
            patch.add(&cursor.overlay(&planned.state), &contents);
            replica.load_state(&init).unwrap();
            patch.write(&replica.patch_path()).unwrap();
            let cut = log.entries.get(planned.state.cut).map_or(u64::MAX, |next| next.at_ns);
            let known = acknowledged.iter().filter(|at| **at < cut).count() as u32;
            let found = match replica.power_on(&init) {
                Ok(()) => {
                    let place = replica.outside(&init).unwrap().join("guard");
                    load_state(&place).map(|found| found.map(|found| found.flaps))
                }
                // Nothing but a lie takes the file system.
                Err(error) => {
                    assert_eq!(flushes, FlushEffect::Lying, "{error}");
                    Ok(None)
                }
            };
            let is_kept = |found: u32| found + 1 >= known && found <= known + 1;
            match (found, flushes) {
                (Ok(Some(found)), _) if is_kept(found) => {}
                (_, FlushEffect::Lying) => older += 1,
                (found, _) => panic!("{found:?} after {known} states were saved: {planned:?}"),
            }
        }
        assert_eq!(older > 0, flushes == FlushEffect::Lying, "{older} states were lost");
    }
    replica.power_off(&init).unwrap();
    disk.power_off(&init).unwrap();
    init.end().unwrap();
}

fn new_disk(directory: &Path, name: &str, method: PowerCutMethod) -> FaultyDisk {
    let config = DiskConfig { size_bytes: 64 << 20, file_system: FileSystem::Ext4, method };
    let socket = directory.join(format!(".{name}"));
    FaultyDisk::new(config, &directory.join(name), &socket, SystemUser::current())
}

/// The state number so and so.
fn state(number: u32) -> GuardState {
    GuardState {
        system_identifier: "7".repeat(19),
        pid: 1,
        at: format!("2026-01-01T00:00:{:02}Z", number % 60),
        asked: "ANY 1 (a, b)".to_owned(),
        in_force: "ANY 1 (a, b)".to_owned(),
        timeline: Some(1),
        confirmed_lsn: None,
        flaps: number,
        // Of any length, and of more than one block now and then.
        last: "raised ".repeat(1 + number as usize % 5 * 300),
    }
}

const SAVES: u32 = 20;
