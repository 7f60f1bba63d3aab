//! PgBouncer and other programs of a lab, in front of a real PostgreSQL.

use std::time::Duration;

use crate::common::{node, open, settings};
use lab::find::PgBouncer;
use lab::{
    Endpoint, Error, Host, Listen, PoolMode, PoolerConfig, PoolerProgram, Settings, StopMode,
};
use os::command::ProcessCommand;

/// The PgBouncer of this machine; `scripts/setup test` installs it.
fn pgbouncer() -> PgBouncer {
    lab::find::pgbouncer(None).expect("the tests need an installed PgBouncer")
}

fn log_in(endpoint: &Endpoint) -> Result<postgres::Client, postgres::Error> {
    endpoint.to_string().parse::<postgres::Config>().unwrap().connect(postgres::NoTls)
}

fn value(endpoint: &Endpoint, statement: &str) -> String {
    let messages = log_in(endpoint).unwrap().simple_query(statement).unwrap();
    let row = messages.iter().find_map(|message| match message {
        postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    });
    row.unwrap()
}

#[test]
fn a_pooler_serves_many_clients_by_few_servers_and_has_a_nodes_verbs() {
    let lab = open();
    let mut primary = node(&lab, "primary", &[]);
    primary.start().unwrap();
    let config = PoolerConfig {
        pool: 2,
        clients: 50,
        connect_query: Some("SET synchronous_commit = 'off'".into()),
        ..PoolerConfig::new(PoolerProgram::Found(pgbouncer()), primary.endpoint())
    };
    let mut front = lab.pooler("front", config).unwrap();
    front.start().unwrap();
    let endpoint = front.endpoint();
    let mut clients: Vec<_> = (0..10).map(|_| log_in(&endpoint).unwrap()).collect();
    for client in &mut clients {
        client.simple_query("SELECT 1").unwrap();
    }
    assert_eq!(value(&endpoint, "SHOW synchronous_commit"), "off");
    let pools = front.show("POOLS").unwrap();
    let pool = pools.iter().find(|row| row["database"] == "postgres").unwrap();
    assert_eq!((pool["cl_active"].as_str(), pool["pool_mode"].as_str()), ("10", "transaction"));
    let servers = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' \
        AND pid <> pg_backend_pid()";
    let servers: u32 = primary.value(servers).unwrap().unwrap().parse().unwrap();
    assert!((1..=2).contains(&servers), "{servers}");
    let pid = front.host_pid().unwrap();
    assert!(std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap().contains("pgbouncer"));
    drop(clients);

    assert_eq!(front.pause().unwrap(), 1);
    assert_eq!(front.resume().unwrap(), 1);
    assert_eq!(value(&endpoint, "SELECT 2"), "2");
    assert_eq!(front.kill9().unwrap(), 1);
    assert!(!front.is_running().unwrap());
    assert!(log_in(&endpoint).is_err());
    front.start().unwrap();
    assert_eq!(value(&endpoint, "SELECT 3"), "3");
    front.stop(StopMode::Fast).unwrap();
    assert!(!front.is_running().unwrap());
    front.start().unwrap();
    assert_eq!(value(&endpoint, "SELECT 4"), "4");
    assert!(front.stop(StopMode::Smart).unwrap().is_success());
}

#[test]
fn modes_and_logins_are_as_configured() {
    let lab = open();
    let mut primary = node(&lab, "primary", &[]);
    primary.start().unwrap();
    let config = PoolerConfig {
        mode: PoolMode::Statement,
        listen: Listen::Loopback,
        ..PoolerConfig::new(PoolerProgram::Found(pgbouncer()), primary.endpoint())
    };
    let mut front = lab.pooler("front", config).unwrap();
    front.start().unwrap();
    let endpoint = front.endpoint();
    assert_eq!(endpoint.host, Host::Tcp("127.0.0.1".into()));
    let mut client = log_in(&endpoint).unwrap();
    client.batch_execute("BEGIN").unwrap_err();
    // The connection may be gone before its last word is read; the log has it in any case.
    let text = std::fs::read_to_string(front.log()).unwrap();
    assert!(text.contains("transaction blocks not allowed in statement pooling mode"), "{text}");
    assert!(log_in(&Endpoint { password: Some("wrong".into()), ..endpoint }).is_err());
}

#[test]
fn a_pooler_that_does_not_start_shows_its_log() {
    let lab = open();
    let primary = node(&lab, "primary", &[]);
    let with = |name: &str, settings: Settings| {
        let config = PoolerConfig {
            settings,
            ..PoolerConfig::new(PoolerProgram::Found(pgbouncer()), primary.endpoint())
        };
        lab.pooler(name, config)
    };
    let mut wrong = with("wrong", Settings::from_iter([("server_lifetime", "long")])).unwrap();
    let error = wrong.start().unwrap_err();
    assert!(matches!(error, Error::Start { .. }), "{error}");
    assert!(error.to_string().contains("invalid value \"long\""), "{error}");

    let error = with("other", Settings::from_iter([("listen_port", "1")])).unwrap_err();
    assert_eq!(error.to_string(), "configuring node other: listen_port is managed by the lab");
    let error = with("primary", Settings::new()).unwrap_err();
    assert_eq!(error.to_string(), "there is a node primary already");
    let error = wrong.stop(StopMode::Fast).unwrap_err();
    assert_eq!(error.to_string(), "stopping node wrong: it is not running");
}

#[test]
fn a_port_that_was_taken_meanwhile_is_told() {
    let lab = open();
    let config =
        lab::NodeConfig { listen: Listen::Loopback, ..lab::NodeConfig::new(settings(&[])) };
    let mut node = lab.node("primary", config).unwrap();
    node.init().unwrap();
    let taken = std::net::TcpListener::bind(("127.0.0.1", node.endpoint().port)).unwrap();
    let error = node.start().unwrap_err();
    assert!(error.to_string().contains("Address already in use"), "{error}");
    let hint = error.hint().unwrap();
    assert_eq!(hint, "another server has taken the port meanwhile; try again");
    drop(taken);
    node.start().unwrap();
}

#[test]
fn any_program_has_the_same_verbs() {
    let lab = open();
    let script = "trap 'echo bye; exit 3' TERM; sleep 1000 & echo ready; wait";
    let command = ProcessCommand::new("/bin/sh")
        .args(["-c", script])
        .env("PATH", "/usr/bin:/bin")
        .user(lab.user());
    let mut process = lab.process("watcher", command).unwrap();
    process.start().unwrap();
    let is_ready = || Ok::<_, Error>(process.log_tail().contains("ready").then_some(()));
    assert!(lab::wait_until(Duration::from_secs(30), is_ready).unwrap().is_some());
    assert!(process.is_running().unwrap() && process.host_pid().is_some());
    assert!(process.pause().unwrap() >= 1);
    assert!(process.resume().unwrap() >= 1);
    assert_eq!(process.stop(StopMode::Fast).unwrap(), lab::ProcessExit::Code(3));
    assert!(process.log_tail().ends_with("bye"), "{}", process.log_tail());
    process.start().unwrap();
    assert!(process.kill9().unwrap() >= 1);
    assert!(!process.is_running().unwrap());

    let mut missing = lab.process("missing", ProcessCommand::new("/nonexistent/program")).unwrap();
    let error = missing.start().unwrap_err().to_string();
    assert!(error.starts_with("running /nonexistent/program in "), "{error}");
}
