//! psql and pg_restore, run as the servers' user.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use os::command::{CommandLimits, ProcessCommand};
use os::user::SystemUser;

use crate::error::Error;

/// The result of a program that has ended.
pub(crate) struct ProgramResult {
    pub(crate) is_success: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A program as the user that servers run as, with an environment of its own.
pub(crate) fn command(program: &Path) -> ProcessCommand {
    let command = ProcessCommand::new(program)
        .env("PATH", "/usr/bin:/bin")
        .env("LC_ALL", "C")
        .env("PGCONNECT_TIMEOUT", "10")
        .env("PGOPTIONS", "-c client_min_messages=warning");
    match SystemUser::unprivileged() {
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
    let user = SystemUser::unprivileged().unwrap_or_else(SystemUser::current);
    user.access(read).is_ok()
}

/// Runs a program to its end, or until it is interrupted. `fed` is what it reads from its standard
/// input.
pub(crate) fn run(
    name: &'static str,
    command: ProcessCommand,
    fed: Option<Box<dyn Read + Send>>,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<ProgramResult, Error> {
    // Data take as long as they take.
    let limits = CommandLimits { bytes_max: TEXT_MAX, timeout: None, is_interrupted };
    let ended = command.run(fed, &limits).map_err(|source| match source.kind() {
        ErrorKind::Interrupted => Error::Interrupted,
        _ => Error::Program { program: name, source },
    })?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let is_success = ended.status.success();
    Ok(ProgramResult { is_success, stdout: text(ended.stdout), stderr: text(ended.stderr) })
}

/// The list of a dump has a line of a hundred bytes for each object.
const TEXT_MAX: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_of_data_cannot_type_at_the_terminal() {
        let test = "program::tests::a_script_of_data_cannot_type_at_the_terminal";
        testing::terminal::at_a_terminal(test, || {
            // A command of a script, as psql runs it.
            let shell = command("/bin/sh".as_ref()).arg("-c");
            let typing = testing::terminal::TYPING;
            let shell = shell.arg(format!("perl -e '{typing}'; echo $?"));
            let ended = run("psql", shell, None, &|| false).unwrap();
            assert_eq!(ended.stdout.trim(), testing::terminal::NO_TERMINAL.to_string());
        });
    }
}
