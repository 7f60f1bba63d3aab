//! Progress of standbys and waiting commits from look to look.

use std::collections::HashMap;
use std::time::Duration;

use crate::look::{Lsn, WalSenderRow};

/// Time that has been observed, since the first look. Time in which the server was not looked at for
/// long does not count: a server that was suspended has not waited for its standbys.
pub(crate) type Clock = Duration;

/// Pace of one connected standby, by one of its positions.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    /// The WAL of a moment, and that moment.
    goal: (Lsn, Clock),
    /// Since when it has passed the WAL of each moment soon after.
    kept_since: Option<Clock>,
}

impl Pace {
    fn new(wal: Lsn, clock: Clock) -> Pace {
        Pace { goal: (wal, clock), kept_since: None }
    }

    fn look(&mut self, position: Option<Lsn>, wal: Lsn, clock: Clock, soon: Duration) {
        let (goal, set) = self.goal;
        let is_late = clock - set > soon;
        if position.is_some_and(|position| position >= goal) {
            self.goal = (wal, clock);
            if !is_late {
                self.kept_since.get_or_insert(clock);
            }
        }
        if is_late {
            self.kept_since = None;
        }
    }
}

/// The connected standbys.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standbys(HashMap<i32, Paces>);

#[derive(Clone, Debug)]
struct Paces {
    flush: Pace,
    replay: Pace,
}

/// The position by which a standby must keep up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum KeepUpPosition {
    /// Flushing, which `on` and `remote_write` wait for.
    #[default]
    Flush,
    /// Replaying as well, which `remote_apply` waits for.
    Replay,
}

impl KeepUpPosition {
    /// The position of a standby.
    pub(crate) fn position(self, one: &WalSenderRow) -> Option<Lsn> {
        match self {
            KeepUpPosition::Flush => one.flush,
            KeepUpPosition::Replay => one.flush.min(one.replay),
        }
    }
}

impl Standbys {
    pub(crate) fn look(&mut self, seen: &[WalSenderRow], wal: Lsn, clock: Clock, soon: Duration) {
        self.0.retain(|pid, _| seen.iter().any(|one| one.pid == *pid && one.streams));
        for one in seen.iter().filter(|one| one.streams) {
            let new = || Pace::new(wal, clock);
            let paces =
                self.0.entry(one.pid).or_insert_with(|| Paces { flush: new(), replay: new() });
            paces.flush.look(one.flush, wal, clock, soon);
            paces.replay.look(one.replay, wal, clock, soon);
        }
    }

    /// Since when it has kept up; none if it does not.
    pub(crate) fn kept_since(&self, one: &WalSenderRow, by: KeepUpPosition) -> Option<Clock> {
        let paces = self.0.get(&one.pid)?;
        match by {
            KeepUpPosition::Flush => paces.flush.kept_since,
            KeepUpPosition::Replay => Some(paces.flush.kept_since?.max(paces.replay.kept_since?)),
        }
    }
}

/// Commits that wait for a standby, and since when they have been seen waiting. The server does not
/// tell since when they wait: `query_start` is when a long `COPY` began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting(HashMap<String, Wait>);

/// The wait of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wait {
    pub(crate) since: Clock,
    /// The primary's WAL when it was first seen: the commit lies before it, so that a standby that has
    /// this position has confirmed it.
    pub(crate) wal: Lsn,
}

impl Waiting {
    pub(crate) fn look(&mut self, seen: &[String], wal: Lsn, clock: Clock) {
        self.0.retain(|commit, _| seen.contains(commit));
        for commit in seen {
            self.0.entry(commit.clone()).or_insert(Wait { since: clock, wal });
        }
    }

    /// The oldest wait among those of which this is true.
    pub(crate) fn oldest(&self, is_meant: impl Fn(&Wait) -> bool) -> Option<Wait> {
        self.0.values().filter(|wait| is_meant(wait)).min().copied()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}
