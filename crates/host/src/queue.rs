//! Lines that a process on a host has said and nobody has taken yet: so many bytes, and no silence
//! without a sign of life.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::loss::HostLoss;

/// Bytes that wait. One line is taken in any case.
const WAITING_BYTES_MAX: usize = 32 << 20;
/// Bytes that a line costs besides its own.
const LINE_COST_BYTES: usize = 64;
/// Time that a line waits for room: after it, the reader is taken for gone.
const ROOM_MAX: Duration = Duration::from_secs(6);
/// A process says a line a second, an empty one if it has nothing to say.
const QUIET_MAX: Duration = Duration::from_secs(6);
/// Time between two empty lines of a process.
pub(crate) const SIGN_OF_LIFE: Duration = Duration::from_secs(1);

/// The lines of one process.
#[derive(Debug)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug)]
struct Waiting {
    lines: VecDeque<String>,
    bytes: usize,
    heard: Instant,
    /// Nobody reads it any more.
    is_dropped: bool,
    /// The end, and why if it is none of the process's own.
    end: Option<Option<HostLoss>>,
}

impl Queue {
    pub(crate) fn new() -> Arc<Queue> {
        let waiting = Waiting {
            lines: VecDeque::new(),
            bytes: 0,
            heard: Instant::now(),
            is_dropped: false,
            end: None,
        };
        Arc::new(Queue { waiting: Mutex::new(waiting), changed: Condvar::new() })
    }

    /// Adds a line, and waits while too much is there; `while_waiting` is called several times a
    /// second then. An empty line is a sign of life and nothing else.
    pub(crate) fn put(&self, line: String, while_waiting: impl Fn()) -> Result<(), HostLoss> {
        let since = Instant::now();
        let mut waiting = self.lock();
        waiting.heard = since;
        if line.is_empty() {
            return Ok(());
        }
        let cost = line.len() + LINE_COST_BYTES;
        loop {
            if waiting.is_dropped || waiting.end.is_some() {
                return Ok(());
            }
            if waiting.bytes == 0 || waiting.bytes + cost <= WAITING_BYTES_MAX {
                break;
            }
            if since.elapsed() > ROOM_MAX {
                let most = WAITING_BYTES_MAX >> 20;
                return Err(HostLoss::of(&format!("said more than was asked: {most} MiB")));
            }
            waiting = self.wait(waiting);
            waiting.heard = Instant::now();
            while_waiting();
        }
        waiting.bytes += cost;
        waiting.lines.push_back(line);
        self.changed.notify_all();
        Ok(())
    }

    /// Nothing comes any more.
    pub(crate) fn end(&self, loss: Option<HostLoss>) {
        self.lock().end.get_or_insert(loss);
        self.changed.notify_all();
    }

    fn next(&self) -> Option<Result<String, HostLoss>> {
        let mut waiting = self.lock();
        loop {
            if let Some(line) = waiting.lines.pop_front() {
                waiting.bytes -= line.len() + LINE_COST_BYTES;
                self.changed.notify_all();
                return Some(Ok(line));
            }
            if let Some(end) = &mut waiting.end {
                // A loss is told once.
                return end.take().map(Err);
            }
            let quiet = waiting.heard.elapsed();
            if quiet > QUIET_MAX {
                let why = format!(
                    "the process there gave no sign of life for {:.0} s",
                    quiet.as_secs_f64()
                );
                waiting.end = Some(None);
                return Some(Err(HostLoss { why }));
            }
            waiting = self.wait(waiting);
        }
    }

    fn wait<'q>(&self, waiting: MutexGuard<'q, Waiting>) -> MutexGuard<'q, Waiting> {
        const GLANCE: Duration = Duration::from_millis(100);
        let waited = self.changed.wait_timeout(waiting, GLANCE);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes the lines of a queue until its end.
pub(crate) struct Lines(pub(crate) Arc<Queue>);

impl Iterator for Lines {
    type Item = Result<String, HostLoss>;

    fn next(&mut self) -> Option<Result<String, HostLoss>> {
        self.0.next()
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let mut waiting = self.0.lock();
        waiting.is_dropped = true;
        waiting.lines.clear();
        waiting.bytes = 0;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn put(queue: &Queue, line: &str) -> Result<(), HostLoss> {
        queue.put(line.to_owned(), || ())
    }

    #[test]
    fn lines_come_in_order_and_then_the_end_and_its_reason() {
        let check = |loss: Option<HostLoss>| {
            let queue = Queue::new();
            for line in ["a", "", "b"] {
                put(&queue, line).unwrap();
            }
            queue.end(loss.clone());
            let expected = [Ok("a"), Ok("b")].map(|line| line.map(str::to_owned));
            let expected: Vec<_> = expected.into_iter().chain(loss.map(Err)).collect();
            assert_eq!(Lines(queue).collect::<Vec<_>>(), expected);
        };
        check(None);
        check(Some(HostLoss::of("gone")));
    }

    #[test]
    fn what_nobody_takes_fills_no_memory() {
        let queue = Queue::new();
        let line = "x".repeat(1 << 20);
        let taken = (0..64).take_while(|_| put(&queue, &line).is_ok()).count();
        assert_eq!(taken, 31);
        drop(Lines(Arc::clone(&queue)));
        for _ in 0..64 {
            put(&queue, &line).unwrap();
        }
        assert_eq!(queue.lock().bytes, 0);
    }

    #[test]
    fn a_reader_that_is_slow_holds_the_writer_up() {
        let queue = Queue::new();
        let lines = Lines(Arc::clone(&queue));
        let writer = thread::spawn(move || {
            let line = "x".repeat(8 << 20);
            (0..8).for_each(|_| queue.put(line.clone(), || ()).unwrap());
            queue.end(None);
        });
        thread::sleep(Duration::from_millis(300));
        assert!(!writer.is_finished());
        assert_eq!(lines.count(), 8);
        writer.join().unwrap();
    }

    #[test]
    fn a_process_without_a_sign_of_life_is_lost() {
        let queue = Queue::new();
        let beats = Arc::clone(&queue);
        let beating = thread::spawn(move || {
            for _ in 0..3 {
                thread::sleep(SIGN_OF_LIFE);
                put(&beats, "").unwrap();
            }
        });
        let began = Instant::now();
        let mut lines = Lines(queue);
        assert!(lines.next().unwrap().unwrap_err().why.contains("no sign of life for"));
        assert!(began.elapsed() > 3 * SIGN_OF_LIFE + QUIET_MAX, "{:?}", began.elapsed());
        assert_eq!(lines.next(), None);
        beating.join().unwrap();
    }
}
