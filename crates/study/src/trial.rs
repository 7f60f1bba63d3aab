//! One trial, from servers that are reset to figures that are computed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Instant;

use load::{Control, End, LoadError, Outcome, Plan, Urgency};
use probe::{Config, Probes, Readings, Running};
use record::{
    Ending, Fault, Finished, Generator, Mark, MarkKind, Moment, Note, NoteKind, Phase, Reason,
    SkipKind, Trial, VoidKind, Window,
};
use spec::{Check, Planned, Point, Profile};
use stats::Latency;

use crate::amcheck::{self, Amchecked};
use crate::checksums::{self, Checksummed};
use crate::clock;
use crate::counts::{self, Counted};
use crate::event::Stage;
use crate::explain::{self, Explained};
use crate::exposure::{self, Exposed};
use crate::ledger;
use crate::links::SiteLink;
use crate::load_plan;
use crate::meter::{self, Agenda, Metered};
use crate::metrics::{self, Evidence};
use crate::power::{self, Powerless, Recovered};
use crate::progress::Progress;
use crate::restore::{self, Restored};
use crate::settle;
use crate::sharded::Placement;
use crate::site::{Alone, Site};
use crate::site_node::SiteNode;
use crate::sql;
use crate::steadiness::{self, Steadiness};
use crate::warm::{self, Warmed};

/// What a trial is given.
pub(crate) struct Order<'a> {
    pub(crate) point: &'a Point,
    pub(crate) planned: &'a Planned,
    /// Which attempt at this trial it is, from 1.
    pub(crate) attempt: usize,
    pub(crate) profile: Profile,
    /// Zero of every moment.
    pub(crate) origin: Instant,
    pub(crate) control: &'a Control,
    pub(crate) alone: Alone,
    /// Where its servers live, if they are the rig's.
    pub(crate) lab: Option<&'a lab::Lab>,
    /// The program of generator processes.
    pub(crate) generator: &'a Path,
    /// Where its clients keep their ledger, if they keep one.
    pub(crate) ledger: &'a Path,
}

/// How a trial came out.
pub(crate) enum Ran {
    /// It is over, for better or worse.
    Finished(Box<Finished>),
    /// A statement failed that was not expected to: others will fail, too.
    Stopped { finished: Box<Finished>, why: String },
    /// Somebody interrupted it; half a trial is none.
    Interrupted,
}

/// Why a trial broke.
enum Broke {
    /// In one way or another.
    Somehow(Reason<Fault>),
    /// By a statement that was not expected to fail: its place and the server's words.
    Statement(String),
}

impl From<String> for Broke {
    fn from(why: String) -> Broke {
        // What nothing else is known of is the rig's fault, or the study's.
        Broke::Somehow(Reason { kind: Fault::Rig, text: why })
    }
}

/// Runs one trial on a site. What breaks it becomes its ending.
pub(crate) fn run(order: &Order<'_>, site: &mut Site, observe: &mut dyn FnMut(Stage)) -> Ran {
    let started_at = clock::wall();
    let began = clock::now(order.origin);
    let result = attempt(order, site, observe);
    if order.control.urgency() != Urgency::None {
        return Ran::Interrupted;
    }
    let mut finished = blank(order, started_at, began);
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

/// A trial that is not run at all.
pub(crate) fn skipped(order: &Order<'_>, why: String) -> Finished {
    let mut finished = blank(order, clock::wall(), clock::now(order.origin));
    finished.trial.ending = Ending::skipped(SkipKind::CannotRunHere, why);
    finished.trial.ended = finished.trial.began;
    finished
}

/// Everything that was measured.
struct Loaded {
    outcome: Outcome,
    readings: Readings,
    metered: Metered,
    warmed: Warmed,
    messages: Vec<String>,
    /// What became of the servers that lost their power.
    powerless: Powerless,
    checked: Checked,
    /// What came of the servers that were restored.
    restored: Vec<Restored>,
}

fn attempt(
    order: &Order<'_>,
    site: &mut Site,
    observe: &mut dyn FnMut(Stage),
) -> Result<Loaded, Broke> {
    let point = order.point;
    let ready = site.prepare(point, order.alone, order.lab, order.generator);
    ready.map_err(|error| error.to_string())?;
    let warmed = warm_up(point, site)?;
    before(order, site)?;
    site.prove_streaming().map_err(|error| error.to_string())?;
    ledger::prepare(point, site)?;
    let put = site.put_in_front(point, order.lab, order.generator);
    put.map_err(|error| error.to_string())?;
    site.route_cluster(point)?;
    restore::back_up(point, site)?;
    power::settle(site)?;
    let probes = Probes::start(probe_config(point, site), order.origin);
    let probes = probes.map_err(|error| error.to_string())?;
    let loaded = load(order, site, &probes, observe);
    // The probes are stopped whatever became of the load: they hold connections.
    let readings = probes.stop();
    let is_alive = site.check_alive(point);
    is_alive.map_err(|text| Broke::Somehow(Reason { kind: Fault::Server, text }))?;
    let (outcome, metered, messages) = loaded?;
    let after = |why| format!("after the load: {why}");
    let recovered = power::recover(site, &metered.cuts).map_err(after)?;
    let checked = match recovered.iter().all(Recovered::runs) {
        true => check(order, site, &metered, &readings, outcome.window),
        false => Ok(Checked::default()),
    };
    // That something cannot be read is what a power cut may have done.
    let (checked, unreadable) = match checked {
        Ok(checked) => (checked, None),
        Err(why) if !recovered.is_empty() => (Checked::default(), Some(why)),
        Err(why) => return Err(after(why).into()),
    };
    let powerless = Powerless { recovered, unreadable };
    let restored = restore::restore_all(point, site, order.ledger).map_err(after)?;
    Ok(Loaded { outcome, readings, metered, warmed, messages, powerless, checked, restored })
}

/// What the point's checks have found.
#[derive(Default)]
struct Checked {
    placement: Option<Placement>,
    ledger: ledger::Checked,
    amchecked: Vec<Amchecked>,
    explained: Vec<Explained>,
    checksummed: Vec<Checksummed>,
    exposed: Exposed,
}

fn check(
    order: &Order<'_>,
    site: &mut Site,
    metered: &Metered,
    readings: &Readings,
    window: Option<Window>,
) -> Result<Checked, String> {
    let point = order.point;
    let exposed = exposure::read(site, order.origin, &metered.deaths, &readings.samples)?;
    settle::settle(point, site, metered)?;
    let faults: Vec<Moment> = metered.faults().collect();
    let ledger = ledger::check_all(point, site, order.ledger, &exposed.stretches, window, &faults)?;
    let amchecked = amcheck::check_all(point, site)?;
    let placement = match point.checks.contains(&Check::Placement) {
        true => site.placement().map_err(|why| format!("counting rows: {why}"))?,
        false => None,
    };
    let explained = explain::explain_all(point, site)?;
    let checksummed = checksums::check_all(point, site)?;
    Ok(Checked { placement, ledger, amchecked, explained, checksummed, exposed })
}

fn warm_up(point: &Point, site: &Site) -> Result<Warmed, String> {
    let Some(warm) = &point.data.warm else { return Ok(Warmed::default()) };
    let mut client = site.data_node().connect().map_err(|error| error.to_string())?;
    warm::warm(&mut client, warm).map_err(|why| format!("warming: {why}"))
}

/// The study's steps, then the statistics of each server begin anew where they are ours.
fn before(order: &Order<'_>, site: &Site) -> Result<(), String> {
    let mut clients: BTreeMap<&str, postgres::Client> = BTreeMap::new();
    for step in &order.point.before {
        let Some(node) = site.node(&step.node) else { continue };
        if !clients.contains_key(node.name.as_str()) {
            let client = node.connect().map_err(|error| error.to_string())?;
            clients.insert(&node.name, client);
        }
        if let Some(client) = clients.get_mut(node.name.as_str()) {
            let done = sql::run_step(&node.server, client, &step.sql, order.control);
            done.map_err(|why| format!("before the trial, on {}: {why}", node.name))?;
        }
    }
    for node in &site.nodes {
        if let lab::Server::Node(_) = node.server {
            let mut client = node.connect().map_err(|error| error.to_string())?;
            probe::reset_statements(&mut client).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

fn probe_config(point: &Point, site: &Site) -> Config {
    let watched = |node: &&SiteNode| point.topology.node(&node.name).is_some();
    let servers = site.nodes.iter().filter(watched).map(|node| probe::Server {
        node: node.name.clone(),
        conninfo: node.probe_conninfo(),
        tls: match &node.server {
            lab::Server::Target(target) => target.tls().cloned(),
            lab::Server::Node(_) => None,
        },
        database: node.database(),
        log: node.log(),
        root_pid: node.pid(),
    });
    let is_server = |name: &str| site.node(name).is_some();
    let processes = site.processes().filter(|(name, _)| !is_server(name));
    let processes = processes.map(|(name, pid)| (name.to_owned(), pid));
    let poolers = site.fronts.iter().filter_map(|front| {
        Some(probe::Pooler { node: front.name.clone(), console: front.console()? })
    });
    Config {
        servers: servers.collect(),
        processes: processes.collect(),
        poolers: poolers.collect(),
        links: site.links.iter().filter_map(SiteLink::tap).collect(),
        generator_pids: vec![std::process::id()],
    }
}

/// The load on this thread, the meter on another one.
fn load(
    order: &Order<'_>,
    site: &mut Site,
    probes: &Running,
    observe: &mut dyn FnMut(Stage),
) -> Result<(Outcome, Metered, Vec<String>), Broke> {
    let point = order.point;
    let throttles = site.limit_io(point).map_err(|error| error.to_string())?;
    let conninfos = site.conninfos();
    let schema = site.data_node().schema.filter(|_| !site.is_sharded());
    let mut plan = load_plan::plan(point, order.planned, &conninfos, schema);
    plan.ledger = ledger::plan(point, order.ledger, ledger_seed(order.planned));
    let planned = order.planned;
    let agenda = &Agenda {
        point,
        at_ms: &planned.at_ms,
        origin: order.origin,
        // Trials of one round draw the same numbers; their cuts shall not be the same.
        cut_seed: planned.seed.wrapping_add(planned.number as u64),
        probes: Some(probes),
    };
    let (opens, is_open) = channel::<Moment>();
    let site = &mut *site;
    let mut watch = Watch { progress: Progress::of(point), messages: Vec::new(), failed: None };
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
                            probes.watch_process(&format!("generator {}", index + 1), *pid);
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
        drop(throttles);
        drop(opens);
        (outcome, meter.join().unwrap_or_default())
    });
    let messages = watch.messages;
    let outcome = outcome.map_err(|error| load_failure(&error))?;
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
    match generators {
        1 => load::run(plan, order.control, order.origin, observe),
        n => load::generators::run(plan, n, order.generator, order.control, order.origin, observe),
    }
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

/// Follows what the load says: where it is, and when its window opens.
struct Watch {
    progress: Progress,
    messages: Vec<String>,
    /// The first command that ended a client, with its place.
    failed: Option<String>,
}

impl Watch {
    /// A stage to be shown, and the moment at which the window opens once that is known.
    fn hear(&mut self, event: load::Event<'_>) -> (Option<Stage>, Option<Moment>) {
        match event {
            load::Event::Connecting { .. } | load::Event::Generators(_) => (None, None),
            load::Event::LoadBegan { at } => {
                self.progress.load_began(at);
                (None, None)
            }
            load::Event::WindowOpens { at } => {
                self.progress.window_opens(at);
                (None, Some(at))
            }
            load::Event::Interval(cells) => (self.progress.interval(cells), None),
            load::Event::Message(message) => {
                if let (None, Some(at)) = (&self.failed, &message.at) {
                    self.failed = Some(format!("{}:{}: {}", at.script, at.line, message.text));
                }
                if self.messages.len() < MESSAGES_MAX && message.level != load::Level::Debug {
                    self.messages.push(message.text);
                }
                (None, None)
            }
        }
    }
}

/// Notes are for people, and a thousand clients say the same.
const MESSAGES_MAX: usize = 5;

/// Makes a trial of what was measured.
fn fill(order: &Order<'_>, loaded: Loaded, finished: &mut Finished) {
    let Loaded { outcome, mut readings, mut metered, warmed, messages, .. } = loaded;
    let Loaded { powerless, checked, restored, .. } = loaded;
    let Checked { placement, ledger, amchecked, explained, checksummed, exposed } = checked;
    let trial = &mut finished.trial;
    let counted = match order.point.checks.contains(&Check::Counts) {
        true => counts::compare(order.point, &outcome.workloads, &readings.deltas),
        false => Counted::default(),
    };
    let window = outcome.window;
    if let Some(window) = window {
        let point = order.point;
        let figures = metrics::all(&Evidence {
            point,
            outcome: &outcome,
            window,
            readings: &readings,
            metered: &metered,
            warmed: &warmed,
            counted: &counted,
            placement,
        });
        (trial.metrics, trial.at_least) = (figures.metrics, figures.at_least);
    }
    let lost = powerless.figures(&ledger, &amchecked, &checksummed);
    let found = ledger::figures(&ledger).into_iter().chain(amcheck::figures(&amchecked));
    let found = found.chain(explain::figures(&explained));
    let found = found.chain(checksums::figures(&checksummed)).chain(restore::figures(&restored));
    for (metric, scope, value) in found.chain(exposed.figures).chain(lost) {
        trial.metrics.entry(metric.to_owned()).or_default().insert(scope, value);
    }
    let said = |kind: NoteKind, texts: Vec<String>| {
        texts.into_iter().map(move |text| Note::new(kind, text))
    };
    trial.notes.extend(said(NoteKind::Check, powerless.notes()));
    trial.notes.extend(ledger.notes);
    trial.notes.extend(said(NoteKind::Check, restore::notes(&restored)));
    let found = amchecked.into_iter().flat_map(|one| one.notes).collect();
    trial.notes.extend(said(NoteKind::Check, found));
    trial.notes.extend(said(NoteKind::Check, explain::notes(&explained).collect()));
    let found = checksummed.into_iter().flat_map(|one| one.notes).collect();
    trial.notes.extend(said(NoteKind::Check, found));
    trial.notes.extend(said(NoteKind::Load, messages));
    trial.notes.extend(said(NoteKind::Warming, warmed.notes));
    trial.notes.extend(said(NoteKind::Check, counted.notes));
    trial.notes.extend(said(NoteKind::Probe, readings.notes));
    trial.notes.extend(said(NoteKind::Generator, generator_doubts(&outcome)));
    trial.ending = ending(order, &outcome, &metered, &mut trial.notes);
    trial.window = window;
    finished.marks = phase_marks(window);
    finished.marks.append(&mut metered.marks);
    finished.marks.extend(exposed.marks);
    finished.marks.append(&mut readings.marks);
    finished.marks.sort_by_key(|mark| mark.at);
    finished.samples = readings.samples;
    finished.intervals = outcome.intervals;
    trial.connecting = outcome.connecting;
    trial.disconnecting = outcome.disconnecting;
    trial.workloads = outcome.workloads;
    trial.generator = outcome.generator;
}

/// Whether the trial counts. `smoke` proves that every part works: it counts, and notes why its
/// figures may not.
fn ending(
    order: &Order<'_>,
    outcome: &Outcome,
    metered: &Metered,
    notes: &mut Vec<Note>,
) -> Ending {
    if let Some(failure) = metered.failures.first() {
        return Ending::void(VoidKind::Action, failure.clone());
    }
    if matches!(outcome.end, End::Aborted | End::ExitedOnAbort(_)) {
        let first = notes.first().map(|note| note.text.as_str()).unwrap_or_default();
        return Ending::failed(Fault::Unknown, format!("every client gave up: {first}"));
    }
    let Some(window) = outcome.window else {
        return Ending::failed(Fault::Unknown, "the window never opened");
    };
    let transactions: u64 = outcome.workloads.iter().map(|one| one.counts.transactions).sum();
    let failed: u64 = outcome.workloads.iter().map(|one| one.counts.failed()).sum();
    if transactions == 0 && failed > 0 && order.point.timeline.is_empty() {
        let text = format!("every transaction failed: {failed} of {failed}");
        return Ending::void(VoidKind::AllFailed, text);
    }
    if transactions == 0 {
        // That nothing ended is what was measured: a stall is a result.
        let text = "no transaction ended well inside the window";
        notes.push(Note::new(NoteKind::Unsteady, text));
        return Ending::Done;
    }
    if !order.point.timeline.is_empty() || !order.point.must_be_steady {
        return Ending::Done;
    }
    let interval_ms = load_plan::interval_ms(order.point);
    let unsteady = match steadiness::judge(&outcome.intervals, window, interval_ms) {
        _ if outcome.steady == Some(false) => Some(STILL_WARMING_UP.to_owned()),
        Steadiness::Steady => None,
        Steadiness::Noted(note) => {
            notes.push(Note::new(NoteKind::Steadiness, note));
            None
        }
        Steadiness::NotSteady(why) => {
            notes.push(Note::new(NoteKind::Unsteady, format!("not steady: {why}")));
            None
        }
    };
    match unsteady {
        Some(why) if order.profile == Profile::Smoke => {
            notes.push(Note::new(NoteKind::Steadiness, format!("not steady: {why}")));
            Ending::Done
        }
        Some(why) => Ending::void(VoidKind::NotSteady, format!("not steady: {why}")),
        None => Ending::Done,
    }
}

const STILL_WARMING_UP: &str = "throughput still rose when the warm-up's bound was reached";

/// Where the rig itself may have been the limit.
fn generator_doubts(outcome: &Outcome) -> Vec<String> {
    let generator = &outcome.generator;
    let mut doubts = Vec::new();
    if generator.busy_share_max > Generator::BUSY_SHARE_MAX {
        let percent = generator.busy_share_max * 100.0;
        doubts.push(format!("the generator's busiest lane was at work {percent:.0} % of the time"));
    }
    if generator.lag_share > Generator::LAG_SHARE_MAX {
        let percent = generator.lag_share * 100.0;
        doubts.push(format!("the generator's loop lag is {percent:.0} % of what clients waited"));
    }
    if let Some(share) = generator.run_delay_share
        && share > Generator::RUN_DELAY_SHARE_MAX
    {
        let percent = share * 100.0;
        doubts.push(format!(
            "the generator waited for a CPU for {percent:.0} % of what clients waited"
        ));
    }
    doubts
}

fn phase_marks(window: Option<Window>) -> Vec<Mark> {
    let Some(window) = window else { return Vec::new() };
    let mark = |at: Moment, text: &str| Mark {
        at,
        length_ns: 0,
        kind: MarkKind::Phase,
        node: "generator".to_owned(),
        text: text.to_owned(),
    };
    vec![
        mark(window.load_began, "all clients connected"),
        mark(window.open, "window opens"),
        mark(window.close, "window closes"),
    ]
}

/// The end of what each server and front wrote, as far as it is the lab's.
fn log_tails(site: &Site) -> BTreeMap<String, String> {
    let tail = |(name, path): (String, PathBuf)| {
        let text = std::fs::read(path).ok()?;
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let last = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
        Some((name, last + "\n"))
    };
    let servers = site.nodes.iter().filter_map(|node| match &node.server {
        lab::Server::Node(server) => Some((node.name.clone(), server.log())),
        lab::Server::Target(_) => None,
    });
    let fronts = site.fronts.iter().map(|front| (front.name.clone(), front.log()));
    servers.chain(fronts).filter_map(tail).collect()
}

/// Lines of a server's log that are kept of a trial that broke.
const LOG_LINES: usize = 200;

fn blank(order: &Order<'_>, started_at: String, began: Moment) -> Finished {
    let name = &order.point.name;
    let phase = || Phase {
        count: 0,
        failures: BTreeMap::new(),
        length_ns: 0,
        latency: Latency::new(),
        generator_cpu_ns: 0,
    };
    let trial = Trial {
        number: order.planned.number,
        attempt: order.attempt,
        round: order.planned.round as usize,
        variant: name.variant.clone(),
        scenario: name.scenario.clone(),
        axes: name.axes.iter().cloned().collect(),
        ending: Ending::Done,
        started_at,
        began,
        ended: began,
        window: None,
        connecting: phase(),
        disconnecting: phase(),
        workloads: Vec::new(),
        generator: Generator::default(),
        metrics: BTreeMap::new(),
        at_least: BTreeMap::new(),
        notes: Vec::new(),
    };
    let (intervals, samples, marks, logs) = Default::default();
    Finished { trial, intervals, samples, marks, logs }
}
