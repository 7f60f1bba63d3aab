//! A load by generators on several hosts, each with a clock of its own.
//!
//! The lanes, their protocol and their conductor are those of [`crate::generators`]; here is what
//! only hosts have: clocks that are followed, and losses that a load may outlive.

use std::{
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError, mpsc::sync_channel},
    thread,
    time::Instant,
};

use host::{Host, Output, Process, Role, SilentGap, clock, monotonic_ns, monotonic_ns_at};
use record::{MeasuredWindow, Moment};

use crate::{
    HostClock, HostOutcome, HostStall, LoadControl, LoadError, LoadEvent, LoadOutcome, LoadPlan,
    StopUrgency,
    carried::Carried,
    clock::ClockModel,
    conductor::{self, AfterLoss, Workers},
    generators::{Crew, REPORTS_MAX, Word},
    grid::{Grid, NEVER},
    lanes::Lanes,
    partition::Part,
    report::Loss,
};

/// The consequence for a load when a host is lost while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnHostLoss {
    /// It ends; what the others measured until then is the outcome.
    Stop,
    /// The others go on.
    GoOn,
}

/// Runs `plan` on hosts; each gets clients by its weight.
pub(crate) fn run(
    plan: &LoadPlan,
    hosts: &[&Host],
    on_loss: OnHostLoss,
    control: &LoadControl,
    origin: Instant,
    observe: &mut dyn FnMut(LoadEvent<'_>),
) -> Result<LoadOutcome, LoadError> {
    let weights = hosts.iter().map(|host| host.entry().weight).collect();
    let part = Part { index: 0, weights };
    // What is wrong with the plan is found here, once, and not on every host.
    Lanes::prepare(plan, &part)?;
    let (sender, reports) = sync_channel(REPORTS_MAX);
    let mut crew = Crew::new(part.lanes(plan));
    let clients = plan.workloads.iter().map(|workload| workload.clients).sum();
    for (host, started) in hosts.iter().zip(start(hosts)) {
        let (process, output) = started.map_err(|loss| match control.urgency() {
            StopUrgency::None => lost(host, loss.why),
            _ => LoadError::Interrupted { connected: 0, clients },
        })?;
        let name = &host.entry().name;
        let log = plan.log.as_ref().map(|log| format!("{}.{name}", log.prefix));
        let ledger = plan.ledger.as_ref().map(|ledger| Path::new(&ledger.directory));
        let history = plan.history.as_ref().map(|history| Path::new(&history.directory));
        crew.add(plan, process, output, &sender, Carried::new(log, ledger, history));
    }
    drop(sender);
    let origin_ns = monotonic_ns_at(origin);
    let follows = hosts.iter().map(|host| Mutex::new(Follow::new(host))).collect();
    let losses = Mutex::new(vec![None; hosts.len()]);
    let fleet = OnHosts { crew, hosts, origin_ns, follows, losses, on_loss };
    let course_of = |index| course(&fleet.follow(index).now, origin_ns);
    fleet.crew.order(plan, &part, true, course_of)?;
    let mut outcome = conductor::conduct(plan, &fleet, &reports, control, origin, observe)?;
    outcome.hosts = fleet.outcomes(&part.clients(plan), &outcome);
    Ok(outcome)
}

/// Starts a generator on every host whose clock is known, at the same time.
fn start(hosts: &[&Host]) -> Vec<Result<(Process, Output), host::HostLoss>> {
    let one = |host: &Host| {
        host.await_clock()?;
        host.start(Role::Generator)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = hosts.iter().map(|host| scope.spawn(move || one(host))).collect();
        let panicked = |_| Err(host::HostLoss { why: "starting a generator panicked".to_owned() });
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
    })
}

fn lost(host: &Host, why: String) -> LoadError {
    LoadError::Host { name: host.entry().name.clone(), why, hint: None }
}

/// The course of a host's clock as a generator there follows it.
fn course(measured: &clock::ClockModel, origin_ns: u64) -> ClockModel {
    let there = i128::from(measured.at_ns) + i128::from(measured.offset_ns);
    let drift = measured.drift_ppb * 1e-9;
    ClockModel {
        // The line through the pings of a host that has just booted may begin a little before its clock.
        there_ns: u64::try_from(there).unwrap_or(0),
        moment_ns: (i128::from(measured.at_ns) - i128::from(origin_ns)) as i64,
        rate_ppb: -drift / (1.0 + drift) * 1e9,
    }
}

struct OnHosts<'a> {
    crew: Crew,
    hosts: &'a [&'a Host],
    origin_ns: u64,
    follows: Vec<Mutex<Follow>>,
    losses: Mutex<Vec<Option<(Moment, String)>>>,
    on_loss: OnHostLoss,
}

/// Course that one host was told of its clock, and the error that it has shown.
struct Follow {
    now: clock::ClockModel,
    /// The course that it was told before, which it leaves gradually.
    before: clock::ClockModel,
    /// Time at which it was told last, and time until which the pings have been looked at; on this
    /// machine's monotonic clock.
    told_ns: u64,
    seen_ns: u64,
    /// The largest bound so far in the window.
    bound_ns: Option<u64>,
    /// The jumps of its clock before the load.
    jumps_before: u64,
}

/// A host has a clock, because [`start`] waits for its first pings.
const CLOCK_IS_KNOWN: &str = "a generator is started after the first pings of its host";

/// Time between two looks at pings: one look for each that is kept.
const LOOK_NS: u64 = 1_000_000_000;
/// A course that differs by less is not worth a message.
const WORTH_TELLING_NS: u64 = 5_000;

impl Follow {
    fn new(host: &Host) -> Follow {
        let clock = host.clock();
        let now = clock.course().expect(CLOCK_IS_KNOWN);
        let jumps_before = clock.jumps();
        Follow {
            now,
            before: now,
            told_ns: 0,
            seen_ns: monotonic_ns(),
            bound_ns: None,
            jumps_before,
        }
    }

    /// Holds the courses that the host has followed against the pings since the last look: the bound of its moments
    /// since then.
    fn look(&mut self, clock: &clock::Clock, until_ns: u64, is_in_window: bool) -> Option<u64> {
        // What was told is followed a moment later, so for a while both are.
        let is_between = until_ns.saturating_sub(self.told_ns) < 2 * LOOK_NS;
        let courses = [Some(&self.now), is_between.then_some(&self.before)];
        let bounds = courses
            .into_iter()
            .flatten()
            // The second before is looked at again: a ping since then may show that the clock had jumped.
            .filter_map(|course| {
                clock.bound_ns(course, self.seen_ns.saturating_sub(LOOK_NS), until_ns)
            });
        let bound = bounds.max();
        if let Some(bound) = bound.filter(|_| is_in_window) {
            self.bound_ns = Some(self.bound_ns.map_or(bound, |before| before.max(bound)));
        }
        self.seen_ns = until_ns;
        bound
    }

    fn tell(&mut self, course: clock::ClockModel, now_ns: u64) {
        self.before = self.now;
        self.now = course;
        self.told_ns = now_ns;
    }
}

impl OnHosts<'_> {
    fn follow(&self, index: usize) -> MutexGuard<'_, Follow> {
        self.follows[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn say(&self, index: usize, measured: &clock::ClockModel) {
        self.crew.say(index, &Word::ClockModel(course(measured, self.origin_ns)));
    }

    fn losses(&self) -> MutexGuard<'_, Vec<Option<(Moment, String)>>> {
        self.losses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The parts of the window in which a host stood still, as it or its generator tells, or its silence shows.
    fn stalls(
        &self,
        host: &Host,
        own: &[HostStall],
        window: Option<MeasuredWindow>,
    ) -> Vec<HostStall> {
        // Without a window, nothing is told of it.
        let Some(window) = window else { return Vec::new() };
        let here = |moment: Moment| self.origin_ns.saturating_add(moment.0);
        let own = own.iter();
        let own = own.map(|own| SilentGap { from_ns: here(own.from), to_ns: here(own.to) });
        let mut all = host.standstills(here(window.open), here(window.close));
        all.extend(own);
        let moment = |ns: u64| Moment(ns.saturating_sub(self.origin_ns));
        let stall = |gap: SilentGap| HostStall { from: moment(gap.from_ns), to: moment(gap.to_ns) };
        host::union(all).into_iter().map(stall).collect()
    }

    /// Outcome of each host, as far as the load's outcome does not say it.
    fn outcomes(&self, clients: &[u32], outcome: &LoadOutcome) -> Vec<HostOutcome> {
        let losses = self.losses();
        let hosts = self.hosts.iter().enumerate().map(|(index, host)| {
            let clock = host.clock();
            let mut follow = self.follow(index);
            follow.look(&clock, monotonic_ns(), outcome.window.is_some());
            HostOutcome {
                stalls: self.stalls(host, &outcome.generators[index].stalls, outcome.window),
                name: host.entry().name.clone(),
                clients: clients[index],
                facts: host.hello().facts.clone(),
                clock: HostClock {
                    offset_ns: follow.now.offset_ns,
                    drift_ppb: clock.course().unwrap_or(follow.now).drift_ppb,
                    round_trip_ns: clock.round_trip_ns().expect(CLOCK_IS_KNOWN),
                    bound_ns: follow.bound_ns,
                    has_jumped: clock.jumps() > follow.jumps_before,
                },
                lost: losses[index].clone(),
            }
        });
        hosts.collect()
    }
}

impl Workers for OnHosts<'_> {
    fn lanes(&self) -> &[usize] {
        self.crew.lanes()
    }

    fn publish(&self, grid: &Grid) {
        if grid.began != NEVER && grid.began > monotonic_ns().saturating_sub(self.origin_ns) {
            // The last word on the clocks before the beginning, which is still a jump.
            for (index, host) in self.hosts.iter().enumerate() {
                let clock = host.clock();
                if let Some(course) = clock.course() {
                    self.follow(index).now = course;
                    self.say(index, &course);
                    if let Some(bound_ns) = clock.bound_ns(&course, 0, monotonic_ns()) {
                        self.crew.say(index, &Word::ClockBound(bound_ns));
                    }
                }
            }
        }
        self.crew.publish(grid);
    }

    /// Twice the longest of the shortest ways, and some for a busy host.
    fn lead_ns(&self) -> u64 {
        let trips = self.hosts.iter().filter_map(|host| host.clock().round_trip_ns());
        // Without hosts there is nobody who must hear of the beginning in time.
        20_000_000 + 2 * trips.max().unwrap_or(0)
    }

    fn late_ns(&self) -> Option<u64> {
        Some(2_000_000_000)
    }

    fn tend(&self, grid: &Grid) {
        let now_ns = monotonic_ns();
        let moment = now_ns.saturating_sub(self.origin_ns);
        for (index, host) in self.hosts.iter().enumerate() {
            let mut follow = self.follow(index);
            if now_ns.saturating_sub(follow.seen_ns) < LOOK_NS {
                continue;
            }
            let clock = host.clock();
            // The seconds of both edges belong to the window.
            let opened = moment.saturating_add(LOOK_NS) >= grid.open;
            let is_in_window = opened && moment <= grid.close.saturating_add(2 * LOOK_NS);
            if let Some(bound_ns) = follow.look(&clock, now_ns, is_in_window) {
                self.crew.say(index, &Word::ClockBound(bound_ns));
            }
            let Some(course) = clock.course() else { continue };
            let difference = course.offset_at(now_ns).abs_diff(follow.now.offset_at(now_ns));
            if difference >= WORTH_TELLING_NS {
                follow.tell(course, now_ns);
                self.say(index, &course);
            }
        }
    }

    fn on_loss(&self, process: usize, at: Moment, loss: &Loss) -> AfterLoss {
        self.losses()[process].get_or_insert((at, loss.why.clone()));
        match self.on_loss {
            OnHostLoss::Stop => AfterLoss::Stop,
            OnHostLoss::GoOn => {
                let name = &self.hosts[process].entry().name;
                AfterLoss::GoOn(format!("host {name} is lost, the others go on: {}", loss.why))
            }
        }
    }

    fn lost(&self, process: usize, loss: Loss) -> LoadError {
        let name = self.hosts[process].entry().name.clone();
        LoadError::Host { name, why: loss.why, hint: loss.hint }
    }
}
