//! The decision: what to do after each look. No clock, no server, no file.
//!
//! What is in force is never remembered but looked at: whatever failed or was killed in between,
//! the next look shows it, and the decision is made again from there.
//!
//! What a commit waits for is not shown, but follows: one that waits although as many standbys as
//! the setting in force asks for have flushed past it waits for replay (`remote_apply`). Sync mode is not
//! taken off for such a commit alone, because the sessions that ask for flushing are served.

use std::time::Duration;

use crate::look::{self, Lsn, PrimaryState, WalSenderRow};
use crate::policy::{BLINK_MAX, EFFECT, GAP_MAX, GuardPolicy, SETTLE, STABLE_AFTER};
use crate::progress::{Clock, KeepUpPosition, Standbys, Wait, Waiting};
use server::SyncStandbysSetting;

/// Knowledge of the guard between two looks.
#[derive(Clone, Debug)]
pub struct GuardKnowledge {
    policy: GuardPolicy,
    clock: Clock,
    looked_at: Option<Duration>,
    /// The setting that the operator asks for.
    asked: SyncStandbysSetting,
    /// The setting that the guard has put in its place last, and the one before it: until the
    /// server has read the new one, the old one is in force.
    ours: [Option<SyncStandbysSetting>; 2],
    /// True if an exposure window is open.
    is_exposed: bool,
    standbys: Standbys,
    waiting: Waiting,
    /// The oldest wait, where standbys have confirmed it, and since when.
    confirmed_wait: Option<(Wait, Clock)>,
    by: KeepUpPosition,
    /// Since when too few standbys stream for what is in force.
    unserved_since: Option<Clock>,
    lowered_at: Option<Clock>,
    /// The last lowering, and the WAL at that moment: a standby that has not flushed it since is silent.
    tried: Option<(Clock, Lsn)>,
    raised_at: Option<Clock>,
    flaps: u32,
    /// The two before the change decided on last.
    before_change: (Option<Clock>, u32),
    confirmed: Option<Lsn>,
    /// The first look after a long time without one.
    resumed_at: Option<Clock>,
    /// Position that standbys must have flushed for the window to be closed.
    close_at: Option<Lsn>,
}

/// Decision about the next action.
#[derive(Clone, Debug, PartialEq)]
pub enum GuardDecision {
    /// Nothing.
    Nothing,
    /// Nothing: the commits that have waited too long wait for standbys that have flushed them and do
    /// not replay, and no form of the setting with a confirmation would let them go on.
    Hold {
        /// Time for which the oldest has waited.
        waited: Duration,
    },
    /// Put another setting in force. A window must be open before.
    Change(SettingChange),
    /// Another session has changed the setting: this is what is asked for from now on.
    Adopt(SyncStandbysSetting),
    /// The operator's setting is in force again, and everything that was acknowledged in the window
    /// has been confirmed as asked. Without a position: by nobody, another session switched sync
    /// mode off.
    Close(Option<Lsn>),
}

/// Another setting, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingChange {
    /// The setting to put in force.
    pub to: SyncStandbysSetting,
    /// The reason.
    pub why: ChangeReason,
}

/// What is done about commits that wait too long.
enum Lowering {
    To(SettingChange),
    Hold { waited: Duration },
}

/// Reason why a setting is changed.
#[derive(Clone, Debug, PartialEq)]
pub enum ChangeReason {
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

impl GuardKnowledge {
    /// Begins to watch for `asked`.
    pub fn new(policy: GuardPolicy, asked: SyncStandbysSetting) -> GuardKnowledge {
        GuardKnowledge {
            policy,
            clock: Clock::ZERO,
            looked_at: None,
            asked,
            ours: [None, None],
            is_exposed: false,
            standbys: Standbys::default(),
            waiting: Waiting::default(),
            confirmed_wait: None,
            by: KeepUpPosition::Flush,
            unserved_since: None,
            lowered_at: None,
            tried: None,
            raised_at: None,
            flaps: 0,
            before_change: (None, 0),
            confirmed: None,
            resumed_at: None,
            close_at: None,
        }
    }

    /// Goes on where an earlier guard left off.
    pub fn resume(
        &mut self,
        ours: Option<SyncStandbysSetting>,
        confirmed: Option<Lsn>,
        flaps: u32,
    ) {
        // A value that is no level of the guard was set by another session.
        self.ours = [ours.filter(|ours| self.asked.levels().contains(ours)), None];
        self.confirmed = confirmed;
        self.flaps = flaps;
        self.raised_at = (flaps > 0).then_some(self.clock);
    }

    /// Goes on after a lost connection, or after a change that another guard has made. What was
    /// waited for counts on.
    pub fn carry_on(&mut self, in_force: SyncStandbysSetting) {
        self.ours = [Some(in_force).filter(|ours| self.asked.levels().contains(ours)), None];
        // A change that was begun may not have been made.
        self.lowered_at = None;
    }

    /// Tells that another setting is asked for, which a person has put in force.
    pub fn adopt(&mut self, setting: SyncStandbysSetting) {
        if setting != self.asked {
            (self.confirmed, self.by) = (None, KeepUpPosition::Flush);
        }
        (self.asked, self.ours, self.close_at) = (setting, [None, None], None);
        // The server has the time for it that it has for a change of the guard's.
        self.lowered_at = Some(self.clock);
    }

    /// Tells that the change decided on last was not made.
    pub fn unmade(&mut self) {
        self.ours = [self.ours[1].take(), None];
        // No raise was too early for it.
        (self.raised_at, self.flaps) = self.before_change;
    }

    /// Tells that an exposure window is open.
    pub fn set_exposed(&mut self) {
        self.is_exposed = true;
    }

    /// Tells that the server was looked at, at `now`, and nothing had to be decided.
    pub fn looked(&mut self, now: Duration) {
        self.pass(now);
    }

    /// Decides after a look at `now`, the time since some moment.
    pub fn decide(&mut self, now: Duration, seen: &PrimaryState) -> GuardDecision {
        self.pass(now);
        self.look(seen);
        if !self.is_known(&seen.setting) {
            self.adopt(seen.setting.clone());
            return GuardDecision::Adopt(seen.setting.clone());
        }
        let before = (self.raised_at, self.flaps);
        let lowering = self.lower(seen);
        let (change, held) = match lowering {
            Some(Lowering::To(change)) => (Some(change), None),
            Some(Lowering::Hold { waited }) => (None, Some(waited)),
            None => (None, None),
        };
        match (change.or_else(|| self.raise(seen)), held) {
            (Some(change), _) => {
                self.ours = [Some(change.to.clone()), Some(seen.setting.clone())];
                (self.close_at, self.before_change) = (None, before);
                GuardDecision::Change(change)
            }
            (None, held) => match (self.close(seen), held) {
                (GuardDecision::Nothing, Some(waited)) => GuardDecision::Hold { waited },
                (decision, _) => decision,
            },
        }
    }

    /// The setting that the operator asks for.
    pub fn asked(&self) -> &SyncStandbysSetting {
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
        let oldest = self.waiting.oldest(|_| true);
        (self.waiting.count(), oldest.map(|wait| self.clock - wait.since))
    }

    /// Advances the clock to a look.
    fn pass(&mut self, now: Duration) {
        let gap = self.looked_at.map_or(Duration::ZERO, |at| now.saturating_sub(at));
        self.looked_at = Some(now);
        self.clock += if gap <= GAP_MAX { gap } else { BLINK_MAX };
        // Where each look comes late, the second one counts.
        self.resumed_at = match self.resumed_at {
            None if gap > BLINK_MAX => Some(self.clock),
            Some(_) if gap <= BLINK_MAX && !self.is_settling() => None,
            resumed_at => resumed_at,
        };
    }

    fn is_settling(&self) -> bool {
        self.resumed_at.is_some_and(|at| self.clock - at < SETTLE)
    }

    fn look(&mut self, seen: &PrimaryState) {
        let (clock, soon) = (self.clock, self.policy.soon());
        self.waiting.look(&seen.waiting, seen.wal, clock);
        self.standbys.look(&seen.standbys, seen.wal, clock, soon);
        // A position that the primary has not reached is of a history that is no more.
        self.confirmed = self.confirmed.filter(|confirmed| *confirmed <= seen.wal);
        let confirmed = match &self.asked {
            SyncStandbysSetting::Off => None,
            asked if *asked == seen.setting => seen.confirmed(),
            SyncStandbysSetting::Sync(asked) => look::would_confirm(asked, &seen.standbys),
        };
        self.confirmed = self.confirmed.max(confirmed);
        let oldest = self.waiting.oldest(|_| true);
        let oldest = oldest.filter(|wait| seen.confirmed() >= Some(self.due(wait)));
        self.confirmed_wait = oldest.map(|wait| match self.confirmed_wait {
            Some((before, since)) if before == wait => (wait, since),
            _ => (wait, clock),
        });
        let is_served = seen.is_served(|_| true);
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

    fn is_known(&self, setting: &SyncStandbysSetting) -> bool {
        *setting == self.asked || self.ours.iter().flatten().any(|ours| ours == setting)
    }

    /// Lowers the number, or takes sync mode off, when commits cannot be served.
    fn lower(&mut self, seen: &PrimaryState) -> Option<Lowering> {
        if seen.setting == SyncStandbysSetting::Off || self.is_settling() {
            return None;
        }
        let (wait, why) = self.trouble(seen)?;
        if self.lowered_at.is_some_and(|lowered| self.clock - lowered < EFFECT) {
            return None;
        }
        let by = if matches!(why, ChangeReason::NotReplayed { .. }) {
            KeepUpPosition::Replay
        } else {
            KeepUpPosition::Flush
        };
        // A form serves if the standbys that have what the commit waits for satisfy it. One that has said so
        // before it fell silent is tried once: it may only be slow.
        let due = Some(self.due(&wait));
        let fits = |one: &WalSenderRow| by.position(one) >= due;
        let weaker = self.asked.levels().into_iter().skip_while(|level| *level != seen.setting);
        let to = weaker.skip(1).find(|level| match level {
            SyncStandbysSetting::Off => false,
            SyncStandbysSetting::Sync(demand) => look::would_serve(demand, &seen.standbys, fits),
        });
        let to = match (to, &why) {
            (Some(to), _) => to,
            (None, ChangeReason::NotReplayed { waited }) => {
                return Some(Lowering::Hold { waited: *waited });
            }
            (None, _) => SyncStandbysSetting::Off,
        };
        if by == KeepUpPosition::Replay {
            self.by = KeepUpPosition::Replay;
        }
        if self.raised_at.take().is_some() {
            self.flaps += 1;
        }
        self.lowered_at = Some(self.clock);
        self.tried = Some((self.clock, seen.wal));
        Some(Lowering::To(SettingChange { to, why }))
    }

    /// The position by which a standby has confirmed a commit that waits. The server lets commits go on with a
    /// standby's next reply: a position of before a lowering is none.
    fn due(&self, wait: &Wait) -> Lsn {
        let tried = self.tried.filter(|(at, _)| wait.since <= *at);
        tried.map_or(wait.wal, |(_, wal)| wal.max(wait.wal))
    }

    /// The wait that has to end, and the reason why it does not.
    fn trouble(&self, seen: &PrimaryState) -> Option<(Wait, ChangeReason)> {
        let oldest = self.waiting.oldest(|_| true)?;
        let grace = self.policy.grace;
        let unserved = self.unserved_since.map(|since| self.clock - since);
        if let Some(unserved) = unserved.filter(|unserved| *unserved >= grace) {
            return Some((oldest, ChangeReason::NoStandby { unserved }));
        }
        let waited = |wait: Wait| self.clock - wait.since;
        if waited(oldest) < grace {
            return None;
        }
        let confirmed = seen.confirmed();
        let unconfirmed = self.waiting.oldest(|wait| confirmed < Some(self.due(wait)));
        match unconfirmed.filter(|wait| waited(*wait) >= grace) {
            Some(wait) => Some((wait, ChangeReason::Silent { waited: waited(wait) })),
            // A standby that has come back has flushed before the server lets the commits go on.
            None => {
                let since = self.confirmed_wait.map(|(_, since)| self.clock - since);
                let why = ChangeReason::NotReplayed { waited: waited(oldest) };
                since.is_some_and(|since| since >= EFFECT).then_some((oldest, why))
            }
        }
    }

    /// Raises the setting as far as standbys have kept up long enough.
    fn raise(&mut self, seen: &PrimaryState) -> Option<SettingChange> {
        let hold = self.policy.hold(self.flaps);
        let levels = self.asked.levels();
        let stronger = || levels.iter().take_while(|level| **level != seen.setting);
        let by_all = stronger().find(|level| self.keeps(level, seen, self.by, hold));
        // Standbys that flush and do not replay are better than none.
        let by_flush =
            || stronger().find(|level| self.keeps(level, seen, KeepUpPosition::Flush, hold));
        let to = by_all
            .or_else(|| if seen.setting == SyncStandbysSetting::Off { by_flush() } else { None });
        let to = to?.clone();
        (self.raised_at, self.lowered_at, self.tried) = (Some(self.clock), None, None);
        Some(SettingChange { to, why: ChangeReason::Returned { hold } })
    }

    /// True if the standbys that have kept up since `hold` ago would serve commits.
    fn keeps(
        &self,
        setting: &SyncStandbysSetting,
        seen: &PrimaryState,
        by: KeepUpPosition,
        hold: Duration,
    ) -> bool {
        let SyncStandbysSetting::Sync(demand) = setting else { return true };
        look::would_serve(demand, &seen.standbys, |one| {
            let kept_since = self.standbys.kept_since(one, by);
            kept_since.is_some_and(|since| self.clock - since >= hold)
        })
    }

    /// Closes the window when everything acknowledged in it is where it should be.
    ///
    /// The first look that shows the setting in force and the checkpointer reading it sets the
    /// mark: whatever was acknowledged without a standby lies before it. The window ends when as
    /// many standbys as asked for have flushed so far.
    fn close(&mut self, seen: &PrimaryState) -> GuardDecision {
        if !self.is_exposed || seen.setting != self.asked {
            return GuardDecision::Nothing;
        }
        let confirmed = match &self.asked {
            SyncStandbysSetting::Off => None,
            SyncStandbysSetting::Sync(_) => {
                if !seen.settings_are_read {
                    return GuardDecision::Nothing;
                }
                let Some(mark) = self.close_at else {
                    self.close_at = Some(seen.wal);
                    return GuardDecision::Nothing;
                };
                let confirmed = seen.confirmed();
                if confirmed < Some(mark) {
                    return GuardDecision::Nothing;
                }
                confirmed
            }
        };
        (self.is_exposed, self.close_at, self.by) = (false, None, KeepUpPosition::Flush);
        GuardDecision::Close(confirmed)
    }
}
