//! The options in the order in which they stand, each checked by itself.

use load::{OnHostLoss, Protocol, Syntax, WarmUp};
use script::{Builtin, RandomSeed, Weighted};

use super::table::{Id, Mode, OURS, pgbench};
use super::values::{
    above_zero, arrivals, builtin, definition, goal, latency_limit_us, max_tries, on_host_loss,
    partition_method, positive, protocol, rate, sampling_rate, script_text, seed_option, steps,
    syntax, warm_up, weighted,
};
use super::{
    Invocation, LoadProgress, Origin, PartitionMethod, Persistence, Range, Request, Script,
    ServerOptions,
};
use crate::complaint::Complaint;
use crate::getopt::{self, Found};
use crate::major::Major;
use crate::number::bounded_int;
use crate::search::goal::Goal;

/// pgbench's limit.
const SCRIPTS_MAX: usize = 128;

/// What the options ask for.
pub(super) enum Asked {
    /// Something that pgbench does as soon as it meets the option.
    AtOnce(Request),
    /// A mode, once conflicts are settled.
    Later(Box<Given>),
}

/// Every option as it was given, or its default.
#[derive(Default)]
pub(super) struct Given {
    pub(super) server: ServerOptions,
    pub(super) debug: bool,
    pub(super) major: Major,
    pub(super) initialise: bool,
    /// Some option was given that means something in that mode only.
    pub(super) benchmarking_option: bool,
    pub(super) initialisation_option: bool,
    pub(super) steps: Option<String>,
    pub(super) scale: Option<u32>,
    pub(super) fillfactor: Option<u32>,
    pub(super) progress: Option<LoadProgress>,
    pub(super) partitions: u32,
    pub(super) partition_method: Option<PartitionMethod>,
    pub(super) tablespace: Option<String>,
    pub(super) index_tablespace: Option<String>,
    pub(super) persistence: Option<Persistence>,
    pub(super) foreign_keys: bool,
    pub(super) no_vacuum: bool,
    pub(super) vacuum_all: bool,
    pub(super) scripts: Vec<Script>,
    pub(super) clients: Option<u32>,
    pub(super) lanes: Option<u32>,
    pub(super) protocol: Option<Protocol>,
    pub(super) transactions: Option<u32>,
    pub(super) seconds: Option<u32>,
    pub(super) connect_each: bool,
    pub(super) variables: Vec<(String, String)>,
    pub(super) rate: Option<f64>,
    pub(super) latency_limit_us: Option<u64>,
    pub(super) progress_s: Option<u32>,
    pub(super) progress_timestamp: bool,
    pub(super) per_command: bool,
    pub(super) log: bool,
    pub(super) log_prefix: Option<String>,
    pub(super) sampling_rate: Option<f64>,
    pub(super) aggregate_s: Option<u32>,
    pub(super) failures_detailed: bool,
    pub(super) max_tries: Option<u32>,
    pub(super) continue_on_error: bool,
    pub(super) verbose_errors: bool,
    pub(super) exit_on_abort: bool,
    pub(super) seed: Option<RandomSeed>,
    pub(super) arrivals: Option<Arrivals>,
    pub(super) warm_up: Option<WarmUp>,
    pub(super) connect_rate: Option<f64>,
    pub(super) generators: Option<u32>,
    pub(super) interval_ms: Option<u64>,
    pub(super) no_describe: bool,
    pub(super) syntax: Option<Syntax>,
    pub(super) hdr: Option<String>,
    pub(super) json: Option<String>,
    pub(super) html: Option<String>,
    pub(super) find: Option<(Range, Goal)>,
    pub(super) find_seconds: Option<u32>,
    pub(super) curve: Option<String>,
    pub(super) connections: Option<u32>,
    pub(super) resume: bool,
    pub(super) baseline: bool,
    pub(super) serve: bool,
    pub(super) reconnect: bool,
    pub(super) metrics: Option<String>,
    pub(super) influx: Option<String>,
    pub(super) hosts: Option<String>,
    pub(super) on_host_loss: Option<OnHostLoss>,
    pub(super) push: bool,
}

/// `--arrivals`
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrivals {
    Poisson,
    Constant,
}

/// Reads a command line as far as each option can be judged alone.
pub(super) fn read(invocation: &Invocation<'_>) -> Result<Asked, Complaint> {
    let major = major(invocation)?;
    let mut given = Given { major, ..Given::default() };
    if let Some(text) = (invocation.environment)("PGBENCH_RANDOM_SEED") {
        given.seed = Some(seed_option(&text, "PGBENCH_RANDOM_SEED environment variable")?);
    }
    let try_help = format!("Try \"{} --help\" for more information.", invocation.command);
    let mut at_once = None;
    let mut mistake = None;
    let tables: [&[_]; 2] = [&pgbench(major), OURS];
    let split = getopt::split(invocation.program, invocation.arguments, &tables, |found| {
        if at_once.is_some() || mistake.is_some() {
            return Ok(());
        }
        match found {
            Found::Option(id, value) => match given.take(id, &value) {
                Ok(request) => at_once = request,
                Err(complaint) => mistake = Some(complaint),
            },
            Found::Operand(operand) if given.server.dbname.is_none() => {
                given.server.dbname = Some(operand);
            }
            Found::Operand(operand) => {
                let text = format!("too many command-line arguments (first is \"{operand}\")");
                mistake = Some(Complaint::error(text).with_hint(&try_help));
            }
        }
        Ok(())
    });
    if let Some(mistake) = mistake {
        return Err(mistake);
    }
    if let Some(request) = at_once {
        return Ok(Asked::AtOnce(request));
    }
    split.map_err(|complaint| complaint.with_hint(&try_help))?;
    Ok(Asked::Later(Box::new(given)))
}

/// Which pgbench is spoken, wherever it stands: the names of the other options depend on it.
fn major(invocation: &Invocation<'_>) -> Result<Major, Complaint> {
    let mut asked = None;
    let tables: [&[_]; 2] = [&pgbench(Major::default()), OURS];
    // What is wrong with the other options is told when they are read.
    let _ = getopt::split(invocation.program, invocation.arguments, &tables, |found| {
        if let Found::Option(Id::As, value) = found {
            asked = Some(value);
        }
        Ok(())
    });
    let Some(asked) = asked else { return Ok(Major::default()) };
    Major::parse(&asked).ok_or_else(|| {
        let text = format!("invalid version of pgbench, expecting 18 or 19, got: \"{asked}\"");
        Complaint::error(text)
    })
}

impl Given {
    /// Takes one option. What pgbench does at once comes back.
    fn take(&mut self, id: Id, value: &str) -> Result<Option<Request>, Complaint> {
        match id.mode() {
            Mode::Benchmarking => self.benchmarking_option = true,
            Mode::Initialisation => self.initialisation_option = true,
            Mode::Both => {}
        }
        match id {
            Id::Help => return Ok(Some(Request::Help(self.major))),
            Id::Version => return Ok(Some(Request::Version(self.major))),
            // Has been read before the others.
            Id::As => {}
            Id::ShowScript => return builtin(value).map(Request::ShowScript).map(Some),
            Id::Builtin if value == "list" => return Ok(Some(Request::ListScripts)),
            Id::Debug => self.debug = true,
            Id::Host => self.server.host = Some(value.to_owned()),
            Id::Port => self.server.port = Some(value.to_owned()),
            Id::Username => self.server.user = Some(value.to_owned()),
            Id::Dbname => self.server.dbname = Some(value.to_owned()),
            Id::Initialize => self.initialise = true,
            Id::NoVacuum => self.no_vacuum = true,
            Id::Scale => self.scale = Some(positive(value, "-s/--scale")?),
            _ if id.mode() == Mode::Initialisation => self.take_initialisation(id, value)?,
            _ => self.take_benchmarking(id, value)?,
        }
        Ok(None)
    }

    fn take_initialisation(&mut self, id: Id, value: &str) -> Result<(), Complaint> {
        match id {
            Id::InitSteps => self.steps = Some(steps(value)?),
            Id::Fillfactor => {
                self.fillfactor = Some(bounded_int(value, "-F/--fillfactor", 10, 100)? as u32);
            }
            Id::ForeignKeys => self.foreign_keys = true,
            Id::Tablespace => self.tablespace = Some(value.to_owned()),
            Id::IndexTablespace => self.index_tablespace = Some(value.to_owned()),
            Id::Partitions => {
                self.partitions = bounded_int(value, "--partitions", 0, i32::MAX)? as u32;
            }
            Id::PartitionMethod => self.partition_method = Some(partition_method(value)?),
            Id::Connections => self.connections = Some(positive(value, "--connections")?),
            Id::Resume => self.resume = true,
            Id::Quiet => self.progress = Some(LoadProgress::Seconds),
            _ => self.persistence = Some(Persistence::Unlogged),
        }
        Ok(())
    }

    fn take_benchmarking(&mut self, id: Id, value: &str) -> Result<(), Complaint> {
        match id {
            Id::Builtin => {
                let Weighted { name, weight } = weighted(value)?;
                self.add_builtin(builtin(&name)?, weight)?;
            }
            Id::SkipSomeUpdates => self.add_builtin(builtin("simple-update")?, 1)?,
            Id::SelectOnly => self.add_builtin(builtin("select-only")?, 1)?,
            Id::File => self.add_file(value)?,
            Id::Client => self.clients = Some(positive(value, "-c/--client")?),
            Id::Jobs => self.lanes = Some(positive(value, "-j/--jobs")?),
            Id::Connect => self.connect_each = true,
            Id::Define => self.variables.push(definition(value)?),
            Id::Log => self.log = true,
            Id::LogPrefix => self.log_prefix = Some(value.to_owned()),
            Id::SamplingRate => self.sampling_rate = Some(sampling_rate(value)?),
            Id::AggregateInterval => {
                self.aggregate_s = Some(positive(value, "--aggregate-interval")?);
            }
            Id::LatencyLimit => self.latency_limit_us = Some(latency_limit_us(value)?),
            Id::Protocol => self.protocol = Some(protocol(value)?),
            Id::Progress => self.progress_s = Some(positive(value, "-P/--progress")?),
            Id::ProgressTimestamp => self.progress_timestamp = true,
            Id::ReportPerCommand => self.per_command = true,
            Id::Rate => self.rate = rate(value)?,
            Id::Transactions => self.transactions = Some(positive(value, "-t/--transactions")?),
            Id::Time => self.seconds = Some(positive(value, "-T/--time")?),
            Id::VacuumAll => self.vacuum_all = true,
            Id::FailuresDetailed => self.failures_detailed = true,
            Id::MaxTries => self.max_tries = Some(max_tries(value)?),
            Id::VerboseErrors => self.verbose_errors = true,
            Id::ExitOnAbort => self.exit_on_abort = true,
            Id::ContinueOnError => self.continue_on_error = true,
            Id::RandomSeed => self.seed = Some(seed_option(value, "--random-seed option")?),
            _ => self.take_ours(id, value)?,
        }
        Ok(())
    }

    fn take_ours(&mut self, id: Id, value: &str) -> Result<(), Complaint> {
        match id {
            Id::Arrivals => self.arrivals = Some(arrivals(value)?),
            Id::ConnectRate => self.connect_rate = Some(above_zero(value, "connection rate")?),
            Id::Generators => self.generators = Some(positive(value, "--generators")?),
            Id::Interval => {
                self.interval_ms = Some(bounded_int(value, "--interval", 10, 3_600_000)? as u64);
            }
            Id::NoDescribe => self.no_describe = true,
            Id::Syntax => self.syntax = Some(syntax(value)?),
            Id::Warmup => self.warm_up = Some(warm_up(value)?),
            Id::Hosts => self.hosts = Some(value.to_owned()),
            Id::OnHostLoss => self.on_host_loss = Some(on_host_loss(value)?),
            Id::Push => self.push = true,
            Id::Hdr => self.hdr = Some(value.to_owned()),
            Id::Json => self.json = Some(value.to_owned()),
            Id::FindRate => self.find(Range::Rate, value)?,
            Id::FindClients => self.find(Range::Clients, value)?,
            Id::FindSeconds => self.find_seconds = Some(positive(value, "--find-seconds")?),
            Id::Curve => self.curve = Some(value.to_owned()),
            Id::Baseline => self.baseline = true,
            Id::Serve => self.serve = true,
            Id::Reconnect => self.reconnect = true,
            Id::Metrics => self.metrics = Some(value.to_owned()),
            Id::Influx => self.influx = Some(value.to_owned()),
            _ => self.html = Some(value.to_owned()),
        }
        Ok(())
    }

    fn find(&mut self, range: Range, value: &str) -> Result<(), Complaint> {
        if self.find.as_ref().is_some_and(|(other, _)| *other != range) {
            let text = "--find-rate and --find-clients cannot be used at the same time";
            return Err(Complaint::error(text));
        }
        self.find = Some((range, goal(value)?));
        Ok(())
    }

    fn add_builtin(&mut self, builtin: &Builtin, weight: u32) -> Result<(), Complaint> {
        self.add_script(Script {
            name: builtin.description.to_owned(),
            text: builtin.text.to_owned(),
            weight,
            commands: 0,
            origin: Origin::Builtin,
        })
    }

    fn add_file(&mut self, value: &str) -> Result<(), Complaint> {
        let Weighted { name, weight } = weighted(value)?;
        let text = script_text(&name)?;
        self.add_script(Script { name, text, weight, commands: 0, origin: Origin::File })
    }

    fn add_script(&mut self, script: Script) -> Result<(), Complaint> {
        if self.scripts.len() >= SCRIPTS_MAX {
            let text = format!("at most {SCRIPTS_MAX} SQL scripts are allowed");
            return Err(Complaint::error(text));
        }
        self.scripts.push(script);
        Ok(())
    }
}
