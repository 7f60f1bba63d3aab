//! What pgbench sends, byte for byte: recorded between it and a server.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc;
use std::thread;

use crate::server::{HBA, Server, admin, program};
use wire::frontend::{self, BindMessage};
use wire::{ProtocolVersion, conninfo};

#[test]
fn an_execution_is_what_pgbench_sends() {
    let server = Server::start(&format!("{HBA}host all postgres 127.0.0.1/32 trust"), &[]);
    let mut admin = admin(&server);
    admin.query("CREATE TABLE pgbench_branches(bid int); INSERT INTO pgbench_branches VALUES (1)");
    admin.query("CREATE TABLE pgbench_accounts(aid int, abalance int)");

    let check = |mode: &str, ours: &dyn Fn(&mut Vec<u8>, &str)| {
        let sent = recorded(&server, mode);
        // The account number, which is pgbench's to choose, is the last number that it sends.
        let mut numbers = sent.session.rsplit(|byte| !byte.is_ascii_digit());
        let aid = numbers.find(|number| !number.is_empty()).unwrap();
        let mut expected = Vec::new();
        ours(&mut expected, std::str::from_utf8(aid).unwrap());
        frontend::terminate(&mut expected);
        assert_eq!(sent.session.escape_ascii().to_string(), expected.escape_ascii().to_string());
        sent.startup
    };
    let select = b"SELECT abalance FROM pgbench_accounts WHERE aid = $1;";
    let execution = |out: &mut Vec<u8>, statement: &[u8], aid: &str| {
        let mut bind = BindMessage::begin(out, b"", statement).unwrap();
        bind.parameter(aid.as_bytes());
        bind.finish().unwrap();
        frontend::describe(out, frontend::DescribeTarget::Portal, b"").unwrap();
        frontend::execute(out, b"", 0).unwrap();
        frontend::sync(out);
    };
    let startup = check("prepared", &|out, aid| {
        frontend::parse(out, b"P_0", select, &[]).unwrap();
        frontend::sync(out);
        execution(out, b"P_0", aid);
    });
    check("extended", &|out, aid| {
        frontend::parse(out, b"", select, &[]).unwrap();
        execution(out, b"", aid);
    });
    check("simple", &|out, aid| {
        let sql = format!("SELECT abalance FROM pgbench_accounts WHERE aid = {aid};");
        frontend::query(out, sql.as_bytes()).unwrap();
    });

    assert_eq!(startup, expected_startup());
}

fn expected_startup() -> Vec<u8> {
    let mut expected = Vec::new();
    let settings =
        [("user", "postgres"), ("database", "postgres"), ("application_name", "pgbench")];
    frontend::startup(&mut expected, ProtocolVersion::V3_0, settings).unwrap();
    expected
}

/// What our own resolver makes of pgbench's arguments is the start-up that pgbench sends.
#[test]
fn the_startup_message_follows_from_the_conninfo() {
    let given = conninfo::GivenParameters {
        user: Some("postgres".to_owned()),
        dbname: Some("postgres".to_owned()),
        fallback_application_name: Some("pgbench".to_owned()),
        ..conninfo::GivenParameters::default()
    };
    let conninfo =
        conninfo::Conninfo::resolve(&given, &conninfo::ParameterSources::NOTHING).unwrap();
    let login = conninfo.login(&conninfo.hosts[0]);
    let mut out = Vec::new();
    wire::startup::Startup::begin(
        std::sync::Arc::new(login),
        wire::startup::StartupChannel::Plain,
        wire::auth::ScramNonce([0; 18]),
        &mut out,
    )
    .unwrap();
    assert_eq!(out, expected_startup());
}

struct Sent {
    startup: Vec<u8>,
    session: Vec<u8>,
}

/// Runs one transaction of `pgbench -S` through a relay; what its client connection sends.
fn recorded(server: &Server, mode: &str) -> Sent {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, receiver) = mpsc::channel();
    let upstream = server.port;
    thread::spawn(move || {
        // The first connection is pgbench's own look at the tables, the second is the client's.
        for stream in listener.incoming().take(2) {
            sender.send(relay(stream.unwrap(), upstream)).unwrap();
        }
    });
    let pgbench = Command::new(program("pgbench"))
        .args(["-S", "-n", "-c", "1", "-t", "1", "-M", mode, "-U", "postgres", "-h", "127.0.0.1"])
        .args(["-p", &port.to_string(), "postgres"])
        .env("PGSSLMODE", "disable")
        .env("PGGSSENCMODE", "disable")
        .output()
        .unwrap();
    assert!(pgbench.status.success(), "{}", String::from_utf8_lossy(&pgbench.stderr));
    let mut bytes = receiver.iter().nth(1).unwrap();
    let length = u32::from_be_bytes(*bytes.first_chunk().unwrap()) as usize;
    let session = bytes.split_off(length);
    Sent { startup: bytes, session }
}

/// Carries bytes both ways until either side ends; returns what the client sent.
fn relay(mut client: TcpStream, upstream: u16) -> Vec<u8> {
    let mut server = TcpStream::connect(("127.0.0.1", upstream)).unwrap();
    let (mut back_from, mut back_to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let back = thread::spawn(move || {
        let _ = std::io::copy(&mut back_from, &mut back_to);
        let _ = back_to.shutdown(Shutdown::Both);
    });
    let mut sent = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = client.read(&mut buffer) {
        sent.extend_from_slice(&buffer[..count]);
        server.write_all(&buffer[..count]).unwrap();
    }
    let _ = server.shutdown(Shutdown::Write);
    back.join().unwrap();
    sent
}
