//! One server through one trial: its samples, the marks from its log, and what it did in all.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    rc::Rc,
    time::{Duration, Instant},
};

use record::{MarkKind, Moment, TimelineMark};
use serde::{Deserialize, Serialize};
use server::Conninfo;
use spec::metrics;
use tokio::{sync::watch, time};
use tokio_postgres::Row;

use crate::{
    book::Book,
    clock::{Clock, ServerClock, Ticks},
    error::ProbeError,
    horizon::HorizonWatch,
    log::{Chronicle, CrashSign, Follower, StandbyTakeover, WallClock},
    looks::Looks,
    reading::{Rates, Reading},
    session::Session,
    snapshot::{CounterDelta, CounterSnapshot, fact},
    standbys::Standbys,
    versions::{APPLICATION, CLOCK, REPLICATION_STATE, replication_state},
};

/// A server that is gone is asked for once a second at first, then every ten seconds, and after
/// so many attempts no more.
const EAGER_ATTEMPTS: u32 = 60;
const ATTEMPTS_MAX: u32 = 300;
const PATIENT_PAUSE: Duration = Duration::from_secs(10);

/// Time that the logging collector may take to write down a message of the server.
const COLLECTOR_LAG: Duration = Duration::from_millis(100);

/// A PostgreSQL server to be watched.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WatchedServer {
    /// The node's name: what its samples and marks are filed under.
    pub node: String,
    /// Conninfo in keyword form, as the load engine reads it. A session in another database than
    /// the watched one leaves no trace in its counts; but `pg_stat_statements` is found only where
    /// it was created.
    pub conninfo: String,
    /// The database whose counters and sessions are watched.
    pub database: String,
    /// Directory (or one file) into which the logging collector writes jsonlog or csvlog; none
    /// for a server whose log can not be read.
    pub log: Option<PathBuf>,
    /// The postmaster, as this process's `/proc` numbers it; none for a server on another host.
    pub root_pid: Option<u32>,
    /// What keeps VACUUM from removing dead rows is read, and the sizes of tables: every so many seconds;
    /// none for not at all.
    pub horizon_every_s: Option<u64>,
}

/// Results for a server when the sampler stops.
#[derive(Debug, Default)]
pub(crate) struct Story {
    pub(crate) delta: Option<CounterDelta>,
    pub(crate) marks: Vec<TimelineMark>,
    pub(crate) takeovers: Vec<StandbyTakeover>,
    pub(crate) crashes: Vec<CrashSign>,
    pub(crate) own_transactions: u64,
}

/// Watches `server` until `stop` says so; calls `ready` when its first snapshot is taken, or
/// can not be taken.
pub(crate) async fn watch(
    server: WatchedServer,
    clock: Clock,
    book: Rc<RefCell<Book>>,
    mut stop: watch::Receiver<bool>,
    ready: impl FnOnce(),
) -> Story {
    let mut node = Node::of(server, clock, book);
    node.reconnect().await;
    let before = node.snapshot().await;
    let began = node.session.as_ref().map(|session| session.began);
    ready();
    let mut ticks = Ticks::from_now();
    loop {
        let next = ticks.next().min(node.looks.next().into());
        // Told to stop, or the one who could tell is gone.
        if time::timeout_at(next, stop.changed()).await.is_ok() {
            break;
        }
        if Instant::now() >= node.looks.next() {
            node.look().await;
        }
        if time::Instant::now() < ticks.next() {
            continue;
        }
        node.tick().await;
        let late = ticks.advance(time::Instant::now());
        node.book.borrow_mut().late_ticks += late;
    }
    node.finish(before, began).await
}

struct Node {
    server: WatchedServer,
    clock: Clock,
    book: Rc<RefCell<Book>>,
    conninfo: Option<Conninfo>,
    session: Option<Session>,
    own_transactions: u64,
    server_clock: ServerClock,
    rates: Rates,
    looks: Looks,
    /// States and wait events that were seen before: one in which no session is now is 0.
    states: BTreeSet<String>,
    events: BTreeSet<String>,
    follower: Option<Follower>,
    chronicle: Chronicle,
    standbys: Standbys,
    horizon: HorizonWatch,
    /// Seconds until the horizon is read again.
    until_horizon: u64,
    /// Time at which bloat is read again.
    bloat_due: Instant,
    marks: Vec<TimelineMark>,
    gap: Option<Gap>,
}

/// Readings of bloat take one part in so many of the time.
const BLOAT_PART: u32 = 50;

/// A time without answers.
struct Gap {
    began: Moment,
    why: String,
    attempts: u32,
    next_attempt: Instant,
}

impl Node {
    fn of(server: WatchedServer, clock: Clock, book: Rc<RefCell<Book>>) -> Node {
        let mut node = Node {
            chronicle: Chronicle::of(&server.node, APPLICATION),
            conninfo: None,
            session: None,
            own_transactions: 0,
            server_clock: ServerClock::default(),
            rates: Rates::default(),
            looks: Looks::from(Instant::now()),
            states: BTreeSet::new(),
            horizon: HorizonWatch::default(),
            until_horizon: 0,
            bloat_due: Instant::now(),
            events: BTreeSet::new(),
            follower: None,
            standbys: Standbys::default(),
            marks: Vec::new(),
            gap: None,
            server,
            clock,
            book,
        };
        match Conninfo::from_keyword_string(&node.server.conninfo) {
            Ok(mut conninfo) => {
                conninfo.set("application_name", APPLICATION);
                node.conninfo = Some(conninfo);
            }
            Err(source) => {
                let name = node.server.node.clone();
                node.note(&ProbeError::Conninfo { node: name, source }.to_string());
            }
        }
        node.follower = node.server.log.clone().and_then(|path| {
            let follower = Follower::from_now_on(&path);
            follower.map_err(|error| node.note(&format!("log not followed: {error}"))).ok()
        });
        node
    }

    async fn tick(&mut self) {
        if self.session.is_some() {
            self.sample().await;
        } else if self.gap.as_ref().is_some_and(|gap| Instant::now() >= gap.next_attempt) {
            self.reconnect().await;
        }
        self.follow_log();
    }

    /// Looks at what sessions wait for. Where there is no session, the next look comes in time.
    async fn look(&mut self) {
        let (asked, began) = (self.clock.now(), Instant::now());
        let Some(session) = &mut self.session else {
            self.looks.put_off(began, began);
            return;
        };
        match session.look().await {
            Ok(seen) => self.looks.take(began, Instant::now(), seen),
            Err(error) => {
                self.looks.put_off(began, Instant::now());
                self.lose(asked, &error);
            }
        }
    }

    async fn sample(&mut self) {
        // The server is down: `reconnect` tries again.
        let Some(session) = &mut self.session else { return };
        let asked = self.clock.now();
        let answer = session.sample().await;
        let answered = self.clock.now();
        match answer {
            Ok(rows) => {
                let at = Moment(asked.0.midpoint(answered.0));
                let mut readings = self.readings(&rows, asked, answered);
                readings.extend(self.waits());
                readings.extend(self.horizon(at).await);
                let samples = self.rates.samples(&self.server.node, at, readings);
                self.book.borrow_mut().add(samples);
            }
            Err(error) => self.lose(asked, &error),
        }
    }

    /// The rows as readings. The server's clock among them is taken notice of.
    fn readings(&mut self, rows: &[Row], asked: Moment, answered: Moment) -> Vec<Reading> {
        let mut unseen = self.states.clone();
        let mut readings = Vec::with_capacity(rows.len() + 8);
        let mut standbys = BTreeMap::new();
        for row in rows {
            let (name, label, Some(value)) = fact(row) else { continue };
            if name == REPLICATION_STATE {
                standbys.insert(label.to_owned(), replication_state(value));
            }
            if name == CLOCK {
                self.server_clock.read(WallClock(value as i64), asked, answered);
            }
            let Some(metric) = spec::metric(name) else { continue };
            if metric == &metrics::SESSIONS {
                unseen.remove(label);
                self.states.insert(label.to_owned());
            }
            readings.push(Reading::new(metric, label, value));
        }
        self.marks.extend(self.standbys.changed(standbys).into_iter().map(|text| TimelineMark {
            at: asked,
            length_ns: 0,
            kind: MarkKind::Replication,
            node: self.server.node.clone(),
            text,
        }));
        readings
            .extend(unseen.into_iter().map(|state| Reading::new(&metrics::SESSIONS, state, 0.0)));
        readings
    }

    /// What keeps VACUUM from removing dead rows, if it is time to read it.
    async fn horizon(&mut self, at: Moment) -> Vec<Reading> {
        let Some(every_s) = self.server.horizon_every_s else { return Vec::new() };
        if let Some(left) = self.until_horizon.checked_sub(1) {
            self.until_horizon = left;
            return Vec::new();
        }
        self.until_horizon = every_s.saturating_sub(1);
        let Some(session) = &mut self.session else { return Vec::new() };
        match session.horizon().await {
            Ok(rows) => {
                let mut readings = self.horizon.take(at, &rows);
                readings.extend(self.bloat(at).await);
                readings
            }
            // The server's own reason; the next reading may succeed.
            Err(ProbeError::Query { source, .. }) if source.as_db_error().is_some() => {
                let why = ProbeError::Query { what: "read what keeps the oldest xmin", source };
                self.note(&why.to_string());
                Vec::new()
            }
            Err(error) => {
                self.lose(at, &error);
                Vec::new()
            }
        }
    }

    /// The bloat of tables, if it is time to read it: a reading keeps the server busy for one part in so many.
    async fn bloat(&mut self, at: Moment) -> Vec<Reading> {
        let began = Instant::now();
        let Some(session) = self.session.as_mut().filter(|_| began >= self.bloat_due) else {
            return Vec::new();
        };
        let read = session.bloat().await;
        let ended = Instant::now();
        self.bloat_due = ended + (ended - began) * BLOAT_PART;
        match read {
            Ok(tables) => {
                let reading = |(table, share)| Reading::new(&metrics::BLOAT_SHARE, table, share);
                tables.into_iter().map(reading).collect()
            }
            // The role may not read the pages of a table, or a table is gone by now.
            Err(ProbeError::Query { source, .. }) if source.as_db_error().is_some() => {
                let why = ProbeError::Query { what: "read the bloat of tables", source };
                self.note(&why.to_string());
                Vec::new()
            }
            Err(error) => {
                self.lose(at, &error);
                Vec::new()
            }
        }
    }

    /// Wait events that the looks since the last sample saw: 0 for one that was seen only earlier.
    fn waits(&mut self) -> Vec<Reading> {
        let mut readings = self.looks.drain(Instant::now());
        if readings.is_empty() {
            return readings;
        }
        let mut unseen = self.events.clone();
        for reading in
            readings.iter().filter(|reading| reading.metric == &metrics::WAITING_SESSIONS)
        {
            unseen.remove(&reading.label);
            self.events.insert(reading.label.clone());
        }
        let zero = |event| Reading::new(&metrics::WAITING_SESSIONS, event, 0.0);
        readings.extend(unseen.into_iter().map(zero));
        readings
    }

    async fn reconnect(&mut self) {
        // A server without an address is watched by its processes alone.
        let Some(conninfo) = &self.conninfo else { return };
        let began = self.clock.now();
        match Session::open(conninfo, &self.server.database).await {
            Ok((session, notes)) => {
                self.session = Some(session);
                notes.iter().for_each(|note| self.note(note));
                self.close_gap();
                self.sample().await;
            }
            Err(error) => self.lose(began, &error),
        }
    }

    /// The server does not answer: notes since when, and when to ask again.
    fn lose(&mut self, at: Moment, error: &ProbeError) {
        if let Some(session) = self.session.take() {
            self.own_transactions += session.own_transactions();
        }
        let gap = self.gap.get_or_insert_with(|| Gap {
            began: at,
            why: error.to_string(),
            attempts: 0,
            next_attempt: Instant::now(),
        });
        gap.attempts += 1;
        if gap.attempts >= ATTEMPTS_MAX {
            self.conninfo = None;
        } else if gap.attempts >= EAGER_ATTEMPTS {
            gap.next_attempt = Instant::now() + PATIENT_PAUSE;
        }
    }

    fn close_gap(&mut self) {
        if let Some(gap) = self.gap.take() {
            let [from, to] = [gap.began, self.clock.now()].map(|moment| moment.as_secs_f64());
            self.note(&format!("no samples from {from:.1} s to {to:.1} s: {}", gap.why));
        }
    }

    async fn snapshot(&mut self) -> Option<CounterSnapshot> {
        let at = self.clock.now();
        let earlier = self.own_transactions;
        let snapshot = self.session.as_mut()?.snapshot().await;
        match snapshot {
            Ok((mut snapshot, notes)) => {
                snapshot.own_transactions += earlier;
                notes.iter().for_each(|note| self.note(note));
                Some(snapshot)
            }
            Err(error) => {
                self.lose(at, &error);
                None
            }
        }
    }

    /// Takes what was logged since, and returns how many entries that were.
    fn follow_log(&mut self) -> usize {
        let Some(follower) = &mut self.follower else { return 0 };
        match follower.read() {
            Ok(entries) => {
                let count = entries.len();
                for entry in entries {
                    let at = self.server_clock.moment(entry.at).unwrap_or_else(|| self.clock.now());
                    self.chronicle.take(at, &entry);
                }
                count
            }
            Err(error) => {
                self.follower = None;
                self.note(&format!("log not followed any more: {error}"));
                0
            }
        }
    }

    async fn finish(mut self, before: Option<CounterSnapshot>, began: Option<f64>) -> Story {
        if self.session.is_none() && self.conninfo.is_some() {
            self.reconnect().await;
        }
        if let (Some(session), Some(began)) = (&mut self.session, began) {
            // If this fails, so does the snapshot, which reports the error.
            if let Ok(Some(note)) = session.await_sessions_end(began).await {
                self.note(&note);
            }
        }
        let after = self.snapshot().await;
        let delta =
            before.zip(after).map(|(before, after)| CounterSnapshot::delta(&before, &after));
        if delta.is_none() {
            self.note("the server's own counts over the trial are unknown");
        }
        if delta.as_ref().is_some_and(|delta| !delta.is_continuous) {
            self.note(
                "the server began its statistics anew in the trial: its counts are not whole",
            );
        }
        self.close_gap();
        if let Some(session) = self.session.take() {
            self.own_transactions += session.own_transactions();
            session.close().await;
        }
        time::sleep(COLLECTOR_LAG).await;
        // A chatty server has written more than is read at once.
        while self.follow_log() > 0 {}
        let takeovers = self.chronicle.take_takeovers();
        let crashes = self.chronicle.take_crashes();
        let (mut marks, note) = self.chronicle.finish(self.clock.now());
        marks.append(&mut self.marks);
        marks.extend(self.horizon.marks(&self.server.node));
        self.book.borrow_mut().notes.extend(note);
        Story { delta, marks, takeovers, crashes, own_transactions: self.own_transactions }
    }

    /// A note that is repeated at every reconnection stands once.
    fn note(&self, text: &str) {
        let note = format!("{}: {text}", self.server.node);
        let mut book = self.book.borrow_mut();
        if !book.notes.contains(&note) {
            book.notes.push(note);
        }
    }
}
