//! Our reading of conninfos next to libpq's own: psql says where it would connect, or what is
//! wrong.

use std::process::Command;

use crate::server::program;
use wire::conninfo::{Conninfo, GivenParameters, ParameterSources};

/// Each of these must come to the same error, or to the same address that nobody listens on.
const CONNINFOS: &[&str] = &[
    "host=/nonexistent",
    "host=/nonexistent port=7",
    "host = /nonexistent   port= ' 7 '",
    r"host=/non\existent\ dir port=7",
    r"host='/a b\'c\\d' port=7",
    "host=@nonexistent",
    "host=/nonexistent=",
    "postgres://%2Fnonexistent/db",
    "postgresql://%2Fnonexistent:7/db?port=8",
    "postgresql://user:pass%40word@%2fnonexistent?sslmode=require&",
    "postgresql:///db?host=/nonexistent&ssl=true",
    "postgresql://u@/a@b/c?host=/nonexistent",
    "postgresql://[%2Fnonexistent]:7",
    "hostaddr=127.0.0.1 port=1",
    "host=/nonexistent hostaddr=127.0.0.1 port=1",
    "host=name hostaddr=127.0.0.1 port=1",
    "postgres://127.0.0.1:1",
    "host=127.0.0.1 port=1",
    // Errors of the string.
    "foo=1",
    "=1",
    "host",
    "host=a b",
    "host=a b c=d",
    "host='a",
    "host='a\\",
    "postgres://[::",
    "postgres://[]",
    "postgres://[::1]x",
    "postgres://u@[::1]%/db",
    "postgres:///?port",
    "postgres:///?port=1=2",
    "postgres:///?port=1&&host=a",
    "postgres:///?foo=1",
    "postgres:///%",
    "postgres:///%4",
    "postgres:///%zz",
    "postgres:///%00",
    "postgres:///x?%zz=1",
    // Errors of the values.
    "host=a,b port=1,2,3",
    "host=a port=1,2",
    "port=1,2",
    "host=a,b hostaddr=127.0.0.1",
    "host=a hostaddr=127.0.0.1,127.0.0.2",
    "hostaddr=bogus",
    "host=/nonexistent port=0",
    "host=/nonexistent port=-1",
    "host=/nonexistent port=65536",
    "host=/nonexistent port=abc",
    "host=/nonexistent port=99999999999",
    "host=/nonexistent sslmode=on",
    "host=/nonexistent sslmode=''",
    "host=/nonexistent channel_binding=x",
    "host=/nonexistent target_session_attrs=master",
    "host=/nonexistent gssencmode=x",
    "host=/nonexistent ssl_min_protocol_version=SSLv3",
    "host=/nonexistent ssl_min_protocol_version=TLSv1.3 ssl_max_protocol_version=tlsv1.2",
    "host=/nonexistent connect_timeout=''",
    "service=none",
    "service=none host=a",
    "host=/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\
     xxxxxxxxxxxxxxxxxx",
];

#[test]
fn psql_and_we_read_alike() {
    let directory = tempfile::tempdir().unwrap();
    let psql = program("psql");
    for conninfo in CONNINFOS {
        let mut command = Command::new(&psql);
        command.env_clear().env("HOME", directory.path()).env("PGSYSCONFDIR", directory.path());
        let theirs = command.args(["-X", "-w", "-c", "", conninfo]).output().unwrap();
        assert!(!theirs.status.success(), "{conninfo}");
        let theirs = String::from_utf8(theirs.stderr).unwrap();
        let theirs = theirs.strip_prefix("psql: error: ").unwrap();
        // Before PostgreSQL 17 this keyword has no quotes.
        let (before, since) =
            ("invalid ssl_min_protocol_version", "invalid \"ssl_min_protocol_version\"");
        let theirs = theirs.replace(before, since);
        let ours = ours(conninfo);
        assert!(theirs.starts_with(&ours), "{conninfo}\n  psql: {theirs}  ours: {ours}");
    }
}

/// What psql's message begins with, if it reads as we do.
fn ours(conninfo: &str) -> String {
    let given = GivenParameters { dbname: Some(conninfo.to_owned()), ..GivenParameters::default() };
    let sources = ParameterSources { os_user: Some("somebody"), ..ParameterSources::NOTHING };
    match Conninfo::resolve(&given, &sources) {
        Ok(conninfo) => conninfo.hosts[0].connection_failed(None),
        Err(error) => error.to_string(),
    }
}
