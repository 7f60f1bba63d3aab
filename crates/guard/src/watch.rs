//! The decision: what to do after each look. No clock, no server, no file.
//!
//! What is in force is never remembered but looked at: whatever failed or was killed in between,
//! the next look shows it, and the decision is made again from there.
//!
//! Limit: what a commit waits for cannot be seen from outside. If standbys flush in time and commits
//! wait all the same, `remote_apply` is assumed.

use std::time::Duration;

use crate::look::{self, Look, Lsn};
use crate::policy::{BLINK_MAX, EFFECT, Policy, STABLE_AFTER};
use crate::progress::{By, Clock, Standbys, Waiting};
use server::Setting;

/// Knowledge of the guard between two looks.
#[derive(Clone, Debug)]
pub struct Watch {
    policy: Policy,
    clock: Clock,
    looked_at: Option<Duration>,
    /// The setting that the operator asks for.
    asked: Setting,
    /// The setting that the guard has put in its place last, and the one before it: until the
    /// server has read the new one, the old one is in force.
    ours: [Option<Setting>; 2],
    /// True if an exposure window is open.
    is_exposed: bool,
    standbys: Standbys,
    waiting: Waiting,
    by: By,
    /// Since when too few standbys stream for what is in force.
    unserved_since: Option<Clock>,
    lowered_at: Option<Clock>,
    raised_at: Option<Clock>,
    flaps: u32,
    confirmed: Option<Lsn>,
    /// Position that standbys must have flushed for the window to be closed.
    close_at: Option<Lsn>,
}

/// Decision about the next action.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Nothing.
    Nothing,
    /// Put another setting in force. A window must be open before.
    Change(Change),
    /// Another session has changed the setting: this is what is asked for from now on.
    Adopt(Setting),
    /// The operator's setting is in force again, and everything that was acknowledged in the window
    /// has been confirmed as asked. Without a position: by nobody, another session switched sync
    /// mode off.
    Close(Option<Lsn>),
}

/// Another setting, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The setting to put in force.
    pub to: Setting,
    /// The reason.
    pub why: Why,
}

/// Reason why a setting is changed.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// Commits wait, and too few standbys stream.
    NoStandby {
        /// For how long.
        unserved: Duration,
    },
    /// The oldest commit has waited too long, though enough standbys are connected.
    Silent {
        /// Time for which the oldest commit has waited.
        waited: Duration,
    },
    /// The same, while standbys flush in time: they do not replay in time.
    NotReplayed {
        /// Time for which the oldest commit has waited.
        waited: Duration,
    },
    /// Standbys have kept up long enough.
    Returned {
        /// Time for which they had to keep up.
        hold: Duration,
    },
}

impl Watch {
    /// Begins to watch for `asked`.
    pub fn new(policy: Policy, asked: Setting) -> Watch {
        Watch {
            policy,
            clock: Clock::ZERO,
            looked_at: None,
            asked,
            ours: [None, None],
            is_exposed: false,
            standbys: Standbys::default(),
            waiting: Waiting::default(),
            by: By::Flush,
            unserved_since: None,
            lowered_at: None,
            raised_at: None,
            flaps: 0,
            confirmed: None,
            close_at: None,
        }
    }

    /// Goes on where an earlier guard left off.
    pub fn resume(&mut self, ours: Option<Setting>, confirmed: Option<Lsn>, flaps: u32) {
        // What is none of the levels was set by another session.
        self.ours = [ours.filter(|ours| self.asked.levels().contains(ours)), None];
        self.confirmed = confirmed;
        self.flaps = flaps;
        self.raised_at = (flaps > 0).then_some(self.clock);
    }

    /// Tells that the change decided on last was not made.
    pub fn unmade(&mut self) {
        self.ours = [self.ours[1].take(), None];
    }

    /// Tells that an exposure window is open.
    pub fn set_exposed(&mut self) {
        self.is_exposed = true;
    }

    /// Decides after a look at `now`, the time since some moment.
    pub fn decide(&mut self, now: Duration, seen: &Look) -> Decision {
        let blink = self.looked_at.map_or(Duration::ZERO, |at| now.saturating_sub(at));
        self.looked_at = Some(now);
        self.clock += blink.min(BLINK_MAX);
        self.look(seen);
        if !self.is_known(&seen.setting) {
            (self.asked, self.ours) = (seen.setting.clone(), [None, None]);
            return Decision::Adopt(seen.setting.clone());
        }
        let change = self.lower(seen).or_else(|| self.raise(seen));
        match change {
            Some(change) => {
                self.ours = [Some(change.to.clone()), Some(seen.setting.clone())];
                self.close_at = None;
                Decision::Change(change)
            }
            None => self.close(seen),
        }
    }

    /// The setting that the operator asks for.
    pub fn asked(&self) -> &Setting {
        &self.asked
    }

    /// Up to where commits were last seen confirmed as asked: an exposure begins there.
    pub fn confirmed(&self) -> Option<Lsn> {
        self.confirmed
    }

    /// Number of times that the setting was raised too early lately.
    pub fn flaps(&self) -> u32 {
        self.flaps
    }

    /// Commits that wait for a standby, and how long the oldest has.
    pub fn waiting(&self) -> (usize, Option<Duration>) {
        (self.waiting.count(), self.waiting.oldest(self.clock))
    }

    fn look(&mut self, seen: &Look) {
        let (clock, soon) = (self.clock, self.policy.soon());
        self.waiting.look(&seen.waiting, clock);
        self.standbys.look(&seen.standbys, seen.wal, clock, soon);
        // A position that the primary has not reached is of a history that is no more.
        self.confirmed = self.confirmed.filter(|confirmed| *confirmed <= seen.wal);
        if let Setting::Sync(asked) = &self.asked {
            self.confirmed = self.confirmed.max(look::confirmed(asked, &seen.standbys));
        }
        let is_served = match &seen.setting {
            Setting::Off => true,
            Setting::Sync(demand) => look::is_served(demand, &seen.standbys, |_| true),
        };
        self.unserved_since = match is_served {
            true => None,
            false => self.unserved_since.or(Some(clock)),
        };
        if self.raised_at.is_some_and(|raised| clock - raised >= STABLE_AFTER) {
            (self.raised_at, self.flaps) = (None, 0);
        }
        if self.ours[0].as_ref() == Some(&seen.setting) {
            self.ours[1] = None;
        }
    }

    fn is_known(&self, setting: &Setting) -> bool {
        *setting == self.asked || self.ours.iter().flatten().any(|ours| ours == setting)
    }

    /// Lowers the number, or takes sync mode off, when commits cannot be served.
    fn lower(&mut self, seen: &Look) -> Option<Change> {
        if seen.setting == Setting::Off {
            return None;
        }
        let waited = self.waiting.oldest(self.clock)?;
        let grace = self.policy.grace;
        let unserved = self.unserved_since.map(|since| self.clock - since);
        let why = match unserved.filter(|unserved| *unserved >= grace) {
            Some(unserved) => Why::NoStandby { unserved },
            None if waited < grace => return None,
            None if self.serves(&seen.setting, seen, By::Flush, None) => {
                Why::NotReplayed { waited }
            }
            None => Why::Silent { waited },
        };
        if self.lowered_at.is_some_and(|lowered| self.clock - lowered < EFFECT) {
            return None;
        }
        if matches!(why, Why::NotReplayed { .. }) {
            self.by = By::Replay;
        }
        // Where standbys do all that can be seen and commits wait all the same, fewer standbys
        // would not help either.
        let is_served = self.serves(&seen.setting, seen, self.by, None);
        let weaker = self.asked.levels().into_iter().skip_while(|level| *level != seen.setting);
        let to = weaker
            .skip(1)
            .find(|level| !is_served && self.serves(level, seen, self.by, None))
            .unwrap_or(Setting::Off);
        if self.raised_at.take().is_some() {
            self.flaps += 1;
        }
        self.lowered_at = Some(self.clock);
        Some(Change { to, why })
    }

    /// Raises the setting as far as standbys have kept up long enough.
    fn raise(&mut self, seen: &Look) -> Option<Change> {
        let hold = self.policy.hold(self.flaps);
        let levels = self.asked.levels();
        let to = levels.into_iter().take_while(|level| *level != seen.setting);
        let to = to.into_iter().find(|level| self.serves(level, seen, self.by, Some(hold)))?;
        (self.raised_at, self.lowered_at) = (Some(self.clock), None);
        Some(Change { to, why: Why::Returned { hold } })
    }

    /// True if the standbys that keep up (since `hold` ago, if given) would serve commits.
    fn serves(&self, setting: &Setting, seen: &Look, by: By, hold: Option<Duration>) -> bool {
        let Setting::Sync(demand) = setting else { return true };
        look::is_served(demand, &seen.standbys, |one| {
            let kept_since = self.standbys.kept_since(one, by);
            kept_since.is_some_and(|since| hold.is_none_or(|hold| self.clock - since >= hold))
        })
    }

    /// Closes the window when everything acknowledged in it is where it should be.
    ///
    /// The first look that shows the setting in force and the checkpointer reading it sets the
    /// mark: whatever was acknowledged without a standby lies before it. The window ends when as
    /// many standbys as asked for have flushed so far.
    fn close(&mut self, seen: &Look) -> Decision {
        if !self.is_exposed || seen.setting != self.asked {
            return Decision::Nothing;
        }
        let confirmed = match &self.asked {
            Setting::Off => None,
            Setting::Sync(asked) => {
                if !seen.settings_are_read {
                    return Decision::Nothing;
                }
                let Some(mark) = self.close_at else {
                    self.close_at = Some(seen.wal);
                    return Decision::Nothing;
                };
                let confirmed = look::confirmed(asked, &seen.standbys);
                if confirmed < Some(mark) {
                    return Decision::Nothing;
                }
                confirmed
            }
        };
        (self.is_exposed, self.close_at, self.by) = (false, None, By::Flush);
        Decision::Close(confirmed)
    }
}
