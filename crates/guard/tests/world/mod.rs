//! A primary and its standbys, made of numbers.

use std::time::Duration;

use guard::{
    ChangeReason, GuardDecision, GuardKnowledge, GuardPolicy, Lsn, PrimaryState, SettingChange,
    SyncState, WalSenderRow,
};
use server::{StandbyDemand, SyncMethod, SyncStandbysSetting};

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
    /// The same, and when it comes back it comes by a new connection: the old one lingers.
    Lost,
    /// Flushes, and does not replay.
    ReplayPaused,
    Gone,
}

/// A change of the guard's.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) at: Duration,
    pub(crate) to: SyncStandbysSetting,
    pub(crate) why: ChangeReason,
}

/// An exposure window as it was recorded.
#[derive(Debug)]
pub(crate) struct Window {
    pub(crate) opened: (Duration, Option<Lsn>),
    /// When, and what was confirmed as asked then.
    pub(crate) closed: Option<(Duration, Option<Lsn>)>,
}

/// A connection of a standby.
#[derive(Clone, Debug)]
struct Server {
    name: String,
    fate: Fate,
    since: Duration,
    pid: i32,
    /// The place of its WAL sender in shared memory.
    slot: usize,
    /// An old connection of one that has come back.
    is_left: bool,
    flush: u64,
    replay: u64,
}

impl Server {
    fn is_there(&self) -> bool {
        self.fate != Fate::Gone
    }
}

/// `SyncRepGetCandidateStandbys` of syncrep.c: what each connection is under a setting.
fn sync_states(setting: &SyncStandbysSetting, servers: &[Server]) -> Vec<SyncState> {
    let SyncStandbysSetting::Sync(demand) = setting else {
        return vec![SyncState::Async; servers.len()];
    };
    let priority = |one: &Server| demand.priority(&one.name).filter(|_| one.is_there());
    let mut candidates: Vec<usize> =
        (0..servers.len()).filter(|index| priority(&servers[*index]).is_some()).collect();
    candidates.sort_by_key(|index| (priority(&servers[*index]), servers[*index].slot));
    let state = |index: usize| {
        let place = candidates.iter().position(|one| *one == index);
        match (place, demand.method) {
            (None, _) => SyncState::Async,
            (Some(_), SyncMethod::Any) => SyncState::Quorum,
            (Some(place), SyncMethod::First) if place < demand.count => SyncState::Sync,
            (Some(_), SyncMethod::First) => SyncState::Potential,
        }
    };
    (0..servers.len()).map(state).collect()
}

/// `SyncRepGetSyncRecPtr` of syncrep.c: up to where commits are confirmed, by one of the positions.
fn confirmed(
    setting: &SyncStandbysSetting,
    servers: &[Server],
    position: fn(&Server) -> u64,
) -> u64 {
    let SyncStandbysSetting::Sync(StandbyDemand { method, count, .. }) = setting else {
        return u64::MAX;
    };
    let states = sync_states(setting, servers);
    let chosen = servers.iter().zip(states);
    let chosen = chosen.filter(|(_, state)| matches!(state, SyncState::Sync | SyncState::Quorum));
    let mut positions: Vec<u64> = chosen.map(|(one, _)| position(one)).collect();
    positions.sort_unstable_by(|a, b| b.cmp(a));
    match method {
        _ if positions.len() < *count => 0,
        SyncMethod::Any => positions[count - 1],
        SyncMethod::First => positions.last().copied().unwrap_or(0),
    }
}

#[derive(Debug)]
struct Commit {
    lsn: u64,
    began: Duration,
    waits_for_replay: bool,
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
    pub(crate) setting: SyncStandbysSetting,
    /// What the checkpointer goes by.
    commits_wait: bool,
    pub(crate) asked: SyncStandbysSetting,
    pub(crate) clients: usize,
    /// Every second commit waits for replay.
    pub(crate) waits_for_replay: bool,
    /// The guard has no connection.
    pub(crate) is_cut_off: bool,
    pub(crate) checkpointer_is_busy: bool,
    /// The record cannot be written.
    pub(crate) disk_is_full: bool,
    pub(crate) changes: Vec<Made>,
    pub(crate) windows: Vec<Window>,
    pub(crate) adopted: Vec<SyncStandbysSetting>,
    grace: Duration,
    wal: u64,
    standbys: Vec<Server>,
    pids: i32,
    commits: Vec<Commit>,
    alone: Vec<Alone>,
    longest: Duration,
    /// The same, of commits that wait for replay.
    pub(crate) longest_replay: Duration,
    /// Restarting the guard begins the grace anew.
    restarts: u32,
    watch: GuardKnowledge,
    ticks: u32,
}

impl World {
    pub(crate) fn new(setting: &str, names: &[&str], grace: Duration) -> World {
        let setting: SyncStandbysSetting = setting.parse().unwrap();
        let standbys = names.iter().zip(1..).map(|(name, pid)| Server {
            name: (*name).to_owned(),
            fate: Fate::Well,
            since: Duration::ZERO,
            pid,
            slot: pid as usize,
            is_left: false,
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
            is_cut_off: false,
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
            longest_replay: Duration::ZERO,
            restarts: 0,
            watch: GuardKnowledge::new(GuardPolicy { grace }, setting),
            ticks: 0,
        }
    }

    pub(crate) fn run_until(&mut self, end: Duration) {
        while self.now < end {
            self.now += TICK;
            self.ticks += 1;
            self.tick();
            if self.ticks.is_multiple_of(TICKS_PER_LOOK) && !self.is_cut_off {
                self.guard();
            }
        }
    }

    pub(crate) fn fate(&mut self, name: &str, fate: Fate) {
        let now = self.now;
        let current = |one: &&mut Server| one.name == name && !one.is_left;
        let server = self.standbys.iter_mut().find(current).unwrap();
        let is_new = fate != server.fate && matches!(server.fate, Fate::Gone | Fate::Lost);
        let left = Server { fate: Fate::Paused, is_left: true, ..server.clone() };
        let is_left = is_new && server.fate == Fate::Lost && fate != Fate::Gone;
        if is_new && fate != Fate::Gone {
            self.pids += 1;
            server.pid = self.pids;
        }
        (server.fate, server.since) = (fate, now);
        if is_left {
            self.standbys.push(left);
        }
        if is_new && fate != Fate::Gone {
            let is_taken = |slot: usize, name: &str| {
                let others = self.standbys.iter().filter(|one| one.is_there());
                let mut others = others.filter(|one| one.is_left || one.name != name);
                others.any(|one| one.slot == slot)
            };
            let slot = (1..).find(|slot| !is_taken(*slot, name)).unwrap();
            let server = self.standbys.iter_mut().find(current).unwrap();
            server.slot = slot;
        }
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
        self.watch = GuardKnowledge::new(GuardPolicy { grace: self.grace }, self.asked.clone());
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
            let is_silent = matches!(server.fate, Fate::Paused | Fate::Lost);
            if is_silent && self.now - server.since >= TIMEOUT {
                server.fate = Fate::Gone;
            }
            if matches!(server.fate, Fate::Well | Fate::ReplayPaused) {
                server.flush = wal;
            }
            if server.fate == Fate::Well {
                server.replay = wal;
            }
        }
        self.standbys.retain(|one| !one.is_left || one.is_there());
        if !self.checkpointer_is_busy {
            self.commits_wait = self.setting != SyncStandbysSetting::Off;
        }
        while self.commits.len() < self.clients {
            self.wal += 10;
            let waits_for_replay = self.waits_for_replay && (self.wal / 10).is_multiple_of(2);
            self.commits.push(Commit { lsn: self.wal, began: self.now, waits_for_replay });
        }
        let (now, commits_wait) = (self.now, self.commits_wait);
        let flushed = confirmed(&self.setting, &self.standbys, |one| one.flush);
        let replayed = confirmed(&self.setting, &self.standbys, |one| one.replay);
        // What a standby has flushed is not lost, replayed or not.
        let safe = confirmed(&self.asked, &self.standbys, |one| one.flush);
        let (alone, longest) = (&mut self.alone, &mut self.longest);
        let longest_replay = &mut self.longest_replay;
        self.commits.retain(|commit| {
            let took = if commit.waits_for_replay { &mut *longest_replay } else { &mut *longest };
            *took = (*took).max(now - commit.began);
            let position = if commit.waits_for_replay { replayed } else { flushed };
            let waits = commits_wait && position < commit.lsn;
            if !waits && safe < commit.lsn {
                alone.push(Alone { lsn: commit.lsn, at: now });
            }
            waits
        });
    }

    /// Sync mode goes off only where no form of the setting would serve: each standby that is asked
    /// for lacks what has waited for the grace.
    fn check_that_no_form_serves(&self, change: &SettingChange) {
        let SyncStandbysSetting::Sync(demand) = &self.asked else { return };
        let old = self.commits.iter().filter(|one| self.now - one.began >= self.grace);
        let Some(first) = old.map(|one| one.lsn).min() else { return };
        let serves = |one: &&Server| {
            one.is_there() && demand.priority(&one.name).is_some() && one.flush >= first
        };
        let serving: Vec<&Server> = self.standbys.iter().filter(serves).collect();
        // It may have come between two looks.
        let serving: Vec<_> = serving
            .into_iter()
            .filter(|one| self.now - one.since > Duration::from_secs(1))
            .collect();
        assert!(serving.is_empty(), "{change:?} at {:?} though {serving:?} serve", self.now);
    }

    fn guard(&mut self) {
        let look = PrimaryState {
            setting: self.setting.clone(),
            loaded_at: String::new(),
            wal: Lsn::from(self.wal),
            standbys: self.rows(),
            waiting: self.commits.iter().map(|commit| commit.lsn.to_string()).collect(),
            settings_are_read: !self.checkpointer_is_busy,
        };
        match self.watch.decide(self.now, &look) {
            GuardDecision::Nothing | GuardDecision::Hold { .. } => {}
            GuardDecision::Adopt(setting) => self.adopted.push(setting),
            GuardDecision::Change(_) if self.disk_is_full => self.watch.unmade(),
            GuardDecision::Change(change) => {
                if change.to == SyncStandbysSetting::Off {
                    self.check_that_no_form_serves(&change);
                }
                if self.windows.last().is_none_or(|window| window.closed.is_some()) {
                    let opened = (self.now, self.watch.confirmed());
                    self.windows.push(Window { opened, closed: None });
                    self.watch.set_exposed();
                }
                self.setting = change.to.clone();
                let at = self.now;
                self.changes.push(Made { at, to: change.to, why: change.why });
            }
            GuardDecision::Close(confirmed) => {
                self.windows.last_mut().unwrap().closed = Some((self.now, confirmed));
            }
        }
    }

    /// The connected standbys, in an order that says nothing.
    fn rows(&self) -> Vec<WalSenderRow> {
        let connected = self.standbys.iter().zip(sync_states(&self.setting, &self.standbys));
        let connected = connected.filter(|(one, _)| one.is_there()).rev();
        let rows = connected.map(|(one, sync_state)| WalSenderRow {
            pid: one.pid,
            name: one.name.clone(),
            streams: true,
            flush: Some(Lsn::from(one.flush)),
            replay: Some(Lsn::from(one.replay)),
            sync_state,
        });
        rows.collect()
    }
}
