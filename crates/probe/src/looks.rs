//! Wait events of sessions, from many looks a second.
//!
//! A wait is short: one look a second at a handful of sessions says next to nothing. A look reads
//! `pg_stat_activity` once. What a second's looks saw becomes that second's mean.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, RandomState},
    time::{Duration, Instant},
};

use spec::metrics;
use stats::Prng;

use crate::reading::Reading;

/// Mean time between two looks at a server that answers quickly. The moments are random: looks at equal
/// distances would see the same part of whatever the server does as often.
const PERIOD: Duration = Duration::from_millis(45);

/// A look may keep its server busy for one part in so many: a server with thousands of sessions,
/// which takes 10 ms to list them, is looked at twice a second on average.
const SHARE: u32 = 50;

/// The looks of one server since its last sample.
#[derive(Debug)]
pub(crate) struct Looks {
    prng: Prng,
    next: Instant,
    /// The shortest round trip so far: what a look costs without the wait for a CPU.
    fastest: Duration,
    since: Instant,
    taken: u32,
    sums: BTreeMap<String, f64>,
}

impl Looks {
    pub(crate) fn from(now: Instant) -> Looks {
        let (taken, sums) = (0, BTreeMap::new());
        let prng = Prng::new(RandomState::new().hash_one(0));
        Looks { prng, next: now + PERIOD, fastest: Duration::MAX, since: now, taken, sums }
    }

    /// Time of the next look.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// Takes in one look: active sessions by wait event.
    pub(crate) fn take(&mut self, began: Instant, ended: Instant, seen: Vec<(String, f64)>) {
        self.fastest = self.fastest.min(ended.saturating_duration_since(began));
        self.put_off(began, ended);
        self.taken += 1;
        for (event, sessions) in seen {
            *self.sums.entry(event).or_default() += sessions;
        }
    }

    /// Looks again a while after the last look began, or after `ended` where that has passed.
    pub(crate) fn put_off(&mut self, began: Instant, ended: Instant) {
        let paced = if self.fastest == Duration::MAX { PERIOD } else { self.fastest * SHARE };
        let gap = PERIOD.max(paced).mul_f64(0.5 + self.prng.unit());
        // From when it was due: a look that came late does not make all later ones late.
        self.next = (self.next.min(began) + gap).max(ended);
    }

    /// The means since the last call, and how many looks a second they rest on. Events that were
    /// not seen are left out; nothing at all is told where there was no look.
    pub(crate) fn drain(&mut self, now: Instant) -> Vec<Reading> {
        let seconds = now.saturating_duration_since(self.since).as_secs_f64();
        self.since = now;
        let (taken, sums) = (std::mem::take(&mut self.taken), std::mem::take(&mut self.sums));
        if taken == 0 || seconds <= 0.0 {
            return Vec::new();
        }
        let mean = |(event, sum): (String, f64)| {
            Reading::new(&metrics::WAITING_SESSIONS, event, sum / f64::from(taken))
        };
        let rate = Reading::new(&metrics::WAIT_SAMPLES, "", f64::from(taken) / seconds);
        sums.into_iter().map(mean).chain([rate]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_second_of_looks_becomes_means_and_a_rate() {
        let start = Instant::now();
        let mut looks = Looks::from(start);
        let mut gaps = Vec::new();
        for n in 0..10 {
            let due = looks.next();
            let seen = if n < 4 { vec![("Lock:tuple".to_owned(), 2.0)] } else { Vec::new() };
            looks.take(due, due + MS / 2, seen);
            gaps.push(looks.next() - due);
        }
        assert!(gaps.iter().all(|gap| (PERIOD / 2..=PERIOD * 3 / 2).contains(gap)), "{gaps:?}");
        assert!(gaps.iter().any(|gap| *gap != gaps[0]), "random moments: {gaps:?}");
        let readings = looks.drain(start + Duration::from_secs(1));
        let values: Vec<_> = readings.iter().map(|r| (r.label.as_str(), r.value)).collect();
        assert_eq!(values, [("Lock:tuple", 0.8), ("", 10.0)]);
        assert_eq!(looks.drain(start + Duration::from_secs(2)), [], "no look, no mean");
    }

    #[test]
    fn a_server_that_takes_long_is_looked_at_less_often() {
        let start = Instant::now();
        let mut looks = Looks::from(start);
        looks.take(start, start + MS * 10, Vec::new());
        let apart = looks.next() - start;
        assert!((MS * 250..=MS * 750).contains(&apart), "{apart:?}");
        // What had to wait for a CPU did not become more costly.
        looks.take(start, start + MS * 900, Vec::new());
        assert_eq!(looks.next(), start + MS * 900);
    }
}
