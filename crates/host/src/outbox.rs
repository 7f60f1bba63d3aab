//! Messages of a host that wait until the launcher's pipe takes them.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Lines of processes that wait. A process that says more waits itself, so that a slow launcher
/// fills no memory.
const WAITING_MAX: usize = 64;

/// Lines in the order in which they were said, pongs first: a long line delays the heartbeat by its
/// own length only.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    lines: Mutex<Lines>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Lines {
    pongs: VecDeque<String>,
    others: VecDeque<String>,
    is_closed: bool,
}

impl Outbox {
    /// Puts a pong in front of everything else.
    pub(crate) fn pong(&self, line: String) {
        self.lock().pongs.push_back(line);
        self.changed.notify_all();
    }

    /// Adds a line of the host's own, and does not wait.
    pub(crate) fn say(&self, line: String) {
        self.lock().others.push_back(line);
        self.changed.notify_all();
    }

    /// Adds a line of a process, and waits while too many are there. False when it is closed.
    pub(crate) fn carry(&self, line: String) -> bool {
        let mut lines = self.lock();
        while lines.others.len() >= WAITING_MAX && !lines.is_closed {
            lines = self.changed.wait(lines).unwrap_or_else(PoisonError::into_inner);
        }
        if lines.is_closed {
            return false;
        }
        lines.others.push_back(line);
        self.changed.notify_all();
        true
    }

    /// The next line; none when it is closed and empty.
    pub(crate) fn next(&self) -> Option<String> {
        let mut lines = self.lock();
        loop {
            let line = lines.pongs.pop_front();
            if let Some(line) = line.or_else(|| lines.others.pop_front()) {
                self.changed.notify_all();
                return Some(line);
            }
            if lines.is_closed {
                return None;
            }
            lines = self.changed.wait(lines).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes no more lines of processes.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    #[test]
    fn pongs_come_first_and_the_rest_in_order() {
        let outbox = Outbox::default();
        outbox.say("1".to_owned());
        assert!(outbox.carry("2".to_owned()));
        outbox.pong("pong".to_owned());
        outbox.close();
        let said: Vec<String> = std::iter::from_fn(|| outbox.next()).collect();
        assert_eq!(said, ["pong", "1", "2"]);
    }

    #[test]
    fn a_process_waits_while_too_many_lines_do() {
        let outbox = Arc::new(Outbox::default());
        let all = 3 * WAITING_MAX;
        let process = {
            let outbox = Arc::clone(&outbox);
            thread::spawn(move || (0..all).all(|line| outbox.carry(line.to_string())))
        };
        let mut said = Vec::new();
        while said.len() < all {
            assert!(outbox.lock().others.len() <= WAITING_MAX);
            said.extend(outbox.next());
        }
        assert!(process.join().unwrap());
        assert_eq!(said, (0..all).map(|line| line.to_string()).collect::<Vec<_>>());
    }

    #[test]
    fn a_process_that_waits_is_let_go_at_the_end() {
        let outbox = Arc::new(Outbox::default());
        let process = {
            let outbox = Arc::clone(&outbox);
            thread::spawn(move || while outbox.carry(String::new()) {})
        };
        testing::until("it waits", || outbox.lock().others.len() == WAITING_MAX);
        outbox.close();
        process.join().unwrap();
    }
}
