//! A shell command that a script runs: beside the lane, so that no other session waits for it.
//!
//! It has ended when its shell has, as with `system()`: what that left in the background goes on.

use std::{
    ffi::OsStr,
    io::{self, Read},
    os::unix::{ffi::OsStrExt, process::CommandExt},
    process::{self, ChildStdout, Stdio},
    sync::mpsc::{Receiver, TryRecvError, channel},
    thread,
};

use os::{
    command::{Command, Output},
    user::User,
};
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::{Errno, ioctl_fionbio, ioctl_fionread},
    process::{Pid, PidfdFlags, Signal, pidfd_open},
};

use crate::ShellUser;

/// Pause between two looks of a session at whether its command has ended.
pub(crate) const GLANCE_NS: u64 = 1_000_000;

pub(crate) struct Shell(Receiver<Ran>);

/// The part of its output that a command is run for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Printed {
    All,
    /// Its pipe is closed when this has come.
    FirstLine,
}

/// A command that has ended.
#[derive(Default)]
pub(crate) struct Ran {
    pub(crate) output: Vec<u8>,
    pub(crate) is_started: bool,
    /// It could be started, and ended with the exit code 0.
    pub(crate) succeeded: bool,
}

impl Shell {
    /// Runs `line` by `sh -c`.
    pub(crate) fn start(line: Vec<u8>, printed: Printed, user: ShellUser) -> Self {
        let (done, result) = channel();
        let work = move || {
            // Why it failed, the shell has said on its standard error.
            let ran = match user {
                ShellUser::Own => run(&line, printed),
                ShellUser::Unprivileged => run_unprivileged(&line, printed),
            };
            let (ran, left) = ran.unwrap_or_default();
            // A session that has given up no longer listens; its answer is not needed then.
            let _ = done.send(ran);
            // What is in the background may still print. With its pipe closed it would be killed.
            if let Some(mut stdout) = left {
                let _ = io::copy(&mut stdout, &mut io::sink());
            }
        };
        // Without a thread nobody sends: the command is one that could not be started.
        let _ = thread::Builder::new().spawn(work);
        Shell(result)
    }

    /// Its result; none while it runs.
    pub(crate) fn ran(&mut self) -> Option<Ran> {
        match self.0.try_recv() {
            Ok(ran) => Some(ran),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Ran::default()),
        }
    }
}

/// A command that has ended, and its pipe where something in the background may hold it.
type Ended = (Ran, Option<ChildStdout>);

fn run(line: &[u8], printed: Printed) -> io::Result<Ended> {
    let mut child = process::Command::new(SHELL)
        .arg0("sh")
        .arg("-c")
        .arg(OsStr::from_bytes(line))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()?;
    let (output, left) = output(child.id(), child.stdout.take(), printed, usize::MAX)?;
    Ok((Ran { is_started: true, succeeded: child.wait()?.success(), output }, left))
}

/// Runs a line that somebody else has written: as a user without rights, in the root directory, with
/// nothing of this process's environment. It ends with this process; as root, with all that it has
/// started.
fn run_unprivileged(line: &[u8], printed: Printed) -> io::Result<Ended> {
    let user = User::unprivileged().ok_or(io::ErrorKind::PermissionDenied)?;
    let command = Command::new(SHELL)
        .arg("-c")
        .arg(OsStr::from_bytes(line))
        .env("PATH", PATH)
        .directory("/")
        .user(user)
        .stdout(Output::Pipe)
        .stderr(Output::Inherited)
        .parent_death_signal(Signal::KILL);
    // Only root makes a PID namespace, and not everywhere.
    let mut child = command.spawn_as_process_one().or_else(|_| command.spawn())?;
    let (output, left) = output(child.id(), child.stdout(), printed, OUTPUT_BYTES_MAX)?;
    Ok((Ran { is_started: true, succeeded: child.wait()?.success(), output }, left))
}

/// Output of a shell until it has ended, until its pipe is closed or until nothing more of it is wanted; with
/// the pipe if it was the shell that ended first.
fn output(
    pid: u32,
    stdout: Option<ChildStdout>,
    printed: Printed,
    bytes_max: usize,
) -> io::Result<(Vec<u8>, Option<ChildStdout>)> {
    let mut output = Vec::new();
    let Some(mut stdout) = stdout else { return Ok((output, None)) };
    let shell = Pid::from_raw(pid.cast_signed()).ok_or(io::ErrorKind::InvalidData)?;
    // Older kernels cannot wait for both. There the pipe's end is the shell's.
    let ended = pidfd_open(shell, PidfdFlags::empty()).ok();
    ioctl_fionbio(&stdout, ended.is_some())?;
    let mut piece = [0; 8192];
    loop {
        let mut events: Vec<_> =
            ended.iter().map(|ended| PollFd::new(ended, PollFlags::IN)).collect();
        events.push(PollFd::new(&stdout, PollFlags::IN));
        match poll(&mut events, None) {
            Err(Errno::INTR) => continue,
            polled => polled?,
        };
        let has_ended = ended.is_some() && !events[0].revents().is_empty();
        // What comes later is not the shell's own.
        let mut left = if has_ended { ioctl_fionread(&stdout)? } else { u64::MAX };
        while left > 0 {
            match stdout.read(&mut piece) {
                Ok(0) => return Ok((output, None)),
                Ok(length) => {
                    output.extend_from_slice(&piece[..length]);
                    left = left.saturating_sub(length as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
            if output.len() >= bytes_max {
                output.truncate(bytes_max);
                return Ok((output, None));
            }
            if let (Printed::FirstLine, Some(end)) =
                (printed, output.iter().position(|byte| *byte == b'\n'))
            {
                output.truncate(end + 1);
                return Ok((output, None));
            }
        }
        if has_ended {
            ioctl_fionbio(&stdout, false)?;
            return Ok((output, Some(stdout)));
        }
    }
}

const SHELL: &str = "/bin/sh";

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A command that prints more finds its pipe closed.
const OUTPUT_BYTES_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn output(line: &str, printed: Printed, user: ShellUser) -> String {
        let mut shell = Shell::start(line.as_bytes().to_vec(), printed, user);
        let mut ran = None;
        testing::until("the end of a command", || {
            ran = shell.ran();
            ran.is_some()
        });
        String::from_utf8(ran.unwrap_or_default().output).expect("text")
    }

    #[test]
    fn a_strangers_command_has_no_rights_and_none_of_the_environment() {
        let user = User::unprivileged().expect("a user");
        let expected = format!("{} {}\n/\n\n", user.uid, user.gid);
        let look = "echo $(id -u) $(id -G); pwd; echo $HOME";
        assert_eq!(output(look, Printed::All, ShellUser::Unprivileged), expected);
        let own = format!("{}\n", User::current().uid);
        assert_eq!(output("id -u", Printed::All, ShellUser::Own), own);
    }

    #[test]
    fn endless_output_is_cut_off() {
        let got = output("yes", Printed::All, ShellUser::Unprivileged);
        assert_eq!(got.len(), OUTPUT_BYTES_MAX);
    }

    #[test]
    fn a_command_has_ended_when_its_shell_has() {
        for user in [ShellUser::Own, ShellUser::Unprivileged] {
            let check = |line: &str, printed, expected: &str| {
                let began = std::time::Instant::now();
                assert_eq!(output(line, printed, user), expected, "{line}");
                assert!(began.elapsed() < std::time::Duration::from_secs(20), "{line}");
            };
            check("sleep 30 & echo $((6 * 7))", Printed::All, "42\n");
            check("sleep 30 & echo 1; echo 2", Printed::FirstLine, "1\n");
            check("sleep 30 & exit 3", Printed::All, "");
            check("echo 1; sleep 0.05; echo 2", Printed::All, "1\n2\n");
        }
    }

    #[test]
    fn what_is_left_in_the_background_may_print() {
        let directory = tempfile::tempdir().expect("a directory");
        let done = directory.path().join("done");
        let line = format!("(sleep 0.1; echo late; echo > {}) &", done.display());
        assert_eq!(output(&line, Printed::All, ShellUser::Own), "");
        testing::until("the end of what it left", || done.exists());
    }

    #[test]
    fn endless_output_ends_with_the_line_that_is_wanted() {
        let got = output("yes", Printed::FirstLine, ShellUser::Own);
        assert_eq!(got, "y\n");
    }
}
