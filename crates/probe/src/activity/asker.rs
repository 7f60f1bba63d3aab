//! The thread that asks the view.

use std::{
    sync::{Arc, atomic::Ordering},
    thread,
    time::{Duration, Instant},
};

use tail::{ActivitySamples, BackendLook, BackgroundActivity, ProcessTimes, SamplingMethod};

use super::{
    Shared,
    agreement::{Agreement, Names, compare},
    beat::Beat,
    load_threads::LoadThreads,
    memory::{Backends, Seen},
    processes::Processes,
    view::{Kind, Process, View},
};
use crate::error::ProbeError;

/// Mean time between two looks at the view where shared memory cannot be read.
const VIEW_EACH: Duration = Duration::from_millis(20);

/// Mean time between two looks at the view beside shared memory: names of events, other processes.
const VIEW_BESIDE_EACH: Duration = Duration::from_millis(200);

/// Looks at the view beside which shared memory is always compared with it, and after which one of so
/// many is: whole shared memory is large.
const COMPARED_LOOKS: u64 = 20;
const LOOKS_BETWEEN_COMPARED: u64 = 3;

/// Time between two questions who holds locks, while somebody waits for one.
const HOLDERS_EACH: Duration = Duration::from_millis(20);

/// Mean time between two looks at the view while shared memory has wait events without a name.
const NAMES_EACH: Duration = Duration::from_millis(10);

/// A question may take one part in so many of a session's time.
const VIEW_SHARE: u32 = 50;

/// Results of the thread that asks the view.
#[derive(Debug, Default)]
pub(crate) struct Viewed {
    pub(crate) activity: ActivitySamples,
    /// Names of events by their number in shared memory, each with the looks that saw the pair.
    pub(crate) names: Names,
    pub(crate) agreement: Agreement,
    pub(crate) notes: Vec<String>,
    pub(crate) transactions: u64,
    pub(crate) cpu_ns: u64,
}

/// The thread that asks the view.
pub(crate) struct Asker {
    view: View,
    beat: Beat,
    /// Shared memory, to learn from and to check.
    pair: Option<Backends>,
    processes: Option<Processes>,
    load: LoadThreads,
    shared: Arc<Shared>,
    origin: Instant,
    viewed: Viewed,
    /// The last question who holds locks.
    asked: Option<Instant>,
    looks: u64,
}

impl Asker {
    pub(crate) fn new(
        view: View,
        pair: Option<(Backends, Names)>,
        processes: Option<Processes>,
        shared: Arc<Shared>,
        origin: Instant,
    ) -> Asker {
        let each = if pair.is_some() { VIEW_BESIDE_EACH } else { VIEW_EACH };
        let (pair, names) = pair.unzip();
        // Without shared memory no number of a wait has to be named.
        let viewed = Viewed { names: names.unwrap_or_default(), ..Viewed::default() };
        let beat = Beat::new(each, VIEW_SHARE);
        let load = LoadThreads::default();
        Asker { view, beat, pair, processes, load, shared, origin, viewed, asked: None, looks: 0 }
    }

    pub(crate) fn run(mut self) -> Viewed {
        self.viewed.activity = ActivitySamples::from(SamplingMethod::View);
        let mut next = Instant::now() + self.beat.gap();
        let (mut fastest, mut asks_names) = (Duration::MAX, false);
        loop {
            let holders_due = self.asked.is_none_or(|then| then.elapsed() >= HOLDERS_EACH);
            let locks = self.shared.sees_locks.load(Ordering::Relaxed);
            let now = Instant::now();
            if !asks_names && self.shared.sees_unnamed.swap(false, Ordering::Relaxed) {
                asks_names = true;
                next = next.min(now + self.beat.sooner(NAMES_EACH));
            }
            if now < next && !(locks && holders_due) && !self.shared.stops() {
                let patience = next - now;
                thread::park_timeout(if locks { patience.min(HOLDERS_EACH) } else { patience });
                continue;
            }
            if self.shared.stops() {
                break;
            }
            if let Some(pause) = self.shared.pause(self.origin.elapsed().as_nanos() as u64) {
                self.viewed.activity.pause();
                next = now + pause;
                self.shared.sees_locks.store(false, Ordering::Relaxed);
                continue;
            }
            let asked = Instant::now();
            let looked = if now >= next { self.look(asks_names) } else { Ok(()) };
            fastest = fastest.min(if now >= next { asked.elapsed() } else { fastest });
            if let Err(error) = looked.and_then(|()| self.ask_holders()) {
                self.viewed.notes.push(format!("activity is not sampled any more: {error}"));
                break;
            }
            if now >= next {
                asks_names = false;
                self.beat.cost(fastest);
                next = Instant::now() + self.beat.gap();
            }
        }
        self.viewed.transactions = self.view.transactions;
        self.viewed.cpu_ns = os::usage::this_thread_cpu_ns();
        self.viewed
    }

    fn look(&mut self, asks_names: bool) -> Result<(), ProbeError> {
        let began = Instant::now();
        let read = |pair: &mut Option<Backends>| pair.as_mut()?.read_all().ok();
        let compares = asks_names
            || self.looks < COMPARED_LOOKS
            || self.looks.is_multiple_of(LOOKS_BETWEEN_COMPARED);
        self.looks += 1;
        let before = if compares { read(&mut self.pair) } else { None };
        let processes = self.view.look()?;
        let checkpointer = processes.iter().find(|one| one.kind == Kind::Checkpointer);
        self.shared.note(&processes, self.view.own.backend);
        if let Some(before) = before
            && let Some(after) = read(&mut self.pair)
        {
            let waits = |seen: &[Seen]| seen.iter().map(|seen| (seen.pid, seen.wait)).collect();
            let Viewed { agreement, names, .. } = &mut self.viewed;
            compare(&waits(&before), &processes, &waits(&after), agreement, names);
            self.shared.names_are(names);
            // A server that starts or recovers may have none: no process has the number 0.
            self.shared.watch(&after, checkpointer.map_or(0, |one| one.backend));
        }
        let of_load = processes.iter().filter(|process| process.is_of_load);
        self.viewed.activity.of_load.extend(of_load.map(|process| process.backend));
        let ended = Instant::now();
        let at = (began + (ended - began) / 2).duration_since(self.origin).as_nanos() as u64;
        let accounts = &mut self.processes;
        let mut spent_by = |backend| accounts.as_mut()?.spent(backend, ended);
        let clients: Vec<(&Process, Option<ProcessTimes>)> = processes
            .iter()
            .filter(|process| process.kind == Kind::Client)
            .map(|process| (process, spent_by(process.backend)))
            .collect();
        if clients.iter().any(|(process, _)| process.event.starts_with("Lock:")) {
            self.shared.sees_locks.store(true, Ordering::Relaxed);
        }
        let background = BackgroundActivity {
            checkpointer: checkpointer.map(|one| one.event.as_str()),
            autovacuum: self.shared.autovacuum.load(Ordering::Relaxed),
            // Nothing is known of the time that was taken from another machine.
            steal: self.processes.as_mut().map_or(0, |processes| processes.steal(ended)),
            load_waited_ns: self.load.waited_ns(ended),
        };
        let seen = clients.iter().map(|(process, spent)| BackendLook {
            backend: process.backend,
            event: &process.event,
            spent: *spent,
        });
        if !self.viewed.activity.add(at, background, seen) {
            self.beat.halve();
        }
        Ok(())
    }

    fn ask_holders(&mut self) -> Result<(), ProbeError> {
        let is_due = self.asked.is_none_or(|then| then.elapsed() >= HOLDERS_EACH);
        if !is_due || !self.shared.sees_locks.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let asked = Instant::now();
        let holders = self.view.holders()?;
        self.asked = Some(Instant::now());
        let at = asked.duration_since(self.origin).as_nanos() as u64;
        for (waiter, backend, holder) in holders {
            self.viewed.activity.hold(at, waiter, backend, holder);
        }
        Ok(())
    }
}
