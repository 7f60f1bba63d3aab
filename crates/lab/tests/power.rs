//! Nodes on disks whose power is cut, with a real PostgreSQL.
//!
//! This program is also the process of a block disk, and the rig that is killed, by its first
//! argument; without one it runs the tests. `PGRIG_KILLS` says how often the rig is killed.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::Duration;

use fault::disk::{
    self, DiskConfig, DiskError, FaultyDisk, PowerCutMethod, PowerCutReport, RequestFailure,
};
use lab::{Error, Lab, Node, NodeConfig, StopMode};
use os::command::{ChildProcess, ProcessCommand, ProcessOutput};
use os::processes;
use rustix::process::{Pid, Signal, kill_process};
use terms::{DiskFault, FailingRequests, FileSystem, RequestKind};
use testing::harness::say;
use testing::{servers, skip, until};

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    match arguments.first().and_then(|word| word.to_str()) {
        Some("disk") => {
            disk::serve(&arguments[1..]).expect("a disk");
            return ExitCode::SUCCESS;
        }
        Some("rig") => {
            rig();
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    testing::run![
        a_cut_takes_only_what_was_not_promised,
        a_failing_disk_makes_postgres_panic,
        a_page_that_could_not_be_written_is_lost_only_to_a_server_that_tries_again,
        an_archive_brings_back_what_it_has,
        a_cut_that_leaves_nothing_is_a_loss,
        a_disk_is_not_where_its_file_system_is_mounted,
        a_node_without_a_disk_says_so,
        nothing_is_left_of_a_killed_rig,
        nothing_is_left_when_all_processes_die_at_once,
    ]
}

fn a_cut_takes_only_what_was_not_promised() {
    for method in [PowerCutMethod::FileSystem, block()] {
        let Some(lab) = open(&method) else { return };
        // What was acknowledged is there; a transaction that was under way may be.
        let mut safe = node(&lab, "safe", &method, &[]);
        let (acknowledged, cut) = cut_under_load(&mut safe, 1);
        safe.start().unwrap();
        assert!(cut.unflushed_bytes > 0, "{cut:?}");
        assert_eq!(cut.unflushed_bytes, cut.dropped_bytes + cut.kept_bytes);
        assert!(rows(&safe) >= acknowledged && rows(&safe) <= acknowledged + 1, "{method:?}");
        // The same disk again, so that nothing of the first cut hides in it.
        let (acknowledged, _) = cut_under_load(&mut safe, 2);
        safe.start().unwrap();
        assert!(rows(&safe) >= acknowledged);
        safe.stop(StopMode::Fast).unwrap();

        let mut unsafe_node = node(&lab, "unsafe", &method, &[("fsync", "off")]);
        let (acknowledged, _) = cut_under_load(&mut unsafe_node, 3);
        match unsafe_node.start() {
            // The table itself may be gone.
            Ok(()) => {
                let rows = unsafe_node.value("SELECT count(*) FROM t").ok().flatten();
                let rows = rows.map_or(0, |rows| rows.parse().unwrap());
                assert!(rows < acknowledged, "nothing was lost");
            }
            Err(Error::Start { log, .. }) => {
                assert!(log.contains("PANIC") || log.contains("FATAL"), "{log}");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// PostgreSQL must not trust what it wrote after a flush that failed: it panics, and what it had
/// acknowledged is there when the disk works again.
fn a_failing_disk_makes_postgres_panic() {
    let Some(lab) = open(&block()) else { return };
    let mut node = node(&lab, "n", &block(), &[("restart_after_crash", "off")]);
    let mut panicked = 0;
    for (what, error) in
        [(RequestKind::Flush, DiskError::Broken), (RequestKind::Write, DiskError::Full)]
    {
        node.start().unwrap();
        let before = prepare(&node);
        let disk = device(&lab, &node);
        let status = disk.status().unwrap();
        let done = if what == RequestKind::Write { status.writes } else { status.flushes };
        disk.fail(RequestFailure { what, from: done + 20, error }).unwrap();
        let acknowledged = before + insert_until_failure(&node, &AtomicI64::new(0));
        let panics = || fs::read_to_string(node.log()).unwrap().matches("PANIC").count();
        let has_panicked = || Ok::<_, Error>((panics() > panicked).then_some(()));
        let seen = lab::wait_until(Duration::from_secs(20), has_panicked);
        let log = fs::read_to_string(node.log()).unwrap();
        assert!(seen.unwrap().is_some(), "{what:?}: {log}");
        panicked = panics();
        node.kill9().unwrap();
        // Its file system stands still until it is mounted anew, as after a power cut.
        node.power_cut(1, None).unwrap();
        node.start().unwrap();
        assert!(rows(&node) >= acknowledged, "{what:?}");
        node.stop(StopMode::Fast).unwrap();
    }
}

/// The kernel tells of a page that it could not write once, and then takes it for clean: the second fsync says that
/// all is well, and the WAL that would restore the page is not read any more.
fn a_page_that_could_not_be_written_is_lost_only_to_a_server_that_tries_again() {
    let Some(lab) = open(&block()) else { return };
    for (retries, name) in [("off", "panics"), ("on", "retries")] {
        let settings = [("restart_after_crash", "off"), ("data_sync_retry", retries)];
        let mut node = node(&lab, name, &block(), &settings);
        node.start().unwrap();
        // Pages with room for a second version of each row are written again, and none is added.
        node.connect()
            .unwrap()
            .batch_execute(
                "CREATE TABLE kept (id int, state text) WITH (fillfactor = 40, autovacuum_enabled = off);
                 INSERT INTO kept SELECT n, 'before' FROM generate_series(1, 20000) AS n; CHECKPOINT;
                 UPDATE kept SET state = 'after'",
            )
            .unwrap();
        let file = node.value("SELECT pg_relation_filepath('kept')").unwrap().unwrap();
        let blocks = node.fail_requests(FailingRequests {
            kind: RequestKind::Write,
            fault: DiskFault::Broken,
            times: None,
            files: vec![file],
        });
        assert!(blocks.unwrap() > 100);
        let mut client = node.connect().unwrap();
        let first = client.batch_execute("CHECKPOINT");
        assert!(first.is_err(), "a checkpoint whose flush failed ended well");
        assert!(node.heal_disk().unwrap() > 0);
        let log = || fs::read_to_string(node.log()).unwrap();
        if retries == "on" {
            client.batch_execute("CHECKPOINT").unwrap();
        } else {
            until("the server panics", || log().contains("PANIC"));
        }
        let has_panicked = log().contains("PANIC");
        assert_eq!(has_panicked, retries == "off", "{}", log());
        drop(client);
        node.kill9().unwrap();
        node.power_cut(1, None).unwrap();
        node.start().unwrap();
        let after = "SELECT count(*) FROM kept WHERE state = 'after'";
        let after: i64 = node.value(after).unwrap().unwrap().parse().unwrap();
        assert_eq!(
            after == 20_000,
            retries == "off",
            "{after} of 20000 rows are as they were committed"
        );
        node.kill9().unwrap();
    }
}

/// The data of a node without fsync are gone with the power; its base backup and its WAL archive
/// lie elsewhere, and hold everything up to the last segment that was archived.
fn an_archive_brings_back_what_it_has() {
    let Some(lab) = open(&PowerCutMethod::FileSystem) else { return };
    let mut config = NodeConfig::new(servers::settings(&[("fsync", "off")]));
    config.disk = Some(DiskConfig {
        size_bytes: SIZE,
        file_system: FileSystem::Ext4,
        method: PowerCutMethod::FileSystem,
    });
    config.archive =
        Some(lab::ArchiveConfig { of: "archived".to_owned(), tool: lab::ArchiveTool::Copy });
    config.initdb.push("--data-checksums".to_owned());
    let mut node = lab.node("archived", config).unwrap();
    node.init().unwrap();
    node.start().unwrap();
    let backup = node.take_backup("first").unwrap();
    prepare(&node);
    let mut client = node.connect().unwrap();
    (0..100).for_each(|_| client.batch_execute(INSERT).unwrap());
    let segment = node.value("SELECT pg_walfile_name(pg_switch_wal())").unwrap().unwrap();
    let archived = format!("SELECT last_archived_wal >= '{segment}' FROM pg_stat_archiver");
    node.poll_query_until(&archived, "t", Duration::from_secs(60)).unwrap();
    (0..100).for_each(|_| client.batch_execute(INSERT).unwrap());
    drop(client);
    node.power_cut(1, None).unwrap();

    let archive = node.archive_directory().unwrap();
    let recovery = servers::settings(&[]);
    node.restore(lab::RestoreOrder { backup, archive, tool: lab::ArchiveTool::Copy, recovery })
        .unwrap();
    assert_eq!(rows(&node), 100, "what was not archived is gone, and nothing else");
    node.connect().unwrap().batch_execute(INSERT).unwrap();
    node.stop(StopMode::Fast).unwrap();
    let checksums = node.check_checksums().unwrap();
    assert!(checksums.bad == 0 && checksums.blocks > 1000, "{checksums:?}");
}

/// Neither a damaged file system nor one without the data is a fault of the rig's, and the disk can
/// be used again.
fn a_cut_that_leaves_nothing_is_a_loss() {
    let Some(lab) = open(&block()) else { return };
    let mut node = node(&lab, "n", &block(), &[]);
    let mut check = |damage: &dyn Fn(&Node), expected: &str| {
        node.init().unwrap();
        node.start().unwrap();
        prepare(&node);
        node.connect().unwrap().batch_execute(INSERT).unwrap();
        damage(&node);
        node.power_cut(1, None).unwrap();
        for _ in 0..2 {
            let error = node.start().unwrap_err();
            assert!(matches!(error, Error::DataLost { .. }), "{error:?}");
            assert!(error.to_string().contains(expected), "{error}");
        }
    };
    let image = lab.directory().join("disks/n/image");
    // The superblock and what lies behind it; a disk without power takes no more writes.
    let wipe = |_: &Node| {
        let image = File::options().write(true).open(&image).unwrap();
        image.write_all_at(&vec![0; 1 << 20], 0).unwrap();
    };
    check(&wipe, "cannot be mounted: Invalid argument");
    let remove = |node: &Node| {
        let command = "COPY (SELECT) TO PROGRAM 'rm PG_VERSION; sync'";
        node.connect().unwrap().batch_execute(command).unwrap();
    };
    check(&remove, "its file system has no data directory");
    node.init().unwrap();
    node.start().unwrap();
}

/// The last process that leaves a mount namespace unmounts its file systems, and waits for the disks:
/// their processes must not be that. They have no other disk's file system either, in any order of
/// starts.
fn a_disk_is_not_where_its_file_system_is_mounted() {
    let Some(lab) = open(&block()) else { return };
    let mut nodes = ["a", "b"].map(|name| node(&lab, name, &block(), &[]));
    cut_under_load(&mut nodes[0], 1);
    let disks = lab.directory().join("disks").display().to_string();
    let read = |pid: i32, file: &str| fs::read_to_string(format!("/proc/{pid}/{file}"));
    let all = processes::all().unwrap().into_iter().map(|process| process.pid);
    let of_disks: Vec<String> = all
        .filter(|pid| read(*pid, "cmdline").is_ok_and(|words| words.contains(&disks)))
        .map(|pid| read(pid, "mountinfo").unwrap())
        .collect();
    assert_eq!(of_disks.len(), 2);
    for mounts in of_disks {
        let below: Vec<&str> = mounts.lines().filter(|line| line.contains(&disks)).collect();
        let is_own = below.len() == 1 && below[0].contains("fuse");
        assert!(is_own, "{below:?}");
    }
}

fn a_node_without_a_disk_says_so() {
    let lab = servers::lab();
    let mut node = lab.node("n", NodeConfig::new(servers::settings(&[]))).unwrap();
    node.init().unwrap();
    let error = node.power_cut(1, None).unwrap_err();
    assert_eq!(error.to_string(), "cutting the power of node n: it has no disk of its own");
    if disk::check(&PowerCutMethod::FileSystem).is_err() {
        let mut config = NodeConfig::new(servers::settings(&[]));
        config.disk = Some(DiskConfig {
            size_bytes: SIZE,
            file_system: FileSystem::Ext4,
            method: PowerCutMethod::FileSystem,
        });
        let error = lab.node("cut", config).unwrap().init().unwrap_err();
        assert!(error.hint().is_some(), "{error}");
    }
}

fn nothing_is_left_of_a_killed_rig() {
    kill_rigs(false, |rig| {
        let init = processes_of(rig)[1..].to_vec();
        rig.signal(Signal::KILL).unwrap();
        init
    });
}

/// As when a container is stopped: the last process that leaves the mounts of the disks waits for
/// their processes, which end in the same moment.
fn nothing_is_left_when_all_processes_die_at_once() {
    kill_rigs(true, |rig| {
        let all = processes_of(rig);
        for pid in &all {
            // One that has just ended by itself is killed already.
            let _ = kill_process(Pid::from_raw(*pid).unwrap(), Signal::KILL);
        }
        all
    });
}

fn processes_of(rig: &ChildProcess) -> Vec<i32> {
    processes::tree(&processes::all().unwrap(), rig.id().cast_signed())
}

/// Starts rigs and ends each with `kill`, which returns the processes that have to be gone then.
fn kill_rigs(is_init_killed: bool, kill: impl Fn(&ChildProcess) -> Vec<i32>) {
    if open(&block()).is_none() {
        return;
    }
    let kills: u64 = env::var("PGRIG_KILLS").map_or(2, |count| count.parse().unwrap());
    for number in 0..kills {
        let said = tempfile::NamedTempFile::new().unwrap();
        let mut rig = ProcessCommand::new(env::current_exe().unwrap())
            .arg("rig")
            .inherit_env()
            .stdout(ProcessOutput::Pipe)
            .stderr(ProcessOutput::File(said.path().to_owned()))
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(rig.stdout().unwrap()).read_line(&mut line).unwrap();
        let directory = PathBuf::from(line.trim());
        assert!(directory.is_dir(), "{line} {}", fs::read_to_string(said.path()).unwrap());
        // Anywhere between disks being made, a standby, loads, cuts and recoveries.
        thread::sleep(Duration::from_millis(number * 7919 % 10_000));
        let killed = kill(&rig);
        assert!(!killed.is_empty());
        rig.wait().unwrap();
        until(&format!("all processes end after kill {number}"), || {
            killed.iter().all(|pid| has_ended(*pid))
        });
        if is_init_killed {
            // What it had no time to remove; another test that cleans the same folder may come first.
            let is_removed = lab::clean(&directory).is_ok_and(|cleaned| cleaned.removed.len() == 1);
            assert!(is_removed || !directory.exists(), "kill {number}");
        }
        until(&format!("nothing is left of kill {number}"), || left_of(&directory).is_empty());
    }
}

/// Whether no thread of a process is left, in D or elsewhere; nobody may have reaped it yet.
fn has_ended(pid: i32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    threads <= 1 && processes::of(pid).is_none_or(|process| process.is_zombie())
}

/// Mounts, loop devices, processes and directories of a lab that is gone.
fn left_of(directory: &Path) -> Vec<String> {
    let name = directory.file_name().unwrap().to_str().unwrap();
    let mut left = Vec::new();
    if directory.exists() {
        left.push(directory.display().to_string());
    }
    for entry in fs::read_dir("/sys/block").unwrap().flatten() {
        let backing = fs::read_to_string(entry.path().join("loop/backing_file"));
        left.extend(backing.ok().filter(|file| file.contains(name)));
    }
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let read = |file: &str| fs::read(entry.path().join(file)).unwrap_or_default();
        for text in [read("cmdline"), read("mountinfo")] {
            let text = String::from_utf8_lossy(&text).into_owned();
            left.extend(text.lines().filter(|line| line.contains(name)).map(str::to_owned));
        }
    }
    left
}

/// The rig that is killed: it says where its lab is, and then does everything that a study does.
fn rig() {
    let lab = servers::lab();
    say(&lab.directory().display().to_string());
    let mut file_system = node(&lab, "f", &PowerCutMethod::FileSystem, &[]);
    let mut primary = node(&lab, "b", &block(), &[]);
    primary.start().unwrap();
    let mut standby = lab.node("s", on_disk(&block(), &[])).unwrap();
    standby.init_from_backup(&primary, None).unwrap();
    standby.start().unwrap();
    for seed in 0.. {
        cut_under_load(&mut file_system, seed);
        cut_under_load(&mut primary, seed);
    }
}

/// Starts the node where it stands still, loads it, and cuts its power in the middle; how many rows
/// were acknowledged.
fn cut_under_load(node: &mut Node, seed: u64) -> (i64, PowerCutReport) {
    if !node.is_running().unwrap() {
        node.start().unwrap();
    }
    let before = prepare(node);
    let acknowledged = AtomicI64::new(0);
    let cut = thread::scope(|scope| {
        let mut client = node.connect().unwrap();
        let acknowledged = &acknowledged;
        scope.spawn(move || {
            while client.batch_execute(INSERT).is_ok() {
                acknowledged.fetch_add(1, Ordering::SeqCst);
            }
        });
        until("300 rows are acknowledged", || acknowledged.load(Ordering::SeqCst) >= 300);
        node.power_cut(seed, None).unwrap()
    });
    (before + acknowledged.load(Ordering::SeqCst), cut)
}

fn insert_until_failure(node: &Node, acknowledged: &AtomicI64) -> i64 {
    let mut client = node.connect().unwrap();
    while client.batch_execute(INSERT).is_ok() {
        acknowledged.fetch_add(1, Ordering::SeqCst);
    }
    acknowledged.load(Ordering::SeqCst)
}

fn prepare(node: &Node) -> i64 {
    let mut client = node.connect().unwrap();
    client.batch_execute("CREATE TABLE IF NOT EXISTS t (x int, filler text)").unwrap();
    rows(node)
}

fn rows(node: &Node) -> i64 {
    node.value("SELECT count(*) FROM t").unwrap().unwrap().parse().unwrap()
}

fn node(lab: &Lab, name: &str, method: &PowerCutMethod, pairs: &[(&str, &str)]) -> Node {
    let mut node = lab.node(name, on_disk(method, pairs)).unwrap();
    node.init().unwrap();
    node
}

fn on_disk(method: &PowerCutMethod, pairs: &[(&str, &str)]) -> NodeConfig {
    let mut config = NodeConfig::new(servers::settings(pairs));
    config.disk = Some(DiskConfig {
        size_bytes: SIZE,
        file_system: FileSystem::Ext4,
        method: method.clone(),
    });
    config
}

/// A lab, where this machine can cut power; elsewhere it has to say why not.
fn open(method: &PowerCutMethod) -> Option<Lab> {
    let lab = servers::lab();
    match (disk::check(method), lab.isolation()) {
        (Ok(()), lab::Isolation::Namespaces) => Some(lab),
        (Ok(()), _) => {
            skip::because("needs namespaces");
            None
        }
        (Err(error), _) => {
            assert!(error.hint().is_some(), "{error}");
            match error {
                disk::Error::NotRoot => skip::no_root(),
                error => skip::because(error),
            }
            None
        }
    }
}

/// The device of a node's block disk, as its process listens for orders.
fn device(lab: &Lab, node: &Node) -> FaultyDisk {
    let config = DiskConfig { size_bytes: SIZE, file_system: FileSystem::Ext4, method: block() };
    let disks = lab.directory().join("disks");
    let socket = disks.join(format!(".{}", node.endpoint().port));
    FaultyDisk::new(config, &disks.join(node.name()), &socket, lab.user())
}

fn block() -> PowerCutMethod {
    let program =
        disk::DiskProgram { path: env::current_exe().unwrap(), args: vec!["disk".into()] };
    PowerCutMethod::Block { sector_bytes: 512, is_lying: false, log_bytes: None, program }
}

const INSERT: &str = "INSERT INTO t VALUES (1, repeat('x', 500))";

const SIZE: u64 = 512 << 20;
