//! A PostgreSQL that a test talks to and throws away; and a blocking client for it.

use std::cell::OnceCell;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lab::{Lab, Listen, Node, NodeConfig};
use testing::servers;
use wire::auth::{KeyCache, ScramNonce};
use wire::startup::{Login, SessionFacts, Startup, StartupChannel, StartupError};
use wire::{MessageFrame, frame, frontend};

/// Roles and how they may log in.
pub(crate) const HBA: &str = "\
local all postgres trust
local all scram,longsalt scram-sha-256
local all md5 md5
local all clear password
local all gss reject
host  all scram 127.0.0.1/32 scram-sha-256
";

/// A server of its own; stopped and removed when dropped.
pub(crate) struct Server {
    node: Node,
    pub(crate) port: u16,
    /// Asked for once: a test may have taken every connection later.
    socket: OnceCell<PathBuf>,
    _lab: Lab,
}

impl Server {
    /// Builds and starts a server with these lines as its pg_hba.conf.
    pub(crate) fn start(hba: &str, settings: &[(&str, &str)]) -> Self {
        Self::start_with(hba, settings, &[])
    }

    /// As above, with these files in its data directory, readable by nobody else.
    pub(crate) fn start_with(hba: &str, settings: &[(&str, &str)], files: &[(&str, &str)]) -> Self {
        let lab = servers::lab();
        let small = [("fsync", "off"), ("shared_buffers", "16MB")];
        let settings = small.iter().chain(settings).copied().collect();
        let config = NodeConfig { listen: Listen::Loopback, ..NodeConfig::new(settings) };
        let mut node = lab.node("server", config).unwrap();
        node.init().unwrap();
        let owner = node.data().metadata().unwrap();
        for (name, text) in [("pg_hba.conf", hba)].iter().chain(files) {
            let path = node.data().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
        }
        node.start().unwrap();
        Self { port: node.endpoint().port, node, socket: OnceCell::new(), _lab: lab }
    }

    pub(crate) fn socket(&self) -> &Path {
        self.socket.get_or_init(|| {
            servers::socket_directory(&self.node).join(format!(".s.PGSQL.{}", self.port))
        })
    }
}

/// Either kind of connection.
pub(crate) trait Connection: Read + Write + Send {}
impl<T: Read + Write + Send> Connection for T {}

pub(crate) struct Stream;

impl Stream {
    pub(crate) fn unix(server: &Server) -> Box<dyn Connection> {
        let stream = UnixStream::connect(server.socket()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Box::new(stream)
    }

    pub(crate) fn tcp(server: &Server) -> Box<dyn Connection> {
        let stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Box::new(stream)
    }
}

/// A session, driven by blocking reads and writes.
pub(crate) struct Client {
    stream: Box<dyn Connection>,
    pub(crate) facts: SessionFacts,
    input: Vec<u8>,
}

impl Client {
    pub(crate) fn start(
        stream: Box<dyn Connection>,
        login: Arc<Login>,
        keys: &mut KeyCache,
    ) -> Result<Self, StartupError> {
        Self::start_through(stream, StartupChannel::Plain, login, keys)
    }

    pub(crate) fn start_through(
        mut stream: Box<dyn Connection>,
        channel: StartupChannel,
        login: Arc<Login>,
        keys: &mut KeyCache,
    ) -> Result<Self, StartupError> {
        let (mut input, mut output) = (Vec::new(), Vec::new());
        let mut startup = Startup::begin(login, channel, nonce(), &mut output)?;
        loop {
            stream.write_all(&output).unwrap();
            output.clear();
            if !receive(&mut stream, &mut input) {
                return Err(StartupError::Closed);
            }
            let progress = startup.advance(&input, keys, &mut output)?;
            input.drain(..progress.consumed);
            if let Some(facts) = progress.session {
                return Ok(Self { stream, facts, input });
            }
        }
    }

    /// Sends `output` and returns everything up to and with the next ReadyForQuery.
    pub(crate) fn exchange(&mut self, output: &[u8]) -> Vec<u8> {
        self.stream.write_all(output).unwrap();
        let mut seen = 0;
        loop {
            while let Some(MessageFrame { tag, body }) = frame::next(&self.input[seen..]).unwrap() {
                seen += frame::HEADER_BYTES + body.len();
                if tag == b'Z' {
                    return self.input.drain(..seen).collect();
                }
            }
            assert!(receive(&mut self.stream, &mut self.input), "the server hung up");
        }
    }

    /// Runs a simple query and returns everything that the server answers.
    pub(crate) fn query(&mut self, sql: &str) -> Vec<u8> {
        let mut output = Vec::new();
        frontend::query(&mut output, sql.as_bytes()).unwrap();
        self.exchange(&output)
    }

    pub(crate) fn send(&mut self, output: &[u8]) {
        self.stream.write_all(output).unwrap();
    }
}

/// Appends what has arrived; false at the end.
fn receive(stream: &mut Box<dyn Connection>, input: &mut Vec<u8>) -> bool {
    let mut buffer = [0; 8192];
    match stream.read(&mut buffer) {
        Ok(0) => false,
        Ok(count) => {
            input.extend_from_slice(&buffer[..count]);
            true
        }
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => false,
        Err(error) => panic!("failed to read from the server: {error}"),
    }
}

/// A session of the superuser.
pub(crate) fn admin(server: &Server) -> Client {
    let login = Arc::new(Login::new("postgres", "postgres"));
    Client::start(Stream::unix(server), login, &mut KeyCache::new()).unwrap()
}

/// Chance, from the operating system.
pub(crate) fn nonce() -> ScramNonce {
    let mut bytes = [0; 18];
    fs::File::open("/dev/urandom").unwrap().read_exact(&mut bytes).unwrap();
    ScramNonce(bytes)
}

/// A program of PostgreSQL.
pub(crate) fn program(name: &str) -> PathBuf {
    servers::installation().program(name)
}
