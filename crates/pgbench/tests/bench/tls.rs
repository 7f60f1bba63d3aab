//! Over TLS: the connection that prepares a run as well as its clients.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

use crate::common::{Server, ours};
use lab::Listen;
use os::user::SystemUser;

/// A server that speaks TLS, and the file of the authority that vouches for it.
fn encrypted() -> (Server, String) {
    let mut server = Server::start_on(&[], Listen::Loopback);
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()])
        .expect("a certificate");
    let data = server.node.data();
    let (certificate, key) = (data.join("test.crt"), data.join("test.key"));
    fs::write(&certificate, made.cert.pem()).expect("written");
    fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    for file in [&certificate, &key] {
        fs::set_permissions(file, fs::Permissions::from_mode(0o600)).expect("mode");
        if SystemUser::current().is_root() {
            let owner = fs::metadata(&data).expect("a folder");
            chown(file, Some(owner.uid()), Some(owner.gid())).expect("owner");
        }
    }
    server.node.append_conf("ssl = on\nssl_cert_file = 'test.crt'\nssl_key_file = 'test.key'");
    server.node.restart().expect("starts with TLS");
    let root = certificate.display().to_string();
    (server, root)
}

#[test]
fn every_connection_is_as_encrypted_as_asked() {
    let (server, root) = encrypted();
    assert_eq!(server.ours("postgres", "-i -q").code, 0);
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("ssl.sql").display().to_string();
    // Divides by zero where the session is not as expected.
    let expect = |encrypted: &str| {
        let text = format!(
            "select 1 / count(*) from pg_stat_ssl where pid = pg_backend_pid() and ssl = {encrypted};"
        );
        fs::write(&script, text).expect("written");
    };
    let run = |mode: &str, host: &str| {
        let mut environment = server.environment("postgres");
        environment.retain(|(name, _)| name != "PGHOST");
        for (name, value) in [("PGHOST", host), ("PGSSLMODE", mode), ("PGSSLROOTCERT", &root)] {
            environment.push((name.to_owned(), value.to_owned()));
        }
        ours(&environment, &format!("-f {script} -n -c 3 -t 2"))
    };
    for (mode, encrypted) in [
        ("disable", "false"),
        ("allow", "false"),
        ("prefer", "true"),
        ("require", "true"),
        ("verify-ca", "true"),
        ("verify-full", "true"),
    ] {
        expect(encrypted);
        let ended = run(mode, "localhost");
        assert_eq!(ended.code, 0, "{mode}: {ended:?}");
    }
    let elsewhere = run("verify-full", "127.0.0.2");
    assert_eq!(elsewhere.code, 1, "the certificate does not name this address: {elsewhere:?}");
}
