//! The figures of a comparison: what each side shows, and B ÷ A with its interval.

use record::Series;
use record::comparison::{Metric, Ratio};
use stats::sequence::{self, Place, Term, totals};
use stats::{Interval, Latency, NoInterval};

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
    /// The number of octets at which intervals are narrowest.
    pub(crate) tuned_for: usize,
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
    /// As a record has it, with its verdict. A difference below `threshold`, a share, is none. The
    /// answer rests on the figures `deciding`.
    #[must_use]
    pub fn judged(&self, threshold: f64, deciding: [Metric; 2]) -> record::comparison::Figure {
        let ratio = self.ratio.map(|ratio| Ratio {
            value: ratio.point,
            lower: ratio.low,
            upper: ratio.high,
            confidence: ratio.confidence,
            n: ratio.n,
            method: ratio.method.name().to_owned(),
        });
        record::comparison::Figure {
            metric: self.metric,
            unit: self.metric.unit().to_owned(),
            a: self.sides[0],
            b: self.sides[1],
            b_over_a: ratio,
            verdict: answer::verdict(self.metric, self.ratio.as_ref(), threshold),
            deciding: deciding.contains(&self.metric),
        }
    }
}

/// All figures that these octets give. `active_s` is the time in each octet in which one side begins
/// transactions.
pub(crate) fn figures(octets: &[Octet], active_s: f64, confidence: Confidence) -> Vec<Figure> {
    let figure = |metric: Metric| {
        let level = match confidence.metrics.contains(&metric) {
            true => confidence.deciding,
            false => confidence.other,
        };
        match metric.quantile() {
            Some(quantile) => latency(octets, metric, quantile, level, confidence.tuned_for),
            None => rate(octets, metric, active_s, level, confidence.tuned_for),
        }
    };
    Metric::ALL.into_iter().filter_map(figure).collect()
}

/// A quotient of sums over octets.
fn rate(
    octets: &[Octet],
    metric: Metric,
    active_s: f64,
    confidence: f64,
    tuned_for: usize,
) -> Option<Figure> {
    let column = |of: &dyn Fn(&Half) -> Option<f64>| -> Option<[Vec<f64>; 2]> {
        let side = |index: usize| -> Option<Vec<f64>> {
            octets.iter().map(|octet| of(&octet.sides[index])).collect()
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
            (sides, totals(&terms, confidence, tuned_for))
        }
        None => {
            let seconds = active_s * octets.len() as f64;
            let sides = [sum(tx_a) / seconds, sum(tx_b) / seconds];
            (sides, ratio(&counted(octets, tuned_for), confidence))
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
fn latency(
    octets: &[Octet],
    metric: Metric,
    quantile: f64,
    confidence: f64,
    tuned_for: usize,
) -> Option<Figure> {
    let series = quantiles(octets, metric, quantile, tuned_for)?;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let sides = [mean(&series.below), mean(&series.above)];
    Some(Figure { metric, sides, ratio: ratio(&series, confidence).ok() })
}

/// B ÷ A of a series.
fn ratio(series: &Series, confidence: f64) -> Result<Interval, NoInterval> {
    sequence::ratio(&series.above, &series.below, confidence, series.tuned_for)
}

/// A quantile, unit by unit. Octets are merged until each side has enough samples; a unit that is
/// not full counts in none.
fn quantiles(octets: &[Octet], metric: Metric, quantile: f64, tuned_for: usize) -> Option<Series> {
    let needed = samples_min(quantile);
    let (mut below, mut above) = (Vec::new(), Vec::new());
    let mut unit = [Latency::new(), Latency::new()];
    let mut merged = 0;
    for octet in octets {
        for (sum, half) in unit.iter_mut().zip(&octet.sides) {
            sum.merge(&half.latency);
        }
        merged += 1;
        if unit.iter().any(|side| side.count() < needed) {
            continue;
        }
        for (values, side) in [&mut below, &mut above].into_iter().zip(&mut unit) {
            values.push(side.quantile_ns(quantile)? as f64 / 1e6);
            side.reset();
        }
    }
    if below.is_empty() {
        return None;
    }
    let octets_a_unit = (merged / below.len()).max(1);
    let tuned_for = (tuned_for / octets_a_unit).max(1);
    Some(Series { metric, above, below, tuned_for })
}

/// What the ratios of throughput and of latencies are computed from.
pub(crate) fn series(octets: &[Octet], tuned_for: usize) -> Vec<Series> {
    let of = |metric: Metric| match (metric, metric.quantile()) {
        (Metric::Throughput, _) => Some(counted(octets, tuned_for)),
        (_, Some(quantile)) => quantiles(octets, metric, quantile, tuned_for),
        _ => None,
    };
    Metric::ALL.into_iter().filter_map(of).collect()
}

/// Transactions, octet by octet.
fn counted(octets: &[Octet], tuned_for: usize) -> Series {
    let side = |index: usize| -> Vec<f64> {
        octets.iter().map(|octet| octet.sides[index].transactions as f64).collect()
    };
    Series { metric: Metric::Throughput, above: side(1), below: side(0), tuned_for }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIDENCE: Confidence =
        Confidence { deciding: 0.975, metrics: Metric::DECIDING, other: 0.95, tuned_for: 50 };

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
        let figures = figures(&octets(40), 0.5, CONFIDENCE);
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
        // 20 samples beyond p99 take two of these octets, and ten units are not full.
        let figures = figures(&octets(18), 0.5, CONFIDENCE);
        let p99 = figures.iter().find(|figure| figure.metric == Metric::P99).expect("p99");
        assert!(p99.ratio.is_none(), "{p99:?}");
    }
}
