//! A server made of bytes, behind whatever TLS a case wants: it lets everybody in who believes it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::CertifiedKey;
use rustls::{
    DigitallySignedStruct, DistinguishedName, ServerConfig, ServerConnection, SignatureScheme,
    SupportedProtocolVersion, client::danger::HandshakeSignatureValid, crypto::ring,
};

/// What the server does after the start-up message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Answer {
    LetsIn,
    /// An error with this SQLSTATE instead of letting the client in.
    Refuses(&'static str),
    /// An error with this SQLSTATE after the client was let in.
    RefusesInside(&'static str),
    /// The same, where the client says its name.
    RefusesNames(&'static str),
    HangsUp,
}

/// Whether the server asks for the client's certificate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Asks {
    No,
    Optional,
    Demands,
}

/// A server.
#[derive(Clone)]
pub(crate) struct Server {
    /// None: it declines TLS.
    pub(crate) tls: Option<Arc<ServerConfig>>,
    pub(crate) answer: Answer,
}

/// How a server speaks TLS.
pub(crate) struct Speech {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
    pub(crate) versions: &'static [&'static SupportedProtocolVersion],
    pub(crate) alpn: &'static [&'static [u8]],
    pub(crate) asks: Asks,
}

impl Server {
    pub(crate) fn speaking(speech: Speech) -> Self {
        let provider = Arc::new(ring::default_provider());
        let key = provider.key_provider.load_private_key(speech.key).expect("a key");
        let shown = Shown(Arc::new(CertifiedKey::new(speech.chain, key)));
        let builder = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(speech.versions)
            .expect("versions");
        let mut config = match speech.asks {
            Asks::No => builder.with_no_client_auth(),
            asks => builder.with_client_cert_verifier(Arc::new(Anybody(asks == Asks::Demands))),
        }
        .with_cert_resolver(Arc::new(shown));
        config.alpn_protocols = speech.alpn.iter().map(|name| name.to_vec()).collect();
        Self { tls: Some(Arc::new(config)), answer: Answer::LetsIn }
    }
}

#[derive(Debug)]
struct Shown(Arc<CertifiedKey>);

impl rustls::server::ResolvesServerCert for Shown {
    fn resolve(&self, _: rustls::server::ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

/// Believes any client's certificate; true demands one.
#[derive(Debug)]
struct Anybody(bool);

impl ClientCertVerifier for Anybody {
    fn client_auth_mandatory(&self) -> bool {
        self.0
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

/// The logins that a server saw: whether each was encrypted.
pub(crate) type Logins = Vec<bool>;

/// A server that listens until it is dropped.
pub(crate) struct Door {
    pub(crate) port: u16,
    logins: Arc<Mutex<Logins>>,
    is_shut: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Door {
    pub(crate) fn open(server: Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (logins, is_shut) = (Arc::<Mutex<Logins>>::default(), Arc::<AtomicBool>::default());
        let (seen, shut) = (Arc::clone(&logins), Arc::clone(&is_shut));
        let thread = std::thread::spawn(move || {
            for client in listener.incoming() {
                if shut.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(client) = client else { continue };
                // A client that goes away in the middle has had its reasons.
                let _ = serve(&server, client, &seen);
            }
        });
        Door { port, logins, is_shut, thread: Some(thread) }
    }

    /// The logins since the last call.
    pub(crate) fn take_logins(&self) -> Logins {
        std::mem::take(&mut self.logins.lock().expect("logins"))
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.is_shut.store(true, Ordering::Relaxed);
        // Wakes the thread.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(server: &Server, mut client: TcpStream, logins: &Mutex<Logins>) -> std::io::Result<()> {
    client.set_read_timeout(Some(Duration::from_secs(20)))?;
    client.set_nodelay(true)?;
    let mut first = [0];
    client.peek(&mut first)?;
    if first[0] == 0x16 {
        return match &server.tls {
            Some(config) => speak_tls(config, server.answer, client, logins),
            None => Ok(()),
        };
    }
    let message = startup_message(&mut client)?;
    if message.get(..4) != Some(&80_877_103_u32.to_be_bytes()) {
        return speak(&message, server.answer, &mut client, logins, false);
    }
    match &server.tls {
        Some(config) => {
            client.write_all(b"S")?;
            speak_tls(config, server.answer, client, logins)
        }
        None => {
            client.write_all(b"N")?;
            let message = startup_message(&mut client)?;
            speak(&message, server.answer, &mut client, logins, false)
        }
    }
}

fn speak_tls(
    config: &Arc<ServerConfig>,
    answer: Answer,
    client: TcpStream,
    logins: &Mutex<Logins>,
) -> std::io::Result<()> {
    let tls = ServerConnection::new(Arc::clone(config)).map_err(std::io::Error::other)?;
    let mut stream = rustls::StreamOwned::new(tls, client);
    let message = startup_message(&mut stream)?;
    speak(&message, answer, &mut stream, logins, true)
}

/// A message without a type: its length is dropped.
fn startup_message(client: &mut impl Read) -> std::io::Result<Vec<u8>> {
    let mut length = [0; 4];
    client.read_exact(&mut length)?;
    let mut message = vec![0; (u32::from_be_bytes(length) as usize).clamp(4, 10_000) - 4];
    client.read_exact(&mut message)?;
    Ok(message)
}

fn speak(
    message: &[u8],
    answer: Answer,
    client: &mut (impl Read + Write),
    logins: &Mutex<Logins>,
    is_encrypted: bool,
) -> std::io::Result<()> {
    logins.lock().expect("logins").push(is_encrypted);
    let has_name = message.windows(16).any(|part| part == b"application_name");
    let refusal =
        |state: &str| framed(b'E', format!("SFATAL\0VFATAL\0C{state}\0Mno\0\0").as_bytes());
    let authenticated = framed(b'R', &[0; 4]);
    let refused = match answer {
        Answer::LetsIn => None,
        Answer::HangsUp => return Ok(()),
        Answer::Refuses(state) => Some(refusal(state)),
        Answer::RefusesInside(state) => Some([authenticated.clone(), refusal(state)].concat()),
        Answer::RefusesNames(state) => {
            has_name.then(|| [authenticated.clone(), refusal(state)].concat())
        }
    };
    if let Some(refused) = refused {
        client.write_all(&refused)?;
        return client.flush();
    }
    let setting = |name: &str, value: &str| framed(b'S', format!("{name}\0{value}\0").as_bytes());
    let welcome = [
        authenticated,
        setting("server_version", "15.0"),
        setting("client_encoding", "UTF8"),
        setting("standard_conforming_strings", "on"),
        framed(b'K', &[0, 0, 0, 1, 0, 0, 0, 2]),
        framed(b'Z', b"I"),
    ];
    client.write_all(&welcome.concat())?;
    client.flush()?;
    // Until the client says good-bye.
    let mut rest = [0; 1024];
    while client.read(&mut rest)? > 0 {}
    Ok(())
}

fn framed(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[tag], &length[..], body].concat()
}
