//! Policy of the guard: the time for which it waits.

use std::time::Duration;

/// Policy of the guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardPolicy {
    /// Longest time that commits may wait for a standby.
    pub grace: Duration,
}

impl GuardPolicy {
    /// The least grace: below it, a standby's usual hiccup would end sync mode.
    pub const GRACE_MIN: Duration = Duration::from_secs(1);

    /// Time after a moment within which a standby must have passed that moment's WAL to count as
    /// one that keeps up. Less than the grace, so that a standby that made commits wait so long is
    /// not one.
    pub(crate) fn soon(&self) -> Duration {
        (self.grace / 2).min(Duration::from_secs(2))
    }

    /// Time for which standbys must keep up before the setting is raised for them: longer for each
    /// time that raising it has proved premature.
    pub(crate) fn hold(&self, flaps: u32) -> Duration {
        match flaps {
            0 => Duration::from_secs(1),
            _ => (Duration::from_secs(60) * 2_u32.saturating_pow(flaps - 1)).min(HOLD_MAX),
        }
    }
}

/// The longest hold.
const HOLD_MAX: Duration = Duration::from_secs(600);

/// A setting that was raised and had to be lowered again within this time was raised too early.
pub(crate) const STABLE_AFTER: Duration = Duration::from_secs(600);

/// The server has this long to release commits after a change before the next one is considered.
/// A lowered number releases them with the standby's next reply, which the guard provokes.
pub(crate) const EFFECT: Duration = Duration::from_secs(1);

/// After a longer time without a look, what is seen may be of before: a server that was suspended has
/// not read its standbys' replies yet.
pub(crate) const BLINK_MAX: Duration = Duration::from_secs(1);

/// The server has this long to read them.
pub(crate) const SETTLE: Duration = Duration::from_secs(1);

/// The longest time between two looks that counts whole, as on a server that is overloaded or while
/// the guard connects again; a longer one counts as a blink.
pub(crate) const GAP_MAX: Duration = Duration::from_secs(15);
