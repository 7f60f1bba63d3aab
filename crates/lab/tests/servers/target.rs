//! A server of the user's, on a real PostgreSQL.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::thread;
use std::time::Duration;

use crate::common::{open, settings};
use lab::{Endpoint, Error, Listen, Node, NodeConfig, Server, Target, TargetConfig};
use postgres::error::SqlState;
use server::Limits;

/// The address of `node` as an outsider would give it.
fn address(endpoint: &Endpoint) -> TargetConfig {
    let conninfo = server::own_conninfo(&endpoint.to_string()).unwrap();
    TargetConfig { conninfo, limits: Limits::of_administration() }
}

fn outside(lab: &lab::Lab, pairs: &[(&str, &str)]) -> Node {
    let config = NodeConfig { listen: Listen::Loopback, ..NodeConfig::new(settings(pairs)) };
    let mut node = lab.node("outside", config).unwrap();
    node.init().unwrap();
    node
}

#[test]
fn a_target_tells_its_version_and_answers() {
    let lab = open();
    let mut node = outside(&lab, &[]);
    node.start().unwrap();
    let target = Target::open(address(&node.endpoint())).unwrap();
    assert_eq!(target.major(), node.installation().version().major);
    assert!(target.version().starts_with(&node.installation().version().text));
    let mut server = Server::Target(Box::new(target));
    assert_eq!(server.value("SHOW application_name").unwrap().as_deref(), Some("pgrig"));
    assert_eq!(server.conninfo(), address(&node.endpoint()).conninfo.to_keyword_string());
    assert!(server.node().is_none(), "no server of the user's can be stopped");
}

#[test]
fn a_target_that_refuses_is_named_without_its_password() {
    let lab = open();
    let mut node = outside(&lab, &[]);
    node.start().unwrap();
    let endpoint = Endpoint { password: Some("wrong-secret".into()), ..node.endpoint() };
    let error = Target::open(address(&endpoint)).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Connect { .. }));
    assert!(text.starts_with("connecting to the target (127.0.0.1:"), "{text}");
    assert!(text.contains("password authentication failed"), "{text}");
    assert!(error.hint().is_some_and(|hint| hint.contains("PGPASSWORD")), "{:?}", error.hint());
    assert!(!text.contains("wrong-secret"), "{text}");

    let missing = node.endpoint().with_database("missing");
    let hint = Target::open(address(&missing)).unwrap_err().hint();
    assert!(hint.is_some_and(|hint| hint.contains("create that database")));

    let nobody = Endpoint { port: 1, ..endpoint };
    let text = Target::open(address(&nobody)).unwrap_err().to_string();
    assert!(text.contains("Connection refused"), "{text}");
}

#[test]
fn a_target_can_insist_on_encryption() {
    let lab = open();
    let mut node = outside(&lab, &[("ssl", "on")]);
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let key = made.signing_key.serialize_pem();
    for (name, text) in [("server.crt", made.cert.pem()), ("server.key", key)] {
        let path = node.data().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        chown(&path, Some(lab.user().uid), Some(lab.user().gid)).unwrap();
    }
    let hba = node.data().join("pg_hba.conf");
    let text = "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n";
    fs::write(&hba, text).unwrap();
    node.start().unwrap();

    let mut config = address(&node.endpoint());
    let plain = format!("{} sslmode=disable", node.endpoint());
    let plain = TargetConfig { conninfo: server::own_conninfo(&plain).unwrap(), ..config.clone() };
    let text = Target::open(plain).unwrap_err().to_string();
    // Version 13 says it in other words.
    assert!(text.contains("no encryption") || text.contains("SSL off"), "{text}");

    let roots = node.data().join("server.crt");
    let by_name = node.endpoint().to_string().replace("127.0.0.1", "localhost");
    let by_name = format!("{by_name} sslmode=verify-full sslrootcert={}", roots.display());
    config.conninfo = server::own_conninfo(&by_name).unwrap();
    let target = Target::open(config).unwrap();
    let is_encrypted = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    assert_eq!(target.value(is_encrypted).unwrap().as_deref(), Some("t"));

    let server = Server::Target(Box::new(target));
    let mut client = server.connect().unwrap();
    let canceller = client.canceller().unwrap();
    let sleeping = thread::spawn(move || client.batch_execute("SELECT pg_sleep(600)"));
    let asleep = "SELECT true FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    let is_asleep = || Ok::<_, Error>(server.value(asleep)?.map(drop));
    assert!(lab::wait_until(Duration::from_secs(30), is_asleep).unwrap().is_some());
    canceller.cancel();
    let error = sleeping.join().unwrap().unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED), "{error}");
}
