//! The one spawner: how this project starts a process.
//!
//! A [`ProcessCommand`] says everything about the process (program, arguments, environment, directory,
//! user, where its output goes, what happens when its parent dies); nothing is inherited by
//! accident: the environment is empty until it is given, standard input is `/dev/null`, only the
//! descriptors named here reach the child, and no signal is blocked there. A [`ChildProcess`] that is
//! dropped is killed with its process group and reaped, so that no error path leaves one behind.
//!
//! Every process is the first of a session of its own. It has no controlling terminal: it can neither
//! open `/dev/tty` nor put keystrokes into the terminal (TIOCSTI), where a shell of another user would
//! obey them. A Ctrl-C there does not reach it either: whoever started it ends it.
//!
//! Limit: the parent-death signal follows the *thread* that spawned. Give it only from a thread
//! that lives as long as the child should (the lab's init is single-threaded for this reason).

mod run;

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdin, ChildStdout, ExitStatus, Stdio};

use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};

use crate::namespaces;
use crate::signals;
use crate::user::SystemUser;

pub use run::{CommandLimits, CommandOutput};

/// A process to be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessCommand {
    /// The executable: a path, or a name that is looked up in the PATH of `env`.
    pub program: PathBuf,
    /// The arguments, without the program's name.
    pub args: Vec<OsString>,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory; the parent's where none is given.
    pub directory: Option<PathBuf>,
    /// The user it becomes before it executes; only root can give one that differs from itself.
    pub user: Option<SystemUser>,
    /// Source of its standard input.
    pub stdin: ProcessInput,
    /// Destination of its standard output.
    pub stdout: ProcessOutput,
    /// Destination of its standard error.
    pub stderr: ProcessOutput,
    /// The signal it receives when the thread that spawned it ends.
    pub parent_death_signal: Option<i32>,
}

/// Source of a process's standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProcessInput {
    /// `/dev/null`.
    Null,
    /// A pipe whose other end is [`ChildProcess::stdin`].
    Pipe,
}

/// Destination of a process's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProcessOutput {
    /// `/dev/null`.
    Null,
    /// To where its parent writes; never for a process of another user, whose bytes the parent's
    /// terminal would obey.
    Inherited,
    /// A pipe whose other end is [`ChildProcess::stdout`] or [`ChildProcess::stderr`].
    Pipe,
    /// Appended to this file, which is made (mode 0600) where it does not exist.
    File(PathBuf),
}

impl ProcessCommand {
    /// A process of `program` with nothing inherited.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            directory: None,
            user: None,
            stdin: ProcessInput::Null,
            stdout: ProcessOutput::Null,
            stderr: ProcessOutput::Null,
            parent_death_signal: None,
        }
    }

    /// Appends one argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Appends arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Adds a variable to the environment.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Hands on this process's own environment, as it is now.
    #[must_use]
    pub fn inherit_env(mut self) -> Self {
        self.env.extend(std::env::vars_os());
        self
    }

    /// Starts the process in `directory`.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Runs the process as `user`.
    #[must_use]
    pub fn user(mut self, user: SystemUser) -> Self {
        self.user = Some(user);
        self
    }

    /// Reads standard input from `input`.
    #[must_use]
    pub fn stdin(mut self, input: ProcessInput) -> Self {
        self.stdin = input;
        self
    }

    /// Sends standard output to `output`.
    #[must_use]
    pub fn stdout(mut self, output: ProcessOutput) -> Self {
        self.stdout = output;
        self
    }

    /// Sends standard error to `output`.
    #[must_use]
    pub fn stderr(mut self, output: ProcessOutput) -> Self {
        self.stderr = output;
        self
    }

    /// Has the kernel send `signal` to the process when the spawning thread ends.
    #[must_use]
    pub fn parent_death_signal(mut self, signal: Signal) -> Self {
        self.parent_death_signal = Some(signal.as_raw());
        self
    }

    /// Starts it.
    ///
    /// # Errors
    /// The system's error of the step that failed: opening an output file, fork, changing user or
    /// directory, or executing the program. The child of a failed start is already reaped.
    pub fn spawn(&self) -> io::Result<ChildProcess> {
        let inner = self.prepare()?.spawn()?;
        Ok(ChildProcess { inner, reaped: false })
    }

    /// Starts it as process 1 of a new PID namespace: when it ends, however it ends, the kernel
    /// kills everything that descends from it. It keeps the `/proc` of its parent.
    ///
    /// # Errors
    /// As [`ProcessCommand::spawn`]; the system's error of `unshare`, which only root may do.
    pub fn spawn_as_process_one(&self) -> io::Result<ChildProcess> {
        namespaces::with_new_processes(|| self.spawn())
    }

    /// Starts what somebody else has written, so that it ends with this thread at the latest: as
    /// process 1 of a new PID namespace with all that it has started, where that is allowed, and else
    /// by itself.
    ///
    /// # Errors
    /// As [`ProcessCommand::spawn`].
    pub fn spawn_confined(&self) -> io::Result<ChildProcess> {
        let command = self.clone().parent_death_signal(Signal::KILL);
        // Only root makes a PID namespace, and not everywhere.
        command.spawn_as_process_one().or_else(|_| command.spawn())
    }

    /// Starts it for a parent that reaps by `waitpid(-1)`: the caller owns the process id.
    pub(crate) fn spawn_detached(&self) -> io::Result<Pid> {
        let child = self.prepare()?.spawn()?;
        // std's Child neither kills nor waits when it is dropped.
        Pid::from_raw(child.id().cast_signed()).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn prepare(&self) -> io::Result<std::process::Command> {
        let mut command = std::process::Command::new(&self.program);
        command.args(&self.args).env_clear().envs(self.env.iter().map(|(k, v)| (k, v)));
        command.stdin(match self.stdin {
            ProcessInput::Null => Stdio::null(),
            ProcessInput::Pipe => Stdio::piped(),
        });
        let user = self.user.unwrap_or_else(SystemUser::current);
        if user != SystemUser::current()
            && [&self.stdout, &self.stderr].contains(&&ProcessOutput::Inherited)
        {
            let why = "a process of another user gets no stream of its parent's";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        // The process could write there by itself: its output leads nowhere else.
        let (stdout, stderr) = user.access(|| Ok((self.stdout.open()?, self.stderr.open()?)))?;
        command.stdout(stdout).stderr(stderr);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        if let Some(user) = &self.user
            && user.uid != rustix::process::geteuid().as_raw()
        {
            command.uid(user.uid).gid(user.gid);
        }
        let death_signal = self.parent_death_signal.and_then(Signal::from_named_raw);
        // SAFETY: the closure makes system calls and allocates nothing. It runs after the change
        // of user, which would reset the parent-death signal.
        unsafe {
            command.pre_exec(move || {
                signals::unblock_all()?;
                rustix::process::setsid()?;
                if let Some(signal) = death_signal {
                    rustix::process::set_parent_process_death_signal(Some(signal))?;
                }
                Ok(())
            });
        }
        Ok(command)
    }
}

impl ProcessOutput {
    fn open(&self) -> io::Result<Stdio> {
        Ok(match self {
            Self::Null => Stdio::null(),
            Self::Inherited => Stdio::inherit(),
            Self::Pipe => Stdio::piped(),
            Self::File(path) => Stdio::from(append_to(path)?),
        })
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    crate::regular_file::open(OpenOptions::new().create(true).append(true).mode(0o600), path)
}

/// A running process that this one is the parent of. Dropping it kills and reaps it.
#[derive(Debug)]
pub struct ChildProcess {
    inner: std::process::Child,
    reaped: bool,
}

impl ChildProcess {
    /// The process id.
    pub fn id(&self) -> u32 {
        self.inner.id()
    }

    /// The writing end of its standard input, once, where that is a pipe.
    pub fn stdin(&mut self) -> Option<ChildStdin> {
        self.inner.stdin.take()
    }

    /// The reading end of its standard output, once, where that is a pipe.
    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.inner.stdout.take()
    }

    /// The reading end of its standard error, once, where that is a pipe.
    pub fn stderr(&mut self) -> Option<ChildStderr> {
        self.inner.stderr.take()
    }

    /// Waits for its end and reaps it.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.inner.wait()?;
        self.reaped = true;
        Ok(status)
    }

    /// The exit status if it has ended, without waiting.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let status = self.inner.try_wait()?;
        self.reaped |= status.is_some();
        Ok(status)
    }

    /// Sends `signal` to it and to all of its process group.
    ///
    /// # Errors
    /// The system's error of `kill`; never because the process has ended and was reaped.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        let Some(pid) = Pid::from_raw(self.inner.id().cast_signed()).filter(|_| !self.reaped)
        else {
            // Its number may be another process's by now.
            return Ok(());
        };
        Ok(rustix::process::kill_process_group(pid, signal)?)
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        if !self.reaped {
            // An error has no reader here: a process that is gone already is fine.
            let _ = self.signal(Signal::KILL);
            let _ = self.inner.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn sh(script: &str) -> ProcessCommand {
        ProcessCommand::new("/bin/sh").arg("-c").arg(script)
    }

    #[test]
    fn environment_is_what_was_given_and_nothing_else() {
        let mut child = ProcessCommand::new("/usr/bin/env")
            .env("A", "1")
            .stdout(ProcessOutput::Pipe)
            .spawn()
            .unwrap();
        let mut text = String::new();
        child.stdout().unwrap().read_to_string(&mut text).unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(text, "A=1\n");
    }

    #[test]
    fn output_files_are_appended_to_and_private() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        for _ in 0..2 {
            let file = ProcessOutput::File(path.clone());
            sh("echo o; echo e >&2")
                .stdout(file.clone())
                .stderr(file)
                .spawn()
                .unwrap()
                .wait()
                .unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "o\ne\no\ne\n");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn dropping_a_child_ends_its_whole_group() {
        let mut child =
            sh("sleep 600 & echo $!; wait").stdout(ProcessOutput::Pipe).spawn().unwrap();
        let mut line = [0; 16];
        let length = child.stdout().unwrap().read(&mut line).unwrap();
        let grandchild: i32 = std::str::from_utf8(&line[..length]).unwrap().trim().parse().unwrap();
        drop(child);
        let gone = || {
            std::fs::read_to_string(format!("/proc/{grandchild}/stat"))
                .map_or(true, |stat| stat.contains(") Z "))
        };
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while !gone() && std::time::Instant::now() < deadline {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(gone(), "the grandchild outlived the drop");
    }

    #[test]
    fn a_process_of_another_user_cannot_type_at_the_terminal() {
        let test = "command::tests::a_process_of_another_user_cannot_type_at_the_terminal";
        testing::terminal::at_a_terminal(test, || {
            let user = SystemUser::unprivileged().unwrap();
            let command =
                ProcessCommand::new("/usr/bin/perl").args(["-e", testing::terminal::TYPING]);
            let status = command.user(user).spawn().unwrap().wait().unwrap();
            assert_eq!(status.code(), Some(testing::terminal::NO_TERMINAL));
        });
    }

    #[test]
    fn a_process_of_another_user_gets_no_stream_of_its_parent() {
        if !SystemUser::current().is_root() {
            return testing::skip::no_root();
        }
        let command = sh("exit 0").user(SystemUser::unprivileged().unwrap());
        let refused = |command: ProcessCommand| command.spawn().unwrap_err().kind();
        let expected = io::ErrorKind::InvalidInput;
        assert_eq!(refused(command.clone().stderr(ProcessOutput::Inherited)), expected);
        assert_eq!(refused(command.clone().stdout(ProcessOutput::Inherited)), expected);
        assert!(command.spawn().unwrap().wait().unwrap().success());
    }

    #[test]
    fn everything_ends_with_process_one() {
        if !SystemUser::current().is_root() {
            return testing::skip::no_root();
        }
        let script = "setsid sleep 600 & exec sleep 600";
        let mut child = sh(script).env("PATH", "/usr/bin:/bin").spawn_as_process_one().unwrap();
        let own = child.id().cast_signed();
        let mut family = Vec::new();
        testing::until("two processes", || {
            family = crate::processes::tree(&crate::processes::all().unwrap(), own);
            family.len() == 2
        });
        rustix::process::kill_process(Pid::from_raw(own).unwrap(), Signal::KILL).unwrap();
        child.wait().unwrap();
        testing::until("the end of both", || {
            family.iter().all(|pid| crate::processes::of(*pid).is_none_or(|one| one.is_zombie()))
        });
        // This thread starts its next processes, and threads, where it did before.
        assert!(
            std::thread::spawn(|| sh("exit 0").spawn().unwrap().wait().unwrap().success())
                .join()
                .unwrap()
        );
    }

    #[test]
    fn a_program_that_does_not_exist_is_an_error_of_the_start() {
        let error = ProcessCommand::new("/nonexistent/program").spawn().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
