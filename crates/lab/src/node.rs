//! One PostgreSQL server, with the verbs of PostgreSQL's own test framework.

mod data;
mod standby;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use os::throttle::IoLimits;
use server::Client;
use terms::StopMode;

use crate::admin::NodeAdmin;
use crate::answer::{MadeNode, ProgramEnded};
use crate::client_run::ClientRun;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::find::Installation;
use crate::limit::{CpuLimit, IoLimit};
use crate::log::LogFormat;
use crate::network::Network;
use crate::node_config::NodeConfig;
use crate::open_lab::Object;
use crate::part::{Part, is_a_part};
use crate::settings;
use crate::verb::Verb;
use terms::Settings;

/// One PostgreSQL server. It is killed when it is dropped; its directory stays until the lab ends.
#[derive(Debug)]
pub struct Node {
    part: Part,
    config: NodeConfig,
    made: MadeNode,
    network: Option<Network>,
}

is_a_part!(Node);

impl Node {
    pub(crate) fn new(object: Object, name: &str, config: NodeConfig, made: MadeNode) -> Node {
        let network = config.own_network.then_some(Network { node: object.number });
        Node { part: Part::new(object, name, made.log.clone()), config, made, network }
    }

    /// Makes its data directory, replacing one that is there.
    pub fn init(&mut self) -> Result<(), Error> {
        self.ask(Verb::Init)
    }

    /// Takes other settings instead of all that it had; they hold from the next start or reload.
    pub fn configure(&mut self, settings: Settings) -> Result<(), Error> {
        settings::check(self.name(), &settings)?;
        self.config.settings.clone_from(&settings);
        self.ask(Verb::Configure(settings))
    }

    /// Adds lines to the configuration as they are; they hold from the next start or reload.
    pub fn append_conf(&mut self, lines: &str) {
        // The next verb fails on a host that is lost.
        let _: Result<(), Error> = self.ask(Verb::AppendConf(lines.to_owned()));
    }

    /// Stops it fast and starts it again.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.stop(StopMode::Fast)?;
        self.start()
    }

    /// Kills the server process of the client whose statement has run longest (SIGKILL), or has the
    /// kernel kill one as soon as the server's processes have taken so much more memory, which only root
    /// can do. PostgreSQL ends all other server processes then, and recovers. Returns the time until it
    /// accepted connections again, with the limit on memory until then.
    ///
    /// # Errors
    /// [`Error::State`] if the server does not run, runs no client's statement, does not use up the
    /// memory, goes on without the process, or ends with it; [`Error::Timeout`] if it accepts no
    /// connection in `timeout`.
    pub fn kill_backend(
        &self,
        memory_bytes: Option<u64>,
        timeout: Duration,
    ) -> Result<Duration, Error> {
        self.ask(Verb::KillBackend { memory_bytes, timeout })
    }

    /// [`Node::kill_backend`], for another thread to do.
    pub fn kill_backend_later(
        &self,
        memory_bytes: Option<u64>,
        timeout: Duration,
    ) -> impl FnOnce() -> Result<Duration, Error> + Send + use<> {
        self.object.later(Verb::KillBackend { memory_bytes, timeout })
    }

    /// Limits the I/O of all its processes on the device of the lab's directory, until what is
    /// given is dropped. Processes of a later start are not limited. Only root can do it.
    pub fn limit_io(&self, limits: &IoLimits) -> Result<IoLimit, Error> {
        let lab = &self.object.lab;
        let (limit, limits) = (lab.new_number(), *limits);
        self.ask::<()>(Verb::LimitIo { limit, limits })?;
        Ok(IoLimit(Object { lab: Arc::clone(lab), number: limit }))
    }

    /// Limits the CPU time of all its processes to that of so many CPUs, until what is given is dropped. Processes of a
    /// later start are not limited. Only root can do it.
    pub fn limit_cpus(&self, cpus: f64) -> Result<CpuLimit, Error> {
        let lab = &self.object.lab;
        let limit = lab.new_number();
        self.ask::<()>(Verb::LimitCpus { limit, cpus })?;
        Ok(CpuLimit(Object { lab: Arc::clone(lab), number: limit }))
    }

    /// Has the server read its settings again, and waits until it has.
    ///
    /// # Errors
    /// [`Error::Reload`] for values that are wrong or need a restart; [`Error::Timeout`].
    pub fn reload(&mut self) -> Result<(), Error> {
        self.ask(Verb::Reload)
    }

    /// Its network, if it has one of its own; on a host it has none.
    pub fn network(&self) -> Option<&Network> {
        self.network.as_ref()
    }

    /// The PostgreSQL that it runs, on its host.
    pub fn installation(&self) -> &Installation {
        &self.object.lab.opened.installation
    }

    /// The settings that it was given.
    pub fn settings(&self) -> &Settings {
        &self.config.settings
    }

    /// Its directory, which holds the data and the logs, on its host.
    pub fn directory(&self) -> &Path {
        &self.made.directory
    }

    /// Its data directory, as processes of the lab see it; on a disk of its own it is mounted in the
    /// lab's namespace only.
    pub fn data(&self) -> PathBuf {
        self.made.data.clone()
    }

    /// The log that programs read, on its host.
    pub fn structured_log(&self) -> (LogFormat, PathBuf) {
        let format = LogFormat::of(self.installation().version().major);
        (format, self.made.structured_log.clone())
    }

    /// The address for clients, as the superuser and in database postgres.
    pub fn endpoint(&self) -> Endpoint {
        self.made.endpoint.clone()
    }

    /// The address for processes of its own host, as the superuser.
    pub fn near_endpoint(&self) -> Endpoint {
        self.made.near.clone()
    }

    /// A connection for administration, as the superuser, to database postgres.
    pub fn connect(&self) -> Result<Client, Error> {
        self.admin().connect()
    }

    /// A connection for administration, as the superuser.
    pub fn connect_to(&self, database: &str) -> Result<Client, Error> {
        self.admin().connect_to(database)
    }

    /// The first value that a statement gives, as text.
    pub fn value(&self, statement: &str) -> Result<Option<String>, Error> {
        self.admin().value(statement)
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
        self.admin().poll_query_until(statement, expected, timeout)
    }

    /// Runs a client program of its installation against database postgres, to its end: its exit
    /// code (none where a signal ended it), standard output and standard error.
    pub fn run_client(
        &self,
        program: &str,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Result<(Option<i32>, String, String), Error> {
        let run = ClientRun::new(program, arguments, environment);
        let ProgramEnded { code, stdout, stderr } = self.ask(Verb::RunClient(run))?;
        Ok((code, stdout, stderr))
    }

    /// [`Node::run_client`] against another server, as pg_dump of a newer version is run against an older one.
    pub fn run_client_against(
        &self,
        other: &Endpoint,
        program: &str,
        arguments: &[&str],
    ) -> Result<(Option<i32>, String, String), Error> {
        let run = ClientRun::new(program, arguments, &[]).to(other);
        let ProgramEnded { code, stdout, stderr } = self.ask(Verb::RunClient(run))?;
        Ok((code, stdout, stderr))
    }

    /// True if its data are those of a standby.
    ///
    /// # Errors
    /// That of a lab that does not answer: a standby on a host that is lost is none of the other kind.
    pub fn is_standby(&self) -> Result<bool, Error> {
        self.ask(Verb::IsStandby)
    }

    /// Makes the running standby a primary, and returns when it takes writes.
    ///
    /// # Errors
    /// [`Error::State`] if it is no standby or does not run; [`Error::Timeout`].
    pub fn promote(&mut self) -> Result<(), Error> {
        self.ask(Verb::Promote)
    }

    /// [`Node::promote`], for another thread to do.
    pub fn promote_later(&self) -> impl FnOnce() -> Result<(), Error> + Send + use<> {
        self.object.later(Verb::Promote)
    }

    pub(crate) fn admin(&self) -> NodeAdmin {
        NodeAdmin { node: self.name().to_owned(), endpoint: self.made.admin.clone() }
    }
}
