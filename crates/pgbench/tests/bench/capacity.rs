//! `--capacity` behind a PgBouncer of the rig's (`--pool-sizes`), and on a server of the rig's (`--own-server`).

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Ended, Server, ours, ours_until};
use lab::Listen;
use load::LoadControl;

/// Arguments of a line, and one more, which may have spaces.
fn words(line: &str, more: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).chain([more.to_owned()]).collect()
}

/// The PgBouncers that this process has started and that run.
fn poolers() -> usize {
    let table = os::processes::all().expect("the process table");
    let own = std::process::id().cast_signed();
    let is_pooler = |pid: &i32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim() == "pgbouncer"
    };
    os::processes::tree(&table, own).iter().filter(|pid| is_pooler(pid)).count()
}

/// Clients that sleep do as much as the pool has connections, whatever the machine does. The server asks for a password,
/// which is in no command line.
#[test]
fn the_smallest_pool_that_is_enough_is_found() {
    let server = Server::start_on(&[], Listen::Loopback);
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("sleep.sql");
    fs::write(&script, "select pg_sleep(0.02);\n").expect("a script");
    let (json, curve) = (folder.path().join("found.json"), folder.path().join("curve.csv"));
    let line = format!(
        "-n -f {} -c 8 -T 1 --warmup=0 --pool-sizes=8,2,4 --json={} --curve={}",
        script.display(),
        json.display(),
        curve.display()
    );
    let arguments = words(&line, "--capacity=p50 < 10s");
    let found = ours_until(&server.environment("postgres"), &arguments, &LoadControl::new());
    assert_eq!(found.code, 0, "{found:?}");
    let answer = "pgrig: found              a pool of 8 is enough for 8 clients and p50 < 10s: ";
    assert!(found.out.contains(answer), "{found:?}");
    for text in [
        "; a pool of 4 does 0.",
        "; no larger one was tried",
        "pgrig: pool of 2 ",
        ": not enough\n",
    ] {
        assert!(found.out.contains(text), "no {text:?}: {found:?}");
    }
    assert!(found.out.contains("pgrig: pooler             PgBouncer "), "{found:?}");
    let text = fs::read_to_string(&json).expect("the document");
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let faults = testing::schema::faults(&crate::common::schema(), &document);
    assert!(faults.is_empty(), "{faults:#?}");
    assert_eq!(document["pools"]["enough"], 8, "{}", document["pools"]);
    assert_eq!(document["pools"]["sizes"][0]["verdict"], "not enough", "{}", document["pools"]);
    let csv = fs::read_to_string(&curve).expect("the windows");
    assert!(csv.starts_with("pool_size,") && csv.lines().count() == 25, "{csv}");
    assert_eq!(poolers(), 0);
}

#[test]
fn what_a_pool_cannot_serve_is_refused() {
    let server =
        Server::start(&[("max_connections", "20"), ("superuser_reserved_connections", "3")]);
    assert_eq!(server.ours("postgres", "-i -q").code, 0);
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("set.sql");
    fs::write(&script, "select 1;\nset work_mem = '1MB';\n").expect("a script");
    let base = "-n -c 40 -T 1 --warmup=0 --capacity=p50<10s";
    let run = |more: &str| -> Ended { server.ours("postgres", &format!("{base} {more}")) };
    let check = |more: &str, why: &str| {
        let ended = run(more);
        assert_eq!(ended.code, 1, "{more}: {ended:?}");
        assert!(ended.err.contains(why), "{more}: {ended:?}");
    };
    check(
        "-S --pool-sizes=5,40",
        "the server has room for 17 more connections, too few for the pools",
    );
    check(
        &format!("-f {} --pool-sizes=2,4", script.display()),
        "set.sql:2: SET belongs to a session",
    );
    let mut environment = server.environment("postgres");
    environment.push(("PGOPTIONS".to_owned(), "-c work_mem=1MB".to_owned()));
    let ended = ours(&environment, &format!("{base} -S --pool-sizes=2,4"));
    assert!(
        ended.code == 1 && ended.err.contains("\"options\" of the connection string"),
        "{ended:?}"
    );
    let mut environment = server.environment("postgres");
    for (_, value) in environment.iter_mut().filter(|(name, _)| name == "PGHOST") {
        *value = format!("{value},{value}");
    }
    let ended = ours(&environment, &format!("{base} -S --pool-sizes=2,4"));
    assert!(
        ended.code == 1 && ended.err.contains("needs one server, and 2 are named"),
        "{ended:?}"
    );
    if lab::find::pgbouncer(None).is_ok_and(|program| !program.has_prepared_statements()) {
        check(
            "-S -M prepared --pool-sizes=2,4",
            "keeps no prepared statements in transaction mode",
        );
    }
}

#[test]
fn options_of_pools_and_own_servers_are_checked() {
    for (options, why) in [
        ("-c 8 -T 5 --pool-sizes=2,4", "--pool-sizes is allowed only with --capacity"),
        ("--capacity=p99<1s -c 8 -T 5 --pool-sizes=4", "expecting auto, or two or more different"),
        (
            "--capacity=p99<1s -c 8 -T 5 --pool-sizes=4,4",
            "expecting auto, or two or more different",
        ),
        (
            "--capacity=p99<1s -c 8 -T 5 --pool-sizes=0,4",
            "expecting auto, or two or more different",
        ),
        (
            "--capacity=p99<1s -c 8 -T 5 --pool-sizes=some",
            "expecting auto, or two or more different",
        ),
        (
            "--capacity=p99<1s -c 8 -T 5 --pool-sizes=4,9",
            "has more connections than there are clients",
        ),
        (
            "--capacity=p99<1s -c 8 -T 5 --pool-sizes=4,8 --server-cpus=1,2,3,4,5 --server-cpus-command={cpus}",
            "cannot be used together",
        ),
        ("--capacity=p99<1s -c 8 -T 5 --pool-sizes=4,8 --hosts=x", "leave out --hosts"),
        ("-S --own-server", "--own-server needs the scale of its tables (-s)"),
        ("-S --own-server -s 1 -h db1", "leave out DBNAME, -h, -p and -U"),
        ("-S --own-server -s 1 mydb", "leave out DBNAME, -h, -p and -U"),
        ("-b tpcc-like --own-server -s 1", "leave out tpcc-like"),
        (
            "--capacity=p99<1s -c 8 -T 5 --own-server -s 1 --server-cpus=1,2,3,4,5 --server-cpus-command={cpus}",
            "leave it out with --own-server",
        ),
    ] {
        let ended = ours(&[], options);
        assert_eq!(ended.code, 1, "{options}: {ended:?}");
        assert!(ended.err.contains(why), "{options}: {ended:?}");
    }
}

/// The environment leads elsewhere, and nothing of that server is touched.
#[test]
fn a_server_is_built_and_its_cpus_are_limited() {
    let elsewhere = [("PGSERVICE".to_owned(), "nowhere".to_owned())];
    let ended = ours(&elsewhere, "--own-server -s 2 -S -n -c 2 -t 10");
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.out.contains("scaling factor: 2\n"), "{ended:?}");
    assert!(
        ended.err.contains("pgrig: server            built for this run: PostgreSQL "),
        "{ended:?}"
    );
    assert!(!ended.err.contains("scale option ignored"), "{ended:?}");

    let sweep = "--own-server -s 1 -S -n -c 6 -T 1 --warmup=0 --capacity=p99<10s";
    let ended = ours(&[], &format!("{sweep} --server-cpus=1,2,3,4,100000"));
    assert!(ended.code == 1 && ended.err.contains("CPUs of this machine"), "{ended:?}");
    if let Err(error) = lab::machine::cpu_limits() {
        let ended = ours(&[], &format!("{sweep} --server-cpus=0.2,0.3,0.4,0.6,0.8"));
        let why = "the CPUs of a server cannot be limited here";
        assert!(ended.code == 1 && ended.err.contains(why), "{ended:?}");
        return testing::skip::because(error);
    }
    // A whole sweep would take a minute: it is interrupted in the middle.
    let control = LoadControl::new();
    let (ended, began) = thread::scope(|scope| {
        let interruption = scope.spawn(|| {
            thread::sleep(Duration::from_secs(12));
            control.interrupt();
            Instant::now()
        });
        let arguments = words(sweep, "--server-cpus=0.2,0.3,0.4,0.6,0.8");
        let ended = ours_until(&[], &arguments, &control);
        (ended, interruption.join().expect("it ends"))
    });
    assert!(ended.code == 2 || ended.code == 130, "{ended:?}");
    assert!(ended.err.contains(" on 0."), "{ended:?}");
    assert!(began.elapsed() < Duration::from_secs(10));
    let group = format!("/sys/fs/cgroup/cpu/pgrig-{}-0", std::process::id());
    assert!(!Path::new(&group).exists(), "{group} is left");
}
