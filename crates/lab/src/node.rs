//! One PostgreSQL server of a lab, with the verbs of PostgreSQL's own test framework.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use os::command::Output;
use os::init::{Exit, Init};
use rustix::process::Signal;

use crate::copy::{copy_tree, failed, make_directory, remove_tree, write_file};
use crate::endpoint::{Endpoint, Host};
use crate::error::Error;
use crate::find::Installation;
use crate::initdb::{self, SETTINGS_FILE, SUPERUSER};
use crate::lab::Shared;
use crate::log::{self, LogFormat};
use crate::port::ReservedPort;
use crate::settings::{self, Settings};
use crate::wait::wait_until;

/// What a node is made from.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    /// Its settings.
    pub settings: Settings,
    /// Further options of initdb, as in `--data-checksums`.
    pub initdb: Vec<String>,
    /// Where clients reach it.
    pub listen: Listen,
    /// How long a start (crash recovery included) and a stop may take.
    pub timeout: Duration,
}

impl NodeConfig {
    /// A node with these settings that listens on a Unix socket.
    pub fn new(settings: Settings) -> Self {
        // The time that PostgreSQL's own tests allow.
        let timeout = Duration::from_secs(180);
        Self { settings, initdb: Vec::new(), listen: Listen::Unix, timeout }
    }
}

/// Where clients reach a node. Its administrators always use the Unix socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listen {
    /// On a Unix socket in the lab's directory, without a password.
    Unix,
    /// On a free port of 127.0.0.1 as well, with SCRAM and the lab's password.
    Loopback,
}

/// How a server is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopMode {
    /// When the last client has left.
    Smart,
    /// After disconnecting all clients and a checkpoint.
    Fast,
    /// At once, so that the next start recovers from the WAL.
    Immediate,
}

/// One PostgreSQL server. It is killed when it is dropped; its directory stays until the lab ends.
#[derive(Debug)]
pub struct Node {
    shared: Arc<Shared>,
    name: String,
    config: NodeConfig,
    /// Configuration lines as they were given.
    lines: String,
    port: u16,
    _reserved: Option<ReservedPort>,
    directory: PathBuf,
    server: Option<Server>,
}

/// A postmaster that was started.
#[derive(Debug, Clone, Copy)]
struct Server {
    pid: i32,
    host_pid: Option<i32>,
    is_paused: bool,
}

/// A copy of a stopped node's data.
#[derive(Debug)]
pub struct Snapshot {
    directory: PathBuf,
    bytes: u64,
}

impl Snapshot {
    /// How many bytes its files hold.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Removes it before the lab ends.
    ///
    /// # Errors
    /// The file system's.
    pub fn remove(self) -> Result<(), Error> {
        remove_tree(&self.directory)
    }
}

impl Node {
    pub(crate) fn new(shared: Arc<Shared>, name: &str, config: NodeConfig) -> Result<Self, Error> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(is_word) {
            return Err(Error::NodeName { name: name.to_owned() });
        }
        settings::check(name, &config.settings)?;
        let reserved = match config.listen {
            Listen::Unix => None,
            Listen::Loopback => Some(ReservedPort::take().map_err(|source| {
                let (doing, node) = ("finding a TCP port", name.to_owned());
                Error::Process { doing, node, source }
            })?),
        };
        if !shared.take_name(name) {
            return Err(Error::NodeExists { name: name.to_owned() });
        }
        // One server has one port for both; Unix sockets only need names that differ.
        let port = reserved.as_ref().map_or_else(|| shared.take_unix_port(), |tcp| tcp.number);
        let (directory, name, lines) =
            (shared.node_directory(name), name.to_owned(), String::new());
        Ok(Self { shared, name, config, lines, port, _reserved: reserved, directory, server: None })
    }

    /// Makes its data directory, replacing one that is there.
    ///
    /// # Errors
    /// initdb's, with what it said; the file system's.
    pub fn init(&mut self) -> Result<(), Error> {
        self.expect_stopped("initialising")?;
        self.make_room()?;
        initdb::initialise(&self.shared, &self.name, &self.config.initdb, &self.data())
    }

    /// Takes other settings instead of all that it had; they hold from the next start or reload.
    ///
    /// # Errors
    /// [`Error::Setting`] for what cannot be set.
    pub fn configure(&mut self, settings: Settings) -> Result<(), Error> {
        settings::check(&self.name, &settings)?;
        self.config.settings = settings;
        Ok(())
    }

    /// Adds lines to the configuration as they are; they hold from the next start or reload.
    pub fn append_conf(&mut self, lines: &str) {
        self.lines.push_str(lines);
        if !lines.ends_with('\n') {
            self.lines.push('\n');
        }
    }

    /// Starts the server and waits until it accepts connections.
    ///
    /// # Errors
    /// [`Error::Start`] with the end of the server's log; [`Error::Timeout`].
    pub fn start(&mut self) -> Result<(), Error> {
        self.expect_stopped("starting")?;
        if !self.data().join("PG_VERSION").is_file() {
            return Err(self.state("starting", "has no data directory yet"));
        }
        self.remove_leftovers()?;
        self.write_settings()?;
        let log = self.start_log();
        let command = self
            .shared
            .command("postgres", &self.data())
            .arg("-D")
            .arg(self.data())
            .stdout(Output::File(log.clone()))
            .stderr(Output::File(log))
            // If the init dies and could not take it along: immediate shutdown.
            .parent_death_signal(Signal::QUIT);
        let pid = self.shared.spawn(&command)?;
        self.server = Some(Server { pid, host_pid: None, is_paused: false });
        let started = self.wait_until_ready(pid);
        if started.is_err() {
            // Half a server is worse than none; its log has been read.
            let _ = self.kill9();
            return started;
        }
        let host_pid = self.init_process("asking for the process id")?.host_pid(pid);
        self.server = Some(Server { pid, host_pid, is_paused: false });
        Ok(())
    }

    /// Stops the server and waits for its end. One that is paused is resumed for it.
    ///
    /// # Errors
    /// [`Error::State`] if it does not run; [`Error::Timeout`], after which it still runs.
    pub fn stop(&mut self, mode: StopMode) -> Result<Exit, Error> {
        let server = self.expect_running("stopping")?;
        if server.is_paused {
            self.resume()?;
        }
        let signal = match mode {
            StopMode::Smart => Signal::TERM,
            StopMode::Fast => Signal::INT,
            StopMode::Immediate => Signal::QUIT,
        };
        let process = |source| self.process("signalling the server", source);
        self.shared.init().and_then(|init| init.signal(server.pid, signal)).map_err(process)?;
        let exit = wait_until(self.config.timeout, || self.exit())?
            .ok_or_else(|| self.timeout("stopping"))?;
        self.server = None;
        Ok(exit)
    }

    /// Stops it fast and starts it again.
    ///
    /// # Errors
    /// As [`Node::stop`] and [`Node::start`].
    pub fn restart(&mut self) -> Result<(), Error> {
        self.stop(StopMode::Fast)?;
        self.start()
    }

    /// Kills all its processes with SIGKILL and waits until none is left; returns how many.
    ///
    /// # Errors
    /// The init's.
    pub fn kill9(&mut self) -> Result<usize, Error> {
        let killed = self.signal_all("killing all processes", Signal::KILL)?;
        self.server = None;
        Ok(killed)
    }

    /// Stops all its processes in their tracks (SIGSTOP), and returns how many when all stand.
    ///
    /// # Errors
    /// [`Error::State`] if it does not run; the init's.
    pub fn pause(&mut self) -> Result<usize, Error> {
        let server = self.expect_running("pausing")?;
        let paused = self.signal_all("pausing all processes", Signal::STOP)?;
        self.server = Some(Server { is_paused: true, ..server });
        Ok(paused)
    }

    /// Lets its processes go on, and returns how many.
    ///
    /// # Errors
    /// [`Error::State`] if it does not run; the init's.
    pub fn resume(&mut self) -> Result<usize, Error> {
        let server = self.expect_running("resuming")?;
        let resumed = self.signal_all("resuming all processes", Signal::CONT)?;
        self.server = Some(Server { is_paused: false, ..server });
        Ok(resumed)
    }

    /// Has the server read its settings again, and waits until it has.
    ///
    /// # Errors
    /// [`Error::Reload`] for values that are wrong or need a restart; [`Error::Timeout`].
    pub fn reload(&mut self) -> Result<(), Error> {
        let server = self.expect_running("reloading")?;
        let before = self.value(LOAD_TIME)?;
        self.write_settings()?;
        let process = |source| self.process("signalling the server", source);
        self.shared
            .init()
            .and_then(|init| init.signal(server.pid, Signal::HUP))
            .map_err(process)?;
        let is_loaded = || Ok((self.value(LOAD_TIME)? != before).then_some(()));
        wait_until(RELOAD_TIMEOUT, is_loaded)?.ok_or_else(|| {
            let (node, waited) = (self.name.clone(), RELOAD_TIMEOUT);
            Error::Timeout { doing: "reloading", node, waited, log: self.log_tail() }
        })?;
        match self.value(NOT_APPLIED)? {
            None => Ok(()),
            Some(names) => {
                let names = names.split(' ').map(str::to_owned).collect();
                Err(Error::Reload { node: self.name.clone(), names, log: self.log_tail() })
            }
        }
    }

    /// Whether its server runs; one that crashed does not.
    ///
    /// # Errors
    /// The init's.
    pub fn is_running(&self) -> Result<bool, Error> {
        Ok(self.server.is_some() && self.exit()?.is_none())
    }

    /// Copies the data of the stopped node.
    ///
    /// # Errors
    /// [`Error::State`] if it runs; the file system's.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        self.expect_stopped("copying")?;
        let directory = self.shared.new_snapshot_directory();
        let bytes = copy_tree(&self.data(), &directory, self.shared.user)?;
        Ok(Snapshot { directory, bytes })
    }

    /// Makes its data directory from a snapshot of this lab, replacing one that is there. What it
    /// wrote is on the disk only after [`crate::Lab::sync`].
    ///
    /// # Errors
    /// [`Error::State`] if it runs; the file system's.
    pub fn init_from_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), Error> {
        self.expect_stopped("restoring")?;
        self.make_room()?;
        copy_tree(&snapshot.directory, &self.data(), self.shared.user).map(drop)
    }

    /// Makes its data directory from that of another node of this lab, which is stopped.
    ///
    /// # Errors
    /// [`Error::State`] if either runs; the file system's.
    pub fn clone_data(&mut self, from: &Node) -> Result<(), Error> {
        self.expect_stopped("cloning into")?;
        from.expect_stopped("cloning")?;
        self.make_room()?;
        copy_tree(&from.data(), &self.data(), self.shared.user).map(drop)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The PostgreSQL that it runs.
    pub fn installation(&self) -> &Installation {
        &self.shared.installation
    }

    /// The settings that it was given.
    pub fn settings(&self) -> &Settings {
        &self.config.settings
    }

    /// Its directory, which holds the data and the logs.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Its data directory.
    pub fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// The log that people read.
    pub fn log(&self) -> PathBuf {
        self.directory.join("log").join("server.log")
    }

    /// The log that programs read.
    pub fn structured_log(&self) -> (LogFormat, PathBuf) {
        let format = LogFormat::of(self.installation().version().major);
        (format, self.log().with_extension(format.suffix()))
    }

    /// The postmaster's process id as `/proc` outside the lab's namespaces has it, while it runs.
    pub fn host_pid(&self) -> Option<i32> {
        self.server.and_then(|server| server.host_pid)
    }

    /// Where clients reach it, as the superuser and in database postgres.
    pub fn endpoint(&self) -> Endpoint {
        let (port, user, database) = (self.port, SUPERUSER.to_owned(), "postgres".to_owned());
        match self.config.listen {
            Listen::Unix => {
                let host = Host::Unix(self.shared.sockets());
                Endpoint { host, port, user, database, password: None }
            }
            Listen::Loopback => {
                let host = Host::Tcp("127.0.0.1".to_owned());
                let password = Some(self.shared.password.clone());
                Endpoint { host, port, user, database, password }
            }
        }
    }

    /// A connection for administration, as the superuser, to database postgres.
    ///
    /// # Errors
    /// [`Error::Connect`].
    pub fn connect(&self) -> Result<postgres::Client, Error> {
        self.connect_to("postgres")
    }

    /// A connection for administration, as the superuser.
    ///
    /// # Errors
    /// [`Error::Connect`].
    pub fn connect_to(&self, database: &str) -> Result<postgres::Client, Error> {
        let host = Host::Unix(self.shared.sockets());
        let endpoint = Endpoint { host, password: None, ..self.endpoint() }.with_database(database);
        endpoint.connect(&format!("node {}", self.name))
    }

    /// The first value that a statement gives, as text.
    ///
    /// # Errors
    /// [`Error::Connect`]; [`Error::Query`].
    pub fn value(&self, statement: &str) -> Result<Option<String>, Error> {
        let mut client = self.connect()?;
        crate::endpoint::first_value(&mut client, statement, &format!("node {}", self.name))
    }

    /// Runs `statement` again and again until its first value is `expected`.
    ///
    /// # Errors
    /// [`Error::Timeout`] with the last value; those of [`Node::value`].
    pub fn poll_query_until(
        &self,
        statement: &str,
        expected: &str,
        timeout: Duration,
    ) -> Result<(), Error> {
        let mut seen = None;
        let reached = wait_until(timeout, || {
            seen = self.value(statement)?;
            Ok((seen.as_deref() == Some(expected)).then_some(()))
        })?;
        reached.ok_or_else(|| {
            let log = format!("{statement}\ngave {seen:?} last, not {expected:?}");
            Error::Timeout { doing: "polling", node: self.name.clone(), waited: timeout, log }
        })
    }
}

impl Node {
    fn make_room(&self) -> Result<(), Error> {
        let (user, log) = (self.shared.user, self.directory.join("log"));
        for directory in [&self.directory, &log] {
            if !directory.is_dir() {
                make_directory(directory, user)?;
            }
        }
        remove_tree(&self.data())
    }

    /// Removes what a killed server left: process ids are few in a namespace, so that the next
    /// server would soon take another's for the owner of the lock files.
    fn remove_leftovers(&self) -> Result<(), Error> {
        self.signal_all("killing what is left", Signal::KILL)?;
        let socket = self.shared.sockets().join(format!(".s.PGSQL.{}", self.port));
        let lock = self.shared.sockets().join(format!(".s.PGSQL.{}.lock", self.port));
        for path in [self.data().join("postmaster.pid"), socket, lock, self.start_log()] {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(failed("removing", &path)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn write_settings(&self) -> Result<(), Error> {
        let log = self.log();
        let folder = log.parent().unwrap_or(&log);
        let destination = format!("stderr,{}", self.structured_log().0.destination());
        let defaults = [
            ("cluster_name", self.name.as_str()),
            ("log_destination", &destination),
            ("log_line_prefix", "%m [%p] %q%u@%d "),
            ("log_rotation_age", "0"),
            ("log_rotation_size", "0"),
            ("log_timezone", "UTC"),
            ("timezone", "UTC"),
        ];
        let (port, sockets) = (self.port.to_string(), self.shared.sockets());
        let (folder, sockets) = (folder.to_string_lossy(), sockets.to_string_lossy());
        let listen = match self.config.listen {
            Listen::Unix => "",
            Listen::Loopback => "127.0.0.1",
        };
        let of_the_lab = [
            ("listen_addresses", listen),
            ("port", &port),
            ("unix_socket_directories", &sockets),
            ("unix_socket_permissions", "0700"),
            ("logging_collector", "on"),
            ("log_directory", &folder),
            ("log_filename", "server.log"),
        ];
        let text = [
            settings::render(defaults),
            settings::render(self.config.settings.iter()),
            self.lines.clone(),
            settings::render(of_the_lab),
        ]
        .concat();
        write_file(&self.data().join(SETTINGS_FILE), &text, self.shared.user)
    }

    /// The eighth line of postmaster.pid says what state the server is in (pidfile.h): looking
    /// there leaves no failed connections in its log.
    fn wait_until_ready(&self, pid: i32) -> Result<(), Error> {
        let path = self.data().join("postmaster.pid");
        let ready = wait_until(self.config.timeout, || {
            if let Some(exit) = self.exit()? {
                let (node, why, log) = (self.name.clone(), exit.to_string(), self.log_tail());
                return Err(Error::Start { node, why, log });
            }
            let text = fs::read_to_string(&path).unwrap_or_default();
            let mut lines = text.lines();
            let is_own = lines.next() == Some(pid.to_string().as_str());
            Ok((is_own && lines.nth(6).map(str::trim) == Some("ready")).then_some(()))
        })?;
        ready.ok_or_else(|| self.timeout("starting"))
    }

    fn signal_all(&self, doing: &'static str, signal: Signal) -> Result<usize, Error> {
        self.init_process(doing)?
            .signal_under(&self.directory, signal)
            .map_err(|source| self.process(doing, source))
    }

    fn exit(&self) -> Result<Option<Exit>, Error> {
        let Some(server) = self.server else { return Ok(None) };
        let doing = "asking for the end";
        self.init_process(doing)?.exit(server.pid).map_err(|source| self.process(doing, source))
    }

    fn init_process(&self, doing: &'static str) -> Result<&Init, Error> {
        self.shared.init().map_err(|source| self.process(doing, source))
    }

    fn expect_stopped(&self, doing: &'static str) -> Result<(), Error> {
        match self.is_running()? {
            true => Err(self.state(doing, "is running")),
            false => Ok(()),
        }
    }

    fn expect_running(&self, doing: &'static str) -> Result<Server, Error> {
        match self.server {
            Some(server) if self.exit()?.is_none() => Ok(server),
            _ => Err(self.state(doing, "is not running")),
        }
    }

    fn start_log(&self) -> PathBuf {
        self.directory.join("start.log")
    }

    /// What the server said before its log collector ran, and the end of what it said after.
    fn log_tail(&self) -> String {
        let (before, after) = (log::tail(&self.start_log()), log::tail(&self.log()));
        [before, after].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
    }

    fn state(&self, doing: &'static str, state: &'static str) -> Error {
        Error::State { doing, node: self.name.clone(), state }
    }

    fn timeout(&self, doing: &'static str) -> Error {
        let (node, waited) = (self.name.clone(), self.config.timeout);
        Error::Timeout { doing, node, waited, log: self.log_tail() }
    }

    fn process(&self, doing: &'static str, source: std::io::Error) -> Error {
        Error::Process { doing, node: self.name.clone(), source }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if self.server.is_some() {
            // The init kills what is left when the lab ends.
            let _ = self.kill9();
        }
        self.shared.give_back(&self.name, self.port);
    }
}

/// The moment of the last reload; it stays when the files cannot be read as a whole.
const LOAD_TIME: &str = "SELECT pg_conf_load_time()";

/// The settings in the files that the server did not take.
const NOT_APPLIED: &str =
    "SELECT string_agg(DISTINCT name, ' ') FROM pg_file_settings WHERE error IS NOT NULL";

/// A server reads its settings in milliseconds, unless it is very busy.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Node names are directories and show in process titles.
const NAME_BYTES_MAX: usize = 40;
