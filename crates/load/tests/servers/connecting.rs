//! Ways in: sockets, passwords, several hosts, budgets.

use std::{fs, net::TcpListener, time::Instant};

use load::{ConnectionMode, LoadError, LoadLimit};

use crate::{
    door::Door,
    support::{Server, plan, run, workload},
};

/// One transaction of each client.
fn once(conninfo: &str, clients: u32) -> Result<load::LoadOutcome, LoadError> {
    run(&plan(workload(conninfo, "SELECT 1;\n", clients), LoadLimit::Transactions(1)))
}

fn check(conninfo: &str) {
    let outcome = once(conninfo, 3).unwrap_or_else(|error| panic!("{conninfo}: {error}"));
    assert_eq!(outcome.workloads[0].counts_total.transactions, 3);
    assert_eq!(outcome.connecting.count, 3);
}

fn fails(conninfo: &str) -> (String, Option<String>) {
    match once(conninfo, 3) {
        Err(error) => (error.to_string(), error.hint()),
        Ok(_) => panic!("{conninfo} lets in"),
    }
}

/// Each connection of a load that connects for each transaction costs the client the keys of its password, as
/// pgbench; but not where they are cached. CPU time is told apart on a busy machine, too.
#[test]
fn keys_are_derived_as_often_as_pgbench_derives_them() {
    let server = Server::start(&[]);
    server.execute(
        "SET password_encryption = 'scram-sha-256'; CREATE ROLE keyed LOGIN PASSWORD 'secret'",
    );
    server.admit("host all keyed 127.0.0.1/32 scram-sha-256");
    let tcp = format!("host=127.0.0.1 port={} dbname=postgres sslmode=disable", server.port());
    let cpu_ns = |caches_keys| {
        let conninfo = format!("{tcp} user=keyed password=secret");
        let mut workload = workload(&conninfo, "SELECT 1;\n", 1);
        (workload.connect_each, workload.caches_keys) = (true, caches_keys);
        let outcome = run(&plan(workload, LoadLimit::Transactions(40))).expect("it gets in");
        assert_eq!(outcome.connecting.count, 40);
        outcome.generator.cpu_ns
    };
    let (derived, cached) = (cpu_ns(false), cpu_ns(true));
    assert!(derived > 2 * cached, "{derived} ns of CPU, {cached} ns with a cache");
}

#[test]
fn sockets_and_passwords() {
    let server = Server::start(&[]);
    server.execute(
        "SET password_encryption = 'md5'; CREATE ROLE by_md5 LOGIN PASSWORD 'secret';
         SET password_encryption = 'scram-sha-256';
         CREATE ROLE by_scram LOGIN PASSWORD 'secret'; CREATE ROLE by_password LOGIN PASSWORD 'secret'",
    );
    server.admit(
        "host all by_md5 127.0.0.1/32 md5\nhost all by_scram 127.0.0.1/32 scram-sha-256\n\
         host all by_password 127.0.0.1/32 password\nhost all rejected 127.0.0.1/32 reject",
    );
    check(&server.conninfo());
    check(&server.tcp());
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let uid = server.lab.user().uid.to_string();
    let owner = users.lines().find(|line| line.split(':').nth(2) == Some(&uid)).unwrap();
    let owner = owner.split(':').next().unwrap();
    check(&format!("{} requirepeer={owner}", server.conninfo()));
    let (message, _) = fails(&format!("{} requirepeer=somebody", server.conninfo()));
    let why =
        format!("requirepeer specifies \"somebody\", but actual peer user name is \"{owner}\"");
    assert!(message.ends_with(&why), "{message}");
    let tcp = format!("host=127.0.0.1 port={} dbname=postgres sslmode=disable", server.port());
    for role in ["by_md5", "by_scram", "by_password"] {
        check(&format!("{tcp} user={role} password=secret"));
        let (message, hint) = fails(&format!("{tcp} user={role} password=wrong"));
        let place = format!("connection to server at \"127.0.0.1\", port {} failed", server.port());
        assert_eq!(
            message,
            format!("{place}: FATAL:  password authentication failed for user \"{role}\"")
        );
        assert_eq!(
            hint.as_deref(),
            Some("give the password in PGPASSWORD or in a password file (~/.pgpass)")
        );
    }
    let (message, _) = fails(&format!("{tcp} user=by_scram"));
    assert!(message.ends_with("fe_sendauth: no password supplied"), "{message}");
    let (message, _) = fails(&format!("{tcp} user=rejected"));
    assert!(message.contains("pg_hba.conf rejects connection"), "{message}");
}

#[test]
fn the_settings_of_a_workload_hold_in_its_sessions() {
    let server = Server::shared();
    let script = "SELECT 1 / (current_setting('work_mem') = '77kB')::int;\n";
    let mut workload = workload(&server.conninfo(), script, 2);
    workload.session = vec![("work_mem".to_owned(), "77kB".to_owned())];
    let outcome = run(&plan(workload, LoadLimit::Transactions(1))).unwrap();
    assert_eq!(outcome.workloads[0].counts_total.transactions, 2);
}

#[test]
fn hosts_are_tried_in_order_and_a_refusal_is_an_answer() {
    let server = Server::shared();
    server.execute("CREATE ROLE picky LOGIN PASSWORD 'secret'");
    server.execute("CREATE DATABASE read_only");
    server.execute("ALTER DATABASE read_only SET default_transaction_read_only = on");
    let directory = server.socket_directory();
    let port = server.port();
    // No server listens in the first directory.
    check(&format!("host=/nonexistent,{directory} port={port} user=postgres dbname=postgres"));
    // A refusal is not followed by the next host, whose words would hide it.
    let (message, _) = fails(&format!(
        "host=127.0.0.1,/nonexistent port={port} user=picky password=wrong dbname=postgres \
         sslmode=disable"
    ));
    assert!(message.ends_with("password authentication failed for user \"picky\""), "{message}");
    let (message, _) =
        fails(&format!("host=/nonexistent,/also-not port={port} user=postgres dbname=postgres"));
    let lines: Vec<_> =
        message.lines().filter(|line| line.contains("failed: No such file")).collect();
    assert_eq!(lines.len(), 2, "{message}");

    // Both hosts are one server; which database takes writes decides.
    let read_only = format!("host={directory} port={port} user=postgres dbname=read_only");
    check(&format!("{read_only} target_session_attrs=read-only"));
    check(&format!("{read_only} target_session_attrs=any"));
    let (message, _) = fails(&format!("{read_only} target_session_attrs=read-write"));
    assert!(message.ends_with("session is read-only"), "{message}");
}

#[test]
fn the_host_that_takes_writes_is_found() {
    let writable = Server::shared();
    let read_only = Server::start(&[("default_transaction_read_only", "on")]);
    writable.execute("CREATE TABLE written (a int)");
    let hosts = format!("host={},{}", read_only.socket_directory(), writable.socket_directory());
    let ports = format!("port={},{}", read_only.port(), writable.port());
    for balance in ["disable", "random"] {
        let conninfo = format!(
            "{hosts} {ports} user=postgres dbname=postgres target_session_attrs=read-write \
             load_balance_hosts={balance}"
        );
        let workload = workload(&conninfo, "INSERT INTO written VALUES (1);\n", 4);
        run(&plan(workload, LoadLimit::Transactions(1))).unwrap();
    }
    assert_eq!(writable.number("SELECT count(*) FROM written"), 8);
    let conninfo = format!(
        "{hosts} {ports} user=postgres dbname=postgres target_session_attrs=prefer-standby"
    );
    check(&conninfo);
}

#[test]
fn a_full_backlog_is_waited_for() {
    let server = Server::shared();
    let directory = tempfile::tempdir().unwrap();
    Door::new(directory.path(), &server.socket(), 1);
    let host = directory.path().display();
    let conninfo = format!("host={host} port=1 user=postgres dbname=postgres");
    let mut plan = plan(workload(&conninfo, "SELECT 1;\n", 80), LoadLimit::Transactions(2));
    plan.connecting = ConnectionMode { at_once: 80, rate: None };
    let outcome = run(&plan).unwrap();
    assert_eq!(outcome.workloads[0].counts_total.transactions, 160);
    assert!(outcome.connecting.failures.is_empty());
}

#[test]
fn connections_are_begun_at_the_rate_that_was_asked_for() {
    let server = Server::shared();
    let mut plan =
        plan(workload(&server.conninfo(), "SELECT 1;\n", 20), LoadLimit::Transactions(1));
    plan.connecting = ConnectionMode { at_once: 64, rate: Some(40.0) };
    let outcome = run(&plan).unwrap();
    let took = outcome.connecting.length_ns as f64 / 1e9;
    assert!(took > 0.25, "20 at 40 a second cannot take {took} s");
}

#[test]
fn a_host_that_does_not_answer_has_its_time() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let began = Instant::now();
    let (message, _) = fails(&format!(
        "host=127.0.0.1 port={port} user=a dbname=b sslmode=disable connect_timeout=2"
    ));
    assert!(message.ends_with("timeout expired"), "{message}");
    assert!((2.0..10.0).contains(&began.elapsed().as_secs_f64()), "{:?}", began.elapsed());

    // With another host it is only a delay.
    let server = Server::shared();
    check(&format!(
        "host=127.0.0.1,{} port={port},{} user=postgres dbname=postgres sslmode=disable \
         connect_timeout=2",
        server.socket_directory(),
        server.port()
    ));
}
