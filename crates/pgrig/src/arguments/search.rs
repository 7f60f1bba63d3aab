//! The arguments of `pgrig search`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{ProfileName, set};

/// `pgrig search`
#[derive(Debug, Args)]
#[command(after_help = SEARCH_EXAMPLES)]
pub(crate) struct SearchArguments {
    /// A shipped study's name (see `pgrig studies`), or a folder with a study.toml
    #[arg(value_name = "STUDY", required_unless_present = "resume")]
    pub(crate) study: Option<String>,
    /// The trial that each schedule breaks into, by a part of its name (`variant/scenario axis=value`)
    /// [default: `trial` of the study's nemesis]
    #[arg(long, value_name = "PATTERN")]
    pub(crate) only: Option<String>,
    /// The size of the study [default: quick]
    #[arg(long, value_enum, value_name = "PROFILE")]
    pub(crate) profile: Option<ProfileName>,
    /// Time after which no schedule is drawn any more: 30min, 3h. What was found is still shrunk
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    pub(crate) time: Option<Duration>,
    /// Schedules that are drawn at most [default: 100, where --for is not given]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) schedules: Option<u64>,
    /// Trials that tell how often a schedule breaks the promise
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) repeats: u64,
    /// Seed from which all schedules are drawn [default: the study's; if it has none, a new one for every search]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Value to use instead of the study's, as with `pgrig run --set`; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = set::set)]
    pub(crate) set: Vec<set::Set>,
    /// Directory for the record, new or empty [default: runs/DATE-STUDY-N]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Go on with the search of this record, with its study, profile and seed
    #[arg(long, value_name = "DIR", conflicts_with_all = ["study", "profile", "out", "repeats", "seed", "only", "set"])]
    pub(crate) resume: Option<PathBuf>,
    /// Directory of the PostgreSQL programs to use
    #[arg(long, value_name = "DIR")]
    pub(crate) pg_bin: Option<PathBuf>,
    /// Print the faults, their victims and the first schedules, and build nothing
    #[arg(long, conflicts_with = "resume")]
    pub(crate) dry_run: bool,
}

fn time(text: &str) -> Result<Duration, String> {
    spec::duration_ms(text)
        .map(Duration::from_millis)
        .map_err(|why| format!("{why}: write 30min, 3h"))
}

const SEARCH_EXAMPLES: &str = "\
A search draws schedules of faults from a seed, runs each beside the study's load, and stops at the first that breaks a
promise. That one it shrinks. Ctrl-C ends it, and --resume goes on.

  pgrig search mine --for 30min
  pgrig search failover --schedules 300 --seed 7
  pgrig run runs/2026-01-01-mine-1/found/mine --only schedule_12 --rounds 20

Exit codes: 0 nothing broke a promise; 4 a schedule did; 130 interrupted.";
