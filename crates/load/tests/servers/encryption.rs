//! TLS: what is demanded of a server's certificate, and what a failure says.

use std::{fs, path::Path};

use load::LoadLimit;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, IsCa,
    KeyIdMethod, KeyPair, RevokedCertParams, SerialNumber,
};

use crate::support::{Server, plan, run, workload};

fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Gives the server a certificate for the name localhost alone.
fn certify(server: &Server, authority: &CertifiedIssuer<'_, KeyPair>) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.serial_number = Some(SerialNumber::from(SERIAL));
    let certificate = params.signed_by(&key, authority).unwrap();
    let user = server.lab.user();
    let write = |name: &str, text: &str| {
        let path = server.node.data().join(name);
        fs::write(&path, text).unwrap();
        std::os::unix::fs::chown(&path, Some(user.uid), Some(user.gid)).unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(&path, private).unwrap();
    };
    write("server.crt", &certificate.pem());
    write("server.key", &key.serialize_pem());
}

/// A list of our authority that takes the server's certificate back.
fn revocations(authority: &CertifiedIssuer<'_, KeyPair>) -> String {
    let day = |n| rcgen::date_time_ymd(2000 + n, 1, 1);
    let list = CertificateRevocationListParams {
        this_update: day(0),
        next_update: day(1_000),
        crl_number: SerialNumber::from(1),
        issuing_distribution_point: None,
        revoked_certs: vec![RevokedCertParams {
            serial_number: SerialNumber::from(SERIAL),
            revocation_time: day(0),
            reason_code: None,
            invalidity_date: None,
        }],
        key_identifier_method: KeyIdMethod::Sha256,
    };
    list.signed_by(authority).unwrap().pem().unwrap()
}

/// The number of the server's certificate.
const SERIAL: u64 = 77;

fn once(conninfo: &str, script: &str) -> Result<u64, String> {
    run(&plan(workload(conninfo, script, 3), LoadLimit::Transactions(2)))
        .map(|outcome| outcome.workloads[0].counts_total.transactions)
        .map_err(|error| format!("{error} [{}]", error.hint().unwrap_or_default()))
}

fn write(directory: &Path, name: &str, text: &str) -> String {
    let path = directory.join(name);
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn a_server_proves_as_much_as_is_asked_of_it() {
    let (ours, theirs) = (authority("ours"), authority("theirs"));
    let mut server = Server::stopped(&[("ssl", "on")]);
    certify(&server, &ours);
    server.node.start().expect("a server with TLS");
    let directory = tempfile::tempdir().unwrap();
    let root = write(directory.path(), "root.crt", &ours.pem());
    let other = write(directory.path(), "other.crt", &theirs.pem());
    // The name is checked only where it is asked for: the address is not in the certificate.
    let by_name = server.tcp().replace("host=127.0.0.1", "host=localhost hostaddr=127.0.0.1");
    let by_address = server.tcp();
    let encrypted = "SELECT 1 / ssl::int FROM pg_stat_ssl WHERE pid = pg_backend_pid();\n";
    let works = |conninfo: &str, options: &str| {
        assert_eq!(once(&format!("{conninfo} {options}"), encrypted), Ok(6), "{options}");
    };
    works(&by_address, "sslmode=prefer");
    works(&by_address, "sslmode=require");
    works(&by_address, &format!("sslmode=verify-ca sslrootcert={root}"));
    works(&by_name, &format!("sslmode=verify-full sslrootcert={root}"));
    works(&by_name, "sslmode=require channel_binding=require");
    works(&by_name, "sslmode=require ssl_max_protocol_version=TLSv1.2");
    let plain = "SELECT 1 / (NOT ssl)::int FROM pg_stat_ssl WHERE pid = pg_backend_pid();\n";
    assert_eq!(once(&format!("{by_address} sslmode=disable"), plain), Ok(6));
    assert_eq!(once(&format!("{by_address} sslmode=allow"), plain), Ok(6));

    let fails = |conninfo: &str, options: &str, expected: &[&str]| {
        let text = once(&format!("{conninfo} {options}"), encrypted).expect_err(options);
        for part in expected {
            assert!(text.contains(part), "{options}: {text}");
        }
    };
    let place = format!("connection to server at \"127.0.0.1\", port {} failed: ", server.port());
    let unknown = ["SSL error: invalid peer certificate: UnknownIssuer", "sslrootcert"];
    fails(
        &by_address,
        &format!("sslmode=verify-ca sslrootcert={other}"),
        &[&place, unknown[0], unknown[1]],
    );
    fails(&by_name, &format!("sslmode=verify-full sslrootcert={other}"), &unknown);
    // As in libpq, a root file makes `require` check.
    fails(&by_address, &format!("sslmode=require sslrootcert={other}"), &unknown);
    let name = ["SSL error: invalid peer certificate", "sslmode=verify-ca"];
    fails(&by_address, &format!("sslmode=verify-full sslrootcert={root}"), &name);
    let none = ["needs root certificates", "sslrootcert"];
    fails(&by_address, "sslmode=verify-full", &none);
    let list = write(directory.path(), "root.crl", &revocations(&ours));
    let revoked = ["SSL error: invalid peer certificate: Revoked", "new certificate"];
    let options = format!("sslmode=verify-full sslrootcert={root} sslcrl={list}");
    fails(&by_name, &options, &revoked);
    fails(&by_name, &format!("sslmode=require sslcert={root}"), &["needs its private key"]);
    let missing = format!("sslmode=verify-ca sslrootcert={root}.gone");
    fails(&by_address, &missing, &["reading root certificate file", ".gone"]);
}

/// The certificate of PostgreSQL's manual: signed by itself, and so its own authority.
#[test]
fn a_certificate_that_is_trusted_itself_will_do() {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let made = params.self_signed(&key).unwrap().pem();
    let mut server = Server::stopped(&[("ssl", "on")]);
    let (data, user) = (server.node.data(), server.lab.user());
    for (name, text) in [("server.crt", &made), ("server.key", &key.serialize_pem())] {
        let path = write(&data, name, text);
        std::os::unix::fs::chown(&path, Some(user.uid), Some(user.gid)).unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(&path, private).unwrap();
    }
    server.node.start().expect("a server with TLS");
    let directory = tempfile::tempdir().unwrap();
    let root = write(directory.path(), "root.crt", &made);
    let by_name = server.tcp().replace("host=127.0.0.1", "host=localhost hostaddr=127.0.0.1");
    let verified = |conninfo: &str, mode: &str| {
        once(&format!("{conninfo} sslmode={mode} sslrootcert={root}"), "SELECT 1;\n")
    };
    assert_eq!(verified(&by_name, "verify-full"), Ok(6));
    assert_eq!(verified(&server.tcp(), "verify-ca"), Ok(6));
    let text = verified(&server.tcp(), "verify-full").expect_err("another name");
    assert!(text.contains("use sslmode=verify-ca"), "{text}");
}

/// Every client must show a certificate of `authority`; the server asks for one.
fn demand_certificates(server: &Server, authority: &CertifiedIssuer<'_, KeyPair>) {
    let (data, user) = (server.node.data(), server.lab.user());
    let hba = data.join("pg_hba.conf");
    for (path, text) in [
        (data.join("clients.crt"), authority.pem()),
        (hba, "local all all trust\nhostssl all all all trust clientcert=verify-ca\n".to_owned()),
    ] {
        fs::write(&path, text).unwrap();
        std::os::unix::fs::chown(&path, Some(user.uid), Some(user.gid)).unwrap();
    }
}

/// A client's certificate by `authority`, and its key.
fn client(authority: &CertifiedIssuer<'_, KeyPair>) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(rcgen::DnType::CommonName, "postgres");
    (params.signed_by(&key, authority).unwrap().pem(), key.serialize_pem())
}

#[test]
fn a_client_shows_its_certificate_as_libpq_does() {
    let ours = authority("ours");
    let mut server = Server::stopped(&[("ssl", "on"), ("ssl_ca_file", "clients.crt")]);
    certify(&server, &ours);
    demand_certificates(&server, &ours);
    server.node.start().expect("a server with TLS");
    let directory = tempfile::tempdir().unwrap();
    let (certificate, key) = client(&ours);
    let certificate = write(directory.path(), "client.crt", &certificate);
    let private = |name: &str, mode: u32| {
        let path = write(directory.path(), name, &key);
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        path
    };
    let (key, open) = (private("client.key", 0o600), private("open.key", 0o644));
    let sealed = directory.path().join("sealed.key").display().to_string();
    let done = std::process::Command::new("openssl")
        .args(["pkcs8", "-topk8", "-in", &key, "-out", &sealed, "-passout", "pass:secret"])
        .status()
        .expect("openssl is installed");
    assert!(done.success());

    let (conninfo, script) = (server.tcp(), "SELECT 1;\n");
    let works = |options: &str| {
        let conninfo = format!("{conninfo} sslmode=require sslcert={certificate} {options}");
        assert_eq!(once(&conninfo, script), Ok(6), "{options}");
    };
    works(&format!("sslkey={key}"));
    works(&format!("sslkey={key} sslcertmode=require"));
    works(&format!("sslkey={sealed} sslpassword=secret"));
    let fails = |options: &str, expected: &str| {
        let conninfo = format!("{conninfo} sslmode=require {options}");
        let text = once(&conninfo, script).expect_err(options);
        assert!(text.contains(expected), "{options}: {text}");
    };
    let with = |options: &str| format!("sslcert={certificate} {options}");
    fails(&with(&format!("sslkey={sealed}")), "give its password as sslpassword");
    fails(&with(&format!("sslkey={sealed} sslpassword=wrong")), "is sslpassword the right one?");
    fails(&with(&format!("sslkey={open}")), "has group or world access");
    fails(&with("sslkey=gone.key"), "certificate present, but not private key file \"gone.key\"");
    // The server's own words: the client went on without.
    let demanded = "connection requires a valid client certificate";
    fails(&format!("sslcert=gone.crt sslkey={key}"), demanded);
    fails(&with(&format!("sslkey={key} sslcertmode=disable")), demanded);
}

#[test]
fn a_server_that_must_ask_for_a_certificate_and_does_not_will_not_do() {
    let ours = authority("ours");
    let mut server = Server::stopped(&[("ssl", "on")]);
    certify(&server, &ours);
    server.node.start().expect("a server with TLS");
    for way in [format!("{} sslmode=require", server.tcp()), server.conninfo()] {
        let text = once(&format!("{way} sslcertmode=require"), "SELECT 1;\n").expect_err(&way);
        assert!(text.contains("server did not request an SSL certificate"), "{way}: {text}");
    }
}

#[test]
fn large_results_and_long_statements_cross_tls() {
    let ours = authority("ours");
    let mut server = Server::stopped(&[("ssl", "on")]);
    certify(&server, &ours);
    server.node.start().expect("a server with TLS");
    let long = "x".repeat(300_000);
    let script =
        format!("SELECT repeat('y', 500000);\nSELECT 1 / (length('{long}') = 300000)::int;\n");
    for way in [server.conninfo(), format!("{} sslmode=require", server.tcp())] {
        assert_eq!(once(&way, &script), Ok(6), "{way}");
    }
}
