//! One thread with one epoll and its sessions.
//!
//! Nothing is scanned per wake-up: events name their session, timers lie in a heap, idle sessions
//! of an open loop in a queue. What a wake-up costs does not depend on how many sessions there
//! are. How connections are made and ended is in [`crate::connecting`].

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    ops::Range,
    os::fd::OwnedFd,
    sync::Arc,
    time::Instant,
};

use rustix::{
    event::{
        Timespec,
        epoll::{self, EventFlags},
    },
    io::Errno,
    time::{ClockId, clock_gettime},
};
use script::{Prng, ThreadStates};
use stats::Latency;
use wire::{auth::KeyCache, backend::BackendKey};

use crate::{
    Message, OnLoss, Plan,
    connecting::Connecting,
    dial::Dial,
    grid::{Grid, NEVER, SharedGrid},
    log::LaneLog,
    program::Program,
    report::{ConnectFailure, Report},
    route::Route,
    schedule::Schedule,
    session::{Session, State, Surroundings, Wait},
    socket::{Received, Sent, Socket, without_errno},
    tally::{Ending, Tally},
};

/// Events taken from the kernel at once. More would let a session wait longer for its turn after
/// it was woken, fewer would cost more system calls.
const EVENTS_MAX: usize = 64;

/// The event of the lane's own wake-up call, beyond every session's number.
pub(crate) const WAKE: u64 = u64::MAX;

/// Messages kept from one lane; a script that fails a thousand times a second says the same.
const MESSAGES_MAX: usize = 2_000;

/// A lane.
pub(crate) struct Lane<'p> {
    pub(crate) plan: &'p Plan,
    pub(crate) programs: &'p [Program],
    pub(crate) routes: &'p [Route],
    pub(crate) slots: Vec<Slot>,
    pub(crate) epoll: OwnedFd,
    pub(crate) wake: Arc<OwnedFd>,
    pub(crate) shared: &'p SharedGrid,
    pub(crate) grid: Grid,
    pub(crate) origin: Instant,
    pub(crate) report: &'p (dyn Fn(Report) + Sync),
    pub(crate) tally: Tally,
    pub(crate) log: Option<LaneLog>,
    choose: Prng,
    schedules: Vec<Option<Schedule>>,
    /// Open loop: sessions of each workload that wait for a slot, longest first.
    idle: Vec<VecDeque<usize>>,
    timers: BinaryHeap<Reverse<(u64, usize, u32)>>,
    /// Sessions that could go on at once but have had their turn.
    turn: VecDeque<usize>,
    pub(crate) keys: KeyCache,
    /// What arrives, whoever it is for: sessions keep only what is half done.
    pub(crate) buffer: Vec<u8>,
    out: Vec<u8>,
    /// Which part of `out` goes to which session.
    unsent: Vec<(usize, Range<usize>)>,
    narration: Vec<Message>,
    said: usize,
    pub(crate) connecting: Connecting,
    /// Clients that will do nothing more.
    finished: usize,
    loop_lag: Latency,
    cpu: Cpu,
    pub(crate) cancelled: bool,
    /// The close has been acted on.
    closed: bool,
}

/// One session and its connection.
pub(crate) struct Slot {
    pub(crate) session: Session,
    pub(crate) link: Link,
    /// What a cancel request shows, and where it goes.
    pub(crate) key: Option<BackendKey>,
    pub(crate) step: u32,
    /// Distinguishes this wait from earlier ones: a timer of another generation is stale.
    generation: u32,
    pub(crate) finished: bool,
    /// Whether it stands among the idle sessions of an open loop.
    queued: bool,
    /// Attempts to connect again since the connection was lost.
    pub(crate) attempts: u32,
}

pub(crate) enum Link {
    None,
    Dialing(Box<Dial>, Option<Socket>),
    Live(Socket),
    /// Terminate was sent; the server closes.
    Closing(Socket),
}

/// What this thread has spent on the CPU.
#[derive(Default)]
struct Cpu {
    at_open: Option<(u64, u64)>,
    at_close: Option<(u64, u64)>,
}

/// Everything that a lane is made from.
pub(crate) struct Parts<'p> {
    pub(crate) plan: &'p Plan,
    pub(crate) programs: &'p [Program],
    pub(crate) routes: &'p [Route],
    pub(crate) shared: &'p SharedGrid,
    pub(crate) origin: Instant,
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
        let slots = parts.sessions.into_iter().map(|session| Slot {
            session,
            link: Link::None,
            key: None,
            step: 0,
            generation: 0,
            finished: false,
            queued: false,
            attempts: 0,
        });
        Ok(Lane {
            plan: parts.plan,
            programs: parts.programs,
            routes: parts.routes,
            slots: slots.collect(),
            epoll,
            wake: parts.wake,
            shared: parts.shared,
            grid: Grid::UNDECIDED,
            origin: parts.origin,
            report: parts.report,
            idle: vec![VecDeque::new(); parts.programs.len()],
            tally: parts.tally,
            log: None,
            choose: parts.states.choose,
            schedules: parts.schedules,
            timers: BinaryHeap::new(),
            turn: VecDeque::new(),
            keys: KeyCache::new(),
            buffer: Vec::new(),
            out: Vec::new(),
            unsent: Vec::new(),
            narration: Vec::new(),
            said: 0,
            connecting: parts.connecting,
            finished: 0,
            loop_lag: Latency::new(),
            cpu: Cpu::default(),
            cancelled: false,
            closed: false,
        })
    }

    pub(crate) fn now(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    /// The load itself, from its beginning until every client is done.
    pub(crate) fn run(&mut self) -> u64 {
        let began = self.grid.began;
        while self.now() < began {
            self.wait(began);
        }
        self.tally.begin(&self.grid);
        for schedule in self.schedules.iter_mut().flatten() {
            schedule.begin(began);
        }
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
        self.cpu.leave(now);
        let last = self.tally.finish(now, &self.grid);
        (self.report)(Report::Interval(last.index, last.cells));
        now
    }

    /// What does not come as an event: phases, intervals, timers, schedules.
    fn look_around(&mut self, now: u64) {
        self.grid = self.shared.read();
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
        self.start_due(now);
        self.tend_dials(now);
        self.speak();
    }

    fn next_deadline(&self) -> u64 {
        let mut next = self.tally.interval_end(&self.grid);
        if !self.cancelled {
            next = next.min(self.grid.cancel);
        }
        next = next.min(self.grid.abandon).min(self.connecting.next_deadline());
        if let Some(Reverse((at, ..))) = self.timers.peek() {
            next = next.min(*at);
        }
        for (idle, schedule) in self.idle.iter().zip(&self.schedules) {
            if let (false, Some(schedule)) = (idle.is_empty(), schedule) {
                next = next.min(schedule.due_ns());
            }
        }
        if self.turn.is_empty() { next } else { 0 }
    }

    /// Waits for events until `deadline`, and handles them.
    pub(crate) fn wait(&mut self, deadline: u64) {
        self.flush();
        let timeout = deadline.saturating_sub(self.now()).min(1_000_000_000);
        let timeout = Timespec {
            tv_sec: (timeout / 1_000_000_000) as i64,
            tv_nsec: (timeout % 1_000_000_000) as _,
        };
        let mut events = [const { std::mem::MaybeUninit::uninit() }; EVENTS_MAX];
        let events = match epoll::wait(&self.epoll, &mut events, Some(&timeout)) {
            Ok((events, _)) => events,
            // A signal that another thread should have had.
            Err(Errno::INTR) => return,
            Err(_) => return,
        };
        if events.is_empty() {
            return;
        }
        let woke = self.now();
        for event in events {
            let (data, flags) = (event.data.u64(), event.flags);
            if data == WAKE {
                let mut count = [0; 8];
                let _ = rustix::io::read(&self.wake, &mut count);
                self.grid = self.shared.read();
            } else {
                self.event(data as usize, flags, woke);
            }
        }
    }

    fn event(&mut self, index: usize, flags: EventFlags, woke: u64) {
        match &mut self.slots[index].link {
            Link::None => {}
            Link::Dialing(..) => self.dial_event(index),
            Link::Closing(_) => self.closing_event(index),
            Link::Live(socket) => {
                if flags.contains(EventFlags::OUT)
                    && socket.flush().is_ok_and(|sent| sent == Sent::All)
                {
                    self.watch(index, LIVE);
                }
                if flags.intersects(READABLE) {
                    // After the peer has hung up, whatever is left is read to its end.
                    self.read(index, woke, flags.intersects(HUNG_UP));
                }
            }
        }
    }

    fn read(&mut self, index: usize, woke: u64, to_the_end: bool) {
        let mut buffer = std::mem::take(&mut self.buffer);
        loop {
            let slot = &mut self.slots[index];
            let Link::Live(socket) = &mut slot.link else { break };
            if slot.finished && !to_the_end {
                break;
            }
            buffer.clear();
            match socket.receive(&mut buffer) {
                Ok(Received::Bytes { more }) => {
                    let now = self.now();
                    if self.grid.in_window(now) {
                        self.loop_lag.record_ns(now - woke);
                    }
                    self.roll(now);
                    self.step(index, now, |session, cx| session.input(cx, now, &buffer));
                    if !more && !to_the_end {
                        break;
                    }
                }
                Ok(Received::Nothing) => break,
                Ok(Received::Closed) => {
                    self.lost(index, None);
                    break;
                }
                Err(error) => {
                    self.lost(index, Some(without_errno(&error.to_string())));
                    break;
                }
            }
        }
        self.buffer = buffer;
    }

    /// Lets one session take one step, keeps what it wants to send, and arranges what it waits
    /// for.
    pub(crate) fn step(
        &mut self,
        index: usize,
        now: u64,
        step: impl FnOnce(&mut Session, &mut Surroundings<'_>) -> Wait,
    ) {
        let origin = self.origin;
        let clock = move || origin.elapsed().as_nanos() as u64;
        let start = self.out.len();
        let slot = &mut self.slots[index];
        let mut surroundings = Surroundings {
            program: &self.programs[slot.session.workload],
            tally: &mut self.tally,
            log: self.log.as_mut(),
            narration: &mut self.narration,
            choose: &mut self.choose,
            out: &mut self.out,
            grid: self.grid,
            clock: &clock,
        };
        let wait = step(&mut slot.session, &mut surroundings);
        if wait == Wait::Gone {
            // Half a pipeline is nothing to send any more.
            self.out.truncate(start);
            self.gone(index);
            return;
        }
        if self.out.len() > start {
            self.unsent.push((index, start..self.out.len()));
        }
        match wait {
            Wait::Server | Wait::Gone => {}
            // Whoever begins to sleep after the cancel sleeps for nobody.
            Wait::Until(_) if self.cancelled => self.finish(index),
            Wait::Until(at) => self.set_timer(index, at),
            Wait::Next if self.grid.began == NEVER => self.prepared(),
            Wait::Next => self.next(index, now),
        }
    }

    /// A session has aborted.
    fn gone(&mut self, index: usize) {
        if self.grid.began == NEVER {
            // It has just said why.
            let message = self.narration.pop().map(|message| message.text).unwrap_or_default();
            self.fail(ConnectFailure { message, sqlstate: None, hint: None });
        }
        if !self.slots[index].finished {
            (self.report)(Report::Aborted);
            self.finish(index);
        }
    }

    /// Sends what sessions have written since the last time.
    ///
    /// Not as they write it: a send wakes a server process, which may take this thread's core at
    /// once, and answers that had already arrived would be looked at, and timed, too late.
    fn flush(&mut self) {
        while !self.unsent.is_empty() {
            let out = std::mem::take(&mut self.out);
            let mut unsent = std::mem::take(&mut self.unsent);
            for (index, range) in unsent.drain(..) {
                self.send(index, &out[range]);
            }
            if self.unsent.is_empty() {
                (self.out, self.unsent) = (out, unsent);
                self.out.clear();
            }
        }
    }

    fn send(&mut self, index: usize, bytes: &[u8]) {
        let sent = match &mut self.slots[index].link {
            Link::Live(socket) => socket.send(bytes),
            _ => Ok(Sent::All),
        };
        match sent {
            Ok(Sent::All) => {}
            Ok(Sent::Part) => self.watch(index, LIVE | EventFlags::OUT),
            Err(error) => {
                // What the server said before it hung up is still there to be read.
                self.read(index, self.now(), true);
                if matches!(self.slots[index].link, Link::Live(_)) {
                    self.lost(index, Some(without_errno(&error.to_string())));
                }
            }
        }
    }

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

    /// Whether a session may begin no further transaction.
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
        let slot = &mut self.slots[index];
        let workload = slot.session.workload;
        if self.schedules[workload].is_some() {
            if !std::mem::replace(&mut slot.queued, true) {
                self.idle[workload].push_back(index);
            }
            self.start_due(now);
        } else if matches!(slot.link, Link::None) {
            self.redial(index, now);
        } else {
            self.step(index, now, |session, cx| {
                session.choose(cx);
                session.begin(cx, now, now)
            });
        }
    }

    /// Whether a session can begin a transaction: it is idle, and it has a connection or makes
    /// one for each transaction.
    fn is_ready(&self, index: usize) -> bool {
        let slot = &self.slots[index];
        let reachable = match slot.link {
            Link::Live(_) => true,
            Link::None => slot.attempts == 0 && self.programs[slot.session.workload].connect_each,
            Link::Dialing(..) | Link::Closing(_) => false,
        };
        reachable && !slot.finished && slot.session.state == State::Idle
    }

    /// Open loop: gives every slot that is due to a session that is idle.
    fn start_due(&mut self, now: u64) {
        for workload in 0..self.schedules.len() {
            while let (Some(schedule), Some(&index)) =
                (&mut self.schedules[workload], self.idle[workload].front())
            {
                let due = schedule.due_ns();
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
        if let (Some(limit), Some(schedule)) =
            (program.latency_limit_ns, &mut self.schedules[workload])
        {
            let left = program
                .transactions
                .map_or(u64::MAX, |limit| limit - self.slots[index].session.transactions);
            while now.saturating_sub(scheduled) > limit && (skipped.len() as u64) < left {
                skipped.push(scheduled);
                scheduled = schedule.take();
            }
        }
        let enough = program.transactions.is_some_and(|limit| {
            self.slots[index].session.transactions + skipped.len() as u64 >= limit
        });
        let ahead = scheduled > now;
        let ends = enough || (ahead && scheduled >= self.grid.close);
        let apart = matches!(self.slots[index].link, Link::None);
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
                Link::Dialing(..) | Link::Closing(_) => {}
            }
        }
    }

    pub(crate) fn set_timer(&mut self, index: usize, at: u64) {
        let slot = &mut self.slots[index];
        slot.generation = slot.generation.wrapping_add(1);
        self.timers.push(Reverse((at, index, slot.generation)));
    }

    /// At the close, once: whoever waits for a slot or for a connection has nothing left to wait
    /// for.
    fn close(&mut self, now: u64) {
        if now < self.grid.close || std::mem::replace(&mut self.closed, true) {
            return;
        }
        for index in 0..self.slots.len() {
            let slot = &self.slots[index];
            let away = matches!(slot.link, Link::None | Link::Dialing(..));
            if away || slot.queued || slot.session.state == State::Due {
                self.finish(index);
            }
        }
    }

    /// The connection of a session is gone.
    pub(crate) fn lost(&mut self, index: usize, why: Option<&str>) {
        let now = self.now();
        self.slots[index].link = Link::None;
        self.slots[index].key = None;
        if self.slots[index].finished {
            return;
        }
        if self.grid.began == NEVER {
            self.lost_early(index, why);
            return;
        }
        self.roll(now);
        let on_loss = self.plan.workloads[self.slots[index].session.workload].on_loss;
        let told = self.slots[index].session.has_server_error();
        let workload = self.slots[index].session.workload;
        if !told {
            self.tally.error(workload, CONNECTION_FAILURE);
        }
        self.step(index, now, |session, cx| {
            if session.outcome_is_unknown(cx) {
                cx.tally.totals[session.workload].unknown += 1;
            }
            let text = session.lost(why);
            match on_loss {
                OnLoss::Abort => session.abort(cx, text),
                OnLoss::Reconnect => {
                    if session.is_in_transaction() {
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
            message: format!("{}: {why}", step.endpoint.connection_failed()),
            sqlstate: error.map(|error| error.sql_state.as_str().to_owned()),
            hint: None,
        });
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
        if self.slots[index].session.state == State::Aborted {
            self.slots[index].link = Link::None;
        }
    }

    /// Nobody waits any longer.
    fn abandon(&mut self) {
        for index in 0..self.slots.len() {
            if self.slots[index].finished {
                continue;
            }
            let now = self.now();
            self.step(index, now, |session, cx| {
                if session.outcome_is_unknown(cx) {
                    cx.tally.totals[session.workload].unknown += 1;
                }
                session.state = State::Idle;
                Wait::Server
            });
            self.finish(index);
            self.slots[index].link = Link::None;
        }
    }

    /// Hands over the intervals that are over.
    pub(crate) fn roll(&mut self, now: u64) {
        let schedules = &self.schedules;
        let backlog = |workload: usize, at: u64| {
            schedules[workload].as_ref().map_or(0, |schedule| schedule.backlog(at))
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
            let left = MESSAGES_MAX.saturating_sub(self.said);
            self.connecting.messages_dropped += messages.len().saturating_sub(left) as u64;
            messages.truncate(left);
        }
        self.said += messages.len();
        if !messages.is_empty() {
            (self.report)(Report::Said(messages));
        }
    }

    /// Changes what a session's socket is watched for.
    pub(crate) fn watch(&mut self, index: usize, flags: EventFlags) {
        let (Link::Live(socket) | Link::Closing(socket) | Link::Dialing(_, Some(socket))) =
            &self.slots[index].link
        else {
            return;
        };
        let data = epoll::EventData::new_u64(index as u64);
        if let Err(error) = epoll::modify(&self.epoll, socket.fd(), data, flags) {
            self.lost(index, Some(without_errno(&error.to_string())));
        }
    }

    /// CPU of the window, the share of it that this thread was busy, and the loop lag.
    pub(crate) fn cost(&mut self) -> (u64, f64, Latency) {
        let (cpu_ns, share) = self.cpu.used();
        (cpu_ns, share, std::mem::take(&mut self.loop_lag))
    }
}

impl Cpu {
    fn look(&mut self, now: u64, grid: &Grid) {
        if self.at_open.is_none() && now >= grid.open {
            self.at_open = Some((now, thread_cpu_ns()));
        }
        if self.at_close.is_none() && now >= grid.close {
            self.at_close = Some((now, thread_cpu_ns()));
        }
    }

    fn leave(&mut self, now: u64) {
        self.at_close.get_or_insert_with(|| (now, thread_cpu_ns()));
    }

    fn used(&self) -> (u64, f64) {
        let (Some((open, cpu_open)), Some((close, cpu_close))) = (self.at_open, self.at_close)
        else {
            return (0, 0.0);
        };
        let used = cpu_close.saturating_sub(cpu_open);
        (used, used as f64 / close.saturating_sub(open).max(1) as f64)
    }
}

/// CPU that this thread has spent, user and system.
pub(crate) fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A connection that only reads: registered once, woken by what arrives.
pub(crate) const LIVE: EventFlags = EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::ET);

const HUNG_UP: EventFlags = EventFlags::RDHUP.union(EventFlags::HUP).union(EventFlags::ERR);

const READABLE: EventFlags = EventFlags::IN.union(HUNG_UP);

/// SQLSTATE class 08: the connection broke without a word of the server.
const CONNECTION_FAILURE: &str = "08006";
