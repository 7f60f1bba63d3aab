//! `-i` on a disk that fills up, and `--resume` after room was made. Only root can make such a disk;
//! the mounts are in a namespace that ends with the test.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::Server;
use lab::StopMode;

#[test]
fn a_full_disk_is_named_and_resume_goes_on() {
    on_a_small_disk("64m", "full_disk::full_tablespace");
}

#[test]
fn resume_goes_on_when_a_server_without_room_for_wal_is_back() {
    on_a_small_disk("300m", "full_disk::full_wal");
}

/// Runs a test of this program where a small disk is.
fn on_a_small_disk(size: &str, test: &str) {
    if !testing::skip::is_root() {
        return testing::skip::no_root();
    }
    let own_mounts = Command::new("unshare").args(["--mount", "true"]).output();
    if !own_mounts.is_ok_and(|output| output.status.success()) {
        return testing::skip::because("needs a mount namespace");
    }
    let disks = tempfile::tempdir().expect("a folder");
    let script = "mount -t tmpfs -o size=512m,mode=755 tmpfs \"$1\" && mkdir \"$1/small\" && \
                  mount -t tmpfs -o size=$2,mode=1777 tmpfs \"$1/small\" && shift 2 && exec \"$@\"";
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh"])
        .arg(disks.path())
        .arg(size)
        .arg(std::env::current_exe().expect("this program's own path"))
        .args(["--ignored", "--exact", test, "--nocapture"])
        .env("RIG_DISKS", disks.path())
        .output()
        .expect("unshare of util-linux");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

/// Where the disks are, in the process that has them.
fn disks() -> Option<PathBuf> {
    std::env::var_os("RIG_DISKS").map(PathBuf::from)
}

/// Makes a tablespace `elsewhere` in a folder.
fn tablespace(server: &Server, folder: &Path) {
    let owner = fs::metadata(server.node.data()).expect("the data directory");
    fs::create_dir(folder).expect("a folder");
    chown(folder, Some(owner.uid()), Some(owner.gid())).expect("the server's own folder");
    let place = format!("create tablespace elsewhere location '{}'", folder.display());
    server.execute("postgres", &place);
}

#[track_caller]
fn assert_complete(server: &Server, database: &str, what: &str) {
    for (sql, expected) in [
        ("select count(*), min(bid), max(bid) from pgbench_branches", "2|1|2"),
        ("select count(*), count(distinct tid), sum(bid) from pgbench_tellers", "20|20|30"),
        (
            "select count(*), count(distinct aid), sum(bid) from pgbench_accounts",
            "200000|200000|300000",
        ),
        (
            "select count(*) from pg_constraint where conname in
             ('pgbench_branches_pkey', 'pgbench_tellers_pkey', 'pgbench_accounts_pkey')",
            "3",
        ),
    ] {
        assert_eq!(server.rows(database, sql), [expected], "{what}: {sql}");
    }
}

#[test]
#[ignore = "run by another test"]
fn full_tablespace() {
    let Some(disks) = disks() else { return };
    let disk = disks.join("small");
    let server = Server::start(&[]);
    tablespace(&server, &disk.join("tables"));

    // What is loaded before, the MiB that are left then, what runs, and the statement that fails.
    // Accounts take 13 MiB for each unit of scale, their key 2 MiB.
    let check = |before: &str, left_mib: u64, line: &str, statement: &str| {
        let what = format!("{before} | {left_mib} | {line}");
        let options = "-i -q -s 2 --tablespace=elsewhere --index-tablespace=elsewhere";
        server.create_database("shop");
        if !before.is_empty() {
            let ended = server.ours("shop", &format!("{options} {before}"));
            assert_eq!(ended.code, 0, "{what}: {ended:?}");
        }
        let filler = fill(&disk, left_mib);
        let ended = server.ours("shop", &format!("{options} {line}"));
        assert_eq!(ended.code, 1, "{what}: {ended:?}");
        // The last block that fits in part is an error of its own.
        let full = ["No space left on device", "wrote only 4096 of 8192 bytes"];
        assert!(full.iter().any(|words| ended.err.contains(words)), "{what}: {}", ended.err);
        for words in [
            "\npgrig: hint: the disk of the server is full: make room there, then run the same \
             command with --resume",
            &format!("\npgbench: detail: Query was: {statement}"),
        ] {
            assert!(ended.err.contains(words), "{what}: no {words:?} in {}", ended.err);
        }
        assert_eq!(ended.err.matches("--resume").count(), 1, "{what}: one hint: {}", ended.err);

        fs::remove_file(filler).expect("room is made");
        let ended = server.ours("shop", &format!("{options} {line} --resume"));
        assert_eq!(ended.code, 0, "{what}: {ended:?}");
        assert_complete(&server, "shop", &what);
        server.execute("postgres", "drop database shop");
    };
    check("", 20, "", "copy pgbench_accounts from stdin with (freeze on)");
    check("", 20, "--connections=2", "copy pgbench_accounts from stdin");
    check("", 20, "--partitions=2", "copy pgbench_accounts_2 from stdin with (freeze on)");
    let parts = "--partitions=2 --connections=2";
    check("", 20, parts, "copy pgbench_accounts_");
    check("-I dtgv --partitions=2", 0, &format!("-I p {parts}"), "alter table pgbench_branches");
    check("", 20, "-I dtGvp", "insert into pgbench_accounts");
    check("", 0, "", "copy pgbench_branches from stdin with (freeze on)");
    check("-I dtg --connections=2", 0, "-I vp", "vacuum analyze pgbench_branches");
    check("-I dtgv", 0, "-I p", "alter table pgbench_branches add primary key");
    check("-I dtgv", 1, "-I p", "alter table pgbench_accounts add primary key");
}

#[test]
#[ignore = "run by another test"]
fn full_wal() {
    let Some(disks) = disks() else { return };
    let disk = disks.join("small");
    for (number, more) in ["", "--connections=2", "-I dtGvp"].into_iter().enumerate() {
        let mut server =
            Server::start_in(&disk, &[("max_wal_size", "32MB"), ("min_wal_size", "32MB")]);
        tablespace(&server, &disks.join(number.to_string()));
        let line = format!("-i -q -s 2 --tablespace=elsewhere {more}");
        let filler = fill(&disk, 4);
        let ended = server.ours("postgres", &line);
        assert_eq!(ended.code, 1, "{line}: {ended:?}");
        // The server's own words may not get through before it is gone.
        let causes =
            ["\npgrig: hint: the disk of the server is full", "(no room for WAL, for example)"];
        assert!(causes.iter().any(|cause| ended.err.contains(cause)), "{line}: {}", ended.err);
        assert_eq!(ended.err.matches("--resume").count(), 1, "{line}: one hint: {}", ended.err);

        fs::remove_file(filler).expect("room is made");
        // It may have come back by itself.
        let _ = server.node.stop(StopMode::Immediate);
        server.node.start().expect("it starts");
        let ended = server.ours("postgres", &format!("{line} --resume"));
        assert_eq!(ended.code, 0, "{line}: {ended:?}");
        assert_complete(&server, "postgres", &line);
    }
}

/// Fills the disk but for so many MiB; the file to remove.
fn fill(disk: &Path, left_mib: u64) -> PathBuf {
    let filler = disk.join("filler");
    let free = || {
        let system = rustix::fs::statvfs(disk).expect("statvfs");
        system.f_bavail * system.f_frsize
    };
    let file = File::create(&filler).expect("a file");
    let bytes = free() - left_mib * 1024 * 1024;
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes).expect("room");
    // The server writes meanwhile, and may have taken a page of it.
    let left = free() / 1024 / 1024;
    assert!(
        (left_mib.saturating_sub(1)..=left_mib).contains(&left),
        "{left} MiB of {left_mib} are left"
    );
    filler
}
