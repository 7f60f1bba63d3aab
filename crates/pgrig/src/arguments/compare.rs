//! Arguments of `pgrig compare`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use record::comparison::{ComparedMetric, FailOn};
use spec::InitdbOption;

use crate::arguments::ProfileName;
use crate::exchange::ExchangeArguments;

/// `pgrig compare`
#[derive(Debug, Args)]
#[command(after_help = COMPARE_HELP, override_usage = "pgrig compare [OPTIONS] [PGBENCH OPTIONS]")]
pub(crate) struct CompareArguments {
    /// A server of yours as side A; pgrig makes a schema of its own there and drops it afterwards
    #[arg(long, value_name = "CONNINFO")]
    pub(crate) a_conninfo: Option<String>,
    /// The same for B
    #[arg(long, value_name = "CONNINFO")]
    pub(crate) b_conninfo: Option<String>,
    /// Use the tables that are on your servers, and make nothing there
    #[arg(long)]
    pub(crate) no_init: bool,
    /// The folder of A's PostgreSQL programs [default: the newest that is installed]
    #[arg(long, value_name = "DIR")]
    pub(crate) a_bin: Option<PathBuf>,
    /// The same for B
    #[arg(long, value_name = "DIR")]
    pub(crate) b_bin: Option<PathBuf>,
    /// Build both sides from this git repository, as pgrig bisect does
    #[arg(long, value_name = "DIR", conflicts_with_all = ["a_bin", "b_bin", "a_conninfo", "b_conninfo"])]
    pub(crate) repo: Option<PathBuf>,
    /// The commit of side A [default: HEAD]
    #[arg(
        long,
        value_name = "REV",
        requires = "repo",
        default_value = "HEAD",
        hide_default_value = true
    )]
    pub(crate) a_commit: String,
    /// The commit of side B [default: that of A]
    #[arg(long, value_name = "REV", requires = "repo")]
    pub(crate) b_commit: Option<String>,
    /// A patch that is applied to B's commit before it is built
    #[arg(long, value_name = "FILE", requires = "repo")]
    pub(crate) b_patch: Option<PathBuf>,
    /// B is the commit HEAD with what is not committed in the working directory
    #[arg(long, requires = "repo", conflicts_with_all = ["b_commit", "b_patch"])]
    pub(crate) b_dirty: bool,
    /// The command that builds a side; the last line that it prints is the folder of PostgreSQL programs [default:
    /// configure and make of PostgreSQL, with ccache if it is there]
    #[arg(long, value_name = "COMMAND", requires = "repo")]
    pub(crate) build: Option<String>,
    /// A setting of A alone; on a server of yours, of the clients' sessions; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub(crate) a_set: Vec<(String, String)>,
    /// A setting of B alone; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub(crate) b_set: Vec<(String, String)>,
    /// A setting of both sides; can be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    pub(crate) both_set: Vec<(String, String)>,
    /// An option with which initdb makes A's data directory, as in --a-initdb=--data-checksums; can be repeated
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true, value_parser = InitdbOption::parse)]
    pub(crate) a_initdb: Vec<InitdbOption>,
    /// The same for B
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true, value_parser = InitdbOption::parse)]
    pub(crate) b_initdb: Vec<InitdbOption>,
    /// A script or dump that psql or pg_restore loads once on A after the data are there: an index, an
    /// extension
    #[arg(long, value_name = "FILE")]
    pub(crate) a_sql: Option<PathBuf>,
    /// The same for B
    #[arg(long, value_name = "FILE")]
    pub(crate) b_sql: Option<PathBuf>,
    /// Give the servers that pgrig makes the locale and the settings of this one, as of a copy of production
    #[arg(long, value_name = "CONNINFO")]
    pub(crate) like: Option<String>,
    /// Give them the settings of this file: a postgresql.conf with what it includes, or rows of pg_settings as CSV; can
    /// be repeated, and later files win
    #[arg(long, value_name = "FILE")]
    pub(crate) conf: Vec<PathBuf>,
    /// Leave these settings of production out
    #[arg(long, value_name = "NAME[,NAME…]", value_delimiter = ',', value_parser = name)]
    pub(crate) without: Vec<String>,
    /// The locale of the databases that pgrig makes, as in C.UTF-8, icu:de-DE or de_DE/LATIN1 [default: that of a dump,
    /// of --like or of the other side's server; else C]
    #[arg(long, value_name = "[PROVIDER:]LOCALE[/ENCODING]")]
    pub(crate) locale: Option<lab::DatabaseLocale>,
    /// Differences of the sides that are meant, besides those that options make: collation, encoding, statistics, the
    /// name of an extension or of a setting
    #[arg(long, value_name = "NAME[,NAME…]", value_delimiter = ',', value_parser = name)]
    pub(crate) differs: Vec<String>,
    #[command(flatten)]
    pub(crate) study: StudyArguments,
    /// Name of this comparison in its record and in a history
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) name: Option<String>,
    /// Compare A with a copy of itself: shows how far identical servers differ on this machine
    #[arg(long = "self")]
    pub(crate) is_self: bool,
    /// The data of both sides, instead of pgbench's tables: a script for psql, a dump in custom, tar or directory
    /// format for pg_restore, or a base backup
    #[arg(long, value_name = "FILE")]
    pub(crate) data: Option<PathBuf>,
    /// Make B's data by pg_upgrade from A's, whose version is older: files are copied, cloned, or those of a copy are linked
    #[arg(long, value_name = "MODE", num_args = 0..=1, require_equals = true, default_missing_value = "copy",
          conflicts_with_all = ["a_conninfo", "b_conninfo", "study", "a_initdb", "b_initdb"])]
    pub(crate) b_upgrade: Option<lab::UpgradeMode>,
    /// The database of a base backup that has the data [default: the only one beside postgres]
    #[arg(long, value_name = "NAME", requires = "data")]
    pub(crate) database: Option<String>,
    /// Load both sides with the scripts of this folder, which pgrig workload make has written; each has a verdict
    #[arg(long = "workload", value_name = "DIR", conflicts_with = "study")]
    pub(crate) folder: Option<PathBuf>,
    /// Compare with each of these numbers of clients in turn, on the same servers; each has its share of --max-time
    #[arg(long, value_name = "N[,N…]", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=100_000),
          conflicts_with = "study")]
    pub(crate) clients: Vec<u32>,
    /// Check that everything named exists and fits, and build nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Leave out the VACUUM (ANALYZE) after --data, --a-sql and --b-sql
    #[arg(long)]
    pub(crate) no_analyze: bool,
    /// Keep the data that this run builds, and use those that an earlier run has kept; see pgrig clean --data
    #[arg(long)]
    pub(crate) keep_data: bool,
    /// Stop when the interval of the throughput ratio (with -R: of the ratio of median latencies)
    /// reaches no further than this on either side [default: 1%]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(crate) precision: Option<f64>,
    /// A difference below this counts as none; if given, stop as soon as throughput and p99 are
    /// decided [default: 3%]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(crate) threshold: Option<f64>,
    /// Measure for this long at most
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = time)]
    pub(crate) max_time: Duration,
    /// Load the servers for this long after each restart, for what comes later than the usual 15 s
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) segment: Option<Duration>,
    /// Say nothing unless standstills that come once in this time, or more often, are excluded
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) horizon: Option<Duration>,
    /// Seed of the order of blocks and of the keys [default: a new one each time]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Directory for the record, new or empty [default: runs/DATE-compare-N]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Sample what every backend waits for, and say what the slowest transactions of each side waited
    /// for; with --self and --tail=b, the ratios say what the sampling itself costs
    #[arg(long, value_name = "SIDE", num_args = 0..=1, require_equals = true,
          default_missing_value = "both")]
    pub(crate) tail: Option<Sampled>,
    /// Sample both servers with perf and draw a differential flame graph in the report
    #[arg(long)]
    pub(crate) profile: bool,
    /// Show the comparison in a browser while it runs: a page on 127.0.0.1 whose address is printed
    #[arg(long)]
    pub(crate) serve: bool,
    /// Publish the latest measurements as OpenMetrics: an address to serve them at, or a file
    #[arg(long, value_name = "IP:PORT[,NAME…]")]
    pub(crate) metrics: Option<openmetrics::MetricsDestination>,
    /// Write the result as JSON into this file as well
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) exchange: ExchangeArguments,
    /// Exit with 4 if B is worse in one of these figures, and with 5 if the comparison cannot tell
    /// [default: throughput,p99]
    #[arg(long, value_name = "FIGURES", num_args = 0..=1,
          default_missing_value = "", value_parser = figures)]
    pub(crate) gate: Option<ComparedMetrics>,
    /// What --gate fails on: B is worse, or also that it cannot be told
    #[arg(
        long,
        value_enum,
        value_name = "ANSWER",
        requires = "gate",
        default_value = "worse-or-unknown"
    )]
    pub(crate) fail_on: FailOnName,
    /// pgbench's options: scripts, clients, protocol, scale
    #[arg(skip)]
    pub(crate) workload: Vec<String>,
}

/// What a study gives a comparison.
#[derive(Debug, Args)]
pub(crate) struct StudyArguments {
    /// Compare variants of this study: a name of `pgrig studies`, or a folder with a study.toml
    #[arg(long, value_name = "NAME|DIR",
          conflicts_with_all = ["a_conninfo", "b_conninfo", "no_init", "data"])]
    pub(crate) study: Option<String>,
    /// The scenario whose clients are the load [default: the only one]
    #[arg(long, value_name = "NAME", requires = "study")]
    pub(crate) scenario: Option<String>,
    /// The value of an axis of the scenario, as in clients=16; can be repeated
    #[arg(long, value_name = "AXIS=VALUE", requires = "study", value_parser = setting)]
    pub(crate) at: Vec<(String, String)>,
    /// The variant whose servers are side A [default: the only one]
    #[arg(long, value_name = "NAME", requires = "study", visible_alias = "a-topology")]
    pub(crate) a_variant: Option<String>,
    /// The same for B [default: A's]
    #[arg(long, value_name = "NAME", requires = "study", visible_alias = "b-topology")]
    pub(crate) b_variant: Option<String>,
    /// The profile in which the study is read: the size of its data and the values of its axes
    /// [default: quick]
    #[arg(long, value_enum, value_name = "PROFILE", requires = "study")]
    pub(crate) study_profile: Option<ProfileName>,
}

const COMPARE_HELP: &str = "\
The workload is given by pgbench's options: -f, -b, -S, -N, -c, -j, -M, -R, -s, -D and others. Both sides hold the same data \
(pgbench's tables at the scale of -s, or what --data makes) and are loaded in turn, in blocks of 0.2 to 2 seconds, or of whole \
transactions where these are longer. With --study, servers, data and workload are those of the study, and none of pgbench's \
options can be given.

Examples:
  pgrig compare --b-set jit=off -f report.sql -c 4 --data shop.dump
  pgrig compare --b-sql index.sql -f orders.sql -c 16 --data schema.sql --gate throughput,p50
  pgrig compare --repo postgres --a-commit master --b-patch fix.patch -S -c 8
  pgrig compare --b-set shared_preload_libraries=pg_stat_statements -S --clients 1,8,32,128
  pgrig compare --study replication --scenario login --a-variant C-async --b-variant C-on";

/// Answers that fail a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOnName {
    /// B is worse
    Worse,
    /// B is worse, or it cannot be told whether it is
    WorseOrUnknown,
}

impl From<FailOnName> for FailOn {
    fn from(name: FailOnName) -> FailOn {
        match name {
            FailOnName::Worse => FailOn::Worse,
            FailOnName::WorseOrUnknown => FailOn::WorseOrUnknown,
        }
    }
}

/// The sides that are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sampled {
    /// Both
    Both,
    /// A alone
    A,
    /// B alone
    B,
}

impl Sampled {
    /// True for each side that is sampled.
    pub(crate) fn sides(self) -> [bool; 2] {
        [self != Sampled::B, self != Sampled::A]
    }
}

/// Figures that decide; none for the usual ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ComparedMetrics(pub(crate) Vec<ComparedMetric>);

/// Names of figures, as in `throughput,p50`.
pub(crate) fn figures(text: &str) -> Result<ComparedMetrics, String> {
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    let metrics = names.map(|name| {
        ComparedMetric::named(name).ok_or_else(|| {
            let known = ComparedMetric::ALL.map(ComparedMetric::name).join(", ");
            format!("{name} is no figure; there are {known}")
        })
    });
    let mut metrics = metrics.collect::<Result<Vec<_>, String>>()?;
    let mut seen = Vec::new();
    metrics.retain(|metric| {
        !seen.contains(metric) && {
            seen.push(*metric);
            true
        }
    });
    Ok(ComparedMetrics(metrics))
}

/// The name of a figure.
pub(crate) fn metric(text: &str) -> Result<ComparedMetric, String> {
    match figures(text)?.0[..] {
        [metric] => Ok(metric),
        _ => Err("expected one figure, as in throughput".to_owned()),
    }
}

/// A name that fits a line.
fn name(text: &str) -> Result<String, String> {
    let is_fit = !text.trim().is_empty() && text.chars().count() <= 80;
    match is_fit && !text.chars().any(char::is_control) {
        true => Ok(text.trim().to_owned()),
        false => Err("expected a name of one line with at most 80 characters".to_owned()),
    }
}

/// A setting, as in `work_mem=64MB`; its value may be empty.
pub(crate) fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("expected NAME=VALUE, as in work_mem=64MB".to_owned()),
    }
}

/// A time, as in `10min`.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let ms = spec::duration_ms(text).map_err(|why| format!("{why}; expected 90s or 10min"))?;
    match ms {
        0 => Err("expected more than 0 s".to_owned()),
        ms => Ok(Duration::from_millis(ms)),
    }
}

/// A share, as in `1%`.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
    match number {
        Ok(number) if number > 0.0 && number < 100.0 => Ok(number / 100.0),
        _ => Err("expected a percentage between 0 and 100, as in 1%".to_owned()),
    }
}
