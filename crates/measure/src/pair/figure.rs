//! The figures of a comparison: what each side shows, and B ÷ A with its interval over segments.

use record::comparison::{
    ComparedMetric, FigureVerdict, InstanceFindings, MetricRatio, with_standstills,
};
use record::{RatioSeries, WorkingSeries};
use stats::ConfidenceInterval;
use stats::sequence::{self, FractionPlace, LookSchedule, TotalTerm, totals_at};

use crate::pair::answer;
use crate::pair::observation::{self, BlockOctet, RestartSegment, SideObservation};

/// The confidence of a figure's intervals.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Confidence {
    /// The confidence of each figure that decides.
    pub(crate) deciding: f64,
    /// The metrics that decide.
    pub(crate) metrics: Vec<ComparedMetric>,
    pub(crate) other: f64,
    /// The looks at which they are valid.
    pub(crate) looks: LookSchedule,
}

/// One figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ComparedFigure {
    /// The metric.
    pub metric: ComparedMetric,
    /// The values of side A and of side B, in the metric's unit.
    pub sides: [f64; 2],
    /// B ÷ A; none where there is too little to compute an interval from.
    pub ratio: Option<ConfidenceInterval>,
    /// True if the server also does this by itself and did as much on both sides in the same time: the
    /// figure says nothing of transactions.
    pub is_background: bool,
}

impl ComparedFigure {
    /// Widens an interval whose servers were never restarted by what instances differ by: the
    /// difference that they happen to have is the same at every look.
    pub(crate) fn allow_for(&mut self, instances: &InstanceFindings) {
        let lasting = instances.lasting(self.metric);
        self.ratio = self.ratio.map(|ratio| {
            let wider = |from: f64, to: f64| (to / from).ln().hypot(lasting).exp();
            let (low, high) = (wider(ratio.low, ratio.point), wider(ratio.point, ratio.high));
            ConfidenceInterval { low: ratio.point / low, high: ratio.point * high, ..ratio }
        });
    }

    /// As a record has it, with its verdict. A difference below `threshold`, a share, counts as none; below
    /// the floor of the instances nothing is said. The answer rests on the figures `deciding`.
    #[must_use]
    pub fn judged(
        &self,
        threshold: f64,
        deciding: &[ComparedMetric],
        instances: &InstanceFindings,
    ) -> record::comparison::ComparisonFigure {
        let ratio = self.ratio.map(recorded);
        let floor = instances.floor(self.metric);
        let figure = record::comparison::ComparisonFigure {
            metric: self.metric,
            unit: self.metric.unit().to_owned(),
            a: self.sides[0],
            b: self.sides[1],
            b_over_a: ratio,
            verdict: answer::verdict(self.metric, self.ratio.as_ref(), threshold, floor),
            deciding: deciding.contains(&self.metric),
        };
        match () {
            () if figure.is_of_nothing() => record::comparison::ComparisonFigure {
                verdict: FigureVerdict::Equal,
                b_over_a: None,
                ..figure
            },
            () if self.is_background => record::comparison::ComparisonFigure {
                verdict: FigureVerdict::CannotTell,
                ..figure
            },
            () => figure,
        }
    }
}

/// An interval, as a record has it.
pub(crate) fn recorded(ratio: ConfidenceInterval) -> MetricRatio {
    MetricRatio {
        value: ratio.point,
        low: ratio.low,
        high: ratio.high,
        confidence: ratio.confidence,
        n: ratio.n,
        method: ratio.method.name().to_owned(),
    }
}

/// All figures that these segments give.
pub(crate) fn figures(segments: &[BlockOctet], confidence: &Confidence) -> Vec<ComparedFigure> {
    let figure = |metric: ComparedMetric| {
        let level = match confidence.metrics.contains(&metric) {
            true => confidence.deciding,
            false => confidence.other,
        };
        match metric.quantile() {
            Some(quantile) => latency(segments, metric, quantile, (level, confidence.looks)),
            None => rate(segments, metric, (level, confidence.looks)),
        }
    };
    ComparedMetric::ALL.into_iter().filter_map(figure).collect()
}

/// A quotient of sums over segments.
fn rate(
    segments: &[BlockOctet],
    metric: ComparedMetric,
    (confidence, looks): (f64, LookSchedule),
) -> Option<ComparedFigure> {
    let column = |of: &dyn Fn(&SideObservation) -> Option<f64>| -> Option<[Vec<f64>; 2]> {
        let side = |index: usize| -> Option<Vec<f64>> {
            segments.iter().map(|segment| of(&segment.sides[index])).collect()
        };
        Some([side(0)?, side(1)?])
    };
    let all = column(&|half| Some((half.transactions + half.lead) as f64))?;
    let amount = match metric {
        ComparedMetric::Throughput => None,
        used => Some(column(&|half| half.used.get(&used).copied())?),
    };
    let sum = |values: &[f64]| values.iter().sum::<f64>();
    let term = |values, place| TotalTerm { values, place };
    let mut is_background = false;
    let (sides, ratio) = match &amount {
        Some([a, b]) => {
            let [all_a, all_b] = &all;
            let terms = [
                term(b.as_slice(), FractionPlace::Above),
                term(all_b, FractionPlace::Below),
                term(a, FractionPlace::Below),
                term(all_a, FractionPlace::Above),
            ];
            let sides = [sum(a) / sum(all_a), sum(b) / sum(all_b)];
            // Both servers stand for the whole segment, whichever has its turn.
            let in_all = sequence::ratio_at(looks, b, a, confidence);
            is_background = metric.has_background() && in_all.is_ok_and(|all| all.contains(1.0));
            (sides, totals_at(looks, &terms, confidence))
        }
        None => {
            let [tx_a, tx_b] = column(&|half| Some(half.done().0))?;
            let [s_a, s_b] = column(&|half| Some(half.done().1))?;
            let sides = [sum(&tx_a) / sum(&s_a), sum(&tx_b) / sum(&s_b)];
            let [tx_a, tx_b] = column(&|half| Some(half.worked().0))?;
            let [s_a, s_b] = column(&|half| Some(half.worked().1))?;
            let terms = [
                term(tx_b.as_slice(), FractionPlace::Above),
                term(&s_b, FractionPlace::Below),
                term(&tx_a, FractionPlace::Below),
                term(&s_a, FractionPlace::Above),
            ];
            let rare = observation::rare(segments, false, 0.0).standstills;
            let working = totals_at(looks, &terms, confidence);
            (sides, working.map(|working| with_standstills(working, &rare)))
        }
    };
    let ratio = ratio.ok();
    // Where the quotient for a transaction is 1 as well, nothing is in doubt.
    let is_background = is_background && ratio.is_some_and(|ratio| !ratio.contains(1.0));
    Some(ComparedFigure { metric, sides, ratio, is_background })
}

/// Transactions of each side that an interval of a metric takes at least.
pub(crate) fn transactions_min(metric: ComparedMetric) -> u64 {
    metric.samples_min() * sequence::OBSERVATIONS_MIN as u64
}

/// A quantile of latency.
fn latency(
    segments: &[BlockOctet],
    metric: ComparedMetric,
    quantile: f64,
    (confidence, looks): (f64, LookSchedule),
) -> Option<ComparedFigure> {
    let series = quantiles(segments, metric, quantile)?;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let sides = [mean(&series.below), mean(&series.above)];
    let ratio = series.ratio(looks, None, confidence).ok();
    Some(ComparedFigure { metric, sides, ratio, is_background: false })
}

/// Throughput of the first and last blocks of A ÷ that of the blocks between: one server against
/// itself, in turn. The order of blocks is drawn, so that a trend favours neither.
pub(crate) fn identical(segments: &[BlockOctet], confidence: f64) -> Option<ConfidenceInterval> {
    let column = |part: usize, of: fn((f64, f64)) -> f64| -> Vec<f64> {
        segments.iter().map(|segment| of(segment.sides[0].split[part])).collect()
    };
    let (outer, inner) = (column(0, |one| one.0), column(1, |one| one.0));
    let (outer_s, inner_s) = (column(0, |one| one.1), column(1, |one| one.1));
    let term = |values, place| TotalTerm { values, place };
    let terms = [
        term(outer.as_slice(), FractionPlace::Above),
        term(&outer_s, FractionPlace::Below),
        term(&inner, FractionPlace::Below),
        term(&inner_s, FractionPlace::Above),
    ];
    totals_at(LookSchedule::Any, &terms, confidence).ok()
}

/// The correlation of neighbouring segments in the throughput of B ÷ A, where they depend on each other.
pub(crate) fn neighbours(segments: &[BlockOctet]) -> Option<f64> {
    let RatioSeries { above, below, .. } = counted(segments);
    let seen = sequence::neighbours(&above, &below).ok()?;
    seen.are_alike.then_some(seen.correlation)
}

/// Throughput of B ÷ A in the second halves of segments ÷ that in the first halves.
pub(crate) fn trend(segments: &[RestartSegment], confidence: f64) -> Option<ConfidenceInterval> {
    let whole = segments.iter().filter(|one| one.planned > 1 && one.octets == one.planned);
    let whole: Vec<&RestartSegment> = whole.collect();
    let column = |half: usize, side: usize, of: fn((f64, f64)) -> f64| -> Vec<f64> {
        whole.iter().map(|segment| of(segment.halves[half][side])).collect()
    };
    let places = [(1, 1), (1, 0), (0, 1), (0, 0)];
    let columns = places.map(|(half, side)| {
        let above = half == side;
        [(column(half, side, |one| one.0), above), (column(half, side, |one| one.1), !above)]
    });
    let place = |above: &bool| if *above { FractionPlace::Above } else { FractionPlace::Below };
    let terms: Vec<TotalTerm<'_>> = columns
        .as_flattened()
        .iter()
        .map(|(values, above)| TotalTerm { values, place: place(above) })
        .collect();
    totals_at(LookSchedule::Any, &terms, confidence).ok()
}

/// A quantile, unit by unit. Segments are merged until each side has enough samples; a unit that is
/// not full counts in none.
fn quantiles(
    segments: &[BlockOctet],
    metric: ComparedMetric,
    quantile: f64,
) -> Option<RatioSeries> {
    let needed = metric.samples_min();
    let (mut below, mut above) = (Vec::new(), Vec::new());
    let mut unit = BlockOctet::default();
    for segment in segments {
        unit.absorb(segment);
        if unit.sides.iter().any(|side| side.all() < needed) {
            continue;
        }
        for (values, side) in [&mut below, &mut above].into_iter().zip(&unit.sides) {
            values.push(side.quantile_ns(quantile)? as f64 / 1e6);
        }
        unit = BlockOctet::default();
    }
    (!below.is_empty()).then(|| RatioSeries::new(metric, above, below))
}

/// The series from which the ratios of throughput, of latencies and of CPU time are computed.
/// Where several workloads run together, these are their names, and each has its throughput.
pub(crate) fn series(segments: &[BlockOctet], workloads: &[String]) -> Vec<RatioSeries> {
    let of = |metric: ComparedMetric| match (metric, metric.quantile()) {
        (ComparedMetric::Throughput, _) => Some(counted(segments)),
        (_, Some(quantile)) => quantiles(segments, metric, quantile),
        (ComparedMetric::Cpu, None) => used(segments, metric),
        _ => None,
    };
    let parts = workloads.iter().enumerate().map(|(position, name)| {
        let side = |index: usize| {
            segments.iter().map(|segment| segment.sides[index].rate_of(position)).collect()
        };
        RatioSeries::new(ComparedMetric::Throughput, side(1), side(0)).of(name.clone())
    });
    ComparedMetric::ALL.into_iter().filter_map(of).chain(parts).collect()
}

/// Transactions at its rate in the time of a side's turns, segment by segment; in a second, where the turns
/// of sides differ in length.
fn counted(segments: &[BlockOctet]) -> RatioSeries {
    let is_same = |segment: &BlockOctet| {
        let [a, b] = segment.sides.each_ref().map(|half| half.seconds);
        (a - b).abs() < 1e-6
    };
    let is_same = segments.iter().all(is_same);
    let weight =
        |half: &SideObservation| if is_same && half.seconds > 0.0 { half.seconds } else { 1.0 };
    let side = |index: usize, done: fn(&SideObservation) -> (f64, f64)| -> Vec<f64> {
        let halves = segments.iter().map(|segment| &segment.sides[index]);
        let value = |half: &SideObservation| {
            let (transactions, seconds) = done(half);
            transactions / seconds * weight(half)
        };
        halves.map(value).collect()
    };
    let [a, b] = observation::rare(segments, false, 0.0).standstills;
    let of = |done| WorkingSeries { above: side(1, done), below: side(0, done) };
    let WorkingSeries { above, below } = of(SideObservation::done);
    let working = (a.seen + b.seen > 0).then(|| of(SideObservation::worked));
    RatioSeries { working, ..RatioSeries::new(ComparedMetric::Throughput, above, below) }
}

/// What each transaction used, segment by segment; none where it was not read in each.
fn used(segments: &[BlockOctet], metric: ComparedMetric) -> Option<RatioSeries> {
    let side = |index: usize| -> Option<Vec<f64>> {
        let of = |half: &SideObservation| {
            let transactions = (half.transactions + half.lead) as f64;
            let each = half.used.get(&metric)? / transactions;
            each.is_finite().then_some(each)
        };
        segments.iter().map(|segment| of(&segment.sides[index])).collect()
    };
    Some(RatioSeries::new(metric, side(1)?, side(0)?))
}

#[cfg(test)]
mod tests {
    use stats::LatencyHistogram;

    use super::*;

    fn confidence() -> Confidence {
        let (metrics, looks) = (ComparedMetric::DECIDING.to_vec(), LookSchedule::Any);
        Confidence { deciding: 0.975, metrics, other: 0.95, looks }
    }

    /// Side B does 0.9 of A's transactions, each at the cost of 1.1 of A's CPU; one transaction in
    /// fifty takes ten times as long, on B eleven times.
    fn octets(n: u64) -> Vec<BlockOctet> {
        let half = |transactions: u64, slow_ns: u64, cpu: f64| {
            let mut latency = LatencyHistogram::new();
            for i in 0..transactions {
                latency.record_ns(if i % 50 == 0 { slow_ns } else { 1_000_000 });
            }
            SideObservation {
                transactions,
                latency,
                seconds: 0.5,
                split: [(transactions as f64, 0.25); 2],
                used: [
                    (ComparedMetric::Cpu, transactions as f64 * cpu),
                    (ComparedMetric::Wal, 1e6),
                    (ComparedMetric::TempBytes, 0.0),
                ]
                .into(),
                ..SideObservation::default()
            }
        };
        let octet = |i: u64| BlockOctet {
            sides: [half(1_000 + 10 * i, 10_000_000, 1e2), half(900 + 9 * i, 11_000_000, 1.1e2)],
        };
        (0..n).map(octet).collect()
    }

    #[test]
    fn ratios_are_b_over_a() {
        let figures = figures(&octets(40), &confidence());
        let check = |metric: ComparedMetric, sides: [f64; 2], expected: f64| {
            let figure = figures.iter().find(|figure| figure.metric == metric).expect("a figure");
            let ratio = figure.ratio.expect("an interval");
            assert!((ratio.point / expected - 1.0).abs() < 2e-3, "{metric:?} {ratio:?}");
            for (seen, wanted) in figure.sides.iter().zip(sides) {
                assert!((seen / wanted - 1.0).abs() < 2e-3, "{metric:?} {:?}", figure.sides);
            }
        };
        check(ComparedMetric::Throughput, [2_390.0, 2_151.0], 0.9);
        check(ComparedMetric::P50, [1.0, 1.0], 1.0);
        check(ComparedMetric::P99, [10.0, 11.0], 1.1);
        check(ComparedMetric::Cpu, [100.0, 110.0], 1.1);
        assert!(
            figures.iter().all(|figure| figure.metric != ComparedMetric::BuffersHit),
            "none was read"
        );
        let verdict = |metric: ComparedMetric| {
            let figure = figures.iter().find(|figure| figure.metric == metric).expect("a figure");
            figure.judged(0.03, &ComparedMetric::DECIDING, &InstanceFindings::default()).verdict
        };
        // The same WAL in the same time is the servers' own, and 0 is as much as 0.
        assert_eq!(verdict(ComparedMetric::Wal), FigureVerdict::CannotTell);
        assert_eq!(verdict(ComparedMetric::TempBytes), FigureVerdict::Equal);
        assert_eq!(verdict(ComparedMetric::Throughput), FigureVerdict::Worse);
        let identical = identical(&octets(40), 0.95).expect("an interval");
        assert!((identical.point - 1.0).abs() < 1e-9, "{identical:?}");
    }

    #[test]
    fn a_quantile_of_few_samples_has_no_interval() {
        // 20 samples beyond p99 take two of these segments, and five units are not full.
        let figures = figures(&octets(8), &confidence());
        let p99 = figures.iter().find(|figure| figure.metric == ComparedMetric::P99).expect("p99");
        assert!(p99.ratio.is_none(), "{p99:?}");
    }
}
