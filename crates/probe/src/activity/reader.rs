//! The thread that reads shared memory.

use std::{
    collections::{HashMap, HashSet},
    io,
    sync::{Arc, PoisonError, atomic::Ordering},
    thread::{self, Thread},
    time::{Duration, Instant},
};

use tail::{ActivitySamples, BackendLook, BackgroundActivity, ProcessTimes, SamplingMethod};

use super::{
    Shared,
    beat::Beat,
    load_threads::LoadThreads,
    memory::{self, Backends, Seen},
    processes::Processes,
};

/// Mean time between two looks at shared memory: they are cheap.
const MEMORY_EACH: Duration = Duration::from_millis(1);

/// Looks at shared memory may take one part in so many of the time of all CPUs.
const MEMORY_SHARE: u32 = 250;

/// Results of the thread that reads shared memory.
#[derive(Debug)]
pub(crate) struct Remembered {
    pub(crate) activity: ActivitySamples,
    pub(crate) notes: Vec<String>,
    pub(crate) cpu_ns: u64,
}

/// The thread that reads shared memory.
pub(crate) struct Reader {
    pub(crate) backends: Backends,
    pub(crate) processes: Processes,
    pub(crate) load: LoadThreads,
    pub(crate) checkpointer: i32,
    pub(crate) shared: Arc<Shared>,
    pub(crate) origin: Instant,
    pub(crate) asker: Thread,
}

impl Reader {
    pub(crate) fn run(mut self) -> Remembered {
        let cpus = thread::available_parallelism().map_or(1, |count| count.get() as u32);
        let mut beat = Beat::new(MEMORY_EACH, MEMORY_SHARE / cpus.min(MEMORY_SHARE));
        // Where it may not, it looks later where all CPUs are busy; a look counts for the time around it.
        let _ = os::scheduling::go_first();
        let mut activity = ActivitySamples::from(SamplingMethod::SharedMemory);
        let mut notes = Vec::new();
        let mut names: HashMap<u32, String> = HashMap::new();
        // Numbers of events whose names the view has told.
        let mut named: HashSet<u32> = HashSet::new();
        let mut seen: Vec<(Seen, Option<ProcessTimes>)> = Vec::new();
        let mut waits: HashMap<i32, u32> = HashMap::new();
        let (mut looks, mut spent) = (0_u64, cpu_time());
        while !self.shared.stops() {
            thread::sleep(beat.gap());
            if let Some(pause) = self.shared.pause(self.origin.elapsed().as_nanos() as u64) {
                activity.pause();
                thread::sleep(pause);
                continue;
            }
            let began = Instant::now();
            seen.clear();
            match self.read() {
                Ok(backends) => seen.extend(backends.iter().map(|one| (*one, None))),
                Err(error) => {
                    notes.push(format!("shared memory cannot be read any more: {error}"));
                    break;
                }
            }
            looks += 1;
            for (one, _) in &seen {
                names.entry(one.wait).or_insert_with(|| memory::placeholder(one.wait));
            }
            let checkpointer = seen.iter().find(|(one, _)| one.pid == self.checkpointer);
            let background = BackgroundActivity {
                checkpointer: checkpointer.map(|(one, _)| names[&one.wait].as_str()),
                autovacuum: self.shared.autovacuum.load(Ordering::Relaxed),
                steal: self.processes.steal(began),
                load_waited_ns: self.load.waited_ns(began),
            };
            {
                let others = self.shared.others.lock().unwrap_or_else(PoisonError::into_inner);
                seen.retain(|(one, _)| !others.contains(&one.pid));
            }
            let between = seen.len().div_ceil(ACCOUNTS_MAX) as u64;
            for (one, spent) in &mut seen {
                // In turn: who waits for the same as before has mostly not done anything.
                let is_due = (looks + u64::from(one.pid.unsigned_abs())).is_multiple_of(between);
                let before = waits.insert(one.pid, one.wait);
                if one.wait == 0 || before != Some(one.wait) || is_due {
                    *spent = self.processes.spent(one.pid, began);
                }
            }
            if waits.len() > 2 * seen.len() {
                waits.clear();
            }
            let at = began.duration_since(self.origin).as_nanos() as u64;
            let backends = seen.iter().map(|(one, spent)| BackendLook {
                backend: one.pid,
                event: &names[&one.wait],
                spent: *spent,
            });
            if !activity.add(at, background, backends) {
                beat.halve();
            }
            let mut is_named = |wait: u32| {
                named.contains(&wait) || (self.shared.is_named(wait) && named.insert(wait))
            };
            let has_unnamed = seen.iter().any(|(one, _)| !is_named(one.wait));
            if has_unnamed && !self.shared.sees_unnamed.swap(true, Ordering::Relaxed) {
                self.asker.unpark();
            }
            let waits_for_lock = seen.iter().any(|(one, _)| one.wait >> 24 == 3);
            if waits_for_lock && !self.shared.sees_locks.swap(true, Ordering::Relaxed) {
                self.asker.unpark();
            }
            if looks.is_multiple_of(LOOKS_BETWEEN_COSTS) {
                let before = std::mem::replace(&mut spent, cpu_time());
                beat.cost(spent.saturating_sub(before) / LOOKS_BETWEEN_COSTS as u32);
            }
        }
        Remembered { activity, notes, cpu_ns: os::usage::this_thread_cpu_ns() }
    }

    /// Reads what the other thread, which knows all processes, wants to be read.
    fn read(&mut self) -> io::Result<Vec<Seen>> {
        let slots = *self.shared.slots.lock().unwrap_or_else(PoisonError::into_inner);
        match slots {
            Some(slots) => self.backends.read(slots),
            None => self.backends.read_all(),
        }
    }
}

/// Looks after which their cost is counted: to ask for it costs as well.
const LOOKS_BETWEEN_COSTS: u64 = 8;

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// About so many accounts are read at a look, and those of clients that do something else than before.
const ACCOUNTS_MAX: usize = 16;
