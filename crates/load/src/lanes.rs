//! The lanes of this process: their threads, and what each of them gets to do.

use std::{
    fs::File,
    os::fd::OwnedFd,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use os::limits::OpenFiles;
use rustix::event::{EventfdFlags, eventfd};
use script::Xoroshiro128;
use stats::LatencyHistogram;
use tail::SlowestTransactions;
use wire::conninfo::Conninfo;

use crate::{
    LoadError, LoadLimit, LoadPlan, OnLoss, ScriptOutcome,
    carried::{self, Kind},
    clock::Time,
    grid::{Grid, SharedGrid},
    lane::{Connecting, Lane, Parts, Slot},
    lane_history::LaneHistory,
    ledger::LaneLedger,
    log::{self, Columns, LaneLog},
    partition::{self, LaneShare, Part},
    program::{CommonSettings, Program, message_bytes_max},
    report::{ConnectFailure, LaneOutcome, LaneStatement, LaneWorkload, Report},
    schedule::Schedule,
    session::Session,
    standstill::LaneStandstills,
    tally::{FirstErrors, Open, Statement, Tally, Totals},
    work::WorkLog,
};
use server::dial::{ConnectRoute, without_errno};

/// A plan made ready: parsed, resolved, divided among lanes.
pub(crate) struct Lanes {
    pub(crate) programs: Vec<Program>,
    pub(crate) routes: Vec<Arc<ConnectRoute>>,
    pub(crate) shares: Vec<LaneShare>,
    pub(crate) shared: SharedGrid,
    pub(crate) wakes: Vec<Arc<OwnedFd>>,
    /// The file in which each lane logs its transactions; empty where none does.
    logs: Vec<Arc<File>>,
    /// The file in which each lane keeps its ledger, if it is read again from there.
    ledgers: Vec<Arc<File>>,
    /// The file in which each lane keeps its history, if it is read again from there.
    histories: Vec<Arc<File>>,
    /// True if the files have no names.
    are_unnamed: bool,
    /// The number of lanes in all processes of the load.
    lanes_of_load: usize,
}

impl Lanes {
    pub(crate) fn prepare(plan: &LoadPlan, part: &Part) -> Result<Self, LoadError> {
        let shares = partition::shares(plan, part);
        let lanes_of_load = part.lanes(plan).iter().sum();
        let default_seed = partition::seeds(plan, lanes_of_load).default_seed;
        let common = CommonSettings {
            random_seed: plan.seed as i64,
            default_seed,
            statements: plan.statements,
            verbose_errors: plan.verbose_errors,
            debug: plan.debug,
            transactions: match plan.limit {
                LoadLimit::Transactions(n) => Some(n),
                LoadLimit::Time { .. } => None,
            },
            keeps_history: plan.history.is_some(),
            message_bytes_max: message_bytes_max(
                plan.workloads.iter().map(|workload| u64::from(workload.clients)).sum(),
            ),
        };
        let mut programs = Vec::new();
        let mut routes = Vec::new();
        for (index, workload) in plan.workloads.iter().enumerate() {
            let part = shares.iter().map(|share| share.shares[index]).fold(0.0, f64::max);
            let program = Program::new(workload, &common)?;
            if let (Some(rate), Some(_)) = (workload.pace.rate(), program.stale_ns())
                && rate * part > SKIPPED_RATE_MAX
            {
                return Err(LoadError::Rate { workload: workload.name.clone(), rate });
            }
            programs.push(program);
            let conninfo = Conninfo::from_keyword_string(&workload.conninfo).map_err(|error| {
                LoadError::Conninfo { workload: workload.name.clone(), why: error.to_string() }
            })?;
            let route = ConnectRoute::new(&conninfo, &workload.session)?;
            if route.leads_nowhere() {
                let why = route.steps.iter().find_map(|step| step.endpoint.unresolved());
                let why = why.expect("a route has a step, and no step of this one has an address");
                return Err(LoadError::Resolve { why: why.to_owned() });
            }
            routes.push(Arc::new(route));
        }
        let clients = shares.iter().map(|share| share.clients.len() as u64).sum::<u64>();
        raise_open_files(clients + OTHER_FILES)?;
        let wakes = shares.iter().map(|_| {
            eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).map(Arc::new).map_err(
                |errno| LoadError::System {
                    doing: "making an event descriptor",
                    source: errno.into(),
                },
            )
        });
        let wakes = wakes.collect::<Result<_, _>>()?;
        let (logs, ledgers, histories) = (Vec::new(), Vec::new(), Vec::new());
        let shared = SharedGrid::new();
        Ok(Lanes {
            programs,
            routes,
            shares,
            shared,
            wakes,
            logs,
            ledgers,
            histories,
            are_unnamed: false,
            lanes_of_load,
        })
    }

    /// Makes the files that this process logs to: where they cannot be, nothing begins.
    pub(crate) fn with_logs(mut self, plan: &LoadPlan) -> Result<Self, LoadError> {
        if let Some(log) = &plan.log {
            let files = (0..self.shares.len()).map(|lane| log::create(log, lane).map(Arc::new));
            self.logs = files.collect::<Result<_, _>>()?;
        }
        Ok(self)
    }

    /// Makes files without names for what this process logs, for its ledger and for its history: they
    /// are read again from there.
    pub(crate) fn with_unnamed_files(mut self, plan: &LoadPlan) -> Result<Self, LoadError> {
        let files = || (0..self.shares.len()).map(|_| carried::unnamed().map(Arc::new)).collect();
        let logs = plan.log.as_ref().map_or(Ok(Vec::new()), |_| files())?;
        let ledgers = plan.ledger.as_ref().map_or(Ok(Vec::new()), |_| files())?;
        let histories = plan.history.as_ref().map_or(Ok(Vec::new()), |_| files())?;
        (self.logs, self.ledgers, self.histories) = (logs, ledgers, histories);
        self.are_unnamed = true;
        Ok(self)
    }

    /// The files without names that lanes write, to be sent elsewhere.
    pub(crate) fn unnamed_files(&self) -> impl Iterator<Item = (Kind, usize, &File)> {
        let logs = if self.are_unnamed { &self.logs[..] } else { &[] };
        let files =
            [(Kind::Log, logs), (Kind::Ledger, &self.ledgers), (Kind::History, &self.histories)];
        files.into_iter().flat_map(|(kind, files)| {
            files.iter().enumerate().map(move |(lane, file)| (kind, lane, &**file))
        })
    }

    /// Makes every lane see these moments now.
    pub(crate) fn publish(&self, grid: &Grid) {
        self.shared.write(grid);
        for wake in &self.wakes {
            // The counter cannot overflow, and a lane that is awake needs no waking.
            let _ = rustix::io::write(wake, &1_u64.to_ne_bytes());
        }
    }

    /// The whole life of one lane, on the calling thread.
    pub(crate) fn live(
        &self,
        plan: &LoadPlan,
        lane: usize,
        time: &Time,
        report: &(dyn Fn(Report) + Sync),
    ) {
        // Without it the kernel may be 50 µs late for every timer.
        let slack = std::num::NonZeroU64::new(1);
        let _ = rustix::thread::set_current_timer_slack(slack);
        let life = AssertUnwindSafe(|| self.whole_life(plan, lane, time, report));
        if catch_unwind(life).is_err() {
            // The story is on stderr. Without this word the others would wait for ever.
            let why = "a lane panicked; this is a bug in the rig".to_owned();
            report(Report::Lost(why.into()));
        }
    }

    fn whole_life(
        &self,
        plan: &LoadPlan,
        lane: usize,
        time: &Time,
        report: &(dyn Fn(Report) + Sync),
    ) {
        match self.lane(plan, lane, time, report) {
            Ok(mut lane_at_work) => {
                let drained = self.work(plan, lane, &mut lane_at_work);
                let outcome = outcome(lane_at_work, drained);
                report(Report::Done(Box::new(outcome)));
            }
            Err(error) => {
                report(Report::ConnectFailed(ConnectFailure::new(format!(
                    "could not set up a lane: {error}"
                ))));
                report(Report::Done(Box::new(LaneOutcome::nothing())));
            }
        }
    }

    fn work(&self, plan: &LoadPlan, number: usize, lane: &mut Lane<'_>) -> u64 {
        let mut drained = 0;
        if let Some(ledger) = &plan.ledger {
            let made = match self.ledgers.get(number) {
                Some(file) => LaneLedger::unnamed(ledger, Arc::clone(file)),
                None => LaneLedger::create(ledger, self.shares[number].number),
            };
            match made {
                Ok(ledger) => lane.ledger = Some(ledger),
                Err(message) => {
                    lane.fail(ConnectFailure::new(message));
                    return drained;
                }
            }
        }
        if let Some(history) = &plan.history {
            let lanes = self.lanes_of_load;
            let made = match self.histories.get(number) {
                Some(file) => LaneHistory::unnamed(history, Arc::clone(file), lanes),
                None => LaneHistory::create(history, self.shares[number].number, lanes),
            };
            match made {
                Ok(history) => lane.history = Some(history),
                Err(message) => {
                    lane.fail(ConnectFailure::new(message));
                    return drained;
                }
            }
        }
        if lane.connect_all() && lane.await_beginning() {
            lane.log = self.log(plan, number, lane);
            drained = lane.run();
            if let (Some(log), Some(plan)) = (lane.log.take(), &plan.log)
                && let Err(error) = log.finish(drained)
            {
                lane.log_is_cut = true;
                let (path, why) = (log::path(plan, number), error.to_string());
                let why = without_errno(&why);
                let text = format!("could not write to the transaction log \"{path}\": {why}");
                let level = crate::MessageLevel::Error;
                (lane.report)(Report::Said(vec![crate::UserMessage { level, text, at: None }]));
            }
        }
        lane.speak();
        lane.disconnect_all();
        drained
    }

    fn lane<'a>(
        &'a self,
        plan: &'a LoadPlan,
        lane: usize,
        time: &Time,
        report: &'a (dyn Fn(Report) + Sync),
    ) -> rustix::io::Result<Lane<'a>> {
        let share = &self.shares[lane];
        let clients = plan.workloads.iter().map(|workload| u64::from(workload.clients)).sum();
        let sessions = share.clients.iter().map(|(workload, id, prng)| {
            let program = &self.programs[*workload];
            let mut session = Session::new(*id, *workload, program, prng.clone());
            let seed = plan.ledger.as_ref().map(|ledger| ledger.seed);
            session.open_account(program, seed, clients);
            session
        });
        let schedules = plan.workloads.iter().zip(&share.shares).map(|(workload, part)| {
            Schedule::new(workload.pace, *part, share.offset, share.states.throttle.clone())
        });
        let totals = self.programs.iter().zip(&plan.workloads).map(|(program, workload)| Totals {
            open_loop: program.open_loop,
            transactions: 0,
            unknown: 0,
            aborted: 0,
            first_errors: FirstErrors::new(),
            standstills: match workload.on_loss {
                OnLoss::Abort => None,
                OnLoss::Reconnect => Some(LaneStandstills::default()),
            },
            longest_ns: 0,
            served: LatencyHistogram::new(),
            unserved: LatencyHistogram::new(),
            slowest: plan.slowest.then(SlowestTransactions::default),
            open: Open::default(),
            statements: statements(program),
            work: WorkLog::of(plan.work),
            scripts: match &program.scripts[..] {
                [_] => Vec::new(),
                several => vec![ScriptOutcome::default(); several.len()],
            },
        });
        let lanes = self.shares.len();
        let jitter =
            Xoroshiro128::from_seed(plan.seed ^ (u64::from(share.number) << 32 | 0x6a69_7474));
        Lane::new(Parts {
            plan,
            programs: &self.programs,
            routes: &self.routes,
            shared: &self.shared,
            clock: time.clock(),
            report,
            wake: Arc::clone(&self.wakes[lane]),
            sessions: sessions.collect(),
            states: share.states.clone(),
            schedules: schedules.collect(),
            tally: Tally::new(plan.interval_ms * 1_000_000, totals.collect()),
            connecting: Connecting::new(
                (plan.connecting.at_once as usize / lanes).max(1),
                plan.connecting.rate.map(|rate| rate / lanes as f64),
                jitter,
            ),
        })
    }

    fn log(&self, plan: &LoadPlan, number: usize, lane: &Lane<'_>) -> Option<LaneLog> {
        let (log, file) = (plan.log.clone()?, Arc::clone(self.logs.get(number)?));
        let columns = Columns {
            lag: self.programs.iter().any(|program| program.open_loop),
            retries: self
                .programs
                .iter()
                .any(|program| program.tries_max != 1 || program.retry.is_some()),
        };
        let sample = self.shares[number].states.sample.clone();
        Some(LaneLog::new(file, log, columns, sample, lane.grid.began))
    }
}

/// Slots in a second of which a lane can skip all: each takes it some tens of nanoseconds.
const SKIPPED_RATE_MAX: f64 = 1e6;

/// Descriptors beside the clients' sockets: epolls, event descriptors, logs, pipes.
const OTHER_FILES: u64 = 64;

fn statements(program: &Program) -> Vec<Vec<Statement>> {
    if !program.time_each_command {
        return Vec::new();
    }
    let commands = |script: &crate::program::ProgramScript| {
        vec![Statement::default(); script.script.commands.len()]
    };
    program.scripts.iter().map(commands).collect()
}

fn raise_open_files(needed: u64) -> Result<(), LoadError> {
    let OpenFiles { soft, hard } = OpenFiles::current();
    if soft.is_none_or(|soft| soft >= needed) {
        return Ok(());
    }
    if let Some(allowed) = hard.filter(|hard| *hard < needed) {
        return Err(LoadError::OpenFiles { needed, allowed });
    }
    OpenFiles::raise()
        .map(drop)
        .map_err(|source| LoadError::System { doing: "raising the limit on open files", source })
}

fn outcome(mut lane: Lane<'_>, drained: u64) -> LaneOutcome {
    let (spent, lag) = lane.cost();
    let mut clients = vec![std::collections::BTreeMap::new(); lane.programs.len()];
    let mut good_clients = clients.clone();
    for Slot { session, .. } in &lane.slots {
        clients[session.workload].insert(session.id, session.in_window);
        if lane.programs[session.workload].deadline_ns.is_some() {
            good_clients[session.workload].insert(session.id, session.good_in_window);
        }
    }
    let totals = std::mem::take(&mut lane.tally.totals);
    let clients = clients.into_iter().zip(good_clients);
    let workloads =
        totals.into_iter().zip(clients).map(|(mut totals, (clients, good_clients))| LaneWorkload {
            // Clients that do not come back after a loss have no standstill to tell of.
            standstills: totals.standstills.as_mut().map(LaneStandstills::take).unwrap_or_default(),
            transactions: totals.transactions,
            unknown: totals.unknown,
            aborted: totals.aborted,
            first_errors: totals.first_errors,
            longest_ns: totals.longest_ns,
            // Slow transactions are kept where the plan asks for them.
            slowest: totals.slowest.unwrap_or_default(),
            open: totals.open,
            statements: totals.statements.into_iter().map(lane_statements).collect(),
            work: totals.work.map(WorkLog::into_work),
            scripts: totals.scripts,
            clients,
            good_clients,
            served: totals.served,
            unserved: totals.unserved,
        });
    LaneOutcome {
        workloads: workloads.collect(),
        connecting: lane.connecting.phase,
        disconnecting: lane.connecting.leaving,
        connect_span: lane.connecting.span,
        disconnect_span: lane.connecting.leaving_span,
        drained,
        cpu_ns: spent.cpu_ns,
        busy_share: spent.busy_share,
        run_delay_ns: spent.run_delay_ns,
        wanted_share: spent.wanted_share,
        io: lane.io,
        lag,
        messages_dropped: lane.connecting.messages_dropped,
        log_is_cut: lane.log_is_cut,
    }
}

fn lane_statements(commands: Vec<Statement>) -> Vec<LaneStatement> {
    commands
        .into_iter()
        .map(|Statement { failures, retries, latency }| LaneStatement {
            failures,
            retries,
            latency,
        })
        .collect()
}

impl LaneOutcome {
    /// Of a lane that never came to life.
    fn nothing() -> Self {
        let idle = Connecting::new(1, None, Xoroshiro128::from_seed(0));
        LaneOutcome {
            connecting: idle.phase,
            disconnecting: idle.leaving,
            connect_span: idle.span,
            disconnect_span: idle.leaving_span,
            drained: 0,
            workloads: Vec::new(),
            cpu_ns: 0,
            busy_share: 0.0,
            run_delay_ns: None,
            wanted_share: None,
            io: None,
            lag: LatencyHistogram::new(),
            messages_dropped: 0,
            log_is_cut: false,
        }
    }
}
