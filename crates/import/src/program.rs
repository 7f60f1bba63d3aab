//! psql and pg_restore, run as the servers' user.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::thread;
use std::time::Duration;

use os::command::{Command, Input, Output};
use os::user::User;

use crate::error::Error;

/// The result of a program that has ended.
pub(crate) struct Ended {
    pub(crate) is_success: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A program as the user that servers run as, with an environment of its own.
pub(crate) fn command(program: &Path) -> Command {
    let command = Command::new(program)
        .env("PATH", "/usr/bin:/bin")
        .env("LC_ALL", "C")
        .env("PGCONNECT_TIMEOUT", "10")
        .env("PGOPTIONS", "-c client_min_messages=warning")
        .stdout(Output::Pipe)
        .stderr(Output::Pipe);
    match User::unprivileged() {
        Some(user) => command.user(user),
        None => command,
    }
}

/// True if the servers' user can read a file or directory by its path.
pub(crate) fn is_readable(path: &Path) -> bool {
    let read = || match path.is_dir() {
        true => std::fs::read_dir(path).and_then(|mut entries| {
            entries.try_for_each(|entry| File::open(entry?.path()).map(drop))
        }),
        false => File::open(path).map(drop),
    };
    let user = User::unprivileged().unwrap_or_else(User::current);
    user.access(read).is_ok()
}

/// Runs a program to its end, or until it is interrupted. `fed` is what it reads from its standard
/// input.
pub(crate) fn run(
    name: &'static str,
    command: Command,
    fed: Option<Box<dyn Read + Send>>,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<Ended, Error> {
    let failed = |source| Error::Program { program: name, source };
    let input = if fed.is_some() { Input::Pipe } else { Input::Null };
    let mut child = command.stdin(input).spawn().map_err(failed)?;
    if let (Some(mut fed), Some(mut stdin)) = (fed, child.stdin()) {
        // A program that stops at an error reads no further: the pipe breaks, and this ends.
        thread::spawn(move || io::copy(&mut fed, &mut stdin));
    }
    let reader = |pipe: Option<Box<dyn Read + Send>>| thread::spawn(move || text(pipe));
    let stdout = reader(child.stdout().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>));
    let stderr = reader(child.stderr().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>));
    let status = loop {
        if is_interrupted() {
            return Err(Error::Interrupted);
        }
        match child.try_wait().map_err(failed)? {
            Some(status) => break status,
            None => thread::sleep(POLL),
        }
    };
    let joined = |reader: thread::JoinHandle<String>| reader.join().unwrap_or_default();
    let (stdout, stderr) = (joined(stdout), joined(stderr));
    Ok(Ended { is_success: status.success(), stdout, stderr })
}

/// The beginning of what a program says; the rest is read and dropped.
fn text(pipe: Option<Box<dyn Read + Send>>) -> String {
    let Some(mut pipe) = pipe else { return String::new() };
    let mut bytes = Vec::new();
    let _ = pipe.by_ref().take(TEXT_MAX).read_to_end(&mut bytes);
    let _ = io::copy(&mut pipe, &mut io::sink());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The list of a dump has a line of a hundred bytes for each object.
const TEXT_MAX: u64 = 16 << 20;

const POLL: Duration = Duration::from_millis(20);
