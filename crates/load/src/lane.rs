//! One thread with one epoll and its sessions.
//!
//! Nothing is scanned per wake-up: events name their session, timers lie in a heap, idle sessions
//! of an open loop in a queue. What a wake-up costs does not depend on how many sessions there
//! are.
//!
//! Here is the loop, the step of one session that everything comes down to, and the choice of the session
//! that starts its next transaction, and of the time: turns in a closed loop, the schedule's slots in an open
//! one. What goes through the sockets is in [`traffic`]; how connections are made and sessions end is in
//! [`connecting`].

mod connecting;
mod cpu;
mod draws;
mod slot;
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
use rustix::net::{Shutdown, shutdown};
use script::{ThreadStates, Xoroshiro128};
use stats::LatencyHistogram;
use wire::auth::KeyCache;

pub(crate) use connecting::Connecting;
pub(crate) use cpu::{Spent, thread_cpu_ns};
pub(crate) use slot::{Link, Slot};
pub(crate) use traffic::RingTraffic;

use crate::{
    LoadPlan, MessageLevel, UserMessage,
    clock::Clock,
    grid::{Grid, NEVER, SharedGrid},
    lane_history::LaneHistory,
    ledger::LaneLedger,
    log::LaneLog,
    program::Program,
    report::Report,
    schedule::Schedule,
    session::{LaneContext, Session, SessionState, Wait},
    tally::Tally,
};
use cpu::Cpu;
use server::dial::ConnectRoute;
use traffic::{EVENTS_MAX, WAKE};

/// Messages kept from one lane; a script that fails a thousand times a second says the same.
pub(crate) const MESSAGES_MAX: usize = 2_000;

pub(crate) struct Lane<'p> {
    pub(crate) plan: &'p LoadPlan,
    pub(crate) programs: &'p [Program],
    pub(crate) routes: &'p [Arc<ConnectRoute>],
    pub(crate) slots: Vec<Slot>,
    pub(crate) epoll: OwnedFd,
    /// The ring through which connections that are made send and receive; epoll does it without.
    pub(crate) traffic: Option<Box<RingTraffic>>,
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
            traffic: None,
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
            storms: storms_of(parts.plan),
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
            let on_schedule =
                |schedule: &Schedule| schedule.backlog(schedule_clock(plan, workload, grid, at));
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

impl Lane<'_> {
    /// A session has nothing to do: another transaction, or its end.
    fn next(&mut self, index: usize, now: u64) {
        if self.is_spent(index, now) {
            self.finish(index);
            return;
        }
        let session = &self.slots[index].session;
        if self.programs[session.workload].connect_each && session.transactions > 0 {
            self.hang_up(index);
        }
        // One transaction, then the others have their turn, unless the server has it anyway.
        self.have_turn(index);
    }

    /// True if a session may begin no further transaction.
    fn is_spent(&self, index: usize, now: u64) -> bool {
        let session = &self.slots[index].session;
        let limit = self.programs[session.workload].transactions;
        now >= self.grid.close || limit.is_some_and(|limit| session.transactions >= limit)
    }

    /// Puts a session that could start a transaction behind those that wait for the same.
    pub(crate) fn have_turn(&mut self, index: usize) {
        self.turn.push_back(index);
    }

    fn take_turns(&mut self) {
        // Not all of thousands at once: the first ones' answers must not wait for the last ones.
        for _ in 0..self.turn.len().min(EVENTS_MAX) {
            let Some(index) = self.turn.pop_front() else { break };
            let now = self.now();
            self.roll(now);
            self.start(index, now);
        }
    }

    /// Starts the next transaction of an idle session, if it is due.
    fn start(&mut self, index: usize, now: u64) {
        if !self.is_ready(index) {
            return;
        }
        if self.is_spent(index, now) {
            self.finish(index);
            return;
        }
        let workload = self.slots[index].session.workload;
        if self.is_held_back(workload, now) {
            self.queue(index);
        } else if self.schedules[workload].is_some() {
            self.queue(index);
            self.start_due(now);
        } else if matches!(self.slots[index].link, Link::None) {
            self.redial(index, now);
        } else {
            self.begin_turn(index, now);
            self.step(index, now, |session, cx| {
                session.choose(cx);
                session.begin(cx, now, now)
            });
        }
    }

    /// The first transaction of a session in a block begins its random numbers anew.
    fn begin_turn(&mut self, index: usize, now: u64) {
        let turn = self.plan.blocks.as_ref().and_then(|blocks| blocks.turn(&self.grid, now));
        let slot = &mut self.slots[index];
        if let (Some(turn), Some(draws)) = (turn, &mut slot.draws) {
            draws.begin(turn.draws, &mut slot.session);
        }
    }

    /// Puts an idle session behind those of its workload that wait for a slot or a block.
    fn queue(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        if !std::mem::replace(&mut slot.queued, true) {
            self.idle[slot.session.workload].push_back(index);
        }
    }

    /// True if the block under way belongs to another workload.
    fn is_held_back(&self, workload: usize, now: u64) -> bool {
        let blocks = self.plan.blocks.as_ref();
        blocks.is_some_and(|blocks| !blocks.is_on(workload, &self.grid, now))
    }

    /// Gives the sessions whose block has begun their turn.
    fn start_block(&mut self, now: u64) {
        if self.plan.blocks.is_none() {
            return;
        }
        for workload in 0..self.idle.len() {
            // Those of a schedule wait for its slots.
            let has_schedule = self.schedules[workload].is_some();
            if has_schedule || self.idle[workload].is_empty() || self.is_held_back(workload, now) {
                continue;
            }
            for index in std::mem::take(&mut self.idle[workload]) {
                self.slots[index].queued = false;
                self.have_turn(index);
            }
        }
    }

    /// True if a session can begin a transaction: it is idle, and it has a connection or makes one
    /// for each transaction.
    fn is_ready(&self, index: usize) -> bool {
        let slot = &self.slots[index];
        let reachable = match slot.link {
            Link::Live(_) => true,
            Link::None => slot.attempts == 0 && self.programs[slot.session.workload].connect_each,
            Link::Dialing(..) | Link::Closing(..) => false,
        };
        reachable && !slot.finished && slot.session.state == SessionState::Idle
    }

    /// Starts the clocks of the schedules.
    fn begin_schedules(&mut self, began: u64) {
        for workload in 0..self.schedules.len() {
            let now = self.on_schedule(workload, began);
            if let Some(schedule) = &mut self.schedules[workload] {
                schedule.begin(now);
            }
        }
    }

    /// A moment on the clock of a workload's schedule.
    fn on_schedule(&self, workload: usize, now: u64) -> u64 {
        schedule_clock(self.plan, workload, &self.grid, now)
    }

    /// Time at which the next slot of a workload is due: as long before now, or after it, as it is
    /// on the clock of its schedule. None in closed loop.
    fn due(&self, workload: usize, now: u64) -> Option<u64> {
        let due = self.schedules[workload].as_ref()?.due_ns();
        Some(self.moment(workload, due, now))
    }

    /// The moment at which the clock of a workload's schedule shows `due`.
    fn moment(&self, workload: usize, due: u64, now: u64) -> u64 {
        match (&self.plan.blocks, &self.plan.rates) {
            (None, None) => return due,
            (None, Some(rates)) => return rates.moment(&self.grid, due),
            (Some(_), _) => {}
        }
        let on_schedule = self.on_schedule(workload, now);
        // A lane without clients has slots beyond all moments.
        match due > on_schedule {
            true => now.saturating_add(due - on_schedule),
            false => now.saturating_sub(on_schedule - due),
        }
    }

    /// Time at which a session that waits for a slot or a block has its turn next.
    fn next_slot(&self) -> u64 {
        let waiting = self.idle.iter().enumerate().filter(|(_, idle)| !idle.is_empty());
        let next = waiting.filter_map(|(workload, _)| {
            if self.plan.blocks.is_none() {
                return self.due(workload, self.now());
            }
            let (blocks, now) = (self.plan.blocks.as_ref()?, self.now());
            let begins = blocks.next(workload, &self.grid, now);
            match self.due(workload, now) {
                Some(due) if !self.is_held_back(workload, now) => Some(begins.min(due)),
                _ => Some(begins),
            }
        });
        next.min().unwrap_or(NEVER)
    }

    /// Open loop: gives every slot that is due to a session that is idle.
    fn start_due(&mut self, now: u64) {
        for workload in 0..self.schedules.len() {
            if self.is_held_back(workload, now) {
                continue;
            }
            while let (Some(due), Some(&index)) =
                (self.due(workload, now), self.idle[workload].front())
            {
                if due > now && due < self.grid.close {
                    break;
                }
                self.idle[workload].pop_front();
                self.slots[index].queued = false;
                if !self.is_ready(index) {
                    // Its connection was lost while it stood in line.
                    continue;
                }
                // As in pgbench, a client whose next slot lies beyond the end is done.
                if due >= self.grid.close {
                    self.finish(index);
                    continue;
                }
                if let Some(schedule) = &mut self.schedules[workload] {
                    schedule.take();
                }
                self.start_scheduled(index, now, due);
            }
        }
    }

    fn start_scheduled(&mut self, index: usize, now: u64, mut scheduled: u64) {
        let workload = self.slots[index].session.workload;
        let program = &self.programs[workload];
        let mut skipped = Vec::new();
        if let Some(limit) = program.stale_ns() {
            let left = program
                .transactions
                .map_or(u64::MAX, |limit| limit - self.slots[index].session.transactions);
            while now.saturating_sub(scheduled) > limit && (skipped.len() as u64) < left {
                let Some(schedule) = &mut self.schedules[workload] else { break };
                let due = schedule.take();
                skipped.push(scheduled);
                scheduled = self.moment(workload, due, now);
            }
        }
        let enough = program.transactions.is_some_and(|limit| {
            self.slots[index].session.transactions + skipped.len() as u64 >= limit
        });
        let ahead = scheduled > now;
        let ends = enough || (ahead && scheduled >= self.grid.close);
        let apart = matches!(self.slots[index].link, Link::None);
        self.begin_turn(index, now);
        self.step(index, now, |session, cx| {
            session.choose(cx);
            for scheduled in skipped {
                session.skip(cx, now, scheduled);
            }
            match () {
                () if ends => Wait::Server,
                // The slot that came out of skipping lies ahead: wait for it.
                () if ahead => session.wait_for_slot(scheduled),
                // As in pgbench, connecting is part of what the user of this slot waits for.
                () if apart => {
                    session.wait_for_slot(scheduled);
                    Wait::Server
                }
                () => session.begin(cx, now, scheduled),
            }
        });
        if ends {
            self.finish(index);
        } else if apart && !ahead {
            self.redial(index, now);
        }
    }

    fn fire_timers(&mut self, now: u64) {
        while let Some(Reverse((at, index, generation))) = self.timers.peek().copied() {
            if at > now {
                break;
            }
            self.timers.pop();
            let slot = &self.slots[index];
            if slot.generation != generation || slot.finished {
                continue;
            }
            match slot.link {
                Link::None => self.redial(index, now),
                Link::Live(_) => self.step(index, now, |session, cx| session.wake(cx, now)),
                Link::Dialing(..) | Link::Closing(..) => {}
            }
        }
    }

    pub(crate) fn set_timer(&mut self, index: usize, at: u64) {
        let slot = &mut self.slots[index];
        slot.generation = slot.generation.wrapping_add(1);
        self.timers.push(Reverse((at, index, slot.generation)));
    }

    /// The moment of the next storm.
    fn next_storm(&self) -> u64 {
        match (self.storms.last(), self.grid.open) {
            (None, _) | (_, NEVER) => NEVER,
            (Some((at_ms, _)), open) => open.saturating_add(at_ms * 1_000_000),
        }
    }

    /// Begins the storms whose moment has come. A connection is shut down and not closed: what reads it notices its end
    /// as it notices any other.
    fn begin_storms(&mut self, now: u64) {
        while now >= self.next_storm() {
            // A moment that has come is that of a storm.
            let Some((_, workload)) = self.storms.pop() else { return };
            self.connecting.take_all_at_once();
            for index in 0..self.slots.len() {
                let slot = &mut self.slots[index];
                if slot.session.workload != workload || slot.finished {
                    continue;
                }
                if let Link::Live(socket) = &slot.link {
                    // One that the server has closed already is noticed all the same.
                    slot.is_dropped = shutdown(socket.fd(), Shutdown::Both).is_ok();
                }
            }
        }
    }
}

/// A moment on the clock of a workload's schedule, which stands still outside the workload's blocks, and is
/// faster or slower than time where the plan's rates are.
fn schedule_clock(plan: &LoadPlan, workload: usize, grid: &Grid, now: u64) -> u64 {
    match (&plan.blocks, &plan.rates) {
        (Some(blocks), _) => blocks.active_until(workload, grid, now),
        (None, Some(rates)) => rates.on_schedule(grid, now),
        (None, None) => now,
    }
}

/// The storms of a plan, the first one last: milliseconds since the window opened, and the workload.
fn storms_of(plan: &LoadPlan) -> Vec<(u64, usize)> {
    let workloads = plan.workloads.iter().enumerate();
    let storms = workloads
        .flat_map(|(index, workload)| workload.storms_ms.iter().map(move |at_ms| (*at_ms, index)));
    let mut storms: Vec<(u64, usize)> = storms.collect();
    storms.sort_unstable_by(|one, other| other.cmp(one));
    storms
}
