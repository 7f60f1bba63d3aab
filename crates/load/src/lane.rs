//! One thread with one epoll and its sessions.
//!
//! Nothing is scanned per wake-up: events name their session, timers lie in a heap, idle sessions
//! of an open loop in a queue. What a wake-up costs does not depend on how many sessions there
//! are.
//!
//! Here is the loop, and the step of one session that everything comes down to. What goes through
//! the sockets is in [`traffic`], the starting of transactions in [`starting`], the end of
//! sessions in [`ending`] and [`leaving`]; how connections are made in [`crate::connecting`].

mod cpu;
mod draws;
mod ending;
mod leaving;
mod port;
mod slot;
mod starting;
mod storms;
mod timers;
mod traffic;

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    ops::Range,
    os::fd::OwnedFd,
    sync::Arc,
};

use record::SocketIo;
use rustix::event::epoll::{self, EventFlags};
use script::{ThreadStates, Xoroshiro128};
use stats::LatencyHistogram;
use wire::auth::KeyCache;

pub(crate) use cpu::{Spent, thread_cpu_ns};
pub(crate) use port::Port;
pub(crate) use slot::{Link, Slot};
pub(crate) use traffic::LIVE;

use crate::{
    LoadPlan, MessageLevel, UserMessage,
    clock::Clock,
    connecting::Connecting,
    grid::{Grid, NEVER, SharedGrid},
    lane_history::LaneHistory,
    ledger::LaneLedger,
    log::LaneLog,
    program::Program,
    report::Report,
    schedule::Schedule,
    session::{LaneContext, Session, Wait},
    tally::Tally,
};
use cpu::Cpu;
use server::dial::ConnectRoute;
use traffic::WAKE;

/// Messages kept from one lane; a script that fails a thousand times a second says the same.
pub(crate) const MESSAGES_MAX: usize = 2_000;

pub(crate) struct Lane<'p> {
    pub(crate) plan: &'p LoadPlan,
    pub(crate) programs: &'p [Program],
    pub(crate) routes: &'p [Arc<ConnectRoute>],
    pub(crate) slots: Vec<Slot>,
    pub(crate) epoll: OwnedFd,
    /// The ring through which connections that are made send and receive; epoll does it without.
    pub(crate) port: Option<Box<Port>>,
    pub(crate) wake: Arc<OwnedFd>,
    pub(crate) shared: &'p SharedGrid,
    pub(crate) grid: Grid,
    pub(crate) clock: Clock,
    pub(crate) report: &'p (dyn Fn(Report) + Sync),
    pub(crate) tally: Tally,
    pub(crate) log: Option<LaneLog>,
    /// The log could not be written to its end.
    pub(crate) log_is_cut: bool,
    pub(crate) ledger: Option<LaneLedger>,
    pub(crate) history: Option<LaneHistory>,
    choose: Xoroshiro128,
    schedules: Vec<Option<Schedule>>,
    /// Open loop: sessions of each workload that wait for a slot, longest first.
    idle: Vec<VecDeque<usize>>,
    timers: BinaryHeap<Reverse<(u64, usize, u32)>>,
    /// The storms to come: milliseconds since the window opened, and the workload; the next one last.
    storms: Vec<(u64, usize)>,
    /// Sessions that could go on at once but have had their turn.
    turn: VecDeque<usize>,
    pub(crate) keys: KeyCache,
    /// Bytes that arrive, for any session: sessions keep only incomplete frames.
    pub(crate) buffer: Vec<u8>,
    out: Vec<u8>,
    /// Part of `out` that goes to each session.
    unsent: Vec<(usize, Range<usize>)>,
    narration: Vec<UserMessage>,
    said: usize,
    pub(crate) connecting: Connecting,
    /// Clients that will do nothing more.
    finished: usize,
    loop_lag: LatencyHistogram,
    cpu: Cpu,
    /// The kernel's interface by which its connections send and receive.
    pub(crate) io: Option<SocketIo>,
    pub(crate) cancelled: bool,
    /// The close has been acted on.
    closed: bool,
}

/// Everything that a lane is made from.
pub(crate) struct Parts<'p> {
    pub(crate) plan: &'p LoadPlan,
    pub(crate) programs: &'p [Program],
    pub(crate) routes: &'p [Arc<ConnectRoute>],
    pub(crate) shared: &'p SharedGrid,
    pub(crate) clock: Clock,
    pub(crate) report: &'p (dyn Fn(Report) + Sync),
    pub(crate) wake: Arc<OwnedFd>,
    pub(crate) sessions: Vec<Session>,
    pub(crate) states: ThreadStates,
    pub(crate) schedules: Vec<Option<Schedule>>,
    pub(crate) tally: Tally,
    pub(crate) connecting: Connecting,
}

impl<'p> Lane<'p> {
    pub(crate) fn new(parts: Parts<'p>) -> rustix::io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &parts.wake, epoll::EventData::new_u64(WAKE), EventFlags::IN)?;
        Ok(Lane {
            plan: parts.plan,
            programs: parts.programs,
            routes: parts.routes,
            slots: parts.sessions.into_iter().map(|one| Slot::new(one, parts.plan)).collect(),
            epoll,
            port: None,
            wake: parts.wake,
            shared: parts.shared,
            grid: Grid::UNDECIDED,
            clock: parts.clock,
            report: parts.report,
            idle: vec![VecDeque::new(); parts.programs.len()],
            tally: parts.tally,
            log: None,
            log_is_cut: false,
            ledger: None,
            history: None,
            choose: parts.states.choose,
            schedules: parts.schedules,
            timers: BinaryHeap::new(),
            storms: storms::of(parts.plan),
            turn: VecDeque::new(),
            keys: KeyCache::new(),
            buffer: Vec::new(),
            out: Vec::new(),
            unsent: Vec::new(),
            narration: Vec::new(),
            said: 0,
            connecting: parts.connecting,
            finished: 0,
            loop_lag: LatencyHistogram::new(),
            cpu: Cpu::default(),
            io: None,
            cancelled: false,
            closed: false,
        })
    }

    pub(crate) fn now(&self) -> u64 {
        self.clock.now()
    }

    /// The load itself, from its beginning until every client is done.
    pub(crate) fn run(&mut self) -> u64 {
        let began = self.grid.began;
        while self.now() < began {
            self.wait(began);
        }
        self.tally.begin(&self.grid);
        self.begin_schedules(began);
        for index in 0..self.slots.len() {
            self.turn.push_back(index);
        }
        loop {
            let now = self.now();
            self.look_around(now);
            self.take_turns();
            if self.finished == self.slots.len() {
                break;
            }
            self.wait(self.next_deadline());
        }
        let now = self.now();
        self.roll(now);
        self.close(now);
        self.cpu.leave(now);
        self.write_last_notes();
        let last = self.tally.finish(now, &self.grid);
        (self.report)(Report::Interval(last.index, last.cells));
        now
    }

    /// Handles everything that does not come as an event: phases, intervals, timers, schedules.
    fn look_around(&mut self, now: u64) {
        self.grid = self.shared.read();
        if let Some(history) = &mut self.history {
            history.moments_within(self.clock.bound_ns());
        }
        self.roll(now);
        self.cpu.look(now, &self.grid);
        if now >= self.grid.cancel && !self.cancelled {
            self.cancel_busy();
        }
        if now >= self.grid.abandon {
            self.abandon();
            return;
        }
        self.close(now);
        self.fire_timers(now);
        self.begin_storms(now);
        self.start_due(now);
        self.start_block(now);
        self.tend_dials(now);
        self.speak();
    }

    fn next_deadline(&self) -> u64 {
        let mut next = self.tally.interval_end(&self.grid).min(self.cpu.next_look(&self.grid));
        if !self.cancelled {
            next = next.min(self.grid.cancel);
        }
        next = next.min(self.grid.abandon).min(self.connecting.next_deadline());
        if let Some(Reverse((at, ..))) = self.timers.peek() {
            next = next.min(*at);
        }
        next = next.min(self.next_slot()).min(self.next_storm());
        if self.turn.is_empty() { next } else { 0 }
    }

    /// Lets one session take one step, keeps what it wants to send, and arranges what it waits
    /// for.
    pub(crate) fn step(
        &mut self,
        index: usize,
        now: u64,
        step: impl FnOnce(&mut Session, &mut LaneContext<'_>) -> Wait,
    ) {
        let own = &self.clock;
        let clock = move || own.now();
        let start = self.out.len();
        let slot = &mut self.slots[index];
        let mut surroundings = LaneContext {
            program: &self.programs[slot.session.workload],
            tally: &mut self.tally,
            log: self.log.as_mut(),
            ledger: self.ledger.as_mut(),
            history: self.history.as_mut(),
            narration: &mut self.narration,
            choose: slot.draws.as_mut().map_or(&mut self.choose, |draws| &mut draws.choose),
            out: &mut self.out,
            grid: self.grid,
            clock: &clock,
        };
        let wait = step(&mut slot.session, &mut surroundings);
        if wait == Wait::Gone {
            // A part of a pipeline must not be sent.
            self.out.truncate(start);
            self.gone(index);
            return;
        }
        if self.out.len() > start {
            self.unsent.push((index, start..self.out.len()));
        }
        match wait {
            Wait::Server | Wait::Gone => {}
            // A sleep that begins after the cancel has no purpose.
            Wait::Until(_) if self.cancelled => self.give_up(index),
            Wait::Until(at) => self.set_timer(index, at),
            Wait::Next if self.grid.began == NEVER => self.prepared(),
            Wait::Next => self.next(index, now),
        }
    }

    /// Hands over the intervals that are over.
    pub(crate) fn roll(&mut self, now: u64) {
        let (schedules, plan, grid) = (&self.schedules, self.plan, &self.grid);
        let backlog = |workload: usize, at: u64| {
            let on_schedule = |schedule: &Schedule| {
                schedule.backlog(starting::schedule_clock(plan, workload, grid, at))
            };
            // Without a schedule nothing is due, and nothing can wait.
            schedules[workload].as_ref().map_or(0, on_schedule)
        };
        while let Some(over) = self.tally.roll(now, &self.grid, backlog) {
            (self.report)(Report::Interval(over.index, over.cells));
        }
    }

    /// Passes on what sessions had to say.
    pub(crate) fn speak(&mut self) {
        if self.narration.is_empty() {
            return;
        }
        let mut messages = std::mem::take(&mut self.narration);
        if !self.plan.debug {
            let mut left = MESSAGES_MAX.saturating_sub(self.said);
            let before = messages.len();
            messages.retain(|message| {
                // What a script prints is its result, not narration.
                let stays = left > 0 || message.level == MessageLevel::Output;
                left = left.saturating_sub(1);
                stays
            });
            self.connecting.messages_dropped += (before - messages.len()) as u64;
        }
        self.said += messages.len();
        if !messages.is_empty() {
            (self.report)(Report::Said(messages));
        }
    }

    /// CPU time of this thread inside the window, and the loop lag.
    pub(crate) fn cost(&mut self) -> (Spent, LatencyHistogram) {
        (self.cpu.used(), std::mem::take(&mut self.loop_lag))
    }
}
