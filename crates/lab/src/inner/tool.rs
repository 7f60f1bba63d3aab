//! A program of the system that the rig runs to its end.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use os::command::{Command, Output};
use os::init::Network;
use os::user::User;

use crate::error::Error;
use crate::files::remove_file;
use crate::inner::shared::Shared;
use crate::log;

/// Runs a program as root, in one of the lab's networks or in none of them. The inner result is what it
/// said, an error where it failed. `directory`, one of root's, is where it runs and where its output is kept
/// meanwhile.
///
/// # Errors
/// [`Error::Process`] where it cannot be started or takes too long.
pub(super) fn run(
    shared: &Shared,
    program: &Path,
    args: &[impl AsRef<OsStr>],
    directory: &Path,
    network: Option<Network>,
    timeout: Duration,
) -> Result<Result<String, String>, Error> {
    let output = directory.join("tool.log");
    // What an earlier one said is of no interest any more.
    remove_file(&output, User::current())?;
    let command = Command::new(program)
        .args(args)
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("LC_ALL", "C")
        .directory(directory)
        .stdout(Output::File(output.clone()))
        .stderr(Output::File(output.clone()));
    let exit = shared.run_in(&command, network, timeout)?;
    let said = log::tail(&output, 0, User::current());
    Ok(if exit.is_success() { Ok(said) } else { Err(said) })
}
