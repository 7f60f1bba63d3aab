//! Connections and sessions from their beginning to their end. Making connections is a measured phase, with a budget.
//! Sessions end by the close, by an abort, by a lost connection, or because no session waits any longer; then come
//! good-byes, and waiting for the servers to close.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    sync::Arc,
};

use os::scheduling::BatchScheduling;
use record::ConnectionPhase;
use rustix::event::epoll::{self, EventFlags};
use server::{
    Canceller,
    dial::{BufferedSocket, ConnectRoute, DialAttempt, DialStep, ReadResult, nonce},
};
use stats::LatencyHistogram;
use tail::SlowTransaction;
use wire::{auth::KeyCache, startup::SessionFacts as Started};

use super::{Lane, Link, thread_cpu_ns, traffic::LIVE};
use crate::{
    LoadLimit, MessageLevel, OnLoss, UserMessage, cancel,
    grid::NEVER,
    report::{ConnectFailure, Report},
    session::{SessionState, Wait},
    tally::Ending,
};

/// The state of a lane's connecting and disconnecting.
pub(crate) struct Connecting {
    /// Attempts allowed at once.
    at_once: usize,
    /// Nanoseconds between the beginnings of two attempts.
    gap_ns: u64,
    next_ns: u64,
    /// Sessions that wait for their attempt.
    waiting: VecDeque<usize>,
    dialing: usize,
    /// Timeouts of the steps of dials: the moment, the session, and the step's beginning, which
    /// tells it from later ones.
    timeouts: BinaryHeap<Reverse<(u64, usize, u64)>>,
    prepared: u32,
    pub(crate) phase: ConnectionPhase,
    pub(crate) span: (u64, u64),
    pub(crate) leaving: ConnectionPhase,
    pub(crate) leaving_span: (u64, u64),
    pub(crate) closing: usize,
    failed: bool,
    pub(crate) messages_dropped: u64,
    jitter: script::Xoroshiro128,
}

/// A Unix socket whose backlog is full is tried again after this long.
const BACKLOG_PAUSE_NS: u64 = 2_000_000;

/// The first pause before a lost connection is made again; it doubles up to the longest.
const BACK_OFF_NS: u64 = 50_000_000;
const BACK_OFF_NS_MAX: u64 = 1_000_000_000;

/// Time that the statements of the clients that are connected may take to be prepared after the
/// last sign of progress.
const PREPARING_NS_MAX: u64 = 5_000_000_000;

/// Time that the servers have to close connections after Terminate.
const LEAVING_NS_MAX: u64 = 30_000_000_000;

/// SQLSTATE class 08: the connection broke without a word of the server.
const CONNECTION_FAILURE: &str = "08006";

impl Connecting {
    /// From now on all attempts may be under way at once: clients that a storm sends do not wait for each other.
    pub(crate) fn take_all_at_once(&mut self) {
        self.at_once = usize::MAX;
    }

    /// A lane's share of the budget: `at_once` attempts, `rate` a second.
    pub(crate) fn new(at_once: usize, rate: Option<f64>, jitter: script::Xoroshiro128) -> Self {
        Connecting {
            at_once,
            // Without a rate, attempts follow each other at once.
            gap_ns: rate.map_or(0, |rate| (1e9 / rate) as u64),
            next_ns: 0,
            waiting: VecDeque::new(),
            dialing: 0,
            timeouts: BinaryHeap::new(),
            prepared: 0,
            phase: ConnectionPhase::default(),
            span: (NEVER, 0),
            leaving: ConnectionPhase::default(),
            leaving_span: (NEVER, 0),
            closing: 0,
            failed: false,
            messages_dropped: 0,
            jitter,
        }
    }

    /// The earliest moment of the next attempt; never while no session waits or the budget is used up.
    fn next_attempt(&self) -> u64 {
        if self.waiting.is_empty() || self.dialing >= self.at_once { NEVER } else { self.next_ns }
    }

    /// The moment at which [`Lane::tend_dials`] has something to do.
    pub(crate) fn next_deadline(&self) -> u64 {
        let timeout = self.timeouts.peek().map_or(NEVER, |Reverse((at, ..))| *at);
        self.next_attempt().min(timeout)
    }
}

impl Lane<'_> {
    /// Connects every session; false when one could not be, or no session waits any longer.
    pub(crate) fn connect_all(&mut self) -> bool {
        let cpu = thread_cpu_ns();
        // Nothing is timed yet but connecting itself, which is the servers' work: to take a core from
        // a backend only to hear of another one costs CPU and lets no session in sooner.
        let _patience = BatchScheduling::begin();
        // With a connection for each transaction there is nothing to do beforehand.
        let slots = self.slots.iter().enumerate();
        let early = slots.filter(|(_, slot)| !self.programs[slot.session.workload].connect_each);
        self.connecting.waiting = early.map(|(index, _)| index).collect();
        let wanted = self.connecting.waiting.len() as u32;
        let mut last = (self.now(), 0);
        while self.connecting.prepared < wanted {
            let now = self.now();
            self.grid = self.shared.read();
            if now >= self.grid.abandon || self.connecting.failed {
                return false;
            }
            let came = (self.connecting.phase.count, self.connecting.prepared);
            if last.1 != came.0 + u64::from(came.1) {
                last = (now, came.0 + u64::from(came.1));
            }
            if came.0 == u64::from(wanted) && now >= last.0 + PREPARING_NS_MAX {
                self.tell_of_unprepared(wanted);
                break;
            }
            self.tend_dials(now);
            self.wait(self.connecting.next_deadline().min(now + 100_000_000));
        }
        self.speak();
        self.open_port();
        self.connecting.phase.generator_cpu_ns = thread_cpu_ns() - cpu;
        (self.report)(Report::Ready);
        true
    }

    /// Behind a pool of sessions that is smaller than the number of clients, some are served when
    /// others have left.
    fn tell_of_unprepared(&mut self, wanted: u32) {
        let waiting = wanted - self.connecting.prepared;
        let text = format!(
            "{waiting} of {wanted} clients of a thread are connected, but their statements are not \
             prepared; the others begin without them"
        );
        (self.report)(Report::Said(vec![UserMessage {
            level: MessageLevel::Info,
            text,
            at: None,
        }]));
    }

    /// Waits until the conductor says when the load begins; false when it will not.
    pub(crate) fn await_beginning(&mut self) -> bool {
        loop {
            self.grid = self.shared.read();
            if self.grid.began != NEVER {
                return true;
            }
            if self.grid.abandon != NEVER || self.connecting.failed {
                return false;
            }
            self.wait(self.now() + 100_000_000);
        }
    }

    /// Begins as many attempts as the budget allows, and ends those that have had their time.
    pub(crate) fn tend_dials(&mut self, now: u64) {
        self.time_out_dials(now);
        self.dial_waiting(now);
    }

    fn dial_waiting(&mut self, now: u64) {
        while now >= self.connecting.next_attempt() && !self.connecting.failed {
            let Some(index) = self.connecting.waiting.pop_front() else { break };
            if self.slots[index].finished {
                continue;
            }
            // Equal gaps would keep step with the server's own rhythms.
            let jitter = 0.5 + self.connecting.jitter.double();
            self.connecting.next_ns = now + (self.connecting.gap_ns as f64 * jitter) as u64;
            self.connecting.dialing += 1;
            self.connecting.span.0 = self.connecting.span.0.min(now);
            let dial = match std::mem::replace(&mut self.slots[index].link, Link::None) {
                // Put back because the backlog was full.
                Link::Dialing(dial, _) => dial,
                _ => {
                    let route = &self.routes[self.slots[index].session.workload];
                    let jitter = &mut self.connecting.jitter;
                    let first = route.first_step(|n| jitter.uniform(0, n as i64 - 1) as usize);
                    if let Some(timeout) = route.timeout_ns {
                        self.connecting.timeouts.push(Reverse((now + timeout, index, now)));
                    }
                    Box::new(DialAttempt::new(first, now))
                }
            };
            self.slots[index].link = Link::Dialing(dial, None);
            self.dial(index, DialAttempt::start);
        }
    }

    /// Lets a dial take a step, and acts on it.
    fn dial(
        &mut self,
        index: usize,
        step: impl FnOnce(&mut DialAttempt, &ConnectRoute) -> DialStep,
    ) {
        let route = &self.routes[self.slots[index].session.workload];
        // A session that was taken out of the line does not dial any more.
        let Link::Dialing(dial, _) = &mut self.slots[index].link else { return };
        let progress = step(dial, route);
        self.progress(index, progress);
    }

    fn progress(&mut self, index: usize, progress: DialStep) {
        match progress {
            DialStep::Pending => {}
            DialStep::Registered(socket) => self.register(index, socket),
            DialStep::Later => {
                self.connecting.dialing -= 1;
                self.connecting.next_ns = self.now() + BACKLOG_PAUSE_NS;
                self.connecting.waiting.push_front(index);
            }
            DialStep::NextStep => self.next_step(index),
            DialStep::Done(started) => self.started(index, *started),
            DialStep::Failed(failure) => self.dial_failed(index, failure.into()),
            // Only a connection that cancels ends so.
            DialStep::Cancelled => {}
        }
    }

    fn register(&mut self, index: usize, mut socket: BufferedSocket) {
        // A session that was taken out of the line does not need the socket.
        let Link::Dialing(dial, place) = &mut self.slots[index].link else { return };
        // Within one machine it is connected by now, and an event that says so would only be one
        // more to take.
        dial.awaits_writable = !socket.is_connected();
        let writable = if dial.awaits_writable { EventFlags::OUT } else { EventFlags::empty() };
        let data = epoll::EventData::new_u64(index as u64);
        let added = epoll::add(&self.epoll, socket.fd(), data, LIVE | writable);
        *place = Some(socket);
        if let Err(error) = added {
            let message = format!("could not watch a socket: {error}");
            self.dial_failed(index, ConnectFailure::new(message));
            return;
        }
        self.dial_event(index);
    }

    /// Something happened on the socket of a dial.
    pub(crate) fn dial_event(&mut self, index: usize) {
        let route = &self.routes[self.slots[index].session.workload];
        if self.programs[self.slots[index].session.workload].derives_keys {
            self.keys = KeyCache::new();
        }
        // The event belongs to an attempt that was given up in the same turn.
        let Link::Dialing(dial, Some(socket)) = &mut self.slots[index].link else { return };
        let progress = dial.advance(route, socket, &mut self.keys, nonce, &mut self.buffer);
        self.progress(index, progress);
    }

    fn next_step(&mut self, index: usize) {
        let now = self.now();
        let route = &self.routes[self.slots[index].session.workload];
        if let Link::Dialing(dial, socket) = &mut self.slots[index].link {
            *socket = None;
            // Another way to the same address has what is left of its time.
            if let Some(timeout) = route.timeout_ns.filter(|_| dial.is_at_new_address) {
                dial.step_began = now;
                self.connecting.timeouts.push(Reverse((now + timeout, index, now)));
            }
        }
        self.dial(index, DialAttempt::start);
    }

    fn started(&mut self, index: usize, started: Started) {
        let now = self.now();
        let Link::Dialing(dial, Some(socket)) =
            std::mem::replace(&mut self.slots[index].link, Link::None)
        else {
            unreachable!("the server has answered on the socket of the attempt");
        };
        self.connecting.dialing -= 1;
        let slot = &mut self.slots[index];
        slot.link = Link::Live(socket);
        slot.key = started.backend_key;
        slot.step = dial.step(&self.routes[slot.session.workload]) as u32;
        let again = std::mem::take(&mut slot.attempts) > 0;
        slot.session.connected();
        if let Some(key) = &slot.key {
            slot.session.hears_backend(key.pid);
        }
        // What an outage cost is told by the counts, not by the phase of connecting.
        if !again {
            self.connecting.phase.count += 1;
            self.connecting.phase.latency.record_ns(now - dial.began);
            self.connecting.span.1 = now;
        }
        if dial.awaits_writable {
            self.watch(index, LIVE);
        }
        if self.traffic.is_some() {
            self.hand_over(index);
        }
        let program = &self.programs[self.slots[index].session.workload];
        if self.grid.began == NEVER {
            self.step(index, now, |session, cx| session.prepare(program, cx.out));
        } else {
            if again {
                self.tally.reconnected(self.slots[index].session.workload);
            }
            self.go_on(index);
        }
    }

    /// A session is connected and its statements are prepared, before the load begins.
    pub(crate) fn prepared(&mut self) {
        self.connecting.prepared += 1;
        let n = self.connecting.prepared;
        // Not more than a hundred reports a lane, or the conductor drowns in them.
        let every = (self.slots.len() as u32 / 100).max(1);
        if n.is_multiple_of(every) || n as usize == self.slots.len() {
            (self.report)(Report::Connected(n));
        }
    }

    fn dial_failed(&mut self, index: usize, failure: ConnectFailure) {
        let now = self.now();
        self.connecting.dialing -= 1;
        self.slots[index].link = Link::None;
        let state = failure.sqlstate.clone().unwrap_or_else(|| "08001".to_owned());
        *self.connecting.phase.failures.entry(state.clone()).or_default() += 1;
        if self.grid.began == NEVER {
            self.fail(failure);
            return;
        }
        let workload = self.slots[index].session.workload;
        self.tally.error(workload, &state, now, || None);
        if self.plan.workloads[workload].on_loss == OnLoss::Reconnect {
            self.back_off(index, now);
            return;
        }
        self.step(index, now, |session, cx| {
            cx.say(MessageLevel::Error, failure.message);
            let text = format!("client {} aborted while establishing connection", session.id);
            session.abort(cx, text)
        });
    }

    /// The load cannot begin.
    pub(crate) fn fail(&mut self, failure: ConnectFailure) {
        if std::mem::replace(&mut self.connecting.failed, true) {
            return;
        }
        // The user is told how many got in, so count exactly.
        (self.report)(Report::Connected(self.connecting.phase.count as u32));
        (self.report)(Report::ConnectFailed(failure));
    }

    /// Connects again after a pause that grows with every attempt.
    pub(crate) fn back_off(&mut self, index: usize, now: u64) {
        let slot = &mut self.slots[index];
        slot.attempts += 1;
        let pause = (BACK_OFF_NS << (slot.attempts - 1).min(8)).min(BACK_OFF_NS_MAX);
        let jitter = 0.5 + self.connecting.jitter.double() / 2.0;
        self.set_timer(index, now + (pause as f64 * jitter) as u64);
    }

    /// Puts a session without a connection in line for one.
    pub(crate) fn redial(&mut self, index: usize, now: u64) {
        self.connecting.waiting.push_back(index);
        self.dial_waiting(now);
    }

    /// Takes a session that is on its way in out of the line.
    pub(crate) fn undial(&mut self, index: usize) {
        self.slots[index].link = Link::None;
        if !self.connecting.waiting.contains(&index) {
            self.connecting.dialing -= 1;
        }
    }

    /// Ends dials whose host has had its time.
    fn time_out_dials(&mut self, now: u64) {
        while let Some(Reverse((at, index, began))) = self.connecting.timeouts.peek().copied() {
            if at > now {
                break;
            }
            self.connecting.timeouts.pop();
            let route = &self.routes[self.slots[index].session.workload];
            let Link::Dialing(dial, socket) = &mut self.slots[index].link else { continue };
            if dial.step_began != began {
                continue;
            }
            let progress = dial.timed_out(route);
            if socket.is_none() {
                // It stands in line because the backlog was full.
                self.connecting.waiting.retain(|other| *other != index);
                self.connecting.dialing += 1;
            }
            self.progress(index, progress);
        }
    }

    /// Asks the server to cancel what still runs, and ends sleeps.
    pub(crate) fn cancel_busy(&mut self) {
        self.cancelled = true;
        let mut requests = Vec::new();
        for index in 0..self.slots.len() {
            let slot = &self.slots[index];
            if slot.finished {
                continue;
            }
            let step = slot.step as usize;
            let route = &self.routes[slot.session.workload];
            if slot.session.is_in_transaction() {
                self.tally.totals[slot.session.workload].open.gave_up = true;
            }
            if slot.session.state == SessionState::Sleeping {
                self.give_up(index);
            } else if let (true, Some(key)) = (slot.session.is_busy(), &slot.key) {
                requests.push(Canceller::new(Arc::clone(route), step, key.clone()));
            }
        }
        cancel::send(requests);
    }

    /// A session that was connected while the load runs goes on with its transactions.
    fn go_on(&mut self, index: usize) {
        match self.slots[index].session.state {
            // The slot of the schedule that it has taken.
            SessionState::Due => self.set_timer(index, self.slots[index].session.scheduled),
            SessionState::Retrying(at) => self.set_timer(index, at),
            _ => self.have_turn(index),
        }
    }

    /// At the close, once: takes down what has not ended, and ends the sessions that wait for a slot
    /// or for a connection, which have nothing left to wait for.
    pub(super) fn close(&mut self, now: u64) {
        if now < self.grid.close || std::mem::replace(&mut self.closed, true) {
            return;
        }
        self.note_open();
        for index in 0..self.slots.len() {
            let slot = &self.slots[index];
            let away = matches!(slot.link, Link::None | Link::Dialing(..));
            let waits = matches!(
                slot.session.state,
                SessionState::Due | SessionState::Preparing | SessionState::Retrying(_)
            );
            if away || slot.queued || waits {
                self.finish(index);
            }
        }
        if self.leaves_alone(now) {
            // The window ends before the first client disconnects.
            for index in 0..self.slots.len() {
                if self.slots[index].finished {
                    self.leave(index);
                }
            }
        }
    }

    /// True if a client that is done disconnects by itself. Others may wait for what its session
    /// has: a lock, a server connection of a pool. Where the rig cancels what takes too long, the
    /// clients disconnect together instead, as a phase of its own.
    fn leaves_alone(&self, now: u64) -> bool {
        let is_counted = matches!(self.plan.limit, LoadLimit::Transactions(_));
        self.plan.drain_ms.is_none() && (is_counted || now >= self.grid.close)
    }

    /// Takes down the ages of the transactions that are open at the close.
    fn note_open(&mut self) {
        let close = self.grid.close;
        self.tally.closed();
        for slot in self.slots.iter().filter(|slot| !slot.finished) {
            let session = &slot.session;
            if let Some(since) = session.unserved_since {
                let since_ns = close.saturating_sub(since.get());
                self.tally.totals[session.workload].unserved.record_ns(since_ns);
            }
            let is_tried_again = matches!(session.state, SessionState::Retrying(_));
            if session.is_in_transaction() || is_tried_again {
                let (backend, scheduled, began) =
                    (session.backend, session.scheduled, session.began);
                let open = SlowTransaction { backend, scheduled, began, ended: close };
                self.tally.still_open(session.workload, open);
            } else if session.state == SessionState::Due && session.scheduled < close {
                let mut age = LatencyHistogram::new();
                age.record_ns(close - session.scheduled);
                self.tally.none_started(session.workload, close, &age);
            }
        }
        for workload in 0..self.schedules.len() {
            let on_schedule = self.on_schedule(workload, close);
            let (rates, grid) = (self.plan.rates.as_ref(), self.grid);
            let Some(schedule) = &mut self.schedules[workload] else { continue };
            let ages = schedule.take_all(on_schedule, |due| match rates {
                Some(rates) => close.saturating_sub(rates.moment(&grid, due)),
                None => on_schedule - due,
            });
            self.tally.none_started(workload, close, &ages);
        }
    }

    /// The connection of a session is gone.
    pub(crate) fn lost(&mut self, index: usize, why: Option<&str>) {
        let now = self.now();
        self.slots[index].link = Link::None;
        self.slots[index].key = None;
        // What was meant for this connection is not for the next one.
        self.unsent.retain(|(other, _)| *other != index);
        if self.slots[index].finished {
            return;
        }
        if self.grid.began == NEVER {
            self.lost_early(index, why);
            return;
        }
        self.roll(now);
        if now >= self.grid.cancel {
            self.give_up(index);
            return;
        }
        let is_dropped = std::mem::take(&mut self.slots[index].is_dropped);
        let on_loss = self.plan.workloads[self.slots[index].session.workload].on_loss;
        let told = self.slots[index].session.server_error_state();
        self.step(index, now, |session, cx| {
            session.fails_with(told.as_deref().unwrap_or(CONNECTION_FAILURE));
            session.is_unserved(cx, now);
            if told.is_none() && !is_dropped {
                session.count_error(cx, now, CONNECTION_FAILURE);
            }
            if session.outcome_is_unknown(cx) {
                cx.tally.totals[session.workload].unknown += 1;
            }
            session.note_unfinished(cx, now);
            session.account_for_loss(cx, now);
            let text = session.lost(cx.program, why);
            match on_loss {
                OnLoss::Abort => session.abort(cx, text),
                OnLoss::Reconnect => {
                    if session.is_in_transaction() && !session.is_tried_after_loss(cx, now) {
                        session.end(cx, now, Ending::Other);
                    }
                    session.connected();
                    Wait::Server
                }
            }
        });
        if on_loss == OnLoss::Abort || self.slots[index].finished {
            return;
        }
        if self.is_spent(index, now) {
            self.finish(index);
        } else if is_dropped {
            // At once, but not before this turn of the lane is over: whoever noticed the loss may still look at the link.
            self.slots[index].attempts += 1;
            self.set_timer(index, now);
        } else {
            self.back_off(index, now);
        }
    }

    /// A connection is gone before the load has begun.
    fn lost_early(&mut self, index: usize, why: Option<&str>) {
        let slot = &mut self.slots[index];
        let step = &self.routes[slot.session.workload].steps[slot.step as usize];
        let error = slot.session.take_server_error();
        let said = error.as_ref().map(ToString::to_string);
        let why = said.as_deref().or(why).unwrap_or("server closed the connection unexpectedly");
        self.fail(ConnectFailure {
            sqlstate: error.map(|error| error.sql_state.as_str().to_owned()),
            ..ConnectFailure::new(format!("{}: {why}", step.endpoint.connection_failed()))
        });
    }

    /// A session has aborted.
    pub(super) fn gone(&mut self, index: usize) {
        if self.grid.began == NEVER {
            // It has just said why.
            let message = self.narration.pop().map(|message| message.text).unwrap_or_default();
            self.fail(ConnectFailure::new(message));
        }
        if !self.slots[index].finished {
            (self.report)(Report::Aborted);
            self.finish(index);
        }
    }

    /// A client has done all it will do.
    pub(crate) fn finish(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        if slot.finished {
            return;
        }
        slot.finished = true;
        self.finished += 1;
        if let Link::Dialing(..) = slot.link {
            self.undial(index);
        }
        if self.slots[index].session.state == SessionState::Aborted {
            self.slots[index].link = Link::None;
        } else if self.leaves_alone(self.now()) {
            self.leave(index);
        }
    }

    /// The rig ends a client, in the middle of a transaction or not.
    pub(crate) fn give_up(&mut self, index: usize) {
        let now = self.now();
        let is_lost = matches!(self.slots[index].link, Link::None);
        self.step(index, now, |session, cx| {
            session.give_up(cx, now);
            if is_lost {
                session.account_for_loss(cx, now);
            }
            Wait::Server
        });
        self.finish(index);
    }

    /// No session waits any longer.
    pub(super) fn abandon(&mut self) {
        for index in 0..self.slots.len() {
            if self.slots[index].finished {
                continue;
            }
            if let Link::Live(_) = self.slots[index].link {
                self.slots[index].link = Link::None;
            }
            self.give_up(index);
        }
    }

    /// Ends the connection of a session that will have another one.
    pub(crate) fn hang_up(&mut self, index: usize) {
        if let Link::Live(socket) = &mut self.slots[index].link {
            let mut out = Vec::with_capacity(5);
            wire::frontend::terminate(&mut out);
            // Whether it arrives or not, the connection ends here.
            let _ = socket.send(&out);
        }
        self.slots[index].link = Link::None;
        self.slots[index].key = None;
    }

    /// Says good-bye on the connection of a client that is done, if it has one.
    pub(crate) fn leave(&mut self, index: usize) {
        let now = self.now();
        self.slots[index].link = match std::mem::replace(&mut self.slots[index].link, Link::None) {
            Link::Live(socket) => Link::Closing(socket, now),
            other => {
                self.slots[index].link = other;
                return;
            }
        };
        self.say_good_bye(index);
        let connecting = &mut self.connecting;
        connecting.closing += 1;
        connecting.leaving_span.0 = connecting.leaving_span.0.min(now);
    }

    /// The connection of a client that has left is gone.
    pub(crate) fn left(&mut self, index: usize) {
        self.slots[index].link = Link::None;
        self.connecting.closing -= 1;
    }

    /// Says good-bye on every connection that is left and waits until the servers have closed all.
    pub(crate) fn disconnect_all(&mut self) {
        self.await_close();
        let cpu = thread_cpu_ns();
        let now = self.now();
        (0..self.slots.len()).for_each(|index| self.leave(index));
        let deadline = now + LEAVING_NS_MAX;
        while self.connecting.closing > 0 && self.now() < deadline {
            self.grid = self.shared.read();
            if self.now() >= self.grid.abandon {
                break;
            }
            self.wait((self.now() + 100_000_000).min(deadline));
        }
        self.connecting.leaving.generator_cpu_ns = thread_cpu_ns() - cpu;
    }

    /// Lets the clients of a lane that are done early wait for the close, if clients disconnect
    /// together.
    fn await_close(&mut self) {
        let is_timed = matches!(self.plan.limit, LoadLimit::Time { .. });
        let is_together = is_timed && self.plan.drain_ms.is_some() && self.grid.began != NEVER;
        while is_together && self.slots.iter().any(|slot| matches!(slot.link, Link::Live(_))) {
            self.grid = self.shared.read();
            let now = self.now();
            if now >= self.grid.close {
                break;
            }
            self.wait(self.grid.close.min(now + 100_000_000));
        }
    }

    /// Something happened on a connection that was said good-bye to.
    pub(crate) fn closing_event(&mut self, index: usize) {
        // An earlier event of this turn has ended the connection.
        let Link::Closing(socket, said) = &mut self.slots[index].link else { return };
        let said = *said;
        // An error shows when the end of the stream is read.
        let _ = socket.flush();
        loop {
            self.buffer.clear();
            match socket.receive(&mut self.buffer) {
                Ok(ReadResult::Bytes { .. }) => {}
                Ok(ReadResult::Nothing) => return,
                Ok(ReadResult::Closed) | Err(_) => break,
            }
        }
        self.left(index);
        let now = self.now();
        let connecting = &mut self.connecting;
        connecting.leaving.count += 1;
        connecting.leaving.latency.record_ns(now - said);
        connecting.leaving_span.1 = now;
    }
}
