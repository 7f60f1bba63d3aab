//! The statements of a mixed load on both sides, each with its verdict.

use serde::{Deserialize, Serialize};

use super::{MetricRatio, SlowdownReason};

/// What is said of one script of a mixed load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatementVerdict {
    /// It takes longer on B.
    Slower,
    /// It takes less time on B.
    Faster,
    /// The difference is smaller than the threshold.
    Equal,
    /// None of these is shown.
    CannotTell,
    /// It does something else on B: its time is not judged.
    DifferentResults,
    /// It fails on B, and not on A.
    Fails,
    /// It did not end on B within a multiple of its time on A.
    DoesNotEnd,
}

impl StatementVerdict {
    /// For people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            StatementVerdict::Slower => "slower",
            StatementVerdict::Faster => "faster",
            StatementVerdict::Equal => "equal",
            StatementVerdict::CannotTell => "cannot tell",
            StatementVerdict::DifferentResults => "different results",
            StatementVerdict::Fails => "fails on B",
            StatementVerdict::DoesNotEnd => "does not end on B",
        }
    }

    /// True if B is worse by it.
    #[must_use]
    pub fn is_worse(self) -> bool {
        !matches!(
            self,
            StatementVerdict::Faster | StatementVerdict::Equal | StatementVerdict::CannotTell
        )
    }
}

/// One script of a mixed load on both sides: a statement, or a transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatementComparison {
    /// The script's name.
    pub script: String,
    /// The share of all calls, 0 to 1: its weight.
    pub calls: f64,
    /// The share of the clients' time on A, 0 to 1.
    pub time: f64,
    /// The share of production's time that its statement takes there, 0 to 1; none where nothing is known of a
    /// production.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub production: Option<f64>,
    /// By itself: one client on each side in turn, which runs all scripts alike.
    pub alone: StatementTimes,
    /// Within the mix.
    pub together: StatementTimes,
    /// The verdict on what it does, and on its mean and its median time alone.
    pub verdict: StatementVerdict,
    /// What it does otherwise on B, or why it fails or does not end there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Why it is slower on B; none where it is not, or where neither server could explain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Box<SlowdownReason>>,
}

/// What B would need for production's statements, by the times of scripts that run by themselves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProductionForecast {
    /// The share of production's time of which the scripts of the load are, 0 to 1.
    pub covered: f64,
    /// The share of production's time of the scripts that ran in enough restarts on both sides.
    pub measured: f64,
    /// The time of these scripts on B ÷ the time on A, each weighted by its share of production's time; none where too few
    /// restarts measured them.
    pub time: Option<MetricRatio>,
}

impl ProductionForecast {
    /// Below this share of production's time the scripts are no answer for the whole.
    pub const COVERED_MIN: f64 = 0.8;
}

/// The times of one script. Of a side they are means over the restarts in which both sides ran it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatementTimes {
    /// Executions on A and on B.
    pub executions: [u64; 2],
    /// The mean time on A and on B, in milliseconds; none where there was no such restart.
    pub mean_ms: [Option<f64>; 2],
    /// The median time.
    pub median_ms: [Option<f64>; 2],
    /// B ÷ A of the means; none where there are too few restarts in which both sides ran it.
    pub mean: Option<MetricRatio>,
    /// B ÷ A of the medians, which a few slow executions do not move.
    pub median: Option<MetricRatio>,
}

impl StatementComparison {
    /// The error with which a share of the statements that are called slower, or faster, is not: it holds for all of
    /// them together, however they depend on each other.
    pub const FALSE_DISCOVERIES: f64 = 0.05;

    /// The share of A's time that B wins with it, or loses where it is negative, by the means.
    #[must_use]
    pub fn gain(&self) -> f64 {
        let ratio = self.together.mean.as_ref().or(self.alone.mean.as_ref());
        // A statement without a quotient is known to win or lose nothing; its verdict is "cannot
        // tell".
        ratio.map_or(0.0, |ratio| self.time * (1.0 - ratio.value))
    }
}
