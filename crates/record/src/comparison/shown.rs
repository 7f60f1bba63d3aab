//! What two sides have shown that were loaded in turn, block by block.

use serde::{Deserialize, Serialize};
use stats::sequence::LookSchedule;

use super::{
    ComparedMetric, ComparedTails, ComparisonFigure, ComparisonStop, CpuProfile, InstanceFindings,
    InterimLook, MetricRatio, PlanPair, ProductionForecast, RareEvents, ServerDifference,
    SideBackgroundWork, StatementComparison, StatementVerdict, WaitKindShare, WorkComparison,
};
use crate::MeasuringConditions;

/// Looks that were planned beforehand, for a comparison of a fixed length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedLooks {
    /// How many, at equal distances.
    pub of: u32,
    /// Segments that were planned.
    pub segments: usize,
    /// The number of the look at which it ended, from 1; none where it ended between two looks.
    pub last: Option<u32>,
}

impl PlannedLooks {
    /// The look after so many segments, from 1; none between two looks.
    #[must_use]
    pub fn at(self, segments: usize) -> Option<u32> {
        let of = self.of.max(1) as usize;
        // The last one of each part, rounded up.
        (1..=of)
            .find(|number| (number * self.segments).div_ceil(of) == segments)
            .map(|one| one as u32)
    }
}

/// What two sides have shown that were loaded in turn, of a comparison or of a study's pairs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PairResults {
    /// Clients of each side.
    pub clients: u32,
    /// Length of a block, rest included, in milliseconds; its usual length with `turn`.
    pub block_ms: u64,
    /// Transactions of each client in a block, where transactions are too long for blocks of a fixed
    /// length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// The rest at its end, in milliseconds.
    pub rest_ms: u64,
    /// Pairs of neighbouring blocks that count.
    pub pairs: usize,
    /// Duration of the measurement in seconds, pilot included.
    pub seconds: f64,
    /// The seed of the order of blocks and of the keys.
    pub seed: u64,
    /// Reason why it ended.
    pub stop: ComparisonStop,
    /// The figures that were compared.
    pub figures: Vec<ComparisonFigure>,
    /// Throughput of one half of A's blocks ÷ that of the other half: what identical sides differed by
    /// in this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identical: Option<MetricRatio>,
    /// Number of times that the servers were made anew, and the difference that this makes to figures.
    pub instances: InstanceFindings,
    /// The correlation of neighbouring segments, where they depend on each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub neighbours: Option<f64>,
    /// B ÷ A of throughput in the second halves of segments ÷ that in the first halves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trend: Option<MetricRatio>,
    /// The looks that were planned beforehand; none where it could stop at any time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<PlannedLooks>,
    /// Rare events of both sides; none where transactions are too long for them to be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rare: Option<RareEvents>,
    /// Work of the servers of A and of B besides the load.
    #[serde(default)]
    pub background: [SideBackgroundWork; 2],
    /// Wait events of the clients, the largest difference first.
    pub waits: Vec<WaitKindShare>,
    /// The slow transactions of both sides by cause, where that was asked for.
    #[serde(default, skip_serializing_if = "ComparedTails::is_empty")]
    pub tails: ComparedTails,
    /// The scripts of a mixed load, those with the largest effect on A's time first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<StatementComparison>,
    /// What B would need for production's statements, where scripts were made from them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub production: Option<ProductionForecast>,
    /// Statements whose plans differ or cost most.
    #[serde(default)]
    pub plans: Vec<PlanPair>,
    /// Profile of the servers' CPU time, if one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<CpuProfile>,
    /// Observations of machine and generator.
    pub conditions: MeasuringConditions,
    /// The work that both sides did.
    #[serde(default)]
    pub work: WorkComparison,
    /// Collations, settings, extensions and statistics in which the sides differ although no option names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ground: Vec<ServerDifference>,
    /// The reasons to doubt the answer.
    pub doubts: Vec<String>,
    /// The ratios as they were after each segment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looks: Vec<InterimLook>,
}

impl PairResults {
    /// The looks at which its intervals are valid: the planned one that was the last, or any.
    #[must_use]
    pub fn looked_at(&self) -> LookSchedule {
        match self.planned {
            Some(PlannedLooks { last: Some(number), of, .. }) => {
                LookSchedule::Planned { number, of }
            }
            _ => LookSchedule::Any,
        }
    }

    /// A figure.
    pub fn figure(&self, metric: ComparedMetric) -> Option<&ComparisonFigure> {
        self.figures.iter().find(|figure| figure.metric == metric)
    }

    /// Takes back every verdict where the sides differ in what no option names.
    pub fn refuse_other_ground(&mut self, ground: Vec<ServerDifference>, threshold: f64) {
        self.conditions.is_other_ground = !ground.is_empty();
        // Without a difference between the sides, every verdict stands.
        let Some(first) = ground.first().map(ServerDifference::words) else { return };
        let conditions = self.conditions;
        self.figures = std::mem::take(&mut self.figures)
            .into_iter()
            .map(|figure| figure.under(&conditions, threshold))
            .collect();
        let is_of_speed = |verdict| {
            use StatementVerdict::{Equal, Faster, Slower};
            matches!(verdict, Equal | Faster | Slower)
        };
        for one in self.statements.iter_mut().filter(|one| is_of_speed(one.verdict)) {
            one.verdict = StatementVerdict::CannotTell;
            one.why = Some(first.clone());
        }
        let told = ground.iter().map(|one| format!("{}: no option names it", one.words()));
        self.doubts.splice(..0, told);
        self.ground = ground;
    }

    /// `blocks of 350 ms`, `blocks of one transaction of each client`
    pub fn blocks(&self) -> String {
        match self.turn {
            None => format!("blocks of {} ms", self.block_ms),
            Some(1) => "blocks of one transaction of each client".to_owned(),
            Some(n) => format!("blocks of {n} transactions of each client"),
        }
    }
}
