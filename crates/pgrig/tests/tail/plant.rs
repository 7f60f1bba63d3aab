//! Servers whose slow transactions have one cause.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lab::{Lab, LabConfig, Node, NodeConfig, Pooler, PoolerConfig, PoolerProgram};
use serde_json::Value;

/// A cause of slow transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plant {
    /// A session locks the table for 150 ms, again and again.
    Lock,
    /// A session locks the table once, two seconds after the clients have come, until after the end.
    LastLock,
    /// A disk that is slow while a checkpoint flushes data files.
    Checkpoint,
    /// An autovacuum worker holds a lock that transactions want.
    Autovacuum,
    /// Processes that use all CPUs.
    Neighbour,
    /// A disk that takes 30 ms for some flushes.
    SlowFlush,
    /// A pooler with fewer sessions than clients, beside three sessions of another program that wait for one
    /// another's locks.
    Pooler,
}

impl Plant {
    pub(crate) const ALL: [Plant; 7] = [
        Plant::Lock,
        Plant::LastLock,
        Plant::Checkpoint,
        Plant::Autovacuum,
        Plant::Neighbour,
        Plant::SlowFlush,
        Plant::Pooler,
    ];

    /// The cause that must be named first, as in JSON.
    pub(crate) fn expected(self) -> &'static str {
        match self {
            Plant::Lock | Plant::LastLock => "lock",
            Plant::Checkpoint => "checkpoint",
            Plant::Autovacuum => "autovacuum",
            Plant::Neighbour => "run_delay",
            Plant::SlowFlush => "wal_flush",
            Plant::Pooler => "pooler_queue",
        }
    }

    /// Settings of the server.
    fn settings(self) -> Vec<(&'static str, &'static str)> {
        let mut settings = vec![("shared_buffers", "256MB"), ("max_wal_size", "4GB")];
        settings.push(("checkpoint_timeout", "1h"));
        match self {
            Plant::Autovacuum => settings.extend([
                ("fsync", "off"),
                ("autovacuum_naptime", "1s"),
                ("autovacuum_vacuum_threshold", "50"),
                ("autovacuum_vacuum_scale_factor", "0"),
                ("autovacuum_vacuum_cost_delay", "50ms"),
                ("autovacuum_vacuum_cost_limit", "20"),
                ("deadlock_timeout", "300ms"),
            ]),
            Plant::Checkpoint | Plant::SlowFlush => settings.push(("autovacuum", "off")),
            _ => settings.extend([("autovacuum", "off"), ("fsync", "off")]),
        }
        settings
    }

    /// The script of the clients.
    fn script(self) -> &'static str {
        match self {
            Plant::Neighbour | Plant::Pooler => {
                "\\set aid random(1, 100000)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"
            }
            // Few transactions take jobs off a queue, alone. An autovacuum that finds the table locked leaves
            // it out: they lock it seldom, and for no longer than one message takes.
            Plant::Autovacuum => {
                "\\set aid random(1, 100000)\n\\set dice random(1, 200)\n\
                 \\if :dice = 1\nBEGIN\\; LOCK TABLE jobs IN SHARE ROW EXCLUSIVE MODE\\; \
                 UPDATE jobs SET n = n + 1 WHERE id % 500 = :aid % 500\\; END;\n\\else\n\
                 SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n\\endif\n"
            }
            _ => {
                "\\set aid random(1, 100000)\n\
                 UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;\n"
            }
        }
    }

    fn clients(self) -> u32 {
        match self {
            Plant::Pooler => 16,
            Plant::Neighbour => 2,
            _ => 4,
        }
    }
}

/// True, and counted as skipped, where a part is missing.
pub(crate) fn is_impossible() -> bool {
    match lab::find::find(None) {
        Ok(_) => false,
        Err(error) => {
            testing::skip::because(error);
            true
        }
    }
}

/// A server with its planted cause, which goes on until this is dropped.
pub(crate) struct World {
    plant: Plant,
    directory: tempfile::TempDir,
    // In this order: the cause ends before the server does.
    stops: Arc<AtomicBool>,
    planters: Vec<JoinHandle<()>>,
    neighbours: Vec<Child>,
    pooler: Option<Pooler>,
    node: Node,
    _lab: Lab,
}

/// Results of a run of `pgrig bench`.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) words: String,
    tail: Value,
}

impl World {
    pub(crate) fn start(plant: Plant) -> World {
        let directory = tempfile::Builder::new().prefix("pgrig-tail-").tempdir().unwrap();
        open_to_all(directory.path());
        let mut installation = lab::find::find(None).expect("PostgreSQL");
        if matches!(plant, Plant::Checkpoint | Plant::SlowFlush) {
            let bin = with_slow_disk(&installation.program("postgres"), directory.path(), plant);
            installation = lab::find::find(Some(&bin)).expect("PostgreSQL on a slow disk");
        }
        let lab = Lab::open(LabConfig::new(installation)).expect("a lab");
        let settings = plant.settings().into_iter();
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut node = lab.node("server", NodeConfig::new(settings.collect())).expect("a node");
        node.init().expect("initdb");
        node.start().expect("a server");
        let mut client = node.connect().expect("a connection");
        let tables = "CREATE TABLE pgbench_accounts AS SELECT n AS aid, 0 AS abalance, repeat('x', 84) \
             AS filler FROM generate_series(1, 100000) n; \
             ALTER TABLE pgbench_accounts ADD PRIMARY KEY (aid); \
             CREATE TABLE jobs AS SELECT n AS id, 0 AS n, repeat('x', 400) AS filler \
             FROM generate_series(1, 20000) n; CREATE INDEX ON jobs ((id % 500)); \
             VACUUM ANALYZE pgbench_accounts; VACUUM ANALYZE jobs";
        for statement in tables.split(';') {
            client.batch_execute(statement).expect(statement);
        }
        let pooler = (plant == Plant::Pooler).then(|| {
            let program = PoolerProgram::Newest(None);
            let config = PoolerConfig { pool: 2, ..PoolerConfig::new(program, node.endpoint()) };
            let mut pooler = lab.pooler("pooler", config).expect("a pooler");
            pooler.start().expect("PgBouncer starts");
            pooler
        });
        let burns = || {
            let mut command = Command::new("sh");
            command.args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn().unwrap()
        };
        let neighbours = match plant {
            Plant::Neighbour => (0..4).map(|_| burns()).collect(),
            _ => Vec::new(),
        };
        let stops = Arc::<AtomicBool>::default();
        let others = if plant == Plant::Pooler { 2 } else { 0 };
        let others = (0..others).map(|_| node.connect().expect("a connection"));
        let clients = std::iter::once(client).chain(others);
        let planters = clients.filter_map(|client| planter(plant, client, Arc::clone(&stops)));
        let planters = planters.collect();
        World { plant, directory, stops, planters, neighbours, pooler, node, _lab: lab }
    }

    /// Loads the server for so many seconds.
    pub(crate) fn bench(&self, seconds: u32) -> Found {
        let script = self.directory.path().join("script.sql");
        fs::write(&script, self.plant.script()).unwrap();
        let json = self.directory.path().join("out.json");
        let endpoint = self.pooler.as_ref().map_or_else(|| self.node.endpoint(), Pooler::endpoint);
        let output = Command::new(env!("CARGO_BIN_EXE_pgrig"))
            .args(["bench", "-n", "--tail", "-c", &self.plant.clients().to_string()])
            .args(["-T", &seconds.to_string(), "-f"])
            .arg(&script)
            .arg("--json")
            .arg(&json)
            .arg(endpoint.to_string())
            .output()
            .unwrap();
        let words = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words}{errors}");
        let document: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
        Found { words, tail: document["tail"].clone() }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stops.store(true, Ordering::Relaxed);
        for planter in self.planters.drain(..) {
            let _ = planter.join();
        }
        for mut neighbour in self.neighbours.drain(..) {
            let _ = neighbour.kill();
            let _ = neighbour.wait();
        }
    }
}

impl Found {
    /// The largest cause.
    pub(crate) fn first(&self) -> &str {
        self.tail["causes"][0]["cause"].as_str().unwrap_or("none")
    }

    /// The largest cause but the wait for a CPU, and what is said of it. Beside other tests the machine may be
    /// as busy as the planted cause is long, and the answer is right to say so.
    pub(crate) fn first_of_server(&self) -> (&str, &str) {
        let causes = self.tail["causes"].as_array().into_iter().flatten();
        let mut of_server = causes.filter(|cause| cause["cause"] != "run_delay");
        let Some(cause) = of_server.next() else { return ("none", "none") };
        (cause["cause"].as_str().unwrap_or("none"), cause["detail"].as_str().unwrap_or("none"))
    }

    pub(crate) fn has_cause(&self, name: &str) -> bool {
        let mut causes = self.tail["causes"].as_array().into_iter().flatten();
        causes.any(|cause| cause["cause"] == name)
    }

    /// Behind a pooler: the share of the seconds at which a session of the load was found.
    pub(crate) fn matched(&self) -> f64 {
        self.tail["matched"].as_f64().unwrap_or(f64::NAN)
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.tail["seconds"].as_f64().unwrap_or(f64::NAN)
    }

    pub(crate) fn sum(&self) -> f64 {
        let causes = self.tail["causes"].as_array().into_iter().flatten();
        causes.map(|cause| cause["seconds"].as_f64().unwrap_or(f64::NAN)).sum()
    }

    /// The lines that begin so, as one.
    pub(crate) fn line(&self, begin: &str) -> String {
        let lines = self.words.lines().filter(|line| line.starts_with(begin));
        lines.collect::<Vec<_>>().join(" | ")
    }
}

/// What is done to the server again and again.
fn planter(
    plant: Plant,
    mut client: server::Client,
    stops: Arc<AtomicBool>,
) -> Option<JoinHandle<()>> {
    let (statements, pause): (&[&str], _) = match plant {
        Plant::Lock => (
            &[
                "SET application_name = 'nightly report'",
                "BEGIN",
                "LOCK TABLE pgbench_accounts IN EXCLUSIVE MODE",
                "SELECT pg_sleep(0.15)",
                "COMMIT",
            ],
            700,
        ),
        // The clients come once.
        Plant::LastLock => (
            &[
                "DO $$ BEGIN LOOP EXIT WHEN (SELECT count(*) FROM pg_stat_activity \
                 WHERE query LIKE 'UPDATE pgbench_accounts%') >= 4; PERFORM pg_stat_clear_snapshot(); \
                 PERFORM pg_sleep(0.02); END LOOP; END $$",
                "SELECT pg_sleep(2)",
                "BEGIN",
                "LOCK TABLE pgbench_accounts IN EXCLUSIVE MODE",
                "SELECT pg_sleep(4)",
                "COMMIT",
            ],
            3_600_000,
        ),
        Plant::Pooler => (
            &[
                "SET application_name = 'reports'",
                "BEGIN",
                "LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE",
                "SELECT pg_sleep(0.1)",
                "COMMIT",
            ],
            0,
        ),
        Plant::Checkpoint => (&["CHECKPOINT"], 2_500),
        _ => return None,
    };
    Some(thread::spawn(move || {
        while !stops.load(Ordering::Relaxed) {
            for statement in statements {
                client.batch_execute(statement).unwrap_or_default();
            }
            let until = Instant::now() + Duration::from_millis(pause);
            while Instant::now() < until && !stops.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(20));
            }
        }
    }))
}

/// A folder of PostgreSQL's programs whose server has a slow disk: a library stands before the C
/// library's flushes.
fn with_slow_disk(postgres: &Path, directory: &Path, plant: Plant) -> PathBuf {
    let (source, library) = (directory.join("disk.c"), directory.join("disk.so"));
    fs::write(&source, SLOW_DISK).unwrap();
    let kind = if plant == Plant::Checkpoint { "-DCHECKPOINTS" } else { "-DSOME" };
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", kind, "-o"])
        .arg(&library)
        .arg(&source)
        .arg("-ldl")
        .status()
        .expect("a C compiler");
    assert!(built.success(), "the slow disk was not built");
    let bin = directory.join("bin");
    fs::create_dir(&bin).unwrap();
    let real = postgres.canonicalize().unwrap();
    for entry in fs::read_dir(real.parent().unwrap()).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name() != "postgres" {
            std::os::unix::fs::symlink(entry.path(), bin.join(entry.file_name())).unwrap();
        }
    }
    let marks = directory.join("flushing");
    fs::write(&marks, [0; 64]).unwrap();
    fs::set_permissions(&marks, fs::Permissions::from_mode(0o666)).unwrap();
    let script = format!(
        "#!/bin/sh\nSLOW_DISK={} LD_PRELOAD={} exec {} \"$@\"\n",
        marks.display(),
        library.display(),
        real.display()
    );
    let wrapper = bin.join("postgres");
    fs::write(&wrapper, script).unwrap();
    open_to_all(&wrapper);
    open_to_all(&bin);
    open_to_all(&library);
    bin
}

fn open_to_all(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Flushes that take long: some of the WAL's, or all of them while data files are flushed, which then
/// takes long itself. A file that all processes map says until when data files are flushed.
const SLOW_DISK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *until;

static int64_t now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("SLOW_DISK");
    int file = path ? open(path, O_RDWR) : -1;
    void *map = file < 0 ? MAP_FAILED : mmap(0, 64, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    until = map == MAP_FAILED ? 0 : map;
    srand(getpid());
}

int fdatasync(int file) {
    int (*real)(int) = dlsym(RTLD_NEXT, "fdatasync");
#ifdef SOME
    if (rand() % 20 == 0) usleep(30000);
#endif
#ifdef CHECKPOINTS
    if (until && now_ms() < *until) usleep(30000);
#endif
    return real(file);
}

int fsync(int file) {
    int (*real)(int) = dlsym(RTLD_NEXT, "fsync");
#ifdef CHECKPOINTS
    if (until) *until = now_ms() + 150;
    usleep(150000);
#endif
    return real(file);
}
"#;
