//! The verdicts that the figures give, and the rule for stopping.

use record::RatioSeries;
use record::comparison::{
    ComparedMetric, ComparisonStop, FigureVerdict, InstanceFindings, RareEvents,
};
use stats::equivalence::{EquivalenceRegion, RatioConclusion};
use stats::sequence::LookSchedule;
use stats::{ConfidenceInterval, Expectation};

use crate::pair::figure::ComparedFigure;

/// The verdict on a ratio B ÷ A. An interval within the threshold is *equal* even where it leaves
/// out 1: a difference that small is none. `floor` is a share that identical servers may differ by
/// here: neither is a smaller difference told, nor can servers be equal within less.
pub(crate) fn verdict(
    metric: ComparedMetric,
    ratio: Option<&ConfidenceInterval>,
    threshold: f64,
    floor: f64,
) -> FigureVerdict {
    let Some(ratio) = ratio else { return FigureVerdict::CannotTell };
    if EquivalenceRegion::within(threshold).judge(ratio) == RatioConclusion::Equal {
        return if threshold >= floor { FigureVerdict::Equal } else { FigureVerdict::CannotTell };
    }
    if ratio.point.ln().abs() < floor.ln_1p() {
        return FigureVerdict::CannotTell;
    }
    let more = ratio.low > 1.0;
    let less = ratio.high < 1.0;
    match (more, less, metric.higher_is_better()) {
        (true, _, true) | (_, true, false) => FigureVerdict::Better,
        (true, _, false) | (_, true, true) => FigureVerdict::Worse,
        (false, false, _) => FigureVerdict::CannotTell,
    }
}

/// The rule for stopping.
#[derive(Clone, Debug, PartialEq)]
pub struct StoppingRule {
    /// The figures that decide.
    pub deciding: Vec<ComparedMetric>,
    /// Half-width of the first one's interval, as a share.
    pub precision: f64,
    /// Differences below this share count as none.
    pub threshold: f64,
    /// Stop as soon as the threshold is decided.
    pub by_threshold: bool,
    /// The condition on the first figure that decides, in the place of precision and threshold.
    pub until: Option<StopCondition>,
    /// Stop as soon as all of these are judged; never for that reason where there are none.
    pub claims: Vec<RatioClaim>,
    /// Standstills that come once in so many seconds must be excluded.
    pub horizon_s: Option<f64>,
    /// Look only at moments that are planned before the first segment: the intervals are narrower in the end.
    pub is_planned: bool,
}

/// Looks that are planned.
pub(crate) const PLANNED_LOOKS: u32 = 5;

/// What the figures of a comparison rest on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoppingEvidence<'a> {
    pub(crate) instances: &'a InstanceFindings,
    pub(crate) rare: Option<&'a RareEvents>,
}

impl StoppingRule {
    /// The figures for a record, each with its verdict.
    pub(crate) fn judged(
        &self,
        figures: &[ComparedFigure],
        instances: &InstanceFindings,
    ) -> Vec<record::comparison::ComparisonFigure> {
        let judge = |one: &ComparedFigure| one.judged(self.threshold, &self.deciding, instances);
        figures.iter().map(judge).collect()
    }
}

/// A claim about the ratio B ÷ A of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct RatioClaim {
    /// The metric.
    pub metric: ComparedMetric,
    /// The workload of B, where several run together and the claim is about one of them.
    pub workload: Option<String>,
    /// The range in which the ratio is expected.
    pub expect: Expectation,
    /// The error with which its verdict may be wrong: that of a family, divided by its members.
    pub error: f64,
}

impl RatioClaim {
    /// True if it holds, or does not, by these observations. Valid at every look.
    fn is_judged(&self, series: &[RatioSeries], rare: Option<&RareEvents>) -> bool {
        let is_meant =
            |one: &&RatioSeries| (one.metric, &one.workload) == (self.metric, &self.workload);
        let Some(series) = series.iter().find(is_meant) else { return false };
        let Ok(ratio) = series.ratio(LookSchedule::Any, rare, 1.0 - self.error) else {
            return false;
        };
        !matches!(self.expect.judge(Ok(&ratio), 1), stats::ExpectationVerdict::CannotTell(_))
    }
}

/// A condition under which a figure answers the question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StopCondition {
    /// The interval is narrow beside its distance from 1.
    Resolved,
    /// The interval leaves out this ratio.
    Excludes(f64),
}

impl StopCondition {
    /// An interval that is this narrow, as a share of its distance from 1, tells how large a difference is.
    const RESOLVED: f64 = 1.0 / 3.0;

    fn is_met(self, ratio: &ConfidenceInterval) -> bool {
        match self {
            StopCondition::Resolved => half_width(ratio) <= Self::RESOLVED * ratio.point.ln().abs(),
            StopCondition::Excludes(bound) => !ratio.contains(bound),
        }
    }
}

impl StoppingRule {
    /// True if there are claims and these observations judge each of them.
    pub(crate) fn are_judged(&self, series: &[RatioSeries], rare: Option<&RareEvents>) -> bool {
        !self.claims.is_empty() && self.claims.iter().all(|claim| claim.is_judged(series, rare))
    }

    /// The reason to stop; none while these figures of these instances are not enough. Valid at every look:
    /// the intervals are confidence sequences.
    ///
    /// `are_others_due` says whether the other deciding figures, where they have no interval yet, will have
    /// one within the time: the precision of the first one then waits for them.
    pub(crate) fn stops(
        &self,
        figures: &[ComparedFigure],
        basis: StoppingEvidence<'_>,
        are_others_due: bool,
    ) -> Option<ComparisonStop> {
        let instances = basis.instances;
        let of = |metric| figures.iter().find(|one| one.metric == metric)?.ratio;
        let ratio = of(*self.deciding.first()?)?;
        if let Some(until) = self.until {
            return until.is_met(&ratio).then_some(ComparisonStop::Decided);
        }
        // What has not been seen yet may still come.
        if !self.is_excluded(figures, basis) {
            return None;
        }
        let is_complete = self.deciding.iter().all(|one| of(*one).is_some()) || !are_others_due;
        if half_width(&ratio) <= self.precision && is_complete {
            return Some(ComparisonStop::Precision);
        }
        let region = EquivalenceRegion::within(self.threshold);
        let is_decided = |metric: ComparedMetric| {
            let Some(ratio) = of(metric) else { return false };
            let verdict = verdict(metric, Some(&ratio), self.threshold, instances.floor(metric));
            region.judge(&ratio) != RatioConclusion::CannotTell
                && verdict != FigureVerdict::CannotTell
        };
        let are_all = || self.deciding.iter().all(|metric| is_decided(*metric));
        (self.by_threshold && are_all()).then_some(ComparisonStop::Decided)
    }
}

impl StoppingRule {
    /// True if rare events that were not seen, or not often, would not change what is said of throughput.
    fn is_excluded(
        &self,
        figures: &[ComparedFigure],
        StoppingEvidence { rare, .. }: StoppingEvidence<'_>,
    ) -> bool {
        let throughput = figures.iter().find(|one| one.metric == ComparedMetric::Throughput);
        let ratio = throughput.filter(|_| self.deciding.contains(&ComparedMetric::Throughput));
        let (Some(ratio), Some(rare)) = (ratio.and_then(|one| one.ratio), rare) else {
            return true;
        };
        if self.horizon_s.is_some_and(|horizon_s| rare.beyond(horizon_s).is_some()) {
            return false;
        }
        let [a, b] = [0, 1].map(|side| 1.0 - rare.loss_max(side));
        rare.open(self.threshold).is_none() || ratio.low * b > 1.0 || ratio.high < a
    }
}

/// Half the width of a ratio's interval, as a share of 1.
pub(crate) fn half_width(ratio: &ConfidenceInterval) -> f64 {
    (ratio.high / ratio.low).ln() / 2.0
}

#[cfg(test)]
mod tests {
    use record::comparison::{ServerRenewal, SideStandstills};

    use super::*;

    fn interval(low: f64, high: f64) -> ConfidenceInterval {
        ConfidenceInterval { low, high, ..ConfidenceInterval::exact((low * high).sqrt(), 30) }
    }

    #[test]
    fn verdicts() {
        use ComparedMetric::{P99, Throughput};
        let check_floor = |metric, low, high, floor, expected| {
            let seen = verdict(metric, Some(&interval(low, high)), 0.03, floor);
            assert_eq!(seen, expected, "{metric:?} [{low}, {high}], floor {floor}");
        };
        let check = |metric, low, high, expected| check_floor(metric, low, high, 0.005, expected);
        check_floor(Throughput, 1.002, 1.036, 0.03, FigureVerdict::CannotTell);
        check_floor(Throughput, 0.99, 1.01, 0.04, FigureVerdict::CannotTell);
        check_floor(Throughput, 0.90, 0.96, 0.03, FigureVerdict::Worse);
        check(Throughput, 1.01, 1.08, FigureVerdict::Better);
        check(Throughput, 0.90, 0.96, FigureVerdict::Worse);
        check(P99, 1.02, 1.20, FigureVerdict::Worse);
        check(P99, 0.80, 0.90, FigureVerdict::Better);
        check(Throughput, 0.98, 1.02, FigureVerdict::Equal);
        check(Throughput, 1.005, 1.02, FigureVerdict::Equal);
        check(Throughput, 0.95, 1.01, FigureVerdict::CannotTell);
        check(Throughput, 0.5, 2.0, FigureVerdict::CannotTell);
        assert_eq!(verdict(Throughput, None, 0.03, 0.0), FigureVerdict::CannotTell);
    }

    #[test]
    fn it_stops_when_asked_precision_or_threshold_is_reached() {
        let figures = |tps: ConfidenceInterval, p99: Option<ConfidenceInterval>| {
            let figure = |metric, ratio| ComparedFigure {
                metric,
                sides: [1.0, 1.0],
                ratio,
                is_background: false,
            };
            vec![figure(ComparedMetric::Throughput, Some(tps)), figure(ComparedMetric::P99, p99)]
        };
        let deciding = || ComparedMetric::DECIDING.to_vec();
        let rule = |by_threshold| StoppingRule {
            deciding: deciding(),
            precision: 0.01,
            threshold: 0.05,
            by_threshold,
            until: None,
            claims: Vec::new(),
            is_planned: false,
            horizon_s: None,
        };
        let check_due = |by_threshold, tps, p99, is_due, expected| {
            let instances =
                InstanceFindings { renewal: ServerRenewal::Shared, ..InstanceFindings::default() };
            let basis = StoppingEvidence { instances: &instances, rare: None };
            let seen = rule(by_threshold).stops(&figures(tps, p99), basis, is_due);
            assert_eq!(seen, expected);
        };
        let check = |by_threshold, tps, p99, expected| {
            check_due(by_threshold, tps, p99, false, expected);
        };
        let (narrow, within, beyond, wide) = (
            interval(0.995, 1.005),
            interval(0.97, 1.02),
            interval(0.85, 0.94),
            interval(0.9, 1.1),
        );
        check(false, narrow, None, Some(ComparisonStop::Precision));
        check_due(false, narrow, None, true, None);
        check_due(false, narrow, Some(wide), true, Some(ComparisonStop::Precision));
        check(false, within, Some(within), None);
        check(true, within, Some(within), Some(ComparisonStop::Decided));
        check(true, beyond, Some(within), Some(ComparisonStop::Decided));
        check(true, beyond, Some(wide), None);
        check(true, beyond, None, None);
        check(true, wide, Some(within), None);
        // There is no figure of p99 before a segment has enough transactions.
        let instances =
            InstanceFindings { renewal: ServerRenewal::Shared, ..InstanceFindings::default() };
        let basis = StoppingEvidence { instances: &instances, rare: None };
        let early = rule(true).stops(&figures(within, None)[..1], basis, true);
        assert_eq!(early, None);
        // Identical servers may differ by more than the threshold until they were restarted often enough.
        let restarted = |segments, threshold, expected| {
            let instances = InstanceFindings {
                renewal: ServerRenewal::Restarted,
                segments,
                ..InstanceFindings::default()
            };
            let rule = StoppingRule { threshold, precision: 0.001, ..rule(true) };
            let basis = StoppingEvidence { instances: &instances, rare: None };
            let seen = rule.stops(&figures(narrow, Some(narrow)), basis, false);
            assert_eq!(seen, expected, "{segments} {threshold}");
        };
        restarted(5, 0.01, None);
        restarted(9, 0.01, Some(ComparisonStop::Decided));
        // Servers that worked for 50 s do not exclude that they stand still; ones that did for 200 s do.
        let worked = |worked_s: f64, tps, expected| {
            let of = SideStandstills { worked_s, ..SideStandstills::default() };
            let rare = RareEvents { standstills: [of; 2], ..RareEvents::default() };
            let instances =
                InstanceFindings { renewal: ServerRenewal::Shared, ..InstanceFindings::default() };
            let basis = StoppingEvidence { instances: &instances, rare: Some(&rare) };
            let rule = StoppingRule { threshold: 0.03, ..rule(true) };
            let seen = rule.stops(&figures(tps, Some(narrow)), basis, false);
            assert_eq!(seen, expected, "{worked_s}");
        };
        worked(50.0, narrow, None);
        worked(200.0, narrow, Some(ComparisonStop::Precision));
        worked(30.0, beyond, None);
        worked(100.0, beyond, Some(ComparisonStop::Decided));
        let until = |until, tps, expected| {
            let rule = StoppingRule { until: Some(until), ..rule(false) };
            let basis = StoppingEvidence { instances: &InstanceFindings::default(), rare: None };
            let seen = rule.stops(&figures(tps, None), basis, false);
            assert_eq!(seen, expected, "{until:?}");
        };
        until(StopCondition::Excludes(0.975), narrow, Some(ComparisonStop::Decided));
        until(StopCondition::Excludes(0.975), within, None);
        until(StopCondition::Resolved, beyond, None);
        until(StopCondition::Resolved, interval(0.88, 0.91), Some(ComparisonStop::Decided));
    }

    #[test]
    fn it_stops_when_every_claim_is_judged() {
        let series = |metric, ratio: f64| {
            let below: Vec<f64> = (0..8).map(|i| 100.0 + f64::from(i % 3)).collect();
            let above = below.iter().enumerate().map(|(i, one)| ratio * one + (i % 2) as f64);
            RatioSeries::new(metric, above.collect(), below)
        };
        let seen = [series(ComparedMetric::Throughput, 2.0), series(ComparedMetric::P50, 1.0)];
        let claim = |metric, expect, error| RatioClaim { metric, workload: None, expect, error };
        let at_least = Expectation::AtLeast;
        let check = |claims: Vec<RatioClaim>, expected: bool| {
            let rule = StoppingRule {
                deciding: ComparedMetric::DECIDING.to_vec(),
                precision: 0.01,
                threshold: 0.05,
                by_threshold: false,
                until: None,
                claims: claims.clone(),
                is_planned: false,
                horizon_s: None,
            };
            assert_eq!(rule.are_judged(&seen, None), expected, "{claims:?}");
        };
        check(vec![], false);
        check(vec![claim(ComparedMetric::Throughput, at_least(1.14), 0.05)], true);
        check(vec![claim(ComparedMetric::Throughput, Expectation::AtMost(1.14), 0.05)], true);
        check(vec![claim(ComparedMetric::Throughput, at_least(2.005), 0.05)], false);
        // The same observations at a smaller error, and a figure that is not there.
        check(vec![claim(ComparedMetric::Throughput, at_least(1.98), 0.05)], true);
        check(vec![claim(ComparedMetric::Throughput, at_least(1.98), 1e-6)], false);
        check(vec![claim(ComparedMetric::P99, at_least(0.5), 0.05)], false);
        let both =
            [1.14, 1.005].map(|bound| claim(ComparedMetric::Throughput, at_least(bound), 0.05));
        check(both.to_vec(), true);
        let one_open = [
            claim(ComparedMetric::Throughput, at_least(1.14), 0.05),
            claim(ComparedMetric::P50, at_least(1.005), 0.05),
        ];
        check(one_open.to_vec(), false);
    }

    /// Identical sides, looked at after every segment until something is said of them: whatever is said
    /// of "more than 1" is false. Instances differ by 1.5 %, what blocks do adds 5 %.
    #[test]
    fn identical_sides_are_hardly_ever_told_apart() {
        let mut prng = stats::Prng::new(17);
        let mut normal = || {
            let radius = (-2.0 * prng.unit().max(1e-300).ln()).sqrt();
            radius * (std::f64::consts::TAU * prng.unit()).cos()
        };
        let claim = RatioClaim {
            metric: ComparedMetric::Throughput,
            workload: None,
            expect: Expectation::MoreThan(1.0),
            error: 0.05,
        };
        let runs = 400;
        let told = (0..runs).filter(|_| {
            let (mut above, mut below) = (Vec::new(), Vec::new());
            (0..20).any(|_| {
                let common = 1.0 + 0.2 * normal();
                below.push(1e4 * common.max(0.1));
                above.push(1e4 * common.max(0.1) * (0.015 * normal() + 0.05 * normal()).exp());
                let seen =
                    [RatioSeries::new(ComparedMetric::Throughput, above.clone(), below.clone())];
                claim.is_judged(&seen, None)
            })
        });
        let told = told.count();
        assert!(told * 20 <= runs, "{told} of {runs}");
    }
}
