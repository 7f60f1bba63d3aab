//! Arguments of `pgrig bisect`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use record::comparison::ComparedMetric;

use crate::arguments::compare::{metric, percent, setting, time};

/// `pgrig bisect`
#[derive(Debug, Args)]
#[command(after_help = HELP,
          override_usage = "pgrig bisect GOOD BAD [OPTIONS] [PGBENCH OPTIONS] -- BUILD...")]
pub(crate) struct BisectArguments {
    /// A commit that is fast
    #[arg(value_name = "GOOD")]
    pub(crate) good: String,
    /// A later one that is slow
    #[arg(value_name = "BAD")]
    pub(crate) bad: String,
    /// The git repository [default: that of the working directory]
    #[arg(long, value_name = "DIR", default_value = ".", hide_default_value = true)]
    pub(crate) repository: PathBuf,
    /// The data of every server, instead of pgbench's tables: a script or dump; {} in the path is the
    /// tree of the commit
    #[arg(long, value_name = "FILE")]
    pub(crate) data: Option<PathBuf>,
    /// A script or dump that is loaded after the data, such as {}/schema.sql of each commit
    #[arg(long, value_name = "FILE")]
    pub(crate) sql: Option<PathBuf>,
    /// Leave out the VACUUM (ANALYZE) after --data and --sql
    #[arg(long)]
    pub(crate) no_analyze: bool,
    /// A setting of every server; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub(crate) set: Vec<(String, String)>,
    /// The figure that became worse
    #[arg(long, value_name = "FIGURE", default_value = "throughput", value_parser = metric)]
    pub(crate) figure: ComparedMetric,
    /// The answer may be wrong with this probability
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = percent)]
    pub(crate) error: f64,
    /// Measure a commit for this long at most; one without a result by then is skipped
    #[arg(long, value_name = "TIME", default_value = "30min", value_parser = time)]
    pub(crate) step_time: Duration,
    /// Begin no step after this time
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) max_time: Option<Duration>,
    /// Seed of the order of blocks and of the keys [default: a new one each time]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Directory for the record, new or empty [default: runs/DATE-bisect-N]
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub(crate) out: Option<PathBuf>,
    /// Go on with a bisection that was interrupted
    #[arg(long, value_name = "DIR")]
    pub(crate) resume: Option<PathBuf>,
    /// Write the result as JSON into this file as well
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// The command that builds a commit
    #[arg(value_name = "BUILD", last = true)]
    pub(crate) build: Vec<String>,
    /// pgbench's options: scripts, clients, protocol, scale
    #[arg(skip)]
    pub(crate) workload: Vec<String>,
}

const HELP: &str = "\
BUILD runs in a clone of each commit. The last line that it prints is the folder of PostgreSQL programs that it has made, \
absolute or below the clone; if it prints nothing, the installed PostgreSQL is used. A single word is run by the shell. \
Builds are kept; pgrig clean --data removes them.

Examples:
  pgrig bisect REL_17_0 master -S -c 8 -s 50 -- ./build.sh
  pgrig bisect v1.4 main -f orders.sql -c 4 --data shop.dump --sql '{}/schema.sql' -- true";
