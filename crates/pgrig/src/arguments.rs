//! What can be typed.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use spec::Profile;

use crate::exchange::ExchangeArguments;
use crate::exit::{Exit, MEANINGS};

mod compare;
mod history;

pub(crate) use compare::CompareArguments;
pub(crate) use history::{HistoryArguments, HistoryCommand};

/// A test rig for PostgreSQL: builds what a question is about, loads it, breaks it, and answers
/// with numbers that can be trusted.
#[derive(Debug, Parser)]
#[command(name = "pgrig", version, help_template = help(), subcommand_required = true)]
#[command(max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Benchmark a server as pgbench does: its options, its words, more figures
    #[command(disable_help_flag = true)]
    Bench(BenchArguments),
    /// Run a study: a shipped one, or a folder of your own
    Run(RunArguments),
    /// Say what a study needs and whether it fits here; bare, what this machine can do
    Check(CheckArguments),
    /// List the studies that pgrig brings along
    Studies(StudiesArguments),
    /// Write a small, commented study to start from
    New(NewArguments),
    /// Print the verdicts of a record
    Show(ShowArguments),
    /// Write the report of a record anew
    Report(RecordArguments),
    /// Compare two servers side by side: is B faster than A?
    Compare(Box<CompareArguments>),
    /// Compare two records
    Diff(DiffArguments),
    /// Keep results over time: list them, draw them, export them
    History(HistoryArguments),
    /// Keep commits going when synchronous standbys cannot confirm them
    Guard(GuardArguments),
    /// Add and remove nodes of a PL/Proxy cluster while clients use it
    Shard(ShardArguments),
    /// Remove what a crash of the machine has left
    Clean(CleanArguments),
    /// Print the completions of a shell
    #[command(hide = true)]
    Completions(CompletionsArguments),
    /// Write the manual pages into a directory
    #[command(hide = true)]
    Man(ManArguments),
    /// Become a generator process: reads its orders from stdin
    #[command(hide = true)]
    Generator,
    /// Become a host: started by a launcher, speaks with the rig over stdin and stdout
    #[command(hide = true)]
    Host(HostArguments),
    /// Become a process of a link
    #[command(hide = true)]
    Link(LinkArguments),
    /// Become a disk whose power can be cut
    #[command(hide = true)]
    Disk(DiskArguments),
}

/// `pgrig host`
#[derive(Debug, Args)]
pub(crate) struct HostArguments {
    /// Remove the file of this program, which was copied here for this run
    #[arg(long)]
    pub(crate) remove_program: bool,
}

/// What the process of a link does, in the words of the rig that starts it.
#[derive(Debug, Args)]
pub(crate) struct LinkArguments {
    /// relay, echo or ping, and what that needs
    #[arg(required = true)]
    pub(crate) words: Vec<String>,
}

/// What a disk is made from, in the words of the rig that starts it.
#[derive(Debug, Args)]
pub(crate) struct DiskArguments {
    /// Image, mount point, socket, sector and honesty
    #[arg(required = true)]
    pub(crate) words: Vec<std::ffi::OsString>,
}

/// pgbench's own arguments, which are passed through.
#[derive(Debug, Args)]
pub(crate) struct BenchArguments {
    /// As pgbench's
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _arguments: Vec<String>,
}

/// `pgrig run`
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// A shipped study's name (see `pgrig studies`), or a folder with a study.toml
    #[arg(value_name = "STUDY", required_unless_present = "resume")]
    pub(crate) study: Option<String>,
    /// How big it runs: smoke takes seconds and proves that it works, quick takes minutes on two
    /// cores, full is the published size
    #[arg(long, value_enum, value_name = "PROFILE")]
    pub(crate) profile: Option<ProfileName>,
    /// Where the record goes: a new or empty directory [default: runs/DATE-STUDY-N]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// How often each trial is run, instead of what the study says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) rounds: Option<u32>,
    /// Seed of everything random [default: the study's; without one, a fresh one for every run]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Only trials whose name (`variant/scenario axis=value`) contains this, or fits it with `*`;
    /// several patterns with `|` between them
    #[arg(long, value_name = "PATTERN")]
    pub(crate) only: Option<String>,
    /// Only the trial of this number, as a record of the same plan has it: the same seeds again
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    pub(crate) trial: Option<usize>,
    /// Go on with a record that was interrupted; profile, seed, rounds and pattern are its own
    #[arg(long, value_name = "DIR", conflicts_with_all = ["study", "profile", "out", "rounds", "seed", "only"])]
    pub(crate) resume: Option<PathBuf>,
    /// Exit with 4 if an invariant does not hold, with 5 if nobody can tell
    #[arg(long)]
    pub(crate) gate: bool,
    /// With --gate: findings count as invariants do
    #[arg(long, requires = "gate")]
    pub(crate) strict: bool,
    /// The folder of the PostgreSQL programs to use
    #[arg(long, value_name = "DIR")]
    pub(crate) pg_bin: Option<PathBuf>,
    /// Run on this server instead of building one; it gets a schema "pgrig" until the run ends, no
    /// setting is changed
    #[arg(long, value_name = "URI", conflicts_with = "pg_bin")]
    pub(crate) target: Option<String>,
    /// With --target: print every statement that would be sent, and change nothing
    #[arg(long, requires = "target")]
    pub(crate) dry_run: bool,
    /// Use an empty database on a host of yours as the study's shard NAME (shard1=host=db1 …); it
    /// gets schemas, functions and rows for the while, no setting is changed
    #[arg(long, value_name = "NAME=CONNINFO", conflicts_with = "target", value_parser = named)]
    pub(crate) node: Vec<(String, String)>,
}

/// `pgrig check`
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// A shipped study's name, or a folder with a study.toml
    #[arg(value_name = "STUDY")]
    pub(crate) study: Option<String>,
    /// The profile to plan
    #[arg(long, value_enum, value_name = "PROFILE")]
    pub(crate) profile: Option<ProfileName>,
    /// The folder of the PostgreSQL programs to use
    #[arg(long, value_name = "DIR")]
    pub(crate) pg_bin: Option<PathBuf>,
    /// As JSON
    #[arg(long, requires = "study")]
    pub(crate) json: bool,
    /// Reach every host of this inventory, and say what each has and lacks
    #[arg(long, value_name = "FILE", conflicts_with_all = ["study", "pg_bin"])]
    pub(crate) hosts: Option<PathBuf>,
    /// With --hosts: copy this program to the hosts first
    #[arg(long, requires = "hosts")]
    pub(crate) push: bool,
    /// With --hosts: a server that every host must be able to connect to; can be repeated
    #[arg(long, value_name = "HOST:PORT", requires = "hosts")]
    pub(crate) reach: Vec<String>,
}

/// `pgrig studies`
#[derive(Debug, Args)]
pub(crate) struct StudiesArguments {
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `pgrig new`
#[derive(Debug, Args)]
pub(crate) struct NewArguments {
    /// The study's folder, which must not exist or be empty
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}

/// `pgrig show`
#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// The record
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) exchange: ExchangeArguments,
}

/// `pgrig report`
#[derive(Debug, Args)]
pub(crate) struct RecordArguments {
    /// The record
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}

/// `pgrig diff`
#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    /// The record to compare with
    #[arg(value_name = "DIR1")]
    pub(crate) before: PathBuf,
    /// The record that is compared
    #[arg(value_name = "DIR2")]
    pub(crate) after: PathBuf,
    /// As JSON, for programs
    #[arg(long)]
    pub(crate) json: bool,
}

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

/// What can be done besides guarding.
#[derive(Debug, Subcommand)]
pub(crate) enum GuardCommand {
    /// Say whether a guard runs, what is in force, and what was exposed
    Status(GuardStatusArguments),
}

/// `pgrig guard`
#[derive(Debug, Args)]
pub(crate) struct GuardRunArguments {
    /// The primary, as libpq has it; what is not said comes from PGHOST, PGPORT and so on
    #[arg(value_name = "CONNINFO", default_value = "", hide_default_value = true)]
    pub(crate) conninfo: String,
    /// Where state and the record of exposure are kept: a directory for this server only
    #[arg(long, value_name = "DIR", required_unless_present = "dry_run")]
    pub(crate) state: Option<PathBuf>,
    /// How long commits may wait for a standby
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = grace)]
    pub(crate) grace: Duration,
    /// Confirm that no tool promotes a standby of this server automatically
    #[arg(long)]
    pub(crate) no_automatic_failover: bool,
    /// Say what would be done, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Tell what happens as JSON lines on stdout as well
    #[arg(long)]
    pub(crate) json: bool,
}

/// `pgrig guard status`
#[derive(Debug, Args)]
pub(crate) struct GuardStatusArguments {
    /// The primary
    #[arg(value_name = "CONNINFO", default_value = "", hide_default_value = true)]
    pub(crate) conninfo: String,
    /// The guard's state directory; without it, only what the server shows
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// As JSON
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

const GUARD_HELP: &str = "\
While sync mode is lowered or off, a commit that the primary acknowledges may be lost with the primary. \
docs/guard.md says what that means, what the guard needs, and how to run it as a service.";

/// `pgrig shard`
#[derive(Debug, Args)]
pub(crate) struct ShardArguments {
    #[command(subcommand)]
    pub(crate) command: ShardCommand,
}

/// What can be done with a cluster.
#[derive(Debug, Subcommand)]
pub(crate) enum ShardCommand {
    /// Make a cluster of servers that you have: schemas and functions, no rows
    Create {
        /// The proxy's database
        #[arg(long, value_name = "CONNINFO")]
        proxy: String,
        /// A data node's database; one for each node
        #[arg(long = "node", value_name = "CONNINFO", required = true)]
        nodes: Vec<String>,
        /// How the proxy reaches the node of the same position, where a pooler is in between
        #[arg(long = "route", value_name = "CONNINFO")]
        routes: Vec<String>,
        /// The SQL of one bucket: its tables and functions, with {bucket} for its schema
        #[arg(long, value_name = "FILE")]
        template: PathBuf,
        /// Virtual buckets, a power of two: what nodes are given and moves consist of
        #[arg(long, value_name = "N", default_value_t = 128)]
        buckets: i32,
    },
    /// Take a node in, and give it its share of the buckets
    Add {
        /// The new data node's database
        #[arg(value_name = "CONNINFO")]
        node: String,
        /// How the proxy reaches it, where a pooler is in between
        #[arg(long, value_name = "CONNINFO")]
        route: Option<String>,
        #[command(flatten)]
        moves: MoveArguments,
    },
    /// Give a node's buckets to the others, and let it go
    Remove {
        /// The node's number, as `pgrig shard status` shows it
        #[arg(value_name = "NODE")]
        number: i32,
        #[command(flatten)]
        moves: MoveArguments,
    },
    /// Go on with what was interrupted, then move as few buckets as give every node its share
    Rebalance {
        #[command(flatten)]
        moves: MoveArguments,
    },
    /// Show nodes, their buckets and what is under way
    Status {
        /// The proxy's database
        #[arg(long, value_name = "CONNINFO")]
        proxy: String,
    },
}

/// How buckets are moved.
#[derive(Debug, Args)]
pub(crate) struct MoveArguments {
    /// The proxy's database
    #[arg(long, value_name = "CONNINFO")]
    pub(crate) proxy: String,
    /// Print the plan and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Buckets that move together; fewer make shorter fences
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = at_least_one)]
    pub(crate) batch: usize,
    /// Seconds that a source keeps rows after they have moved
    #[arg(long, value_name = "S", default_value_t = 10)]
    pub(crate) grace: u64,
    /// Longest time to block writes to moving buckets; if exceeded, the move is cancelled
    #[arg(long, value_name = "S", default_value_t = 10)]
    pub(crate) fence_max: u64,
    /// Megabytes that stay free on the disk of a node that gets buckets, else nothing moves
    #[arg(long, value_name = "MB", default_value_t = 256)]
    pub(crate) keep_free: u32,
}

/// `NAME=CONNINFO`
fn named(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, conninfo)) if !name.is_empty() && !conninfo.is_empty() => {
            Ok((name.to_owned(), conninfo.to_owned()))
        }
        _ => Err("write NAME=CONNINFO, as in \"shard1=host=db1 dbname=empty\"".to_owned()),
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("a whole number of at least 1 is needed".to_owned()),
        Ok(count) => Ok(count),
    }
}

/// `pgrig clean`
#[derive(Debug, Args)]
pub(crate) struct CleanArguments {
    /// Where to look [default: the system's directory for temporary files]
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

/// `pgrig completions`
#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

/// `pgrig man`
#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Where the pages go; the directory is made if it is missing
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}

/// How big a study runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProfileName {
    /// Seconds: proves that every part works
    Smoke,
    /// Minutes on two cores
    Quick,
    /// The published size
    Full,
}

impl From<ProfileName> for Profile {
    fn from(name: ProfileName) -> Profile {
        match name {
            ProfileName::Smoke => Profile::Smoke,
            ProfileName::Quick => Profile::Quick,
            ProfileName::Full => Profile::Full,
        }
    }
}

/// Everything that can be typed, the options of `bench` included, which clap does not read.
pub(crate) fn described() -> clap::Command {
    Arguments::command().mut_subcommand("bench", |bench| {
        let options = pgbench::options::option_names(pgbench::Major::default());
        options
            .into_iter()
            .fold(clap::Command::new("bench"), |bench, option| {
                let argument = clap::Arg::new(option.long).long(option.long).help(option.about);
                let argument = match option.short {
                    Some(short) => argument.short(short),
                    None => argument,
                };
                bench.arg(match option.argument {
                    Some(name) => argument.action(clap::ArgAction::Set).value_name(name),
                    None => argument.action(clap::ArgAction::SetTrue),
                })
            })
            .about(bench.get_about().cloned().unwrap_or_default())
            .disable_help_flag(true)
            .disable_version_flag(true)
            .arg(clap::Arg::new("DBNAME").help("The database, or a connection string"))
    })
}

/// Shows what clap has to say: help and version are answers, everything else is a mistake.
pub(crate) fn answer(asked: &clap::Error) -> Exit {
    // Whoever closed the pipe does not want to read it.
    let _ = asked.print();
    match asked.exit_code() {
        0 => Exit::Done,
        _ => Exit::CouldNotStart,
    }
}

/// Commands by what they are for. A test holds the list to what there is.
const HELP: &str = "\
{about-with-newline}
{usage-heading} {usage}

Measure
  bench    Benchmark a server as pgbench does: its options, its words, more figures
  run      Run a study: a shipped one, or a folder of your own
  compare  Compare two servers side by side: is B faster than A?
  check    Say what a study needs and whether it fits here; bare, what this machine can do
  studies  List the studies that pgrig brings along
  new      Write a small, commented study to start from

Read
  show     Print the verdicts of a record
  report   Write the report of a record anew
  diff     Compare two records
  history  Keep results over time: list them, draw them, export them

Operate
  guard    Keep commits going when synchronous standbys cannot confirm them
  shard    Add and remove nodes of a PL/Proxy cluster while clients use it
  clean    Remove what a crash of the machine has left

{options}

`pgrig COMMAND --help`, or `pgrig help COMMAND`, says more about each.
";

/// The help, and how pgrig ends.
fn help() -> String {
    let code = |(exit, meaning): (Exit, &str)| {
        format!("  {:<3}  {}\n", exit.number(), meaning.replace('`', ""))
    };
    format!("{HELP}\nExit codes\n{}", MEANINGS.map(code).concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_consistent() {
        Arguments::command().debug_assert();
    }

    /// Completions and manual pages know every option that `pgrig bench` takes, and what it does.
    #[test]
    fn bench_is_described_with_its_own_options() {
        let described = described();
        described.clone().debug_assert();
        let bench = described.find_subcommand("bench").expect("bench is a command");
        for (name, about) in [
            ("client", "number of concurrent database clients (default: 1)"),
            ("init-steps", "run these initialization steps, in this order"),
            ("find-rate", ""),
        ] {
            let option = bench.get_arguments().find(|one| one.get_long() == Some(name));
            let option = option.unwrap_or_else(|| panic!("no option --{name}"));
            let help = option.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(!help.is_empty(), "--{name} is not described");
            assert!(about.is_empty() || help == about, "--{name}: {help}");
        }
        let client = bench.get_arguments().find(|one| one.get_long() == Some("client"));
        let argument = client.and_then(|one| one.get_value_names()).unwrap_or_default();
        assert_eq!(argument, ["NUM"]);
    }

    #[test]
    fn the_help_lists_every_command_with_its_own_words() {
        for command in Arguments::command().get_subcommands().filter(|one| !one.is_hide_set()) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let line = format!("  {:<8} {about}\n", command.get_name());
            assert!(HELP.contains(&line), "no line for {}: {line}", command.get_name());
        }
    }
}
