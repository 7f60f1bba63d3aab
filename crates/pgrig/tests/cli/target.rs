//! `--target`: somebody else's server, as encrypted as its address asks for.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use lab::{Lab, LabConfig, Listen, Node, NodeConfig, Settings};

use crate::Desk;

/// A server that lets nobody in over the network without TLS, and its lab.
fn encrypted() -> (Node, Lab) {
    let installation = lab::find::find(None).expect("PostgreSQL is installed");
    let lab = Lab::open(LabConfig::new(installation)).expect("a lab opens");
    let settings: Settings = [("fsync", "off"), ("shared_buffers", "16MB")].into_iter().collect();
    let config = NodeConfig { listen: Listen::Loopback, ..NodeConfig::new(settings) };
    let mut node = lab.node("server", config).expect("a node is made");
    node.init().expect("initdb works");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let data = node.data();
    let write = |name: &str, text: &str| {
        let path = data.join(name);
        fs::write(&path, text).expect("written");
        chown(&path, Some(lab.user().uid), Some(lab.user().gid)).expect("owner");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("mode");
    };
    write("server.crt", &made.cert.pem());
    write("server.key", &made.signing_key.serialize_pem());
    let rules = fs::read_to_string(data.join("pg_hba.conf")).expect("pg_hba.conf");
    write("pg_hba.conf", &format!("hostnossl all all all reject\n{rules}"));
    node.append_conf("ssl = on");
    node.start().expect("the server starts with TLS");
    (node, lab)
}

/// The names of the metrics that a run's first trial has samples of.
fn sampled(record: &Path) -> String {
    let trials = record.join("trials");
    let first = crate::names(&trials).into_iter().next().expect("a trial");
    fs::read_to_string(trials.join(first).join("samples.csv")).expect("samples")
}

#[test]
fn everything_that_goes_to_a_target_is_encrypted_as_its_address_asks() {
    let (node, _lab) = encrypted();
    let root = node.data().join("server.crt").display().to_string();
    let endpoint = node.endpoint();
    let desk = Desk::new();
    desk.write_study("mine", "");
    let run = |options: &str, out: &str| {
        let password = endpoint.password.as_deref().expect("a password");
        let (port, user) = (endpoint.port, &endpoint.user);
        let target = format!("host=localhost port={port} user={user} dbname=postgres {options}");
        let arguments = ["run", "mine", "--rounds", "1", "--target", &target, "--out", out];
        let mut command = desk.command(&arguments);
        crate::Said::of(&command.env("PGPASSWORD", password).output().expect("pgrig runs"))
    };
    let verified = format!("sslmode=verify-full sslrootcert={root}");
    for (options, out) in [("sslmode=require", "encrypted"), (&verified, "verified")] {
        run(options, out).ended(0);
        assert!(sampled(&desk.path(out)).contains("db_backends"), "{options}: nothing was probed");
    }
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made");
    desk.write("other.crt", &other.cert.pem());
    for (options, expected) in [
        ("sslmode=disable", "rejects connection"),
        ("sslmode=verify-full sslrootcert=other.crt", "certificate"),
        ("sslmode=verify-full sslrootcert=missing.crt", "missing.crt"),
    ] {
        let said = run(options, "refused").ended(1);
        assert!(said.err.contains(expected), "{options}: {}", said.err);
        assert!(!desk.path("refused").exists(), "{options} left a record");
    }
    let left = node.value("SELECT count(*) FROM pg_namespace WHERE nspname = 'pgrig'");
    assert_eq!(left.expect("an answer").as_deref(), Some("0"));
}
