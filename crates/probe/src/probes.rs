//! The sampler: one thread for a trial that reads every server, the machine and itself.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    io,
    rc::Rc,
    sync::mpsc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use os::usage::this_thread_cpu_ns;
use record::{Moment, Sample, TimelineMark};
use serde::{Deserialize, Serialize};
use spec::metrics;
use tokio::{sync::watch, task::LocalSet, time};

use crate::{
    book::Book,
    clock::{Clock, Ticks},
    error::ProbeError,
    group::{Extent, Groups},
    link::{Link, LinkReading},
    log::{CrashSign, StandbyTakeover},
    machine::Machine,
    node::{self, Story, WatchedServer},
    pooler::{self, WatchedPooler},
    reading::{Rates, Reading},
    snapshot::CounterDelta,
};

/// The node names of what is no server.
pub(crate) const MACHINE: &str = "machine";
pub(crate) const GENERATOR: &str = "generator";

/// Longest wait of the start for every server's first snapshot, and of the stop for the last one.
const SERVERS_MAX: Duration = Duration::from_secs(15);

/// The servers, processes, poolers and links that a sampler watches.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SamplerConfig {
    /// The PostgreSQL servers.
    pub servers: Vec<WatchedServer>,
    /// Other parts of the topology whose processes are accounted (poolers, relays): a node's name
    /// and its root process.
    pub processes: Vec<(String, u32)>,
    /// The PgBouncers among them.
    pub poolers: Vec<WatchedPooler>,
    /// The links, by name.
    pub links: Vec<(String, LinkReading)>,
    /// The generator's processes, without their children.
    pub generator_pids: Vec<u32>,
}

/// Starts samplers.
#[derive(Debug)]
pub struct Probes;

impl Probes {
    /// Starts a sampler on the run's clock, whose origin is `origin`. Returns when every server's
    /// counters have been read once, so that whatever runs from here on is in the deltas.
    ///
    /// What can not be read, a server that is not there included, becomes a note and never fails
    /// a trial.
    pub fn start(config: SamplerConfig, origin: Instant) -> Result<RunningSampler, ProbeError> {
        let (stop, stopped) = watch::channel(false);
        let (roots, new_roots) = mpsc::channel();
        let (ready, is_ready) = mpsc::channel();
        // Each server and pooler, and the machine.
        let watched = config.servers.len() + config.poolers.len() + 1;
        let system = |source| ProbeError::System { what: "start the sampler", source };
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(system)?;
        let thread = thread::Builder::new().name("probe".to_owned()).spawn(move || {
            let sampler = Sampler { config, clock: Clock::from(origin), new_roots };
            LocalSet::new().block_on(&runtime, sampler.run(stopped, ready))
        });
        let running = RunningSampler { thread: thread.map_err(system)?, stop, roots };
        let deadline = Instant::now() + SERVERS_MAX;
        for _ in 0..watched {
            let left = deadline.saturating_duration_since(Instant::now());
            if is_ready.recv_timeout(left).is_err() {
                break; // Notes will tell, when the sampling ends.
            }
        }
        Ok(running)
    }
}

/// A sampler at work.
#[derive(Debug)]
pub struct RunningSampler {
    thread: JoinHandle<SamplerReadings>,
    stop: watch::Sender<bool>,
    roots: mpsc::Sender<(String, u32)>,
}

impl RunningSampler {
    /// Tells that `node`'s processes descend from `root_pid` from now on: it was started again.
    pub fn watch_process(&self, node: &str, root_pid: u32) {
        // A sampler that has ended takes no more roots.
        let _ = self.roots.send((node.to_owned(), root_pid));
    }

    /// Ends the sampling: waits, within bounds, until the clients' sessions have ended, reads the
    /// servers' counters a last time, and hands over everything.
    pub fn stop(self) -> SamplerReadings {
        // An error means that it has ended already.
        let _ = self.stop.send(true);
        self.thread.join().unwrap_or_else(|_| SamplerReadings {
            notes: vec!["the sampler broke down: its samples are lost".to_owned()],
            ..SamplerReadings::default()
        })
    }
}

/// Results of a sampler.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SamplerReadings {
    /// Second by second, in order of time.
    pub samples: Vec<Sample>,
    /// From the servers' logs, in order of time.
    pub marks: Vec<TimelineMark>,
    /// The standbys that commits came to wait for, from the servers' logs, in order of time.
    pub takeovers: Vec<StandbyTakeover>,
    /// Signs of crashes and damage, from the servers' logs, in order of time.
    pub crashes: Vec<CrashSign>,
    /// Counts of each server from start to stop, by node; without those that could not tell.
    pub deltas: BTreeMap<String, CounterDelta>,
    /// Notes for the reader: what could not be read, and why.
    pub notes: Vec<String>,
    /// Cost of the sampling.
    pub cost: SamplingCost,
}

/// Cost of the sampling itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SamplingCost {
    /// CPU time of the sampler's thread, in nanoseconds.
    pub cpu_ns: u64,
    /// From start to stop, in nanoseconds.
    pub length_ns: u64,
    /// Seconds without a sample because the one before took too long, all nodes together.
    pub late_ticks: u64,
    /// Transactions that the sampler ran in each server's watched database.
    pub transactions: BTreeMap<String, u64>,
}

struct Sampler {
    config: SamplerConfig,
    clock: Clock,
    new_roots: mpsc::Receiver<(String, u32)>,
}

impl Sampler {
    async fn run(self, stopped: watch::Receiver<bool>, ready: mpsc::Sender<()>) -> SamplerReadings {
        let (began, cpu_before) = (Instant::now(), this_thread_cpu_ns());
        let book = Rc::new(RefCell::new(Book::default()));
        let watch = |server: &WatchedServer| {
            let (book, ready) = (Rc::clone(&book), ready.clone());
            let tell = move || _ = ready.send(());
            let story = node::watch(server.clone(), self.clock, book, stopped.clone(), tell);
            (server.node.clone(), tokio::task::spawn_local(story))
        };
        let servers: Vec<_> = self.config.servers.iter().map(watch).collect();
        let watch = |one: &WatchedPooler| {
            let (book, ready) = (Rc::clone(&book), ready.clone());
            let tell = move || _ = ready.send(());
            tokio::task::spawn_local(pooler::watch(
                one.clone(),
                self.clock,
                book,
                stopped.clone(),
                tell,
            ))
        };
        let poolers: Vec<_> = self.config.poolers.iter().map(watch).collect();
        self.watch_machine(&book, stopped.clone(), &ready, cpu_before).await;
        let mut readings = SamplerReadings::default();
        for (name, story) in servers {
            match time::timeout(SERVERS_MAX, story).await {
                Ok(Ok(story)) => readings.take(name, story),
                Ok(Err(_)) | Err(_) => readings.notes.push(format!(
                    "{name}: the last reading did not end; its counts and marks are lost"
                )),
            }
        }
        for pooler in poolers {
            // One that does not answer has been noted; it holds nothing back.
            let _ = time::timeout(SERVERS_MAX, pooler).await;
        }
        readings.take_book(&mut book.borrow_mut());
        readings.cost.cpu_ns = this_thread_cpu_ns().saturating_sub(cpu_before);
        readings.cost.length_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        readings
    }

    /// Samples the machine, the process groups and the sampler itself until told to stop.
    async fn watch_machine(
        &self,
        book: &RefCell<Book>,
        mut stopped: watch::Receiver<bool>,
        ready: &mpsc::Sender<()>,
        cpu_before: u64,
    ) {
        let mut host = Host::of(&self.config);
        let mut ticks = Ticks::from_now();
        host.sample(self.clock, book, cpu_before);
        _ = ready.send(());
        while time::timeout_at(ticks.next(), stopped.changed()).await.is_err() {
            for (node, root) in self.new_roots.try_iter() {
                host.groups.watch(&node, &[root], Extent::Tree);
            }
            host.sample(self.clock, book, cpu_before);
            book.borrow_mut().late_ticks += ticks.advance(time::Instant::now());
        }
        book.borrow_mut().notes.extend(host.notes());
    }
}

/// Readers of `/proc`.
struct Host {
    machine: Machine,
    groups: Groups,
    links: Vec<(String, Link)>,
    rates: BTreeMap<String, Rates>,
    failure: Option<io::Error>,
}

impl Host {
    fn of(config: &SamplerConfig) -> Host {
        let mut groups = Groups::default();
        groups.watch(GENERATOR, &config.generator_pids, Extent::Alone);
        for server in &config.servers {
            groups.watch(&server.node, server.root_pid.as_slice(), Extent::Tree);
        }
        for (node, root) in &config.processes {
            groups.watch(node, &[*root], Extent::Tree);
        }
        let links = config.links.iter().map(|(name, tap)| (name.clone(), Link::of(tap.clone())));
        let (links, rates) = (links.collect(), BTreeMap::new());
        Host { machine: Machine::of_this_host(), groups, links, rates, failure: None }
    }

    fn sample(&mut self, clock: Clock, book: &RefCell<Book>, cpu_before: u64) {
        // Each reading has its own moment: on a busy machine there is a while between two.
        let at = clock.now();
        let machine = vec![(MACHINE.to_owned(), self.machine.read())];
        self.add(book, at, machine);
        let own_cpu_s = this_thread_cpu_ns().saturating_sub(cpu_before) as f64 / 1e9;
        let own = Reading::new(&metrics::PROBE_CPU_CORES, "", own_cpu_s);
        self.add(book, clock.now(), vec![(GENERATOR.to_owned(), vec![own])]);
        let at = clock.now();
        let links = self.links.iter_mut().map(|(name, link)| (name.clone(), link.read()));
        let links = links.collect();
        self.add(book, at, links);
        match self.groups.read(clock) {
            Ok(all) => all.into_iter().for_each(|taken| self.add(book, taken.at, taken.readings)),
            Err(error) => self.failure = Some(error),
        }
    }

    fn add(&mut self, book: &RefCell<Book>, at: Moment, readings: Vec<(String, Vec<Reading>)>) {
        for (node, readings) in readings {
            let rates = self.rates.entry(node.clone()).or_default();
            book.borrow_mut().add(rates.samples(&node, at, readings));
        }
    }

    fn notes(&self) -> Vec<String> {
        let failure = self.failure.as_ref();
        let processes = failure.map(|error| format!("process groups unknown: /proc: {error}"));
        self.machine.notes().into_iter().chain(self.groups.notes()).chain(processes).collect()
    }
}

impl SamplerReadings {
    /// Adds what another sampler has read of other servers.
    pub fn add(&mut self, other: SamplerReadings) {
        self.samples.extend(other.samples);
        self.samples.sort_by_key(|sample| sample.at);
        self.marks.extend(other.marks);
        self.marks.sort_by_key(|mark| mark.at);
        self.takeovers.extend(other.takeovers);
        self.takeovers.sort_by_key(|takeover| takeover.at);
        self.crashes.extend(other.crashes);
        self.crashes.sort_by_key(|sign| sign.at);
        self.deltas.extend(other.deltas);
        self.notes.extend(other.notes);
        self.cost.cpu_ns += other.cost.cpu_ns;
        self.cost.late_ticks += other.cost.late_ticks;
        self.cost.transactions.extend(other.cost.transactions);
    }

    fn take(&mut self, node: String, story: Story) {
        self.marks.extend(story.marks);
        self.takeovers.extend(story.takeovers);
        self.crashes.extend(story.crashes);
        self.cost.transactions.insert(node.clone(), story.own_transactions);
        if let Some(delta) = story.delta {
            self.deltas.insert(node, delta);
        }
    }

    fn take_book(&mut self, book: &mut Book) {
        self.notes.extend(book.notes());
        self.samples = std::mem::take(&mut book.samples);
        self.samples.sort_by_key(|sample| sample.at);
        self.marks.sort_by_key(|mark| mark.at);
        self.takeovers.sort_by_key(|takeover| takeover.at);
        self.crashes.sort_by_key(|sign| sign.at);
        self.cost.late_ticks = book.late_ticks;
    }
}
