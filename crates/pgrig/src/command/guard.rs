//! `pgrig guard`: keeps commits going when synchronous standbys cannot confirm them.

mod desk;
mod figures;
mod hook;
mod service;
mod status;

use guard::{Options, Policy};

use crate::arguments::{GuardArguments, GuardCommand, GuardRunArguments};
use crate::complaint::Complaint;
use crate::exit::Exit;
use crate::signals;
use desk::Desk;

/// Guards until it is told to end, or says what a guard is up to.
pub(crate) fn guard(arguments: &GuardArguments) -> Result<Exit, Complaint> {
    match &arguments.status {
        Some(GuardCommand::Status(arguments)) => {
            status::status(arguments).map_err(|complaint| complaint.exit(Exit::Unreachable))
        }
        None => run(&arguments.run),
    }
}

fn run(arguments: &GuardRunArguments) -> Result<Exit, Complaint> {
    if !arguments.no_automatic_failover && !arguments.dry_run {
        let what = "the guard must know that nothing promotes a standby by itself";
        let hint = "with automatic promotion elsewhere, a primary that commits alone becomes split \
                    brain; if there is none, say --no-automatic-failover";
        return Err(Complaint::new(what).hinted(Some(hint)));
    }
    let options = Options {
        server: address(&arguments.conninfo)?,
        state: arguments.state.clone(),
        policy: Policy { grace: arguments.grace },
        dry_run: arguments.dry_run,
    };
    // However it ends, the next guard goes on from there.
    let control = signals::quiet_control();
    let mut desk = Desk::open(arguments)?;
    let ended = guard::run(&options, &control, &mut desk);
    let has_begun = desk.end();
    match ended {
        Ok(()) => Ok(Exit::Done),
        Err(error) => {
            let exit = if has_begun { Exit::Incomplete } else { Exit::CouldNotStart };
            Err(Complaint::new(&error).hinted(error.hint()).exit(exit))
        }
    }
}

/// The connection string of the primary, resolved as libpq does.
fn address(conninfo: &str) -> Result<server::Conninfo, Complaint> {
    server::resolve_conninfo(conninfo).map_err(Complaint::new)
}
