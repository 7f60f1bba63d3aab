//! Conflicts between options, checked in pgbench's order, and the defaults of options that were not
//! given.

use load::{OnError, OnHostLoss, Pace, Protocol, RowTables, ScriptRows};
use script::{BuiltinScript, VariableNames};

use super::given::Given;
use super::row::{Mode, Row};
use super::values::{Arrivals, row_text};
use super::{
    CapacityOptions, CpusBy, FindOptions, HostOptions, InitialiseOptions, Length, LoadProgress,
    LogOptions, NotCompared, Origin, OurOptions, PartitionMethod, Partitions, Persistence, Range,
    Request, RunOptions, Script, ServerCpus, TableSet, Vacuum,
};
use crate::complaint::Complaint;
use crate::major::SpokenBy;

/// The mode that was asked for, if its options go together.
pub(super) fn resolve(mut given: Given) -> Result<Request, Complaint> {
    if !given.initialise && given.scripts.is_empty() {
        given.scripts.push(default_script());
    }
    check_scripts(&mut given)?;
    if !given.initialise {
        if given.scripts.iter().all(|script| script.weight == 0) {
            return refuse("total script weight must not be zero");
        }
        if given.rows.iter().any(|row| row.mode == Mode::Initialisation) {
            return refuse("some of the specified options cannot be used in benchmarking mode");
        }
        return run(given).map(|options| Request::Run(Box::new(options)));
    }
    // -i -b tpcc-like: the tables to make.
    let tables = match given.scripts.first() {
        Some(_) if given.scripts.iter().all(|script| script.origin == Origin::Tpcc) => {
            TableSet::Tpcc
        }
        _ => TableSet::Pgbench,
    };
    let is_named = |row: &&Row| row.long == "builtin" && tables == TableSet::Tpcc;
    let runs = |row: &&Row| row.mode == Mode::Benchmarking && !is_named(row);
    if given.rows.iter().copied().any(|row| runs(&row)) {
        return refuse("some of the specified options cannot be used in initialization (-i) mode");
    }
    let own = given.rows.iter().find(|row| row.mode == Mode::Initialisation);
    if let (TableSet::Tpcc, Some(row)) = (tables, own) {
        let option = row.display();
        let text = format!("option {option} is for pgbench's tables, not for those of tpcc-like");
        return refuse(&text);
    }
    initialise(given, tables).map(Request::Initialise)
}

fn refuse<T>(text: &str) -> Result<T, Complaint> {
    Err(Complaint::error(text))
}

fn default_script() -> Script {
    let builtin = &BuiltinScript::ALL[0];
    Script {
        name: builtin.description.to_owned(),
        text: builtin.text.to_owned(),
        weight: 1,
        commands: 0,
        reads_as_nine_x: false,
        origin: Origin::Builtin,
    }
}

/// Finds mistakes in scripts now, where pgbench finds them, and not when the first client runs;
/// and counts their commands.
fn check_scripts(given: &mut Given) -> Result<(), Complaint> {
    given.ours.syntax = given.syntax();
    let syntax = given.ours.syntax;
    // pgbench's default is the simple protocol.
    let protocol = given.protocol.unwrap_or_default();
    let mut names = VariableNames::new();
    let mut parsed = Vec::new();
    for Script { name, text, commands, reads_as_nine_x, .. } in &mut given.scripts {
        let script = script::ParsedScript::parse(name, text.as_bytes(), syntax, &mut names);
        let script = script.map_err(|error| {
            let complaint = Complaint::error(&error);
            match &error.hint {
                Some(hint) => complaint.with_our_hint(hint),
                None => complaint,
            }
        })?;
        script.check(protocol).map_err(Complaint::error)?;
        *commands = script.commands.len();
        *reads_as_nine_x = script.reads_as_nine_x();
        add_rows(&script, &mut given.drawn_rows)?;
        parsed.push(script);
    }
    let told = |error: load::LoadError| {
        let complaint = Complaint::error(&error);
        match error.hint() {
            Some(hint) => complaint.with_our_hint(hint),
            None => complaint,
        }
    };
    let tables = RowTables::read(&given.drawn_rows).map_err(told)?;
    parsed.iter().try_for_each(|script| tables.pickers(script).map(drop)).map_err(told)
}

/// Reads the files from which a script draws rows, each once.
fn add_rows(script: &script::ParsedScript, rows: &mut Vec<ScriptRows>) -> Result<(), Complaint> {
    for command in &script.commands {
        let script::CommandKind::SetRow(row) = &command.kind else { continue };
        if rows.iter().all(|known| known.source != row.source) {
            let place = format!("{}:{}", script.name, command.line);
            let text = row_text(&row.source.path, &place)?;
            rows.push(ScriptRows::new(row.source.clone(), &text));
        }
    }
    Ok(())
}

fn initialise(given: Given, tables: TableSet) -> Result<InitialiseOptions, Complaint> {
    // pgbench's default are no partitions.
    let partitions = given.partitions.unwrap_or(0);
    if partitions == 0 && given.partition_method.is_some() {
        return refuse("--partition-method requires greater than zero --partitions");
    }
    let mut steps = given.steps.unwrap_or_else(|| "dtgvp".to_owned());
    if given.no_vacuum {
        steps = steps.replace('v', " ");
    }
    if given.foreign_keys && !steps.contains('f') {
        steps.push('f');
    }
    Ok(InitialiseOptions {
        server: given.server,
        major: given.major,
        follows_server: given.spoken_by != SpokenBy::Choice,
        debug: given.debug,
        steps,
        tables,
        scale: given.scale.unwrap_or(1),
        fillfactor: given.fillfactor.unwrap_or(100),
        progress: given.progress.unwrap_or(LoadProgress::Rows),
        partitions: (partitions > 0).then_some(Partitions {
            count: partitions,
            method: given.partition_method.unwrap_or(PartitionMethod::Range),
        }),
        tablespace: given.tablespace,
        index_tablespace: given.index_tablespace,
        persistence: given.persistence.unwrap_or(Persistence::Logged),
        connections: given.connections.unwrap_or(1),
        resume: given.resume,
    })
}

fn run(given: Given) -> Result<RunOptions, Complaint> {
    if given.transactions.is_some() && given.seconds.is_some() {
        return refuse("specify either a number of transactions (-t) or a duration (-T), not both");
    }
    let length = given.length();
    let log = log(&given)?;
    if let (Length::Seconds(seconds), Some(aggregate_s)) = (length, given.aggregate_s) {
        aggregates_fit(seconds, aggregate_s)?;
    }
    if given.progress_timestamp && given.progress_s.is_none() {
        return refuse("--progress-timestamp is allowed only under --progress");
    }
    let tries_max = given.max_tries.unwrap_or(1);
    let bounded = given.latency_limit_us.is_some() || matches!(length, Length::Seconds(_));
    if tries_max == 0 && !bounded {
        return refuse(
            "an unlimited number of transaction tries can only be used with --latency-limit or a \
             duration (-T)",
        );
    }
    if let Some(why) = given.rows.iter().find_map(|row| (row.fits)(&given)) {
        return refuse(why);
    }
    let pace = pace(&given);
    let not_compared = not_compared(&given);
    let (find, capacity, hosts) = (find(&given, length), capacity(&given), hosts(&given));
    let ours = OurOptions { find, capacity, hosts, ..given.ours };
    let clients = given.clients.unwrap_or(1);
    Ok(RunOptions {
        server: given.server,
        debug: given.debug,
        io_uring: !given.without_io_uring,
        major: given.major,
        spoken_by: given.spoken_by,
        scripts: given.scripts,
        rows: given.drawn_rows,
        clients,
        lanes: given.lanes.unwrap_or(1).min(clients),
        protocol: given.protocol.unwrap_or(Protocol::Simple),
        length,
        connect_each: given.connect_each,
        variables: given.variables,
        pace,
        latency_limit_us: given.latency_limit_us,
        progress_s: given.progress_s,
        progress_timestamp: given.progress_timestamp,
        per_command: given.per_command,
        scale: given.scale,
        vacuum: match (given.no_vacuum, given.vacuum_all) {
            (true, _) => Vacuum::Nothing,
            (false, true) => Vacuum::All,
            (false, false) => Vacuum::Small,
        },
        log,
        failures_detailed: given.failures_detailed,
        on_error: OnError { tries_max, go_on: given.continue_on_error },
        verbose_errors: given.verbose_errors,
        exit_on_abort: given.exit_on_abort,
        seed: given.seed,
        ours,
        not_compared,
    })
}

fn log(given: &Given) -> Result<Option<LogOptions>, Complaint> {
    if given.sampling_rate.is_some() && !given.log {
        return refuse(
            "log sampling (--sampling-rate) is allowed only when logging transactions (-l)",
        );
    }
    if given.sampling_rate.is_some() && given.aggregate_s.is_some() {
        return refuse(
            "log sampling (--sampling-rate) and aggregation (--aggregate-interval) cannot be used \
             at the same time",
        );
    }
    if given.aggregate_s.is_some() && !given.log {
        return refuse("log aggregation is allowed only when actually logging transactions");
    }
    if given.log_prefix.is_some() && !given.log {
        return refuse(
            "log file prefix (--log-prefix) is allowed only when logging transactions (-l)",
        );
    }
    Ok(given.log.then(|| LogOptions {
        prefix: given.log_prefix.clone().unwrap_or_else(|| "pgbench_log".to_owned()),
        sampling_rate: given.sampling_rate.unwrap_or(1.0),
        aggregate_s: given.aggregate_s,
        last_stretch: given.last_stretch,
    }))
}

fn aggregates_fit(seconds: u32, aggregate_s: u32) -> Result<(), Complaint> {
    if aggregate_s > seconds {
        return Err(Complaint::error(format_args!(
            "number of seconds for aggregation ({aggregate_s}) must not be higher than test \
             duration ({seconds})"
        )));
    }
    if !seconds.is_multiple_of(aggregate_s) {
        return Err(Complaint::error(format_args!(
            "duration ({seconds}) must be a multiple of aggregation interval ({aggregate_s})"
        )));
    }
    Ok(())
}

/// The rate of a search is filled in by the search.
fn pace(given: &Given) -> Pace {
    let rate = match given.find {
        Some((Range::Rate, _)) => given.arrivals.map(|_| 1.0),
        _ => given.rate,
    };
    match (rate, given.arrivals) {
        (None, _) => Pace::Closed,
        (Some(rate), Some(Arrivals::Constant)) => Pace::Constant(rate),
        (Some(rate), _) => Pace::Poisson(rate),
    }
}

/// A window that does not confirm is a fifth as long as the one that does, at least so long in
/// seconds.
const FIND_SECONDS_MIN: u32 = 2;

fn find(given: &Given, length: Length) -> Option<FindOptions> {
    let ((range, goal), Length::Seconds(seconds)) = (given.find.as_ref()?, length) else {
        return None;
    };
    Some(FindOptions {
        goal: goal.clone(),
        range: *range,
        seconds: given.find_seconds.unwrap_or((seconds / 5).max(FIND_SECONDS_MIN)),
        curve: given.curve.clone(),
    })
}

fn capacity(given: &Given) -> Option<CapacityOptions> {
    let by = given.server_cpus_command.clone().map_or(CpusBy::OwnServer, CpusBy::Command);
    Some(CapacityOptions {
        goal: given.capacity.clone()?,
        server_cpus: given.server_cpus.clone().map(|counts| ServerCpus { counts, by }),
        pool_sizes: given.pool_sizes.clone(),
        curve: given.curve.clone(),
    })
}

fn hosts(given: &Given) -> Option<HostOptions> {
    let on_loss = given.on_host_loss.unwrap_or(OnHostLoss::Stop);
    Some(HostOptions { file: given.hosts.clone()?, on_loss, push: given.push })
}

/// The first option that a comparison does not follow, and why.
fn not_compared(given: &Given) -> Option<NotCompared> {
    let row = given
        .rows
        .iter()
        .find_map(|row| row.not_compared.map(|why| NotCompared { option: row.display(), why }));
    let is_skipping = given.rate.is_some() && given.latency_limit_us.is_some();
    row.or(is_skipping.then(|| NotCompared {
        option: "-L".to_owned(),
        why: "with a rate, transactions that are late are compared, not skipped",
    }))
    .or(given.server.dbname.is_some().then(|| NotCompared {
        option: "DBNAME".to_owned(),
        why: "the sides are given by --a-conninfo and --b-conninfo, or made by pgrig",
    }))
}
