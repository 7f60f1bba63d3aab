//! A part of a lab that runs: the verbs that nodes, poolers and other processes have in common.

use std::path::PathBuf;

use os::init::ProcessExit;
use terms::StopMode;

use crate::answer::Answer;
use crate::error::Error;
use crate::open_lab::Object;
use crate::verb::Verb;

/// A part of a lab that runs. It is killed when it is dropped.
#[derive(Debug)]
pub struct Part {
    pub(crate) object: Object,
    name: String,
    log: PathBuf,
}

impl Part {
    pub(crate) fn new(object: Object, name: &str, log: PathBuf) -> Part {
        Part { object, name: name.to_owned(), log }
    }

    pub(crate) fn ask<T: TryFrom<Answer>>(&self, verb: Verb) -> Result<T, Error> {
        self.object.ask(verb)
    }

    /// Starts it. A node and a pooler accept connections then, and a pooler's server need not be
    /// there; if any other process is ready is for its owner to find out.
    ///
    /// # Errors
    /// [`Error::State`] if it runs; [`Error::Start`] with the end of its log; [`Error::Timeout`];
    /// [`Error::Execute`]; [`Error::DataLost`] after a power cut that has left nothing.
    pub fn start(&mut self) -> Result<(), Error> {
        self.ask(Verb::Start)
    }

    /// Stops it and waits for its end. One that is paused is resumed for it. A pooler that is stopped
    /// smart waits until no client uses a server connection, and any other process gets SIGTERM
    /// (smart and fast) or SIGQUIT (immediate).
    ///
    /// # Errors
    /// [`Error::State`] if it does not run; [`Error::Stop`], after which it still runs.
    pub fn stop(&mut self, mode: StopMode) -> Result<ProcessExit, Error> {
        self.ask(Verb::Stop(mode))
    }

    /// [`Part::start`], for another thread to do.
    pub fn start_later(&self) -> impl FnOnce() -> Result<(), Error> + Send + use<> {
        self.object.later(Verb::Start)
    }

    /// [`Part::stop`], for another thread to do.
    pub fn stop_later(
        &self,
        mode: StopMode,
    ) -> impl FnOnce() -> Result<ProcessExit, Error> + Send + use<> {
        self.object.later(Verb::Stop(mode))
    }

    /// Kills all its processes with SIGKILL and waits until none is left; returns how many.
    pub fn kill9(&mut self) -> Result<usize, Error> {
        self.ask(Verb::Kill)
    }

    /// Stops all its processes in their tracks (SIGSTOP), and returns how many when all stand.
    pub fn pause(&mut self) -> Result<usize, Error> {
        self.ask(Verb::Pause)
    }

    /// Lets its processes go on, and returns how many.
    pub fn resume(&mut self) -> Result<usize, Error> {
        self.ask(Verb::Resume)
    }

    /// True if it runs; one that crashed does not.
    pub fn is_running(&self) -> Result<bool, Error> {
        self.ask(Verb::IsRunning)
    }

    /// The end that it came to by itself since it was started, `None` while it runs.
    pub fn exit(&self) -> Result<Option<ProcessExit>, Error> {
        self.ask(Verb::Exit)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of the host that it is on; none on this machine.
    pub fn host(&self) -> Option<&str> {
        self.object.lab.host()
    }

    /// Its process id as `/proc` of its host outside the lab's namespaces has it, while it runs.
    /// On a host that is lost nothing runs.
    pub fn host_pid(&self) -> Option<i32> {
        // On a host that is lost nothing runs.
        self.ask(Verb::Pid).unwrap_or_default()
    }

    /// The log that people read, on its host.
    pub fn log(&self) -> PathBuf {
        self.log.clone()
    }

    /// All that it has written to that log; lines may be torn where it was killed. A host that is
    /// lost says nothing any more.
    pub fn log_text(&self) -> String {
        // The text is for people; the host that is lost is told of where something is done with it.
        self.ask(Verb::LogText).unwrap_or_default()
    }

    /// The end of its log since it was last started.
    pub fn log_tail(&self) -> String {
        // See `log_text`.
        self.ask(Verb::LogTail).unwrap_or_default()
    }

    pub(crate) fn state(&self, doing: &'static str, state: &'static str) -> Error {
        Error::State { doing, node: self.name.clone(), state }
    }

    pub(crate) fn expect_running(&self, doing: &'static str) -> Result<(), Error> {
        match self.is_running()? {
            true => Ok(()),
            false => Err(self.state(doing, "is not running")),
        }
    }

    pub(crate) fn expect_stopped(&self, doing: &'static str) -> Result<(), Error> {
        match self.is_running()? {
            true => Err(self.state(doing, "is running")),
            false => Ok(()),
        }
    }
}

/// Gives a kind of part the verbs that all have.
macro_rules! is_a_part {
    ($kind:ty) => {
        impl std::ops::Deref for $kind {
            type Target = crate::part::Part;

            fn deref(&self) -> &crate::part::Part {
                &self.part
            }
        }

        impl std::ops::DerefMut for $kind {
            fn deref_mut(&mut self) -> &mut crate::part::Part {
                &mut self.part
            }
        }
    };
}

pub(crate) use is_a_part;
