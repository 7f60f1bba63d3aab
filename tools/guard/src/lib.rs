//! pgrig-guard: keeps commits going when synchronous standbys cannot confirm them.
//!
//! The room `guard` decides, records and changes; this package is its program: arguments, lines for people and programs,
//! figures for Prometheus, signs of life for systemd, the operator's command at each change. `pgrig guard` runs the same.

mod arguments;
mod desk;
mod exits;
mod figures;
mod hook;
mod service;
mod status;

use clap::Args;
use console::{CommandComplaint, ProgramExit};
use guard::{GuardOptions, GuardPolicy};

pub use crate::arguments::GuardArguments;
use crate::arguments::{GuardCommand, GuardRunArguments};
use crate::desk::GuardDesk;

/// The command line of the program.
pub fn command() -> clap::Command {
    let command = clap::Command::new("pgrig-guard")
        .version(env!("CARGO_PKG_VERSION"))
        .max_term_width(100)
        .disable_help_subcommand(true);
    // After the arguments, which bring a description of their own.
    GuardArguments::augment_args(command)
        .about("Keeps commits going while synchronous standbys cannot confirm them")
}

/// Guards until it is told to end, or says what a guard is up to.
///
/// # Errors
/// If the guard cannot begin, or ends for another reason than being told to.
pub fn guard(arguments: &GuardArguments) -> Result<ProgramExit, CommandComplaint> {
    match &arguments.status {
        Some(GuardCommand::Status(arguments)) => {
            status::status(arguments).map_err(|complaint| complaint.exit(ProgramExit::Unreachable))
        }
        None => run(&arguments.run),
    }
}

fn run(arguments: &GuardRunArguments) -> Result<ProgramExit, CommandComplaint> {
    if !arguments.no_automatic_failover && !arguments.dry_run {
        let what = "the guard must know that nothing promotes a standby by itself";
        let hint = "with automatic promotion elsewhere, a primary that commits alone becomes split \
                    brain; if there is none, say --no-automatic-failover";
        return Err(CommandComplaint::new(what).hinted(Some(hint)));
    }
    let options = GuardOptions {
        server: address(&arguments.conninfo)?,
        state: arguments.state.clone(),
        policy: GuardPolicy { grace: arguments.grace },
        dry_run: arguments.dry_run,
    };
    // However it ends, the next guard goes on from there.
    let control = console::quietly_interrupted(|| {});
    let mut desk = GuardDesk::open(arguments)?;
    let ended = guard::run(&options, &control, &mut desk);
    let has_begun = desk.end();
    match ended {
        Ok(()) => Ok(ProgramExit::Done),
        Err(error) => {
            let exit = if has_begun { ProgramExit::Incomplete } else { ProgramExit::CouldNotStart };
            Err(CommandComplaint::new(&error).hinted(error.hint()).exit(exit))
        }
    }
}

/// The connection string of the primary, resolved as libpq does.
fn address(conninfo: &str) -> Result<server::Conninfo, CommandComplaint> {
    server::resolve_conninfo(conninfo).map_err(CommandComplaint::new)
}
