//! Any other program of a lab, with the verbs of a node.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use os::command::{Command, Output};
use os::init::Exit;
use os::user::User;
use rustix::process::Signal;
use terms::StopMode;

use crate::error::Error;
use crate::program::Program;
use crate::shared::Shared;

/// A program with a directory and a log of its own. It is killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    program: Program,
    command: Command,
}

impl Process {
    pub(crate) fn new(shared: Arc<Shared>, name: &str, command: Command) -> Result<Self, Error> {
        let owner = command.user.unwrap_or_else(User::current);
        Ok(Self { program: Program::new(shared, name, owner)?, command })
    }

    /// Starts it, in its directory and with its output in its log. Whether it is ready is for its
    /// owner to find out.
    ///
    /// # Errors
    /// [`Error::State`] if it runs; [`Error::Execute`].
    pub(crate) fn start(&mut self) -> Result<(), Error> {
        self.program.expect_stopped("starting")?;
        self.program.kill_leftovers()?;
        self.program.make_directory()?;
        let command = self
            .command
            .clone()
            .directory(&self.program.directory)
            .stdout(Output::File(self.log()))
            .stderr(Output::File(self.log()))
            .parent_death_signal(Signal::KILL);
        self.program.launch(&command).map(drop)
    }

    /// Stops it by SIGTERM (smart and fast) or SIGQUIT (immediate), and waits for its end.
    ///
    /// # Errors
    /// [`Error::State`] if it does not run; [`Error::Stop`], after which it still runs.
    pub(crate) fn stop(&mut self, mode: StopMode) -> Result<Exit, Error> {
        let signal = match mode {
            StopMode::Smart | StopMode::Fast => Signal::TERM,
            StopMode::Immediate => Signal::QUIT,
        };
        self.program.end(signal, STOP_TIMEOUT)?.ok_or_else(|| {
            let (node, log) = (self.name().to_owned(), self.log_tail());
            Error::Stop { node, mode, waited: STOP_TIMEOUT, log }
        })
    }

    /// Kills it and all that it started with SIGKILL.
    ///
    /// # Errors
    /// The init's.
    pub(crate) fn kill9(&mut self) -> Result<usize, Error> {
        self.program.kill9()
    }

    /// Stops it in its tracks (SIGSTOP).
    ///
    /// # Errors
    /// [`Error::State`] if it does not run; the init's.
    pub(crate) fn pause(&mut self) -> Result<usize, Error> {
        self.program.pause()
    }

    /// Lets it go on.
    ///
    /// # Errors
    /// [`Error::State`] if it does not run; the init's.
    pub(crate) fn resume(&mut self) -> Result<usize, Error> {
        self.program.resume()
    }

    /// Whether it runs.
    ///
    /// # Errors
    /// The init's.
    pub(crate) fn is_running(&self) -> Result<bool, Error> {
        self.program.is_running()
    }

    /// How it ended by itself since it was started, `None` while it runs.
    ///
    /// # Errors
    /// The init's.
    pub(crate) fn exit(&self) -> Result<Option<Exit>, Error> {
        self.program.exit()
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.program.name
    }

    /// Its process id as `/proc` outside the lab's namespaces has it, while it runs.
    pub(crate) fn host_pid(&self) -> Option<i32> {
        self.program.host_pid()
    }

    /// What it has written to its standard output and standard error.
    pub(crate) fn log(&self) -> PathBuf {
        self.program.file("output.log")
    }

    /// All of its log.
    pub(crate) fn log_text(&self) -> String {
        self.program.text(&self.log())
    }

    /// The end of its log.
    pub(crate) fn log_tail(&self) -> String {
        self.program.tail(&self.log(), 0)
    }
}

/// What takes longer to end is stuck.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);
