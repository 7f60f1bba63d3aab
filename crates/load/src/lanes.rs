//! The lanes of this process: their threads, and what each of them gets to do.

use std::{
    fs::File,
    os::fd::OwnedFd,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use os::limits::OpenFiles;
use rustix::event::{EventfdFlags, eventfd};
use script::{Prng, Seeds};
use serde::{Deserialize, Serialize};
use stats::Latency;
use wire::conninfo::Conninfo;

use crate::{
    Limit, LoadError, OnLoss, Plan, ScriptOutcome,
    clock::Time,
    connecting::Connecting,
    grid::{Grid, SharedGrid},
    lane::{Lane, Parts},
    ledger::LaneLedger,
    log::{self, Columns, LaneLog},
    program::{Automatic, Program},
    report::{ConnectFailure, LaneOutcome, LaneStatement, LaneWorkload, Report},
    route::Route,
    schedule::Schedule,
    session::Session,
    standstill::Standstills,
    tally::{Open, Statement, Tally, Totals},
};

/// Which part of a plan this process does.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Part {
    /// Its place among the processes.
    pub(crate) index: usize,
    /// For each process, its share of the clients relative to the others'.
    pub(crate) weights: Vec<u32>,
}

impl Part {
    /// One of so many equal parts.
    pub(crate) fn equal(index: usize, of: u32) -> Part {
        Part { index, weights: vec![1; of as usize] }
    }

    /// Lanes of each process: as many as its weight asks for, and not more than it has clients,
    /// as a lane without a client would only wake up.
    pub(crate) fn lanes(&self, plan: &Plan) -> Vec<usize> {
        let clients: u64 = plan.workloads.iter().map(|workload| u64::from(workload.clients)).sum();
        let sum: u64 = self.weights.iter().map(|weight| u64::from(*weight)).sum();
        let lanes = u64::from(plan.lanes) * self.weights.len() as u64;
        let share = |all: u64, weight: u32| (all * u64::from(weight)).div_ceil(sum.max(1));
        let of = |weight: &u32| share(lanes, *weight).min(share(clients, *weight)).max(1) as usize;
        self.weights.iter().map(of).collect()
    }

    /// Clients of each process.
    pub(crate) fn clients(&self, plan: &Plan) -> Vec<u32> {
        let lanes = self.lanes(plan);
        let mut dealt = deal_all(plan, self).into_iter().map(|deal| deal.clients.len() as u32);
        lanes.iter().map(|lanes| dealt.by_ref().take(*lanes).sum()).collect()
    }
}

/// A plan made ready: parsed, resolved, dealt out.
pub(crate) struct Lanes {
    pub(crate) programs: Vec<Program>,
    pub(crate) routes: Vec<Route>,
    pub(crate) deals: Vec<Deal>,
    pub(crate) shared: SharedGrid,
    pub(crate) wakes: Vec<Arc<OwnedFd>>,
    /// Where each lane logs its transactions; empty where none does.
    logs: Vec<Arc<File>>,
}

/// What one lane gets.
pub(crate) struct Deal {
    /// Its number over all processes.
    number: u32,
    states: script::ThreadStates,
    /// Workload, client number, and state of the client's random functions.
    clients: Vec<(usize, u32, Prng)>,
    /// Its share of each workload's clients.
    shares: Vec<f64>,
    /// Where in the gaps of a constant rate its turn comes, 0 to 1: lanes that keep step would
    /// make bursts of it.
    offset: f64,
}

impl Lanes {
    pub(crate) fn prepare(plan: &Plan, part: &Part) -> Result<Self, LoadError> {
        let deals = deal(plan, part);
        let default_seed = seeds(plan, part.lanes(plan).iter().sum()).default_seed;
        let automatic = Automatic {
            random_seed: plan.seed as i64,
            default_seed,
            statements: plan.statements,
            verbose_errors: plan.verbose_errors,
            debug: plan.debug,
            transactions: match plan.limit {
                Limit::Transactions(n) => Some(n),
                Limit::Time { .. } => None,
            },
        };
        let mut programs = Vec::new();
        let mut routes = Vec::new();
        for workload in &plan.workloads {
            programs.push(Program::new(workload, &automatic)?);
            let conninfo = Conninfo::from_keyword_string(&workload.conninfo).map_err(|error| {
                LoadError::Conninfo { workload: workload.name.clone(), why: error.to_string() }
            })?;
            routes.push(Route::new(&conninfo, &workload.session)?);
        }
        let clients = deals.iter().map(|deal| deal.clients.len() as u64).sum::<u64>();
        raise_open_files(clients + OTHER_FILES)?;
        let wakes = deals.iter().map(|_| {
            eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).map(Arc::new).map_err(
                |errno| LoadError::System {
                    doing: "making an event descriptor",
                    source: errno.into(),
                },
            )
        });
        let wakes = wakes.collect::<Result<_, _>>()?;
        let (shared, logs) = (SharedGrid::new(), Vec::new());
        Ok(Lanes { programs, routes, deals, shared, wakes, logs })
    }

    /// Makes the files that this process logs to: where they cannot be, nothing begins.
    pub(crate) fn with_logs(mut self, plan: &Plan) -> Result<Self, LoadError> {
        if let Some(log) = &plan.log {
            let files = (0..self.deals.len()).map(|lane| log::create(log, lane).map(Arc::new));
            self.logs = files.collect::<Result<_, _>>()?;
        }
        Ok(self)
    }

    /// Makes files without names for what this process logs: it is read again from there.
    pub(crate) fn with_unnamed_logs(mut self) -> Result<Self, LoadError> {
        let files = (0..self.deals.len()).map(|_| log::unnamed().map(Arc::new));
        self.logs = files.collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// What a lane has logged, if it logs.
    pub(crate) fn log_of(&self, lane: usize) -> Option<&File> {
        self.logs.get(lane).map(|file| &**file)
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
        plan: &Plan,
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

    fn whole_life(&self, plan: &Plan, lane: usize, time: &Time, report: &(dyn Fn(Report) + Sync)) {
        match self.lane(plan, lane, time, report) {
            Ok(mut lane_at_work) => {
                let drained = self.work(plan, lane, &mut lane_at_work);
                let outcome = outcome(lane_at_work, drained);
                report(Report::Done(Box::new(outcome)));
            }
            Err(error) => {
                report(Report::ConnectFailed(ConnectFailure {
                    message: format!("could not set up a lane: {error}"),
                    sqlstate: None,
                    hint: None,
                }));
                report(Report::Done(Box::new(LaneOutcome::nothing())));
            }
        }
    }

    fn work(&self, plan: &Plan, number: usize, lane: &mut Lane<'_>) -> u64 {
        let mut drained = 0;
        if let Some(ledger) = &plan.ledger {
            match LaneLedger::create(ledger, self.deals[number].number) {
                Ok(ledger) => lane.ledger = Some(ledger),
                Err(message) => {
                    lane.fail(ConnectFailure { message, sqlstate: None, hint: None });
                    return drained;
                }
            }
        }
        if lane.connect_all() && lane.await_beginning() {
            lane.log = self.log(plan, number, lane);
            drained = lane.run();
            if let Some(log) = lane.log.take()
                && let Err(error) = log.finish(drained)
            {
                let text = format!("could not write to the transaction log: {error}");
                let level = crate::Level::Error;
                (lane.report)(Report::Said(vec![crate::Message { level, text, at: None }]));
            }
        }
        lane.speak();
        lane.disconnect_all();
        drained
    }

    fn lane<'a>(
        &'a self,
        plan: &'a Plan,
        lane: usize,
        time: &Time,
        report: &'a (dyn Fn(Report) + Sync),
    ) -> rustix::io::Result<Lane<'a>> {
        let deal = &self.deals[lane];
        let sessions = deal.clients.iter().map(|(workload, id, prng)| {
            let program = &self.programs[*workload];
            let mut session = Session::new(*id, *workload, program, prng.clone());
            if let Some(ledger) = &plan.ledger {
                session.open_account(program, ledger.seed);
            }
            session
        });
        let schedules = plan.workloads.iter().zip(&deal.shares).map(|(workload, share)| {
            Schedule::new(workload.pace, *share, deal.offset, deal.states.throttle.clone())
        });
        let totals = self.programs.iter().zip(&plan.workloads).map(|(program, workload)| Totals {
            open_loop: program.open_loop,
            transactions: 0,
            unknown: 0,
            aborted: 0,
            standstills: match workload.on_loss {
                OnLoss::Abort => None,
                OnLoss::Reconnect => Some(Standstills::default()),
            },
            longest_ns: 0,
            open: Open::default(),
            statements: statements(program),
            scripts: match &program.scripts[..] {
                [_] => Vec::new(),
                several => vec![ScriptOutcome::default(); several.len()],
            },
        });
        let lanes = self.deals.len();
        let jitter = Prng::from_seed(plan.seed ^ (u64::from(deal.number) << 32 | 0x6a69_7474));
        Lane::new(Parts {
            plan,
            programs: &self.programs,
            routes: &self.routes,
            shared: &self.shared,
            clock: time.clock(),
            report,
            wake: Arc::clone(&self.wakes[lane]),
            sessions: sessions.collect(),
            states: deal.states.clone(),
            schedules: schedules.collect(),
            tally: Tally::new(plan.interval_ms * 1_000_000, totals.collect()),
            connecting: Connecting::new(
                (plan.connecting.at_once as usize / lanes).max(1),
                plan.connecting.rate.map(|rate| rate / lanes as f64),
                jitter,
            ),
        })
    }

    fn log(&self, plan: &Plan, number: usize, lane: &Lane<'_>) -> Option<LaneLog> {
        let (log, file) = (plan.log.clone()?, Arc::clone(self.logs.get(number)?));
        let columns = Columns {
            lag: self.programs.iter().any(|program| program.open_loop),
            retries: self.programs.iter().any(|program| program.tries_max != 1),
        };
        let sample = self.deals[number].states.sample.clone();
        Some(LaneLog::new(file, log, columns, sample, lane.grid.began))
    }
}

/// Descriptors beside the clients' sockets: epolls, event descriptors, logs, pipes.
const OTHER_FILES: u64 = 64;

/// pgbench's order: clients first, then `default_seed`, then threads.
fn seeds(plan: &Plan, lanes: usize) -> Seeds {
    let clients = plan.workloads.iter().map(|workload| workload.clients as usize).sum();
    let given = plan
        .workloads
        .iter()
        .flat_map(|workload| &workload.variables)
        .find(|(name, _)| name == "default_seed")
        .and_then(|(_, value)| value.parse().ok());
    Seeds::new(plan.seed, clients, lanes, given)
}

/// What the lanes of one process get.
fn deal(plan: &Plan, part: &Part) -> Vec<Deal> {
    let lanes = part.lanes(plan);
    let first: usize = lanes[..part.index].iter().sum();
    deal_all(plan, part).drain(first..first + lanes[part.index]).collect()
}

/// Deals clients out to the lanes of all processes as pgbench deals them to threads: in runs, as
/// even as can be, or as the weights of the processes say.
fn deal_all(plan: &Plan, part: &Part) -> Vec<Deal> {
    let each = part.lanes(plan);
    let lanes = each.iter().sum();
    let Seeds { clients: mut prngs, threads, .. } = seeds(plan, lanes);
    let mut deals: Vec<Deal> = threads
        .into_iter()
        .enumerate()
        .map(|(number, states)| Deal {
            number: number as u32,
            states,
            clients: Vec::new(),
            shares: Vec::new(),
            offset: (number + 1) as f64 / lanes as f64,
        })
        .collect();
    // Workloads that run in turn are two sides of one comparison: they draw the same numbers.
    let twins = plan.blocks.is_some().then(|| prngs.clone());
    let mut id = 0;
    let mut first = 0;
    for (index, workload) in plan.workloads.iter().enumerate() {
        let left = workload.clients as usize;
        if let Some(twins) = &twins {
            prngs.splice(..left.min(prngs.len()), twins[..left].iter().cloned());
        }
        for (lane, n) in split(left, &each, &part.weights, first) {
            // A workload begins where the one before has ended, or many small ones would all
            // fall to the first lanes.
            let deal = &mut deals[lane];
            deal.shares.push(n as f64 / f64::from(workload.clients.max(1)));
            for prng in prngs.drain(..n) {
                deal.clients.push((index, id, prng));
                id += 1;
            }
        }
        first = (first + workload.clients as usize) % lanes;
    }
    deals
}

/// How many of a workload's clients each lane gets, beginning with lane `first`. Where all processes
/// weigh the same, lanes get equal numbers as in pgbench; otherwise processes get their shares, and
/// their lanes equal parts of those.
fn split(clients: usize, each: &[usize], weights: &[u32], first: usize) -> Vec<(usize, usize)> {
    let lanes: usize = each.iter().sum();
    if weights.windows(2).all(|pair| pair[0] == pair[1]) {
        return even(clients, lanes).map(|(lane, n)| ((first + lane) % lanes, n)).collect();
    }
    let (mut split, mut left, mut begin) = (Vec::new(), clients, 0);
    let mut weight_left: usize = weights.iter().map(|weight| *weight as usize).sum();
    for (index, (lanes, weight)) in each.iter().zip(weights).enumerate() {
        let weight = *weight as usize;
        let others = weights.len() - index - 1;
        let nearest = (2 * left * weight + weight_left) / (2 * weight_left);
        // Nobody goes without where there is one for each.
        let n = nearest.min(left.saturating_sub(others)).max(usize::from(left > others));
        let n = if others == 0 { left } else { n };
        split.extend(even(n, *lanes).map(|(lane, n)| (begin + (first + lane) % lanes, n)));
        left -= n;
        weight_left -= weight;
        begin += lanes;
    }
    split
}

/// pgbench's way to deal clients to lanes: in runs as even as can be, the longer ones first.
fn even(mut left: usize, lanes: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..lanes).map(move |lane| {
        let n = left.div_ceil(lanes - lane);
        left -= n;
        (lane, n)
    })
}

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
    for slot in &lane.slots {
        clients[slot.session.workload].insert(slot.session.id, slot.session.in_window);
    }
    let totals = std::mem::take(&mut lane.tally.totals);
    let workloads = totals.into_iter().zip(clients).map(|(mut totals, clients)| LaneWorkload {
        standstills: totals.standstills.as_mut().map(Standstills::take).unwrap_or_default(),
        transactions: totals.transactions,
        unknown: totals.unknown,
        aborted: totals.aborted,
        longest_ns: totals.longest_ns,
        open: totals.open,
        statements: totals.statements.into_iter().map(lane_statements).collect(),
        scripts: totals.scripts,
        clients,
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
        lag,
        messages_dropped: lane.connecting.messages_dropped,
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
        let idle = Connecting::new(1, None, Prng::from_seed(0));
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
            lag: Latency::new(),
            messages_dropped: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OnError, OnLoss, Pace, Protocol, Workload};

    fn plan(clients: &[u32], lanes: u32) -> Plan {
        let workload = |clients: &u32| Workload {
            name: "w".to_owned(),
            conninfo: String::new(),
            scripts: Vec::new(),
            clients: *clients,
            protocol: Protocol::Simple,
            pace: Pace::Closed,
            latency_limit_us: None,
            variables: Vec::new(),
            session: Vec::new(),
            on_error: OnError { tries_max: 1, go_on: false },
            connect_each: false,
            on_loss: OnLoss::Abort,
            describe: true,
        };
        Plan {
            workloads: clients.iter().map(workload).collect(),
            lanes,
            seed: 42,
            connecting: crate::Connecting::default(),
            limit: Limit::Transactions(1),
            drain_ms: None,
            interval_ms: 1_000,
            blocks: None,
            statements: false,
            log: None,
            ledger: None,
            exit_on_abort: false,
            verbose_errors: false,
            debug: false,
        }
    }

    #[test]
    fn clients_are_dealt_in_runs_as_even_as_can_be() {
        let check = |clients: &[u32], lanes, processes: u32, expected: &[&[u32]]| {
            let plan = plan(clients, lanes);
            let dealt: Vec<Vec<u32>> = (0..processes as usize)
                .flat_map(|index| deal(&plan, &Part::equal(index, processes)))
                .map(|deal| deal.clients.iter().map(|(_, id, _)| *id).collect())
                .collect();
            assert_eq!(dealt, expected, "{clients:?} on {processes} times {lanes} lanes");
        };
        check(&[5], 2, 1, &[&[0, 1, 2], &[3, 4]]);
        check(&[5], 1, 2, &[&[0, 1, 2], &[3, 4]]);
        check(&[2], 8, 1, &[&[0], &[1]]);
        // Small workloads do not all fall to the first lane.
        check(&[1, 1, 1], 3, 1, &[&[0], &[1], &[2]]);
        check(&[3, 1], 2, 1, &[&[0, 1], &[2, 3]]);
        check(&[1], 2, 2, &[&[0], &[]]);
    }

    #[test]
    fn clients_are_shared_by_weight() {
        let check = |clients: &[u32], lanes, weights: &[u32], expected: &[u32]| {
            let plan = plan(clients, lanes);
            let part = Part { index: 0, weights: weights.to_vec() };
            let what = format!("{clients:?} by {weights:?}, {lanes} lanes each");
            assert_eq!(part.clients(&plan), expected, "{what}");
            let mut ids: Vec<u32> = (0..weights.len())
                .flat_map(|index| deal(&plan, &Part { index, weights: weights.to_vec() }))
                .flat_map(|deal| deal.clients.into_iter().map(|(_, id, _)| id))
                .collect();
            ids.sort_unstable();
            let all: Vec<u32> = (0..clients.iter().sum()).collect();
            assert_eq!(ids, all, "every client once: {what}");
        };
        check(&[100], 1, &[1, 3], &[25, 75]);
        check(&[100], 2, &[1, 3], &[25, 75]);
        check(&[4_000], 4, &[1, 1, 1, 1], &[1_000; 4]);
        check(&[10], 1, &[1, 1, 1], &[4, 3, 3]);
        check(&[10], 3, &[7, 1], &[9, 1]);
        check(&[6, 6], 2, &[2, 1], &[8, 4]);
    }

    /// What a client draws depends on its number and the seed only, and which script it runs on its
    /// lane's.
    #[test]
    fn clients_draw_the_same_numbers_however_many_processes_there_are() {
        let plan_of = |lanes| plan(&[12], lanes);
        let draws = |lanes, weights: &[u32]| {
            let deals = (0..weights.len()).flat_map(|index| {
                deal(&plan_of(lanes), &Part { index, weights: weights.to_vec() })
            });
            let clients = deals.flat_map(|deal| {
                let mut choose = deal.states.choose.clone();
                let chosen = choose.double();
                deal.clients.into_iter().map(move |(_, id, mut prng)| (id, prng.double(), chosen))
            });
            clients.collect::<Vec<_>>()
        };
        let one = draws(4, &[1]);
        assert_eq!(draws(1, &[1; 4]), one);
        assert_eq!(draws(2, &[1; 2]), one);
        let numbers = |of: Vec<(u32, f64, f64)>| -> Vec<_> {
            of.into_iter().map(|(id, number, _)| (id, number)).collect()
        };
        assert_eq!(numbers(draws(1, &[5, 1])), numbers(one));
    }

    #[test]
    fn shares_of_the_pace_add_up_whatever_the_processes() {
        let plan = plan(&[7, 2], 2);
        let mut sums = [0.0; 2];
        for index in 0..3 {
            for deal in deal(&plan, &Part { index, weights: vec![1, 5, 2] }) {
                sums.iter_mut().zip(&deal.shares).for_each(|(sum, share)| *sum += share);
            }
        }
        sums.iter().for_each(|sum| assert!((sum - 1.0).abs() < 1e-9, "{sums:?}"));
    }
}
