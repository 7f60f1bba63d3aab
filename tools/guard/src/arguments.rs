//! The arguments of a guard.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::exits;

/// What a guard is asked to do.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
#[command(after_help = guard_help())]
pub struct GuardArguments {
    #[command(subcommand)]
    pub(crate) status: Option<GuardCommand>,
    #[command(flatten)]
    pub(crate) run: GuardRunArguments,
}

/// What is asked of a guard besides running.
#[derive(Debug, Subcommand)]
pub(crate) enum GuardCommand {
    /// Show whether a guard runs, which setting is in force, and which commits were exposed
    #[command(after_help = status_help())]
    Status(GuardStatusArguments),
}

/// How a guard runs.
#[derive(Debug, Args)]
pub(crate) struct GuardRunArguments {
    /// Connection string of the primary; defaults come from PGHOST, PGPORT and so on
    #[arg(value_name = "CONNINFO", default_value = "", hide_default_value = true)]
    pub(crate) conninfo: String,
    /// Directory for the state and the record of exposure, for this server only
    #[arg(long, value_name = "DIR", required_unless_present = "dry_run")]
    pub(crate) state: Option<PathBuf>,
    /// Longest time that commits may wait for a standby
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = grace)]
    pub(crate) grace: Duration,
    /// Confirm that no tool promotes a standby of this server automatically
    #[arg(long)]
    pub(crate) no_automatic_failover: bool,
    /// Print what would be done, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Show what is exposed, since when, and what the guard has decided, as OpenMetrics: an address to
    /// serve it at, or a file
    #[arg(long, value_name = "IP:PORT[,NAME…]")]
    pub(crate) metrics: Option<openmetrics::MetricsDestination>,
    /// Command for the shell at each change; the event is its input, as JSON, and $PGRIG_EVENT is its
    /// kind
    #[arg(long, value_name = "COMMAND")]
    pub(crate) exec: Option<String>,
    /// Print events as JSON lines on stdout as well
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which status is shown.
#[derive(Debug, Args)]
pub(crate) struct GuardStatusArguments {
    /// Connection string of the primary
    #[arg(value_name = "CONNINFO", default_value = "", hide_default_value = true)]
    pub(crate) conninfo: String,
    /// The guard's state directory; without it, only the state of the server is shown
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Print the status as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn grace(text: &str) -> Result<Duration, String> {
    let read = text.parse::<jiff::SignedDuration>().ok();
    let grace = read.and_then(|read| Duration::try_from(read).ok());
    let grace =
        grace.ok_or_else(|| format!("\"{text}\" is not a duration; say it as in 10s or 500ms"))?;
    let least = guard::GuardPolicy::GRACE_MIN;
    match grace >= least {
        true => Ok(grace),
        false => Err(format!("the least is {} s", least.as_secs())),
    }
}

fn status_help() -> String {
    format!("Exit codes:\n{}", exits::table(&exits::STATUS_ENDINGS))
}

fn guard_help() -> String {
    format!("{GUARD_HELP}\n\nExit codes:\n{}", exits::table(&exits::RUN_ENDINGS))
}

const GUARD_HELP: &str = "\
While sync mode is lowered or off, a commit that the primary acknowledges may be lost with the primary. \
docs/guard.md explains this, lists what the guard needs, and shows how to run it as a service.";
