//! Claims that are measured in pairs: both points' servers stand at once and are loaded in turn, in
//! short blocks, until the interval of the quotient is narrow enough.
//!
//! What the machine does to one block it also does to its neighbours, so that pairs show differences
//! that whole trials, minutes apart, cannot.

use stats::Expectation;

use crate::catalogue::{Metric, MetricDirection};
use crate::fields::{Fields, duration_ms, text};
use crate::problem::Problems;
use crate::value::Value;

/// Settings for measuring a claim's points in pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairSettings {
    /// Length of a block in milliseconds; none lets a pilot find it.
    pub block_ms: Option<u64>,
    /// Measuring stops when the interval of the throughput's ratio reaches no further than this on
    /// either side, as a share.
    pub precision: f64,
    /// It stops after so long at the latest, in milliseconds. What comes before the first block is part of
    /// it: servers that start, vacuum, a checkpoint, warming up.
    pub max_ms: u64,
    /// It also stops as soon as every claim about these points is judged.
    pub until_judged: bool,
    /// A difference below this share counts as none; the precision where none is given. A claim that
    /// expects nothing else expects the numerator to be worse by no more than this.
    pub threshold: Option<f64>,
}

/// Longest time for which pairs are measured, unless the claim says otherwise.
const MAX_MS: u64 = 600_000;

/// Lengths that a block may have, in milliseconds.
const BLOCK_MS: std::ops::RangeInclusive<u64> = 100..=10_000;

const HINT: &str = "as in pairs = { block = \"2s\", precision = \"2%\", max = \"10min\" }";

impl PairSettings {
    /// Reads `pairs` of a claim.
    pub(crate) fn parse(value: &Value, problems: &Problems) -> Option<PairSettings> {
        let fields = Fields::of("pairs", value, problems)?;
        let block = fields.value("block");
        let block_ms = block.and_then(|value| duration_ms("block", value, problems));
        if let (Some(value), true) = (block, block_ms.is_some_and(|ms| !BLOCK_MS.contains(&ms))) {
            problems.hinted(&value.span, "a block takes 100 ms to 10 s", HINT);
        }
        let max_ms = fields.duration_ms("max").unwrap_or(MAX_MS);
        let share = |key: &'static str, value: &Value| {
            let share = percent(text(key, value, problems)?);
            if share.is_none() {
                let message = format!("{key} must be a percentage between 0 and 100");
                problems.hinted(&value.span, message, HINT);
            }
            share
        };
        let precision = fields.required("precision").and_then(|value| share("precision", value));
        let threshold = fields.value("threshold").and_then(|value| share("threshold", value));
        let until = fields.value("until");
        let until_judged = until.and_then(|value| {
            let word = text("until", value, problems)?;
            let is_known = ["judged", "precise"].contains(&word);
            if !is_known {
                let hint = "\"judged\" also stops when every claim about these points is judged";
                problems.hinted(&value.span, "until is \"precise\" or \"judged\"", hint);
            }
            Some(word == "judged")
        });
        let until_judged = until_judged.unwrap_or(false);
        fields.finish();
        Some(PairSettings { block_ms, precision: precision?, max_ms, until_judged, threshold })
    }

    /// The narrower precision, the shorter block and the longer time of two; measured to the precision if either asks for it.
    pub(crate) fn or(self, other: PairSettings) -> PairSettings {
        PairSettings {
            block_ms: self.block_ms.min(other.block_ms).or(self.block_ms).or(other.block_ms),
            precision: self.precision.min(other.precision),
            max_ms: self.max_ms.max(other.max_ms),
            until_judged: self.until_judged && other.until_judged,
            threshold: match (self.threshold, other.threshold) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            },
        }
    }

    /// The range in which a ratio of this metric is expected where the claim says nothing of it; its bound
    /// has four digits, as it is shown.
    pub(crate) fn expected(&self, metric: &Metric) -> Option<Expectation> {
        let share = 1.0 + self.threshold?;
        let rounded = |bound: f64| (bound * 1e4).round() / 1e4;
        match metric.better {
            MetricDirection::Higher => Some(Expectation::AtLeast(rounded(1.0 / share))),
            MetricDirection::Lower => Some(Expectation::AtMost(rounded(share))),
            MetricDirection::Neither => None,
        }
    }
}

/// A share, written as `2%`.
fn percent(text: &str) -> Option<f64> {
    let number: f64 = text.strip_suffix('%')?.trim().parse().ok()?;
    (number > 0.0 && number < 100.0).then_some(number / 100.0)
}
