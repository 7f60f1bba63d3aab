//! Simulated servers whose truth is known.

use stats::Prng;

use super::*;
use crate::{BackendLook, BackgroundActivity, LockHolder, ProcessTimes, SamplingMethod};

const MS: u64 = 1_000_000;
const BACKENDS: i32 = 8;

/// A simulated load: each backend runs transactions one after another. One in a hundred is slow: it has
/// phases before its millisecond on a CPU.
struct World {
    /// Phases of a slow transaction: from when to when, and what the backend waits for. Names in brackets
    /// stand for no event: what the kernel's account knows then.
    truth: Vec<Phase>,
    slowest: SlowestTransactions,
    count: u64,
    latencies: Vec<u64>,
    end: u64,
}

/// A phase: the backend, from when to when, and what it waits for.
type Phase = (i32, u64, u64, &'static str);

/// A backend as the kernel and shared memory show it.
struct Kernel {
    backend: i32,
    /// The next phase.
    next: usize,
    /// The end of the phase before.
    since: u64,
    spent: ProcessTimes,
}

/// A process that runs is brought to account this often.
const TICK: u64 = 4 * MS;

impl Kernel {
    fn new(backend: i32) -> Kernel {
        Kernel { backend, next: 0, since: 0, spent: ProcessTimes::default() }
    }

    /// A wait for a CPU is accounted when it is over, and time on a CPU at a tick or when it is over. A
    /// backend that is woken has its event until it gets a CPU.
    fn look(&mut self, truth: &[Phase], at: u64) -> BackendLook<'static> {
        while let Some((_, from, to, event)) = truth.get(self.next).filter(|phase| phase.2 <= at) {
            self.spent.cpu_ns += from.saturating_sub(self.since);
            if matches!(*event, "(ready)" | "(woken)") {
                self.spent.run_delay_ns += to - from;
            }
            (self.since, self.next) = (*to, self.next + 1);
        }
        let mut spent = self.spent;
        let phase = truth.get(self.next).filter(|phase| phase.1 <= at);
        let event = match phase {
            Some((_, from, _, event)) => {
                spent.cpu_ns += from.saturating_sub(self.since);
                match *event {
                    "(ready)" | "(blocked)" => "",
                    "(woken)" => "Client:ClientRead",
                    event => event,
                }
            }
            None => {
                spent.cpu_ns += (at - self.since) / TICK * TICK;
                ""
            }
        };
        BackendLook { backend: self.backend, event, spent: Some(spent) }
    }
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
        let (mut truth, mut slowest, mut latencies) =
            (Vec::new(), SlowestTransactions::default(), Vec::new());
        let end = seconds * 1_000 * MS;
        for backend in 0..BACKENDS {
            let mut now = prng.next_u64() % MS;
            while now < end {
                let began = now;
                let unit = prng.unit();
                if is_slow(unit, began) {
                    for (length, event) in phases(&mut prng, began) {
                        truth.push((backend, now, now + length, event));
                        now += length;
                    }
                }
                now += MS / 2 + prng.next_u64() % MS;
                let slow = SlowTransaction { backend, scheduled: began, began, ended: now };
                latencies.push(slow.latency_ns());
                slowest.take(slow);
            }
        }
        latencies.sort_unstable();
        World { truth, slowest, count: latencies.len() as u64, latencies, end }
    }

    /// Samples at random moments, `rate` a second.
    fn sample(
        &self,
        seed: u64,
        rate: f64,
        background: &dyn Fn(u64) -> BackgroundActivity<'static>,
    ) -> ActivitySamples {
        let mut prng = Prng::new(seed);
        let mut kernels: Vec<Kernel> = (0..BACKENDS).map(Kernel::new).collect();
        let truths: Vec<Vec<Phase>> = (0..BACKENDS)
            .map(|backend| self.truth.iter().filter(|one| one.0 == backend).copied().collect())
            .collect();
        let mut activity = ActivitySamples::from(SamplingMethod::SharedMemory);
        let mut now = 0_u64;
        loop {
            now += (-(1.0 - prng.unit()).ln() / rate * 1e9) as u64;
            if now > self.end {
                return activity;
            }
            let seen =
                kernels.iter_mut().zip(&truths).map(|(kernel, truth)| kernel.look(truth, now));
            activity.add(now, background(now), seen);
        }
    }

    fn load<'a>(&'a self, latency_ns: &'a dyn Fn(f64) -> u64) -> TailSource<'a> {
        TailSource {
            slowest: &self.slowest,
            count: self.count,
            latency_ns,
            under_way: &|_| f64::from(BACKENDS),
        }
    }

    fn tail(&self, activity: &ActivitySamples) -> SlowTransactions {
        let latency = |q: f64| self.latencies[(self.latencies.len() as f64 * q) as usize];
        attribute(&self.load(&latency), activity).expect("slow transactions")
    }
}

fn share(tail: &SlowTransactions, cause: DelayCause) -> f64 {
    let own = tail.causes.iter().filter(|one| one.cause == cause);
    tail.share(own.map(|one| one.seconds).sum())
}

const RARE: fn(f64, u64) -> bool = |unit, _| unit < 0.012;
const QUIET: fn(u64) -> BackgroundActivity<'static> = |_| BackgroundActivity {
    checkpointer: Some("Activity:CheckpointerMain"),
    autovacuum: false,
    steal: 0,
    load_waited_ns: 0,
};

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
    let close = |cause: DelayCause, expected: f64| {
        let found = share(&tail, cause);
        assert!((found - expected).abs() < 0.03, "{cause:?}: {found}, not {expected}");
    };
    // Of 11 ms on average, one is on a CPU after the phases.
    close(DelayCause::WalFlush, 4.0 / 11.0);
    close(DelayCause::Wait, 2.0 / 11.0);
    close(DelayCause::RunDelay, 2.0 / 11.0);
    close(DelayCause::Unexplained, 1.0 / 11.0);
    close(DelayCause::Client, 1.0 / 11.0);
    close(DelayCause::Cpu, 1.0 / 11.0);
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
        right += u32::from(tail.causes[0].cause == DelayCause::FileIo);
    }
    assert!(right >= 19, "{right} of 20");
}

#[test]
fn a_checkpoint_owns_what_is_more_while_it_runs() {
    // Ten seconds in thirty; slow transactions in it only, but for a few that have another cause.
    let is_on = |at: u64| (at / (10_000 * MS)).is_multiple_of(3);
    let slow = |unit: f64, at: u64| unit < if is_on(at) { 0.05 } else { 0.001 };
    let background = |at| BackgroundActivity {
        checkpointer: is_on(at).then_some("IO:DataFileWrite"),
        ..QUIET(at)
    };
    let mut phases = |_: &mut Prng, _: u64| vec![(8 * MS, "IO:WALSync")];
    let world = World::run(3, 60, &slow, &mut phases);
    let tail = world.tail(&world.sample(4, 500.0, &background));
    assert_eq!(tail.causes[0].cause, DelayCause::Checkpoint, "{tail:?}");
    assert!(share(&tail, DelayCause::Checkpoint) > 0.85, "{}", tail.causes_line());
    // As many at any time: the flushes own them, and the checkpoint is innocent.
    let world = World::run(5, 60, &RARE, &mut phases);
    let tail = world.tail(&world.sample(6, 500.0, &background));
    assert_eq!(tail.causes[0].cause, DelayCause::WalFlush, "{tail:?}");
    assert!(share(&tail, DelayCause::Checkpoint) < 0.1, "{}", tail.causes_line());
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
                let holder = LockHolder::new(backend_type, "", "active", "UPDATE t SET a = 17");
                activity.hold(at, waiter, 99, holder);
            }
        }
        assert_eq!(world.tail(&activity).causes[0].words(), expected);
    };
    check("client backend", "lock held by UPDATE t SET a = ?");
    check("autovacuum worker", "autovacuum");
}

#[test]
fn a_checkpoint_that_is_always_under_way_is_named_for_its_flushes() {
    let flushes = |at: u64| (at / (1_000 * MS)).is_multiple_of(10);
    let slow = |unit: f64, at: u64| unit < if flushes(at) { 0.12 } else { 0.001 };
    let mut phases = |_: &mut Prng, _: u64| vec![(8 * MS, "LWLock:WALWrite")];
    let world = World::run(13, 60, &slow, &mut phases);
    let background = |at: u64| {
        let event = if flushes(at) { "IO:DataFileSync" } else { "Timeout:CheckpointWriteDelay" };
        BackgroundActivity { checkpointer: Some(event), ..QUIET(at) }
    };
    let tail = world.tail(&world.sample(14, 500.0, &background));
    assert!(share(&tail, DelayCause::Checkpoint) > 0.8, "{}", tail.causes_line());
}

#[test]
fn a_client_without_a_cpu_is_no_network() {
    let world = World::run(15, 30, &RARE, &mut |_, _| vec![(9 * MS, "Client:ClientRead")]);
    let check = |delay: f64, expected: [f64; 2]| {
        let background = |at: u64| BackgroundActivity {
            load_waited_ns: (at as f64 * delay) as u64,
            ..QUIET(at)
        };
        let tail = world.tail(&world.sample(16, 500.0, &background));
        let found = [DelayCause::RunDelay, DelayCause::Client].map(|cause| share(&tail, cause));
        assert!(
            found.iter().zip(expected).all(|(one, other)| (one - other).abs() < 0.02),
            "{found:?}"
        );
    };
    // One of ten milliseconds is on a CPU.
    check(0.0, [0.0, 0.9]);
    check(1.0, [0.9, 0.0]);
    check(0.2, [0.18, 0.72]);
}

/// The transaction is over a moment after its wait for a CPU is: no look into it has that in its account.
#[test]
fn a_wait_for_a_cpu_is_found_by_the_readings_after_it() {
    // Of 16 ms on average, 15 are a wait. Rare looks find less of it: the readings around it are those
    // of other transactions as well.
    for (rate, least) in [(1_000.0, 0.9), (200.0, 0.8), (50.0, 0.5)] {
        for event in ["(woken)", "(ready)"] {
            let world = World::run(19, 60, &RARE, &mut |_, _| vec![(15 * MS, event)]);
            let found = share(&world.tail(&world.sample(20, rate, &QUIET)), DelayCause::RunDelay);
            assert!((least..0.96).contains(&found), "{event} at {rate}/s: {found}");
        }
    }
}

#[test]
fn steal_is_found_by_few_looks_as_well() {
    // A third of the time is stolen from whoever runs.
    let background = |at: u64| BackgroundActivity { steal: 85, ..QUIET(at) };
    for rate in [1_000.0, 50.0] {
        let world = World::run(21, 30, &RARE, &mut |_, _| {
            vec![(6 * MS, "IO:WALSync"), (3 * MS, "(blocked)")]
        });
        let found = share(&world.tail(&world.sample(22, rate, &background)), DelayCause::Steal);
        assert!((0.1..0.2).contains(&found), "{found} at {rate}/s");
    }
}

#[test]
fn a_lock_whose_holder_waits_for_a_slow_flush_is_the_checkpoints() {
    let is_on = |at: u64| (at / (1_000 * MS)).is_multiple_of(3);
    let slow = |unit: f64, at: u64| unit < if is_on(at) { 0.05 } else { 0.001 };
    let world = World::run(17, 30, &slow, &mut |_, _| vec![(9 * MS, "Lock:transactionid")]);
    let background = |at| BackgroundActivity {
        checkpointer: is_on(at).then_some("IO:DataFileSync"),
        ..QUIET(at)
    };
    let check = |of_holder: &'static str, expected: DelayCause| {
        let waiting = world.sample(18, 500.0, &background);
        let mut activity = ActivitySamples::from(SamplingMethod::SharedMemory);
        for look in waiting.looks() {
            let holder = BackendLook { backend: 99, event: of_holder, spent: None };
            activity.add(look.at, background(look.at), waiting.backends(look).chain([holder]));
            for waiter in 0..BACKENDS {
                let holder = LockHolder::new("client backend", "", "active", "UPDATE t");
                activity.hold(look.at, waiter, 99, holder);
            }
        }
        assert_eq!(world.tail(&activity).causes[0].cause, expected, "{of_holder}");
    };
    check("IO:WALSync", DelayCause::Checkpoint);
    // The holder has its own reasons.
    check("Timeout:PgSleep", DelayCause::Lock);
}

#[test]
fn locks_of_many_holders_are_one_cause() {
    let share = |cause: DelayCause, detail: &str, seconds: f64| TailShare {
        cause,
        detail: detail.to_owned(),
        seconds,
    };
    let mut causes = vec![
        share(DelayCause::Cpu, "", 4.0),
        share(DelayCause::Wait, "LWLock:a", 3.0),
        share(DelayCause::Wait, "LWLock:b", 2.5),
        share(DelayCause::Lock, "x", 2.0),
        share(DelayCause::Lock, "y", 2.2),
        share(DelayCause::Lock, "z", 1.0),
    ];
    rank(&mut causes);
    let order: Vec<&str> = causes.iter().map(|one| one.detail.as_str()).collect();
    assert_eq!(order, ["y", "x", "z", "", "LWLock:a", "LWLock:b"]);
}

#[test]
fn behind_a_pooler_clients_without_a_session_are_in_its_queue() {
    let world = World::run(9, 30, &RARE, &mut |_, _| vec![(9 * MS, "(ready)")]);
    let check = |sessions: i32, named: i32, expected: [f64; 4]| {
        // The server has sessions of which the clients know nothing: in turn, one is at work. One
        // more is another program's, which waits for a lock.
        let mut activity = ActivitySamples::from(SamplingMethod::View);
        activity.of_load = (900..900 + named).collect();
        for at in 0..30_000 {
            let seen = (0..=sessions).map(|session| BackendLook {
                backend: 900 + session,
                event: match session {
                    other if other == sessions => "Lock:relation",
                    own if own as u64 == at % sessions as u64 => "IO:WALSync",
                    _ => "Client:ClientRead",
                },
                spent: None,
            });
            activity.add(at * MS, QUIET(at), seen);
        }
        let tail = world.tail(&activity);
        assert!(tail.is_pooled);
        assert_eq!(tail.matched, Some(if named > 0 { 1.0 } else { 0.0 }));
        assert_eq!(share(&tail, DelayCause::Lock), 0.0);
        let causes = [
            DelayCause::PoolerQueue,
            DelayCause::WalFlush,
            DelayCause::Client,
            DelayCause::Unexplained,
        ];
        let found = causes.map(|cause| share(&tail, cause));
        let is_same = found.iter().zip(expected).all(|(one, other)| (one - other).abs() < 0.01);
        assert!(is_same, "{sessions}: {found:?}");
    };
    check(2, 2, [6.0 / 8.0, 1.0 / 8.0, 1.0 / 8.0, 0.0]);
    // More sessions than clients: there is no queue.
    check(20, 20, [0.0, 1.0 / 8.0, 7.0 / 8.0, 0.0]);
    // Sessions without the load's name may be anybody's.
    check(2, 0, [0.0, 0.0, 0.0, 1.0]);
}

/// Each look takes a CPU from a short transaction, which is slow for that and is what the look finds.
#[test]
fn transactions_that_looks_make_slow_count_for_their_time_only() {
    let mut slowest = SlowestTransactions::default();
    let mut take = |backend: i32, began: u64, length: u64| {
        slowest.take(SlowTransaction { backend, scheduled: began, began, ended: began + length });
    };
    // Ten times a second and a half, a lock stops the one backend for 150 ms; the other is seen at every
    // look.
    let is_locked = |at: u64| at % (1_500 * MS) < 150 * MS;
    (0..10).for_each(|number| take(1, number * 1_500 * MS, 150 * MS));
    let mut activity = ActivitySamples::from(SamplingMethod::SharedMemory);
    for at in (0..15_000 * MS).step_by(18 * MS as usize) {
        take(2, at, MS / 2);
        let event = if is_locked(at) { "Lock:relation" } else { "Client:ClientRead" };
        let seen = [(1, event), (2, "IO:DataFileRead")];
        let seen = seen.map(|(backend, event)| BackendLook { backend, event, spent: None });
        activity.add(at, QUIET(at), seen);
    }
    let load = TailSource {
        slowest: &slowest,
        count: 100_000,
        latency_ns: &|_| MS / 4,
        under_way: &|_| 2.0,
    };
    let tail = attribute(&load, &activity).expect("slow transactions");
    let lock = share(&tail, DelayCause::Lock);
    // 1.5 s of 1.917 s; of the looks it is 84 of 918.
    assert!((lock - 0.78).abs() < 0.04, "{lock}: {}", tail.causes_line());
}

#[test]
fn without_looks_nothing_is_explained() {
    let world = World::run(11, 5, &RARE, &mut |_, _| vec![(9 * MS, "IO:WALSync")]);
    let tail = world.tail(&ActivitySamples::from(SamplingMethod::View));
    assert_eq!((tail.samples, tail.can_tell()), (0, false));
    assert!((tail.share(tail.unexplained_s()) - 1.0).abs() < 1e-9);
    assert_eq!(tail.causes_line(), "too few samples to tell causes");
}

/// Worlds with one cause beside the noise of a busy machine: each slow transaction waits for a CPU as
/// well, on the server and in the client, and some are slow for that reason alone.
#[test]
fn a_planted_cause_is_named_first_on_a_busy_machine() {
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Plant {
        Lock,
        AutovacuumLock,
        AutovacuumIo,
        Checkpoint,
        SpreadCheckpoint,
        SlowFlush,
        Neighbour,
    }
    use Plant::*;
    // As seldom as the view is asked.
    let (rate, runs) = (50.0, 20);
    let check = |plant: Plant, expected: DelayCause| {
        let mut wrong = Vec::new();
        for seed in 0..runs {
            // Of each second and a half, 0.4 s have the work in the background.
            let is_on = move |at: u64| at % (1_500 * MS) < 400 * MS;
            let in_background = matches!(plant, Checkpoint | SpreadCheckpoint | AutovacuumIo);
            let is_slow = move |unit: f64, at: u64| {
                unit < match in_background {
                    true if is_on(at) => 0.06,
                    true => 0.002,
                    false => 0.012,
                }
            };
            let phases = &mut |prng: &mut Prng, began: u64| {
                let noise = |prng: &mut Prng| prng.next_u64() % (5 * MS);
                let event = match plant {
                    Lock | AutovacuumLock => "Lock:transactionid",
                    SlowFlush => "IO:WALSync",
                    Neighbour => "(woken)",
                    _ if !is_on(began) => "(ready)",
                    Checkpoint => "LWLock:WALWrite",
                    SpreadCheckpoint => "IO:WALSync",
                    AutovacuumIo => "IO:DataFileRead",
                };
                let cause = 10 * MS + prng.next_u64() % (10 * MS);
                vec![(noise(prng), "(ready)"), (cause, event), (noise(prng), "Client:ClientRead")]
            };
            let world = World::run(seed, 5, &is_slow, phases);
            let background = |at: u64| BackgroundActivity {
                checkpointer: Some(match plant {
                    Checkpoint | SpreadCheckpoint if is_on(at) => "IO:DataFileSync",
                    SpreadCheckpoint => "Timeout:CheckpointWriteDelay",
                    _ => "Activity:CheckpointerMain",
                }),
                autovacuum: plant == AutovacuumIo && is_on(at),
                steal: 0,
                load_waited_ns: at / 5 * 2,
            };
            let mut activity = world.sample(seed + 100, rate, &background);
            let kind = if plant == AutovacuumLock { "autovacuum worker" } else { "client backend" };
            for at in (0..world.end).step_by(20 * MS as usize) {
                for waiter in 0..BACKENDS {
                    // Many statements hold locks, each for a while.
                    let statement =
                        ["UPDATE a", "UPDATE b", "UPDATE c"][(at / MS / 100 % 3) as usize];
                    activity.hold(at, waiter, 99, LockHolder::new(kind, "", "active", statement));
                }
            }
            let tail = world.tail(&activity);
            if tail.causes[0].cause != expected {
                wrong.push(tail.causes_line());
            }
        }
        assert!(wrong.len() as u64 <= runs / 20, "{plant:?} at {rate}/s: {wrong:#?}");
    };
    check(Lock, DelayCause::Lock);
    check(AutovacuumLock, DelayCause::Autovacuum);
    check(AutovacuumIo, DelayCause::Autovacuum);
    check(Checkpoint, DelayCause::Checkpoint);
    check(SpreadCheckpoint, DelayCause::Checkpoint);
    check(SlowFlush, DelayCause::WalFlush);
    check(Neighbour, DelayCause::RunDelay);
}
