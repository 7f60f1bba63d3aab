//! A PostgreSQL that a test builds, talks to and throws away; and a blocking client for it.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use wire::auth::{KeyCache, Nonce};
use wire::startup::{Channel, Login, Session, Startup, StartupError};
use wire::{Frame, frame, frontend};

/// Roles and how they may log in.
pub(crate) const HBA: &str = "\
local all super trust
local all scram,longsalt scram-sha-256
local all md5 md5
local all clear password
local all gss reject
host  all scram 127.0.0.1/32 scram-sha-256
";

/// A server of its own; stopped and removed when dropped.
pub(crate) struct Server {
    pub(crate) directory: TempDir,
    pub(crate) port: u16,
    postmaster: Child,
}

impl Server {
    /// Builds and starts a server with these lines as its pg_hba.conf.
    pub(crate) fn start(hba: &str, settings: &[&str]) -> Self {
        Self::start_with(hba, settings, &[])
    }

    /// As above, with these files in its data directory, readable by nobody else.
    pub(crate) fn start_with(hba: &str, settings: &[&str], files: &[(&str, &str)]) -> Self {
        let directory = tempfile::Builder::new().prefix("wire-").tempdir().unwrap();
        let data = directory.path().join("data");
        if is_root() {
            let (user, group) = unprivileged();
            chown(directory.path(), Some(user), Some(group)).unwrap();
        }
        let mut initdb = server_program("initdb");
        initdb.arg("-D").arg(&data).args(["-A", "trust", "-U", "super", "-N", "-E", "UTF8"]);
        let initdb = initdb.args(["--locale", "C"]).output().unwrap();
        assert!(initdb.status.success(), "{}", String::from_utf8_lossy(&initdb.stderr));
        fs::write(data.join("pg_hba.conf"), hba).unwrap();
        for (name, text) in files {
            let path = data.join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            if is_root() {
                let (user, group) = unprivileged();
                chown(&path, Some(user), Some(group)).unwrap();
            }
        }
        // Another process may take a free port before the server does.
        let server = (0..3).find_map(|_| Self::launch(&directory, &data, settings));
        let (postmaster, port) = server.unwrap_or_else(|| {
            let log = fs::read_to_string(directory.path().join("log")).unwrap_or_default();
            panic!("the server does not start: {log}");
        });
        Self { directory, port, postmaster }
    }

    fn launch(directory: &TempDir, data: &Path, settings: &[&str]) -> Option<(Child, u16)> {
        let port = free_port();
        let mut postgres = server_program("postgres");
        postgres.arg("-D").arg(data).arg("-k").arg(directory.path());
        postgres.arg("-p").arg(port.to_string()).args(["-c", "listen_addresses=127.0.0.1"]);
        postgres.args(["-c", "fsync=off", "-c", "shared_buffers=16MB"]);
        for setting in settings {
            postgres.args(["-c", setting]);
        }
        let log = fs::File::create(directory.path().join("log")).unwrap();
        postgres.stdout(log.try_clone().unwrap()).stderr(log);
        let mut postmaster = postgres.spawn().unwrap();
        let socket = directory.path().join(format!(".s.PGSQL.{port}"));
        let login = Arc::new(Login::new("super", "postgres"));
        let deadline = Instant::now() + Duration::from_secs(60);
        while Instant::now() < deadline && matches!(postmaster.try_wait(), Ok(None)) {
            if let Ok(stream) = UnixStream::connect(&socket)
                && Client::start(Box::new(stream), Arc::clone(&login), &mut KeyCache::new()).is_ok()
            {
                return Some((postmaster, port));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = postmaster.kill();
        let _ = postmaster.wait();
        None
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join(format!(".s.PGSQL.{}", self.port))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A fast shutdown; if that takes too long, an immediate one.
        for signal in ["-INT", "-QUIT"] {
            let _ = Command::new("kill").arg(signal).arg(self.postmaster.id().to_string()).status();
            let deadline = Instant::now() + Duration::from_secs(20);
            while Instant::now() < deadline {
                if matches!(self.postmaster.try_wait(), Ok(Some(_))) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
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
    pub(crate) facts: Session,
    input: Vec<u8>,
}

impl Client {
    pub(crate) fn start(
        stream: Box<dyn Connection>,
        login: Arc<Login>,
        keys: &mut KeyCache,
    ) -> Result<Self, StartupError> {
        Self::start_through(stream, Channel::Plain, login, keys)
    }

    pub(crate) fn start_through(
        mut stream: Box<dyn Connection>,
        channel: Channel,
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
            while let Some(Frame { tag, body }) = frame::next(&self.input[seen..]).unwrap() {
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
    let login = Arc::new(Login::new("super", "postgres"));
    Client::start(Stream::unix(server), login, &mut KeyCache::new()).unwrap()
}

/// Chance, from the operating system.
pub(crate) fn nonce() -> Nonce {
    let mut bytes = [0; 18];
    fs::File::open("/dev/urandom").unwrap().read_exact(&mut bytes).unwrap();
    Nonce(bytes)
}

/// A program of PostgreSQL, run as a user that it accepts, and ended if this thread ends.
pub(crate) fn server_program(name: &str) -> Command {
    let program = program(name);
    if !is_root() {
        return Command::new(program);
    }
    let (user, group) = unprivileged();
    let mut command = Command::new("setpriv");
    command.arg(format!("--reuid={user}")).arg(format!("--regid={group}"));
    command.args(["--clear-groups", "--pdeathsig", "QUIT", "--"]).arg(program);
    command.current_dir("/").stdin(Stdio::null());
    command
}

/// Where a program of PostgreSQL is. A machine without one cannot run these tests.
pub(crate) fn program(name: &str) -> PathBuf {
    let packaged = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = packaged.map(|entry| entry.path().join("bin")).collect();
    found.sort();
    found.extend(std::env::var_os("PG_BIN").map(PathBuf::from));
    found.reverse();
    let path = std::env::var_os("PATH").unwrap_or_default();
    found.extend(std::env::split_paths(&path));
    found
        .iter()
        .map(|directory| directory.join(name))
        .find(|program| program.is_file())
        .unwrap_or_else(|| panic!("PostgreSQL's {name} is not installed (or set PG_BIN)"))
}

fn is_root() -> bool {
    Path::new("/proc/self").metadata().is_ok_and(|metadata| metadata.uid() == 0)
}

/// The ids of `postgres`, else of `nobody`.
fn unprivileged() -> (u32, u32) {
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let ids = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2).map(|field| field.parse::<u32>());
        Some((fields.next()?.ok()?, fields.next()?.ok()?))
    };
    ids("postgres").or_else(|| ids("nobody")).expect("there is a user nobody")
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
