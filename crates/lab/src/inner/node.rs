//! One PostgreSQL server of a lab.

mod adopt;
mod archive;
mod backend;
mod base_backup;
mod checksums;
mod clock;
mod data;
mod disk;
mod format;
mod images;
mod part;
mod pgbackrest;
mod rescue;
mod rewind;
mod settings_file;
mod standby;
mod state;
mod swallow;
mod upgrade;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fault::disk::FaultyDisk;
use os::command::ProcessOutput;
use os::cpu_limit::CpuLimit;
use os::throttle::{IoLimits, IoThrottle};
use rustix::process::Signal;
use terms::StopMode;

use crate::admin::NodeAdmin;
use crate::answer::ProgramEnded;
use crate::archive::RestoreOrder;
use crate::client_run::ClientRun;
use crate::endpoint::{Encryption, Endpoint, Host};
use crate::error::Error;
use crate::files::remove_file;
use crate::find::Installation;
use crate::inner::initdb::{self, SUPERUSER};
use crate::inner::network::Network;
use crate::inner::node::part::PartDisk;
use crate::inner::port::Port;
use crate::inner::powered::PoweredObject;
use crate::inner::program::{Program, Runs};
use crate::inner::shared::Shared;
use crate::listen::Listen;
use crate::log::LogFormat;
use crate::node_config::NodeConfig;
use crate::settings;
use crate::verb::Upstream;
use crate::wait::wait_until;
use terms::Settings;

pub(crate) use data::Snapshot;

/// One PostgreSQL server. It is killed when it is dropped; its directory stays until the lab ends.
#[derive(Debug)]
pub(crate) struct Node {
    program: Program,
    config: NodeConfig,
    /// Configuration lines as they were given.
    lines: String,
    port: Port,
    /// The disk that its data lie on, unless it is the lab's directory.
    disk: Option<FaultyDisk>,
    /// The disks of the parts of its data that are not with these.
    parts: Vec<PartDisk>,
    /// True if the power of its disks was cut since it was formatted.
    is_cut: bool,
    /// The server that it streams from, if it is a standby.
    upstream: Option<Upstream>,
    /// The order by which its data were restored, if they were.
    restored_by: Option<RestoreOrder>,
    /// The length of its log when it was last started: what was there before does not explain what
    /// happened since.
    log_bytes: u64,
}

impl Node {
    pub(crate) fn new(shared: Arc<Shared>, name: &str, config: NodeConfig) -> Result<Self, Error> {
        let user = shared.user;
        let mut program = Program::new(shared, name, user)?;
        settings::check(name, &config.settings)?;
        let port = Port::take(&program.shared, config.listen, config.remote.as_ref(), name)?;
        if config.own_network {
            if config.listen == Listen::Loopback || config.remote.is_some() {
                return Err(Error::NetworkAndLoopback { node: name.to_owned() });
            }
            program.network = Some(Network::make(&program.shared, name)?);
        }
        let disk = disk::of(&config, &program, port.number);
        let parts = PartDisk::all(&config, &program, port.number);
        program.file_system = disk.as_ref().map(FaultyDisk::mount_point);
        let (lines, upstream) = (String::new(), None);
        let (is_cut, restored_by, log_bytes) = (false, None, 0);
        Ok(Self {
            program,
            config,
            lines,
            port,
            disk,
            parts,
            is_cut,
            upstream,
            restored_by,
            log_bytes,
        })
    }

    pub(crate) fn init(&mut self) -> Result<(), Error> {
        self.program.expect_stopped("initialising")?;
        self.make_room()?;
        let (initdb, data) = (&self.config.initdb, self.data_here()?);
        initdb::initialise(&self.program.shared, self.name(), initdb, &data)
    }

    pub(crate) fn configure(&mut self, settings: Settings) -> Result<(), Error> {
        settings::check(self.name(), &settings)?;
        self.config.settings = settings;
        Ok(())
    }

    pub(crate) fn append_conf(&mut self, lines: &str) -> Result<(), Error> {
        self.lines.push_str(lines);
        if !lines.ends_with('\n') {
            self.lines.push('\n');
        }
        Ok(())
    }

    pub(crate) fn limit_io(&self, limits: &IoLimits) -> Result<IoThrottle, Error> {
        let make = || IoThrottle::make(&self.program.directory, limits);
        self.limit("limiting the I/O", make, IoThrottle::take)
    }

    pub(crate) fn limit_cpus(&self, cpus: f64) -> Result<CpuLimit, Error> {
        self.limit("limiting the CPU time", || CpuLimit::make(cpus), CpuLimit::take)
    }

    /// Makes a limit, and takes all processes of the server into it.
    fn limit<L>(
        &self,
        doing: &'static str,
        make: impl Fn() -> io::Result<L>,
        take: impl Fn(&L, i32) -> io::Result<()>,
    ) -> Result<L, Error> {
        self.program.expect_running(doing)?;
        let limit = || {
            let limit = make()?;
            let Some(pid) = self.host_pid() else { return Ok(limit) };
            // What the first one starts from here on is in the group by itself.
            take(&limit, pid)?;
            let table = os::processes::all()?;
            os::processes::tree(&table, pid).into_iter().try_for_each(|pid| take(&limit, pid))?;
            Ok(limit)
        };
        limit().map_err(|source| Error::Process { doing, node: self.name().to_owned(), source })
    }

    pub(crate) fn reload(&mut self) -> Result<(), Error> {
        self.program.expect_running("reloading")?;
        let before = self.admin().value(LOAD_TIME)?;
        self.write_settings()?;
        self.program.signal("reloading", Signal::HUP)?;
        let is_loaded = || Ok((self.admin().value(LOAD_TIME)? != before).then_some(()));
        wait_until(RELOAD_TIMEOUT, is_loaded)?.ok_or_else(|| {
            let (node, waited) = (self.name().to_owned(), RELOAD_TIMEOUT);
            Error::Timeout { doing: "reloading", node, waited, log: self.log_tail() }
        })?;
        match self.admin().value(NOT_APPLIED)? {
            None => Ok(()),
            Some(names) => {
                let names = names.split(' ').map(str::to_owned).collect();
                Err(Error::Reload { node: self.name().to_owned(), names, log: self.log_tail() })
            }
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.program.name
    }

    /// Its network, if it has one of its own.
    pub(crate) fn network(&self) -> Option<&Network> {
        self.program.network.as_ref()
    }

    /// The PostgreSQL that it runs.
    pub(crate) fn installation(&self) -> &Installation {
        &self.program.shared.installation
    }

    /// Its directory, which holds the data and the logs.
    pub(crate) fn directory(&self) -> &Path {
        &self.program.directory
    }

    /// Its data directory, as processes of the lab see it; on a disk of its own it is mounted in the
    /// lab's namespace only.
    pub(crate) fn data(&self) -> PathBuf {
        match &self.disk {
            Some(disk) => disk.mount_point().join("data"),
            None => self.program.file("data"),
        }
    }

    /// The log that programs read.
    pub(crate) fn structured_log(&self) -> PathBuf {
        self.log().with_extension(self.log_format().suffix())
    }

    fn log_format(&self) -> LogFormat {
        LogFormat::of(self.installation().version().major)
    }

    /// The postmaster's process id as `/proc` outside the lab's namespaces has it, while it runs.
    pub(crate) fn host_pid(&self) -> Option<i32> {
        self.program.host_pid()
    }

    /// The address for clients, as the superuser and in database postgres.
    pub(crate) fn endpoint(&self) -> Endpoint {
        let (port, user, database) =
            (self.port.number, SUPERUSER.to_owned(), "postgres".to_owned());
        match self.config.listen {
            Listen::Unix => {
                let host = Host::Unix(self.program.shared.sockets());
                Endpoint {
                    host,
                    port,
                    user,
                    database,
                    password: None,
                    encryption: Encryption::None,
                }
            }
            Listen::Loopback => {
                let host = Host::Tcp("127.0.0.1".to_owned());
                let password = Some(self.program.shared.password.clone());
                Endpoint { host, port, user, database, password, encryption: Encryption::None }
            }
        }
    }

    /// The address for clients on other hosts, as the superuser and in database postgres.
    pub(crate) fn remote_endpoint(&self) -> Option<Endpoint> {
        let remote = self.config.remote.as_ref()?;
        let password = Some(self.program.shared.password.clone());
        let host = Host::Tcp(remote.address.to_string());
        let encryption = if remote.tls { Encryption::BoundTls } else { Encryption::None };
        Some(Endpoint { host, password, encryption, ..self.endpoint() })
    }
}

impl Node {
    fn has_data(&self) -> Result<bool, Error> {
        Ok(self.data_here()?.join("PG_VERSION").is_file())
    }

    /// The way of the lab itself.
    fn admin(&self) -> NodeAdmin {
        NodeAdmin { node: self.name().to_owned(), endpoint: self.admin_endpoint() }
    }

    /// Its Unix socket, which asks for no password.
    pub(crate) fn admin_endpoint(&self) -> Endpoint {
        let host = Host::Unix(self.program.shared.sockets());
        let encryption = Encryption::None;
        Endpoint { host, password: None, encryption, ..self.endpoint() }
    }

    /// Removes what a killed server left: process ids are few in a namespace, so that the next
    /// server would soon take another's for the owner of the lock files.
    fn remove_leftovers(&self) -> Result<(), Error> {
        self.program.kill_leftovers()?;
        let sockets = self.program.shared.sockets();
        let socket = sockets.join(format!(".s.PGSQL.{}", self.port.number));
        let lock = sockets.join(format!(".s.PGSQL.{}.lock", self.port.number));
        for path in [self.data_here()?.join("postmaster.pid"), socket, lock, self.start_log()] {
            remove_file(&path, self.program.owner)?;
        }
        Ok(())
    }

    /// The eighth line of postmaster.pid says what state the server is in (pidfile.h): looking
    /// there leaves no failed connections in its log.
    fn wait_until_ready(&self, pid: i32) -> Result<(), Error> {
        let path = self.data_here()?.join("postmaster.pid");
        let ready = wait_until(self.config.timeout, || {
            if let Some(exit) = self.program.exit()? {
                // The log collector outlives the postmaster, to write what that said last.
                self.program.wait_for_last(LAST_WORDS_TIMEOUT)?;
                let (node, why, log) = (self.name().to_owned(), exit.to_string(), self.log_tail());
                return Err(Error::Start { node, why, log });
            }
            let text = self.program.text(&path);
            let mut lines = text.lines();
            let is_own = lines.next() == Some(pid.to_string().as_str());
            Ok((is_own && lines.nth(6).map(str::trim) == Some("ready")).then_some(()))
        })?;
        ready.ok_or_else(|| {
            let (node, waited) = (self.name().to_owned(), self.config.timeout);
            Error::Timeout { doing: "starting", node, waited, log: self.log_tail() }
        })
    }

    fn start_log(&self) -> PathBuf {
        self.program.file("start.log")
    }

    pub(crate) fn run_client(&self, run: &ClientRun) -> Result<ProgramEnded, Error> {
        run.against(&self.endpoint(), self.installation(), self.name())
    }
}

impl Runs for Node {
    fn program(&self) -> &Program {
        &self.program
    }

    fn program_mut(&mut self) -> &mut Program {
        &mut self.program
    }

    fn start(&mut self) -> Result<(), Error> {
        self.program.expect_stopped("starting")?;
        self.give_power("starting")?;
        if !self.has_data()? {
            return Err(self.program.state("starting", "has no data directory yet"));
        }
        self.remove_leftovers()?;
        self.make_stanza()?;
        self.write_settings()?;
        self.split_parts()?;
        self.sync()?;
        // Before the first start there is no log.
        self.log_bytes = self.log().metadata().map_or(0, |log| log.len());
        let log = self.start_log();
        let command = self
            .program
            .shared
            .command("postgres", &self.data())
            .arg("-D")
            .arg(self.data())
            .stdout(ProcessOutput::File(log.clone()))
            .stderr(ProcessOutput::File(log))
            // If the init dies and could not take it along: immediate shutdown.
            .parent_death_signal(Signal::QUIT);
        let preloading = self.preloading()?.into_iter();
        let command = preloading.fold(command, |command, (name, value)| command.env(name, value));
        let pid = self.program.launch(&command)?;
        let ready = self.wait_until_ready(pid).and_then(|()| self.expect_swallowing());
        ready.inspect_err(|_| {
            // Half a server is worse than none; its log has been read.
            let _ = self.program.kill9();
        })
    }

    fn stop_signal(&self, mode: StopMode) -> (Signal, Duration) {
        let signal = match mode {
            StopMode::Smart => Signal::TERM,
            StopMode::Fast => Signal::INT,
            StopMode::Immediate => Signal::QUIT,
        };
        (signal, self.config.timeout)
    }

    fn log(&self) -> PathBuf {
        self.program.file("log/server.log")
    }

    /// The words of the server before its log collector ran, and the end of what it said after.
    fn log_tail(&self) -> String {
        let (before, after) = (
            self.program.tail(&self.start_log(), 0),
            self.program.tail(&self.log(), self.log_bytes),
        );
        [before, after].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
    }
}

/// The moment of the last reload; it stays when the files cannot be read as a whole.
const LOAD_TIME: &str = "SELECT pg_conf_load_time()";

/// The settings in the files that the server did not take.
const NOT_APPLIED: &str =
    "SELECT string_agg(DISTINCT name, ' ') FROM pg_file_settings WHERE error IS NOT NULL";

/// Time limit for the last messages of a server, which are written in milliseconds unless the machine is
/// very busy.
const LAST_WORDS_TIMEOUT: Duration = Duration::from_secs(10);

/// A server reads its settings in milliseconds, unless it is very busy.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(10);
