//! Samples of a server's activity, many a second, for the tail of the latency.
//!
//! Two threads. One asks `pg_stat_activity` and, while somebody waits for a lock, who holds it. The
//! other one reads wait events out of the server's shared memory, a thousand times a second where that
//! costs little; it exists if the server runs on this machine, its memory may be read, and the places
//! in it were found and agree with the view. Both look at random moments.

mod agreement;
mod asker;
mod beat;
mod memory;
mod processes;
mod reader;
mod view;

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Instant,
};

use server::Conninfo;
use tail::Activity;

use crate::error::ProbeError;
use agreement::{own_name, trusted};
use asker::{Asker, Viewed};
use processes::Processes;
use reader::{Reader, Remembered};
use view::{Kind, Process, View};

/// Samples one server's activity.
#[derive(Debug)]
pub struct ActivitySampler {
    shared: Arc<Shared>,
    view: JoinHandle<Viewed>,
    memory: Option<JoinHandle<Remembered>>,
    notes: Vec<String>,
}

/// Samples of a server, with notes for the reader.
#[derive(Debug)]
pub struct SampledActivity {
    /// The samples.
    pub activity: Activity,
    /// Notes on what could not be read.
    pub notes: Vec<String>,
    /// Transactions of the sampler's session.
    pub transactions: u64,
    /// CPU time of the sampling threads, in nanoseconds; the sampled server's part is not in it.
    pub cpu_ns: u64,
}

/// Facts that the threads tell each other.
#[derive(Debug, Default)]
struct Shared {
    stops: AtomicBool,
    sees_locks: AtomicBool,
    autovacuum: AtomicBool,
    /// Processes that are no clients of the sampled database.
    others: Mutex<HashSet<i32>>,
}

impl ActivitySampler {
    /// Begins to sample, on the run's clock, whose origin is `origin`. `postmaster` is the server's
    /// first process, if the caller has started it; else it is looked for on this machine.
    ///
    /// # Errors
    /// That the server cannot be connected to or asked. That shared memory cannot be read is a note.
    pub fn start(
        conninfo: &Conninfo,
        postmaster: Option<u32>,
        origin: Instant,
    ) -> Result<ActivitySampler, ProbeError> {
        let mut view = View::open(conninfo)?;
        let (mut notes, shared) = (Vec::new(), Arc::<Shared>::default());
        let processes = postmaster
            .map(Processes::of)
            .or_else(|| Processes::find(view.own.backend, &view.own.user, &view.own.database));
        let mut paired = None;
        if let Some(processes) = &processes {
            match trusted(processes.postmaster(), &mut view) {
                Ok(found) => paired = Some(found),
                Err(why) => notes.push(format!("wait events are read from the view: {why}")),
            }
        }
        let first = view.look()?;
        shared.note(&first, view.own.backend);
        let checkpointer = first.iter().find(|process| process.kind == Kind::Checkpointer);
        let checkpointer = checkpointer.map_or(0, |process| process.backend);
        let (pair, read) = paired.map_or((None, None), |(pair, read)| (Some(pair), Some(read)));
        // The kernel's account is read by the thread that looks more often.
        let (beside_view, beside_memory) = match read {
            Some(_) => (None, processes),
            None => (processes, None),
        };
        let asker = Asker::new(view, pair, beside_view, Arc::clone(&shared), origin);
        let asks = thread::Builder::new().name("activity".to_owned());
        let failed = |source| ProbeError::System { what: "start the sampler of activity", source };
        let view = asks.spawn(move || asker.run()).map_err(failed)?;
        let memory = match (read, beside_memory) {
            (Some(backends), Some(processes)) => {
                let reader = Reader {
                    backends,
                    processes,
                    checkpointer,
                    shared: Arc::clone(&shared),
                    origin,
                    asker: view.thread().clone(),
                };
                let reads = thread::Builder::new().name("activity memory".to_owned());
                Some(reads.spawn(move || reader.run()).map_err(failed)?)
            }
            _ => None,
        };
        Ok(ActivitySampler { shared, view, memory, notes })
    }

    /// Ends the sampling, and hands over the samples.
    #[must_use]
    pub fn stop(self) -> SampledActivity {
        let ActivitySampler { shared, view, memory, mut notes } = self;
        shared.stops.store(true, Ordering::Relaxed);
        view.thread().unpark();
        let broke = || vec!["the sampler of activity broke down: its samples are lost".to_owned()];
        let viewed = view.join().unwrap_or_else(|_| Viewed { notes: broke(), ..Viewed::default() });
        let Viewed { activity: by_view, names, agreement, notes: more, transactions, mut cpu_ns } =
            viewed;
        notes.extend(more);
        let mut activity = by_view;
        if let Some(Ok(remembered)) = memory.map(JoinHandle::join) {
            notes.extend(remembered.notes);
            cpu_ns += remembered.cpu_ns;
            // Few comparisons are those of a short load: the places have been checked before it.
            if agreement.is_good() || agreement.same + agreement.other < 20 {
                let (held, holders) = (activity.held, activity.holders);
                activity = remembered.activity;
                (activity.held, activity.holders) = (held, holders);
                activity.rename(&|event| own_name(event, &names));
            } else {
                notes.push(
                    "shared memory did not agree with pg_stat_activity: the view's samples \
                            are used"
                        .to_owned(),
                );
            }
        }
        SampledActivity { activity, notes, transactions, cpu_ns }
    }
}

impl Shared {
    fn stops(&self) -> bool {
        self.stops.load(Ordering::Relaxed)
    }

    /// Tells the other thread what the view knows of processes.
    fn note(&self, processes: &[Process], own: i32) {
        let works = processes.iter().any(|process| process.kind == Kind::AutovacuumWorker);
        self.autovacuum.store(works, Ordering::Relaxed);
        let others = processes.iter().filter(|process| process.kind != Kind::Client);
        let mut known = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        known.clear();
        known.extend(others.map(|process| process.backend).chain([own]));
    }
}
