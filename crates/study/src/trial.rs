//! One trial, from servers that are reset to figures that are computed.

pub(crate) mod act;
pub(crate) mod aftermath;
mod awaiting;
pub(crate) mod blame;
pub(crate) mod broke;
mod capacity;
pub(crate) mod ending;
pub(crate) mod exposure;
pub(crate) mod figures;
pub(crate) mod held;
pub(crate) mod host_use;
pub(crate) mod lateness;
pub(crate) mod leaks;
pub(crate) mod load_plan;
pub(crate) mod meter;
pub(crate) mod order;
pub(crate) mod powerless;
pub(crate) mod progress;
pub(crate) mod ready;
pub(crate) mod replication;
pub(crate) mod result;
pub(crate) mod roles;
pub(crate) mod samplers;
pub(crate) mod schedule;
pub(crate) mod stage;
pub(crate) mod watchdog;
pub(crate) mod watchers;

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use host::monotonic_ns;
use load::{LaneFleet, LoadEnd, LoadError, LoadEvent, StopUrgency};
use measure::{LoadMeasurement, LoadObserver, PreparedLoad, UnaskedCrashes};
use record::{
    AttemptEnding, EndingReason, FaultyParty, FinishedTrial, InterruptedState, Moment, Trial,
};
use site::Site;
use spec::{ScheduledTrial, metrics};

use crate::clock;
use crate::fleet::StudyHosts;
use crate::trial::broke::TrialFailure;
use crate::trial::capacity::SizedPoint;
use crate::trial::leaks::Leaks;
use crate::trial::meter::WindowReadings;
use crate::trial::order::TrialOrder;
use crate::trial::progress::LoadProgress;
use crate::trial::ready::PreparedPoint;
use crate::trial::result::{TrialEvidence, blank, fill, log_tails, needs_its_ledger};
use crate::trial::roles::Roles;
use crate::trial::samplers::{SampledPlace, Samplers};
use crate::trial::schedule::WindowAgenda;
use crate::trial::stage::LoadStage;
use crate::trial::watchers::ServerWatchers;

/// The result of a trial.
pub(crate) enum TrialEnd {
    /// It is over, for better or worse.
    Finished(Box<FinishedTrial>),
    /// A statement is wrong: others will fail, too.
    Stopped { finished: Box<FinishedTrial>, why: String },
    /// It was interrupted.
    Interrupted(Box<FinishedTrial>),
    /// The record has no room for it.
    Unrecorded(record::Error),
}

/// The facts that are known of a trial however it ends.
#[derive(Default)]
struct Seen {
    /// The load was begun.
    has_begun: bool,
    /// Crashes that nothing explains, once its servers were asked.
    crashes: Option<UnaskedCrashes>,
    /// An interrupted attempt was looked at, and nothing was wrong.
    is_sound: bool,
}

/// Runs one trial on a site. What breaks it becomes its ending.
pub(crate) fn run(
    order: &TrialOrder<'_>,
    site: &mut Site,
    observe: &mut dyn FnMut(LoadStage),
) -> TrialEnd {
    let mut finished = blank(order);
    let mut seen = Seen::default();
    let mut result = attempt(order, site, &mut seen, &finished, observe);
    if order.control.urgency() != StopUrgency::None
        && !matches!(result, Err(TrialFailure::Record(_)))
    {
        result = Err(TrialFailure::Interrupted);
    }
    let crashed = seen.crashes.as_ref().and_then(UnaskedCrashes::why);
    let crash = |why: Option<String>| {
        // What clients and the rig heard of it follows from the crash.
        let text = crashed.clone().into_iter().chain(why).collect::<Vec<_>>().join("; ");
        AttemptEnding::failed(FaultyParty::Server, text)
    };
    let mut stopped = None;
    match result {
        Ok(loaded) => {
            fill(order, loaded, &mut finished);
            if crashed.is_some() {
                finished.trial.ending = crash(None);
            }
        }
        Err(TrialFailure::Somehow(why)) => {
            finished.trial.ending = match crashed {
                Some(_) => crash(Some(why.text)),
                None => AttemptEnding::Failed(why),
            };
        }
        Err(TrialFailure::Statement(why)) => {
            finished.trial.ending = match crashed {
                Some(_) => crash(Some(why.clone())),
                None => AttemptEnding::failed(FaultyParty::Study, why.clone()),
            };
            stopped = crashed.is_none().then_some(why);
        }
        Err(TrialFailure::Interrupted) => {
            let after_s = clock::now(order.origin).since(finished.trial.began) as f64 / 1e9;
            let text = format!("by a signal, after {after_s:.1} s");
            let kind = match (seen.has_begun, crashed.is_some(), seen.is_sound) {
                (false, ..) => InterruptedState::BeforeLoad,
                (true, false, true) => InterruptedState::Checked,
                (true, ..) => InterruptedState::Unchecked,
            };
            finished.trial.ending = match crashed {
                Some(_) => crash(Some(format!("interrupted {text}"))),
                None => AttemptEnding::interrupted(kind, text),
            };
        }
        Err(TrialFailure::Record(error)) => return TrialEnd::Unrecorded(error),
    }
    if let Some(HostAtFault { name, why, is_lost }) = host_at_fault(order, &finished.trial) {
        // The study itself brought about what its servers did.
        let of_others = seen.crashes.map(|crashes| {
            crashes.without(|node| site.hosts().any(|(one, on)| one == node && on == name))
        });
        // A server that crashed elsewhere did not do so because a disk was full here.
        if is_lost || of_others.as_ref().is_none_or(|crashes| crashes.total() == 0) {
            finished.trial.ending = AttemptEnding::failed(FaultyParty::ServerHost, why);
            stopped = None;
        }
        seen.crashes = of_others;
    }
    note_crashes(&seen, &mut finished);
    if finished.trial.ending != AttemptEnding::Done || needs_its_ledger(&finished.trial) {
        finished.logs = log_tails(site);
    }
    finished.trial.ended = clock::now(order.origin);
    let finished = Box::new(finished);
    match stopped {
        Some(why) => TrialEnd::Stopped { finished, why },
        None if order.control.urgency() != StopUrgency::None => TrialEnd::Interrupted(finished),
        None => TrialEnd::Finished(finished),
    }
}

/// A host with servers that may have broken a trial.
struct HostAtFault {
    name: String,
    why: String,
    /// It is gone, and its disk was not only full for a while.
    is_lost: bool,
}

/// The host with servers that may have broken a trial: it is lost, or its disk was full. None where the trial has an end
/// that no host explains.
fn host_at_fault(order: &TrialOrder<'_>, trial: &Trial) -> Option<HostAtFault> {
    let fleet = order.fleet?;
    if let Some((host, why)) = fleet.lost_with_servers()
        && matches!(
            trial.ending,
            AttemptEnding::Failed(_) | AttemptEnding::Done | AttemptEnding::Void(_)
        )
    {
        let name = &host.entry().name;
        let why = format!("host {name} is lost: {why}");
        return Some(HostAtFault { name: name.clone(), why, is_lost: true });
    }
    let AttemptEnding::Failed(EndingReason {
        kind: FaultyParty::Server | FaultyParty::Unknown,
        text,
    }) = &trial.ending
    else {
        return None;
    };
    let now_ns = monotonic_ns();
    let (host, ns) = fleet.fullest_disk(now_ns.saturating_sub(lasted_ns(order, trial)), now_ns)?;
    let (name, seconds) = (&host.entry().name, ns as f64 / 1e9);
    let why = format!("host {name} had a full disk for {seconds:.1} s of the trial: {text}");
    Some(HostAtFault { name: name.clone(), why, is_lost: false })
}

/// Time since a trial began.
fn lasted_ns(order: &TrialOrder<'_>, trial: &Trial) -> u64 {
    clock::now(order.origin).since(trial.began)
}

/// The crashes that nothing explains, as figures: of each server, and of all.
fn note_crashes(seen: &Seen, finished: &mut FinishedTrial) {
    // Where nobody could look for crashes, no figure says that there were none.
    let Some(crashes) = &seen.crashes else { return };
    let metrics = &mut finished.trial.metrics;
    let scopes = metrics.entry(metrics::UNASKED_CRASHES.name.to_owned()).or_default();
    let counts = crashes.counts.iter().map(|(node, count)| (node.clone(), *count as f64));
    scopes.extend(counts);
    scopes.insert(String::new(), crashes.total() as f64);
}

/// Does a part of a trial, which ends by itself where it hangs.
fn patiently<T>(
    limit: Duration,
    part: &str,
    work: impl FnOnce() -> Result<T, TrialFailure>,
) -> Result<T, TrialFailure> {
    measure::patiently(limit, part, TrialFailure::unknown, work)
}

fn attempt(
    order: &TrialOrder<'_>,
    site: &mut Site,
    seen: &mut Seen,
    blank: &FinishedTrial,
    observe: &mut dyn FnMut(LoadStage),
) -> Result<TrialEvidence, TrialFailure> {
    let point = order.point;
    let (load_limit, other_limit) = (watchdog::load_limit(point), watchdog::other_limit(point));
    let (PreparedPoint { warmed, crossings }, values, sized) =
        patiently(other_limit, "the preparation", || prepare(order, site))?;
    let order = &TrialOrder { point: &sized.point, ..*order };
    let point = order.point;
    order.begins(&blank.trial).map_err(TrialFailure::Record)?;
    seen.has_begun = true;
    let (loaded, metered, readings, watched) = patiently(load_limit, "the load", || {
        let samplers = Samplers::start(point, site, order.fleet, order.origin)
            .map_err(|error| TrialFailure::by(&error))?;
        let watchers = ServerWatchers::start(site, &point.timeline, order.origin);
        let (loaded, metered) = load(order, site, &samplers, watchers.roles(), observe);
        // They are stopped whatever became of the load: they hold connections.
        Ok((loaded, metered, samplers.stop(order.fleet), watchers.stop()))
    })?;
    let nodes = point.topology.nodes.iter().filter(|node| node.is_postgres());
    let nodes = nodes.map(|node| node.name.as_str());
    seen.crashes = Some(UnaskedCrashes::of(nodes, &metered.ends, &readings));
    if order.control.urgency() == StopUrgency::Clean {
        let has_run = matches!(loaded, Ok(_) | Err(TrialFailure::Interrupted));
        seen.is_sound = has_run && aftermath::is_sound(order, site, &metered);
    }
    order.go_on()?;
    let is_down = |node: &str| metered.is_down(node);
    site.check_alive(&is_down).map_err(TrialFailure::server)?;
    let measured = loaded?;
    let outcome = &measured.outcome;
    let leaks = patiently(other_limit, "looking at the pooler's backends", || {
        Ok(Leaks::look(point, site, outcome))
    })?;
    let found = patiently(other_limit, "the checks", || {
        site.check_answers(&is_down)
            .map_err(|error| TrialFailure::server(format_args!("after the load: {error}")))?;
        aftermath::check(order, site, outcome, &metered, &readings, &values)
    });
    let mut found = found.map_err(|broke| after_action(broke, &metered))?;
    found.figures.extend(sized.figures.iter().cloned());
    if let Some(window) = outcome.window {
        found.add(watched.outcome(window, metered.first_action()));
    }
    let data = site.data_node();
    Ok(TrialEvidence {
        measured,
        readings,
        metered,
        warmed,
        crossings,
        found,
        leaks,
        data_node: data.name.clone(),
        data_host: data.host().map(str::to_owned),
    })
}

/// A check that fails after an action that failed is due to that action.
fn after_action(broke: TrialFailure, metered: &WindowReadings) -> TrialFailure {
    let failed = metered.failures.iter().find_map(|one| Some((one.fault?, &one.text)));
    match (broke, failed) {
        (TrialFailure::Somehow(why), Some((fault, text))) => {
            TrialFailure::somehow(fault, format_args!("{text}; {}", why.text))
        }
        (broke, _) => broke,
    }
}

/// Gets servers, checks and fronts ready for the clients.
fn prepare(
    order: &TrialOrder<'_>,
    site: &mut Site,
) -> Result<(PreparedPoint, check::QueryValues, SizedPoint), TrialFailure> {
    let point = order.point;
    let place = ready::ServiceContext { labs: order.labs, program: order.generator };
    let ready = ready::servers(point, site, order.alone, &place, order.control);
    let ready = ready.map_err(TrialFailure::unknown)?;
    order.go_on()?;
    check::prepare(point, site).map_err(|error| match error.is_of_study() {
        true => TrialFailure::somehow(FaultyParty::Study, error),
        false => TrialFailure::by(&error),
    })?;
    order.go_on()?;
    ready::fronts(point, site, &place).map_err(TrialFailure::unknown)?;
    order.go_on()?;
    let sized = SizedPoint::of(order, site)?;
    order.go_on()?;
    check::back_up(point, site).map_err(|error| TrialFailure::by(&error))?;
    order.go_on()?;
    let values = check::values(point, site).map_err(|error| TrialFailure::by(&error))?;
    order.go_on()?;
    site::flush_disks(site).map_err(|error| TrialFailure::by(&error))?;
    Ok((ready, values, sized))
}

/// The load on this thread, the meter on another one.
fn load(
    order: &TrialOrder<'_>,
    site: &mut Site,
    samplers: &Samplers,
    roles: &Roles,
    observe: &mut dyn FnMut(LoadStage),
) -> (Result<LoadMeasurement, TrialFailure>, WindowReadings) {
    let point = order.point;
    let throttles = match site.limit_io(point) {
        Ok(throttles) => throttles,
        Err(error) => return (Err(TrialFailure::by(&error)), WindowReadings::default()),
    };
    let conninfos = site.conninfos();
    let schema = site.data_node().schema.filter(|_| !site.is_sharded());
    let mut plan = load_plan::plan(point, order.planned, &conninfos, schema);
    plan.ledger = load_plan::ledger(point, order.ledger, ledger_seed(order.planned));
    plan.history = load_plan::history(point, order.ledger);
    let planned = order.planned;
    let agenda = &WindowAgenda {
        point,
        at_ms: &planned.at_ms,
        origin: order.origin,
        // Trials of one round draw the same numbers; their cuts shall not be the same.
        cut_seed: planned.seed.wrapping_add(planned.number as u64),
        samplers,
        roles,
    };
    let place = SampledPlace::of(site, point, &conninfos);
    let sampled = place.iter().map(|place| place.server(point)).collect();
    let load = PreparedLoad::new(&plan, order.origin, sampled);
    let (opens, is_open) = channel::<Moment>();
    let site = &mut *site;
    let (measured, metered) = thread::scope(|scope| {
        let meter = scope.spawn(move || schedule::follow(agenda, site, &is_open));
        let mut tell_meter = |event: &LoadEvent<'_>| match event {
            LoadEvent::WindowOpens { at } => {
                // The meter only goes away first if its thread has panicked.
                let _ = opens.send(*at);
            }
            LoadEvent::Generators(pids) => {
                for (index, pid) in pids.iter().enumerate() {
                    samplers.watch_generator(index + 1, *pid);
                }
            }
            _ => {}
        };
        let mut progress = LoadProgress::of(point, observe);
        let observers: &mut [&mut dyn LoadObserver] = &mut [&mut tell_meter, &mut progress];
        let hosts = order.fleet.map(StudyHosts::generators);
        let fleet = match (&hosts, order.fleet) {
            (Some(hosts), Some(fleet)) => LaneFleet::Hosts { hosts, on_loss: fleet.on_loss() },
            _ => LaneFleet::here(point.generators, order.generator),
        };
        let measured = load.run(fleet, order.control, observers);
        // Whatever an action is still at need not be slow any more.
        throttles.lift_all();
        drop(opens);
        (measured, meter.join().unwrap_or_else(|_| WindowReadings::of_panic()))
    });
    let result = match measured {
        Ok(measured) => match (measured.outcome.end, &measured.messages.failed) {
            (LoadEnd::ExitedOnAbort(_), Some(why)) => {
                Err(match blame::of_load(&measured.outcome) {
                    FaultyParty::Study => TrialFailure::Statement(why.clone()),
                    fault => TrialFailure::somehow(fault, why),
                })
            }
            _ => Ok(measured),
        },
        Err(LoadError::Interrupted { .. }) => Err(TrialFailure::Interrupted),
        Err(error) => {
            Err(TrialFailure::somehow(blame::of_load_error(&error), load_failure(&error)))
        }
    };
    (result, metered)
}

/// Trials of one round draw the same numbers; their rows must not pass for one another's.
fn ledger_seed(planned: &ScheduledTrial) -> u64 {
    planned.seed.wrapping_add(planned.number as u64)
}

pub(crate) fn load_failure(error: &LoadError) -> String {
    let count = match error {
        LoadError::Connect { connected, clients, .. } => {
            format!(" ({connected} of {clients} clients were connected)")
        }
        _ => String::new(),
    };
    // Not every error has a hint.
    let hint = error.hint().map(|hint| format!("; hint: {hint}")).unwrap_or_default();
    format!("{error}{count}{hint}")
}
