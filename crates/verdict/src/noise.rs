//! The noise of this machine: by how much the same thing differs from itself.

use std::collections::BTreeMap;

use record::{AttemptEnding, Trial};
use spec::{Metric, Study, metrics};
use stats::resolution::{self, Resolution};

use crate::rounds::value_of;

/// By how much one metric of the same thing, measured twice, differs, at 95 %: what a difference
/// must exceed to be seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MetricNoise {
    /// The metric.
    pub metric: &'static Metric,
    /// By how many percent one measurement differs from another.
    pub one_percent: f64,
    /// By how many percent two means of as many rounds as were run differ.
    pub means_percent: f64,
    /// Number of those rounds.
    pub rounds: usize,
    /// Source of the noise.
    pub source: NoiseSource,
}

impl MetricNoise {
    /// By how much one measurement differs from another and the means of all rounds do, in words: `4.5 %`, and
    /// from 100 % on a factor, `a factor of 4.5`.
    #[must_use]
    pub fn words(&self) -> [String; 2] {
        [self.one_percent, self.means_percent].map(|percent| match percent / 100.0 + 1.0 {
            factor if factor < 2.0 => terms::percent(percent / 100.0),
            factor if factor < FACTOR_MAX => format!("a factor of {}", terms::figure(factor)),
            // So few or so unequal measurements give no figure that means something.
            _ => format!("a factor of more than {FACTOR_MAX}"),
        })
    }
}

/// A larger factor between measurements of the same thing says only that they cannot be compared.
const FACTOR_MAX: f64 = 100.0;

/// Source of a metric's noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoiseSource {
    /// A true A/A: a point and its twin, measured in the same rounds. What whole rounds have in
    /// common is not in it, as it is not in a comparison of two points.
    Twin {
        /// Index of the point in the study.
        point: usize,
    },
    /// Of the rounds of points, where nothing was measured twice: an upper bound for what is
    /// compared within rounds.
    Rounds {
        /// Number of points.
        points: usize,
    },
}

/// Metrics that are compared, and so have noise: those that have a better and a worse.
const METRICS: [&Metric; 5] = [
    &metrics::TPS,
    &metrics::LATENCY_P50_MS,
    &metrics::LATENCY_P99_MS,
    &metrics::SERVER_CPU_US_PER_TX,
    &metrics::WAL_BYTES_PER_TX,
];

/// The metrics that are compared between points and between records.
pub(crate) fn compared() -> impl Iterator<Item = &'static Metric> {
    METRICS.into_iter()
}

/// The noise of each metric that is compared.
pub(crate) fn noise(study: &Study, trials: &[Trial]) -> Vec<MetricNoise> {
    compared().filter_map(|metric| noise_of(study, trials, metric)).collect()
}

fn noise_of(study: &Study, trials: &[Trial], metric: &'static Metric) -> Option<MetricNoise> {
    let by_point = by_point(study, trials, metric);
    let noise = |found: Resolution, source: NoiseSource| MetricNoise {
        metric,
        one_percent: (found.one - 1.0) * 100.0,
        means_percent: (found.means - 1.0) * 100.0,
        rounds: found.n,
        source,
    };
    let twin = study.twin.and_then(|twin| {
        let (first, second) = (by_point.get(&twin.of)?, by_point.get(&twin.point)?);
        let in_both = |round: &usize| Some((*first.get(round)?, *second.get(round)?));
        let (first, second): (Vec<f64>, Vec<f64>) = first.keys().filter_map(in_both).unzip();
        let found = resolution::of_pairs(&first, &second, CONFIDENCE).ok()?;
        Some(noise(found, NoiseSource::Twin { point: twin.of }))
    });
    twin.or_else(|| {
        let repeated = by_point.values().filter(|rounds| rounds.len() >= 2);
        let repeated: Vec<Vec<f64>> =
            repeated.map(|rounds| rounds.values().copied().collect()).collect();
        let slices: Vec<&[f64]> = repeated.iter().map(Vec::as_slice).collect();
        let found = resolution::of_rounds(&slices, CONFIDENCE).ok()?;
        Some(noise(found, NoiseSource::Rounds { points: slices.len() }))
    })
}

/// The values of each point by round.
fn by_point(
    study: &Study,
    trials: &[Trial],
    metric: &Metric,
) -> BTreeMap<usize, BTreeMap<usize, f64>> {
    let mut by_point: BTreeMap<usize, BTreeMap<usize, f64>> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| trial.ending == AttemptEnding::Done) {
        // In open loop throughput is what was asked for, and its spread says nothing.
        let point = study.point(&trial.variant, &trial.scenario, &trial.axes);
        let closed = point.filter(|point| {
            let workloads = &study.points[*point].workloads;
            workloads.iter().all(|workload| workload.pace == spec::Pace::Closed)
        });
        if let (Some(point), Some(value)) = (closed, value_of(trial, metric, ""))
            && value >= 0.0
        {
            by_point.entry(point).or_default().insert(trial.round, value);
        }
    }
    by_point.values_mut().for_each(raise_standstills);
    by_point.retain(|_, rounds| rounds.values().all(|value| *value > 0.0));
    by_point
}

/// A round in which nothing was done belongs to the noise, and has no logarithm: it counts as a
/// hundredth of the median.
fn raise_standstills(rounds: &mut BTreeMap<usize, f64>) {
    let values: Vec<f64> = rounds.values().copied().collect();
    let least = stats::sample::median(&values).expect("a point has a round") * STANDSTILL;
    rounds.values_mut().for_each(|value| *value = value.max(least));
}

/// Value of a round in which nothing was done, as a share of the median.
const STANDSTILL: f64 = 0.01;

const CONFIDENCE: f64 = 0.95;
