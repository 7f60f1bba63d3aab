//! Simulated servers whose truth is known.

use stats::Prng;

use super::*;
use crate::{Background, Holder, OffCpu, Source};

const MS: u64 = 1_000_000;
const BACKENDS: i32 = 8;

/// A simulated load: each backend runs transactions one after another. One in a hundred is slow, and
/// spends the time above a millisecond in phases.
struct World {
    /// Phases of a slow transaction: from when to when, and what the backend waits for.
    truth: Vec<(i32, u64, u64, &'static str)>,
    slowest: Slowest,
    count: u64,
    latencies: Vec<u64>,
    end: u64,
}

/// The phases of a slow transaction that begins at a moment: lengths and wait events.
type Phases<'a> = &'a mut dyn FnMut(&mut Prng, u64) -> Vec<(u64, &'static str)>;

impl World {
    fn run(
        seed: u64,
        seconds: u64,
        is_slow: &dyn Fn(f64, u64) -> bool,
        phases: Phases<'_>,
    ) -> World {
        let mut prng = Prng::new(seed);
        let (mut truth, mut slowest, mut latencies) = (Vec::new(), Slowest::default(), Vec::new());
        let end = seconds * 1_000 * MS;
        for backend in 0..BACKENDS {
            let mut now = prng.next_u64() % MS;
            while now < end {
                let began = now;
                let unit = prng.unit();
                now += MS / 2 + prng.next_u64() % MS;
                if is_slow(unit, began) {
                    for (length, event) in phases(&mut prng, began) {
                        truth.push((backend, now, now + length, event));
                        now += length;
                    }
                }
                let slow = Slow { backend, scheduled: began, began, ended: now };
                latencies.push(slow.latency_ns());
                slowest.take(slow);
            }
        }
        latencies.sort_unstable();
        World { truth, slowest, count: latencies.len() as u64, latencies, end }
    }

    /// Samples at random moments, `rate` a second.
    fn sample(&self, seed: u64, rate: f64, background: &dyn Fn(u64) -> Background) -> Activity {
        let mut prng = Prng::new(seed);
        let mut truth = self.truth.clone();
        truth.sort_unstable();
        let event_at = |backend: i32, at: u64| {
            let from = truth.partition_point(|one| (one.0, one.1) <= (backend, at));
            let before = from.checked_sub(1).map(|index| truth[index]);
            before.filter(|one| one.0 == backend && at < one.2).map_or("", |one| one.3)
        };
        let mut activity = Activity::from(Source::SharedMemory);
        let mut now = 0_u64;
        loop {
            now += (-(1.0 - prng.unit()).ln() / rate * 1e9) as u64;
            if now > self.end {
                return activity;
            }
            let seen = (0..BACKENDS).map(|backend| {
                let event = event_at(backend, now);
                // A name in brackets stands for the kernel's account of a time without an event.
                let (event, off_cpu) = match event {
                    "(ready)" => ("", OffCpu { run_delay: 255, blocked: 0, is_known: true }),
                    "(blocked)" => ("", OffCpu { run_delay: 0, blocked: 255, is_known: true }),
                    event => (event, OffCpu { is_known: true, ..OffCpu::default() }),
                };
                Lookup { backend, event, off_cpu }
            });
            activity.add(now, background(now), seen);
        }
    }

    fn load<'a>(&'a self, latency_ns: &'a dyn Fn(f64) -> u64) -> Load<'a> {
        Load {
            slowest: &self.slowest,
            count: self.count,
            latency_ns,
            under_way: &|_| f64::from(BACKENDS),
        }
    }

    fn tail(&self, activity: &Activity) -> Tail {
        let latency = |q: f64| self.latencies[(self.latencies.len() as f64 * q) as usize];
        attribute(&self.load(&latency), activity).expect("slow transactions")
    }
}

fn share(tail: &Tail, cause: Cause) -> f64 {
    let own = tail.causes.iter().filter(|one| one.cause == cause);
    tail.share(own.map(|one| one.seconds).sum())
}

const RARE: fn(f64, u64) -> bool = |unit, _| unit < 0.012;
const QUIET: fn(u64) -> Background =
    |_| Background { checkpoint: false, autovacuum: false, steal: 0 };

#[test]
fn shares_are_those_of_the_time() {
    let world = World::run(1, 60, &RARE, &mut |_, _| {
        vec![
            (4 * MS, "IO:WALSync"),
            (2 * MS, "LWLock:BufferContent"),
            (2 * MS, "(ready)"),
            (MS, "(blocked)"),
            (MS, "Client:ClientRead"),
        ]
    });
    let tail = world.tail(&world.sample(2, 1_000.0, &QUIET));
    let close = |cause: Cause, expected: f64| {
        let found = share(&tail, cause);
        assert!((found - expected).abs() < 0.02, "{cause:?}: {found}, not {expected}");
    };
    // Of 11 ms on average, one is on a CPU before the phases.
    close(Cause::WalFlush, 4.0 / 11.0);
    close(Cause::Wait, 2.0 / 11.0);
    close(Cause::RunDelay, 2.0 / 11.0);
    close(Cause::Unexplained, 1.0 / 11.0);
    close(Cause::Client, 1.0 / 11.0);
    close(Cause::Cpu, 1.0 / 11.0);
    let sum: f64 = tail.causes.iter().map(|one| one.seconds).sum();
    assert!((sum - tail.seconds).abs() < 1e-6 * sum, "{sum} of {}", tail.seconds);
    assert!((900.0..1_100.0).contains(&tail.rate), "{}", tail.rate);
    assert_eq!((tail.quantile, tail.is_pooled), (0.99, false));
    assert!(tail.causes_line().starts_with("WAL flush 3"), "{}", tail.causes_line());
}

#[test]
fn rare_looks_find_the_first_cause_as_well() {
    let mut right = 0;
    for seed in 0..20 {
        let world = World::run(seed, 12, &RARE, &mut |_, _| {
            vec![(5 * MS, "IO:DataFileRead"), (3 * MS, "IO:WALSync")]
        });
        let tail = world.tail(&world.sample(seed + 100, 50.0, &QUIET));
        right += u32::from(tail.causes[0].cause == Cause::FileIo);
    }
    assert!(right >= 19, "{right} of 20");
}

#[test]
fn a_checkpoint_owns_what_is_more_while_it_runs() {
    // Ten seconds in thirty; slow transactions in it only, but for a few that have another cause.
    let is_on = |at: u64| (at / (10_000 * MS)).is_multiple_of(3);
    let slow = |unit: f64, at: u64| unit < if is_on(at) { 0.05 } else { 0.001 };
    let background = |at: u64| Background { checkpoint: is_on(at), ..Background::default() };
    let mut phases = |_: &mut Prng, _: u64| vec![(8 * MS, "IO:WALSync")];
    let world = World::run(3, 60, &slow, &mut phases);
    let tail = world.tail(&world.sample(4, 500.0, &background));
    assert_eq!(tail.causes[0].cause, Cause::Checkpoint, "{tail:?}");
    assert!(share(&tail, Cause::Checkpoint) > 0.85, "{}", tail.causes_line());
    // As many at any time: the flushes own them, and the checkpoint is innocent.
    let world = World::run(5, 60, &RARE, &mut phases);
    let tail = world.tail(&world.sample(6, 500.0, &background));
    assert_eq!(tail.causes[0].cause, Cause::WalFlush, "{tail:?}");
    assert!(share(&tail, Cause::Checkpoint) < 0.1, "{}", tail.causes_line());
    assert!((tail.share(tail.during_checkpoint_s) - 1.0 / 3.0).abs() < 0.1);
}

#[test]
fn a_lock_is_its_holders_and_autovacuum_can_be_one() {
    let world = World::run(7, 30, &RARE, &mut |_, _| vec![(9 * MS, "Lock:transactionid")]);
    let check = |backend_type: &str, expected: &str| {
        let mut activity = world.sample(8, 500.0, &QUIET);
        let asked: Vec<u64> = activity.looks().iter().map(|look| look.at).step_by(10).collect();
        for at in asked {
            for waiter in 0..BACKENDS {
                let holder = Holder::new(backend_type, "", "active", "UPDATE t SET a = 17");
                activity.hold(at, waiter, holder);
            }
        }
        assert_eq!(world.tail(&activity).causes[0].words(), expected);
    };
    check("client backend", "lock held by UPDATE t SET a = ?");
    check("autovacuum worker", "autovacuum");
}

#[test]
fn behind_a_pooler_clients_without_a_session_are_in_its_queue() {
    let world = World::run(9, 30, &RARE, &mut |_, _| vec![(9 * MS, "(ready)")]);
    // The server has two sessions, of which the clients know nothing.
    let mut activity = Activity::from(Source::View);
    for at in (0..30_000).map(|ms| ms * MS) {
        let seen = [900, 901].map(|backend| Lookup {
            backend,
            event: if backend == 900 { "IO:WALSync" } else { "" },
            off_cpu: OffCpu::default(),
        });
        activity.add(at, QUIET(at), seen);
    }
    let tail = world.tail(&activity);
    assert!(tail.is_pooled);
    let queue = share(&tail, Cause::PoolerQueue);
    assert!((queue - 6.0 / 8.0).abs() < 0.01, "{queue}");
    assert!((share(&tail, Cause::WalFlush) - 1.0 / 8.0).abs() < 0.01);
}

#[test]
fn without_looks_nothing_is_explained() {
    let world = World::run(11, 5, &RARE, &mut |_, _| vec![(9 * MS, "IO:WALSync")]);
    let tail = world.tail(&Activity::from(Source::View));
    assert_eq!((tail.samples, tail.can_tell()), (0, false));
    assert!((tail.share(tail.unexplained_s()) - 1.0).abs() < 1e-9);
    assert_eq!(tail.causes_line(), "too few samples to tell causes");
}
