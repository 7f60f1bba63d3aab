//! The join of slow transactions with samples.
//!
//! Looks come at random moments, so the share of looks into slow transactions of a length that see a
//! backend in a wait is an estimate of the share of their time that it is in this wait. A look counts for
//! the time that it stands for, and each length for the time that its transactions took.

use std::collections::BTreeMap;

use crate::{
    ActivityLook, ActivitySamples, DelayCause, SlowTransaction, SlowTransactions,
    SlowestTransactions, TailShare,
    accounts::{OffCpu, SettledBackend, SettledSamples},
    background::{BackgroundSeconds, Checkpoint, Seconds, due},
    overlap,
    report::{WaitShare, rank},
    strata::LengthStrata,
};

/// The load whose slow transactions are looked at.
#[derive(Clone, Copy)]
pub struct TailSource<'a> {
    /// The slowest transactions.
    pub slowest: &'a SlowestTransactions,
    /// The successful transactions.
    pub count: u64,
    /// Latency at a quantile, in nanoseconds.
    pub latency_ns: &'a dyn Fn(f64) -> u64,
    /// Transactions that were under way at a moment, on average: behind a pooler, those that no
    /// server session serves are in its queue.
    pub under_way: &'a dyn Fn(u64) -> f64,
}

/// With fewer slow transactions than this above p99, so many of the slowest are looked at, but none below
/// p95.
const FEW: f64 = 100.0;

/// A lock is asked for its holder so often that the answer nearest to a look speaks of it.
const HOLDER_WITHIN_NS: u64 = 300_000_000;

/// The slow transactions of a load by cause; none if no transaction was slow.
#[must_use]
pub fn attribute(load: &TailSource<'_>, activity: &ActivitySamples) -> Option<SlowTransactions> {
    let wanted = (1.0 - FEW / (load.count as f64).max(1.0)).clamp(0.95, 0.99);
    let (mut quantile, mut above_ns) = (wanted, (load.latency_ns)(wanted));
    let slower = |above_ns: u64| -> Vec<SlowTransaction> {
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
    let settled = SettledSamples::new(activity);
    let mut sums = Sums::new(&settled, &weights);
    sums.is_pooled = is_pooled(&slow, activity);
    let strata = LengthStrata::new(&slow, activity.looks(), &weights);
    for one in &slow {
        sums.take(one, strata.factor(one), load.under_way);
    }
    let seconds = |ns: u64| ns as f64 / 1e9;
    let due = slow.iter().map(|s| s.began.saturating_sub(s.scheduled)).sum();
    let served = slow.iter().map(|s| s.ended.saturating_sub(s.began)).sum();
    let looks = overlap::within(activity.looks(), from, to);
    let looked_s: f64 = weights[looks.clone()].iter().sum();
    let mut tail = SlowTransactions {
        quantile,
        above_ns,
        transactions: slow.len() as u64,
        seconds: seconds(due) + seconds(served),
        source: activity.source,
        refusal: activity.refusal.clone(),
        rate: if looked_s > 0.0 { looks.len() as f64 / looked_s } else { 0.0 },
        samples: sums.samples,
        is_pooled: sums.is_pooled,
        ..SlowTransactions::default()
    };
    sums.tell(seconds(served), looks, &mut tail);
    if due > 0 {
        let (cause, detail) = (DelayCause::Schedule, String::new());
        tail.causes.push(TailShare { cause, detail, seconds: seconds(due) });
    }
    rank(&mut tail.causes);
    Some(tail)
}

/// True if most looks into slow transactions do not find their backends: the client was told of a
/// session that is not the server's.
fn is_pooled(slow: &[SlowTransaction], activity: &ActivitySamples) -> bool {
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

/// True if a backend does not wait for its client's next command.
fn is_at_work(event: &str) -> bool {
    event != "Client:ClientRead"
}

/// A cause, its detail, and true if it can be longer for work in the background.
type Kind = (DelayCause, String, bool);

struct Sums<'a> {
    settled: &'a SettledSamples<'a>,
    activity: &'a ActivitySamples,
    weights: &'a [f64],
    /// A pooler is between the clients and the server.
    is_pooled: bool,
    /// Behind a pooler: the seconds whose looks found a session of the load, and all.
    matched: f64,
    looked: f64,
    samples: u64,
    causes: BTreeMap<Kind, Seconds>,
    waits: BTreeMap<String, f64>,
    checkpoint: f64,
    autovacuum: f64,
}

impl<'a> Sums<'a> {
    fn new(settled: &'a SettledSamples<'a>, weights: &'a [f64]) -> Sums<'a> {
        Sums {
            settled,
            activity: settled.activity,
            weights,
            is_pooled: false,
            matched: 0.0,
            looked: 0.0,
            samples: 0,
            causes: BTreeMap::new(),
            waits: BTreeMap::new(),
            checkpoint: 0.0,
            autovacuum: 0.0,
        }
    }

    /// Takes the looks into a transaction, each of which counts for `factor` times what it stands for.
    fn take(&mut self, slow: &SlowTransaction, factor: f64, under_way: &dyn Fn(u64) -> f64) {
        let activity = self.activity;
        let span = overlap::within(activity.looks(), slow.began, slow.ended);
        for index in span.clone() {
            let (look, weight) = (&activity.looks()[index], self.weights[index] * factor);
            let beside = activity.beside(look);
            self.samples += 1;
            self.checkpoint += weight * f64::from(u8::from(beside.checkpoint != Checkpoint::None));
            self.autovacuum += weight * f64::from(u8::from(beside.autovacuum));
            let client_waits = self.settled.load_delay(index);
            if self.is_pooled {
                self.add_any(look, weight, client_waits, under_way(look.at));
                continue;
            }
            match self.settled.backend(look, slow.backend) {
                Some(mut seen) => {
                    // What is between the last look and the one after it may be another transaction.
                    if index + 1 == span.end {
                        seen.off_cpu = seen.off_cpu.map(OffCpu::without_blocked);
                    }
                    self.add(look, &seen, client_waits, weight);
                }
                None => self.cause(look, DelayCause::Unexplained, "", weight),
            }
        }
    }

    /// Adds a look at a backend.
    fn add(
        &mut self,
        look: &ActivityLook,
        seen: &SettledBackend<'_>,
        client_waits: f64,
        weight: f64,
    ) {
        *self.waits.entry(seen.event.to_owned()).or_default() += weight;
        if seen.event.is_empty() {
            self.add_without_event(look, seen, weight);
            return;
        }
        // A backend that is woken has its wait event until it gets a CPU.
        let run_delay = weight * seen.off_cpu.map_or(0.0, |state| f64::from(state.run_delay));
        self.cause(look, DelayCause::RunDelay, "", run_delay);
        let weight = weight - run_delay;
        match DelayCause::of_event(seen.event) {
            DelayCause::Lock => {
                let holder = self.activity.holder(look.at, seen.backend, HOLDER_WITHIN_NS);
                match holder {
                    Some((_, holder)) if holder.backend_type == "autovacuum worker" => {
                        self.cause(look, DelayCause::Autovacuum, "", weight);
                    }
                    Some((backend, holder)) => {
                        self.add_lock(look, backend, &holder.words(), weight);
                    }
                    None => self.cause(look, DelayCause::Lock, "", weight),
                }
            }
            DelayCause::Wait => self.cause(look, DelayCause::Wait, seen.event, weight),
            DelayCause::Client => self.add_client(look, client_waits, weight),
            cause => self.cause(look, cause, "", weight),
        }
    }

    /// Adds a look at which another backend held a lock. If that one waited for a file then, the lock took
    /// longer for the same reason.
    fn add_lock(&mut self, look: &ActivityLook, holder: i32, words: &str, weight: f64) {
        let waits_for = self.activity.backend(look, holder);
        let cause = waits_for.map_or(DelayCause::Lock, |seen| DelayCause::of_event(seen.event));
        let can_be_due = matches!(cause, DelayCause::WalFlush | DelayCause::FileIo);
        self.put(look, (DelayCause::Lock, words.to_owned(), can_be_due), weight);
    }

    /// Adds a look at a backend that waits for nothing that PostgreSQL knows. Time that the hypervisor
    /// takes from a running process is in neither of the kernel's accounts: all that is known of it is its
    /// share of the machine's time.
    fn add_without_event(&mut self, look: &ActivityLook, seen: &SettledBackend<'_>, weight: f64) {
        // Without the kernel's account, a backend that waits for nothing counts as at work.
        let OffCpu { run_delay, blocked } = seen.off_cpu.unwrap_or_default();
        let (run_delay, blocked) = (f64::from(run_delay), f64::from(blocked));
        let stolen = (f64::from(look.steal) / 255.0).min(1.0 - run_delay);
        let blocked = (blocked - stolen).max(0.0);
        self.cause(look, DelayCause::RunDelay, "", weight * run_delay);
        self.cause(look, DelayCause::Steal, "", weight * stolen);
        self.cause(look, DelayCause::Unexplained, "", weight * blocked);
        self.cause(
            look,
            DelayCause::Cpu,
            "",
            weight * (1.0 - run_delay - stolen - blocked).max(0.0),
        );
    }

    /// Adds a look at which the server waited for its client. A client of the load that waits for a CPU
    /// itself is late for no other reason.
    fn add_client(&mut self, look: &ActivityLook, client_waits: f64, weight: f64) {
        self.cause(look, DelayCause::RunDelay, "", weight * client_waits);
        self.cause(look, DelayCause::Client, "", weight * (1.0 - client_waits));
    }

    /// Adds a look at which any of the pooler's sessions may have worked for a client. Clients beyond
    /// these sessions are in the queue. A session with nothing to do waits for its client, or for the
    /// pooler. Sessions that do not bear the load's name are other programs': what they wait for is no cause.
    fn add_any(&mut self, look: &ActivityLook, weight: f64, client_waits: f64, under_way: f64) {
        let (settled, of_load) = (self.settled, &self.activity.of_load);
        let sessions = settled.backends(look).filter(|seen| of_load.contains(&seen.backend));
        let (busy, idle): (Vec<SettledBackend<'_>>, Vec<SettledBackend<'_>>) =
            sessions.partition(|seen| is_at_work(seen.event));
        let under_way = under_way.max(busy.len() as f64);
        self.looked += weight;
        if under_way <= 0.0 || busy.len() + idle.len() == 0 {
            self.cause(look, DelayCause::Unexplained, "", weight);
            return;
        }
        self.matched += weight;
        let each = weight / under_way;
        let queued = (under_way - (busy.len() + idle.len()) as f64).max(0.0);
        self.cause(look, DelayCause::PoolerQueue, "", each * queued);
        let waits_for_client = under_way - queued - busy.len() as f64;
        self.add_client(look, client_waits, each * waits_for_client);
        for seen in &busy {
            self.add(look, seen, client_waits, each);
        }
    }

    fn cause(&mut self, look: &ActivityLook, cause: DelayCause, detail: &str, weight: f64) {
        self.put(look, (cause, detail.to_owned(), cause.can_be_due_to_background()), weight);
    }

    fn put(&mut self, look: &ActivityLook, kind: Kind, weight: f64) {
        if weight > 0.0 {
            let sums = self.causes.entry(kind).or_default();
            sums.add(self.activity.beside(look), weight);
        }
    }

    /// Gives what the looks saw of so many seconds.
    fn tell(self, served_s: f64, looks: std::ops::Range<usize>, tail: &mut SlowTransactions) {
        let all: f64 = self.causes.values().map(Seconds::sum).sum();
        if all <= 0.0 {
            let (cause, detail) = (DelayCause::Unexplained, String::new());
            tail.causes.push(TailShare { cause, detail, seconds: served_s });
            return;
        }
        let scale = served_s / all;
        let mut time = Seconds::default();
        for (look, weight) in self.activity.looks()[looks.clone()].iter().zip(&self.weights[looks])
        {
            time.add(self.activity.beside(look), *weight);
        }
        let mut causes: BTreeMap<(DelayCause, String), f64> = BTreeMap::new();
        let (share, background) = due_to_background(&self.causes, &time);
        for ((cause, detail, can_be_due), sums) in self.causes {
            let mut own = sums.sum();
            if can_be_due {
                let due = due(&sums, &time);
                own -= due.checkpoint * share.checkpoint + due.autovacuum * share.autovacuum;
            }
            *causes.entry((cause, detail)).or_default() += own.max(0.0);
        }
        for (cause, due) in [
            (DelayCause::Checkpoint, background.checkpoint),
            (DelayCause::Autovacuum, background.autovacuum),
        ] {
            *causes.entry((cause, String::new())).or_default() += due;
        }
        let shares = causes.into_iter().filter(|(_, weight)| *weight > 0.0);
        tail.causes = shares
            .map(|((cause, detail), weight)| TailShare { cause, detail, seconds: weight * scale })
            .collect();
        let waits = self.waits.into_iter();
        tail.waits =
            waits.map(|(event, weight)| WaitShare { event, seconds: weight * scale }).collect();
        tail.waits.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
        tail.matched = self.is_pooled.then(|| self.matched / self.looked);
        tail.during_checkpoint_s = self.checkpoint * scale;
        tail.during_autovacuum_s = self.autovacuum * scale;
    }
}

/// The parts of all causes together that are due to work in the background, and the share of each
/// cause's own part that counts. Each cause alone is more at some times than at others by chance: their
/// parts together are no more than the part of the sum.
fn due_to_background(
    causes: &BTreeMap<Kind, Seconds>,
    time: &Seconds,
) -> (BackgroundSeconds, BackgroundSeconds) {
    let mut sum = Seconds::default();
    let mut parts = BackgroundSeconds::default();
    for ((.., can_be_due), sums) in causes {
        if *can_be_due {
            sum.add_all(sums);
            let own = due(sums, time);
            parts.checkpoint += own.checkpoint;
            parts.autovacuum += own.autovacuum;
        }
    }
    let whole = due(&sum, time);
    let share = |whole: f64, parts: f64| if parts > 0.0 { (whole / parts).min(1.0) } else { 0.0 };
    let share = BackgroundSeconds {
        checkpoint: share(whole.checkpoint, parts.checkpoint),
        autovacuum: share(whole.autovacuum, parts.autovacuum),
    };
    let background = BackgroundSeconds {
        checkpoint: parts.checkpoint * share.checkpoint,
        autovacuum: parts.autovacuum * share.autovacuum,
    };
    (share, background)
}

#[cfg(test)]
mod tests;
