//! Every option: pgbench's in pgbench's order (getopt lists ambiguous names in it), then ours.

use super::help::said_of;
use crate::getopt::{Known, Takes};
use crate::major::Major;

/// Every option of pgbench 18 and 19, and ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Id {
    Builtin,
    Client,
    Connect,
    Dbname,
    Define,
    File,
    Fillfactor,
    Host,
    Initialize,
    InitSteps,
    Jobs,
    Log,
    LatencyLimit,
    NoVacuum,
    Port,
    Progress,
    Protocol,
    Quiet,
    ReportPerCommand,
    Rate,
    Scale,
    SelectOnly,
    SkipSomeUpdates,
    Time,
    Transactions,
    Username,
    VacuumAll,
    UnloggedTables,
    Tablespace,
    IndexTablespace,
    SamplingRate,
    AggregateInterval,
    ProgressTimestamp,
    LogPrefix,
    ForeignKeys,
    RandomSeed,
    ShowScript,
    Partitions,
    PartitionMethod,
    FailuresDetailed,
    MaxTries,
    VerboseErrors,
    ExitOnAbort,
    Debug,
    ContinueOnError,
    Help,
    Version,
    Arrivals,
    As,
    Baseline,
    Serve,
    Connections,
    ConnectRate,
    Curve,
    FindClients,
    FindRate,
    FindSeconds,
    Generators,
    Hdr,
    Hosts,
    Html,
    Influx,
    Interval,
    Json,
    Metrics,
    NoDescribe,
    OnHostLoss,
    Push,
    Reconnect,
    Resume,
    Syntax,
    Warmup,
}

/// In which mode an option means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Initialisation,
    Benchmarking,
    Both,
}

impl Id {
    /// The mode in which pgbench allows it.
    pub(crate) fn mode(self) -> Mode {
        match self {
            Id::As
            | Id::Dbname
            | Id::Debug
            | Id::Help
            | Id::Host
            | Id::Initialize
            | Id::NoVacuum
            | Id::Port
            | Id::Scale
            | Id::ShowScript
            | Id::Username
            | Id::Version => Mode::Both,
            Id::Connections
            | Id::Fillfactor
            | Id::ForeignKeys
            | Id::IndexTablespace
            | Id::InitSteps
            | Id::PartitionMethod
            | Id::Partitions
            | Id::Quiet
            | Id::Resume
            | Id::Tablespace
            | Id::UnloggedTables => Mode::Initialisation,
            _ => Mode::Benchmarking,
        }
    }
}

/// The options of this pgbench.
pub(crate) fn pgbench(major: Major) -> Vec<Known<Id>> {
    let mut known = PGBENCH.to_vec();
    if major >= Major::V19 {
        known.push(long("continue-on-error", Takes::Nothing, Id::ContinueOnError));
    }
    known
}

/// pgbench 18's options.
const PGBENCH: &[Known<Id>] = &[
    both('b', "builtin", Takes::Value, Id::Builtin),
    both('c', "client", Takes::Value, Id::Client),
    both('C', "connect", Takes::Nothing, Id::Connect),
    both('d', "dbname", Takes::Value, Id::Dbname),
    both('D', "define", Takes::Value, Id::Define),
    both('f', "file", Takes::Value, Id::File),
    both('F', "fillfactor", Takes::Value, Id::Fillfactor),
    both('h', "host", Takes::Value, Id::Host),
    both('i', "initialize", Takes::Nothing, Id::Initialize),
    both('I', "init-steps", Takes::Value, Id::InitSteps),
    both('j', "jobs", Takes::Value, Id::Jobs),
    both('l', "log", Takes::Nothing, Id::Log),
    both('L', "latency-limit", Takes::Value, Id::LatencyLimit),
    both('n', "no-vacuum", Takes::Nothing, Id::NoVacuum),
    both('p', "port", Takes::Value, Id::Port),
    both('P', "progress", Takes::Value, Id::Progress),
    both('M', "protocol", Takes::Value, Id::Protocol),
    both('q', "quiet", Takes::Nothing, Id::Quiet),
    both('r', "report-per-command", Takes::Nothing, Id::ReportPerCommand),
    both('R', "rate", Takes::Value, Id::Rate),
    both('s', "scale", Takes::Value, Id::Scale),
    both('S', "select-only", Takes::Nothing, Id::SelectOnly),
    both('N', "skip-some-updates", Takes::Nothing, Id::SkipSomeUpdates),
    both('T', "time", Takes::Value, Id::Time),
    both('t', "transactions", Takes::Value, Id::Transactions),
    both('U', "username", Takes::Value, Id::Username),
    both('v', "vacuum-all", Takes::Nothing, Id::VacuumAll),
    long("unlogged-tables", Takes::Nothing, Id::UnloggedTables),
    long("tablespace", Takes::Value, Id::Tablespace),
    long("index-tablespace", Takes::Value, Id::IndexTablespace),
    long("sampling-rate", Takes::Value, Id::SamplingRate),
    long("aggregate-interval", Takes::Value, Id::AggregateInterval),
    long("progress-timestamp", Takes::Nothing, Id::ProgressTimestamp),
    long("log-prefix", Takes::Value, Id::LogPrefix),
    long("foreign-keys", Takes::Nothing, Id::ForeignKeys),
    long("random-seed", Takes::Value, Id::RandomSeed),
    long("show-script", Takes::Value, Id::ShowScript),
    long("partitions", Takes::Value, Id::Partitions),
    long("partition-method", Takes::Value, Id::PartitionMethod),
    long("failures-detailed", Takes::Nothing, Id::FailuresDetailed),
    long("max-tries", Takes::Value, Id::MaxTries),
    long("verbose-errors", Takes::Nothing, Id::VerboseErrors),
    long("exit-on-abort", Takes::Nothing, Id::ExitOnAbort),
    long("debug", Takes::Nothing, Id::Debug),
];

/// What pgbench does not know. pgbench takes `--help` and `--version` as the first argument
/// only; anywhere is kinder and takes nothing away.
pub(crate) const OURS: &[Known<Id>] = &[
    both('?', "help", Takes::Nothing, Id::Help),
    both('V', "version", Takes::Nothing, Id::Version),
    long("arrivals", Takes::Value, Id::Arrivals),
    long("as", Takes::Value, Id::As),
    long("baseline", Takes::Nothing, Id::Baseline),
    long("serve", Takes::Nothing, Id::Serve),
    long("connections", Takes::Value, Id::Connections),
    long("curve", Takes::Value, Id::Curve),
    long("find-clients", Takes::Value, Id::FindClients),
    long("find-rate", Takes::Value, Id::FindRate),
    long("find-seconds", Takes::Value, Id::FindSeconds),
    long("connect-rate", Takes::Value, Id::ConnectRate),
    long("generators", Takes::Value, Id::Generators),
    long("hdr", Takes::Value, Id::Hdr),
    long("hosts", Takes::Value, Id::Hosts),
    long("html", Takes::Value, Id::Html),
    long("influx", Takes::Value, Id::Influx),
    long("interval", Takes::Value, Id::Interval),
    long("json", Takes::Value, Id::Json),
    long("metrics", Takes::Value, Id::Metrics),
    long("no-describe", Takes::Nothing, Id::NoDescribe),
    long("on-host-loss", Takes::Value, Id::OnHostLoss),
    long("push", Takes::Nothing, Id::Push),
    long("reconnect", Takes::Nothing, Id::Reconnect),
    long("resume", Takes::Nothing, Id::Resume),
    long("syntax", Takes::Value, Id::Syntax),
    long("warmup", Takes::Value, Id::Warmup),
];

/// An option as shells complete it and manual pages list it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionName {
    /// The one-letter name.
    pub short: Option<char>,
    /// The long name.
    pub long: &'static str,
    /// What `--help` calls its argument, if it has one.
    pub argument: Option<&'static str>,
    /// The first line of what `--help` says of it; empty if it says nothing.
    pub about: &'static str,
}

/// Every option of `bench`, pgbench's first.
#[must_use]
pub fn option_names(major: Major) -> Vec<OptionName> {
    let known = pgbench(major).into_iter().chain(OURS.iter().copied());
    let named = known.filter_map(|option| {
        let long = option.long?;
        let (argument, about) = said_of(long);
        let argument = (option.takes == Takes::Value).then_some(argument);
        Some(OptionName { short: option.short, long, argument, about })
    });
    named.collect()
}

const fn both(short: char, long: &'static str, takes: Takes, id: Id) -> Known<Id> {
    Known { short: Some(short), long: Some(long), takes, id }
}

const fn long(long: &'static str, takes: Takes, id: Id) -> Known<Id> {
    Known { short: None, long: Some(long), takes, id }
}
