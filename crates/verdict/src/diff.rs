//! Two records of the same study, or of what they have in common: what has changed.
//!
//! Runs are not interleaved with each other, so rounds of one have no partner in the other: both
//! are resampled on their own. What changed on the machine between the two runs is in the
//! difference as well, and nobody can take it out again.

use record::{Status, Trial};
use spec::{Better, Metric, Study, metric};
use stats::equivalence::{self, Region};
use stats::{HEADLINE_ROUNDS_MIN, Interval, RESAMPLES, Resamples};

use crate::noise;
use crate::rounds::value_of;

/// One side of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Side<'r> {
    /// The study as it was run.
    pub study: &'r Study,
    /// Its trials.
    pub trials: &'r [Trial],
}

/// How one metric of one point differs between two records.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The point, `variant/scenario axis=value`.
    pub point: String,
    /// The metric.
    pub metric: &'static Metric,
    /// Mean over the first record's rounds.
    pub before: f64,
    /// Mean over the second record's rounds.
    pub after: f64,
    /// after ÷ before, with its interval; none where it has none.
    pub ratio: Option<Interval>,
    /// What it means.
    pub change: Change,
}

/// What a difference means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// Better, beyond what the machine's noise explains.
    Better,
    /// Worse, beyond what the machine's noise explains.
    Worse,
    /// The same for all practical purposes.
    Same,
    /// The interval is too wide, or rests on too few rounds.
    CannotTell,
}

impl Change {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Change::Better => "better",
            Change::Worse => "worse",
            Change::Same => "same",
            Change::CannotTell => "cannot tell",
        }
    }
}

/// What is compared: figures that have a better and a worse.
const METRICS: [&str; 5] =
    ["tps", "latency_p50_ms", "latency_p99_ms", "server_cpu_us_per_tx", "wal_bytes_per_tx"];

/// Compares every point that both have, in the order of the first.
#[must_use]
pub fn diff(before: Side<'_>, after: Side<'_>) -> Vec<Difference> {
    let region = region(before, after);
    let mut differences = Vec::new();
    for (index, point) in before.study.points.iter().enumerate() {
        let Some(other) = after.study.points.iter().position(|p| p.name == point.name) else {
            continue;
        };
        for metric in METRICS.into_iter().filter_map(metric) {
            let name = point.name.to_string();
            differences.extend(difference(
                name,
                metric,
                &values(before, index, metric),
                &values(after, other, metric),
                region,
            ));
        }
    }
    differences
}

fn difference(
    point: String,
    metric: &'static Metric,
    before: &[f64],
    after: &[f64],
    region: Region,
) -> Option<Difference> {
    let (mean_before, mean_after) = (stats::sample::mean(before)?, stats::sample::mean(after)?);
    let ratio = ratio(before, after);
    let change = ratio.as_ref().map_or(Change::CannotTell, |ratio| change(metric, ratio, region));
    let (before, after) = (mean_before, mean_after);
    Some(Difference { point, metric, before, after, ratio, change })
}

fn change(metric: &Metric, ratio: &Interval, region: Region) -> Change {
    if ratio.n < HEADLINE_ROUNDS_MIN {
        return Change::CannotTell;
    }
    match (region.judge(ratio), metric.better) {
        (equivalence::Difference::CannotTell, _) | (_, Better::Neither) => Change::CannotTell,
        (equivalence::Difference::Equal, _) => Change::Same,
        (equivalence::Difference::More, Better::Higher)
        | (equivalence::Difference::Less, Better::Lower) => Change::Better,
        (equivalence::Difference::More | equivalence::Difference::Less, _) => Change::Worse,
    }
}

/// after ÷ before of the means, each side resampled by itself; below six rounds, the widest ratio
/// that two rounds have.
fn ratio(before: &[f64], after: &[f64]) -> Option<Interval> {
    let point = quotient(stats::sample::mean(after)?, stats::sample::mean(before)?);
    let n = before.len().min(after.len());
    if n < HEADLINE_ROUNDS_MIN {
        let low = quotient(least(after), greatest(before));
        let high = quotient(greatest(after), least(before));
        let known = point.is_finite() && low.is_finite() && high.is_finite();
        let method = stats::Method::Range;
        return known.then_some(Interval { point, low, high, confidence: 0.0, n, method });
    }
    let mean_of = |values: &[f64], chosen: &[usize]| {
        chosen.iter().map(|index| values[*index]).sum::<f64>() / chosen.len() as f64
    };
    let [first, second] = SEEDS;
    let before_resamples = Resamples::new(before.len(), RESAMPLES, first);
    let after_resamples = Resamples::new(after.len(), RESAMPLES, second);
    let pairs = after_resamples.iter().zip(before_resamples.iter());
    let ratios: Vec<f64> =
        pairs.map(|(a, b)| quotient(mean_of(after, a), mean_of(before, b))).collect();
    stats::bootstrap::expanded_percentile(point, &ratios, n, 0.95).ok()
}

fn quotient(after: f64, before: f64) -> f64 {
    if before > 0.0 { after / before } else { f64::NAN }
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NAN, f64::min)
}

fn greatest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NAN, f64::max)
}

/// Two sides must not draw the same rounds. The same two records give the same answer.
const SEEDS: [u64; 2] = [1, 2];

/// What counts as the same: 2 %, or the noise of the noisier of the two machines.
fn region(before: Side<'_>, after: Side<'_>) -> Region {
    let noise = |side: Side<'_>| noise::noise(side.study, side.trials).map_or(0.0, |n| n.percent);
    let noise = noise(before).max(noise(after)) / 100.0;
    if noise > 0.02 { Region::within(noise) } else { Region::DEFAULT }
}

fn values(side: Side<'_>, point: usize, metric: &Metric) -> Vec<f64> {
    let trials = side.trials.iter().filter(|trial| {
        trial.status == Status::Done
            && side.study.point(&trial.variant, &trial.scenario, &trial.axes) == Some(point)
    });
    trials.filter_map(|trial| value_of(trial, metric.name, "")).collect()
}
