//! The sampler against a real PostgreSQL: what it sees of a load, of the log, and of a server's
//! death.

mod activity;
mod bench;
mod horizon;
mod topology;

use std::{
    path::PathBuf,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use probe::{CounterSnapshot, Probes, SamplerConfig, SamplerReadings, WatchedServer};
use record::{MarkKind, Sample, TimelineMark};

use bench::{Bench, LAB};

fn of<'a>(readings: &'a SamplerReadings, node: &str, metric: &str) -> Vec<&'a Sample> {
    let wanted = |s: &&Sample| s.node == node && s.metric == metric;
    readings.samples.iter().filter(wanted).collect()
}

fn sum(samples: &[&Sample]) -> f64 {
    samples.iter().map(|sample| sample.value).sum()
}

fn processed(pgbench: &str) -> u64 {
    let line = pgbench.lines().find(|line| line.contains("actually processed")).expect(pgbench);
    let number = line.rsplit(": ").next().unwrap().split('/').next().unwrap();
    number.parse().expect(line)
}

#[test]
fn samples_come_every_second_and_deltas_equal_the_clients_counts() {
    let bench = Bench::start(&[]);
    let origin = Instant::now();
    let running = Probes::start(bench.config(), origin).unwrap();
    let output = bench.pgbench(&["-n", "-c", "2", "-T", "5", "-M", "prepared"]);
    let readings = running.stop();
    let lasted = origin.elapsed();

    let commits = of(&readings, "primary", "db_commits");
    assert!((3..=6).contains(&commits.len()), "{}", commits.len());
    // One may come late on a busy machine, and the next one in time.
    let [first, .., last] = &commits[..] else { panic!("three at least") };
    let apart = last.at.since(first.at) as f64 / 1e9 / (commits.len() - 1) as f64;
    assert!((0.7..1.4).contains(&apart), "{apart} s between two samples on average");
    assert!(readings.samples.iter().all(|s| s.at.as_secs_f64() <= lasted.as_secs_f64()));
    assert!(readings.samples.is_sorted_by_key(|sample| sample.at));
    // Process groups are read more rarely where that is costly.
    for (node, metric, least) in [
        ("primary", "wal_bytes", 3),
        ("primary", "group_cpu_user_cores", 1),
        ("primary", "group_memory_mb", 1),
        ("machine", "cpu_user_pct", 3),
        ("machine", "context_switches", 3),
        ("generator", "group_cpu_user_cores", 1),
        ("generator", "probe_cpu_cores", 3),
    ] {
        let samples = of(&readings, node, metric);
        assert!(samples.len() >= least, "{metric} of {node}: {}", samples.len());
    }
    assert!(sum(&of(&readings, "primary", "wal_bytes")) > 100_000.0);
    let transactions = processed(&output);
    let delta = &readings.deltas["primary"];
    assert!(delta.is_continuous);
    let updates = delta.calls(|query| query.starts_with("UPDATE pgbench_accounts"));
    assert_eq!(updates, Some(transactions));
    // Beside its transactions each client has its start, its end, and what pgbench itself asks.
    let surplus = delta.transactions().unwrap() as i64 - transactions as i64;
    assert!((1..=30).contains(&surplus), "{surplus} more commits than pgbench's");
    assert!(delta.hit_ratio().unwrap() > 0.9);
    assert!(delta.counter(&spec::metrics::WAL_BYTES).unwrap() > 0.0);
    assert_eq!(readings.notes, Vec::<String>::new());
    assert!(readings.cost.cpu_ns > 0 && readings.cost.cpu_ns < readings.cost.length_ns / 10);
    assert!(readings.cost.transactions["primary"] >= 8);
}

#[test]
fn what_sessions_wait_for_is_seen_and_ends() {
    let bench = Bench::start(&[]);
    let running = Probes::start(bench.config(), Instant::now()).unwrap();
    let mut client = bench.node.connect().unwrap();
    client.batch_execute("SELECT pg_sleep(2.5)").unwrap();
    // A whole second without the wait, and time for its sample.
    thread::sleep(Duration::from_millis(2_200));
    let readings = running.stop();
    let values = |metric: &str, label: &str| -> Vec<f64> {
        let samples = of(&readings, "primary", metric).into_iter();
        samples.filter(|sample| sample.label == label).map(|sample| sample.value).collect()
    };
    let sleeping = values("waiting_sessions", "Timeout:PgSleep");
    // A busy machine may begin the first second before the statement.
    assert!(sleeping.contains(&1.0), "{sleeping:?}");
    assert!(sleeping.ends_with(&[0.0]), "{sleeping:?}");
    assert!(values("sessions", "active").contains(&1.0));
    assert!(values("sessions", "idle").ends_with(&[1.0]));
}

#[test]
fn as_many_sessions_are_seen_as_are_at_work() {
    let bench = Bench::start(&[]);
    let burns = "DO $$ BEGIN LOOP END LOOP; END $$";
    // A leader and its workers, whose query holds them for long enough on any machine.
    let in_parallel = "SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; \
                       SET jit = off; SET min_parallel_table_scan_size = 0; \
                       SET min_parallel_index_scan_size = 0; \
                       SELECT sum(sqrt(a.aid + b.aid)) FROM pgbench_accounts a, pgbench_accounts b";
    let statements = ["SELECT pg_sleep(600)", "SELECT pg_sleep(600)", burns, in_parallel];
    let clients = statements.map(|_| bench.node.connect().unwrap());
    let running = Probes::start(bench.config(), Instant::now()).unwrap();
    thread::scope(|scope| {
        for (statement, mut client) in statements.into_iter().zip(clients) {
            scope.spawn(move || client.batch_execute(statement).expect_err("it is cancelled"));
        }
        let at_work = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' \
                       AND pid <> pg_backend_pid() AND query ~ '^SELECT pg_sleep|^DO|sqrt'";
        bench.node.poll_query_until(at_work, "6", Duration::from_secs(60)).unwrap();
        // Two whole seconds, wherever they begin, and time for their samples.
        thread::sleep(Duration::from_millis(4_200));
        let cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity \
                      WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
        bench.node.value(cancel).unwrap();
    });
    let readings = running.stop();
    let most = |label: &str| {
        let samples = of(&readings, "primary", "waiting_sessions").into_iter();
        let own = samples.filter(|sample| sample.label == label).map(|sample| sample.value);
        own.fold(0.0, f64::max)
    };
    // Whole seconds of one state: means of numbers that do not change.
    assert!((most("Timeout:PgSleep") - 2.0).abs() < 1e-9, "{}", most("Timeout:PgSleep"));
    assert!((3.6..=4.1).contains(&most("CPU")), "{}: one, a leader and two workers", most("CPU"));
}

#[test]
fn a_standby_is_seen_with_its_lag() {
    let bench = Bench::start(&[]);
    let directory = tempfile::tempdir().unwrap();
    let running = Probes::start(bench.config(), Instant::now()).unwrap();
    let mut receiver = Command::new(LAB.installation().program("pg_receivewal"))
        .arg("-D")
        .arg(directory.path())
        .args(["--synchronous", "-s", "1", "-d", &bench.node.endpoint().to_string()])
        .spawn()
        .unwrap();
    thread::sleep(Duration::from_millis(3_300));
    receiver.kill().unwrap();
    receiver.wait().unwrap();
    let readings = running.stop();
    for metric in ["replication_send_lag_bytes", "replication_flush_lag_bytes", "replication_sync"]
    {
        let samples = of(&readings, "primary", metric);
        assert!(samples.len() >= 2, "{metric}: {samples:?}");
        assert!(samples.iter().all(|sample| sample.label == "pg_receivewal"), "{samples:?}");
    }
    assert_eq!(sum(&of(&readings, "primary", "replication_sync")), 0.0);
}

/// Has a session's statistics told at once, in one transaction.
fn flush(client: &mut server::Client, major: u32) {
    if major < 15 {
        // Then a session tells by itself, but half a second apart, and to a collector.
        thread::sleep(Duration::from_millis(700));
        client.batch_execute("SELECT 1").unwrap();
        thread::sleep(Duration::from_millis(700));
        return;
    }
    // It needs a look into a table for that.
    let sql = "SELECT pg_stat_force_next_flush() FROM pg_database LIMIT 1";
    client.batch_execute(sql).unwrap();
}

#[test]
fn the_probes_own_transactions_are_counted_exactly() {
    let bench = Bench::start(&[]);
    let mut client = bench.node.connect().unwrap();
    let major = bench.node.installation().version().major;
    let check = |config: SamplerConfig, client: &mut server::Client, known: u64| {
        let running = Probes::start(config, Instant::now()).unwrap();
        for _ in 0..known {
            client.batch_execute("SELECT 1").unwrap();
        }
        thread::sleep(Duration::from_millis(2_200));
        flush(client, major);
        let readings = running.stop();
        // The flush, too, is a transaction of the client's.
        assert_eq!(readings.deltas["primary"].transactions(), Some(known + 1));
        readings
    };
    let readings = check(bench.config(), &mut client, 1234);
    assert!(readings.deltas["primary"].own_transactions > 0);

    client.batch_execute("CREATE DATABASE elsewhere").unwrap();
    let mut config = bench.config();
    config.servers[0].conninfo = bench.node.endpoint().with_database("elsewhere").to_string();
    flush(&mut client, major);
    let readings = check(config, &mut client, 77);
    assert_eq!(readings.deltas["primary"].own_transactions, 0);
    assert!(
        readings.notes.iter().any(|n| n.contains("pg_stat_statements")),
        "{:?}",
        readings.notes
    );
}

#[test]
fn snapshots_around_known_work_give_its_counts() {
    let bench = Bench::start(&[]);
    let mut client = bench.node.connect().unwrap();
    assert!(probe::reset_statements(&mut client).unwrap());
    let before = CounterSnapshot::take(&mut client, "postgres").unwrap();
    bench.pgbench(&["-n", "-S", "-c", "3", "-t", "100"]);
    assert!(probe::await_sessions_end(&mut client, "postgres", Duration::from_secs(5)).unwrap());
    let after = CounterSnapshot::take(&mut client, "postgres").unwrap();
    let delta = CounterSnapshot::delta(&before, &after);
    assert_eq!(delta.calls(|query| query.starts_with("SELECT abalance")), Some(300));
    let statement = &delta.statements.as_ref().unwrap();
    let select = statement.iter().find(|s| s.query.starts_with("SELECT abalance")).unwrap();
    assert_eq!((select.calls, select.rows), (300, 300));
    assert!(select.total_exec_ms > 0.0 && select.hit_ratio().unwrap() > 0.5);
    assert!(delta.counter(&spec::metrics::DB_TUPLES_FETCHED).unwrap() >= 300.0);
}

#[test]
fn cpu_of_a_busy_backend_is_the_nodes_also_after_its_end() {
    let bench = Bench::start(&[]);
    let root = bench.server().root_pid.unwrap();
    let before = probe::cpu_time_ns(root).unwrap();
    let running = Probes::start(bench.config(), Instant::now()).unwrap();
    let mut client = bench.node.connect().unwrap();
    client.batch_execute("SELECT count(*) FROM generate_series(1, 3000000)").unwrap();
    let backend: i32 = client.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
    let living = probe::cpu_time_ns(root).unwrap() - before;
    client.close();
    let gone = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {backend}");
    bench.node.poll_query_until(&gone, "0", Duration::from_secs(5)).unwrap();
    thread::sleep(Duration::from_millis(1_300));
    let ended = probe::cpu_time_ns(root).unwrap() - before;
    let readings = running.stop();

    assert!(living > 200_000_000, "{living} ns for counting three million rows");
    assert!(ended + 20_000_000 >= living, "{ended} ns after the end, {living} ns before");
    let sampled = sum(&of(&readings, "primary", "group_cpu_user_cores"))
        + sum(&of(&readings, "primary", "group_cpu_system_cores"));
    let difference = (sampled - ended as f64 / 1e9).abs();
    assert!(difference < 0.15, "{sampled} s sampled, {ended} ns counted");
    let own = sum(&of(&readings, "generator", "group_cpu_user_cores"));
    assert!(own < sampled, "the server's CPU is not the generator's");
}

#[test]
fn checkpoints_and_errors_become_marks_where_they_happened() {
    checkpoint_and_error(&Bench::start(&[("log_checkpoints", "on")]));
}

#[test]
fn a_csvlog_as_older_servers_write_it_gives_the_same_marks() {
    let bench = Bench::start(&[("log_checkpoints", "on"), ("log_destination", "csvlog")]);
    assert!(bench.node.log().with_extension("csv").exists());
    checkpoint_and_error(&bench);
}

fn checkpoint_and_error(bench: &Bench) {
    let origin = Instant::now();
    let mut config = bench.config();
    config.servers[0].log = bench.node.log().parent().map(PathBuf::from);
    let running = Probes::start(config, origin).unwrap();
    let mut client = bench.node.connect().unwrap();
    thread::sleep(Duration::from_millis(700));
    let checkpoint_from = origin.elapsed().as_secs_f64();
    client.batch_execute("UPDATE pgbench_accounts SET abalance = 1").unwrap();
    client.batch_execute("CHECKPOINT").unwrap();
    let checkpoint_to = origin.elapsed().as_secs_f64();
    client.batch_execute("SELECT 1/0").unwrap_err();
    let error_at = origin.elapsed().as_secs_f64();
    let readings = running.stop();

    let checkpoint = only_mark(&readings, MarkKind::Checkpoint);
    // From 19 on such a checkpoint is called fast.
    let causes = ["checkpoint (immediate force wait): ", "checkpoint (fast force wait): "];
    assert!(causes.iter().any(|cause| checkpoint.text.starts_with(cause)), "{checkpoint:?}");
    let [from, to] = [checkpoint.at, checkpoint.at.plus_ns(checkpoint.length_ns)];
    assert!(from.as_secs_f64() > checkpoint_from - 0.01, "{checkpoint:?} {checkpoint_from}");
    assert!(to.as_secs_f64() < checkpoint_to + 0.01, "{checkpoint:?} {checkpoint_to}");
    let error = only_mark(&readings, MarkKind::ServerError);
    assert_eq!(error.text, "ERROR 22012: division by zero");
    assert_eq!(error.node, "primary");
    let at = error.at.as_secs_f64();
    assert!(at > checkpoint_to - 0.01 && at < error_at + 0.01, "{error:?} before {error_at}");
}

fn only_mark(readings: &SamplerReadings, kind: MarkKind) -> &TimelineMark {
    let mut marks = readings.marks.iter().filter(|mark| mark.kind == kind);
    let mark = marks.next().unwrap_or_else(|| panic!("no {kind:?}: {:?}", readings.marks));
    assert!(marks.next().is_none(), "{:?}", readings.marks);
    mark
}

#[test]
fn autovacuum_and_lock_waits_become_marks() {
    let bench = Bench::start(&[
        ("autovacuum", "on"),
        ("autovacuum_naptime", "1s"),
        ("log_autovacuum_min_duration", "0"),
        ("log_lock_waits", "on"),
        ("deadlock_timeout", "100ms"),
    ]);
    let running = Probes::start(bench.config(), Instant::now()).unwrap();
    let mut holder = bench.node.connect().unwrap();
    let mut waiter = bench.node.connect().unwrap();
    holder.batch_execute("BEGIN; UPDATE pgbench_branches SET bbalance = 1").unwrap();
    let waiting = thread::spawn(move || {
        waiter.batch_execute("UPDATE pgbench_branches SET bbalance = 2").unwrap();
    });
    thread::sleep(Duration::from_millis(600));
    holder.batch_execute("COMMIT").unwrap();
    waiting.join().unwrap();
    holder.batch_execute("UPDATE pgbench_accounts SET abalance = abalance + 1").unwrap();
    let vacuumed = "SELECT count(*) FROM pg_stat_user_tables \
        WHERE relname = 'pgbench_accounts' AND autovacuum_count > 0";
    bench.node.poll_query_until(vacuumed, "1", Duration::from_secs(30)).unwrap();
    let readings = running.stop();

    let lock = only_mark(&readings, MarkKind::ServerError);
    assert!(lock.text.starts_with("lock wait: process "), "{lock:?}");
    let is_vacuum = |mark: &&TimelineMark| {
        mark.kind == MarkKind::Autovacuum
            && mark.text.starts_with("autovacuum of table \"postgres.public.pgbench_accounts\": ")
            && mark.text.ends_with(" rows removed")
    };
    assert!(readings.marks.iter().any(|mark| is_vacuum(&mark)), "{:?}", readings.marks);
}

#[test]
fn a_server_that_dies_and_comes_back_leaves_a_gap() {
    let mut bench = Bench::start(&[]);
    let origin = Instant::now();
    let running = Probes::start(bench.config(), origin).unwrap();
    thread::sleep(Duration::from_millis(2_500));
    bench.node.kill9().unwrap();
    thread::sleep(Duration::from_millis(2_500));
    bench.node.start().unwrap();
    running.watch_process("primary", bench.node.host_pid().unwrap() as u32);
    bench.pgbench(&["-n", "-c", "2", "-T", "3"]);
    let readings = running.stop();

    let times: Vec<f64> =
        of(&readings, "primary", "db_backends").iter().map(|s| s.at.as_secs_f64()).collect();
    let widest = times.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
    assert!((1.5..8.0).contains(&widest), "{times:?}");
    let gap = readings.notes.iter().find(|note| note.starts_with("primary: no samples from "));
    assert!(gap.is_some(), "{:?}", readings.notes);
    assert!(!readings.deltas["primary"].is_continuous);
    let restart = |text: &str| readings.marks.iter().any(|mark| mark.text.starts_with(text));
    assert!(restart("database system is ready to accept"), "{:?}", readings.marks);
    let cpu = of(&readings, "primary", "group_cpu_user_cores");
    assert!(cpu.last().unwrap().value > 0.0, "the new postmaster is accounted");
    let machine: Vec<f64> =
        of(&readings, "machine", "load_average").iter().map(|s| s.at.as_secs_f64()).collect();
    assert!(machine.windows(2).all(|pair| pair[1] - pair[0] < widest), "{machine:?}");
}

#[test]
fn a_paused_server_holds_up_no_other() {
    let mut bench = Bench::start(&[]);
    let running = Probes::start(bench.config(), Instant::now()).unwrap();
    thread::sleep(Duration::from_millis(1_300));
    bench.node.pause().unwrap();
    thread::sleep(Duration::from_millis(5_000));
    let stopping = Instant::now();
    let readings = running.stop();
    assert!(stopping.elapsed() < Duration::from_secs(10), "{:?}", stopping.elapsed());
    bench.node.resume().unwrap();
    let machine = of(&readings, "machine", "load_average");
    assert!(machine.len() >= 6, "{}", machine.len());
    assert!(!readings.deltas.contains_key("primary"));
    assert!(readings.notes.iter().any(|n| n.contains("no answer")), "{:?}", readings.notes);
}

#[test]
fn what_can_not_be_read_is_a_note() {
    let bench = Bench::start(&[]);
    let mut client = bench.node.connect().unwrap();
    client.batch_execute("CREATE ROLE plain LOGIN").unwrap();
    let mut config = bench.config();
    config.servers[0].conninfo =
        bench.node.endpoint().to_string().replace("user=postgres", "user=plain");
    config.servers[0].log = Some("/no/such/directory".into());
    let absent = |node: &str, conninfo: &str| WatchedServer {
        node: node.to_owned(),
        conninfo: conninfo.to_owned(),
        log: None,
        root_pid: None,
        horizon_every_s: None,
        ..bench.server()
    };
    config.servers.push(absent("gone", "host=/no/such/directory user=x"));
    config.servers.push(absent("odd", "nonsense"));
    let running = Probes::start(config, Instant::now()).unwrap();
    thread::sleep(Duration::from_millis(2_200));
    let readings = running.stop();

    assert!(of(&readings, "primary", "db_commits").len() >= 2);
    assert!(readings.deltas.contains_key("primary"));
    for expected in [
        "primary: log not followed: ",
        "primary: what other roles' sessions wait for is hidden",
        "gone: no samples from ",
        "gone: the server's own counts over the trial are unknown",
        "odd: read the conninfo of node odd: ",
    ] {
        let is_there = readings.notes.iter().any(|note| note.starts_with(expected));
        assert!(is_there, "{expected} in {:#?}", readings.notes);
    }
}

#[test]
fn residency_is_told_as_far_as_the_extensions_are_there() {
    let bench = Bench::start(&[]);
    let mut client = bench.node.connect().unwrap();
    let relations = ["pgbench_accounts", "pgbench_accounts_pkey", "parted", "no_such"];
    client
        .batch_execute(
            "CREATE TABLE parted (a int) PARTITION BY RANGE (a); \
             CREATE TABLE part PARTITION OF parted FOR VALUES FROM (0) TO (100000); \
             INSERT INTO parted SELECT generate_series(0, 9999); SELECT count(*) FROM parted",
        )
        .unwrap();
    let found = probe::residency(&mut client, &relations).unwrap();
    assert_eq!(found.relations.len(), 3);
    let unknown = |relation: &probe::RelationResidency| relation.in_memory().is_none();
    assert!(found.relations.iter().all(|relation| unknown(relation) && relation.bytes > 0));
    assert_eq!((found.notes.len(), found.unseen.len()), (1, 2), "{found:?}");

    client
        .batch_execute("CREATE SCHEMA \"Ext\"; CREATE EXTENSION pg_buffercache SCHEMA \"Ext\"")
        .unwrap();
    client.batch_execute("SELECT sum(abalance) FROM pgbench_accounts").unwrap();
    let found = probe::residency(&mut client, &relations).unwrap().relations;
    let accounts = found[0].shared_buffers.unwrap();
    assert!((0.9..=1.0).contains(&accounts), "{accounts}");
    assert!(found[2].shared_buffers.unwrap() > 0.9, "{found:?}");

    // Packaged apart from the server.
    let packaged = "SELECT FROM pg_available_extensions WHERE name = 'pgfincore'";
    if client.query_opt(packaged, &[]).unwrap().is_some() {
        client.batch_execute("CREATE EXTENSION pgfincore; CHECKPOINT").unwrap();
        let found = probe::residency(&mut client, &relations).unwrap();
        for relation in &found.relations {
            let share = relation.os_cache.unwrap();
            assert!((0.5..=1.0).contains(&share), "{relation:?}");
        }
        assert_eq!((found.notes.len(), found.unseen.len()), (1, 0), "{found:?}");
    }
}
