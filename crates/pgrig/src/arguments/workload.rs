//! The arguments of `pgrig workload`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `pgrig workload`
#[derive(Debug, Args)]
pub(crate) struct WorkloadArguments {
    #[command(subcommand)]
    pub(crate) command: WorkloadCommand,
}

/// The commands of `pgrig workload`.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkloadCommand {
    /// Make a folder of scripts from pg_stat_statements or from server logs
    Make(Box<MakeArguments>),
}

/// `pgrig workload make`
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("sources").required(true).args(["statements", "from", "log"]))]
pub(crate) struct MakeArguments {
    /// Directory of the workload; it must not exist, or be empty
    #[arg(value_name = "OUT")]
    pub(crate) out: PathBuf,
    /// pg_stat_statements as CSV with a header; a second, later file gives the calls between the two
    #[arg(long, value_name = "FILE", num_args = 1..=2)]
    pub(crate) statements: Vec<PathBuf>,
    /// Server whose pg_stat_statements is read
    #[arg(long, value_name = "CONNINFO")]
    pub(crate) from: Option<String>,
    /// Server logs in the order of their time: csvlog, jsonlog or stderr
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) log: Vec<PathBuf>,
    /// log_line_prefix of the server, for logs of stderr
    #[arg(long, value_name = "PREFIX", default_value = "%m [%p] %q%u@%d ")]
    pub(crate) log_line_prefix: String,
    /// Server with the tables, a copy of production, by which names are resolved and scripts are checked
    /// [default: that of --from]
    #[arg(long, value_name = "CONNINFO")]
    pub(crate) like: Option<String>,
    /// With --log: only calls that ended at this moment or later, as in "YYYY-MM-DD HH:MM"
    #[arg(long, value_name = "MOMENT", requires = "log")]
    pub(crate) since: Option<String>,
    /// With --log: only calls that ended before this moment
    #[arg(long, value_name = "MOMENT", requires = "log")]
    pub(crate) until: Option<String>,
    /// Only calls in this database
    #[arg(long, value_name = "NAME")]
    pub(crate) database: Option<String>,
    /// Only calls of this role
    #[arg(long, value_name = "NAME")]
    pub(crate) role: Option<String>,
    /// With --log: only calls of this application_name
    #[arg(long, value_name = "NAME", requires = "log")]
    pub(crate) application: Option<String>,
    /// With --log: write the values of calls into the folder. Without it, nothing of production's content is in it
    #[arg(long, requires = "log")]
    pub(crate) values: bool,
}
