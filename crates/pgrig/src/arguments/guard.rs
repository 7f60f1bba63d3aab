//! The arguments of `pgrig guard`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

/// `pgrig guard`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
#[command(after_help = GUARD_HELP)]
pub(crate) struct GuardArguments {
    #[command(subcommand)]
    pub(crate) status: Option<GuardCommand>,
    #[command(flatten)]
    pub(crate) run: GuardRunArguments,
}

/// The subcommands of `pgrig guard`.
#[derive(Debug, Subcommand)]
pub(crate) enum GuardCommand {
    /// Show whether a guard runs, which setting is in force, and which commits were exposed
    #[command(after_help = STATUS_HELP)]
    Status(GuardStatusArguments),
}

/// `pgrig guard`
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
    pub(crate) metrics: Option<openmetrics::Destination>,
    /// Command for the shell at each change; the event is its input, as JSON, and $PGRIG_EVENT is its
    /// kind
    #[arg(long, value_name = "COMMAND")]
    pub(crate) exec: Option<String>,
    /// Print events as JSON lines on stdout as well
    #[arg(long)]
    pub(crate) json: bool,
}

/// `pgrig guard status`
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
    let ms = spec::duration_ms(text).map_err(|why| format!("{why}; say it as in 10s or 500ms"))?;
    let grace = Duration::from_millis(ms);
    let least = guard::Policy::GRACE_MIN;
    match grace >= least {
        true => Ok(grace),
        false => Err(format!("the least is {} s", least.as_secs())),
    }
}

const STATUS_HELP: &str = "\
Exit codes: 0 covered, 1 exposed, 2 the server does not answer, or the status cannot be read, 3 stalled: too \
few standbys confirm, 4 covered, but no guard runs, 5 the server is a standby.";

const GUARD_HELP: &str = "\
While sync mode is lowered or off, a commit that the primary acknowledges may be lost with the primary. \
docs/guard.md explains this, lists what the guard needs, and shows how to run it as a service.";
