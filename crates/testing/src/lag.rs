//! The time for which a busy machine keeps a thread waiting that could run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A thread that sleeps for a moment again and again, until this is dropped.
#[derive(Debug)]
pub struct Lag {
    longest_ns: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

impl Lag {
    /// Begins to measure.
    pub fn watch() -> Lag {
        let lag = Lag { longest_ns: Arc::default(), is_over: Arc::default() };
        let (longest_ns, is_over) = (Arc::clone(&lag.longest_ns), Arc::clone(&lag.is_over));
        thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let began = Instant::now();
                thread::sleep(PAUSE);
                let late = began.elapsed().saturating_sub(PAUSE);
                longest_ns.fetch_max(late.as_nanos() as u64, Ordering::Relaxed);
            }
        });
        lag
    }

    /// `limit`, with room for as many delays as an act of several processes can meet.
    pub fn allow(&self, limit: Duration) -> Duration {
        limit + DELAYS * Duration::from_nanos(self.longest_ns.load(Ordering::Relaxed))
    }
}

impl Drop for Lag {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

const PAUSE: Duration = Duration::from_millis(5);

const DELAYS: u32 = 5;
