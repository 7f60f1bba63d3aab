//! Options of the command line.
//!
//! [`Request::read`] takes a command line to one of pgbench's two modes, or to a [`Complaint`] in
//! pgbench's words. Reading order: a `row` is an option; `theirs` and `beyond` list them; `read` takes them
//! in the order in which they stand, `values` reads their arguments, `given` is what they ask for, and
//! `conflicts` says which of pgbench's do not go together.

mod beyond;
mod conflicts;
mod given;
mod help;
mod read;
mod row;
mod theirs;
mod values;

use std::path::Path;

use load::{OnError, OnHostLoss, OnLoss, Pace, Protocol, ScriptRows, ScriptSyntax, WarmUp};
use script::{BuiltinScript, RandomSeed};

use crate::complaint::Complaint;
use crate::major::{Major, SpokenBy};
use crate::search::goal::Goal;

pub use help::{OptionName, help, option_names};

/// The request that a command line makes.
#[derive(Clone, Debug)]
pub enum Request {
    /// `--help`
    Help(Major),
    /// `--version`
    Version(Major),
    /// `-b list`
    ListScripts,
    /// `--show-script`
    ShowScript(&'static BuiltinScript),
    /// `--show-script=tpcc-like`
    ShowTpcc,
    /// `-i`
    Initialise(InitialiseOptions),
    /// Everything else.
    Run(Box<RunOptions>),
}

/// The origin of a command: its name, its arguments, its environment.
pub struct Invocation<'a> {
    /// The program as it was called, for getopt's complaints.
    pub program: &'a str,
    /// The words that call it, for hints: `pgbench` or `pgrig bench`.
    pub command: &'a str,
    /// The words after the name.
    pub arguments: &'a [String],
    /// The pgbench whose words are spoken unless `--as` names another.
    pub speaks: Major,
    /// True if the server's version is spoken unless `--as` names another.
    pub follows_server: bool,
    /// The value of an environment variable.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// The program whose one argument `generator` makes a generator process of it: this one.
    pub generator: &'a Path,
    /// The schema that `-i` makes pgbench's tables in, each statement naming it; none for what the
    /// search path says, as pgbench has it.
    pub schema: Option<&'a str>,
    /// Asks the user for a password with this prompt; none where there is no terminal.
    pub ask_password: &'a dyn Fn(&str) -> Option<String>,
}

/// The server, as far as the command line says it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerOptions {
    /// `-h`
    pub host: Option<String>,
    /// `-p`
    pub port: Option<String>,
    /// `-U`
    pub user: Option<String>,
    /// `-d` or the operand: a database name or a connection string.
    pub dbname: Option<String>,
}

/// Initialisation mode.
#[derive(Clone, Debug)]
pub struct InitialiseOptions {
    /// The server.
    pub server: ServerOptions,
    /// The version of pgbench whose language is spoken.
    pub major: Major,
    /// True if the server's version decides that.
    pub follows_server: bool,
    /// Show debug messages.
    pub debug: bool,
    /// The steps in order, one letter each; a space is none.
    pub steps: String,
    /// Accounts are 100,000 times this.
    pub scale: u32,
    /// Percent of a page that is filled.
    pub fillfactor: u32,
    /// The frequency of progress reports.
    pub progress: LoadProgress,
    /// The tables.
    pub tables: TableSet,
    /// The partitions of accounts.
    pub partitions: Option<Partitions>,
    /// The tablespace of tables.
    pub tablespace: Option<String>,
    /// The tablespace of indexes.
    pub index_tablespace: Option<String>,
    /// The persistence of tables in a crash.
    pub persistence: Persistence,
    /// `--connections`: how many load the accounts.
    pub connections: u32,
    /// `--resume`: keep what has been loaded, and do the rest.
    pub resume: bool,
}

/// Tables that an initialisation makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableSet {
    /// pgbench's.
    Pgbench,
    /// Those of `-b tpcc-like`.
    Tpcc,
}

/// The frequency of reports on the generation of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadProgress {
    /// Every 100,000 rows.
    Rows,
    /// `-q`: every 5 seconds.
    Seconds,
}

/// The persistence of tables: logged or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// As usual.
    Logged,
    /// `--unlogged-tables`
    Unlogged,
}

/// The partitions of pgbench_accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partitions {
    /// Number of partitions.
    pub count: u32,
    /// By what.
    pub method: PartitionMethod,
}

/// The way in which rows are assigned to partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionMethod {
    /// Equal ranges of aid.
    Range,
    /// A hash of aid.
    Hash,
}

impl PartitionMethod {
    /// As in SQL and in pgbench's output.
    pub fn name(self) -> &'static str {
        match self {
            PartitionMethod::Range => "range",
            PartitionMethod::Hash => "hash",
        }
    }
}

/// Benchmarking mode.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The server.
    pub server: ServerOptions,
    /// Show debug messages.
    pub debug: bool,
    /// Send and receive by io_uring where the kernel permits it.
    pub io_uring: bool,
    /// The version of pgbench whose language is spoken.
    pub major: Major,
    /// What decides that.
    pub spoken_by: SpokenBy,
    /// The scripts to run, at least one.
    pub scripts: Vec<Script>,
    /// The rows that they draw from.
    pub rows: Vec<ScriptRows>,
    /// `-c`
    pub clients: u32,
    /// `-j`, at most as many as clients.
    pub lanes: u32,
    /// `-M`
    pub protocol: Protocol,
    /// `-t` or `-T`
    pub length: Length,
    /// `-C`
    pub connect_each: bool,
    /// `-D`, in order.
    pub variables: Vec<(String, String)>,
    /// `-R`
    pub pace: Pace,
    /// `-L`, microseconds.
    pub latency_limit_us: Option<u64>,
    /// `-P`, seconds.
    pub progress_s: Option<u32>,
    /// `--progress-timestamp`
    pub progress_timestamp: bool,
    /// `-r`
    pub per_command: bool,
    /// `-s`; the number of branches wins when a built-in script runs.
    pub scale: Option<u32>,
    /// The vacuum before the run.
    pub vacuum: Vacuum,
    /// `-l`
    pub log: Option<LogOptions>,
    /// `--failures-detailed`
    pub failures_detailed: bool,
    /// `--max-tries` and `--continue-on-error`
    pub on_error: OnError,
    /// `--verbose-errors`
    pub verbose_errors: bool,
    /// `--exit-on-abort`
    pub exit_on_abort: bool,
    /// `--random-seed`; none for one from the clock.
    pub seed: Option<RandomSeed>,
    /// The options that pgbench does not have.
    pub ours: OurOptions,
    /// The first option that a comparison does not follow, if one was given.
    pub not_compared: Option<NotCompared>,
}

/// An option that a comparison does not follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCompared {
    /// Its name.
    pub option: String,
    /// The reason.
    pub why: &'static str,
}

/// One script with its weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// File name, or the description of a built-in.
    pub name: String,
    /// The script.
    pub text: String,
    /// `@W`
    pub weight: u32,
    /// Number of its commands.
    pub commands: usize,
    /// True if it looks like a script of pgbench 9.5, whose SQL ends at the newline.
    pub reads_as_nine_x: bool,
    /// Its origin.
    pub origin: Origin,
}

/// The origin of a script. pgbench's own need pgbench's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `-b`, `-N`, `-S`
    Builtin,
    /// `-b tpcc-like`: needs the tables of an order-entry company.
    Tpcc,
    /// `-f`
    File,
}

/// The length of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// So many transactions for each client.
    Transactions(u32),
    /// So many seconds.
    Seconds(u32),
}

/// The vacuum before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vacuum {
    /// `-n`: nothing.
    Nothing,
    /// Branches and tellers; history is emptied.
    Small,
    /// `-v`: accounts too.
    All,
}

/// `-l` and what belongs to it.
#[derive(Clone, Debug, PartialEq)]
pub struct LogOptions {
    /// `--log-prefix`
    pub prefix: String,
    /// `--sampling-rate`, 0 to 1.
    pub sampling_rate: f64,
    /// `--aggregate-interval`
    pub aggregate_s: Option<u32>,
    /// `--aggregate-last`
    pub last_stretch: bool,
}

/// Options that pgbench does not have.
#[derive(Clone, Debug)]
pub struct OurOptions {
    /// `--warmup`; none when not asked for.
    pub warm_up: Option<WarmUp>,
    /// `--connect-rate`, connections begun a second.
    pub connect_rate: Option<f64>,
    /// `--generators`
    pub generators: u32,
    /// `--interval`, milliseconds.
    pub interval_ms: u64,
    /// `--no-describe` turns it off.
    pub describe: bool,
    /// `--cache-keys`
    pub caches_keys: bool,
    /// `--syntax`
    pub syntax: ScriptSyntax,
    /// `--hdr`
    pub hdr: Option<String>,
    /// `--json`
    pub json: Option<String>,
    /// `--html`
    pub html: Option<String>,
    /// `--find-rate` and `--find-clients`
    pub find: Option<FindOptions>,
    /// `--own-server`: the rig builds the server, with tables of the scale of `-s`.
    pub own_server: bool,
    /// `--capacity`
    pub capacity: Option<CapacityOptions>,
    /// `--baseline`
    pub baseline: bool,
    /// `--check`
    pub check: bool,
    /// `--serve`
    pub serve: bool,
    /// `--tail`
    pub tail: bool,
    /// `--reconnect`
    pub on_loss: OnLoss,
    /// `--metrics`
    pub metrics: Option<String>,
    /// `--influx`
    pub influx: Option<String>,
    /// `--hosts`
    pub hosts: Option<HostOptions>,
}

/// `--hosts` and what belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostOptions {
    /// The inventory.
    pub file: String,
    /// `--on-host-loss`
    pub on_loss: OnHostLoss,
    /// `--push`
    pub push: bool,
}

/// A search for the highest load at which a goal holds.
#[derive(Clone, Debug, PartialEq)]
pub struct FindOptions {
    /// The condition that must hold.
    pub goal: Goal,
    /// The range that is searched.
    pub range: Range,
    /// Length of a window that does not confirm, in seconds.
    pub seconds: u32,
    /// `--curve`: where every window is listed.
    pub curve: Option<String>,
}

/// A sweep over the number of clients, and over the CPUs of the server.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacityOptions {
    /// The condition that must hold.
    pub goal: Goal,
    /// CPUs that the server is given in turn.
    pub server_cpus: Option<ServerCpus>,
    /// Sizes of the pool of a PgBouncer before the server.
    pub pool_sizes: Option<PoolSizes>,
    /// `--curve`: where every window is listed.
    pub curve: Option<String>,
}

/// Sizes of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolSizes {
    /// Each twice the one before, up to the number of clients.
    Auto,
    /// These, two or more, ascending.
    Listed(Vec<u32>),
}

/// CPUs that a server is given in turn.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerCpus {
    /// Numbers of CPUs, five or more; the first is what the server has before and after.
    pub counts: Vec<f64>,
    /// The way in which the server gets them.
    pub by: CpusBy,
}

/// The way in which a server gets a number of CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CpusBy {
    /// A command for the shell, with `{cpus}` or `{percent}`.
    Command(String),
    /// A limit on the CPU time of a server of the rig's.
    OwnServer,
}

/// The quantity that a search varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// The rate of an open loop, up to what the clients can do.
    Rate,
    /// The number of clients, up to `-c`.
    Clients,
}

impl Default for OurOptions {
    fn default() -> OurOptions {
        OurOptions {
            warm_up: None,
            connect_rate: None,
            generators: 1,
            interval_ms: 1000,
            describe: true,
            caches_keys: false,
            syntax: ScriptSyntax::Current,
            hdr: None,
            json: None,
            html: None,
            find: None,
            own_server: false,
            capacity: None,
            baseline: false,
            check: false,
            serve: false,
            tail: false,
            on_loss: OnLoss::Abort,
            metrics: None,
            influx: None,
            hosts: None,
        }
    }
}

impl<'a> Invocation<'a> {
    /// A command line of the rig's own: without an environment or a terminal. `schema` is as in the
    /// field.
    pub fn of(arguments: &'a [String], schema: Option<&'a str>) -> Invocation<'a> {
        Invocation {
            program: "pgbench",
            command: "pgbench",
            arguments,
            speaks: Major::default(),
            follows_server: false,
            environment: &|_| None,
            generator: Path::new(""),
            schema,
            ask_password: &|_| None,
        }
    }
}

impl Request {
    /// Reads a command line.
    pub fn read(invocation: &Invocation<'_>) -> Result<Request, Complaint> {
        match read::read(invocation)? {
            read::Asked::AtOnce(request) => Ok(request),
            read::Asked::Later(given) => conflicts::resolve(*given),
        }
    }
}
