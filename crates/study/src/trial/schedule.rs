//! The timeline of a trial on the load's clock: each action at its moment, whatever those before it still do,
//! and the servers' CPU at the window's two ends.
//!
//! One thread hears from the load when the window opens and begins what is due; when the load ends before
//! that, it stops where it is. It waits for no server: what servers are is asked by [`Roles`], and what takes
//! its time goes on in a thread of its own. What changes the state of one node follows each other.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use record::{Moment, TimedAction};
use site::Site;
use spec::{Action, ActionTarget, AwaitedState, TimelineEntry, TrialPoint};

use crate::clock;
use crate::trial::act::{self, ActError, ActionProof, Work};
use crate::trial::awaiting::StateQuestion;
use crate::trial::held::HeldSnapshots;
use crate::trial::lateness;
use crate::trial::meter::{ActFailure, CpuSpan, FinishedAction, WindowReadings};
use crate::trial::roles::Roles;
use crate::trial::samplers::Samplers;

/// What is to be done in a window.
pub(crate) struct WindowAgenda<'a> {
    pub(crate) point: &'a TrialPoint,
    /// Time of each action of the timeline, in milliseconds since the window opened.
    pub(crate) at_ms: &'a [u64],
    pub(crate) origin: Instant,
    /// The seed of what a power cut takes.
    pub(crate) cut_seed: u64,
    /// Samplers that know the CPU time of servers, and are told of a server that was started again.
    pub(crate) samplers: &'a Samplers,
    /// What the servers say of their roles.
    pub(crate) roles: &'a Roles,
}

/// Waits for the window and does what is due in it.
pub(crate) fn follow(
    agenda: &WindowAgenda<'_>,
    site: &mut Site,
    opens: &Receiver<Moment>,
) -> WindowReadings {
    let Ok(open) = opens.recv() else { return WindowReadings::default() };
    let end = clock::instant(agenda.origin, open.plus_ns(agenda.point.window_ms * MS));
    if wait(opens, clock::instant(agenda.origin, open)) == Waited::Ended {
        return WindowReadings::default();
    }
    if !agenda.point.timeline.is_empty() {
        return thread::scope(|scope| {
            let (metered, goes_on) = Default::default();
            let (called, freed, held) = Default::default();
            let may_skip = Vec::new();
            let mut line = Line {
                agenda,
                scope,
                open,
                changed: open,
                called,
                freed,
                held,
                goes_on,
                may_skip,
                metered,
            };
            line.run(site, opens, end);
            line.metered
        });
    }
    let mut metered = WindowReadings::default();
    let before = cpu(site, agenda.samplers);
    wait(opens, end);
    let after = cpu(site, agenda.samplers);
    for (name, (then, was)) in before {
        // A server that was started again in between has begun another account.
        if let Some((now, is)) = after.get(&name)
            && *is >= was
        {
            metered.cpu.insert(name, CpuSpan { cpu_ns: is - was, length_ns: now.since(then) });
        }
    }
    metered
}

/// A timeline under way.
struct Line<'l, 'scope, 'env> {
    agenda: &'l WindowAgenda<'l>,
    scope: &'scope Scope<'scope, 'env>,
    /// The moment at which the window opened.
    open: Moment,
    /// The moment at which an action last began or ended: what a server said before may be true no more.
    changed: Moment,
    /// The nodes that actions were done to, by the names that they gave.
    called: BTreeMap<String, String>,
    /// The moment at which the last action ended that changed the state of a node.
    freed: BTreeMap<String, Moment>,
    /// Sessions that keep a snapshot; those that are left end with the timeline.
    held: HeldSnapshots,
    goes_on: Vec<GoesOn<'scope>>,
    /// Whether each action may be left out, by its number.
    may_skip: Vec<bool>,
    metered: WindowReadings,
}

/// An action that goes on in a thread of its own.
struct GoesOn<'scope> {
    /// The number in the order of the moments.
    number: usize,
    action: Action,
    was_down: bool,
    began: Moment,
    /// The later action that changed the state of its node meanwhile.
    cut_short_by: Option<String>,
    /// Gives what became of it, and the moment of its end.
    thread: ScopedJoinHandle<'scope, (Result<ActionProof, ActError>, Moment)>,
}

impl Line<'_, '_, '_> {
    fn run(&mut self, site: &mut Site, opens: &Receiver<Moment>, end: Instant) {
        let WindowAgenda { point, at_ms, origin, .. } = *self.agenda;
        let mut due: Vec<(u64, &TimelineEntry)> =
            at_ms.iter().copied().zip(&point.timeline).collect();
        due.sort_by_key(|(at_ms, _)| *at_ms);
        let at_ms: Vec<u64> = due.iter().map(|(at_ms, _)| *at_ms).collect();
        let limits = lateness::limits_ns(&at_ms, point.window_ms);
        let moments: Vec<Moment> = at_ms.iter().map(|ms| self.open.plus_ns(ms * MS)).collect();
        for (number, (_, timed)) in due.into_iter().enumerate() {
            let (mut planned, limit_ns) = (moments[number], limits[number]);
            let action = format!("{} {}", timed.action.verb(), timed.action.target());
            let (possible, began, ended) = (planned, None, None);
            self.metered.actions.push(TimedAction {
                action,
                planned,
                possible,
                began,
                ended,
                limit_ns,
                skipped: None,
            });
            self.may_skip.push(timed.may_skip);
            if self.wait(site, opens, clock::instant(origin, planned)) == Waited::Ended {
                self.fail(number, "the load was over before it was its turn");
                continue;
            }
            if let Some(awaited) = &timed.when {
                match self.wait_for(site, opens, number, awaited) {
                    Ok(reached) => planned = reached,
                    Err(why) => {
                        self.fail(number, &why);
                        continue;
                    }
                }
                let one = &mut self.metered.actions[number];
                (one.planned, one.possible) = (planned, planned);
            }
            match self.target(timed, moments.get(number + 1).copied()) {
                Ok((action, _)) if timed.may_skip && self.is_idle(&action).is_some() => {
                    let why = self.is_idle(&action).map(str::to_owned);
                    self.metered.actions[number].skipped = why;
                }
                Ok((action, waited_ns)) => {
                    if let Some(called) = &timed.called {
                        self.called.insert(called.clone(), action.target().to_owned());
                    }
                    self.begin(site, number, action, planned.plus_ns(waited_ns));
                }
                Err(why) if timed.may_skip => self.skip(number, why),
                Err(why) => self.fail(number, &why),
            }
        }
        self.wait(site, opens, end);
        self.finish(site, |_| true);
    }

    /// Waits until the action before has ended, and for a state of the servers from then on; gives the moment at which
    /// it was seen.
    fn wait_for(
        &mut self,
        site: &mut Site,
        opens: &Receiver<Moment>,
        number: usize,
        awaited: &AwaitedState,
    ) -> Result<Moment, String> {
        const OVER: &str = "the load was over before the state was reached that it waits for";
        let before = |one: &GoesOn<'_>| one.number + 1 == number;
        while self.goes_on.iter().any(before) {
            if self.wait(site, opens, Instant::now() + ASK_EVERY) == Waited::Ended {
                return Err(OVER.to_owned());
            }
        }
        let mut question = StateQuestion::new(awaited, site)?;
        let within = Duration::from_millis(awaited.within_ms);
        let until = Instant::now() + within;
        loop {
            if question.is_true() {
                return Ok(clock::now(self.agenda.origin));
            }
            if Instant::now() >= until {
                return Err(question.not_within(within));
            }
            if self.wait(site, opens, Instant::now() + ASK_EVERY) == Waited::Ended {
                return Err(OVER.to_owned());
            }
        }
    }

    /// An action that could not be begun. What it asks for may have been taken away by actions before it, so
    /// that nobody is blamed.
    fn fail(&mut self, number: usize, why: &str) {
        let text = format!("{}: {why}", self.metered.actions[number].action);
        self.metered.failures.push(ActFailure { fault: None, text });
    }

    /// An action that the study lets be left out.
    fn skip(&mut self, number: usize, why: String) {
        self.metered.actions[number].skipped = Some(why);
    }

    /// Why an action that may be left out has nothing to do: what it ends does not last, or its node is down
    /// or busy with another one.
    fn is_idle(&self, action: &Action) -> Option<&'static str> {
        let name = action.target();
        let is_ended = |node: &str| {
            let last = self.metered.ends.deaths.iter().rfind(|death| death.node == node);
            let goes_on = |one: &GoesOn<'_>| {
                matches!(one.action, Action::Stop { .. }) && one.action.target() == node
            };
            last.is_some_and(|death| death.restarted.is_none()) || self.goes_on.iter().any(goes_on)
        };
        match action {
            Action::Start { node } => (!is_ended(node)).then_some("it was not stopped"),
            Action::Continue { node } => {
                (!self.metered.is_paused(node)).then_some("it does not stand still")
            }
            Action::Heal { .. }
            | Action::HealDisk { .. }
            | Action::Reconnect { .. }
            | Action::Unthrottle { .. }
            | Action::Rejoin { .. } => None,
            _ if self.metered.is_down(name) => Some("it is down, or stands still"),
            _ => {
                let goes_on = |one: &GoesOn<'_>| one.action.target() == name;
                let is_busy = changes_node(action) && self.goes_on.iter().any(goes_on);
                is_busy.then_some("another action on it still goes on")
            }
        }
    }

    /// The action with the names of its nodes, where they are found at its moment, and the time that passed
    /// until a server had the role, in nanoseconds. `next` is the moment of the next action.
    fn target(&self, timed: &TimelineEntry, next: Option<Moment>) -> Result<(Action, u64), String> {
        let mut waited = 0;
        let mut action = timed.action.clone();
        if let Some(chosen) = &timed.chosen {
            let (name, ns) = self.found(chosen, next)?;
            (action, waited) = (action.on(&name), ns);
        }
        if let Some(chosen) = &timed.chosen_of {
            let (name, ns) = self.found(chosen, next)?;
            (action, waited) = (action.of(&name), waited + ns);
        }
        Ok((action, waited))
    }

    fn found(&self, chosen: &ActionTarget, next: Option<Moment>) -> Result<(String, u64), String> {
        let role = match chosen {
            ActionTarget::PrimaryNow => "takes writes",
            ActionTarget::StandbyNow => "is a standby",
            ActionTarget::Earlier(name) => {
                let found = self.called.get(name).cloned();
                let missing = || format!("the action that is done as \"{name}\" was not done");
                return Ok((found.ok_or_else(missing)?, 0));
            }
        };
        let clock = || clock::now(self.agenda.origin);
        let looked = clock();
        let since = Moment(looked.0.saturating_sub(FRESH_NS)).max(self.changed);
        let next = next.unwrap_or(looked.plus_ns(PATIENCE_NS));
        let deadline = next.clamp(looked.plus_ns(PATIENCE_MIN_NS), looked.plus_ns(PATIENCE_NS));
        let found = self.agenda.roles.find(chosen, since, deadline, clock);
        let found = found.map_err(|known| format!("no server that answers {role}: {known}"))?;
        Ok((found.name, found.since.since(looked)))
    }

    /// Begins an action, which is possible from that moment on and from the end of what was done to its
    /// nodes before.
    fn begin(&mut self, site: &mut Site, number: usize, action: Action, possible: Moment) {
        let name = action.target().to_owned();
        let of = match &action {
            Action::Rejoin { of, .. } => Some(of.clone()),
            _ => None,
        };
        let is_on = |node: &str| node == name || of.as_deref() == Some(node);
        // Actions of one moment are done in their order. SQL goes on while its server is killed.
        let planned = self.metered.actions[number].planned;
        let planned_at: Vec<Moment> = self.metered.actions.iter().map(|one| one.planned).collect();
        self.finish(site, |one| {
            let is_in_order = !one.action.is_sql() || planned_at[one.number] == planned;
            is_on(one.action.target()) && is_in_order
        });
        if changes_node(&action) {
            let by = format!("{} {name}", action.verb());
            let same = self.goes_on.iter_mut().filter(|one| one.action.target() == name);
            same.for_each(|one| _ = one.cut_short_by.get_or_insert_with(|| by.clone()));
        }
        let freed = self.freed.iter().filter(|(node, _)| is_on(node)).map(|(_, at)| *at);
        let possible = freed.fold(possible, Moment::max);
        let was_down = self.metered.is_down(&name);
        let began = clock::now(self.agenda.origin);
        let done = match self.metered.is_paused(&name) && asks_server(&action) {
            true => Err(ActError::Paused),
            false => act::act(site, &action, self.agenda.cut_seed, &self.held),
        };
        let timed = &mut self.metered.actions[number];
        timed.action = format!("{} {name}", action.verb());
        (timed.possible, timed.began) = (possible, Some(began));
        self.changed = clock::now(self.agenda.origin);
        match done {
            Ok(Work::GoesOn(rest)) => {
                let origin = self.agenda.origin;
                let thread = self.scope.spawn(move || (rest(), clock::now(origin)));
                let cut_short_by = None;
                let goes_on = GoesOn { number, action, was_down, began, cut_short_by, thread };
                self.goes_on.push(goes_on);
            }
            Ok(Work::Done(proof)) => {
                let ended = self.changed;
                let acted =
                    FinishedAction { action: &action, was_down, began, ended, done: Ok(proof) };
                self.note(site, number, acted);
            }
            Err(why) => {
                let ended = self.changed;
                let acted =
                    FinishedAction { action: &action, was_down, began, ended, done: Err(why) };
                self.note(site, number, acted);
            }
        }
    }

    fn note(&mut self, site: &mut Site, number: usize, acted: FinishedAction<'_>) {
        let (action, ended) = (acted.action, acted.ended);
        if let Err(why) = &acted.done
            && self.may_skip[number]
            && why.is_nothing_to_do(action)
        {
            let one = &mut self.metered.actions[number];
            (one.began, one.ended) = (None, None);
            return self.skip(number, why.to_string());
        }
        self.metered.actions[number].ended = Some(ended);
        self.changed = self.changed.max(ended);
        if changes_node(action) {
            self.freed.insert(action.target().to_owned(), ended);
        }
        if let (Action::Start { node } | Action::Rejoin { node, .. }, true) =
            (action, acted.done.is_ok())
            && let Some(pid) = site.pid(node)
        {
            self.agenda.samplers.watch_process(node, pid);
        }
        self.metered.note(site, acted);
    }

    /// Waits for the end of those that go on and are meant.
    fn finish(&mut self, site: &mut Site, is_meant: impl Fn(&GoesOn<'_>) -> bool) {
        let all = std::mem::take(&mut self.goes_on);
        let (meant, others): (Vec<_>, Vec<_>) = all.into_iter().partition(is_meant);
        self.goes_on = others;
        for one in meant {
            let GoesOn { number, action, was_down, began, cut_short_by, thread } = one;
            let (done, ended) = thread.join().unwrap_or_else(|it| resume_unwind(it));
            // The study asks for that.
            let cut_short = |(by, why): (&String, &ActError)| format!("{by} cut it short: {why}");
            let done = match cut_short_by.as_ref().zip(done.as_ref().err()).map(cut_short) {
                Some(words) => Ok(ActionProof::Seen(words)),
                None => done,
            };
            self.note(
                site,
                number,
                FinishedAction { action: &action, was_down, began, ended, done },
            );
        }
    }

    /// Waits until a moment, and takes down what ends meanwhile.
    fn wait(&mut self, site: &mut Site, opens: &Receiver<Moment>, until: Instant) -> Waited {
        loop {
            let look = match self.goes_on.is_empty() {
                true => until,
                false => until.min(Instant::now() + LOOK_EVERY),
            };
            if wait(opens, look) == Waited::Ended {
                return Waited::Ended;
            }
            self.finish(site, |one| one.thread.is_finished());
            if Instant::now() >= until {
                return Waited::Long;
            }
        }
    }
}

/// True if an action leaves its node in another state, which the next one on it may rest on.
fn changes_node(action: &Action) -> bool {
    !action.is_sql() && !matches!(action, Action::Run { .. } | Action::Subscribe { .. })
}

/// True if a server has to answer for it, which one that stands still never does.
fn asks_server(action: &Action) -> bool {
    let asks = matches!(
        action,
        Action::Promote { .. }
            | Action::KillBackend { .. }
            | Action::Subscribe { .. }
            | Action::Backup { .. }
    );
    asks || action.is_sql()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waited {
    /// Until the time had come.
    Long,
    /// Until the load was over.
    Ended,
}

fn wait(opens: &Receiver<Moment>, until: Instant) -> Waited {
    match opens.recv_timeout(until.saturating_duration_since(Instant::now())) {
        Err(RecvTimeoutError::Disconnected) => Waited::Ended,
        Ok(_) | Err(RecvTimeoutError::Timeout) => Waited::Long,
    }
}

fn cpu(site: &Site, samplers: &Samplers) -> BTreeMap<String, (Moment, u64)> {
    let readings = site.processes().filter_map(|(name, pid)| {
        let reading = samplers.cpu_time(name, pid)?;
        Some((name.to_owned(), reading))
    });
    readings.collect()
}

const MS: u64 = 1_000_000;
/// Answers of this age tell what a server is now: it is asked far more often.
const FRESH_NS: u64 = 100 * MS;
/// The time that servers have to take a role which an action asks for.
const PATIENCE_NS: u64 = 1_000 * MS;
/// Servers that stand still are told from others by then.
const PATIENCE_MIN_NS: u64 = 200 * MS;
/// Between two questions for a state that an action waits for.
const ASK_EVERY: Duration = Duration::from_millis(5);
/// Whether something has ended that goes on beside the timeline.
const LOOK_EVERY: Duration = Duration::from_millis(20);
