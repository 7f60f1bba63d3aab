//! Loads that cannot begin: each one clear message.

use std::{
    io::{Read, Write},
    net::TcpListener,
    thread,
};

use load::{ConnectionMode, LoadError, LoadLimit};

use crate::support::{Server, plan, run, workload};

fn refused(conninfo: &str, clients: u32) -> LoadError {
    let mut plan = plan(workload(conninfo, "SELECT 1;\n", clients), LoadLimit::Transactions(1));
    // One after the other, so that what got in is what the limit is.
    plan.connecting = ConnectionMode { at_once: 1, rate: None };
    plan.lanes = 1;
    run(&plan).expect_err("the server refuses")
}

#[test]
fn nobody_listens() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let error = refused(&format!("host=127.0.0.1 port={port} user=a dbname=b"), 3);
    assert_eq!(
        error.to_string(),
        format!(
            "connection to server at \"127.0.0.1\", port {port} failed: Connection refused\n\
             \tIs the server running on that host and accepting TCP/IP connections?"
        )
    );
    assert!(error.hint().unwrap().contains("PGHOST and PGPORT"), "{:?}", error.hint());
    let error = refused("host=/nonexistent port=5432 user=a dbname=b", 1);
    assert_eq!(
        error.to_string(),
        "connection to server on socket \"/nonexistent/.s.PGSQL.5432\" failed: No such file or \
         directory\n\tIs the server running locally and accepting connections on that socket?"
    );
    let error = refused("host=no-such-host.invalid user=a dbname=b", 1);
    let text = error.to_string();
    assert!(text.starts_with("could not translate host name \"no-such-host.invalid\""), "{text}");
}

#[test]
fn a_database_that_is_not_there() {
    let server = Server::shared();
    let error = refused(&server.conninfo().replace("dbname=postgres", "dbname=nowhere"), 2);
    assert!(error.to_string().ends_with("FATAL:  database \"nowhere\" does not exist"), "{error}");
    assert_eq!(error.hint().unwrap(), "create that database (createdb), or name another one");
}

#[test]
fn too_many_clients_are_told_how_many_got_in_and_which_limit_it_was() {
    let server = Server::start(&[
        ("max_connections", "12"),
        ("superuser_reserved_connections", "3"),
        ("max_wal_senders", "0"),
    ]);
    server.execute("CREATE ROLE plain LOGIN; CREATE ROLE limited LOGIN CONNECTION LIMIT 4");
    server.execute("CREATE DATABASE small CONNECTION LIMIT 5");
    let check = |user: &str, database: &str, got: Option<u32>, limit: &str| {
        let conninfo = server
            .conninfo()
            .replace("user=postgres", &format!("user={user}"))
            .replace("dbname=postgres", &format!("dbname={database}"));
        let error = refused(&conninfo, 40);
        let LoadError::Connect { connected, clients, ref sqlstate, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(sqlstate.as_ref().map(wire::SqlState::as_str), Some("53300"));
        assert_eq!(clients, 40);
        // Backends that have just left may still hold a slot.
        assert!(got.is_none_or(|got| connected <= got) && connected > 0, "{connected} got in");
        let hint = error.hint().unwrap();
        assert!(hint.contains(limit) && hint.ends_with("; or use fewer clients"), "{hint}");
    };
    check("limited", "postgres", Some(4), "ALTER ROLE \"limited\" CONNECTION LIMIT 40");
    check("plain", "small", Some(5), "ALTER DATABASE \"small\" CONNECTION LIMIT 40");
    check("plain", "postgres", Some(9), "less superuser_reserved_connections");
    check("postgres", "postgres", Some(12), "the limit is max_connections:");
}

/// Says `answer` to everybody who connects, and hangs up.
fn says(answer: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { break };
            // What is left unread makes the system hang up less politely.
            let _ = stream.read(&mut [0; 4096]);
            // It may have gone before it heard.
            let _ = stream.write_all(answer);
        }
    });
    port
}

#[test]
fn what_is_not_postgresql_is_told_apart() {
    let check = |answer: &'static [u8], sslmode: &str, expected: &str| {
        let port = says(answer);
        let error =
            refused(&format!("host=127.0.0.1 port={port} user=a dbname=b sslmode={sslmode}"), 1);
        let place = format!("connection to server at \"127.0.0.1\", port {port} failed: ");
        let text = error.to_string();
        assert!(text.starts_with(&place) && text.contains(expected), "{text}");
    };
    check(b"", "disable", "server closed the connection unexpectedly");
    check(b"HTTP/1.1 400 Bad Request\r\n\r\n", "disable", "cannot be");
    check(b"HTTP/1.1 400 Bad Request\r\n\r\n", "require", "received invalid response to SSL");
    check(b"N", "require", "server does not support SSL, but SSL was required");
    check(b"S\x15\x03\x03\x00\x02\x02\x28", "require", "received unencrypted data after SSL");
    check(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05?", "disable", "ReadyForQuery");
}

#[test]
fn a_plan_that_makes_no_sense_is_refused_before_anybody_connects() {
    let check = |change: &dyn Fn(&mut load::ClientGroup), expected: &str| {
        let mut workload = workload("host=/nonexistent user=a dbname=b", "SELECT 1;\n", 1);
        change(&mut workload);
        let error = run(&plan(workload, LoadLimit::Transactions(1))).expect_err(expected);
        assert!(error.to_string().contains(expected), "{error}");
    };
    check(&|workload| workload.conninfo = "port='".to_owned(), "invalid connection string");
    check(&|workload| workload.scripts[0].text = "\\set a 1 +\n".to_owned(), "syntax error");
    check(&|workload| workload.scripts[0].text = "\\nonsense\n".to_owned(), "invalid command");
}
