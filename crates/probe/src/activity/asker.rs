//! The thread that asks the view.

use std::{
    sync::{Arc, atomic::Ordering},
    thread,
    time::{Duration, Instant},
};

use tail::{Activity, Background, Lookup, OffCpu, Source};

use super::{
    Shared,
    agreement::{Agreement, Names, Waits, compare},
    beat::Beat,
    load_threads::LoadThreads,
    memory::Backends,
    processes::Processes,
    view::{Kind, Process, View},
};
use crate::error::ProbeError;

/// Mean time between two looks at the view where shared memory cannot be read.
const VIEW_EACH: Duration = Duration::from_millis(20);

/// Mean time between two looks at the view beside shared memory: names of events, other processes.
const VIEW_BESIDE_EACH: Duration = Duration::from_millis(100);

/// Time between two questions who holds locks, while somebody waits for one.
const HOLDERS_EACH: Duration = Duration::from_millis(20);

/// A question may take one part in so many of a session's time.
const VIEW_SHARE: u32 = 50;

/// Results of the thread that asks the view.
#[derive(Debug, Default)]
pub(crate) struct Viewed {
    pub(crate) activity: Activity,
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
        pair: Option<Backends>,
        processes: Option<Processes>,
        shared: Arc<Shared>,
        origin: Instant,
    ) -> Asker {
        let each = if pair.is_some() { VIEW_BESIDE_EACH } else { VIEW_EACH };
        let (beat, viewed) = (Beat::new(each, VIEW_SHARE), Viewed::default());
        let load = LoadThreads::default();
        Asker { view, beat, pair, processes, load, shared, origin, viewed, asked: None, looks: 0 }
    }

    pub(crate) fn run(mut self) -> Viewed {
        self.viewed.activity = Activity::from(Source::View);
        let mut next = Instant::now() + self.beat.gap();
        let mut fastest = Duration::MAX;
        loop {
            let holders_due = self.asked.is_none_or(|then| then.elapsed() >= HOLDERS_EACH);
            let locks = self.shared.sees_locks.load(Ordering::Relaxed);
            let now = Instant::now();
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
                self.looks += 1;
                next = now + pause;
                self.shared.sees_locks.store(false, Ordering::Relaxed);
                continue;
            }
            let asked = Instant::now();
            let looked = if now >= next { self.look() } else { Ok(()) };
            fastest = fastest.min(if now >= next { asked.elapsed() } else { fastest });
            if let Err(error) = looked.and_then(|()| self.ask_holders()) {
                self.viewed.notes.push(format!("activity is not sampled any more: {error}"));
                break;
            }
            if now >= next {
                self.beat.cost(fastest);
                next = Instant::now() + self.beat.gap();
            }
        }
        self.viewed.transactions = self.view.transactions;
        self.viewed.cpu_ns = os::usage::this_thread_cpu_ns();
        self.viewed
    }

    fn look(&mut self) -> Result<(), ProbeError> {
        let began = Instant::now();
        let read = |pair: &mut Option<Backends>| -> Option<Waits> {
            let seen = pair.as_mut()?.read_all().ok()?;
            Some(seen.iter().map(|seen| (seen.pid, seen.wait)).collect())
        };
        let before = read(&mut self.pair);
        let processes = self.view.look()?;
        if let (Some(before), Some(after)) = (before, read(&mut self.pair)) {
            let Viewed { agreement, names, .. } = &mut self.viewed;
            compare(&before, &processes, &after, agreement, names);
        }
        self.shared.note(&processes, self.view.own.backend);
        self.looks += 1;
        let ended = Instant::now();
        let at = (began + (ended - began) / 2).duration_since(self.origin).as_nanos() as u64;
        let clients: Vec<(&Process, OffCpu)> = processes
            .iter()
            .filter(|process| process.kind == Kind::Client)
            .map(|process| {
                let has_event = !process.event.is_empty();
                let off_cpu = match &mut self.processes {
                    Some(processes) => {
                        processes.off_cpu(process.backend, has_event, self.looks, ended)
                    }
                    None => OffCpu::default(),
                };
                (process, off_cpu)
            })
            .collect();
        if clients.iter().any(|(process, _)| process.event.starts_with("Lock:")) {
            self.shared.sees_locks.store(true, Ordering::Relaxed);
        }
        let checkpointer = processes.iter().find(|one| one.kind == Kind::Checkpointer);
        let background = Background {
            checkpointer: checkpointer.map(|one| one.event.as_str()),
            autovacuum: self.shared.autovacuum.load(Ordering::Relaxed),
            steal: self.processes.as_mut().map_or(0, |processes| processes.steal(ended)),
            load_delay: self.load.delay(ended),
        };
        let seen = clients.iter().map(|(process, off_cpu)| Lookup {
            backend: process.backend,
            event: &process.event,
            off_cpu: *off_cpu,
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
