//! One PostgreSQL server of a lab, with the verbs of PostgreSQL's own test framework.

mod config;
mod data;
mod settings_file;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use os::command::Output;
use os::init::{Exit, Init};
use rustix::process::Signal;

use crate::copy::failed;
use crate::endpoint::{Endpoint, Host};
use crate::error::Error;
use crate::find::Installation;
use crate::initdb::{self, SUPERUSER};
use crate::lab::Shared;
use crate::log::{self, LogFormat};
use crate::port::ReservedPort;
use crate::settings::{self, Settings};
use crate::wait::wait_until;

pub use config::{Listen, NodeConfig, StopMode};
pub use data::Snapshot;

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
    /// How long its log was when it was last started: what stood there does not explain what
    /// happened since.
    log_bytes: u64,
}

/// A postmaster that was started.
#[derive(Debug, Clone, Copy)]
struct Server {
    pid: i32,
    host_pid: Option<i32>,
    is_paused: bool,
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
        Ok(Self {
            shared,
            name,
            config,
            lines,
            port,
            _reserved: reserved,
            directory,
            server: None,
            log_bytes: 0,
        })
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
        self.log_bytes = self.log().metadata().map_or(0, |log| log.len());
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
    /// [`Error::State`] if it does not run; [`Error::Stop`], after which it still runs.
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
        let exit = wait_until(self.config.timeout, || self.exit())?.ok_or_else(|| {
            let (node, waited) = (self.name.clone(), self.config.timeout);
            Error::Stop { node, mode, waited, log: self.log_tail() }
        })?;
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
        ready.ok_or_else(|| {
            let (node, waited) = (self.name.clone(), self.config.timeout);
            Error::Timeout { doing: "starting", node, waited, log: self.log_tail() }
        })
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
        let (before, after) =
            (log::tail(&self.start_log(), 0), log::tail(&self.log(), self.log_bytes));
        [before, after].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
    }

    fn state(&self, doing: &'static str, state: &'static str) -> Error {
        Error::State { doing, node: self.name.clone(), state }
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
