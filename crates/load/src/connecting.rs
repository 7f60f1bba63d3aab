//! Making connections: a measured phase, with a budget.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    sync::Arc,
};

use os::scheduling::BatchScheduling;
use record::ConnectionPhase;
use rustix::event::epoll::{self, EventFlags};
use wire::{auth::KeyCache, startup::SessionFacts as Started};

use crate::{
    MessageLevel, UserMessage, cancel,
    grid::NEVER,
    lane::{LIVE, Lane, Link, thread_cpu_ns},
    report::{ConnectFailure, Report},
    session::SessionState,
};
use server::{
    Canceller,
    dial::{BufferedSocket, ConnectRoute, DialAttempt, DialStep, nonce},
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
        if self.port.is_some() {
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
        if self.plan.workloads[workload].on_loss == crate::OnLoss::Reconnect {
            self.back_off(index, now);
            return;
        }
        self.step(index, now, |session, cx| {
            cx.say(crate::MessageLevel::Error, failure.message);
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
}
