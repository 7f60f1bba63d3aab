//! The part of a request for a comparison that does not depend on the sides.

use std::collections::BTreeMap;
use std::time::Duration;

use load::ClientGroup;
use record::comparison::{ComparedMetric, FailOn, NoiseFloor};

use crate::pair::answer::{StopCondition, StoppingRule};
use crate::pair::error::PairError;
use crate::pair::measurement::{PairJudge, PairPlan};
use crate::pair::profile::Profiler;

/// The part of a request for a comparison that does not depend on the sides.
#[derive(Clone, Debug)]
pub struct ComparisonOptions {
    /// The user's name for the comparison, for the record.
    pub name: Option<String>,
    /// Compare A with a copy of itself.
    pub is_self: bool,
    /// The figures that decide; none for the usual ones.
    pub decides: Vec<ComparedMetric>,
    /// What fails the comparison, for the record.
    pub fail_on: Option<FailOn>,
    /// Stop when the interval of the first figure that decides is as narrow as this on either side,
    /// as a share.
    pub precision: f64,
    /// A difference below this share counts as none.
    pub threshold: f64,
    /// Stop as soon as the threshold is decided.
    pub by_threshold: bool,
    /// Standstills that are as rare as this must be excluded.
    pub horizon: Option<Duration>,
    /// From one restart to the next; as is usual without it.
    pub segment: Option<Duration>,
    /// Look only at moments that are planned before the first segment.
    pub is_planned: bool,
    /// The condition on the first figure that decides, in the place of precision and threshold.
    pub until: Option<StopCondition>,
    /// The confidence of the figures that decide, together.
    pub confidence: f64,
    /// Differences of the sides that are meant, besides those that options make; none where all are, as of the commits
    /// of a bisection.
    pub differs: Option<Vec<String>>,
    /// Measure for so long at most; building the servers is not part of it.
    pub max_time: Duration,
    /// Sample where the servers' CPU time goes.
    pub has_profile: bool,
    /// The sides that are sampled, so that their slow transactions are attributed to causes.
    pub tail: [bool; 2],
    /// The known difference between identical servers on this machine.
    pub floor: NoiseFloor,
    /// The seed of the order of blocks and of the keys.
    pub seed: u64,
    /// The share of production's time that the statements of each script take there, by the script's name; empty where
    /// nothing is known of a production.
    pub time_shares: BTreeMap<String, f64>,
    /// The command, for the record.
    pub command: String,
    /// Wall clock now, RFC 3339, for the record.
    pub started_at: String,
    /// The commit that is compared, for the record.
    pub commit: Option<String>,
}

impl ComparisonOptions {
    /// What is asked of two sides that are loaded by `lanes` threads.
    #[must_use]
    pub fn plan(&self, workloads: [Vec<ClientGroup>; 2], lanes: u32) -> PairPlan {
        let ComparisonOptions {
            precision,
            threshold,
            by_threshold,
            is_planned,
            until,
            confidence,
            ..
        } = *self;
        PairPlan {
            workloads,
            lanes,
            seed: self.seed,
            floor: self.floor.clone(),
            rule: StoppingRule {
                deciding: self.decides.clone(),
                precision,
                threshold,
                by_threshold,
                until,
                claims: Vec::new(),
                is_planned,
                horizon_s: self.horizon.map(|horizon| horizon.as_secs_f64()),
            },
            judge: PairJudge::Comparison { confidence, keeps_figures: !self.decides.is_empty() },
            has_same_rows: true,
            block_ms: None,
            segment: self.segment,
            has_profile: self.has_profile,
            tail: self.tail,
            time_shares: self.time_shares.clone(),
            max_time: self.max_time,
        }
    }

    /// Checks that this machine can do what is asked, before anything is built.
    pub fn check(&self) -> Result<(), PairError> {
        if self.has_profile { Profiler::check() } else { Ok(()) }
    }
}
