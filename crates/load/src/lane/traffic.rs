//! Traffic through the sockets of a lane: waiting for events, receiving, sending; by a system call for each socket, or by
//! io_uring, one for all.
//!
//! A connection is handed over to the ring once it is made, and is then watched by epoll only while
//! its socket takes no more bytes. Everything else (connecting, TLS, a connection for each
//! transaction, the lane's wake-up call) stays with epoll, whose descriptor the ring watches.

use std::{io, ops::Range, time::Duration};

use os::events;
use os::ring::{ArrivedKind, IoRing, RingArrival, RingSend, ShortSend};
use record::SocketIo;
use rustix::event::epoll::{self, EventFlags};
use rustix::io::Errno;

use super::{Lane, Link, thread_cpu_ns};
use crate::{lane_history::LaneHistory, ledger::LaneLedger, report::Report};
use server::dial::{ReadResult, SendProgress, without_errno};

/// Events taken from the kernel at once. More would let a session wait longer for its turn after
/// it was woken, fewer would cost more system calls.
pub(super) const EVENTS_MAX: usize = 64;

/// The event of the lane's own wake-up call, beyond every session's number.
pub(super) const WAKE: u64 = u64::MAX;

/// A connection that only reads: registered once, woken by what arrives.
pub(crate) const LIVE: EventFlags = EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::ET);

/// A connection that a ring reads, while it has more to send than its socket takes.
const WRITABLE: EventFlags = EventFlags::OUT.union(EventFlags::ET);

const HUNG_UP: EventFlags = EventFlags::RDHUP.union(EventFlags::HUP).union(EventFlags::ERR);

const READABLE: EventFlags = EventFlags::IN.union(HUNG_UP);

/// Every so many turns, the CPU time of one is taken.
const SAMPLED_EVERY: u32 = 64;

/// The traffic of the connections that a ring serves: what is sent and received in one turn, and who is watched.
pub(crate) struct RingTraffic {
    ring: IoRing,
    /// Distinguishes a session's connection from its earlier ones, whose last arrivals may be late.
    epochs: Vec<u32>,
    /// Connections to be watched in the next turn, and whether it is the first time.
    unwatched: Vec<(usize, bool)>,
    sends: Vec<RingSend>,
    /// The session of each send.
    owners: Vec<usize>,
    /// The buffers that the lane's output does not fill in this turn.
    spare: (Vec<u8>, Vec<(usize, Range<usize>)>),
    /// The last turn in which each session sent.
    sent_in: Vec<u32>,
    turn: u32,
    /// CPU time of one send or receive, as last sampled.
    each_ns: u64,
}

impl RingTraffic {
    fn new(sessions: usize) -> io::Result<RingTraffic> {
        Ok(RingTraffic {
            ring: IoRing::new(sessions as u32)?,
            epochs: vec![0; sessions],
            unwatched: Vec::new(),
            sends: Vec::new(),
            owners: Vec::new(),
            spare: Default::default(),
            sent_in: vec![0; sessions],
            turn: 0,
            each_ns: 0,
        })
    }

    fn tag(&self, index: usize) -> u64 {
        u64::from(self.epochs[index] & 0x3fff_ffff) << 32 | index as u64
    }

    fn begin_turn(&mut self) {
        self.turn = self.turn.wrapping_add(1);
        self.sends.clear();
        self.owners.clear();
    }

    fn turn(&mut self, out: &[u8], timeout: Duration) -> io::Result<()> {
        if !self.turn.is_multiple_of(SAMPLED_EVERY) {
            return self.ring.turn(out, &self.sends, timeout);
        }
        let before = thread_cpu_ns();
        self.ring.turn(out, &self.sends, timeout)?;
        let done = self.sends.len() + self.ring.arrivals();
        if let Some(each) = (thread_cpu_ns() - before).checked_div(done as u64) {
            self.each_ns = each;
        }
        Ok(())
    }
}

impl Lane<'_> {
    /// Waits for events until `deadline`, and handles them.
    pub(crate) fn wait(&mut self, deadline: u64) {
        if self.traffic.is_some() {
            self.ring_turn(deadline);
            return;
        }
        self.flush();
        self.take_events(deadline);
    }

    /// Waits for the events of epoll until `deadline`, and handles them.
    pub(super) fn take_events(&mut self, deadline: u64) {
        let timeout = deadline.saturating_sub(self.now()).min(1_000_000_000);
        let timeout = Duration::from_nanos(timeout);
        let mut events = [const { std::mem::MaybeUninit::uninit() }; EVENTS_MAX];
        let events = match events::wait(&self.epoll, &mut events, Some(timeout)) {
            Ok(events) => events,
            // A signal that another thread should have had.
            Err(Errno::INTR) => return,
            // The instance is this lane's own: nothing else can be wrong with it.
            Err(error) => panic!("epoll_wait: {error}"),
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
            Link::Closing(..) => self.closing_event(index),
            Link::Live(socket) => {
                let is_ours = !socket.is_in_ring();
                if flags.contains(EventFlags::OUT)
                    && socket.flush().is_ok_and(|sent| sent == SendProgress::All)
                {
                    self.watch(index, LIVE);
                }
                if flags.intersects(READABLE) && is_ours {
                    // After the peer has hung up, whatever is left is read to its end.
                    self.read(index, woke, flags.intersects(HUNG_UP));
                }
            }
        }
    }

    pub(super) fn read(&mut self, index: usize, woke: u64, to_the_end: bool) {
        let mut buffer = std::mem::take(&mut self.buffer);
        loop {
            let slot = &mut self.slots[index];
            let Link::Live(socket) = &mut slot.link else { break };
            if slot.finished && !to_the_end {
                break;
            }
            buffer.clear();
            match socket.receive(&mut buffer) {
                Ok(ReadResult::Bytes { more }) => {
                    self.hear(index, woke, &buffer);
                    if !more && !to_the_end {
                        break;
                    }
                }
                Ok(ReadResult::Nothing) => break,
                Ok(ReadResult::Closed) => {
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

    /// Passes what has arrived to its session.
    pub(super) fn hear(&mut self, index: usize, woke: u64, bytes: &[u8]) {
        let now = self.now();
        if self.grid.in_window(now) {
            self.loop_lag.record_ns(now - woke);
        }
        self.roll(now);
        self.step(index, now, |session, cx| session.input(cx, now, bytes));
    }

    /// Appends the message by which a client leaves to what is sent next.
    pub(crate) fn say_good_bye(&mut self, index: usize) {
        let start = self.out.len();
        wire::frontend::terminate(&mut self.out);
        self.unsent.push((index, start..self.out.len()));
    }

    /// Sends what sessions have written since the last time.
    ///
    /// Not as they write it: a send wakes a server process, which may take this thread's core at
    /// once, and answers that had already arrived would be looked at, and timed, too late.
    fn flush(&mut self) {
        loop {
            self.write_notes();
            if self.unsent.is_empty() {
                break;
            }
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

    /// Notes what is about to be sent; where that fails it is not sent, and the load ends.
    pub(super) fn write_notes(&mut self) {
        let ledger = self.ledger.as_mut().map_or(Ok(()), LaneLedger::write);
        let history = self.history.as_mut().map_or(Ok(()), LaneHistory::write);
        self.heed(ledger.and(history));
    }

    /// Notes what has not been written yet, when nothing more is sent.
    pub(super) fn write_last_notes(&mut self) {
        let now = self.now();
        if let Some(ledger) = &mut self.ledger {
            let last = self.slots.iter().filter_map(|slot| slot.session.last_entry(now));
            last.for_each(|entry| ledger.note(entry));
        }
        self.write_notes();
        let history = self.history.as_mut().map_or(Ok(()), LaneHistory::finish);
        self.heed(history);
    }

    fn heed(&mut self, written: Result<(), String>) {
        if let Err(why) = written {
            (self.report)(Report::Lost(why.into()));
            self.unsent.clear();
            self.out.clear();
        }
    }

    pub(super) fn send(&mut self, index: usize, bytes: &[u8]) {
        let sent = match &mut self.slots[index].link {
            Link::Live(socket) | Link::Closing(socket, _) => socket.send(bytes),
            _ => Ok(SendProgress::All),
        };
        match sent {
            Ok(SendProgress::All) => {}
            Ok(SendProgress::Part) => self.watch(index, LIVE | EventFlags::OUT),
            Err(error) => {
                // What the server said before it hung up is still there to be read.
                self.read(index, self.now(), true);
                self.broke(index, &error);
            }
        }
    }

    /// A socket can no longer be used.
    pub(super) fn broke(&mut self, index: usize, why: &dyn std::error::Error) {
        match self.slots[index].link {
            Link::Closing(..) => self.left(index),
            Link::None => {}
            Link::Live(_) | Link::Dialing(..) => {
                self.lost(index, Some(without_errno(&why.to_string())));
            }
        }
    }

    /// Changes what a session's socket is watched for.
    pub(crate) fn watch(&mut self, index: usize, flags: EventFlags) {
        let (Link::Live(socket) | Link::Closing(socket, _) | Link::Dialing(_, Some(socket))) =
            &self.slots[index].link
        else {
            // A session without a socket has nothing that could be watched.
            return;
        };
        let data = epoll::EventData::new_u64(index as u64);
        let changed = match (socket.is_in_ring(), flags.contains(EventFlags::OUT)) {
            (false, _) => epoll::modify(&self.epoll, socket.fd(), data, flags),
            (true, true) => match epoll::add(&self.epoll, socket.fd(), data, WRITABLE) {
                Err(Errno::EXIST) => Ok(()),
                added => added,
            },
            (true, false) => epoll::delete(&self.epoll, socket.fd()),
        };
        if let Err(error) = changed {
            self.broke(index, &error);
        }
    }

    /// Hands all connections over to a ring, if the plan wants one and the kernel permits it.
    pub(crate) fn open_port(&mut self) {
        if self.plan.io_uring {
            self.traffic = RingTraffic::new(self.slots.len()).map(Box::new).ok();
        }
        (0..self.slots.len()).for_each(|index| self.hand_over(index));
    }

    /// Lets the ring receive from a connection that is made.
    pub(crate) fn hand_over(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        // A session with a connection for each transaction has none yet.
        let Link::Live(socket) = &mut slot.link else { return };
        let is_simple =
            socket.tls().is_none() && !self.programs[slot.session.workload].connect_each;
        let traffic = self.traffic.as_mut().filter(|_| is_simple);
        let traffic = traffic.filter(|_| epoll::delete(&self.epoll, socket.fd()).is_ok());
        let io = if traffic.is_some() { SocketIo::IoUring } else { SocketIo::Epoll };
        self.io = Some(self.io.map_or(io, |other| other.and(io)));
        // The connection stays with epoll.
        let Some(traffic) = traffic else { return };
        socket.give_to_ring();
        traffic.epochs[index] = traffic.epochs[index].wrapping_add(1);
        traffic.unwatched.push((index, true));
        if socket.has_unsent() {
            self.watch(index, LIVE | EventFlags::OUT);
        }
    }

    /// Sends what sessions have written, waits until `deadline`, and handles what has arrived.
    pub(super) fn ring_turn(&mut self, deadline: u64) {
        self.write_notes();
        // A ring that failed was given up, and the load ends.
        let Some(mut traffic) = self.traffic.take() else { return };
        // What arrives is answered into the other buffers, and is sent in the next turn.
        let (out, unsent) = std::mem::take(&mut traffic.spare);
        let mut out = std::mem::replace(&mut self.out, out);
        let mut unsent = std::mem::replace(&mut self.unsent, unsent);
        traffic.begin_turn();
        let mut late = Vec::new();
        for (index, range) in unsent.drain(..) {
            let ring_sends = match &self.slots[index].link {
                // What follows a send that may be short has to wait for it.
                Link::Live(socket) | Link::Closing(socket, _) => {
                    socket.is_in_ring()
                        && !socket.has_unsent()
                        && traffic.sent_in[index] != traffic.turn
                }
                _ => false,
            };
            if ring_sends {
                traffic.sent_in[index] = traffic.turn;
                traffic.sends.push(RingSend { file: index as u32, range });
                traffic.owners.push(index);
            } else {
                late.push((index, range));
            }
        }
        let entered = self.now();
        let timeout = match late.is_empty() {
            true => deadline.saturating_sub(entered).min(1_000_000_000),
            false => 0,
        };
        let turned = self
            .watch_connections(&mut traffic)
            .and_then(|()| traffic.turn(&out, Duration::from_nanos(timeout)));
        if let Err(error) = turned {
            // The ring is given up, and with it the load.
            let why = format!("could not send and receive by io_uring: {error}");
            (self.report)(Report::Lost(why.into()));
            return;
        }
        let mut arrivals = traffic.ring.take_arrivals();
        // What has arrived was received one after another since the thread woke.
        let received_ns = arrivals.len() as u64 * traffic.each_ns;
        let woke = self.now().saturating_sub(received_ns).max(entered);
        let shorts = traffic.ring.take_short();
        let is_ready = traffic.ring.take_ready();
        self.traffic = Some(traffic);
        if is_ready {
            self.take_events(0);
        }
        for arrival in arrivals.drain(..) {
            self.arrived(arrival, woke);
        }
        for short in shorts {
            self.sent_short(&out, short);
        }
        for (index, range) in late {
            self.send(index, &out[range]);
        }
        if let Some(traffic) = &mut self.traffic {
            traffic.ring.reuse(arrivals);
            out.clear();
            traffic.spare = (out, unsent);
        }
    }

    fn watch_connections(&mut self, traffic: &mut RingTraffic) -> io::Result<()> {
        traffic.ring.watch_ready(&self.epoll)?;
        for (index, is_first) in std::mem::take(&mut traffic.unwatched) {
            let tag = traffic.tag(index);
            match &self.slots[index].link {
                Link::Live(socket) | Link::Closing(socket, _) if socket.is_in_ring() => {
                    match is_first {
                        true => traffic.ring.watch(index as u32, socket.fd(), tag)?,
                        false => traffic.ring.watch_again(index as u32, tag)?,
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn arrived(&mut self, arrival: RingArrival, woke: u64) {
        // What arrived by a ring that was given up is not read, because the load ends.
        let Some(traffic) = &mut self.traffic else { return };
        let index = (arrival.tag & 0xffff_ffff) as usize;
        let is_current = traffic.tag(index) == arrival.tag;
        let mut buffer = std::mem::take(&mut self.buffer);
        let closed = match arrival.what {
            ArrivedKind::Bytes(piece) => {
                buffer.clear();
                buffer.extend_from_slice(traffic.ring.bytes(&piece));
                traffic.ring.give_back(piece);
                None
            }
            ArrivedKind::Interrupted => {
                buffer.clear();
                None
            }
            ArrivedKind::Closed => Some(None),
            ArrivedKind::Failed(error) => Some(Some(error.to_string())),
        };
        if is_current && arrival.is_last && closed.is_none() {
            traffic.unwatched.push((index, false));
        }
        match (&self.slots[index].link, closed) {
            _ if !is_current => {}
            (Link::Live(_), None) if !self.slots[index].finished && !buffer.is_empty() => {
                self.hear(index, woke, &buffer);
            }
            (Link::Live(_), Some(why)) => self.lost(index, why.as_deref().map(without_errno)),
            (Link::Closing(..), Some(_)) => self.closing_event(index),
            _ => {}
        }
        self.buffer = buffer;
    }

    /// Keeps what a socket did not take until it is writable.
    fn sent_short(&mut self, out: &[u8], ShortSend { send, sent }: ShortSend) {
        // What a ring that was given up did not send stays unsent, because the load ends.
        let Some(traffic) = &self.traffic else { return };
        let (index, bytes) = (traffic.owners[send], &out[traffic.sends[send].range.clone()]);
        let (Link::Live(socket) | Link::Closing(socket, _)) = &mut self.slots[index].link else {
            // The connection was lost in the same turn, and with it what was to be sent.
            return;
        };
        match sent {
            Ok(sent) => {
                socket.keep(&bytes[sent..]);
                self.watch(index, LIVE | EventFlags::OUT);
            }
            Err(error) => {
                // What the server said before it hung up is still there to be read.
                self.read(index, self.now(), true);
                self.broke(index, &error);
            }
        }
    }
}
