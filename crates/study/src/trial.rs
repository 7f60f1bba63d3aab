//! One trial, from servers that are reset to figures that are computed.

use std::fmt;
use std::sync::mpsc::channel;
use std::thread;

use check::Before;
use load::{End, LoadError, Outcome, Plan, Urgency};
use probe::Readings;
use record::{Ending, Fault, Finished, Moment, Reason};
use site::{Recovered, Site};
use spec::Planned;

use crate::clock;
use crate::event::Stage;
use crate::exposure;
use crate::load_plan;
use crate::meter::{self, Agenda, Metered};
use crate::order::Order;
use crate::powerless::Powerless;
use crate::progress::LoadProgress;
use crate::ready;
use crate::result::{Loaded, blank, fill, log_tails};
use crate::samplers::Samplers;
use crate::watch::Watch;

/// How a trial came out.
pub(crate) enum Ran {
    /// It is over, for better or worse.
    Finished(Box<Finished>),
    /// A statement failed that was not expected to: others will fail, too.
    Stopped { finished: Box<Finished>, why: String },
    /// It was interrupted: nothing of it counts, except that it was begun.
    Interrupted(Box<Finished>),
}

/// Why a trial broke.
enum Broke {
    /// In one way or another.
    Somehow(Reason<Fault>),
    /// By a statement that was not expected to fail: its place and the server's words.
    Statement(String),
}

impl Broke {
    /// What nothing else is known of is the rig's fault, or the study's.
    fn rig(error: impl fmt::Display) -> Broke {
        Broke::Somehow(Reason { kind: Fault::Rig, text: error.to_string() })
    }

    /// The same after the load.
    fn after(error: impl fmt::Display) -> Broke {
        Broke::rig(format_args!("after the load: {error}"))
    }
}

/// Runs one trial on a site. What breaks it becomes its ending.
pub(crate) fn run(order: &Order<'_>, site: &mut Site, observe: &mut dyn FnMut(Stage)) -> Ran {
    let started_at = clock::wall();
    let began = clock::now(order.origin);
    let result = attempt(order, site, observe);
    let mut finished = blank(order, started_at, began);
    if order.control.urgency() != Urgency::None {
        let after_s = clock::now(order.origin).since(began) as f64 / 1e9;
        finished.trial.ending = Ending::Interrupted(format!("by a signal, after {after_s:.1} s"));
        finished.trial.ended = clock::now(order.origin);
        return Ran::Interrupted(Box::new(finished));
    }
    match result {
        Ok(loaded) => fill(order, loaded, &mut finished),
        Err(Broke::Somehow(why)) => {
            finished.trial.ending = Ending::Failed(why);
            finished.logs = log_tails(site);
        }
        Err(Broke::Statement(why)) => {
            finished.trial.ending = Ending::failed(Fault::Rig, why.clone());
            finished.trial.ended = clock::now(order.origin);
            return Ran::Stopped { finished: Box::new(finished), why };
        }
    }
    finished.trial.ended = clock::now(order.origin);
    Ran::Finished(Box::new(finished))
}

/// An error if the user has asked for the end: it is not worth while to go on.
fn go_on(order: &Order<'_>) -> Result<(), Broke> {
    match order.control.urgency() {
        Urgency::None => Ok(()),
        Urgency::Clean | Urgency::AtOnce => Err(Broke::rig("interrupted")),
    }
}

fn attempt(
    order: &Order<'_>,
    site: &mut Site,
    observe: &mut dyn FnMut(Stage),
) -> Result<Loaded, Broke> {
    let point = order.point;
    let place = ready::Place { labs: order.labs, program: order.generator };
    let warmed = ready::servers(point, site, order.alone, &place, order.control);
    let warmed = warmed.map_err(Broke::rig)?;
    go_on(order)?;
    check::prepare(point, site).map_err(Broke::rig)?;
    go_on(order)?;
    ready::fronts(point, site, &place).map_err(Broke::rig)?;
    go_on(order)?;
    check::back_up(point, site).map_err(Broke::rig)?;
    go_on(order)?;
    site::flush_disks(site).map_err(Broke::rig)?;
    let samplers = Samplers::start(point, site, order.fleet, order.origin).map_err(Broke::rig)?;
    let loaded = load(order, site, &samplers, observe);
    // The samplers are stopped whatever became of the load: they hold connections.
    let readings = samplers.stop(order.fleet);
    go_on(order)?;
    site.check_alive(point)
        .map_err(|error| Broke::Somehow(Reason { kind: Fault::Server, text: error.to_string() }))?;
    let (outcome, metered, messages) = loaded?;
    let found = check(order, site, &outcome, &metered, &readings)?;
    let data_host = site.data_node().host().map(str::to_owned);
    Ok(Loaded { outcome, readings, metered, warmed, messages, found, data_host })
}

/// Starts the servers that lost their power, and makes the point's checks.
fn check(
    order: &Order<'_>,
    site: &mut Site,
    outcome: &Outcome,
    metered: &Metered,
    readings: &Readings,
) -> Result<check::Outcome, Broke> {
    let point = order.point;
    go_on(order)?;
    let recovered = site::recover(site, &metered.cuts).map_err(Broke::after)?;
    let faults: Vec<Moment> = metered.faults().collect();
    let lost = recovered.iter().filter(|one| one.has_lost_all());
    let lost: Vec<String> = lost.map(|one| one.taken.node.clone()).collect();
    let before = Before {
        point,
        control: order.control,
        ledger: order.ledger,
        exposed: &[],
        window: outcome.window,
        faults: &faults,
        paused: &metered.paused,
        lost: &lost,
        workloads: &outcome.workloads,
        deltas: &readings.deltas,
    };
    let (mut exposed, mut unreadable) = (check::Outcome::default(), None);
    let mut checked = check::Outcome::default();
    if recovered.iter().all(Recovered::runs) {
        let read = exposure::read(site, order.origin, &metered.deaths, &readings.samples);
        let found = match read {
            Ok(read) => {
                let before = Before { exposed: &read.stretches, ..before };
                let found = check::all(site, &before).map_err(|error| error.to_string());
                found.map(|found| (found, read.outcome))
            }
            Err(error) => Err(error.to_string()),
        };
        match found {
            Ok(found) => (checked, exposed) = found,
            // That something cannot be read is what a power cut may have done.
            Err(why) if !recovered.is_empty() => unreadable = Some(why),
            Err(why) => return Err(Broke::after(why)),
        }
    } else if !lost.is_empty() {
        // There is nothing to look at but what the clients have kept.
        let found = check::ledger(site, &before).and_then(|mut found| {
            found.add(check::history(site, &before)?);
            Ok(found)
        });
        match found {
            Ok(found) => checked = found,
            Err(why) => unreadable = Some(why.to_string()),
        }
    }
    let mut found = match recovered.is_empty() {
        true => check::Outcome::default(),
        false => Powerless { recovered, unreadable }.outcome(&checked),
    };
    found.add(checked);
    go_on(order)?;
    found.add(check::restore(site, &before).map_err(Broke::after)?);
    go_on(order)?;
    found.add(check::counts(site, &before).map_err(Broke::after)?);
    found.add(exposed);
    Ok(found)
}

/// The load on this thread, the meter on another one.
fn load(
    order: &Order<'_>,
    site: &mut Site,
    samplers: &Samplers,
    observe: &mut dyn FnMut(Stage),
) -> Result<(Outcome, Metered, Vec<String>), Broke> {
    let point = order.point;
    let throttles = site.limit_io(point).map_err(Broke::rig)?;
    let conninfos = site.conninfos();
    let schema = site.data_node().schema.filter(|_| !site.is_sharded());
    let mut plan = load_plan::plan(point, order.planned, &conninfos, schema);
    plan.ledger = load_plan::ledger(point, order.ledger, ledger_seed(order.planned));
    plan.history = load_plan::history(point, order.ledger);
    let planned = order.planned;
    let agenda = &Agenda {
        point,
        at_ms: &planned.at_ms,
        origin: order.origin,
        // Trials of one round draw the same numbers; their cuts shall not be the same.
        cut_seed: planned.seed.wrapping_add(planned.number as u64),
        samplers,
    };
    let (opens, is_open) = channel::<Moment>();
    let site = &mut *site;
    let mut watch = Watch::new(LoadProgress::of(point));
    let (outcome, metered) = thread::scope(|scope| {
        let meter = scope.spawn(move || meter::follow(agenda, site, &is_open));
        let outcome = {
            let mut hear = |event: load::Event<'_>| {
                match event {
                    load::Event::Connecting { done, of } => {
                        observe(Stage::Connecting { done, of });
                    }
                    load::Event::Generators(pids) => {
                        for (index, pid) in pids.iter().enumerate() {
                            samplers.watch_generator(index + 1, *pid);
                        }
                    }
                    _ => {}
                }
                let (stage, opening) = watch.hear(event);
                if let Some(open) = opening {
                    // The meter only goes away first if its thread has panicked.
                    let _ = opens.send(open);
                }
                if let Some(stage) = stage {
                    observe(stage);
                }
            };
            run_plan(&plan, point.generators, order, &mut hear)
        };
        // Whatever an action is still at need not be slow any more.
        throttles.lift_all();
        drop(opens);
        (outcome, meter.join().unwrap_or_default())
    });
    let messages = watch.messages;
    let outcome = outcome.map_err(|error| Broke::rig(load_failure(&error)))?;
    match (outcome.end, watch.failed) {
        (End::ExitedOnAbort(_), Some(why)) => Err(Broke::Statement(why)),
        _ => Ok((outcome, metered, messages)),
    }
}

/// Trials of one round draw the same numbers; their rows must not pass for one another's.
fn ledger_seed(planned: &Planned) -> u64 {
    planned.seed.wrapping_add(planned.number as u64)
}

fn run_plan(
    plan: &Plan,
    generators: u32,
    order: &Order<'_>,
    observe: &mut dyn FnMut(load::Event<'_>),
) -> Result<Outcome, LoadError> {
    let hosts = order.fleet.map(|fleet| fleet.generators());
    let fleet = match (&hosts, order.fleet) {
        (Some(hosts), Some(fleet)) => load::Fleet::Hosts { hosts, on_loss: fleet.on_loss() },
        _ => load::Fleet::here(generators, order.generator),
    };
    load::drive(plan, fleet, order.control, order.origin, observe)
}

fn load_failure(error: &LoadError) -> String {
    let count = match error {
        LoadError::Connect { connected, clients, .. } => {
            format!(" ({connected} of {clients} clients were connected)")
        }
        _ => String::new(),
    };
    let hint = error.hint().map(|hint| format!("; hint: {hint}")).unwrap_or_default();
    format!("{error}{count}{hint}")
}
