//! The figures of a comparison: what each side shows, and B ÷ A with its interval over segments.

use record::Series;
use record::comparison::{Instances, Metric, Ratio, Renewal};
use stats::sequence::{self, Place, Term, totals};
use stats::{Interval, NoInterval};

use crate::answer;
use crate::observation::{Half, Octet};

/// How certain an interval of a figure is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Confidence {
    /// Of each figure that decides.
    pub(crate) deciding: f64,
    /// Which ones decide.
    pub(crate) metrics: [Metric; 2],
    /// Of the others.
    pub(crate) other: f64,
}

/// One figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// What it is.
    pub metric: Metric,
    /// Of side A and of side B, in the metric's unit.
    pub sides: [f64; 2],
    /// B ÷ A; none where there is too little to compute an interval from.
    pub ratio: Option<Interval>,
}

impl Figure {
    /// Widens an interval whose servers were never restarted by what instances differ by: the
    /// difference that they happen to have is the same at every look.
    pub(crate) fn allow_for(&mut self, instances: &Instances) {
        if instances.renewal != Renewal::Kept {
            return;
        }
        let lasting = instances.floor(self.metric).ln_1p();
        self.ratio = self.ratio.map(|ratio| {
            let wider = |from: f64, to: f64| (to / from).ln().hypot(lasting).exp();
            let (low, high) = (wider(ratio.low, ratio.point), wider(ratio.point, ratio.high));
            Interval { low: ratio.point / low, high: ratio.point * high, ..ratio }
        });
    }

    /// As a record has it, with its verdict. A difference below `threshold`, a share, is none; below
    /// the floor of the instances nothing is said. The answer rests on the figures `deciding`.
    #[must_use]
    pub fn judged(
        &self,
        threshold: f64,
        deciding: [Metric; 2],
        instances: &Instances,
    ) -> record::comparison::Figure {
        let ratio = self.ratio.map(|ratio| Ratio {
            value: ratio.point,
            lower: ratio.low,
            upper: ratio.high,
            confidence: ratio.confidence,
            n: ratio.n,
            method: ratio.method.name().to_owned(),
        });
        let floor = instances.floor(self.metric);
        record::comparison::Figure {
            metric: self.metric,
            unit: self.metric.unit().to_owned(),
            a: self.sides[0],
            b: self.sides[1],
            b_over_a: ratio,
            verdict: answer::verdict(self.metric, self.ratio.as_ref(), threshold, floor),
            deciding: deciding.contains(&self.metric),
        }
    }
}

/// All figures that these segments give. `active_s` is the time in all of them in which one side
/// begins transactions.
pub(crate) fn figures(segments: &[Octet], active_s: f64, confidence: Confidence) -> Vec<Figure> {
    let figure = |metric: Metric| {
        let level = match confidence.metrics.contains(&metric) {
            true => confidence.deciding,
            false => confidence.other,
        };
        match metric.quantile() {
            Some(quantile) => latency(segments, metric, quantile, level),
            None => rate(segments, metric, active_s, level),
        }
    };
    Metric::ALL.into_iter().filter_map(figure).collect()
}

/// A quotient of sums over segments.
fn rate(segments: &[Octet], metric: Metric, active_s: f64, confidence: f64) -> Option<Figure> {
    let column = |of: &dyn Fn(&Half) -> Option<f64>| -> Option<[Vec<f64>; 2]> {
        let side = |index: usize| -> Option<Vec<f64>> {
            segments.iter().map(|segment| of(&segment.sides[index])).collect()
        };
        Some([side(0)?, side(1)?])
    };
    let transactions = column(&|half| Some(half.transactions as f64))?;
    let all = column(&|half| Some((half.transactions + half.lead) as f64))?;
    let amount = match metric {
        Metric::Throughput => None,
        used => Some(column(&|half| half.used.get(&used).copied())?),
    };
    let sum = |values: &[f64]| values.iter().sum::<f64>();
    let term = |values, place| Term { values, place };
    let [tx_a, tx_b] = &transactions;
    let (sides, ratio) = match &amount {
        Some([a, b]) => {
            let [all_a, all_b] = &all;
            let terms = [
                term(b.as_slice(), Place::Above),
                term(all_b, Place::Below),
                term(a, Place::Below),
                term(all_a, Place::Above),
            ];
            let sides = [sum(a) / sum(all_a), sum(b) / sum(all_b)];
            (sides, totals(&terms, confidence))
        }
        None => {
            let sides = [sum(tx_a) / active_s, sum(tx_b) / active_s];
            (sides, ratio(&counted(segments), confidence))
        }
    };
    Some(Figure { metric, sides, ratio: ratio.ok() })
}

/// Samples beyond a quantile that a unit of the comparison needs on either side: with fewer, the
/// quantile is close to the maximum and jumps.
const BEYOND_MIN: f64 = 20.0;

/// Samples of each side that a unit needs.
fn samples_min(quantile: f64) -> u64 {
    (BEYOND_MIN / (1.0 - quantile)).round() as u64
}

/// Transactions of each side that an interval of a quantile takes at least.
pub(crate) fn transactions_min(quantile: f64) -> u64 {
    samples_min(quantile) * sequence::OBSERVATIONS_MIN as u64
}

/// A quantile of latency.
fn latency(segments: &[Octet], metric: Metric, quantile: f64, confidence: f64) -> Option<Figure> {
    let series = quantiles(segments, metric, quantile)?;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let sides = [mean(&series.below), mean(&series.above)];
    Some(Figure { metric, sides, ratio: ratio(&series, confidence).ok() })
}

/// B ÷ A of a series.
fn ratio(series: &Series, confidence: f64) -> Result<Interval, NoInterval> {
    sequence::ratio(&series.above, &series.below, confidence)
}

/// A quantile, unit by unit. Segments are merged until each side has enough samples; a unit that is
/// not full counts in none.
fn quantiles(segments: &[Octet], metric: Metric, quantile: f64) -> Option<Series> {
    let needed = samples_min(quantile);
    let (mut below, mut above) = (Vec::new(), Vec::new());
    let mut unit = Octet::default();
    for segment in segments {
        unit.absorb(segment);
        if unit.sides.iter().any(|side| side.all() < needed) {
            continue;
        }
        for (values, side) in [&mut below, &mut above].into_iter().zip(&unit.sides) {
            values.push(side.quantile_ns(quantile)? as f64 / 1e6);
        }
        unit = Octet::default();
    }
    (!below.is_empty()).then(|| Series::new(metric, above, below))
}

/// What the ratios of throughput and of latencies are computed from.
pub(crate) fn series(segments: &[Octet]) -> Vec<Series> {
    let of = |metric: Metric| match (metric, metric.quantile()) {
        (Metric::Throughput, _) => Some(counted(segments)),
        (_, Some(quantile)) => quantiles(segments, metric, quantile),
        _ => None,
    };
    Metric::ALL.into_iter().filter_map(of).collect()
}

/// Transactions, segment by segment.
fn counted(segments: &[Octet]) -> Series {
    let side = |index: usize| -> Vec<f64> {
        segments.iter().map(|segment| segment.sides[index].transactions as f64).collect()
    };
    Series::new(Metric::Throughput, side(1), side(0))
}

#[cfg(test)]
mod tests {
    use stats::Latency;

    use super::*;

    const CONFIDENCE: Confidence =
        Confidence { deciding: 0.975, metrics: Metric::DECIDING, other: 0.95 };

    /// Side B does 0.9 of A's transactions, each at the cost of 1.1 of A's CPU; one transaction in
    /// fifty takes ten times as long, on B eleven times.
    fn octets(n: u64) -> Vec<Octet> {
        let half = |transactions: u64, slow_ns: u64, cpu: f64| {
            let mut latency = Latency::new();
            for i in 0..transactions {
                latency.record_ns(if i % 50 == 0 { slow_ns } else { 1_000_000 });
            }
            Half {
                transactions,
                latency,
                used: [(Metric::Cpu, transactions as f64 * cpu)].into(),
                ..Half::default()
            }
        };
        let octet = |i: u64| Octet {
            sides: [half(1_000 + 10 * i, 10_000_000, 1e2), half(900 + 9 * i, 11_000_000, 1.1e2)],
        };
        (0..n).map(octet).collect()
    }

    #[test]
    fn ratios_are_b_over_a() {
        let figures = figures(&octets(40), 20.0, CONFIDENCE);
        let check = |metric: Metric, sides: [f64; 2], expected: f64| {
            let figure = figures.iter().find(|figure| figure.metric == metric).expect("a figure");
            let ratio = figure.ratio.expect("an interval");
            assert!((ratio.point / expected - 1.0).abs() < 2e-3, "{metric:?} {ratio:?}");
            for (seen, wanted) in figure.sides.iter().zip(sides) {
                assert!((seen / wanted - 1.0).abs() < 2e-3, "{metric:?} {:?}", figure.sides);
            }
        };
        check(Metric::Throughput, [2_390.0, 2_151.0], 0.9);
        check(Metric::P50, [1.0, 1.0], 1.0);
        check(Metric::P99, [10.0, 11.0], 1.1);
        check(Metric::Cpu, [100.0, 110.0], 1.1);
        assert!(figures.iter().all(|figure| figure.metric != Metric::Wal), "none was read");
    }

    #[test]
    fn a_quantile_of_few_samples_has_no_interval() {
        // 20 samples beyond p99 take two of these segments, and five units are not full.
        let figures = figures(&octets(8), 4.0, CONFIDENCE);
        let p99 = figures.iter().find(|figure| figure.metric == Metric::P99).expect("p99");
        assert!(p99.ratio.is_none(), "{p99:?}");
    }
}
