//! The disk against a plain writer: what files and directories look like after a cut, before and
//! after each kind of flush.
//!
//! This program is also the process of a block disk, by its first argument; without one it runs
//! the tests.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use fault::disk::{
    self, DiskConfig, DiskError, DiskProgram, Error, FaultyDisk, PowerCutMethod, PowerCutReport,
    RequestFailure,
};
use os::init::{Init, ProcessIsolation};
use os::user::SystemUser;
use terms::{DiskFault, DiskRequest, FailingRequests, FileSystem, RequestKind};
use testing::skip;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    if arguments.first().is_some_and(|word| word == "disk") {
        disk::serve(&arguments[1..]).expect("a disk");
        return ExitCode::SUCCESS;
    }
    testing::run![
        without_root_there_is_no_disk,
        flushes_keep_what_they_promise,
        a_volatile_cache_loses_keeps_and_tears,
        a_lying_disk_loses_what_it_promised,
        a_file_that_replaces_another_one_without_a_flush_is_lost_where_the_file_system_allows_it,
        requests_fail_from_a_chosen_one_on,
        requests_of_one_file_fail_once,
        requests_are_slow_from_a_chosen_one_on,
        nothing_is_left,
        what_is_missing_is_named,
    ]
}

/// What a writer does.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Fills the first pages of a file, which is made if it is not there.
    Write(&'static str, u8),
    /// The same through a descriptor that was opened with O_DSYNC.
    WriteDsync(&'static str, u8),
    /// Adds as much to its end.
    Append(&'static str, u8),
    Fdatasync(&'static str),
    Fsync(&'static str),
    /// The same with O_DIRECT: handed to the device, without a flush.
    WriteDirect(&'static str, u8),
    Rename(&'static str, &'static str),
    Remove(&'static str),
    SyncDirectory,
}
use Step::*;

/// What is there after a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    Nothing,
    /// There, without content.
    Empty,
    /// Filled with one byte, once.
    Once(u8),
    /// So, and appended to.
    Twice(u8),
    /// Neither wholly old nor wholly new.
    Torn,
}
use Found::*;

fn without_root_there_is_no_disk() {
    for method in [PowerCutMethod::FileSystem, block(512, false)] {
        let is_refused = matches!(disk::check(&method), Err(Error::NotRoot));
        assert_eq!(is_refused, !skip::is_root(), "{method:?}");
    }
}

/// What ext4 promises, and what a machine that stops takes: with either way to cut.
fn flushes_keep_what_they_promise() {
    if !skip::is_root() {
        return skip::no_root();
    }
    let cases: &[(&[Step], &str, &[Found])] = &[
        (&[Write("old", b'b')], "old", &[Once(b'a')]),
        (&[Write("old", b'b'), Fdatasync("old")], "old", &[Once(b'b')]),
        (&[Write("old", b'b'), Fsync("old")], "old", &[Once(b'b')]),
        (&[WriteDsync("old", b'b')], "old", &[Once(b'b')]),
        (&[Append("old", b'a')], "old", &[Once(b'a')]),
        (&[Append("old", b'a'), Fdatasync("old")], "old", &[Twice(b'a')]),
        (&[Write("new", b'b')], "new", &[Nothing, Empty]),
        (&[Write("new", b'b'), Fdatasync("new")], "new", &[Once(b'b')]),
        // As PostgreSQL relies on: a file's own fsync brings its name along.
        (&[Write("new", b'b'), Fsync("new")], "new", &[Once(b'b')]),
        // But not the content of a name whose directory alone was synced.
        (&[Write("new", b'b'), SyncDirectory], "new", &[Nothing, Empty]),
        (&[Rename("old", "new")], "new", &[Nothing]),
        (&[Rename("old", "new")], "old", &[Once(b'a')]),
        (&[Rename("old", "new"), SyncDirectory], "new", &[Once(b'a')]),
        (&[Rename("old", "new"), SyncDirectory], "old", &[Nothing]),
        (&[Write("new", b'b'), Fsync("new"), Rename("new", "old")], "old", &[Once(b'a')]),
        (
            &[Write("new", b'b'), Fsync("new"), Rename("new", "old"), SyncDirectory],
            "old",
            &[Once(b'b')],
        ),
        (&[Remove("old")], "old", &[Once(b'a')]),
        (&[Remove("old"), SyncDirectory], "old", &[Nothing]),
    ];
    for method in [PowerCutMethod::FileSystem, block(512, false), block(4096, false)] {
        with_disk(&method, |rig| {
            for (seed, (steps, name, expected)) in cases.iter().enumerate() {
                let (found, _) = rig.cut_after(steps, name, seed as u64);
                assert!(
                    expected.contains(&found),
                    "{method:?}: {steps:?} left {found:?} in {name}"
                );
            }
        });
    }
    // What was handed to a device that keeps its order survives without a flush.
    with_disk(&PowerCutMethod::FileSystem, |rig| {
        let (found, cut) = rig.cut_after(&[WriteDirect("old", b'b')], "old", 0);
        assert_eq!((found, cut.kept_bytes, cut.torn_blocks), (Once(b'b'), 0, 0));
        let (_, cut) = rig.cut_after(&[Write("old", b'b')], "old", 0);
        assert_eq!((cut.unflushed_bytes, cut.dropped_bytes), (LENGTH as u64, LENGTH as u64));
    });
}

fn a_volatile_cache_loses_keeps_and_tears() {
    if !skip::is_root() {
        return skip::no_root();
    }
    let outcomes = |sector, seeds: std::ops::Range<u64>| {
        let mut seen = BTreeSet::new();
        with_disk(&block(sector, false), |rig| {
            for seed in seeds.clone() {
                let steps = [WriteDirect("old", b'b')];
                let (found, cut) = rig.cut_after(&steps, "old", seed);
                assert_eq!(cut.unflushed_bytes, cut.dropped_bytes + cut.kept_bytes);
                assert!(cut.unflushed_bytes >= LENGTH as u64, "{cut:?}");
                assert!(sector < 4096 || cut.torn_blocks == 0, "{cut:?}");
                seen.insert((seed, found));
            }
        });
        seen
    };
    let small = outcomes(512, 0..40);
    let fates: BTreeSet<Found> = small.iter().map(|(_, found)| *found).collect();
    assert_eq!(fates, BTreeSet::from([Once(b'a'), Once(b'b'), Torn]));
    // The same seed, the same cut.
    assert!(outcomes(512, 0..5).is_subset(&small));
    // A page of two blocks is torn between them at most.
    assert!(outcomes(4096, 0..20).iter().any(|(_, found)| *found == Torn));
}

/// PostgreSQL flushes a file before it renames it. ext4 as it is usually mounted begins to write the file at the
/// rename, and hides in most cuts where the flush is missing.
fn a_file_that_replaces_another_one_without_a_flush_is_lost_where_the_file_system_allows_it() {
    if !skip::is_root() {
        return skip::no_root();
    }
    for (file_system, size_bytes, is_hidden) in [
        (FileSystem::Ext4, SIZE, true),
        (FileSystem::Ext4Writeback, SIZE, false),
        (FileSystem::Xfs, 320 << 20, false),
    ] {
        let config = DiskConfig { size_bytes, file_system, method: block(512, false) };
        let cut = |steps: &[Step]| {
            let mut seen = BTreeSet::new();
            with_disk_of(config.clone(), |rig| {
                seen.extend((0..6).map(|seed| rig.cut_after(steps, "old", seed).0));
            });
            seen
        };
        let flushed = [Write("new", b'b'), Fsync("new"), Rename("new", "old"), SyncDirectory];
        assert_eq!(cut(&flushed), BTreeSet::from([Once(b'b')]), "{file_system:?}");
        let seen = cut(&[flushed[0], flushed[2], flushed[3]]);
        let is_lost = seen.iter().any(|found| !matches!(found, Once(b'a' | b'b')));
        assert!(is_lost || is_hidden, "{file_system:?}: {seen:?}");
    }
}

fn a_lying_disk_loses_what_it_promised() {
    if !skip::is_root() {
        return skip::no_root();
    }
    with_disk(&block(512, true), |rig| {
        let lost = (0..10).filter(|seed| {
            let (found, _) = rig.cut_after(&[Write("old", b'b'), Fsync("old")], "old", *seed);
            found != Once(b'b')
        });
        assert!(lost.count() > 0);
    });
}

fn requests_fail_from_a_chosen_one_on() {
    if !skip::is_root() {
        return skip::no_root();
    }
    for what in [RequestKind::Write, RequestKind::Flush] {
        for error in [DiskError::Broken, DiskError::Full] {
            with_disk(&block(512, false), |rig| {
                let status = rig.disk.status().unwrap();
                let done = match what {
                    RequestKind::Write => status.writes,
                    RequestKind::Flush => status.flushes,
                    RequestKind::Read => unreachable!("it is not counted"),
                };
                // The first fsync is two flushes and more than two writes.
                rig.disk.fail(RequestFailure { what, from: done + 2, error }).unwrap();
                rig.try_step(Write("old", b'b')).unwrap();
                let failed = (0..3).find_map(|_| {
                    rig.try_step(Write("old", b'b')).and_then(|()| rig.try_step(Fsync("old"))).err()
                });
                let errno = failed.and_then(|error| error.raw_os_error());
                // A loop device makes EIO of every error.
                assert_eq!(errno, Some(rustix::io::Errno::IO.raw_os_error()), "{what:?} {error:?}");
                // The file system does not trust such a disk any more until it is mounted anew.
                let error = File::create(rig.place.join("later")).unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::ReadOnlyFilesystem);
                rig.disk.heal().unwrap();
                rig.disk.power_off(rig.init).unwrap();
                rig.disk.power_on(rig.init).unwrap();
                rig.try_step(Write("old", b'c')).and_then(|()| rig.try_step(Fsync("old"))).unwrap();
            });
        }
    }
}

/// A page that could not be written is one that the kernel takes for clean: the next fsync says that all is well.
fn requests_of_one_file_fail_once() {
    if !skip::is_root() {
        return skip::no_root();
    }
    with_disk(&block(512, false), |rig| {
        for name in ["old", "new"] {
            rig.try_step(Write(name, b'a')).and_then(|()| rig.try_step(Fsync(name))).unwrap();
        }
        let failing = |name: &str| FailingRequests {
            kind: RequestKind::Write,
            fault: DiskFault::Broken,
            times: Some(1),
            files: vec![name.to_owned()],
        };
        let fail =
            |rig: &Rig<'_>, name: &str| rig.disk.fail_requests(rig.init, &failing(name)).unwrap();
        assert_eq!(fail(rig, "nothing"), 0);
        assert!(fail(rig, "old") > 0);
        rig.try_step(Write("new", b'b')).and_then(|()| rig.try_step(Fsync("new"))).unwrap();
        rig.try_step(Write("old", b'b')).unwrap();
        let error = rig.try_step(Fsync("old")).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()));
        rig.try_step(Fsync("old")).unwrap();
        assert_eq!(rig.disk.heal().unwrap().failed, 1);
        rig.disk.cut(rig.init, 1, None).unwrap();
        rig.disk.power_off(rig.init).unwrap();
        rig.disk.power_on(rig.init).unwrap();
        let first = |name: &str| fs::read(rig.place.join(name)).unwrap()[0];
        // What the second fsync said is not so.
        assert_eq!((first("old"), first("new")), (b'a', b'b'));
    });
}

fn requests_are_slow_from_a_chosen_one_on() {
    if !skip::is_root() {
        return skip::no_root();
    }
    with_disk(&block(512, false), |rig| {
        let delay = Duration::from_millis(40);
        let flushes = |count: u32| {
            let began = Instant::now();
            (0..count).for_each(|_| {
                let step = [Write("old", b'b'), Fdatasync("old")];
                step.into_iter().try_for_each(|step| rig.try_step(step)).unwrap();
            });
            began.elapsed()
        };
        rig.try_step(Write("old", b'a')).and_then(|()| rig.try_step(Fsync("old"))).unwrap();
        // The size and the blocks of the file stay: each fdatasync is one flush.
        let before = rig.disk.status().unwrap().flushes;
        rig.disk.slow_from(DiskRequest::Flush(3), delay).unwrap();
        let slow = flushes(6);
        let taken = (rig.disk.status().unwrap().flushes - before) as u32;
        assert!(taken >= 6 && slow >= delay * (taken - 2), "{taken} flushes in {slow:?}");
        rig.disk.heal().unwrap();
        rig.disk.slow_from(DiskRequest::Write(1_000_000), delay * 100).unwrap();
        assert!(flushes(6) < delay * 100);
    });
}

fn nothing_is_left() {
    if !skip::is_root() {
        return skip::no_root();
    }
    let images = || {
        let devices = fs::read_dir("/sys/block").unwrap();
        let backing = devices.filter_map(|device| {
            fs::read_to_string(device.unwrap().path().join("loop/backing_file")).ok()
        });
        backing.filter(|file| file.contains(MARK)).count()
    };
    for method in [PowerCutMethod::FileSystem, block(512, false)] {
        with_disk(&method, |_| {});
    }
    // The kernel frees a device a moment after its mount.
    testing::until("the loop devices are freed", || images() == 0);
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(MARK), "{mounts}");
}

fn what_is_missing_is_named() {
    if !skip::is_root() {
        return skip::no_root();
    }
    let directory = directory();
    let config = DiskConfig {
        size_bytes: 1 << 60,
        file_system: FileSystem::Ext4,
        method: PowerCutMethod::FileSystem,
    };
    let mut disk = FaultyDisk::new(
        config,
        directory.path(),
        &directory.path().join("socket"),
        SystemUser::current(),
    );
    let init = init();
    let error = disk.format(&init).unwrap_err();
    assert!(matches!(error, Error::NoSpace { .. }), "{error}");
    assert!(error.to_string().starts_with("the image of a disk of 1099511627776 MiB does not fit"));
    let keeper = Init::start(ProcessIsolation::Keeper, None, &[]).unwrap();
    assert!(matches!(disk.format(&keeper), Err(Error::NoNamespace)));
    let disk = FaultyDisk::new(
        DiskConfig {
            size_bytes: SIZE,
            file_system: FileSystem::Ext4,
            method: PowerCutMethod::FileSystem,
        },
        directory.path(),
        &directory.path().join("socket"),
        SystemUser::current(),
    );
    assert!(matches!(disk.status(), Err(Error::NotABlockDisk { .. })));
    // A program that is no disk says so itself.
    let program = DiskProgram { path: "/bin/false".into(), args: Vec::new() };
    let method =
        PowerCutMethod::Block { sector_bytes: 512, is_lying: false, log_bytes: None, program };
    let config = DiskConfig { size_bytes: SIZE, file_system: FileSystem::Ext4, method };
    let mut disk = FaultyDisk::new(
        config,
        directory.path(),
        &directory.path().join("socket"),
        SystemUser::current(),
    );
    let error = disk.format(&init).unwrap_err().to_string();
    assert_eq!(error, "/bin/false did not become a disk: ended with exit code 1");
}

/// A disk with a writer on it.
struct Rig<'a> {
    init: &'a Init,
    disk: FaultyDisk,
    place: PathBuf,
}

impl Rig<'_> {
    /// Takes the steps on a disk that holds a settled file `old` of `a`s, cuts the power, and looks
    /// at a file when it is back.
    fn cut_after(&mut self, steps: &[Step], name: &str, seed: u64) -> (Found, PowerCutReport) {
        for left in ["old", "new"] {
            let _ = fs::remove_file(self.place.join(left));
        }
        self.try_step(Write("old", b'a')).unwrap();
        self.disk.sync(self.init).unwrap();
        for step in steps {
            self.try_step(*step).unwrap();
        }
        let cut = self.disk.cut(self.init, seed, None).unwrap();
        assert!(File::create(self.place.join("later")).is_err(), "it can still be written");
        self.disk.power_off(self.init).unwrap();
        self.disk.power_on(self.init).unwrap();
        (look(&self.place.join(name)), cut)
    }

    fn try_step(&self, step: Step) -> io::Result<()> {
        let path = |name: &str| self.place.join(name);
        let open =
            |name: &str| File::options().write(true).create(true).truncate(false).open(path(name));
        match step {
            Write(name, byte) => open(name)?.write_all_at(&[byte; LENGTH], 0),
            WriteDsync(name, byte) => {
                let mut options = File::options();
                let file = options.write(true).custom_flags(O_DSYNC).open(path(name))?;
                file.write_all_at(&[byte; LENGTH], 0)
            }
            Append(name, byte) => {
                File::options().append(true).open(path(name))?.write_all(&[byte; LENGTH])
            }
            Fdatasync(name) => open(name)?.sync_data(),
            Fsync(name) => open(name)?.sync_all(),
            WriteDirect(name, byte) => {
                let mut options = File::options();
                let file = options.write(true).custom_flags(O_DIRECT).open(path(name))?;
                let data = vec![byte; 2 * LENGTH];
                let aligned = data.as_ptr().align_offset(4096);
                file.write_all_at(&data[aligned..][..LENGTH], 0)
            }
            Rename(from, to) => fs::rename(path(from), path(to)),
            Remove(name) => fs::remove_file(path(name)),
            SyncDirectory => File::open(&self.place)?.sync_all(),
        }
    }
}

fn look(path: &Path) -> Found {
    match fs::read(path).unwrap_or_else(|_| vec![0]) {
        data if data == [0] => Nothing,
        data if data.is_empty() => Empty,
        data if data.iter().any(|byte| *byte != data[0]) => Torn,
        data if data.len() == LENGTH => Once(data[0]),
        data if data.len() == 2 * LENGTH => Twice(data[0]),
        _ => Torn,
    }
}

/// A fresh disk with ext4.
fn with_disk(method: &PowerCutMethod, test: impl FnOnce(&mut Rig<'_>)) {
    let config =
        DiskConfig { size_bytes: SIZE, file_system: FileSystem::Ext4, method: method.clone() };
    with_disk_of(config, test);
}

/// A fresh disk.
fn with_disk_of(config: DiskConfig, test: impl FnOnce(&mut Rig<'_>)) {
    let (init, directory) = (init(), directory());
    let mut disk = FaultyDisk::new(
        config,
        directory.path(),
        &directory.path().join("socket"),
        SystemUser::current(),
    );
    disk.format(&init).unwrap();
    let place = disk.outside(&init).unwrap();
    let mut rig = Rig { init: &init, disk, place };
    test(&mut rig);
    rig.disk.power_off(&init).unwrap();
    init.end().unwrap();
}

/// Root's namespaces, which a disk needs.
fn init() -> Init {
    Init::start(ProcessIsolation::Namespaces, None, &[]).unwrap()
}

fn directory() -> tempfile::TempDir {
    tempfile::Builder::new().prefix(MARK).tempdir().unwrap()
}

fn block(sector_bytes: u32, is_lying: bool) -> PowerCutMethod {
    let program = DiskProgram { path: env::current_exe().unwrap(), args: vec!["disk".into()] };
    PowerCutMethod::Block { sector_bytes, is_lying, log_bytes: Some(64 << 20), program }
}

/// A page of PostgreSQL's: two blocks of the file system.
const LENGTH: usize = 8192;

const SIZE: u64 = 64 << 20;

const MARK: &str = "pgrig-disk-test-";

const O_DSYNC: i32 = rustix::fs::OFlags::DSYNC.bits() as i32;
const O_DIRECT: i32 = rustix::fs::OFlags::DIRECT.bits() as i32;
