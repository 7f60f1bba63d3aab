//! The arguments of `pgrig verify`.

use clap::Args;

/// `pgrig verify`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct VerifyArguments {
    /// One of the two databases, behind a name of your choice (old=postgres://host/db); given twice
    #[arg(long, value_name = "NAME=CONNINFO", required = true, value_parser = super::named)]
    pub(crate) target: Vec<(String, String)>,
    /// Compare only this table, with its schema unless that is public; can be repeated
    #[arg(long, value_name = "TABLE")]
    pub(crate) table: Vec<String>,
    /// Compare only tables of this schema; can be repeated
    #[arg(long, value_name = "SCHEMA")]
    pub(crate) schema: Vec<String>,
    /// The database, by its name, that may have rows of its own: it went on while the other one had stopped
    #[arg(long, value_name = "NAME")]
    pub(crate) extra: Option<String>,
    /// Say what would be read, locked and held, and for how long, and read only a sample of the largest table
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Say what it takes, then compare, after a switch from old to new:

  pgrig verify --target old=postgres://db1/shop --target new=postgres://db2/shop --dry-run
  pgrig verify --target old=postgres://db1/shop --target new=postgres://db2/shop --extra new

Ends with 0 if both are equal, with 4 if they differ. The second one's sequences may be ahead.";
