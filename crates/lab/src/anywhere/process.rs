//! Any program of a lab but a server and a pooler, here or on a host.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use os::init::Exit;
use terms::StopMode;

use crate::error::Error;
use crate::files::failed;
use crate::process;
use crate::remote::{Listing, MadeProgram, RemoteLab, Verb};

/// A program with a directory and a log of its own. It is killed when it is dropped.
#[derive(Debug)]
pub struct Process(Place);

#[derive(Debug)]
enum Place {
    Here(process::Process),
    There(RemoteProcess),
}

/// An object of a lab on a host that runs.
#[derive(Debug)]
pub(crate) struct RemoteProcess {
    pub(crate) lab: Arc<RemoteLab>,
    pub(crate) object: u32,
    pub(crate) name: String,
    pub(crate) made: MadeProgram,
}

impl Process {
    pub(crate) fn here(process: process::Process) -> Process {
        Process(Place::Here(process))
    }

    pub(crate) fn there(process: RemoteProcess) -> Process {
        Process(Place::There(process))
    }

    /// Starts it, in its directory and with its output in its log. Whether it is ready is for its
    /// owner to find out.
    ///
    /// # Errors
    /// [`Error::State`] if it runs; [`Error::Execute`].
    pub fn start(&mut self) -> Result<(), Error> {
        match &mut self.0 {
            Place::Here(process) => process.start(),
            Place::There(process) => process.start(),
        }
    }

    /// Stops it by SIGTERM (smart and fast) or SIGQUIT (immediate), and waits for its end.
    ///
    /// # Errors
    /// [`Error::State`] if it does not run; [`Error::Stop`], after which it still runs.
    pub fn stop(&mut self, mode: StopMode) -> Result<Exit, Error> {
        match &mut self.0 {
            Place::Here(process) => process.stop(mode),
            Place::There(process) => process.stop(mode),
        }
    }

    /// Kills it and all that it started with SIGKILL.
    ///
    /// # Errors
    /// The init's.
    pub fn kill9(&mut self) -> Result<usize, Error> {
        match &mut self.0 {
            Place::Here(process) => process.kill9(),
            Place::There(process) => process.ask(Verb::Kill),
        }
    }

    /// Stops it in its tracks (SIGSTOP).
    ///
    /// # Errors
    /// [`Error::State`] if it does not run; the init's.
    pub fn pause(&mut self) -> Result<usize, Error> {
        match &mut self.0 {
            Place::Here(process) => process.pause(),
            Place::There(process) => process.ask(Verb::Pause),
        }
    }

    /// Lets it go on.
    ///
    /// # Errors
    /// [`Error::State`] if it does not run; the init's.
    pub fn resume(&mut self) -> Result<usize, Error> {
        match &mut self.0 {
            Place::Here(process) => process.resume(),
            Place::There(process) => process.ask(Verb::Resume),
        }
    }

    /// Whether it runs.
    ///
    /// # Errors
    /// The init's.
    pub fn is_running(&self) -> Result<bool, Error> {
        match &self.0 {
            Place::Here(process) => process.is_running(),
            Place::There(process) => process.ask(Verb::IsRunning),
        }
    }

    /// How it ended by itself since it was started, `None` while it runs.
    ///
    /// # Errors
    /// The init's.
    pub fn exit(&self) -> Result<Option<Exit>, Error> {
        match &self.0 {
            Place::Here(process) => process.exit(),
            Place::There(process) => process.ask(Verb::Exit),
        }
    }

    /// The wall clock of its host, in microseconds since 1970; none on this machine.
    ///
    /// # Errors
    /// [`HostError::Lost`](crate::HostError::Lost).
    pub fn wall_clock_us(&self) -> Result<Option<i64>, Error> {
        match &self.0 {
            Place::Here(_) => Ok(None),
            Place::There(process) => process.lab.ask(0, Verb::WallClock).map(Some),
        }
    }

    /// Copies the files directly in `from`, a directory of its lab, to `to` on this machine.
    ///
    /// # Errors
    /// The file systems'; [`HostError::Lost`](crate::HostError::Lost).
    pub fn fetch(&self, from: &Path, to: &Path) -> Result<(), Error> {
        let files: Listing = match &self.0 {
            Place::Here(_) => return Ok(()),
            Place::There(process) => process.lab.ask(0, Verb::Read(from.to_owned()))?,
        };
        std::fs::create_dir_all(to).map_err(failed("making", to))?;
        // A state and its books are a handful of files.
        if files.len() > FILES_MAX {
            let why = format!("the host has more than {FILES_MAX} files there");
            return Err(failed("copying", from)(std::io::Error::other(why)));
        }
        for (name, bytes) in files {
            let path = to.join(&name);
            if !is_file_name(&name) {
                return Err(failed("writing", &path)(std::io::ErrorKind::InvalidFilename.into()));
            }
            std::fs::write(&path, bytes).map_err(failed("writing", &path))?;
        }
        Ok(())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match &self.0 {
            Place::Here(process) => process.name(),
            Place::There(process) => &process.name,
        }
    }

    /// Its process id as `/proc` of its host outside the lab's namespaces has it, while it runs.
    pub fn host_pid(&self) -> Option<i32> {
        match &self.0 {
            Place::Here(process) => process.host_pid(),
            Place::There(process) => process.pid(),
        }
    }

    /// What it has written to its standard output and standard error, on its host.
    pub fn log(&self) -> PathBuf {
        match &self.0 {
            Place::Here(process) => process.log(),
            Place::There(process) => process.made.log.clone(),
        }
    }

    /// What is in its log.
    pub fn log_text(&self) -> String {
        match &self.0 {
            Place::Here(process) => process.log_text(),
            Place::There(process) => process.log_text(),
        }
    }

    /// The end of its log.
    pub fn log_tail(&self) -> String {
        match &self.0 {
            Place::Here(process) => process.log_tail(),
            Place::There(process) => process.log_tail(),
        }
    }
}

/// Files that a host may give at once.
const FILES_MAX: usize = 100;

/// Whether a name that a host gives stays in the directory that it is joined to.
fn is_file_name(name: &str) -> bool {
    Path::new(name).file_name().is_some_and(|own| own == name)
}

impl RemoteProcess {
    pub(crate) fn ask<T: serde::de::DeserializeOwned>(&self, verb: Verb) -> Result<T, Error> {
        self.lab.ask(self.object, verb)
    }

    pub(crate) fn start(&self) -> Result<(), Error> {
        self.ask(Verb::Start)
    }

    pub(crate) fn stop(&self, mode: StopMode) -> Result<Exit, Error> {
        self.ask(Verb::Stop(mode))
    }

    /// On a host that is lost nothing runs.
    pub(crate) fn pid(&self) -> Option<i32> {
        self.ask(Verb::Pid).unwrap_or_default()
    }

    /// A host that is lost says nothing any more.
    pub(crate) fn log_text(&self) -> String {
        self.ask(Verb::LogText).unwrap_or_default()
    }

    pub(crate) fn log_tail(&self) -> String {
        self.ask(Verb::LogTail).unwrap_or_default()
    }
}

impl Drop for RemoteProcess {
    fn drop(&mut self) {
        self.lab.give_up(self.object);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_host_stay_in_their_directory() {
        let check = |name: &str, expected: bool| assert_eq!(is_file_name(name), expected, "{name}");
        check("state.json", true);
        check(".hidden", true);
        for name in ["", ".", "..", "/etc/passwd", "../x", "a/b", "a/", "a/.."] {
            check(name, false);
        }
    }
}
