//! Wait events of the clients: both servers' `pg_stat_activity`, looked at again and again.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use record::comparison::WaitKindShare;
use stats::Prng;
use tail::event_key;

use crate::pair::contest::ComparedSide;

/// Looks at both servers while it lives.
pub(crate) struct WaitSampler {
    is_on: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Counts>>,
}

/// Samples of active clients by what they waited for.
pub(crate) type Counts = BTreeMap<String, u64>;

/// The time between two looks varies, so that it fits no length of a block.
const EACH_MS: [f64; 2] = [60.0, 140.0];

/// Waits beyond these are left out of a record.
const WAITS_MAX: usize = 12;

impl WaitSampler {
    /// Begins to look. A side that cannot be looked at has no samples.
    pub(crate) fn new(sides: [&dyn ComparedSide; 2], seed: u64) -> WaitSampler {
        let (is_on, is_over) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let threads = sides.into_iter().zip(0..).map(|(side, index)| {
            let (is_on, is_over) = (Arc::clone(&is_on), Arc::clone(&is_over));
            let client = side.connect().ok();
            std::thread::spawn(move || look(client, &is_on, &is_over, seed.wrapping_add(index)))
        });
        WaitSampler { threads: threads.collect(), is_on, is_over }
    }

    /// Decides whether what is seen from now on counts.
    pub(crate) fn count(&self, counts: bool) {
        self.is_on.store(counts, Ordering::Relaxed);
    }

    /// Ends the looks, and returns the counts of A and of B.
    pub(crate) fn end(mut self) -> Vec<Counts> {
        self.is_over.store(true, Ordering::Relaxed);
        let counts = |one: JoinHandle<Counts>| one.join().unwrap_or_else(|it| resume_unwind(it));
        self.threads.drain(..).map(counts).collect()
    }
}

impl Drop for WaitSampler {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

fn look(
    client: Option<server::Client>,
    is_on: &AtomicBool,
    is_over: &AtomicBool,
    seed: u64,
) -> Counts {
    let mut counts = Counts::new();
    let mut prng = Prng::new(seed);
    let Some(mut client) = client else { return counts };
    let Ok(statement) = client.prepare(ACTIVITY) else { return counts };
    while !is_over.load(Ordering::Relaxed) {
        let [low, high] = EACH_MS;
        let ms = low + (high - low) * prng.unit();
        std::thread::sleep(Duration::from_micros((ms * 1e3) as u64));
        if !is_on.load(Ordering::Relaxed) {
            continue;
        }
        let Ok(rows) = client.query(&statement, &[]) else { break };
        for row in rows {
            let count: i64 = row.get(1);
            *counts.entry(row.get(0)).or_default() += count.unsigned_abs();
        }
    }
    counts
}

/// Sessions of other databases and pgrig's own are not the clients'. The wait event tells whether one is
/// at work: while it sends an answer it is idle by its state.
const ACTIVITY: &str = "
    SELECT coalesce(wait_event_type || ':' || wait_event, 'CPU'), count(*)
    FROM pg_stat_activity
    WHERE state IS NOT NULL AND wait_event IS DISTINCT FROM 'ClientRead'
      AND backend_type IN ('client backend', 'parallel worker') AND pid <> pg_backend_pid()
      AND datname = current_database()
    GROUP BY 1";

/// Adds what was seen in another segment.
pub(crate) fn add(sum: &mut Counts, counts: &Counts) {
    for (event, count) in counts {
        *sum.entry(event.clone()).or_default() += count;
    }
}

/// Wait events that were seen, the largest difference first. None where a side could not be looked at: shares of 0 would
/// say that its clients never waited.
pub(crate) fn waits([a, b]: &[Counts; 2]) -> Vec<WaitKindShare> {
    if a.is_empty() || b.is_empty() {
        return Vec::new();
    }
    // An event that major versions spell differently is one, under B's name.
    let share = |counts: &Counts, event: &str| {
        let all: u64 = counts.values().sum();
        let of_event = counts.iter().filter(|(name, _)| event_key(name) == event_key(event));
        of_event.map(|(_, count)| *count).sum::<u64>() as f64 / all as f64
    };
    let events: BTreeMap<String, &String> =
        a.keys().chain(b.keys()).map(|event| (event_key(event), event)).collect();
    let wait = |event: &String| WaitKindShare {
        event: event.clone(),
        a: share(a, event),
        b: share(b, event),
    };
    let mut waits: Vec<WaitKindShare> = events.into_values().map(wait).collect();
    let difference = |wait: &WaitKindShare| (wait.b - wait.a).abs();
    waits.sort_by(|one, other| difference(other).total_cmp(&difference(one)));
    waits.truncate(WAITS_MAX);
    waits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_difference_comes_first() {
        let counts = |list: &[(&str, u64)]| -> Counts {
            list.iter().map(|(event, count)| ((*event).to_owned(), *count)).collect()
        };
        let a = counts(&[("CPU", 90), ("IO:WALSync", 10)]);
        let b = counts(&[("CPU", 80), ("IO:WalSync", 60), ("Lock:tuple", 60)]);
        let seen: Vec<(String, f64, f64)> =
            waits(&[a, b]).into_iter().map(|wait| (wait.event, wait.a, wait.b)).collect();
        let expected = [
            ("CPU".to_owned(), 0.9, 0.4),
            ("Lock:tuple".to_owned(), 0.0, 0.3),
            ("IO:WalSync".to_owned(), 0.1, 0.3),
        ];
        assert_eq!(seen, expected);
        assert_eq!(waits(&[Counts::new(), Counts::new()]), []);
        let seen = counts(&[("CPU", 90)]);
        assert_eq!(waits(&[seen.clone(), Counts::new()]), [], "nothing is known of B");
        assert_eq!(waits(&[Counts::new(), seen]), [], "nothing is known of A");
    }
}
