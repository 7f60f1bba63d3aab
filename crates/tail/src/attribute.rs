//! The join of slow transactions with samples.
//!
//! Looks come at random moments, so the share of looks into slow transactions that see a backend in a
//! wait is an unbiased estimate of the share of their time that it is in this wait. A look counts for
//! the time that it stands for.

use std::collections::BTreeMap;

use crate::{
    Activity, Cause, Look, Lookup, Slow, Slowest, Tail, TailShare,
    background::{Passed, excess},
    overlap,
    report::WaitShare,
};

/// The load whose slow transactions are looked at.
#[derive(Clone, Copy)]
pub struct Load<'a> {
    /// Its slowest transactions.
    pub slowest: &'a Slowest,
    /// Its successful transactions.
    pub count: u64,
    /// Latency at a quantile, in nanoseconds.
    pub latency_ns: &'a dyn Fn(f64) -> u64,
    /// Transactions that were under way at a moment, on average: behind a pooler, those that no
    /// server session serves are in its queue.
    pub under_way: &'a dyn Fn(u64) -> f64,
}

/// With fewer slow transactions than this above p99, those above p95 are looked at.
const FEW: f64 = 100.0;

/// A lock is asked for its holder so often that the answer nearest to a look speaks of it.
const HOLDER_WITHIN_NS: u64 = 300_000_000;

/// The slow transactions of a load by cause; none if there are none.
#[must_use]
pub fn attribute(load: &Load<'_>, activity: &Activity) -> Option<Tail> {
    let wanted = if load.count as f64 * 0.01 < FEW { 0.95 } else { 0.99 };
    let (mut quantile, mut above_ns) = (wanted, (load.latency_ns)(wanted));
    let slower = |above_ns: u64| -> Vec<Slow> {
        let kept = load.slowest.kept().iter();
        kept.filter(|slow| slow.latency_ns() > above_ns).copied().collect()
    };
    if load.slowest.floor_ns() > above_ns {
        above_ns = load.slowest.floor_ns();
        quantile = 1.0 - slower(above_ns).len() as f64 / load.count.max(1) as f64;
    }
    let slow = slower(above_ns);
    let (from, to) = (slow.iter().map(|s| s.began).min()?, slow.iter().map(|s| s.ended).max()?);
    let weights = overlap::weights(activity);
    let mut sums = Sums::new(activity, &weights);
    sums.is_pooled = is_pooled(&slow, activity);
    for one in &slow {
        sums.take(one, load.under_way);
    }
    let seconds = |ns: u64| ns as f64 / 1e9;
    let due = slow.iter().map(|s| s.began.saturating_sub(s.scheduled)).sum();
    let served = slow.iter().map(|s| s.ended.saturating_sub(s.began)).sum();
    let looks = overlap::within(activity.looks(), from, to);
    let looked_s = seconds(to.saturating_sub(from)).max(1e-9);
    let mut tail = Tail {
        quantile,
        above_ns,
        transactions: slow.len() as u64,
        seconds: seconds(due) + seconds(served),
        source: activity.source,
        rate: looks.len() as f64 / looked_s,
        samples: sums.samples,
        is_pooled: sums.is_pooled,
        ..Tail::default()
    };
    sums.tell(seconds(served), looks, &mut tail);
    if due > 0 {
        let (cause, detail) = (Cause::Schedule, String::new());
        tail.causes.push(TailShare { cause, detail, seconds: seconds(due) });
    }
    tail.causes.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    Some(tail)
}

/// True if most looks into slow transactions do not find their backends: the client was told of a
/// session that is not the server's.
fn is_pooled(slow: &[Slow], activity: &Activity) -> bool {
    let (mut seen, mut unseen) = (0_u64, 0_u64);
    for one in slow {
        for look in &activity.looks()[overlap::within(activity.looks(), one.began, one.ended)] {
            match activity.backend(look, one.backend) {
                Some(_) => seen += 1,
                None => unseen += 1,
            }
        }
    }
    unseen > seen
}

/// The server's work in the background at a look.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    Nothing,
    Checkpoint,
    Autovacuum,
}

impl Beside {
    fn of(look: &Look) -> Beside {
        match (look.background.checkpoint, look.background.autovacuum) {
            (true, _) => Beside::Checkpoint,
            (false, true) => Beside::Autovacuum,
            (false, false) => Beside::Nothing,
        }
    }
}

/// Weights by what the server did beside.
type ByBackground = [f64; 3];

struct Sums<'a> {
    activity: &'a Activity,
    weights: &'a [f64],
    is_pooled: bool,
    samples: u64,
    causes: BTreeMap<(Cause, String), ByBackground>,
    waits: BTreeMap<String, f64>,
    checkpoint: f64,
    autovacuum: f64,
}

impl<'a> Sums<'a> {
    fn new(activity: &'a Activity, weights: &'a [f64]) -> Sums<'a> {
        Sums {
            activity,
            weights,
            is_pooled: false,
            samples: 0,
            causes: BTreeMap::new(),
            waits: BTreeMap::new(),
            checkpoint: 0.0,
            autovacuum: 0.0,
        }
    }

    fn take(&mut self, slow: &Slow, under_way: &dyn Fn(u64) -> f64) {
        let activity = self.activity;
        let span = overlap::within(activity.looks(), slow.began, slow.ended);
        for index in span.clone() {
            let (look, weight) = (&activity.looks()[index], self.weights[index]);
            self.samples += 1;
            self.checkpoint += weight * f64::from(u8::from(look.background.checkpoint));
            self.autovacuum += weight * f64::from(u8::from(look.background.autovacuum));
            if self.is_pooled {
                self.add_any(look, weight, under_way(look.at));
                continue;
            }
            match activity.backend(look, slow.backend) {
                Some(mut seen) => {
                    // What was blocked since the look before belongs to the transaction only if that
                    // look did.
                    if index == span.start {
                        seen.off_cpu.blocked = 0;
                    }
                    self.add(look, &seen, weight);
                }
                None => self.cause(look, Cause::Unexplained, "", weight),
            }
        }
    }

    /// Adds a look at a backend.
    fn add(&mut self, look: &Look, seen: &Lookup<'_>, weight: f64) {
        *self.waits.entry(seen.event.to_owned()).or_default() += weight;
        if seen.event.is_empty() {
            self.add_without_event(look, seen, weight);
            return;
        }
        // A backend that is woken has its wait event until it gets a CPU.
        let run_delay = weight * f64::from(seen.off_cpu.run_delay) / 255.0;
        self.cause(look, Cause::RunDelay, "", run_delay);
        let weight = weight - run_delay;
        match Cause::of_event(seen.event) {
            Cause::Lock => {
                let holder = self.activity.holder(look.at, seen.backend, HOLDER_WITHIN_NS);
                match holder {
                    Some(holder) if holder.backend_type == "autovacuum worker" => {
                        self.cause(look, Cause::Autovacuum, "", weight);
                    }
                    Some(holder) => self.cause(look, Cause::Lock, &holder.words(), weight),
                    None => self.cause(look, Cause::Lock, "", weight),
                }
            }
            Cause::Wait => self.cause(look, Cause::Wait, seen.event, weight),
            cause => self.cause(look, cause, "", weight),
        }
    }

    /// Adds a look at a backend that waits for nothing that PostgreSQL knows. Time that the hypervisor
    /// takes from a running process is in neither of the kernel's accounts.
    fn add_without_event(&mut self, look: &Look, seen: &Lookup<'_>, weight: f64) {
        let share = |of_255: u8| f64::from(of_255) / 255.0;
        let steal = share(look.background.steal);
        let (run_delay, stolen, blocked) = match seen.off_cpu.is_known {
            true => {
                let blocked = share(seen.off_cpu.blocked);
                let stolen = blocked.min(steal);
                (share(seen.off_cpu.run_delay), stolen, blocked - stolen)
            }
            false => (0.0, steal, 0.0),
        };
        self.cause(look, Cause::RunDelay, "", weight * run_delay);
        self.cause(look, Cause::Steal, "", weight * stolen);
        self.cause(look, Cause::Unexplained, "", weight * blocked);
        self.cause(look, Cause::Cpu, "", weight * (1.0 - run_delay - stolen - blocked).max(0.0));
    }

    /// Adds a look at which any of the server's sessions may have worked for a client.
    fn add_any(&mut self, look: &Look, weight: f64, under_way: f64) {
        let activity = self.activity;
        let at_work = || activity.backends(look).filter(|seen| seen.event != "Client:ClientRead");
        let count = at_work().count() as f64;
        let served = if under_way > 0.0 { (count / under_way).min(1.0) } else { 1.0 };
        self.cause(look, Cause::PoolerQueue, "", weight * (1.0 - served));
        for seen in at_work() {
            self.add(look, &seen, weight * served / count);
        }
    }

    fn cause(&mut self, look: &Look, cause: Cause, detail: &str, weight: f64) {
        if weight > 0.0 {
            let sums = self.causes.entry((cause, detail.to_owned())).or_default();
            sums[Beside::of(look) as usize] += weight;
        }
    }

    /// Gives what the looks saw of so many seconds.
    fn tell(self, served_s: f64, looks: std::ops::Range<usize>, tail: &mut Tail) {
        let all: f64 = self.causes.values().flatten().sum();
        if all <= 0.0 {
            let (cause, detail) = (Cause::Unexplained, String::new());
            tail.causes.push(TailShare { cause, detail, seconds: served_s });
            return;
        }
        let scale = served_s / all;
        let mut time = ByBackground::default();
        for (look, weight) in self.activity.looks()[looks.clone()].iter().zip(&self.weights[looks])
        {
            time[Beside::of(look) as usize] += weight;
        }
        let mut causes: BTreeMap<(Cause, String), f64> = BTreeMap::new();
        for ((cause, detail), sums) in self.causes {
            let mut own: f64 = sums.iter().sum();
            if cause.can_be_due_to_background() {
                let passed =
                    |kind: Beside| Passed { tail: sums[kind as usize], time: time[kind as usize] };
                let kinds = [
                    (Beside::Checkpoint, Cause::Checkpoint),
                    (Beside::Autovacuum, Cause::Autovacuum),
                ];
                for (kind, background) in kinds {
                    let due = excess(passed(kind), passed(Beside::Nothing)).min(own);
                    own -= due;
                    *causes.entry((background, String::new())).or_default() += due;
                }
            }
            *causes.entry((cause, detail)).or_default() += own;
        }
        let shares = causes.into_iter().filter(|(_, weight)| *weight > 0.0);
        tail.causes = shares
            .map(|((cause, detail), weight)| TailShare { cause, detail, seconds: weight * scale })
            .collect();
        let waits = self.waits.into_iter();
        tail.waits =
            waits.map(|(event, weight)| WaitShare { event, seconds: weight * scale }).collect();
        tail.waits.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
        tail.during_checkpoint_s = self.checkpoint * scale;
        tail.during_autovacuum_s = self.autovacuum * scale;
    }
}

#[cfg(test)]
mod tests;
