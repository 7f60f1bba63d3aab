//! The differences between the servers' instances: from one restart to the next, and between the copy of
//! the data and the original.

use std::collections::BTreeMap;

use record::comparison::{
    ComparedMetric, InstanceFindings, MetricRatio, NoiseFloor, ServerRenewal,
};
use stats::{ConfidenceInterval, student};

use crate::pair::contest::CONFIDENCE;
use crate::pair::observation::{BlockOctet, RestartSegment, SideObservation};

/// Segments from which on their spread is told.
const SEGMENTS_MIN: usize = 5;

/// The cost of restarts and of the work before them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RestartCost {
    /// Seconds of all restarts, warming up included.
    pub(crate) restart_s: f64,
    /// Seconds of VACUUM and CHECKPOINT of A and of B.
    pub(crate) tidy_s: [f64; 2],
    pub(crate) times: usize,
}

/// The differences that these segments have shown.
pub(crate) fn instances(
    segments: &[RestartSegment],
    renewal: ServerRenewal,
    floor: &NoiseFloor,
    cost: RestartCost,
) -> InstanceFindings {
    let spreads =
        ComparedMetric::ALL.into_iter().filter_map(|one| Some((one, spread(segments, one)?)));
    let mean = |seconds: f64| seconds / cost.times.max(1) as f64;
    InstanceFindings {
        renewal,
        segments: segments.len(),
        spread: spreads.collect(),
        copied: (renewal == ServerRenewal::Exchanged).then(|| copied(segments)).flatten(),
        restart_s: mean(cost.restart_s),
        tidy_s: cost.tidy_s.map(mean),
        floor: floor.clone(),
    }
}

/// The standard deviation of what both halves of a segment have in common: the root of their
/// covariance, of logarithms. What blocks do by chance is in one half only.
fn spread(segments: &[RestartSegment], metric: ComparedMetric) -> Option<f64> {
    let logs = |part: usize| -> Vec<Option<f64>> {
        segments.iter().map(|segment| log_ratio(&segment.parts[part], metric)).collect()
    };
    let both: BTreeMap<usize, (f64, f64)> = logs(0)
        .into_iter()
        .zip(logs(1))
        .enumerate()
        .filter_map(|(index, (one, other))| Some((index, (one?, other?))))
        .collect();
    let n = both.len();
    if n < SEGMENTS_MIN {
        return None;
    }
    let (one, other): (Vec<f64>, Vec<f64>) = both.into_values().unzip();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / n as f64;
    let means = (mean(&one), mean(&other));
    let products = one.iter().zip(&other).map(|(a, b)| (a - means.0) * (b - means.1));
    Some((products.sum::<f64>() / (n - 1) as f64).max(0.0).sqrt())
}

/// ln(B ÷ A) of a part; none where it has none.
fn log_ratio(part: &BlockOctet, metric: ComparedMetric) -> Option<f64> {
    let value = |half: &SideObservation| match (metric, metric.quantile()) {
        (ComparedMetric::Throughput, _) => Some(half.rate()),
        (_, Some(quantile)) => half.quantile_ns(quantile).map(|ns| ns as f64),
        (used, None) => Some(half.used.get(&used)? / (half.transactions + half.lead) as f64),
    };
    let [a, b] = part.sides.each_ref().map(value);
    let log = (b? / a?).ln();
    log.is_finite().then_some(log)
}

/// Throughput with the copied files ÷ with the original ones: half of what B ÷ A differs by between
/// segments in which B has the copy and those in which A has it.
fn copied(segments: &[RestartSegment]) -> Option<MetricRatio> {
    let of = |is_exchanged: bool| -> Vec<f64> {
        let own = segments.iter().filter(|segment| segment.is_exchanged == is_exchanged);
        own.filter_map(|segment| log_ratio(&segment.whole(), ComparedMetric::Throughput)).collect()
    };
    let (copy_is_b, copy_is_a) = (of(false), of(true));
    let found = student::difference_interval(&copy_is_b, &copy_is_a, CONFIDENCE).ok()?;
    let ConfidenceInterval { point, low, high, confidence, n, method } =
        found.map(|bound| (bound / 2.0).exp());
    let method = method.name().to_owned();
    Some(MetricRatio { value: point, low, high, confidence, n, method })
}

#[cfg(test)]
mod tests {
    use stats::Prng;

    use super::*;

    fn normal(prng: &mut Prng) -> f64 {
        let radius = (-2.0 * prng.unit().max(1e-300).ln()).sqrt();
        radius * (std::f64::consts::TAU * prng.unit()).cos()
    }

    /// Instances that differ by 1.5 %, octets by 2 %, and a copy that is 3 % faster than the original.
    fn segments(n: usize) -> Vec<RestartSegment> {
        let mut prng = Prng::new(11);
        let of = |index: usize| {
            let mut segment =
                RestartSegment { is_exchanged: index % 2 == 1, ..RestartSegment::default() };
            let copy = if segment.is_exchanged { -0.03 } else { 0.03 };
            let lasting = 0.015 * normal(&mut prng) + copy;
            for _ in 0..8 {
                let log = lasting + 0.02 * normal(&mut prng);
                let half = |log: f64| SideObservation {
                    transactions: (1e6 * log.exp()) as u64,
                    ..SideObservation::default()
                };
                segment.add(&BlockOctet { sides: [half(0.0), half(log)] }, 4);
            }
            segment
        };
        (0..n).map(of).collect()
    }

    #[test]
    fn what_lasts_is_told_from_what_octets_do() {
        let segments = segments(400);
        let cost = RestartCost { restart_s: 800.0, tidy_s: [40.0, 80.0], times: 400 };
        let found = instances(&segments, ServerRenewal::Exchanged, &NoiseFloor::default(), cost);
        let copied = found.copied.as_ref().expect("both orders");
        assert!((copied.value / 1.03 - 1.0).abs() < 0.003, "{copied:?}");
        assert!(copied.low < 1.0305 && copied.high > 1.0305, "{copied:?}");
        // 1.5 % of instances, and the exchange of files: 3 % either way.
        let spread = found.spread[&ComparedMetric::Throughput];
        assert!((spread - (0.015_f64.powi(2) + 0.03 * 0.03).sqrt()).abs() < 0.003, "{spread}");
        assert_eq!((found.restart_s, found.tidy_s), (2.0, [0.1, 0.2]));
        let kept = instances(&segments[..4], ServerRenewal::Kept, &NoiseFloor::default(), cost);
        assert!(kept.copied.is_none() && kept.spread.is_empty());
    }
}
