//! The arguments of `pgrig`.

use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use spec::StudyProfile;

use crate::exchange::ExchangeArguments;
use crate::exit::ProgramExit;

mod bisect;
mod compare;
mod help;
mod history;
mod isolation;
mod mcp;
mod options;
#[cfg(test)]
mod pages;
mod search;
pub(crate) mod set;
mod verify;
mod view;
mod workload;

pub(crate) use bisect::BisectArguments;
pub(crate) use compare::{CompareArguments, Sampled, StudyArguments};
pub(crate) use history::{HistoryArguments, HistoryCommand};
pub(crate) use isolation::{FormatWord, IsolationArguments, IsolationCommand, ModelWord};
pub(crate) use mcp::McpArguments;
pub(crate) use search::SearchArguments;
pub(crate) use verify::VerifyArguments;
pub(crate) use view::ViewArguments;
pub(crate) use workload::{MakeArguments, WorkloadArguments, WorkloadCommand};

/// A test rig for PostgreSQL: builds the servers that a question needs, loads them, breaks them, and
/// answers with intervals and verdicts.
#[derive(Debug, Parser)]
#[command(name = "pgrig", version, help_template = help::help(), subcommand_required = true)]
#[command(max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Benchmark a server with the options and the output of pgbench, and more figures
    #[command(disable_help_flag = true, override_help = bench_help())]
    Bench(BenchArguments),
    /// Run a study, one of pgrig's or your own
    Run(RunArguments),
    /// Search the schedule of faults that breaks a promise of a study, and shrink it
    Search(SearchArguments),
    /// Show what a study needs and whether it fits; without a study, what this machine can do
    Check(CheckArguments),
    /// List the studies that come with pgrig
    Studies(StudiesArguments),
    /// List the metrics that a claim can ask for: units, definitions, sources
    Metrics(WordArguments),
    /// List the kinds of node, the actions and the checks that a study can ask for
    Words(WordArguments),
    /// Create a small, commented study to start from
    New(NewArguments),
    /// Print the verdicts of a record
    Show(ShowArguments),
    /// Show all records below a folder in a browser, alone, side by side and over time
    View(ViewArguments),
    /// Write the report of a record again
    Report(RecordArguments),
    /// Compare two servers that are loaded in turn: is B faster than A?
    Compare(Box<CompareArguments>),
    /// Find the commit of a git repository that made it slower
    Bisect(Box<BisectArguments>),
    /// Make a load from what production knows: pg_stat_statements, server logs
    Workload(WorkloadArguments),
    /// Compare two records
    Diff(DiffArguments),
    /// Keep results over time: list, draw and export them
    History(HistoryArguments),
    /// Judge what clients read: anomalies of isolation in the histories of a trial
    Isolation(IsolationArguments),
    /// Compare two databases of yours, read-only: rows, sequences, owners, grants, indexes
    Verify(VerifyArguments),
    /// Keep commits going while synchronous standbys cannot confirm them
    Guard(pgrig_guard::GuardArguments),
    /// Add and remove nodes of a PL/Proxy cluster while clients use it
    Shard(pgrig_shard::ShardArguments),
    /// Be the tools of an assistant: answer MCP requests on standard input
    Mcp(McpArguments),
    /// Print an inventory of hosts from what kubectl or scontrol lists
    Inventory(InventoryArguments),
    /// Remove what a crash of the machine left
    Clean(CleanArguments),
    /// Print the completions of a shell
    Completions(CompletionsArguments),
    /// Write the manual pages into a directory
    Man(ManArguments),
    /// Become a generator process: reads its orders from stdin
    #[command(hide = true)]
    Generator,
    /// Become a lab on a host: reads what to do with its servers from stdin
    #[command(hide = true)]
    Lab,
    /// Become a sampler on a host: reads what to watch from stdin
    #[command(hide = true)]
    Probe,
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

/// `pgrig inventory`
#[derive(Debug, Args)]
#[command(after_help = INVENTORY_EXAMPLES)]
pub(crate) struct InventoryArguments {
    /// Launcher of listed names, with {} in the place of a name; pods are reached by kubectl exec
    #[arg(long, value_name = "COMMAND", default_value = host::SLURM)]
    pub(crate) launch: String,
}

const INVENTORY_EXAMPLES: &str = "\
Standard input is what `kubectl get pods -o json` prints, or names of hosts:

  kubectl get pods -l app=load -o json | pgrig inventory > lab.toml
  scontrol show hostnames | pgrig inventory > lab.toml
  echo db1 db2 | pgrig inventory --launch 'ssh -o BatchMode=yes {}' > lab.toml

Add a [place] table for `pgrig run`.";

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
    /// Image, mount point, socket, sector, honesty, and the changes of a state
    #[arg(required = true)]
    pub(crate) words: Vec<std::ffi::OsString>,
}

/// pgbench's own arguments, which are passed through.
#[derive(Debug, Args)]
pub(crate) struct BenchArguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<String>,
}

/// `pgrig run`
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// A shipped study's name (see `pgrig studies`), or a folder with a study.toml
    #[arg(value_name = "STUDY", required_unless_present = "resume")]
    pub(crate) study: Option<String>,
    /// The size of the study: smoke takes up to three minutes and proves that it works, quick takes 4 to
    /// 45 minutes on two cores, full is the published size [default: quick]
    #[arg(long, value_enum, value_name = "PROFILE")]
    pub(crate) profile: Option<ProfileName>,
    /// Directory for the record, new or empty [default: runs/DATE-STUDY-N]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Value to use instead of the study's: its path in study.toml and the new value, as in
    /// `workloads.login.clients=8` or `data.rows=1000000`, or a file FILE.toml with a line for each;
    /// can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = set::set)]
    pub(crate) set: Vec<set::Set>,
    /// Keep the data that this run builds, and use those that an earlier run has kept
    #[arg(long)]
    pub(crate) keep_data: bool,
    /// Number of rounds, instead of the study's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) rounds: Option<u32>,
    /// Seed of the random numbers [default: the study's; if it has none, a new one for every run]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Run only trials whose name (`variant/scenario axis=value`) contains PATTERN; `*` matches any
    /// text, `|` separates several patterns
    #[arg(long, value_name = "PATTERN")]
    pub(crate) only: Option<String>,
    /// Run only the trial with this number in a record of the same plan, with the same seeds
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    pub(crate) trial: Option<usize>,
    /// Recover a failed state of an exploration again, by its number in the newest record below runs;
    /// with --trial where several trials have such states
    #[arg(long, value_name = "N", conflicts_with_all = ["resume", "target", "hosts", "node", "serve", "gate"])]
    pub(crate) state: Option<usize>,
    /// With --state: run the SQL of the record's study and start a server from the files that the record has
    /// kept, as the servers' user
    #[arg(long, requires = "state")]
    pub(crate) trust_record: bool,
    /// With --state: write the disk in that state to this file, as an image of its file system
    #[arg(long, value_name = "FILE", requires = "state")]
    pub(crate) image: Option<PathBuf>,
    /// Continue an interrupted record with its own profile, seed, rounds and pattern
    #[arg(long, value_name = "DIR", conflicts_with_all = ["study", "profile", "out", "rounds", "seed", "only", "set"])]
    pub(crate) resume: Option<PathBuf>,
    /// Show the run in a browser while it lasts: a page on 127.0.0.1 whose address is printed
    #[arg(long)]
    pub(crate) serve: bool,
    /// Publish the latest measurements as OpenMetrics: an address to serve them at, or a file
    #[arg(long, value_name = "IP:PORT[,NAME…]")]
    pub(crate) metrics: Option<openmetrics::MetricsDestination>,
    /// Write the verdicts into this file, as `pgrig show --json` prints them
    #[arg(long, value_name = "FILE", conflicts_with_all = ["state", "dry_run"])]
    pub(crate) json: Option<PathBuf>,
    /// Exit with 4 if an invariant does not hold, and with 5 if its verdict is "cannot tell"
    #[arg(long)]
    pub(crate) gate: bool,
    /// With --gate: treat findings like invariants
    #[arg(long, requires = "gate")]
    pub(crate) strict: bool,
    /// Directory of the PostgreSQL programs to use
    #[arg(long, value_name = "DIR")]
    pub(crate) pg_bin: Option<PathBuf>,
    /// Run on this server instead of building one. pgrig creates a schema "pgrig", removes it at the
    /// end, and changes no setting
    #[arg(long, value_name = "URI", conflicts_with = "pg_bin")]
    pub(crate) target: Option<String>,
    /// With --target: run the study's SQL with the rights of your login, so that it can change all that you can.
    /// Without it, that SQL runs as a role that has the run's schema and nothing else
    #[arg(long, requires = "target")]
    pub(crate) may_change_database: bool,
    /// With --target: print every statement that would be sent, and change nothing
    #[arg(long, requires = "target")]
    pub(crate) dry_run: bool,
    /// Use an empty database on your own server as the study's shard NAME (shard1=host=db1 …). pgrig
    /// creates schemas, functions and rows there, removes them at the end, and changes no setting
    #[arg(long, value_name = "NAME=CONNINFO", conflicts_with = "target", value_parser = named)]
    pub(crate) node: Vec<(String, String)>,
    /// Build the servers and generate the load on the hosts of this inventory
    #[arg(long, value_name = "FILE", conflicts_with_all = ["target", "node"])]
    pub(crate) hosts: Option<PathBuf>,
    /// With --hosts: copy this program to the hosts first
    #[arg(long, requires = "hosts")]
    pub(crate) push: bool,
    /// With --hosts: what to do if a host that only generates load is lost. If a host with servers is
    /// lost, the run stops
    #[arg(long, value_enum, value_name = "WHAT", default_value = "stop", requires = "hosts")]
    pub(crate) on_host_loss: HostLossName,
}

/// `--on-host-loss`
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum HostLossName {
    /// Stop after the trial
    Stop,
    /// Go on without it
    GoOn,
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
    /// Plan only trials whose name contains PATTERN, as `pgrig run --only` does
    #[arg(long, value_name = "PATTERN", requires = "study")]
    pub(crate) only: Option<String>,
    /// Value to use instead of the study's, as with `pgrig run --set`; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = set::set, requires = "study")]
    pub(crate) set: Vec<set::Set>,
    /// Directory of the PostgreSQL programs to use
    #[arg(long, value_name = "DIR")]
    pub(crate) pg_bin: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Connect to every host of this inventory, and show what each has and lacks; with a study,
    /// whether it fits the hosts
    #[arg(long, value_name = "FILE")]
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
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `pgrig metrics`, `pgrig words`
#[derive(Debug, Args)]
pub(crate) struct WordArguments {
    /// A word of the name or the definition
    #[arg(value_name = "WORD")]
    pub(crate) word: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `pgrig new`
#[derive(Debug, Args)]
pub(crate) struct NewArguments {
    /// Directory of the study; it must not exist, or be empty
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Start from a copy of this study: a shipped study's name, or a folder with a study.toml
    #[arg(long, value_name = "STUDY")]
    pub(crate) from: Option<String>,
    /// Start from an exploration: it runs your SQL, then recovers and checks thousands of states that a
    /// power cut could have left
    #[arg(long, conflicts_with = "from")]
    pub(crate) explore: bool,
}

/// `pgrig show`
#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// Directory of the record
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print every value that a source printed beside what the record, or the newest record of a folder of them,
    /// says of it, as Markdown
    #[arg(long, conflicts_with = "json")]
    pub(crate) printed: bool,
    #[command(flatten)]
    pub(crate) exchange: ExchangeArguments,
}

/// `pgrig report`
#[derive(Debug, Args)]
pub(crate) struct RecordArguments {
    /// Directory of the record
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}

/// `pgrig diff`
#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    /// The earlier record
    #[arg(value_name = "DIR1")]
    pub(crate) before: PathBuf,
    /// The later record
    #[arg(value_name = "DIR2")]
    pub(crate) after: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn named(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, conninfo)) if !name.is_empty() && !conninfo.is_empty() => {
            Ok((name.to_owned(), conninfo.to_owned()))
        }
        _ => Err("write NAME=CONNINFO, as in \"shard1=host=db1 dbname=empty\"".to_owned()),
    }
}

/// `pgrig clean`
#[derive(Debug, Args)]
pub(crate) struct CleanArguments {
    /// Directory to look in [default: the system's directory for temporary files]
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Remove the data that --keep-data has kept, and nothing else
    #[arg(long, conflicts_with = "directory")]
    pub(crate) data: bool,
    /// Remove the schema and the roles that killed runs have left in this database of yours, and nothing else
    #[arg(long, value_name = "CONNINFO", conflicts_with_all = ["directory", "data"])]
    pub(crate) target: Option<String>,
}

/// `pgrig completions`
#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell that reads them
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

/// `pgrig man`
#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Directory for the pages; it is created if it does not exist
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}

/// How big a study runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProfileName {
    /// Up to three minutes: proves that every part works
    Smoke,
    /// 4 to 45 minutes on two cores
    Quick,
    /// What a source printed, met once on two cores, in pieces of hours (go on with --resume)
    Published,
    /// The published size
    Full,
}

impl From<ProfileName> for StudyProfile {
    fn from(name: ProfileName) -> StudyProfile {
        match name {
            ProfileName::Smoke => StudyProfile::Smoke,
            ProfileName::Quick => StudyProfile::Quick,
            ProfileName::Published => StudyProfile::Published,
            ProfileName::Full => StudyProfile::Full,
        }
    }
}

/// Its own help, which `pgrig help bench` prints as well.
fn bench_help() -> String {
    pgbench::options::help("pgrig bench", pgbench::Major::default())
}

/// Everything that can be typed, the options of `bench` included, which clap does not read.
pub(crate) fn described() -> clap::Command {
    Arguments::command().mut_subcommand("bench", |bench| {
        options::of_pgbench(clap::Command::new("bench"))
            .about(bench.get_about().cloned().expect("each command says what it does"))
            .disable_help_flag(true)
            .disable_version_flag(true)
    })
}

/// The same with pgbench's options of a comparison, those left out that a comparison does not follow.
pub(crate) fn of_tools() -> clap::Command {
    described().mut_subcommand("compare", options::of_compared)
}

/// Reads a command line. A comparison's own options and pgbench's may stand in any order.
pub(crate) fn parse(words: &[String]) -> Result<Arguments, clap::Error> {
    let mut command = Arguments::command()
        .mut_subcommand("compare", options::of_pgbench)
        .mut_subcommand("bisect", options::of_pgbench);
    let matches = command.try_get_matches_from_mut(words)?;
    let mut arguments =
        Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
    let own = matches.subcommand().map(|(_, own)| options::words(own));
    match (&mut arguments.command, own) {
        (Command::Compare(compare), Some(words)) => compare.workload = words,
        (Command::Bisect(bisect), Some(words)) => bisect.workload = words,
        _ => {}
    }
    Ok(arguments)
}

/// Shows what clap has to say: help and version are answers, everything else is a mistake.
pub(crate) fn answer(asked: &clap::Error, words: &[String]) -> ProgramExit {
    // A monitor must not take a mistake for an exposure.
    let is_status = words.get(1..3).is_some_and(|words| words == ["guard", "status"]);
    let mistake = if is_status { ProgramExit::Unreachable } else { ProgramExit::CouldNotStart };
    console::show_answer(asked, words, mistake)
}

#[cfg(test)]
mod tests {
    use super::help::HELP;
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
            ("curve", "list every window of a search as CSV"),
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
    fn every_option_and_operand_has_a_help_text() {
        fn check(command: &clap::Command) {
            for one in command.get_arguments().filter(|one| !one.is_hide_set()) {
                assert!(one.get_help().is_some(), "{}: {}", command.get_name(), one.get_id());
            }
            command.get_subcommands().filter(|one| !one.is_hide_set()).for_each(check);
        }
        check(&described());
    }

    #[test]
    fn the_help_lists_every_command_with_its_own_words() {
        for command in Arguments::command().get_subcommands().filter(|one| !one.is_hide_set()) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let line = format!("  {:<11} {about}\n", command.get_name());
            assert!(HELP.contains(&line), "no line for {}: {line}", command.get_name());
        }
    }
}
