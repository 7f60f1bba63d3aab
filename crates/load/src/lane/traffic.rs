//! Traffic through the sockets of a lane: waiting for events, receiving, sending.

use std::time::Duration;

use os::events;
use rustix::event::epoll::{self, EventFlags};
use rustix::io::Errno;

use super::{Lane, Link};
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

impl Lane<'_> {
    /// Waits for events until `deadline`, and handles them.
    pub(crate) fn wait(&mut self, deadline: u64) {
        if self.port.is_some() {
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
}
