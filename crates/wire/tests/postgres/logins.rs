//! Every way to log in.

use std::sync::Arc;

use crate::server::{Client, HBA, Server, Stream, admin};
use wire::auth::KeyCache;
use wire::backend::TransactionStatus;
use wire::startup::{Login, StartupError};
use wire::{ProtocolVersion, SqlState, frontend};

/// A password that SASLprep changes, and one that it refuses.
const ODD: &str = "p\u{ad}ä\u{2168}";
const REFUSED: &str = "bell\u{7}";

#[test]
fn every_way_to_log_in() {
    let server = Server::start(HBA, &[("max_connections", "30")]);
    let mut admin = admin(&server);
    admin.query(&format!(
        "CREATE ROLE scram LOGIN PASSWORD 'secret';
         SET password_encryption = md5;
         CREATE ROLE md5 LOGIN PASSWORD 'secret';
         RESET password_encryption;
         CREATE ROLE clear LOGIN PASSWORD 'secret';
         CREATE ROLE longsalt LOGIN PASSWORD '{ODD}'"
    ));
    let mut keys = KeyCache::new();
    let mut attempt = |user: &str, password: Option<&str>| {
        let mut login = Login::new(user, "postgres");
        login.password = password.map(wire::Password::from);
        Client::start(Stream::unix(&server), Arc::new(login), &mut keys).map(|client| client.facts)
    };
    for user in ["scram", "md5", "clear"] {
        let facts = attempt(user, Some("secret")).unwrap();
        assert_eq!(facts.parameters.value("session_authorization"), Some(user));
        assert_eq!(facts.status, TransactionStatus::Idle);
        assert_eq!(facts.protocol, ProtocolVersion::V3_0);
        assert!(facts.parameters.server_version_num().unwrap() >= 130_000);

        let wrong = attempt(user, Some("wrong")).unwrap_err();
        assert_eq!(wrong.sql_state(), Some(SqlState::INVALID_PASSWORD));
        assert!(wrong.to_string().starts_with("FATAL:  password authentication failed for user"));
        assert!(wrong.hint().unwrap().contains("PGPASSWORD"));
        let none = attempt(user, None).unwrap_err();
        assert_eq!(none, StartupError::PasswordMissing);
    }
    attempt("longsalt", Some(ODD)).unwrap();
    attempt("longsalt", Some("p\u{e4}IX")).unwrap();
    admin.query(&format!("ALTER ROLE longsalt PASSWORD '{REFUSED}'"));
    attempt("longsalt", Some(REFUSED)).unwrap();
    let nobody = attempt("gss", None).unwrap_err();
    assert_eq!(nobody.sql_state(), Some(SqlState::INVALID_AUTHORIZATION));

    let mut nowhere = Login::new("postgres", "nowhere");
    nowhere.settings = vec![("application_name".into(), "wire's test".into())];
    let error = refused(&server, nowhere);
    assert_eq!(error.sql_state(), Some(SqlState::INVALID_CATALOG_NAME));

    let mut strict = Login::new("clear", "postgres");
    strict.password = Some("secret".into());
    strict.require_auth = "scram-sha-256".parse().unwrap();
    assert_eq!(
        refused(&server, strict).to_string(),
        "authentication method requirement \"scram-sha-256\" failed: server requested a cleartext \
         password"
    );
}

#[test]
fn many_logins_derive_one_key() {
    let server = Server::start(HBA, &[("max_connections", "30")]);
    admin(&server).query("CREATE ROLE scram LOGIN PASSWORD 'secret'");
    let mut login = Login::new("scram", "postgres");
    login.password = Some("secret".into());
    login.protocol = ProtocolVersion::V3_2;
    let login = Arc::new(login);
    let mut keys = KeyCache::new();
    for _ in 0..10 {
        let mut client =
            Client::start(Stream::tcp(&server), Arc::clone(&login), &mut keys).unwrap();
        let version = client.facts.protocol;
        let key_bytes = client.facts.backend_key.as_ref().unwrap().key.as_bytes().len();
        assert_eq!(version > ProtocolVersion::V3_0, key_bytes > 4, "{version} {key_bytes}");
        let mut bye = Vec::new();
        frontend::terminate(&mut bye);
        client.send(&bye);
    }
    assert_eq!(keys.len(), 1);

    let mut held = Vec::new();
    let error = loop {
        let login = Arc::new(Login::new("postgres", "postgres"));
        match Client::start(Stream::unix(&server), login, &mut keys) {
            Ok(client) => held.push(client),
            Err(error) => break error,
        }
        assert!(held.len() <= 30);
    };
    assert_eq!(error.sql_state(), Some(SqlState::TOO_MANY_CONNECTIONS));
    assert!(error.hint().unwrap().contains("max_connections"), "{error}");
}

fn refused(server: &Server, login: Login) -> StartupError {
    let attempt = Client::start(Stream::unix(server), Arc::new(login), &mut KeyCache::new());
    attempt.err().expect("the login fails")
}
