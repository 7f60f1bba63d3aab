//! Ending connections: good-byes, and waiting for the servers to close.

use super::{Lane, Link, thread_cpu_ns};
use server::dial::ReadResult;

use crate::{LoadLimit, grid::NEVER};

/// Time that the servers have to close connections after Terminate.
const LEAVING_NS_MAX: u64 = 30_000_000_000;

impl Lane<'_> {
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
