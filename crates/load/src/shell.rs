//! A shell command that a script runs: beside the lane, so that no other session waits for it.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    process::{Command, Stdio},
    sync::mpsc::{Receiver, TryRecvError, channel},
    thread,
};

/// How often a session looks whether its command has ended.
pub(crate) const GLANCE_NS: u64 = 1_000_000;

/// A running command.
pub(crate) struct Shell(Receiver<Result<Vec<u8>, String>>);

impl Shell {
    /// Runs `line` by `sh -c`.
    pub(crate) fn start(line: Vec<u8>) -> Self {
        let (done, result) = channel();
        thread::spawn(move || {
            // A session that has given up no longer listens; then nobody wants to know.
            let _ = done.send(run(&line));
        });
        Shell(result)
    }

    /// What it printed, or why it failed; none while it runs.
    pub(crate) fn output(&mut self) -> Option<Result<Vec<u8>, String>> {
        match self.0.try_recv() {
            Ok(output) => Some(output),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err("shell command vanished".to_owned())),
        }
    }
}

fn run(line: &[u8]) -> Result<Vec<u8>, String> {
    let output = Command::new("/bin/sh")
        .arg("-c")
        .arg(OsStr::from_bytes(line))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("could not run shell command: {error}"))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(format!("shell command failed: {}", output.status))
    }
}
