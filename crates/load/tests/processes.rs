//! Loads that need processes of their own: several generators, limits on open files, memory.
//!
//! This program is all of those processes, by its first argument; without one it runs the tests.

#[path = "support/fake.rs"]
mod fake;
// Another test program uses the rest of it.
#[allow(dead_code)]
#[path = "support/mod.rs"]
mod support;

use std::{
    env, fs,
    io::{BufRead, BufReader, Write, stdin, stdout},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use load::{
    LaneFleet, LedgerPlan, LoadControl, LoadError, LoadEvent, LoadLimit, LoadOutcome, LoadPlan,
    Protocol, ScriptRows,
};
use record::ledger::{self, Ledger, LedgerRow, LedgerRows};
use rustix::process::{Pid, Signal, kill_process};
use script::{RowSource, RowSourceKind};
use support::{Server, plan, run, run_with, window, workload};
use testing::{harness::say, until};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["generator"] => load::generators::serve(BufReader::new(stdin()), stdout())
            .map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS),
        ["conductor", conninfo] => conductor(conninfo),
        ["fake-server", path] => {
            fake::serve(Path::new(path));
            ExitCode::SUCCESS
        }
        ["clients", directory, n] => clients(directory, n.parse().expect("a number")),
        ["memory", directory, n] => memory(directory, n.parse().expect("a number")),
        _ => testing::run![
            generators_share_a_load,
            generators_share_rows,
            a_generator_that_dies_ends_the_load,
            a_ledger_outlives_its_generators,
            generators_end_with_their_conductor,
            a_generator_that_cannot_begin_says_what_to_do,
            limits_on_open_files,
            idle_sessions_are_small,
            idle_sessions_cost_no_time,
        ],
    }
}

fn this_program() -> PathBuf {
    env::current_exe().expect("the program's own path")
}

fn generators(
    plan: &LoadPlan,
    processes: u32,
    observe: &mut dyn FnMut(LoadEvent<'_>),
) -> Result<LoadOutcome, LoadError> {
    let control = LoadControl::new();
    let fleet = LaneFleet::Processes { count: processes, program: &this_program() };
    load::drive(plan, fleet, &control, Instant::now(), observe)
}

fn generators_share_a_load() {
    let server = Server::start(&[]);
    server.execute("CREATE TABLE shared (client int)");
    let mut workload =
        workload(&server.conninfo(), "INSERT INTO shared VALUES (:client_id);\n", 11);
    workload.protocol = Protocol::Prepared;
    let mut pids = Vec::new();
    let outcome = generators(&plan(workload, LoadLimit::Transactions(10)), 3, &mut |event| {
        if let LoadEvent::Generators(started) = event {
            pids = started.to_vec();
        }
    })
    .unwrap();
    assert_eq!(pids.len(), 3);
    assert_eq!((outcome.generator.processes, outcome.generator.lanes), (3, 6));
    let result = &outcome.workloads[0];
    assert_eq!(result.counts_total.transactions, 110);
    assert_eq!(result.per_client, [10; 11]);
    let generators: Vec<_> = outcome.generators.iter().map(|own| own.published_way).collect();
    assert_eq!(generators.iter().map(|own| own.transactions).collect::<Vec<_>>(), [40, 40, 30]);
    assert!(
        generators
            .iter()
            .all(|own| own.seconds > 0.0 && own.seconds <= result.published_way.seconds),
        "{generators:?} of {:?}",
        result.published_way
    );
    let clients = "SELECT count(*) FROM (SELECT FROM shared GROUP BY client HAVING count(*) = 10)c";
    assert_eq!(server.number(clients), 11, "every client number once");
    // Sums cross exactly: the mean of the whole is that of its parts.
    let parts: u128 = outcome.intervals.iter().map(|interval| interval.latency.sum_ns()).sum();
    assert_eq!(result.latency.sum_ns(), parts);
    assert_eq!(result.latency.max_ns(), Some(result.longest_wait_ns));
    pids.into_iter().for_each(expect_gone);
}

/// A query is run once for all of them, and a seed draws the same rows as by threads.
fn generators_share_rows() {
    let server = Server::start(&[]);
    server.execute("CREATE TABLE shared (client int, call int, n int); CREATE SEQUENCE calls");
    let script = "\\setrow call, n query q.sql zipfian 1.5\n\
                  INSERT INTO shared VALUES (:client_id, :'call', :'n');\n";
    let mut workload = workload(&server.conninfo(), script, 4);
    let source = RowSource { kind: RowSourceKind::Query, path: "q.sql".to_owned() };
    let query = "SELECT c, n FROM (SELECT nextval('calls') AS c) AS once, generate_series(1, 50) n";
    workload.rows.push(ScriptRows::new(source, query));
    let plan = plan(workload, LoadLimit::Transactions(30));
    let drawn = || {
        let counts = "SELECT string_agg(l, ' ' ORDER BY l) FROM (SELECT client || ':' || n || ':' || \
                      count(*) FROM shared GROUP BY client, n) AS t(l)";
        let calls = "SELECT count(DISTINCT call) || ' ' || max(call) FROM shared";
        let found = (server.value(calls), server.value(counts));
        server.execute("TRUNCATE shared");
        found
    };
    generators(&plan, 2, &mut |_| {}).unwrap();
    let (calls, by_processes) = drawn();
    assert_eq!(calls, "1 1");
    run(&LoadPlan { lanes: 4, ..plan }).unwrap();
    let (calls, by_threads) = drawn();
    assert_eq!(calls, "1 2");
    assert_eq!(by_processes, by_threads);
}

fn a_generator_that_dies_ends_the_load() {
    let server = Server::start(&[]);
    let workload = workload(&server.conninfo(), "SELECT 1;\n", 8);
    let mut pids = Vec::new();
    let mut killed = false;
    let began = Instant::now();
    let error = generators(&plan(workload, window(60_000)), 2, &mut |event| match event {
        LoadEvent::Generators(started) => pids = started.to_vec(),
        LoadEvent::Interval(_) if !killed => {
            killed = true;
            kill(pids[1]);
        }
        _ => {}
    })
    .expect_err("half of the load is gone");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(error.to_string(), "generator process 2: ended before its load did");
    pids.into_iter().for_each(expect_gone);
    expect_no_clients(&server);
}

fn a_ledger_outlives_its_generators() {
    let server = Server::start(&[]);
    server.execute("CREATE TABLE log (client int, seq bigint, chain bigint)");
    let script = "INSERT INTO log VALUES (:ledger_client, :ledger_seq, :ledger_chain);\n";
    let mut workload = workload(&server.conninfo(), script, 4);
    workload.protocol = Protocol::Prepared;
    let mut plan = plan(workload.clone(), window(60_000));
    plan.workloads.push(workload);
    let directory = tempfile::tempdir().unwrap();
    plan.ledger = Some(ledger_in(directory.path()));
    let mut pids = Vec::new();
    let mut intervals = 0;
    generators(&plan, 2, &mut |event| match event {
        LoadEvent::Generators(started) => pids = started.to_vec(),
        LoadEvent::Interval(_) => {
            intervals += 1;
            if intervals == 3 {
                pids.iter().for_each(|pid| kill(*pid));
            }
        }
        _ => {}
    })
    .expect_err("the load is gone");
    expect_no_clients(&server);
    let ledger = Ledger::read(directory.path()).unwrap();
    let (mut clients, mut unfinished) = (Vec::new(), 0);
    for (client, history) in ledger.clients() {
        clients.push(client);
        let last = history.last().expect("a transaction");
        unfinished += u64::from(last.outcome == ledger::LedgerOutcome::Unknown);
    }
    assert_eq!(clients, [0, 1, 2, 3, 4, 5, 6, 7], "every number once over all processes");
    let mut client = server.node.connect().unwrap();
    let rows = client.query("SELECT client::bigint, seq, chain FROM log", &[]).unwrap();
    let row =
        |row: &postgres::Row| LedgerRow { client: row.get(0), seq: row.get(1), chain: row.get(2) };
    let rows = LedgerRows { insert: Some(rows.iter().map(row).collect()), update: None };
    let findings = ledger::check(&ledger, &rows, &[]);
    assert_eq!(findings.anomalies(), 0, "{findings:?}");
    assert!(findings.acknowledged > 0 && findings.unknown >= unfinished && unfinished > 0);
}

fn ledger_in(directory: &Path) -> LedgerPlan {
    LedgerPlan { directory: directory.display().to_string(), seed: 7 }
}

/// Runs a long load, and tells who its generators are.
fn conductor(conninfo: &str) -> ExitCode {
    let plan = plan(workload(conninfo, "SELECT 1;\n", 4), window(60_000));
    let outcome = generators(&plan, 2, &mut |event| match event {
        LoadEvent::Generators(pids) => {
            let pids: Vec<_> = pids.iter().map(ToString::to_string).collect();
            writeln!(stdout(), "{}", pids.join(" ")).expect("a reader");
        }
        LoadEvent::LoadBegan { .. } => writeln!(stdout(), "began").expect("a reader"),
        _ => {}
    });
    outcome.map_or(ExitCode::FAILURE, |_| ExitCode::SUCCESS)
}

fn generators_end_with_their_conductor() {
    let server = Server::start(&[]);
    let mut conductor = Command::new(this_program())
        .args(["conductor", &server.conninfo()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(conductor.stdout.take().unwrap()).lines();
    let pids = lines.next().unwrap().unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "began");
    conductor.kill().unwrap();
    conductor.wait().unwrap();
    pids.split(' ').for_each(|pid| expect_gone(pid.parse().unwrap()));
    expect_no_clients(&server);
}

fn a_generator_that_cannot_begin_says_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let limited = directory.path().join("limited");
    let text = format!("#!/bin/sh\nulimit -n 150\nexec '{}' \"$@\"\n", this_program().display());
    fs::write(&limited, text).unwrap();
    fs::set_permissions(&limited, fs::Permissions::from_mode(0o755)).unwrap();
    let plan = plan(workload(&at("/nowhere"), "SELECT 1;\n", 300), window(1_000));
    let (control, began) = (LoadControl::new(), Instant::now());
    let fleet = LaneFleet::Processes { count: 2, program: &limited };
    let error = load::drive(&plan, fleet, &control, began, &mut |_| {})
        .expect_err("more clients than it may open files");
    let told = error.to_string();
    assert!(told.ends_with(": need at least 214 open files, but the system allows 150"), "{told}");
    assert_eq!(
        error.hint().as_deref(),
        Some("raise the hard limit (ulimit -Hn 214) or use fewer clients")
    );
}

fn kill(pid: u32) {
    let pid = Pid::from_raw(pid as i32).expect("a process id");
    kill_process(pid, Signal::KILL).expect("a process of ours");
}

fn expect_gone(pid: u32) {
    let gone = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // Somebody else's zombie has ended.
        stat.is_empty() || stat.contains(") Z ")
    };
    until(&format!("process {pid} to be gone"), gone);
}

fn expect_no_clients(server: &Server) {
    let others = "SELECT count(*) FROM pg_stat_activity \
                  WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    until("every backend to be gone", || server.number(others) == 0);
}

/// A server that does nothing, in a process of its own.
struct FakeServer {
    process: Child,
    directory: tempfile::TempDir,
}

impl FakeServer {
    fn start() -> FakeServer {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join(".s.PGSQL.5432");
        let process = Command::new("/bin/sh")
            .args(["-c", "ulimit -Sn $(ulimit -Hn); exec \"$0\" fake-server \"$1\""])
            .arg(this_program())
            .arg(&socket)
            .spawn()
            .unwrap();
        until("the fake server", || std::os::unix::net::UnixStream::connect(&socket).is_ok());
        FakeServer { process, directory }
    }

    fn directory(&self) -> &str {
        self.directory.path().to_str().expect("a plain path")
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.process.kill().expect("a process of ours");
        self.process.wait().expect("a process of ours");
    }
}

fn at(directory: &str) -> String {
    format!("host={directory} port=5432 user=a dbname=b")
}

/// Runs so many clients, and tells what became of it.
fn clients(directory: &str, n: u32) -> ExitCode {
    let outcome =
        run(&plan(workload(&at(directory), "SELECT 1;\n", n), LoadLimit::Transactions(1)));
    let text = match outcome {
        Ok(outcome) => format!("{}", outcome.workloads[0].counts_total.transactions),
        Err(error) => format!("{error}: {}", error.hint().unwrap_or_default()),
    };
    writeln!(stdout(), "{text}").expect("a reader");
    ExitCode::SUCCESS
}

fn limits_on_open_files() {
    let server = FakeServer::start();
    let with = |limit: &str| {
        let output = Command::new("/bin/sh")
            .args(["-c", &format!("ulimit {limit} 150; exec \"$0\" clients \"$1\" 200")])
            .arg(this_program())
            .arg(server.directory())
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(with("-Sn"), "200", "a soft limit is raised");
    assert_eq!(
        with("-n"),
        "need at least 264 open files, but the system allows 150: raise the hard limit \
         (ulimit -Hn 264) or use fewer clients"
    );
}

/// Resident memory while `n` clients wait for their answers, in bytes.
fn resident(directory: &str, n: u32) -> u64 {
    let mut workload = workload(&at(directory), "SELECT sleep();\n", n);
    workload.variables = vec![("scale".to_owned(), "50".to_owned())];
    let mut plan = plan(workload, window(300));
    plan.drain_ms = Some(0);
    let mut resident = 0;
    run_with(&plan, &LoadControl::new(), &mut |event| {
        if matches!(event, LoadEvent::Interval(_)) {
            let statm = fs::read_to_string("/proc/self/statm").expect("/proc");
            let pages: u64 = statm.split(' ').nth(1).expect("a field").parse().expect("a number");
            resident = resident.max(pages * rustix::param::page_size() as u64);
        }
    })
    .expect("a load");
    resident
}

/// Tells how many bytes each of `n` idle sessions costs.
fn memory(directory: &str, n: u32) -> ExitCode {
    let few = resident(directory, 8);
    let many = resident(directory, n + 8);
    writeln!(stdout(), "{}", many.saturating_sub(few) / u64::from(n)).expect("a reader");
    ExitCode::SUCCESS
}

fn idle_sessions_are_small() {
    let server = FakeServer::start();
    let output =
        Command::new(this_program()).args(["memory", server.directory(), "4096"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let each: u64 = text.trim().parse().unwrap_or_else(|_| panic!("{text:?}"));
    say(&format!("an idle session takes {each} bytes"));
    assert!(each <= 4_096, "{each} bytes for each idle session");
}

fn idle_sessions_cost_no_time() {
    let server = FakeServer::start();
    let cpu = |idle: u32| {
        let mut active = workload(&at(server.directory()), "SELECT 1;\n", 1);
        active.protocol = Protocol::Prepared;
        let mut plan = plan(active, window(500));
        plan.lanes = 1;
        plan.drain_ms = Some(0);
        if idle > 0 {
            plan.workloads.push(workload(&at(server.directory()), "SELECT sleep();\n", idle));
        }
        let outcome = run(&plan).expect("a load");
        assert_eq!(outcome.workloads[0].counts_total.aborted_clients, 0);
        let transactions = outcome.workloads[0].counts.transactions;
        outcome.generator.cpu_ns as f64 / transactions.max(1) as f64
    };
    // The best of three: whatever else the machine does makes it only worse.
    let best = |idle| (0..3).map(|_| cpu(idle)).fold(f64::INFINITY, f64::min);
    let (alone, among) = (best(0), best(2_000));
    say(&format!("CPU per transaction: {alone:.0} ns alone, {among:.0} ns among 2,000 idle"));
    // A lane that looked at every session on each wake-up would need a hundred times as much; how
    // flat the cost really is belongs in the bench.
    assert!(among < 20.0 * alone, "{alone:.0} ns alone, {among:.0} ns among 2,000 idle clients");
}
