//! Samples of a server's activity, many a second, for the tail of the latency.
//!
//! Two threads. One asks `pg_stat_activity` and, while somebody waits for a lock, who holds it. The
//! other one reads wait events out of the server's shared memory, a thousand times a second where that
//! costs little; it exists if the server runs on this machine, its memory may be read, and the places
//! in it were found and agree with the view. Both look at random moments.

mod agreement;
mod asker;
mod beat;
mod load_threads;
mod memory;
mod processes;
mod reader;
mod view;

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use server::Conninfo;
use tail::ActivitySamples;

use crate::error::ProbeError;
use agreement::{Names, Pair, learned_name, trusted};
use asker::{Asker, Viewed};
use load_threads::LoadThreads;
use memory::{Seen, Slots};
use processes::Processes;
use reader::{Reader, Remembered};
use view::{Kind, Process, View};

/// Samples one server's activity.
#[derive(Debug)]
pub struct ActivitySampler {
    shared: Sampling,
    view: JoinHandle<Viewed>,
    memory: Option<JoinHandle<Remembered>>,
    refusal: String,
}

/// The threads sample as long as this lives.
#[derive(Debug)]
struct Sampling(Arc<Shared>);

impl Drop for Sampling {
    fn drop(&mut self) {
        self.0.stops.store(true, Ordering::Relaxed);
    }
}

/// Samples of a server, with notes for the reader.
#[derive(Debug)]
pub struct SampledActivity {
    /// The samples.
    pub activity: ActivitySamples,
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
    /// A wait event is seen in shared memory whose name the view has not told yet.
    sees_unnamed: AtomicBool,
    /// The numbers of the wait events whose names the view has told.
    named: Mutex<HashSet<u32>>,
    autovacuum: AtomicBool,
    /// The stretches of time in which anybody looks; always, until they are known.
    spans: OnceLock<Vec<(u64, u64)>>,
    /// Processes that are no clients of the sampled database.
    others: Mutex<HashSet<i32>>,
    /// The slots of shared memory that are worth reading; all, until they are known.
    slots: Mutex<Option<Slots>>,
}

impl ActivitySampler {
    /// Begins to sample, on the run's clock, whose origin is `origin`. The server's first process is one
    /// of `started`, if the caller has started it; else it is looked for on this machine. `load` are the
    /// values of `application_name` by which sessions of the load are known behind a pooler.
    ///
    /// # Errors
    /// That the server cannot be connected to or asked. If shared memory cannot be read, the samples are
    /// the view's, and say why.
    pub fn start(
        conninfo: &Conninfo,
        started: &[u32],
        load: Vec<String>,
        origin: Instant,
    ) -> Result<ActivitySampler, ProbeError> {
        let mut view = View::open(conninfo, load)?;
        let shared = Arc::<Shared>::default();
        let found = match started {
            [] => Processes::find(&view.own).map(|found| vec![found]),
            started => Ok(started.iter().copied().map(Processes::of).collect()),
        };
        let (processes, paired, refusal) = match found {
            Ok(candidates) => first_trusted(candidates, &mut view),
            Err(why) => (None, None, why),
        };
        let first = view.look()?;
        shared.note(&first, view.own.backend);
        let checkpointer = first.iter().find(|process| process.kind == Kind::Checkpointer);
        // A server that starts or recovers may have none: no process has the number 0.
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
                    load: LoadThreads::default(),
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
        Ok(ActivitySampler { shared: Sampling(shared), view, memory, refusal })
    }

    /// Looks in these stretches of time only, in nanoseconds of the run's clock and in order.
    pub fn keep_to(&self, spans: Vec<(u64, u64)>) {
        // Once for all: a second call changes nothing.
        let _ = self.shared.0.spans.set(spans);
    }

    /// Ends the sampling, and hands over the samples.
    #[must_use]
    pub fn stop(self) -> SampledActivity {
        let ActivitySampler { shared, view, memory, refusal } = self;
        drop(shared);
        view.thread().unpark();
        let broke = || vec!["the sampler of activity broke down: its samples are lost".to_owned()];
        let viewed = view.join().unwrap_or_else(|_| Viewed { notes: broke(), ..Viewed::default() });
        let Viewed { mut activity, names, agreement, mut notes, transactions, mut cpu_ns } = viewed;
        activity.refusal = refusal;
        if let Some(Ok(remembered)) = memory.map(JoinHandle::join) {
            notes.extend(remembered.notes);
            cpu_ns += remembered.cpu_ns;
            // Few comparisons are those of a short load: the places have been checked before it.
            if agreement.is_good() || agreement.same + agreement.other < 20 {
                let viewed = std::mem::replace(&mut activity, remembered.activity);
                (activity.held, activity.holders) = (viewed.held, viewed.holders);
                activity.of_load = viewed.of_load;
                activity.rename(&|event| learned_name(event, &names));
            } else {
                activity.refusal = agreement.words();
            }
        }
        SampledActivity { activity, notes, transactions, cpu_ns }
    }
}

/// The processes of which one server's memory may be read and agrees with the view; else the first ones,
/// with the reason.
fn first_trusted(
    candidates: Vec<Processes>,
    view: &mut View,
) -> (Option<Processes>, Option<Pair>, String) {
    let mut first: Option<(Processes, String)> = None;
    for processes in candidates {
        match trusted(processes.postmaster(), view) {
            Ok(pair) => return (Some(processes), Some(pair), String::new()),
            Err(why) => first = first.or(Some((processes, why))),
        }
    }
    let (processes, why) = first.unzip();
    (processes, None, why.unwrap_or_default()) // Without a candidate there is nothing to refuse.
}

impl Shared {
    fn stops(&self) -> bool {
        self.stops.load(Ordering::Relaxed)
    }

    /// Time until the next look may be; none if it may be now.
    fn pause(&self, now_ns: u64) -> Option<Duration> {
        let spans = self.spans.get()?;
        let next = spans.get(spans.partition_point(|(_, to)| *to <= now_ns));
        let ns =
            next.map_or(PAUSE_NS_MAX, |(from, _)| from.saturating_sub(now_ns).min(PAUSE_NS_MAX));
        (ns > 0).then(|| Duration::from_nanos(ns))
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

    /// Tells the other thread which wait events have names.
    fn names_are(&self, names: &Names) {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        named.extend(names.keys());
    }

    /// True if a wait event has a name, which its number or the view tells.
    fn is_named(&self, wait: u32) -> bool {
        memory::own_name_of(wait).is_some()
            || self.named.lock().unwrap_or_else(PoisonError::into_inner).contains(&wait)
    }

    /// Tells the other thread which slots of shared memory have clients and the checkpointer.
    fn watch(&self, all: &[Seen], checkpointer: i32) {
        let others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        let slots = Slots::of(all, |pid| !others.contains(&pid), checkpointer);
        *self.slots.lock().unwrap_or_else(PoisonError::into_inner) = Some(slots);
    }
}

/// A thread that pauses notices within this time that it shall end.
const PAUSE_NS_MAX: u64 = 50_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sampler_pauses_between_its_stretches() {
        let shared = Shared::default();
        assert_eq!(shared.pause(7), None);
        shared.spans.set(vec![(10, 20), (20, 30), (40, 50)]).unwrap();
        let check = |now: u64, expected: u64| {
            assert_eq!(
                shared.pause(now).map_or(0, |pause| pause.as_nanos()),
                expected.into(),
                "{now}"
            );
        };
        check(0, 10);
        check(10, 0);
        check(20, 0);
        check(30, 10);
        check(49, 0);
        check(50, PAUSE_NS_MAX);
    }
}
