//! A shell command that a script runs: beside the lane, so that no other session waits for it.

use std::{
    ffi::OsStr,
    os::unix::{ffi::OsStrExt, process::CommandExt},
    process::{Command, Stdio},
    sync::mpsc::{Receiver, TryRecvError, channel},
    thread,
};

/// How often a session looks whether its command has ended.
pub(crate) const GLANCE_NS: u64 = 1_000_000;

/// A running command.
pub(crate) struct Shell(Receiver<Ran>);

/// A command that has ended.
#[derive(Default)]
pub(crate) struct Ran {
    /// What it printed.
    pub(crate) output: Vec<u8>,
    /// It could be started, and ended with the exit code 0.
    pub(crate) succeeded: bool,
}

impl Shell {
    /// Runs `line` by `sh -c`.
    pub(crate) fn start(line: Vec<u8>) -> Self {
        let (done, result) = channel();
        thread::spawn(move || {
            // A session that has given up no longer listens; its answer is not needed then.
            let _ = done.send(run(&line));
        });
        Shell(result)
    }

    /// What came of it; none while it runs.
    pub(crate) fn ran(&mut self) -> Option<Ran> {
        match self.0.try_recv() {
            Ok(ran) => Some(ran),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Ran::default()),
        }
    }
}

fn run(line: &[u8]) -> Ran {
    let done = Command::new("/bin/sh")
        .arg0("sh")
        .arg("-c")
        .arg(OsStr::from_bytes(line))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output();
    // Why it failed, the shell has said on its standard error.
    done.map_or_else(
        |_| Ran::default(),
        |done| Ran { succeeded: done.status.success(), output: done.stdout },
    )
}
