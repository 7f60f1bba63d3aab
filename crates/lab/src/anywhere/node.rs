//! One PostgreSQL server, here or on a host, with the verbs of PostgreSQL's own test framework.

mod data;
mod stream;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use os::init::Exit;
use os::throttle::Limits;
use server::Client;
use terms::StopMode;

use crate::anywhere::limit::IoLimit;
use crate::endpoint::{Endpoint, first_value};
use crate::error::Error;
use crate::find::Installation;
use crate::log::LogFormat;
use crate::network::Network;
use crate::node::{self, NodeConfig};
use crate::remote::{ClientRun, MadeNode, NodeVerb, Ran, RemoteLab, Verb};
use crate::settings::{self, Settings};
use crate::wait::wait_until;

/// One PostgreSQL server. It is killed when it is dropped; its directory stays until the lab ends.
#[derive(Debug)]
pub struct Node(Place);

#[derive(Debug)]
enum Place {
    Here(Box<node::Node>),
    There(Box<RemoteNode>),
}

/// A node of a lab on a host.
#[derive(Debug)]
pub(crate) struct RemoteNode {
    pub(crate) lab: Arc<RemoteLab>,
    pub(crate) object: u32,
    pub(crate) name: String,
    pub(crate) config: NodeConfig,
    pub(crate) made: MadeNode,
}

impl Node {
    pub(crate) fn here(node: node::Node) -> Node {
        Node(Place::Here(Box::new(node)))
    }

    pub(crate) fn there(node: RemoteNode) -> Node {
        Node(Place::There(Box::new(node)))
    }

    /// The name of the host that it is on; none on this machine.
    pub fn host(&self) -> Option<&str> {
        match &self.0 {
            Place::Here(_) => None,
            Place::There(node) => Some(node.lab.host()),
        }
    }

    /// Makes its data directory, replacing one that is there.
    ///
    /// # Errors
    /// initdb's, with what it said; the file system's.
    pub fn init(&mut self) -> Result<(), Error> {
        match &mut self.0 {
            Place::Here(node) => node.init(),
            Place::There(node) => node.ask(NodeVerb::Init),
        }
    }

    /// Takes other settings instead of all that it had; they hold from the next start or reload.
    ///
    /// # Errors
    /// [`Error::Setting`] for what cannot be set.
    pub fn configure(&mut self, settings: Settings) -> Result<(), Error> {
        match &mut self.0 {
            Place::Here(node) => node.configure(settings),
            Place::There(node) => {
                settings::check(&node.name, &settings)?;
                node.config.settings.clone_from(&settings);
                node.ask(NodeVerb::Configure(settings))
            }
        }
    }

    /// Adds lines to the configuration as they are; they hold from the next start or reload.
    pub fn append_conf(&mut self, lines: &str) {
        match &mut self.0 {
            Place::Here(node) => node.append_conf(lines),
            Place::There(node) => {
                // The next verb fails on a host that is lost.
                let _: Result<(), Error> = node.ask(NodeVerb::AppendConf(lines.to_owned()));
            }
        }
    }

    /// Starts the server and waits until it accepts connections.
    ///
    /// # Errors
    /// [`Error::Start`] with the end of the server's log; [`Error::Timeout`].
    pub fn start(&mut self) -> Result<(), Error> {
        match &mut self.0 {
            Place::Here(node) => node.start(),
            Place::There(node) => node.tell(Verb::Start),
        }
    }

    /// Stops the server and waits for its end. One that is paused is resumed for it.
    ///
    /// # Errors
    /// [`Error::State`] if it does not run; [`Error::Stop`], after which it still runs.
    pub fn stop(&mut self, mode: StopMode) -> Result<Exit, Error> {
        match &mut self.0 {
            Place::Here(node) => node.stop(mode),
            Place::There(node) => node.tell(Verb::Stop(mode)),
        }
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
        match &mut self.0 {
            Place::Here(node) => node.kill9(),
            Place::There(node) => node.tell(Verb::Kill),
        }
    }

    /// Stops all its processes in their tracks (SIGSTOP), and returns how many when all stand.
    ///
    /// # Errors
    /// [`Error::State`] if it does not run; the init's.
    pub fn pause(&mut self) -> Result<usize, Error> {
        match &mut self.0 {
            Place::Here(node) => node.pause(),
            Place::There(node) => node.tell(Verb::Pause),
        }
    }

    /// Lets its processes go on, and returns how many.
    ///
    /// # Errors
    /// [`Error::State`] if it does not run; the init's.
    pub fn resume(&mut self) -> Result<usize, Error> {
        match &mut self.0 {
            Place::Here(node) => node.resume(),
            Place::There(node) => node.tell(Verb::Resume),
        }
    }

    /// Kills the server process of the client whose statement has run longest (SIGKILL). PostgreSQL
    /// ends all other server processes then, and recovers. Returns the time until it accepted
    /// connections again.
    ///
    /// # Errors
    /// [`Error::State`] if the server does not run, runs no client's statement, goes on without the
    /// process, or ends with it; [`Error::Timeout`] if it accepts no connection in `timeout`.
    pub fn kill_backend(&self, timeout: Duration) -> Result<Duration, Error> {
        match &self.0 {
            Place::Here(node) => node.kill_backend(timeout),
            Place::There(node) => node.ask(NodeVerb::KillBackend(timeout)),
        }
    }

    /// Limits the I/O of all its processes on the device of the lab's directory, until what is
    /// given is dropped. Processes of a later start are not limited. Only root can do it.
    ///
    /// # Errors
    /// [`Error::State`] if it does not run; the kernel's.
    pub fn limit_io(&self, limits: &Limits) -> Result<IoLimit, Error> {
        match &self.0 {
            Place::Here(node) => node.limit_io(limits).map(IoLimit::here),
            Place::There(node) => {
                let limit = node.lab.new_object();
                node.ask::<()>(NodeVerb::LimitIo { limit, limits: *limits })?;
                Ok(IoLimit::there(Arc::clone(&node.lab), limit))
            }
        }
    }

    /// Has the server read its settings again, and waits until it has.
    ///
    /// # Errors
    /// [`Error::Reload`] for values that are wrong or need a restart; [`Error::Timeout`].
    pub fn reload(&mut self) -> Result<(), Error> {
        match &mut self.0 {
            Place::Here(node) => node.reload(),
            Place::There(node) => node.ask(NodeVerb::Reload),
        }
    }

    /// Whether its server runs; one that crashed does not.
    ///
    /// # Errors
    /// The init's.
    pub fn is_running(&self) -> Result<bool, Error> {
        match &self.0 {
            Place::Here(node) => node.is_running(),
            Place::There(node) => node.tell(Verb::IsRunning),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match &self.0 {
            Place::Here(node) => node.name(),
            Place::There(node) => &node.name,
        }
    }

    /// Its network, if it has one of its own; on a host it has none.
    pub fn network(&self) -> Option<&Network> {
        match &self.0 {
            Place::Here(node) => node.network(),
            Place::There(_) => None,
        }
    }

    /// The PostgreSQL that it runs, on its host.
    pub fn installation(&self) -> &Installation {
        match &self.0 {
            Place::Here(node) => node.installation(),
            Place::There(node) => &node.lab.opened().installation,
        }
    }

    /// The settings that it was given.
    pub fn settings(&self) -> &Settings {
        match &self.0 {
            Place::Here(node) => node.settings(),
            Place::There(node) => &node.config.settings,
        }
    }

    /// Its directory, which holds the data and the logs, on its host.
    pub fn directory(&self) -> &Path {
        match &self.0 {
            Place::Here(node) => node.directory(),
            Place::There(node) => &node.made.directory,
        }
    }

    /// Its data directory, as processes of the lab see it; on a disk of its own it is mounted in the
    /// lab's namespace only.
    pub fn data(&self) -> PathBuf {
        match &self.0 {
            Place::Here(node) => node.data(),
            Place::There(node) => node.made.data.clone(),
        }
    }

    /// The log that people read, on its host.
    pub fn log(&self) -> PathBuf {
        match &self.0 {
            Place::Here(node) => node.log(),
            Place::There(node) => node.made.log.clone(),
        }
    }

    /// What it has written to the log that people read; lines may be torn where it was killed.
    pub fn log_text(&self) -> String {
        match &self.0 {
            Place::Here(node) => node.log_text(),
            // A host that is lost says nothing any more.
            Place::There(node) => node.tell(Verb::LogText).unwrap_or_default(),
        }
    }

    /// The log that programs read, on its host.
    pub fn structured_log(&self) -> (LogFormat, PathBuf) {
        match &self.0 {
            Place::Here(node) => node.structured_log(),
            Place::There(node) => {
                let format = LogFormat::of(self.installation().version().major);
                (format, node.made.structured_log.clone())
            }
        }
    }

    /// The postmaster's process id as `/proc` of its host outside the lab's namespaces has it, while
    /// it runs.
    pub fn host_pid(&self) -> Option<i32> {
        match &self.0 {
            Place::Here(node) => node.host_pid(),
            Place::There(node) => node.tell(Verb::Pid).unwrap_or_default(),
        }
    }

    /// Where clients reach it, as the superuser and in database postgres.
    pub fn endpoint(&self) -> Endpoint {
        match &self.0 {
            Place::Here(node) => node.endpoint(),
            Place::There(node) => node.made.endpoint.clone(),
        }
    }

    /// Where processes of its own host reach it best, as the superuser.
    pub fn near_endpoint(&self) -> Endpoint {
        match &self.0 {
            Place::Here(node) => node.endpoint(),
            Place::There(node) => node.made.inner.clone(),
        }
    }

    /// A connection for administration, as the superuser, to database postgres.
    ///
    /// # Errors
    /// [`Error::Connect`].
    pub fn connect(&self) -> Result<Client, Error> {
        self.connect_to("postgres")
    }

    /// A connection for administration, as the superuser.
    ///
    /// # Errors
    /// [`Error::Connect`].
    pub fn connect_to(&self, database: &str) -> Result<Client, Error> {
        self.inner_endpoint().with_database(database).connect(&format!("node {}", self.name()))
    }

    /// The first value that a statement gives, as text.
    ///
    /// # Errors
    /// [`Error::Connect`]; [`Error::Query`].
    pub fn value(&self, statement: &str) -> Result<Option<String>, Error> {
        self.value_by(&mut self.connect()?, statement)
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
            Error::Timeout { doing: "polling", node: self.name().to_owned(), waited: timeout, log }
        })
    }

    /// Runs a client program of its installation against database postgres, to its end: its exit
    /// code (none where a signal ended it), standard output and standard error.
    ///
    /// # Errors
    /// [`Error::Process`] where the program cannot be started.
    pub fn run_client(
        &self,
        program: &str,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Result<(Option<i32>, String, String), Error> {
        let run = ClientRun {
            program: program.to_owned(),
            arguments: arguments.iter().map(|one| (*one).to_owned()).collect(),
            environment: environment
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        };
        let Ran { code, stdout, stderr } = match &self.0 {
            Place::Here(node) => node.run_client(&run)?,
            Place::There(node) => node.ask(NodeVerb::RunClient(run))?,
        };
        Ok((code, stdout, stderr))
    }

    /// Whether its data are those of a standby.
    pub fn is_standby(&self) -> bool {
        match &self.0 {
            Place::Here(node) => node.is_standby(),
            Place::There(node) => node.ask(NodeVerb::IsStandby).unwrap_or_default(),
        }
    }

    /// Makes the running standby a primary, and returns when it takes writes.
    ///
    /// # Errors
    /// [`Error::State`] if it is no standby or does not run; [`Error::Timeout`].
    pub fn promote(&mut self) -> Result<(), Error> {
        match &mut self.0 {
            Place::Here(node) => node.promote(),
            Place::There(node) => node.ask(NodeVerb::Promote),
        }
    }
}

impl Node {
    pub(super) fn expect_running(&self, doing: &'static str) -> Result<(), Error> {
        match self.is_running()? {
            true => Ok(()),
            false => Err(self.state(doing, "is not running")),
        }
    }

    pub(super) fn expect_stopped(&self, doing: &'static str) -> Result<(), Error> {
        match self.is_running()? {
            true => Err(self.state(doing, "is running")),
            false => Ok(()),
        }
    }

    pub(super) fn execute(&self, client: &mut Client, statement: &str) -> Result<(), Error> {
        client.batch_execute(statement).map_err(|source| self.query(statement, source))
    }

    pub(super) fn query(&self, statement: &str, source: postgres::Error) -> Error {
        let (server, statement) = (format!("node {}", self.name()), statement.to_owned());
        Error::Query { server, statement, source }
    }

    pub(super) fn value_by(
        &self,
        client: &mut Client,
        statement: &str,
    ) -> Result<Option<String>, Error> {
        first_value(client, statement, &format!("node {}", self.name()))
    }

    fn state(&self, doing: &'static str, state: &'static str) -> Error {
        Error::State { doing, node: self.name().to_owned(), state }
    }

    fn elsewhere(&self, doing: &'static str) -> Error {
        self.state(doing, "is on another host than those data")
    }
}

impl RemoteNode {
    fn ask<T: serde::de::DeserializeOwned>(&self, verb: NodeVerb) -> Result<T, Error> {
        self.tell(Verb::Node(verb))
    }

    fn tell<T: serde::de::DeserializeOwned>(&self, verb: Verb) -> Result<T, Error> {
        self.lab.ask(self.object, verb)
    }
}

impl Drop for RemoteNode {
    fn drop(&mut self) {
        self.lab.give_up(self.object);
    }
}
