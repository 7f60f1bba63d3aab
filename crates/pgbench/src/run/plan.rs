//! The plan that the load engine gets.

use std::fs::File;
use std::io::Read;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use load::{
    ClientGroup, ConnectionMode, LoadLimit, LoadPlan, LoadScript, LogPlan, Pace, ShellUser, WarmUp,
    WorkRecord,
};
use script::RandomSeed;
use wire::conninfo::Conninfo;

use crate::complaint::{Complaint, system_error};
use crate::console::Console;
use crate::major::Major;
use crate::options::{Length, RunOptions};

use super::tables::Tables;

/// The beginning of a run, on both clocks.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    pub(super) origin: Instant,
    pub(super) wall: SystemTime,
}

impl Clock {
    pub(super) fn start() -> Self {
        let (origin, wall) = host::read_together(SystemTime::now);
        Clock { origin, wall }
    }

    pub(super) fn unix_us(&self) -> u64 {
        // A clock that stands before 1970 shows 1970.
        let since = self.wall.duration_since(UNIX_EPOCH).unwrap_or_default();
        since.as_micros() as u64
    }
}

/// The seed of all random sequences. One that was asked for is told, so that a run can be
/// repeated.
pub(super) fn seed(options: &RunOptions, console: &mut Console<'_>) -> Result<u64, Complaint> {
    let seed = match options.seed {
        None | Some(RandomSeed::Time) => Clock::start().unix_us(),
        Some(RandomSeed::Given(seed)) => seed,
        Some(RandomSeed::Strong) => strong_seed()?,
    };
    if options.seed.is_some() {
        console.info(format_args!("setting random seed to {seed}"));
    }
    Ok(seed)
}

/// The seed of a window of a search. The first one has that of the run.
pub(super) fn seed_of_window(seed: u64, window: u64) -> u64 {
    // An odd number of large period: neighbouring seeds may draw neighbouring values.
    seed.wrapping_add(window.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

fn strong_seed() -> Result<u64, Complaint> {
    let mut bytes = [0; 8];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map(|()| u64::from_ne_bytes(bytes)).map_err(|error| {
        Complaint::error("could not generate random seed")
            .with_detail(format_args!("reading /dev/urandom: {}", system_error(&error)))
    })
}

/// The plan of the load, for so many generator processes.
pub(super) fn plan(
    options: &RunOptions,
    conninfo: &Conninfo,
    tables: &Tables,
    seed: u64,
    clock: Clock,
    generators: u32,
) -> LoadPlan {
    LoadPlan {
        workloads: vec![workload(options, conninfo.to_keyword_string(), tables.scale)],
        lanes: options.lanes.div_ceil(generators),
        seed,
        connecting: ConnectionMode {
            rate: options.ours.connect_rate.map(|rate| rate / f64::from(generators)),
            ..ConnectionMode::default()
        },
        limit: limit(options),
        // pgbench waits for every answer.
        drain_ms: None,
        interval_ms: options.ours.interval_ms,
        slowest: options.ours.tail,
        work: WorkRecord::Nothing,
        rates: None,
        blocks: None,
        statements: options.per_command,
        ledger: None,
        history: None,
        log: options.log.as_ref().map(|log| LogPlan {
            prefix: log.prefix.clone(),
            sampling_rate: log.sampling_rate,
            aggregate_s: log.aggregate_s.map(u64::from),
            last_stretch: log.last_stretch,
            other_failures: options.major >= Major::V19,
            failures_detailed: options.failures_detailed,
            epoch_us: clock.unix_us(),
        }),
        exit_on_abort: options.exit_on_abort,
        verbose_errors: options.verbose_errors,
        debug: options.debug,
        io_uring: options.io_uring,
    }
}

/// The work of the clients of a run, on tables of this scale. `conninfo` is in keyword form.
pub fn workload(options: &RunOptions, conninfo: String, scale: i64) -> ClientGroup {
    let mut variables = options.variables.clone();
    if !variables.iter().any(|(name, _)| name == "scale") {
        variables.push(("scale".to_owned(), scale.to_string()));
    }
    ClientGroup {
        name: "bench".to_owned(),
        conninfo,
        scripts: options
            .scripts
            .iter()
            .map(|script| LoadScript {
                name: script.name.clone(),
                text: script.text.clone(),
                weight: script.weight,
                syntax: options.ours.syntax,
            })
            .collect(),
        rows: options.rows.clone(),
        clients: options.clients,
        protocol: options.protocol,
        pace: options.pace,
        latency_limit_us: options.latency_limit_us,
        deadline_us: None,
        retry: None,
        storms_ms: Vec::new(),
        variables,
        session: Vec::new(),
        on_error: options.on_error,
        connect_each: options.connect_each,
        caches_keys: options.ours.caches_keys,
        on_loss: options.ours.on_loss,
        describe: options.ours.describe,
        shell: ShellUser::Own,
        ledger: None,
    }
}

fn limit(options: &RunOptions) -> LoadLimit {
    match options.length {
        Length::Transactions(each) => LoadLimit::Transactions(u64::from(each)),
        Length::Seconds(seconds) => LoadLimit::Time {
            warm_up: options.ours.warm_up.unwrap_or(WarmUp::Fixed(0)),
            window_ms: u64::from(seconds) * 1000,
        },
    }
}

/// True if transactions start by the clock.
pub(super) fn is_open(options: &RunOptions) -> bool {
    options.pace != Pace::Closed
}
