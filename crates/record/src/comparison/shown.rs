//! What two sides have shown that were loaded in turn, block by block.

use serde::{Deserialize, Serialize};

use super::{
    Background, Figure, Instances, Look, Metric, PlanPair, Profile, Ratio, Stop, Tails, Wait,
};
use crate::Conditions;

/// What two sides have shown that were loaded in turn, of a comparison or of a study's pairs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shown {
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
    /// Of the order of blocks and of the keys.
    pub seed: u64,
    /// Reason why it ended.
    pub stop: Stop,
    /// The figures that were compared.
    pub figures: Vec<Figure>,
    /// Throughput of one half of A's blocks ÷ that of the other half: what identical sides differed by
    /// in this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identical: Option<Ratio>,
    /// Number of times that the servers were made anew, and the difference that this makes to figures.
    pub instances: Instances,
    /// Work of the servers of A and of B besides the load.
    #[serde(default)]
    pub background: [Background; 2],
    /// Wait events of the clients, the largest difference first.
    pub waits: Vec<Wait>,
    /// The slow transactions of both sides by cause, where that was asked for.
    #[serde(default, skip_serializing_if = "Tails::is_empty")]
    pub tails: Tails,
    /// Statements whose plans differ or cost most.
    #[serde(default)]
    pub plans: Vec<PlanPair>,
    /// Profile of the servers' CPU time, if one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// Observations of machine and generator.
    pub conditions: Conditions,
    /// The reasons to doubt the answer.
    pub doubts: Vec<String>,
    /// The ratios as they were after each segment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looks: Vec<Look>,
}

impl Shown {
    /// A figure.
    pub fn figure(&self, metric: Metric) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.metric == metric)
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
