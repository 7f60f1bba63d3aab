//! One program of a lab: started in a directory of its own, signalled with all that descends from
//! it, and gone when it is dropped.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use os::command::ProcessCommand;
use os::init::{Init, ProcessExit};
use os::user::SystemUser;
use rustix::process::Signal;
use terms::StopMode;

use crate::error::Error;
use crate::files::{self, make_directory_for, remove_tree};
use crate::inner::network::Network;
use crate::inner::shared::Shared;
use crate::log;
use crate::wait::wait_until;

/// A name in the lab, the directory that goes with it, and the program, while it runs.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) shared: Arc<Shared>,
    pub(crate) name: String,
    pub(crate) directory: PathBuf,
    /// The file system of its own disk, where its processes may work too.
    pub(crate) file_system: Option<PathBuf>,
    /// The owner of the directory, as whom it runs.
    pub(crate) owner: SystemUser,
    /// The network that its processes are started in, if not in the network of this process.
    pub(crate) network: Option<Network>,
    started: Option<StartedProcess>,
}

/// An object that has a program: a node, a pooler, another process.
pub(crate) trait Runs {
    fn program(&self) -> &Program;

    fn program_mut(&mut self) -> &mut Program;

    fn start(&mut self) -> Result<(), Error>;

    /// The signal that stops it, and the time that it has for its end.
    fn stop_signal(&self, mode: StopMode) -> (Signal, Duration);

    /// The log that people read.
    fn log(&self) -> PathBuf;

    /// The end of its log since it was last started.
    fn log_tail(&self) -> String;

    /// All of its log.
    fn log_text(&self) -> String {
        self.program().text(&self.log())
    }

    fn kill9(&mut self) -> Result<usize, Error> {
        self.program_mut().kill9()
    }

    fn pause(&mut self) -> Result<usize, Error> {
        self.program_mut().pause()
    }

    fn resume(&mut self) -> Result<usize, Error> {
        self.program_mut().resume()
    }

    fn is_running(&self) -> Result<bool, Error> {
        self.program().is_running()
    }

    fn exit(&self) -> Result<Option<ProcessExit>, Error> {
        self.program().exit()
    }

    fn stop(&mut self, mode: StopMode) -> Result<ProcessExit, Error> {
        let (signal, waited) = self.stop_signal(mode);
        self.program_mut().end(signal, waited)?.ok_or_else(|| {
            let (node, log) = (self.program().name.clone(), self.log_tail());
            Error::Stop { node, mode, waited, log }
        })
    }
}

/// A process that was started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StartedProcess {
    pid: i32,
    host_pid: Option<i32>,
    is_paused: bool,
}

impl Program {
    /// Takes the name, for a program that runs as `owner`; nothing runs yet.
    pub(crate) fn new(shared: Arc<Shared>, name: &str, owner: SystemUser) -> Result<Self, Error> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(is_word) {
            return Err(Error::NodeName { name: name.to_owned() });
        }
        if !shared.take_name(name) {
            return Err(Error::NodeExists { name: name.to_owned() });
        }
        let directory = shared.node_directory(name);
        let (name, file_system, network, started) = (name.to_owned(), None, None, None);
        Ok(Self { shared, name, directory, file_system, owner, network, started })
    }

    /// Makes sure that its directory is there. One that another user left is made anew.
    pub(crate) fn make_directory(&self) -> Result<(), Error> {
        match self.directory.symlink_metadata() {
            Ok(left) if left.is_dir() && left.uid() == self.owner.uid => return Ok(()),
            _ => remove_tree(&self.directory)?,
        }
        make_directory_for(&self.directory, self.owner)
    }

    /// Starts it, and returns its process id in the lab.
    pub(crate) fn launch(&mut self, command: &ProcessCommand) -> Result<i32, Error> {
        let network = self.network.as_ref().map(Network::id);
        let pid = self.shared.spawn_in(command, network)?;
        self.started = Some(StartedProcess { pid, host_pid: None, is_paused: false });
        let host_pid = self.init("asking for the process id")?.host_pid(pid);
        self.started = Some(StartedProcess { pid, host_pid, is_paused: false });
        Ok(pid)
    }

    /// Sends it `signal` and waits for its end; `None` if it still runs after `timeout`. One that
    /// is paused is resumed for it.
    pub(crate) fn end(
        &mut self,
        signal: Signal,
        timeout: Duration,
    ) -> Result<Option<ProcessExit>, Error> {
        if self.expect_running("stopping")?.is_paused {
            self.resume()?;
        }
        self.signal("stopping", signal)?;
        let exit = wait_until(timeout, || self.exit())?;
        if exit.is_some() {
            self.started = None;
        }
        Ok(exit)
    }

    /// Kills all its processes and waits until none is left; returns how many.
    pub(crate) fn kill9(&mut self) -> Result<usize, Error> {
        let killed = match self.signal_all("killing all processes", Signal::KILL) {
            // Where the init has ended, everything that it had started has ended with it.
            Err(Error::Process { source, .. }) if source.kind() == ErrorKind::BrokenPipe => 0,
            killed => killed?,
        };
        self.started = None;
        Ok(killed)
    }

    /// Stops all its processes in their tracks, and returns how many when all stand.
    pub(crate) fn pause(&mut self) -> Result<usize, Error> {
        let started = self.expect_running("pausing")?;
        let paused = self.signal_all("pausing all processes", Signal::STOP)?;
        self.started = Some(StartedProcess { is_paused: true, ..started });
        Ok(paused)
    }

    /// Lets its processes go on, and returns how many.
    pub(crate) fn resume(&mut self) -> Result<usize, Error> {
        let started = self.expect_running("resuming")?;
        let resumed = self.signal_all("resuming all processes", Signal::CONT)?;
        self.started = Some(StartedProcess { is_paused: false, ..started });
        Ok(resumed)
    }

    /// Sends a signal to the process that was started, and to no child of it.
    pub(crate) fn signal(&self, doing: &'static str, signal: Signal) -> Result<(), Error> {
        let started = self.expect_running(doing)?;
        self.init(doing)?
            .signal(started.pid, signal)
            .map_err(|source| self.process("signalling the process", source))
    }

    /// Kills what an earlier start may have left.
    pub(crate) fn kill_leftovers(&self) -> Result<(), Error> {
        self.signal_all("killing what is left", Signal::KILL).map(drop)
    }

    /// Waits until its last process has ended, which may outlive the first, at most for `timeout`.
    pub(crate) fn wait_for_last(&self, timeout: Duration) -> Result<(), Error> {
        // No process reacts to this signal: those that it reaches are only counted.
        let count = || self.signal_all("looking for what is left", Signal::WINCH);
        wait_until(timeout, || Ok((count()? == 0).then_some(()))).map(drop)
    }

    /// True if it runs; one that crashed does not.
    pub(crate) fn is_running(&self) -> Result<bool, Error> {
        Ok(self.started.is_some() && self.exit()?.is_none())
    }

    /// Its end since it was started, `None` while it runs.
    pub(crate) fn exit(&self) -> Result<Option<ProcessExit>, Error> {
        let Some(started) = self.started else { return Ok(None) };
        let doing = "asking for the end";
        self.init(doing)?.exit(started.pid).map_err(|source| self.process(doing, source))
    }

    /// Its process id as `/proc` outside the lab's namespaces has it, while it runs.
    pub(crate) fn host_pid(&self) -> Option<i32> {
        self.started.and_then(|started| started.host_pid)
    }

    pub(crate) fn expect_stopped(&self, doing: &'static str) -> Result<(), Error> {
        match self.is_running()? {
            true => Err(self.state(doing, "is running")),
            false => Ok(()),
        }
    }

    pub(crate) fn expect_running(&self, doing: &'static str) -> Result<StartedProcess, Error> {
        match self.started {
            Some(started) if self.exit()?.is_none() => Ok(started),
            _ => Err(self.state(doing, "is not running")),
        }
    }

    /// All of one of its files, empty where there is none.
    pub(crate) fn text(&self, path: &Path) -> String {
        // Its callers look for what is there; a file that is not there has none of it.
        files::read_file(path, self.owner).unwrap_or_default()
    }

    /// The last lines of one of its logs after the first `from_bytes`.
    pub(crate) fn tail(&self, path: &Path, from_bytes: u64) -> String {
        log::tail(path, from_bytes, self.owner)
    }

    /// The directory's file of that name.
    pub(crate) fn file(&self, name: impl AsRef<Path>) -> PathBuf {
        self.directory.join(name)
    }

    pub(crate) fn state(&self, doing: &'static str, state: &'static str) -> Error {
        Error::State { doing, node: self.name.clone(), state }
    }

    fn signal_all(&self, doing: &'static str, signal: Signal) -> Result<usize, Error> {
        let init = self.init(doing)?;
        let places = std::iter::once(&self.directory).chain(&self.file_system);
        let reached: std::io::Result<usize> =
            places.map(|place| init.signal_under(place, None, signal)).sum();
        reached.map_err(|source| self.process(doing, source))
    }

    /// Sends a signal to what was started or works in one of its directories; returns how many
    /// processes it reached.
    pub(crate) fn signal_below(
        &self,
        doing: &'static str,
        place: &Path,
        except: Option<&Path>,
        signal: Signal,
    ) -> Result<usize, Error> {
        let reached = self.init(doing)?.signal_under(place, except, signal);
        reached.map_err(|source| self.process(doing, source))
    }

    pub(crate) fn init(&self, doing: &'static str) -> Result<&Init, Error> {
        self.shared.init().map_err(|source| self.process(doing, source))
    }

    fn process(&self, doing: &'static str, source: std::io::Error) -> Error {
        Error::Process { doing, node: self.name.clone(), source }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.started.is_some() {
            // The init kills what is left when the lab ends.
            let _ = self.kill9();
        }
        self.shared.give_back_name(&self.name);
    }
}

/// Names are directories and show in process titles.
const NAME_BYTES_MAX: usize = 40;
