//! The part of a request for a comparison that does not depend on the sides.

use std::time::Duration;

use record::comparison::{FailOn, Floor, Metric};

use crate::answer::StopCondition;
use crate::error::Error;
use crate::profile::Profiler;

/// The part of a request for a comparison that does not depend on the sides.
#[derive(Clone, Debug)]
pub struct ComparisonOptions {
    /// The user's name for the comparison, for the record.
    pub name: Option<String>,
    /// Compare A with a copy of itself.
    pub is_self: bool,
    /// The figures that decide; none for the usual ones.
    pub decides: Vec<Metric>,
    /// What fails the comparison, for the record.
    pub fail_on: Option<FailOn>,
    /// Stop when the interval of the first figure that decides is as narrow as this on either side,
    /// as a share.
    pub precision: f64,
    /// A difference below this share counts as none.
    pub threshold: f64,
    /// Stop as soon as the threshold is decided.
    pub by_threshold: bool,
    /// The condition on the first figure that decides, in the place of precision and threshold.
    pub until: Option<StopCondition>,
    /// The confidence of the figures that decide, together.
    pub confidence: f64,
    /// Measure for so long at most; building the servers is not part of it.
    pub max_time: Duration,
    /// Sample where the servers' CPU time goes.
    pub has_profile: bool,
    /// The sides that are sampled, so that their slow transactions are attributed to causes.
    pub tail: [bool; 2],
    /// The known difference between identical servers on this machine.
    pub floor: Floor,
    /// Of the order of blocks and of the keys.
    pub seed: u64,
    /// The command, for the record.
    pub command: String,
    /// Wall clock now, RFC 3339, for the record.
    pub started_at: String,
    /// The commit that is compared, for the record.
    pub commit: Option<String>,
}

impl ComparisonOptions {
    /// Checks that this machine can do what is asked, before anything is built.
    pub fn check(&self) -> Result<(), Error> {
        if self.has_profile { Profiler::check() } else { Ok(()) }
    }
}
