//! A program of the system that the rig runs to its end.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use os::command::{ProcessCommand, ProcessOutput};
use os::init::NetworkNamespace;
use os::user::SystemUser;

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
    network: Option<NetworkNamespace>,
    timeout: Duration,
) -> Result<Result<String, String>, Error> {
    let output = directory.join("tool.log");
    // What an earlier one said is of no interest any more.
    remove_file(&output, SystemUser::current())?;
    let command = ProcessCommand::new(program)
        .args(args)
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("LC_ALL", "C")
        .directory(directory)
        .stdout(ProcessOutput::File(output.clone()))
        .stderr(ProcessOutput::File(output.clone()));
    let exit = shared.run_in(&command, network, timeout)?;
    let said = log::tail(&output, 0, SystemUser::current());
    Ok(if exit.is_success() { Ok(said) } else { Err(said) })
}
