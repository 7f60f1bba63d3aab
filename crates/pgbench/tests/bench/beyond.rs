//! What pgbench does not have: searches, reconnecting, and outputs for other programs.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Server, ours, ours_until};
use load::LoadControl;
use testing::prometheus::Prometheus;

/// Four clients that take 50 ms each do 80 a second at most. A busy machine may take 10 ms longer.
#[test]
fn the_highest_rate_that_keeps_a_goal_is_found() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("sleep.sql");
    fs::write(&script, "select pg_sleep(0.05);\n").expect("a script");
    let (curve, json) = (folder.path().join("curve.csv"), folder.path().join("found.json"));
    let base = format!("-n -f {} -c 4 --warmup=0 --find-seconds=1", script.display());
    let find = |options: &str, goal: &str| {
        let mut arguments: Vec<String> =
            format!("{base} {options}").split_whitespace().map(str::to_owned).collect();
        arguments.push(goal.to_owned());
        ours_until(&server.environment("postgres"), &arguments, &LoadControl::new())
    };
    let files = format!("--curve={} --json={}", curve.display(), json.display());
    // In windows of a second the queue at the highest rate is short: a looser goal may hold there. A
    // neighbour's load may spoil one search, and not three.
    let mut searches = (0..3).map(|_| find(&format!("-T 2 {files}"), "--find-rate=p50 < 65ms"));
    let found = searches.find(|found| found.code == 0).expect("an answer");
    let line = found.out.lines().find(|line| line.starts_with("pgrig: found")).expect("an answer");
    let rate: f64 = line["pgrig: found".len()..].trim().split(' ').next().unwrap().parse().unwrap();
    // A queue of four at 40 % is short; at 100 % it grows without end.
    assert!((20.0..82.0).contains(&rate), "{found:?}");
    assert!(found.out.contains("\nduration: 2 s\n"), "the confirming run is shown: {found:?}");
    let csv = fs::read_to_string(&curve).expect("the curve");
    let windows: Vec<Vec<&str>> =
        csv.lines().skip(1).map(|line| line.split(',').collect()).collect();
    assert!(windows.iter().any(|window| window[2] == "true" && window[13] == "true"), "{csv}");
    assert!(windows.iter().any(|window| window[13] == "false"), "{csv}");
    let text = fs::read_to_string(&json).expect("the document");
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let faults = testing::schema::faults(&crate::common::schema(), &document);
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(document["search"]["held"].is_number(), "{}", document["search"]);
}

/// What there is to say where a search finds no boundary: exit code 2 and what to do.
#[test]
fn a_goal_may_hold_nowhere_or_everywhere() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("sleep.sql");
    fs::write(&script, "select pg_sleep(0.01);\n").expect("a script");
    let check = |goal: &str, begins: &str, ends: &str| {
        // Poisson's bursts are more than the clients can do at their highest rate.
        let options: &[&str] =
            if goal.starts_with("--find-rate") { &["--arrivals=constant"] } else { &[] };
        let base = format!("-n -f {} -c 4 -T 1 --warmup=0 --find-seconds=1", script.display());
        let mut arguments: Vec<String> = base.split_whitespace().map(str::to_owned).collect();
        arguments.extend(options.iter().map(|option| (*option).to_owned()));
        arguments.push(goal.to_owned());
        let search =
            || ours_until(&server.environment("postgres"), &arguments, &LoadControl::new());
        // A busy machine may not do again at a rate what it did as fast as it could; a boundary is
        // then found.
        let ended = (0..5).map(|_| search()).find(|ended| ended.code != 0).expect("an end");
        assert_eq!(ended.code, 2, "{goal}: {ended:?}");
        let last = ended.err.lines().last().unwrap_or_default();
        // On a busy machine it says so as well.
        let last = last.split("; but in the last window ").next().unwrap_or_default();
        assert!(last.starts_with(begins) && last.ends_with(ends), "{goal}: {last:?}");
        assert!(!ended.out.contains("pgrig: found"), "{goal}: {ended:?}");
    };
    let limits = " ms): give limits that this server can keep";
    let more = ": give more clients (-c)";
    thread::scope(|scope| {
        for (goal, begins, ends) in [
            (
                "--find-clients=p50 < 1ms",
                "pgbench: error: \"p50 < 1ms\" holds nowhere, not even at 1 client (p50 ",
                limits,
            ),
            (
                "--find-clients=p99 < 10s and failures < 1%",
                "pgbench: error: \"p99 < 10s and failures < 1%\" holds at everything that can be \
                 sent, up to 4 clients",
                more,
            ),
            (
                "--find-rate=mean < 1ms and failures < 1%",
                "pgbench: error: \"mean < 1ms and failures < 1%\" holds nowhere, not even at ",
                " %): give limits that this server can keep",
            ),
            (
                "--find-rate=p50 < 10s",
                "pgbench: error: \"p50 < 10s\" holds at everything that can be sent, up to ",
                more,
            ),
        ] {
            let check = &check;
            scope.spawn(move || check(goal, begins, ends));
        }
    });
}

/// Windows of a search draw keys of their own: none is drawn twice from so many, but by the same seed.
#[test]
fn each_window_of_a_search_draws_its_own_numbers() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("draws.sql");
    let draws = "\\set key random(1, 1000000000000000)\ninsert into TABLE values (:key);\n\
                 select pg_sleep(0.02);\n";
    for (table, goal) in
        [("rates", "--find-rate=p50 < 10s"), ("counts", "--find-clients=p50 < 10s")]
    {
        server.execute("postgres", &format!("create table {table} (key bigint)"));
        fs::write(&script, draws.replace("TABLE", table)).expect("a script");
        let base = format!("-n -f {} -c 3 -T 1 --warmup=0 --find-seconds=1", script.display());
        let mut arguments: Vec<String> =
            format!("{base} --random-seed=7").split_whitespace().map(str::to_owned).collect();
        arguments.push(goal.to_owned());
        let ended = ours_until(&server.environment("postgres"), &arguments, &LoadControl::new());
        let windows = ended.err.matches("hold").count();
        assert!(windows > 2, "{ended:?}");
        let sql = format!("select count(*) - count(distinct key) from {table}");
        assert_eq!(server.value("postgres", &sql), "0", "{goal}: {ended:?}");
    }
}

#[test]
fn a_search_whose_clients_are_aborted_has_no_answer() {
    let server = Server::start(&[]);
    let script = tempfile::NamedTempFile::new().expect("a file");
    fs::write(script.path(), "select pg_terminate_backend(pg_backend_pid());").expect("written");
    let line = format!("-n -T 2 -f {} --find-clients=p99<1s", script.path().display());
    let ended = server.ours("postgres", &line);
    assert_eq!(ended.code, 2, "{ended:?}");
    let why = "pgrig: search ended after 0 windows, as 1 client was aborted; none has kept \
               p99<1s: run it again, or with --reconnect";
    assert!(ended.err.contains(why), "{ended:?}");
    assert!(!ended.err.contains("does not hold"), "{ended:?}");
}

/// TPC-C's conditions hold after the mix has run in each protocol, and one that does not is named.
#[test]
fn an_order_entry_company_stays_consistent() {
    let server = Server::start(&[]);
    let missing = server.ours("postgres", "-b tpcc-like -t 1");
    assert_eq!(missing.code, 1, "{missing:?}");
    let hint = "(\"pgbench -i -b tpcc-like\") in database \"postgres\".";
    assert!(missing.err.contains(hint), "{missing:?}");
    let made = server.ours("postgres", "-i -b tpcc-like");
    assert_eq!(made.code, 0, "{made:?}");
    let check = |options: &str| {
        server.ours("postgres", &format!("-b tpcc-like -c 3 -t 40 -n --check {options}"))
    };
    for protocol in ["simple", "extended", "prepared"] {
        let ended = check(&format!("-M {protocol}"));
        assert_eq!(ended.code, 0, "{ended:?}");
        for line in [
            "\nscaling factor: 1\n",
            "\nnumber of transactions actually processed: 120/120\n",
            "\nSQL script 1: <builtin: TPC-C-like new order>\n",
            "\npgrig: check              11 of 11 conditions hold\n",
        ] {
            assert!(ended.out.contains(line), "no {line:?} in {ended:?}");
        }
    }
    server.execute("postgres", "update tpcc_district set d_ytd = d_ytd + 1 where d_id = 4");
    let ended = check("");
    assert_eq!(ended.code, 2, "{ended:?}");
    for line in [
        "the tables are not consistent: 1: w_ytd = sum(d_ytd) (violated 1 times)\n",
        "the tables are not consistent: 9: d_ytd = sum(h_amount) (violated 1 times)\n",
    ] {
        assert!(ended.err.contains(line), "no {line:?} in {ended:?}");
    }
    assert!(ended.out.contains("9 of 11 conditions hold"), "{ended:?}");
}

/// What always holds of pgbench's own scripts, as changes over the run: at any scale, and after other runs.
#[test]
fn sums_of_pgbenchs_tables_change_together() {
    let server = Server::start(&[]);
    let made = server.ours("postgres", "-i -s 2");
    assert_eq!(made.code, 0, "{made:?}");
    let check = |options: &str, code: u8, says: &str| {
        let ended = server.ours("postgres", &format!("-c 3 -t 30 --check {options}"));
        assert_eq!(i64::from(ended.code), i64::from(code), "{options}: {ended:?}");
        assert!((ended.out.clone() + &ended.err).contains(says), "{options}: {ended:?}");
    };
    // A teller and a branch are drawn one by one, and -n keeps the history of earlier runs.
    check("", 0, "check              4 of 4 conditions hold\n");
    check("-n", 0, "check              4 of 4 conditions hold\n");
    check("-N", 0, "check              4 of 4 conditions hold\n");
    check("-S", 0, "check              4 of 4 conditions hold\n");
    check("-b tpcb@1 -b simple@1", 0, "check              3 of 3 conditions hold\n");
    let script = tempfile::NamedTempFile::new().expect("a file");
    fs::write(script.path(), "select 1;").expect("written");
    check(
        &format!("-b tpcb -f {}", script.path().display()),
        0,
        "not judged: what scripts of your own",
    );
    // A server that forgets a part of the history.
    server.execute(
        "postgres",
        "create function forget() returns trigger language plpgsql as 'begin if new.aid % 2 = 0 then return null; \
         end if; return new; end'; create trigger forget before insert on pgbench_history for each row execute \
         function forget()",
    );
    check("", 2, "sum(abalance) changes as sum(delta) of the history (they changed by ");
}

#[test]
fn a_search_needs_a_window_and_no_rate() {
    for (options, why) in [
        (
            "--find-rate=p99<1ms",
            "--find-rate, --find-clients and --capacity need the duration of a window (-T)",
        ),
        ("--find-rate=p99<1ms -T 5 -R 10", "--find-rate looks for the rate itself: leave out -R"),
        ("--find-clients=p99<1ms -T 5 -l", "cannot be used with a log (-l)"),
        ("--find-rate=p99<1 -T 5", "invalid goal \"p99<1\": expecting us, ms or s"),
        (
            "--find-rate=p99<1ms -T 5 --find-clients=p99<1ms",
            "--find-rate and --find-clients cannot be used at the same time",
        ),
        ("--curve=x -T 5", "allowed only with --find-rate, --find-clients or --capacity"),
        ("--capacity=p99<1ms -T 5", "--capacity needs at least 6 clients (-c)"),
        ("--capacity=p99<1ms -c 8", "need the duration of a window (-T)"),
        ("--capacity=p99<1ms -c 8 -T 5 -R 9", "--capacity measures as fast as the clients can"),
        (
            "--capacity=p99<1ms -c 8 -T 5 --find-rate=p99<1ms",
            "--capacity measures loads of its own",
        ),
        ("--capacity=p99<1ms -c 8 -T 5 --server-cpus=1,2", "at least 5 different ones are needed"),
        (
            "--capacity=p99<1ms -c 8 -T 5 --server-cpus=1,2,2,3,4",
            "at least 5 different ones are needed",
        ),
        (
            "--capacity=p99<1ms -c 8 -T 5 --server-cpus=1,2,3,4,5",
            "needs the command that changes them",
        ),
        ("-T 5 --server-cpus=1,2,3,4,5 --server-cpus-command=x", "allowed only with --capacity"),
        (
            "--capacity=p99<1ms -c 8 -T 5 --server-cpus=1,2,3,4,5 --server-cpus-command=x",
            "needs {cpus} or {percent} where the number belongs",
        ),
    ] {
        let ended = ours(&[], options);
        assert_eq!(ended.code, 1, "{options}: {ended:?}");
        assert!(ended.err.contains(why), "{options}: {ended:?}");
    }
}

/// Clients that sleep are slowed down by nobody: twice as many do twice as much. A number of CPUs is what a file says.
#[test]
fn capacity_is_measured_over_clients_and_cpus() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().expect("a folder");
    let (script, json) = (folder.path().join("sleep.sql"), folder.path().join("found.json"));
    fs::write(&script, "select pg_sleep(0.1);\n").expect("a script");
    let sweep = |more: &[String]| {
        let base =
            format!("-n -f {} -c 6 -T 1 --warmup=0 --json={}", script.display(), json.display());
        let arguments: Vec<String> =
            base.split(' ').map(str::to_owned).chain(more.iter().cloned()).collect();
        ours_until(&server.environment("postgres"), &arguments, &LoadControl::new())
    };
    let found = sweep(&["--capacity=p50 < 10s".to_owned()]);
    assert_eq!(found.code, 0, "{found:?}");
    assert!(found.out.contains("a second keep p50 < 10s, with 6 clients"), "{found:?}");
    for text in ["pgrig: 1 client ", "pgrig: scaling ", "pgrig: more clients       9 clients: "] {
        assert!(found.out.contains(text), "no {text:?}: {found:?}");
    }
    let text = fs::read_to_string(&json).expect("the document");
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let faults = testing::schema::faults(&crate::common::schema(), &document);
    assert!(faults.is_empty(), "{faults:#?}");
    let sweep_found = &document["capacity"]["sweeps"][0];
    assert_eq!(sweep_found["loads"].as_array().map(Vec::len), Some(5), "{sweep_found}");
    assert_eq!(sweep_found["best"]["clients"], 6.0, "{sweep_found}");

    // A command that fails ends the sweep, and the first number is set again in any case.
    let given = folder.path().join("given");
    let command =
        format!("echo {{cpus}} {{percent}} >>{0}; test {{percent}} -ne 150", given.display());
    let found = sweep(&[
        "--capacity=p50 < 10s".to_owned(),
        "--server-cpus=2,0.5,0.75,1,1.5".to_owned(),
        format!("--server-cpus-command={command}"),
    ]);
    assert_eq!(found.code, 1, "{found:?}");
    assert!(
        found.err.contains("could not give the server 1.5 CPUs by --server-cpus-command"),
        "{found:?}"
    );
    let given = fs::read_to_string(&given).expect("what was given");
    assert!(given.ends_with("1.5 150\n2 200\n"), "{given}");
}

#[test]
fn a_lost_connection_is_made_again() {
    let server = Server::start(&[]);
    assert_eq!(server.ours("postgres", "-i -q").code, 0);
    let environment = server.environment("postgres");
    let run = thread::spawn(move || ours(&environment, "-S -n -c 4 -j 2 -T 4 --reconnect"));
    let clients = "from pg_stat_activity where query like 'SELECT abalance %'";
    let deadline = Instant::now() + Duration::from_secs(20);
    while server.value("postgres", &format!("select count(*) {clients}")) != "4" {
        assert!(Instant::now() < deadline, "four clients never were there at once");
        thread::sleep(Duration::from_millis(20));
    }
    server.value("postgres", &format!("select count(pg_terminate_backend(pid)) {clients}"));
    let ended = run.join().expect("it ends");
    assert_eq!(ended.code, 0, "{ended:?}");
    let line = ended.out.lines().find(|line| line.starts_with("pgrig: without service"));
    assert!(line.is_some_and(|line| line.contains("connected again × 4")), "{ended:?}");
}

/// Two servers stand for a primary and its standby: the second takes writes only after the first is
/// gone.
#[test]
fn a_load_follows_a_failover() {
    let mut first = Server::start(&[]);
    let second = Server::start(&[("default_transaction_read_only", "on")]);
    assert_eq!(first.ours("postgres", "-i -q").code, 0);
    let mut environment = second.environment("postgres");
    environment.push(("PGOPTIONS".to_owned(), "-c default_transaction_read_only=off".to_owned()));
    assert_eq!(ours(&environment, "-i -q").code, 0);

    let of = |server: &Server, name: &str| {
        let all = server.environment("postgres");
        all.into_iter().find(|(known, _)| known == name).expect(name).1
    };
    let both = |name: &str| format!("{},{}", of(&first, name), of(&second, name));
    let mut environment = first.environment("postgres");
    for name in ["PGHOST", "PGPORT"] {
        let value = both(name);
        environment.retain(|(known, _)| known != name);
        environment.push((name.to_owned(), value));
    }
    environment.push(("PGTARGETSESSIONATTRS".to_owned(), "read-write".to_owned()));
    let run = thread::spawn(move || ours(&environment, "-n -c 2 -T 6 --reconnect"));
    let count = "select count(*) from pgbench_history";
    let deadline = Instant::now() + Duration::from_secs(20);
    while first.value("postgres", count) == "0" {
        assert!(Instant::now() < deadline, "the first server got no transaction");
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(second.value("postgres", count), "0", "the second is read-only");
    first.node.kill9().expect("it dies");
    second.value("postgres", "alter system set default_transaction_read_only = off");
    second.value("postgres", "select pg_reload_conf()");
    let ended = run.join().expect("it ends");
    assert_eq!(ended.code, 0, "{ended:?}");
    let line = ended.out.lines().find(|line| line.starts_with("pgrig: without service"));
    assert!(line.is_some_and(|line| line.contains("connected again × ")), "{ended:?}");
    assert_ne!(second.value("postgres", count), "0", "the load goes on: {ended:?}");
}

/// The rig itself, against a server that does nothing, can do more than against PostgreSQL.
/// The transactions sleep on the server: a machine that is busy during the baseline does not turn the two round.
#[test]
fn a_baseline_is_the_ceiling() {
    let server = Server::start(&[]);
    assert_eq!(server.ours("postgres", "-i -q").code, 0);
    let folder = tempfile::tempdir().expect("a folder");
    let (json, script) = (folder.path().join("run.json"), folder.path().join("script.sql"));
    let text = "\\set aid random(1, 100000)\nBEGIN;\n\
        UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;\n\
        SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\nSELECT pg_sleep(0.02);\nEND;\n";
    fs::write(&script, text).expect("a script");
    for protocol in ["simple", "extended", "prepared"] {
        let line = format!(
            "-n -f {} -c 4 -t 20 -M {protocol} --baseline --json={}",
            script.display(),
            json.display()
        );
        let ended = server.ours("postgres", &line);
        assert_eq!(ended.code, 0, "{ended:?}");
        let line = ended.out.lines().find(|line| line.starts_with("pgrig: baseline"));
        assert!(line.is_some_and(|line| line.contains("a second at most")), "{ended:?}");
        let text = fs::read_to_string(&json).expect("the file");
        let told: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let ceiling = told.pointer("/baseline/transactions_per_second").unwrap().as_f64().unwrap();
        let done = told.pointer("/pgbench_way/tps").unwrap().as_f64().unwrap();
        assert!(ceiling > done, "{protocol}: {ceiling} against {done}");
    }
}

#[test]
fn metrics_are_written_and_served() {
    let server = Server::start(&[]);
    assert_eq!(server.ours("postgres", "-i -q").code, 0);
    let folder = tempfile::tempdir().expect("a folder");
    let (metrics, influx) = (folder.path().join("bench.prom"), folder.path().join("bench.lp"));
    let line =
        format!("-S -n -c 2 -t 50 --metrics={} --influx={}", metrics.display(), influx.display());
    assert_eq!(server.ours("postgres", &line).code, 0);
    let text = fs::read_to_string(&metrics).expect("metrics");
    assert!(text.contains("\npgrig_transactions_total 100\n"), "{text}");
    assert!(text.ends_with("# EOF\n"), "{text}");
    let points = fs::read_to_string(&influx).expect("points");
    assert!(
        points.starts_with("pgrig_bench,script=<builtin:\\ select\\ only> transactions="),
        "{points}"
    );

    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its number");
    let environment = server.environment("postgres");
    let control = LoadControl::new();
    let handle = control.clone();
    let run = thread::spawn(move || {
        let line = format!("-S -n -c 2 -T 60 --interval=100 --metrics={free}");
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        ours_until(&environment, &arguments, &handle)
    });
    let deadline = Instant::now() + Duration::from_secs(20);
    let answer = loop {
        let answer = fetch(free, "/metrics").unwrap_or_default();
        let counts = answer.lines().find_map(|line| line.strip_prefix("pgrig_transactions_total "));
        if counts.and_then(|count| count.parse::<u64>().ok()).is_some_and(|count| count > 0) {
            break answer;
        }
        assert!(Instant::now() < deadline, "nothing was served: {answer}");
        thread::sleep(Duration::from_millis(20));
    };
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("application/openmetrics-text; version=1.0.0"), "{answer}");
    let missing = fetch(free, "/nosuch").expect("an answer");
    assert!(missing.starts_with("HTTP/1.1 404 "), "{missing}");
    control.interrupt();
    assert_eq!(run.join().expect("it ends").code, 130);
}

/// The distribution's Prometheus takes what is served, and the dashboard's queries have answers.
#[test]
fn prometheus_scrapes_the_metrics() {
    let folder = tempfile::tempdir().expect("a folder");
    let metrics = testing::prometheus::free_address();
    let Some(prometheus) = Prometheus::scraping(folder.path(), &metrics.to_string()) else {
        return testing::skip::because("there is no prometheus");
    };
    let server = Server::start(&[]);
    assert_eq!(server.ours("postgres", "-i -q").code, 0);
    let environment = server.environment("postgres");
    let control = LoadControl::new();
    let handle = control.clone();
    let run = thread::spawn(move || {
        let line = format!("-S -n -c 2 -T 300 -R 50 --interval=100 --metrics={metrics}");
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        ours_until(&environment, &arguments, &handle)
    });
    let board = include_str!("../../../../docs/grafana/pgrig-load.json");
    // Those of run and compare, and one that has samples only after an error.
    prometheus.answers(board, &["pgrig_run_", "pgrig_compare_", "pgrig_errors_"]);
    control.interrupt();
    assert_eq!(run.join().expect("it ends").code, 130);
}

fn fetch(address: std::net::SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
