//! Any other program of a lab.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use os::command::{ProcessCommand, ProcessOutput};
use os::user::SystemUser;
use rustix::process::Signal;
use terms::StopMode;

use crate::error::Error;
use crate::inner::program::{Program, Runs};
use crate::inner::shared::Shared;

/// A program with a directory and a log of its own. It is killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    program: Program,
    command: ProcessCommand,
}

impl Process {
    pub(crate) fn new(
        shared: Arc<Shared>,
        name: &str,
        command: ProcessCommand,
    ) -> Result<Self, Error> {
        let owner = command.user.unwrap_or_else(SystemUser::current);
        Ok(Self { program: Program::new(shared, name, owner)?, command })
    }
}

impl Runs for Process {
    fn program(&self) -> &Program {
        &self.program
    }

    fn program_mut(&mut self) -> &mut Program {
        &mut self.program
    }

    fn start(&mut self) -> Result<(), Error> {
        self.program.expect_stopped("starting")?;
        self.program.kill_leftovers()?;
        self.program.make_directory()?;
        let command = self
            .command
            .clone()
            .directory(&self.program.directory)
            .stdout(ProcessOutput::File(self.log()))
            .stderr(ProcessOutput::File(self.log()))
            .parent_death_signal(Signal::KILL);
        self.program.launch(&command).map(drop)
    }

    fn stop_signal(&self, mode: StopMode) -> (Signal, Duration) {
        match mode {
            StopMode::Smart | StopMode::Fast => (Signal::TERM, STOP_TIMEOUT),
            StopMode::Immediate => (Signal::QUIT, STOP_TIMEOUT),
        }
    }

    fn log(&self) -> PathBuf {
        self.program.file("output.log")
    }

    fn log_tail(&self) -> String {
        self.program.tail(&self.log(), 0)
    }
}

/// A program that takes longer to end is stuck.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);
