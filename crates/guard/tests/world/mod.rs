//! A primary and its standbys, made of numbers.

use std::time::Duration;

use guard::{Decision, Look, Lsn, Policy, Standby, Watch, Why};
use server::Setting;

/// How finely the world moves; the guard looks at every fifth tick.
pub(crate) const TICK: Duration = Duration::from_millis(50);
const TICKS_PER_LOOK: u32 = 5;
const TIMEOUT: Duration = Duration::from_secs(60);

/// What a standby is up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Well,
    /// Connected, and says nothing more, until the WAL sender's timeout.
    Paused,
    /// Flushes, and does not replay.
    ReplayPaused,
    Gone,
}

/// A change of the guard's.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) at: Duration,
    pub(crate) to: Setting,
    pub(crate) why: Why,
}

/// An exposure window as it was recorded.
#[derive(Debug)]
pub(crate) struct Window {
    pub(crate) opened: (Duration, Option<Lsn>),
    /// When, and what was confirmed as asked then.
    pub(crate) closed: Option<(Duration, Option<Lsn>)>,
}

#[derive(Debug)]
struct Server {
    name: String,
    fate: Fate,
    since: Duration,
    pid: i32,
    flush: u64,
    replay: u64,
}

#[derive(Debug)]
struct Commit {
    lsn: u64,
    began: Duration,
}

/// A commit that was acknowledged without the confirmations that were asked for.
#[derive(Debug)]
struct Alone {
    lsn: u64,
    at: Duration,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) now: Duration,
    pub(crate) setting: Setting,
    /// What the checkpointer goes by.
    commits_wait: bool,
    pub(crate) asked: Setting,
    pub(crate) clients: usize,
    pub(crate) waits_for_replay: bool,
    pub(crate) checkpointer_is_busy: bool,
    /// The record cannot be written.
    pub(crate) disk_is_full: bool,
    pub(crate) changes: Vec<Made>,
    pub(crate) windows: Vec<Window>,
    pub(crate) adopted: Vec<Setting>,
    grace: Duration,
    wal: u64,
    standbys: Vec<Server>,
    pids: i32,
    commits: Vec<Commit>,
    alone: Vec<Alone>,
    longest: Duration,
    /// Restarting the guard begins the grace anew.
    restarts: u32,
    watch: Watch,
    ticks: u32,
}

impl World {
    pub(crate) fn new(setting: &str, names: &[&str], grace: Duration) -> World {
        let setting: Setting = setting.parse().unwrap();
        let standbys = names.iter().zip(1..).map(|(name, pid)| Server {
            name: (*name).to_owned(),
            fate: Fate::Well,
            since: Duration::ZERO,
            pid,
            flush: 1,
            replay: 1,
        });
        World {
            now: Duration::ZERO,
            setting: setting.clone(),
            commits_wait: true,
            asked: setting.clone(),
            clients: 4,
            waits_for_replay: false,
            checkpointer_is_busy: false,
            disk_is_full: false,
            changes: Vec::new(),
            windows: Vec::new(),
            adopted: Vec::new(),
            grace,
            wal: 1,
            standbys: standbys.collect(),
            pids: 100,
            commits: Vec::new(),
            alone: Vec::new(),
            longest: Duration::ZERO,
            restarts: 0,
            watch: Watch::new(Policy { grace }, setting),
            ticks: 0,
        }
    }

    pub(crate) fn run_until(&mut self, end: Duration) {
        while self.now < end {
            self.now += TICK;
            self.ticks += 1;
            self.tick();
            if self.ticks.is_multiple_of(TICKS_PER_LOOK) {
                self.guard();
            }
        }
    }

    pub(crate) fn fate(&mut self, name: &str, fate: Fate) {
        let server = self.standbys.iter_mut().find(|one| one.name == name).unwrap();
        if server.fate == Fate::Gone && fate != Fate::Gone {
            self.pids += 1;
            server.pid = self.pids;
        }
        (server.fate, server.since) = (fate, self.now);
    }

    /// Another session changes the setting.
    pub(crate) fn set(&mut self, setting: &str) {
        self.setting = setting.parse().unwrap();
        self.asked = self.setting.clone();
    }

    /// Nothing moves for a while, the guard included.
    pub(crate) fn suspend(&mut self, length: Duration) {
        self.now += length;
        self.standbys.iter_mut().for_each(|one| one.since += length);
        self.commits.iter_mut().for_each(|one| one.began += length);
    }

    /// kill -9, and a new one with what is on the disk.
    pub(crate) fn restart_guard(&mut self) {
        let (confirmed, flaps) = (self.watch.confirmed(), self.watch.flaps());
        self.watch = Watch::new(Policy { grace: self.grace }, self.asked.clone());
        self.watch.resume(Some(self.setting.clone()), confirmed, flaps);
        if self.windows.last().is_some_and(|window| window.closed.is_none()) {
            self.watch.set_exposed();
        }
        self.restarts += 1;
    }

    /// Commits went on in time, and each that the primary acknowledged alone is in a window.
    pub(crate) fn check(&self) {
        let begun_anew = self.grace * self.restarts;
        let allowed = self.grace + Duration::from_secs(2) + begun_anew;
        assert!(self.longest <= allowed, "a commit waited {:?}", self.longest);
        for commit in &self.alone {
            let covers = |window: &&Window| {
                let (opened, from) = window.opened;
                let lsn = Lsn::from(commit.lsn);
                let (closed, to) = window.closed.unwrap_or((Duration::MAX, None));
                let after = commit.at >= opened && from.is_none_or(|from| lsn > from);
                after && commit.at <= closed && to.is_none_or(|to| lsn <= to)
            };
            assert!(
                self.windows.iter().any(|window| covers(&window)),
                "{commit:?} is in no window"
            );
        }
    }

    fn tick(&mut self) {
        let wal = self.wal;
        for server in &mut self.standbys {
            if server.fate == Fate::Paused && self.now - server.since >= TIMEOUT {
                server.fate = Fate::Gone;
            }
            if matches!(server.fate, Fate::Well | Fate::ReplayPaused) {
                server.flush = wal;
            }
            if server.fate == Fate::Well {
                server.replay = wal;
            }
        }
        if !self.checkpointer_is_busy {
            self.commits_wait = self.setting != Setting::Off;
        }
        while self.commits.len() < self.clients {
            self.wal += 10;
            self.commits.push(Commit { lsn: self.wal, began: self.now });
        }
        let standbys = self.rows();
        let (now, commits_wait, replay) = (self.now, self.commits_wait, self.waits_for_replay);
        // What a standby has flushed is not lost, replayed or not.
        let is_safe = |asked: &Setting, lsn: u64| match asked {
            Setting::Off => true,
            Setting::Sync(demand) => guard::confirmed(demand, &standbys) >= Some(Lsn::from(lsn)),
        };
        let confirms = |setting: &Setting, lsn: u64| match setting {
            Setting::Off => true,
            Setting::Sync(demand) if replay => {
                guard::is_served(demand, &standbys, |one| one.replay >= Some(Lsn::from(lsn)))
            }
            Setting::Sync(_) => is_safe(setting, lsn),
        };
        let (setting, asked, alone, longest) =
            (&self.setting, &self.asked, &mut self.alone, &mut self.longest);
        self.commits.retain(|commit| {
            *longest = (*longest).max(now - commit.began);
            let waits = commits_wait && !confirms(setting, commit.lsn);
            if !waits && !is_safe(asked, commit.lsn) {
                alone.push(Alone { lsn: commit.lsn, at: now });
            }
            waits
        });
    }

    fn guard(&mut self) {
        let look = Look {
            setting: self.setting.clone(),
            wal: Lsn::from(self.wal),
            standbys: self.rows(),
            waiting: self.commits.iter().map(|commit| commit.lsn.to_string()).collect(),
            settings_are_read: !self.checkpointer_is_busy,
        };
        match self.watch.decide(self.now, &look) {
            Decision::Nothing => {}
            Decision::Adopt(setting) => self.adopted.push(setting),
            Decision::Change(_) if self.disk_is_full => self.watch.unmade(),
            Decision::Change(change) => {
                if self.windows.last().is_none_or(|window| window.closed.is_some()) {
                    let opened = (self.now, self.watch.confirmed());
                    self.windows.push(Window { opened, closed: None });
                    self.watch.set_exposed();
                }
                self.setting = change.to.clone();
                let at = self.now;
                self.changes.push(Made { at, to: change.to, why: change.why });
            }
            Decision::Close(confirmed) => {
                self.windows.last_mut().unwrap().closed = Some((self.now, confirmed));
            }
        }
    }

    fn rows(&self) -> Vec<Standby> {
        let connected = self.standbys.iter().filter(|one| one.fate != Fate::Gone);
        let rows = connected.map(|one| Standby {
            pid: one.pid,
            name: one.name.clone(),
            streams: true,
            flush: Some(Lsn::from(one.flush)),
            replay: Some(Lsn::from(one.replay)),
        });
        rows.collect()
    }
}
