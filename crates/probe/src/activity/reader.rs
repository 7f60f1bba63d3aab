//! The thread that reads shared memory.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, PoisonError, atomic::Ordering},
    thread::{self, Thread},
    time::{Duration, Instant},
};

use tail::{Activity, Background, Lookup, OffCpu, Source};

use super::{
    Shared,
    beat::Beat,
    memory::{self, Backends, Seen},
    processes::Processes,
};

/// Mean time between two looks at shared memory: they are cheap.
const MEMORY_EACH: Duration = Duration::from_millis(1);

/// Looks at shared memory may take one part in so many of a CPU's time.
const MEMORY_SHARE: u32 = 60;

/// Results of the thread that reads shared memory.
#[derive(Debug)]
pub(crate) struct Remembered {
    pub(crate) activity: Activity,
    pub(crate) notes: Vec<String>,
    pub(crate) cpu_ns: u64,
}

/// The thread that reads shared memory.
pub(crate) struct Reader {
    pub(crate) backends: Backends,
    pub(crate) processes: Processes,
    pub(crate) checkpointer: i32,
    pub(crate) shared: Arc<Shared>,
    pub(crate) origin: Instant,
    pub(crate) asker: Thread,
}

impl Reader {
    pub(crate) fn run(mut self) -> Remembered {
        let mut beat = Beat::new(MEMORY_EACH, MEMORY_SHARE);
        // Where it may not, it looks later where all CPUs are busy; a look counts for the time around it.
        let _ = os::scheduling::go_first();
        let mut activity = Activity::from(Source::SharedMemory);
        let mut notes = Vec::new();
        let mut names: HashMap<u32, String> = HashMap::from([(0, String::new())]);
        let mut seen: Vec<(Seen, OffCpu)> = Vec::new();
        let mut looks = 0_u64;
        while !self.shared.stops() {
            thread::sleep(beat.gap());
            let (began, spent) = (Instant::now(), cpu_time());
            seen.clear();
            match self.read(looks) {
                Ok(backends) => seen.extend(backends.iter().map(|one| (*one, OffCpu::default()))),
                Err(error) => {
                    notes.push(format!("shared memory cannot be read any more: {error}"));
                    break;
                }
            }
            looks += 1;
            // The upper byte of the number is the type: 5 is that of a process with nothing to do.
            let is_at_work =
                |(one, _): &(Seen, OffCpu)| one.pid == self.checkpointer && one.wait >> 24 != 5;
            let background = Background {
                checkpoint: seen.iter().any(is_at_work),
                autovacuum: self.shared.autovacuum.load(Ordering::Relaxed),
                steal: self.processes.steal(began),
            };
            {
                let others = self.shared.others.lock().unwrap_or_else(PoisonError::into_inner);
                seen.retain(|(one, _)| !others.contains(&one.pid));
            }
            let reads_all = seen.len() <= ACCOUNTS_MAX;
            for (one, off_cpu) in &mut seen {
                if one.wait == 0 || reads_all {
                    *off_cpu = self.processes.off_cpu(one.pid, one.wait != 0, looks, began);
                }
                names.entry(one.wait).or_insert_with(|| memory::placeholder(one.wait));
            }
            let at = began.duration_since(self.origin).as_nanos() as u64;
            let backends = seen.iter().map(|(one, off_cpu)| Lookup {
                backend: one.pid,
                event: &names[&one.wait],
                off_cpu: *off_cpu,
            });
            if !activity.add(at, background, backends) {
                beat.halve();
            }
            let waits_for_lock = seen.iter().any(|(one, _)| one.wait >> 24 == 3);
            if waits_for_lock && !self.shared.sees_locks.swap(true, Ordering::Relaxed) {
                self.asker.unpark();
            }
            beat.cost(cpu_time().saturating_sub(spent));
        }
        Remembered { activity, notes, cpu_ns: os::usage::this_thread_cpu_ns() }
    }

    fn read(&mut self, looks: u64) -> io::Result<Vec<Seen>> {
        if !looks.is_multiple_of(LOOKS_BETWEEN_ALL) {
            return self.backends.read();
        }
        let all = self.backends.read_all()?;
        let others = self.shared.others.lock().unwrap_or_else(PoisonError::into_inner);
        self.backends.narrow(&all, |pid| !others.contains(&pid), self.checkpointer);
        Ok(all)
    }
}

/// Looks after which all slots are read again: sessions come and go.
const LOOKS_BETWEEN_ALL: u64 = 16;

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// With more clients than this, the accounts of those without a wait event only are read.
const ACCOUNTS_MAX: usize = 64;
