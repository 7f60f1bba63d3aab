//! SCRAM-SHA-256-PLUS: a login that is bound to its TLS connection.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use sha2::{Digest, Sha256};

use crate::server::{Client, HBA, Server, admin};
use wire::auth::KeyCache;
use wire::frontend;
use wire::startup::{ChannelBindingPolicy, Login, StartupChannel, StartupError};
use wire::tls::{self, TlsAttempt, TlsContinuation};

#[test]
fn a_login_is_bound_to_its_certificate() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let hba = format!("{HBA}hostssl all scram 127.0.0.1/32 scram-sha-256");
    let key = made.signing_key.serialize_pem();
    let files = [("server.crt", &*made.cert.pem()), ("server.key", &*key)];
    let server = Server::start_with(&hba, &[("ssl", "on")], &files);
    admin(&server).query("CREATE ROLE scram LOGIN PASSWORD 'secret'");
    let certificate = made.cert.der();

    let attempt = |policy, hash: Option<Vec<u8>>| {
        let mut login = Login::new("scram", "postgres");
        login.password = Some("secret".into());
        login.channel_binding = policy;
        let channel = StartupChannel::Tls { server_end_point: hash };
        let stream = Box::new(encrypted(&server, certificate));
        Client::start_through(stream, channel, Arc::new(login), &mut KeyCache::new())
    };
    use ChannelBindingPolicy::{Disable, Prefer, Require};
    // The certificate is signed with SHA-256, and so it is hashed with SHA-256 (RFC 5929).
    let hash = Sha256::digest(certificate).to_vec();
    let mut client = attempt(Require, Some(hash.clone())).unwrap();
    assert!(String::from_utf8_lossy(&client.query("SELECT 'bound'")).contains("bound"));
    attempt(Prefer, Some(hash.clone())).unwrap();
    attempt(Prefer, None).unwrap();
    attempt(Disable, Some(hash)).unwrap();

    let another = attempt(Prefer, Some(vec![0; 32])).err().unwrap();
    assert!(matches!(another, StartupError::Server(_)), "{another}");
    assert!(another.to_string().contains("channel binding"), "{another}");
    let unhashed = attempt(Require, None).err().unwrap();
    assert!(matches!(unhashed, StartupError::ChannelBinding(_)), "{unhashed}");
}

#[test]
fn a_server_without_tls_says_so() {
    let server = Server::start(HBA, &[]);
    assert_eq!(answer(&server, TlsAttempt::TlsOrPlain).1.unwrap(), Some(TlsContinuation::Plain));
    assert_eq!(
        answer(&server, TlsAttempt::Tls).1.unwrap_err().to_string(),
        "server does not support SSL, but SSL was required"
    );
}

type Negotiated = Result<Option<TlsContinuation>, tls::NegotiationError>;

fn answer(server: &Server, attempt: TlsAttempt) -> (TcpStream, Negotiated) {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let mut request = Vec::new();
    frontend::ssl_request(&mut request);
    stream.write_all(&request).unwrap();
    let mut byte = [0];
    stream.read_exact(&mut byte).unwrap();
    (stream, tls::answer(attempt, &byte))
}

fn encrypted(
    server: &Server,
    certificate: &CertificateDer<'static>,
) -> StreamOwned<ClientConnection, TcpStream> {
    let (stream, answer) = answer(server, TlsAttempt::Tls);
    assert_eq!(answer, Ok(Some(TlsContinuation::Handshake)));
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let name = "localhost".try_into().unwrap();
    StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), stream)
}
