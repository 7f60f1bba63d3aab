//! A PgBouncer, here or on a host.

use std::path::PathBuf;

use os::init::Exit;
use terms::StopMode;

use crate::anywhere::process::RemoteProcess;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::pooler::{self, ConsoleRow};
use crate::remote::Verb;

/// One PgBouncer. It is killed when it is dropped.
#[derive(Debug)]
pub struct Pooler(Place);

#[derive(Debug)]
enum Place {
    Here(Box<pooler::Pooler>),
    There(Box<RemotePooler>),
}

#[derive(Debug)]
struct RemotePooler {
    process: RemoteProcess,
    endpoint: Endpoint,
    console: Endpoint,
}

impl Pooler {
    pub(crate) fn here(pooler: pooler::Pooler) -> Pooler {
        Pooler(Place::Here(Box::new(pooler)))
    }

    pub(crate) fn there(process: RemoteProcess, endpoint: Endpoint, console: Endpoint) -> Pooler {
        Pooler(Place::There(Box::new(RemotePooler { process, endpoint, console })))
    }

    /// Starts it and waits until it accepts connections. Its server need not be there.
    ///
    /// # Errors
    /// [`Error::Start`] with the end of its log; [`Error::Timeout`].
    pub fn start(&mut self) -> Result<(), Error> {
        match &mut self.0 {
            Place::Here(pooler) => pooler.start(),
            Place::There(pooler) => pooler.process.start(),
        }
    }

    /// Stops it and waits for its end: smart when no client uses a server connection any more,
    /// otherwise at once. One that is paused is resumed for it.
    ///
    /// # Errors
    /// [`Error::State`] if it does not run; [`Error::Stop`], after which it still runs.
    pub fn stop(&mut self, mode: StopMode) -> Result<Exit, Error> {
        match &mut self.0 {
            Place::Here(pooler) => pooler.stop(mode),
            Place::There(pooler) => pooler.process.stop(mode),
        }
    }

    /// Kills it with SIGKILL.
    ///
    /// # Errors
    /// The init's.
    pub fn kill9(&mut self) -> Result<usize, Error> {
        match &mut self.0 {
            Place::Here(pooler) => pooler.kill9(),
            Place::There(pooler) => pooler.process.ask(Verb::Kill),
        }
    }

    /// Stops it in its tracks (SIGSTOP).
    ///
    /// # Errors
    /// [`Error::State`] if it does not run; the init's.
    pub fn pause(&mut self) -> Result<usize, Error> {
        match &mut self.0 {
            Place::Here(pooler) => pooler.pause(),
            Place::There(pooler) => pooler.process.ask(Verb::Pause),
        }
    }

    /// Lets it go on.
    ///
    /// # Errors
    /// [`Error::State`] if it does not run; the init's.
    pub fn resume(&mut self) -> Result<usize, Error> {
        match &mut self.0 {
            Place::Here(pooler) => pooler.resume(),
            Place::There(pooler) => pooler.process.ask(Verb::Resume),
        }
    }

    /// Whether it runs.
    ///
    /// # Errors
    /// The init's.
    pub fn is_running(&self) -> Result<bool, Error> {
        match &self.0 {
            Place::Here(pooler) => pooler.is_running(),
            Place::There(pooler) => pooler.process.ask(Verb::IsRunning),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match &self.0 {
            Place::Here(pooler) => pooler.name(),
            Place::There(pooler) => &pooler.process.name,
        }
    }

    /// Its process id as `/proc` of its host outside the lab's namespaces has it, while it runs.
    pub fn host_pid(&self) -> Option<i32> {
        match &self.0 {
            Place::Here(pooler) => pooler.host_pid(),
            Place::There(pooler) => pooler.process.pid(),
        }
    }

    /// Its log, on its host.
    pub fn log(&self) -> PathBuf {
        match &self.0 {
            Place::Here(pooler) => pooler.log(),
            Place::There(pooler) => pooler.process.made.log.clone(),
        }
    }

    /// What is in its log.
    pub fn log_text(&self) -> String {
        match &self.0 {
            Place::Here(pooler) => pooler.log_text(),
            Place::There(pooler) => pooler.process.log_text(),
        }
    }

    /// Where clients reach it, as its server's superuser and in its server's database.
    pub fn endpoint(&self) -> Endpoint {
        match &self.0 {
            Place::Here(pooler) => pooler.endpoint(),
            Place::There(pooler) => pooler.endpoint.clone(),
        }
    }

    /// Where its admin console is, seen from its host.
    pub fn console(&self) -> Endpoint {
        match &self.0 {
            Place::Here(pooler) => pooler.console(),
            Place::There(pooler) => pooler.console.clone(),
        }
    }

    /// What the console shows of a topic: POOLS, STATS, DATABASES, CLIENTS and so on.
    ///
    /// # Errors
    /// [`Error::Connect`]; [`Error::Query`].
    pub fn show(&self, topic: &str) -> Result<Vec<ConsoleRow>, Error> {
        match &self.0 {
            Place::Here(pooler) => pooler.show(topic),
            Place::There(there) => {
                let server = format!("pooler {}", there.process.name);
                let mut console =
                    there.endpoint.clone().with_database("pgbouncer").connect(&server)?;
                pooler::show(&mut console, &server, topic)
            }
        }
    }
}
