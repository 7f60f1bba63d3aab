//! The moments of a timeline's actions: planned, possible, actual.

use serde::{Deserialize, Serialize};

use crate::Moment;

/// An action of a timeline and its moments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimedAction {
    /// The verb and what it was done to, as in "kill standby1".
    pub action: String,
    /// The moment at which it was due.
    pub planned: Moment,
    /// The moment from which it could be done, at the earliest that at which it was due: the node had the
    /// role that the action asks for, and what an earlier action did to the node had ended.
    pub possible: Moment,
    /// The moment at which it began; none where it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<Moment>,
    /// The moment at which its effect was proved, or its failure was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Moment>,
    /// How late it may begin after it is possible, in nanoseconds.
    pub limit_ns: u64,
    /// Why it was left out, where the study lets it be: there was nobody to do it to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
}

impl TimedAction {
    /// How late it began after it was possible, in nanoseconds; none where it did not begin.
    pub fn late_ns(&self) -> Option<u64> {
        self.began.map(|began| began.since(self.possible))
    }

    /// True if it began later than its limit allows: the schedule was another one than the study's.
    pub fn is_late(&self) -> bool {
        self.late_ns().is_some_and(|late| late > self.limit_ns)
    }
}
