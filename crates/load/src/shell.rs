//! A shell command that a script runs: beside the lane, so that no other session waits for it.

use std::{
    ffi::OsStr,
    io::{self, Read},
    os::unix::{ffi::OsStrExt, process::CommandExt},
    process::{self, Stdio},
    sync::mpsc::{Receiver, TryRecvError, channel},
    thread,
};

use os::{
    command::{Command, Output},
    user::User,
};
use rustix::process::Signal;

use crate::ShellUser;

/// Pause between two looks of a session at whether its command has ended.
pub(crate) const GLANCE_NS: u64 = 1_000_000;

pub(crate) struct Shell(Receiver<Ran>);

/// A command that has ended.
#[derive(Default)]
pub(crate) struct Ran {
    pub(crate) output: Vec<u8>,
    /// It could be started, and ended with the exit code 0.
    pub(crate) succeeded: bool,
}

impl Shell {
    /// Runs `line` by `sh -c`.
    pub(crate) fn start(line: Vec<u8>, user: ShellUser) -> Self {
        let (done, result) = channel();
        thread::spawn(move || {
            // Why it failed, the shell has said on its standard error.
            let ran = match user {
                ShellUser::Own => run(&line),
                ShellUser::Unprivileged => run_unprivileged(&line),
            };
            // A session that has given up no longer listens; its answer is not needed then.
            let _ = done.send(ran.unwrap_or_default());
        });
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

fn run(line: &[u8]) -> io::Result<Ran> {
    let done = process::Command::new(SHELL)
        .arg0("sh")
        .arg("-c")
        .arg(OsStr::from_bytes(line))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    Ok(Ran { succeeded: done.status.success(), output: done.stdout })
}

/// Runs a line that somebody else has written: as a user without rights, in the root directory, with
/// nothing of this process's environment. It ends with this process; as root, with all that it has
/// started.
fn run_unprivileged(line: &[u8]) -> io::Result<Ran> {
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
    let mut output = Vec::new();
    if let Some(stdout) = child.stdout() {
        stdout.take(OUTPUT_BYTES_MAX).read_to_end(&mut output)?;
    }
    Ok(Ran { succeeded: child.wait()?.success(), output })
}

const SHELL: &str = "/bin/sh";

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A command that prints more finds its pipe closed.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn output(line: &str, user: ShellUser) -> String {
        let mut shell = Shell::start(line.as_bytes().to_vec(), user);
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
        assert_eq!(output(look, ShellUser::Unprivileged), expected);
        let own = format!("{}\n", User::current().uid);
        assert_eq!(output("id -u", ShellUser::Own), own);
    }

    #[test]
    fn endless_output_is_cut_off() {
        let got = output("yes", ShellUser::Unprivileged);
        assert_eq!(got.len() as u64, OUTPUT_BYTES_MAX);
    }
}
