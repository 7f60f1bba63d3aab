//! `pgrig completions`: what a shell reads to complete a command line.

use clap_complete::Shell;

use crate::arguments;
use crate::complaint::Complaint;
use crate::exit::ProgramExit;
use console::terminal;

/// Prints the completions of `shell`.
pub(crate) fn completions(shell: Shell) -> Result<ProgramExit, Complaint> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut arguments::described(), "pgrig", &mut script);
    terminal::result(String::from_utf8_lossy(&script).trim_end());
    Ok(ProgramExit::Done)
}
