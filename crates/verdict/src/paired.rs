//! A value that was measured in pairs, and where it is expected.
//!
//! What was measured from one restart of the servers to the next is the unit of replication. The interval is a confidence sequence
//! ([`stats::sequence`]), which stays valid although measuring stopped when it was narrow enough.
//! It is computed again from the record's series, so that the verdict rests on what was observed.

use record::comparison::{ComparedMetric, ComparisonStop, FigureVerdict as Seen, MetricRatio};
use record::{AttemptEnding, FigureClass, FigureDoubt, PairingAttempt, RatioSeries};
use spec::{ClaimExpression, Study};
use stats::{ConfidenceInterval, Expectation, sequence};

use crate::claim_verdict::{ClaimFinding, ClaimMeasurement, Verdict};

/// The confidence of every interval but those of a comparison.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// A change within segments that is larger than this share matters.
const THRESHOLD: f64 = 0.03;

/// Why a quotient was not measured in pairs although its study asks for them: this machine has no
/// room for the servers of both points. None where pairs were tried, or are not there yet.
pub(crate) fn missing(
    study: &Study,
    value: &ClaimExpression,
    pairs: &[PairingAttempt],
) -> Option<String> {
    let (above, below) = value.ratio()?;
    let (above, below) = (value.references()[above].point, value.references()[below].point);
    let is_meant = |paired: &&PairingAttempt| is_of(study, paired, [above, below]);
    // What one attempt found is not undone by another one that was skipped.
    let mut why = None;
    for paired in pairs.iter().filter(is_meant) {
        let AttemptEnding::Skipped(_) = &paired.ending else { return None };
        why = Some(paired.ending.why().to_owned());
    }
    why
}

/// True if these are the pairs of the point of a numerator and that of a denominator.
fn is_of(study: &Study, paired: &PairingAttempt, [above, below]: [usize; 2]) -> bool {
    study.point(&paired.above, &paired.scenario, &paired.axes) == Some(above)
        && study.point(&paired.below, paired.scenario_below(), paired.axes_below()) == Some(below)
}

/// Judges a quotient of two figures by the pairs of its points.
pub(crate) fn judge(
    confidence: f64,
    study: &Study,
    value: &ClaimExpression,
    expect: Expectation,
    pairs: &[PairingAttempt],
) -> ClaimFinding {
    let nothing = |why: String| ClaimFinding {
        measured: ClaimMeasurement::Nothing,
        verdict: Verdict::CannotTell,
        why,
        p: None,
    };
    let Some((above, below)) = value.ratio() else {
        return nothing("it is no quotient of two figures".to_owned());
    };
    let (above, below) = (&value.references()[above], &value.references()[below]);
    let is_meant = |paired: &&PairingAttempt| is_of(study, paired, [above.point, below.point]);
    let Some(paired) = pairs.iter().filter(is_meant).max_by_key(|paired| paired.attempt) else {
        let (above, below) = (&study.points[above.point].name, &study.points[below.point].name);
        return nothing(format!("{above} and {below} were not measured in pairs"));
    };
    if paired.ending != AttemptEnding::Done {
        return nothing(paired.ending.why().to_owned());
    }
    if paired.shown.conditions.is_other_work {
        return nothing(FigureDoubt::OtherWork.words());
    }
    let part = study.points[above.point].part(&above.scope).map(|_| above.scope.as_str());
    let series = ComparedMetric::of(above.metric).and_then(|metric| paired.series_of(metric, part));
    let Some((series, interval)) = series.and_then(|series| {
        let shown = &paired.shown;
        let interval = series.ratio(shown.looked_at(), shown.rare.as_ref(), confidence).ok()?;
        Some((series, interval))
    }) else {
        let segments = match paired.shown.instances.segments {
            many if many >= sequence::OBSERVATIONS_MIN => {
                return nothing(format!(
                    "nothing can be said: {many} segments differ too much, or have too few transactions"
                ));
            }
            1 => "1 segment is".to_owned(),
            many => format!("{many} segments are"),
        };
        return nothing(format!(
            "{segments} too few; an interval takes {} or more, each with enough transactions",
            sequence::OBSERVATIONS_MIN
        ));
    };
    let lasting = paired.shown.instances.lasting(series.metric);
    let interval = wider(interval, lasting);
    let verdict = verdict_of(expect, &interval);
    let p =
        expect.p_value(interval.point, |bound, _| p_value(paired, series, interval.point, bound));
    let mut found = ClaimFinding {
        why: match verdict {
            Verdict::CannotTell => "the interval reaches over the bound".to_owned(),
            Verdict::Holds | Verdict::DoesNotHold => String::new(),
        },
        measured: ClaimMeasurement::Pairs { interval, pairs: paired.shown.pairs },
        verdict,
        p: Some(p),
    };
    let judged = JudgedPair { paired, metric: series.metric, expect, interval, verdict };
    let mut doubts = judged.doubts();
    let is_open = |paired: &&PairingAttempt| paired.ending.stays_open();
    if let Some(earlier) = pairs.iter().filter(is_meant).find(is_open) {
        let (attempt, why) = (earlier.attempt, earlier.ending.why());
        let word = match earlier.ending {
            AttemptEnding::Interrupted(_) => "was interrupted",
            _ => "failed",
        };
        doubts.push(format!("attempt {attempt} {word}: {why}"));
    }
    found.doubt(doubts);
    found
}

/// An interval of servers that were never restarted, widened by what instances differ by: the difference
/// that they happen to have is the same at every look.
fn wider(ratio: ConfidenceInterval, lasting: f64) -> ConfidenceInterval {
    if lasting == 0.0 {
        return ratio;
    }
    let from = |bound: f64| (bound / ratio.point).ln().hypot(lasting).exp();
    ConfidenceInterval {
        low: ratio.point / from(ratio.low),
        high: ratio.point * from(ratio.high),
        ..ratio
    }
}

/// The p-value of a bound by intervals that are [`wider`].
fn p_value(paired: &PairingAttempt, series: &RatioSeries, point: f64, bound: f64) -> f64 {
    let lasting = paired.shown.instances.lasting(series.metric);
    let distance = (point / bound).ln().abs();
    if distance <= lasting {
        return 1.0;
    }
    let bound = point * (distance * distance - lasting * lasting).sqrt().exp();
    series.p_value(paired.shown.looked_at(), paired.shown.rare.as_ref(), bound)
}

/// A quotient that was measured in pairs, and its verdict.
pub(crate) struct JudgedPair<'p> {
    pub(crate) paired: &'p PairingAttempt,
    pub(crate) metric: ComparedMetric,
    pub(crate) expect: Expectation,
    pub(crate) interval: ConfidenceInterval,
    pub(crate) verdict: Verdict,
}

impl JudgedPair<'_> {
    /// Doubts about it.
    pub(crate) fn doubts(&self) -> Vec<String> {
        let sort = match self.metric {
            ComparedMetric::Throughput => FigureClass::Rate,
            metric if metric.quantile().is_some() => FigureClass::Latency,
            _ => FigureClass::Use,
        };
        let doubts = self.paired.shown.conditions.doubts().into_iter();
        let refuses = |doubt: &FigureDoubt| match doubt {
            FigureDoubt::RunDelay(share) if sort == FigureClass::Rate => self.is_changed_by(*share),
            doubt => doubt.refuses(sort, is_pulled(self.expect, self.verdict, &self.interval)),
        };
        let mut doubts: Vec<String> = doubts.filter(refuses).map(FigureDoubt::words).collect();
        doubts.extend(self.reservation());
        doubts.extend(match self.paired.shown.stop {
            ComparisonStop::Died => Some("a client of a side failed".to_owned()),
            ComparisonStop::Interrupted => Some("it was interrupted".to_owned()),
            _ => None,
        });
        doubts
    }

    /// What speaks against a difference of throughput.
    fn reservation(&self) -> Option<String> {
        let ConfidenceInterval { point: value, low, high, confidence, n, .. } = self.interval;
        let seen = match () {
            () if self.metric != ComparedMetric::Throughput => return None,
            () if low > 1.0 => Seen::Better,
            () if high < 1.0 => Seen::Worse,
            () => return None,
        };
        let ratio = MetricRatio { value, low, high, confidence, n, method: String::new() };
        let reservation = self.paired.shown.reservation(seen, &ratio, THRESHOLD, None)?;
        Some(reservation.words())
    }

    /// True if the verdict is another one without the generator's wait for a CPU, which was this share of
    /// what clients waited.
    fn is_changed_by(&self, share: f64) -> bool {
        let corrected = self.interval.map(|ratio| without_wait(ratio, share));
        verdict_of(self.expect, &corrected) != self.verdict
    }
}

/// A quotient of rates as it would be without the generator's wait for a CPU. Each transaction of either
/// side waits for the same time; the sides have their turns for as long as each other, so that `share` is
/// the mean of the shares that this is of their latencies.
fn without_wait(ratio: f64, share: f64) -> f64 {
    let left = |share: f64| (1.0 - share).max(0.01);
    let of_below = 2.0 * share / (1.0 + ratio);
    ratio * left(of_below) / left(ratio * of_below)
}

pub(crate) fn verdict_of(expect: Expectation, interval: &ConfidenceInterval) -> Verdict {
    // A confidence sequence is as wide as few observations make it: no number of them is too few.
    match expect.judge(Ok(interval), 1) {
        stats::ExpectationVerdict::Holds => Verdict::Holds,
        stats::ExpectationVerdict::DoesNotHold => Verdict::DoesNotHold,
        stats::ExpectationVerdict::CannotTell(_) => Verdict::CannotTell,
    }
}

/// True if a verdict on a quotient with this interval may be false if the quotient is further away from 1
/// than it seems.
pub(crate) fn is_pulled(
    expect: Expectation,
    verdict: Verdict,
    interval: &ConfidenceInterval,
) -> bool {
    let (from, to) = expect.range();
    let (may_be_less, may_be_more) = (interval.low < 1.0, interval.high > 1.0);
    match verdict {
        // It may lie beyond a bound of the range.
        Verdict::Holds => (may_be_less && from > 0.0) || (may_be_more && to.is_finite()),
        // It may lie in a range further away.
        Verdict::DoesNotHold => {
            (may_be_less && to < interval.low) || (may_be_more && from > interval.high)
        }
        Verdict::CannotTell => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(low: f64, high: f64) -> ConfidenceInterval {
        ConfidenceInterval { low, high, ..ConfidenceInterval::exact((low * high).sqrt(), 8) }
    }

    #[test]
    fn a_pull_towards_1_matters_on_the_side_of_1_that_a_quotient_is_on() {
        use Verdict::{DoesNotHold, Holds};
        let check = |expect, verdict, (low, high), expected| {
            let seen = is_pulled(expect, verdict, &interval(low, high));
            assert_eq!(seen, expected, "{expect:?} {verdict:?} [{low}, {high}]");
        };
        let (at_least, less) = (Expectation::AtLeast, Expectation::LessThan);
        check(at_least(1.0), Holds, (2.1, 4.0), false);
        check(less(1.0), Holds, (0.45, 0.63), false);
        check(at_least(0.9), Holds, (0.92, 0.98), true);
        check(at_least(0.9), Holds, (1.05, 1.2), false);
        check(Expectation::Between { low: 0.95, high: 1.05 }, Holds, (0.97, 1.03), true);
        check(at_least(1.14), DoesNotHold, (1.02, 1.1), true);
        check(at_least(1.14), DoesNotHold, (0.5, 0.6), false);
        check(at_least(0.9), DoesNotHold, (0.7, 0.8), false);
    }

    #[test]
    fn a_wait_that_both_sides_share_is_taken_out_of_a_quotient() {
        // 10 ms and 5 ms, of which 1 ms is the wait: 15 % of what clients wait, as both have the same time.
        assert!((without_wait(2.0, 0.15) - 9.0 / 4.0).abs() < 1e-12);
        assert!((without_wait(0.5, 0.15) - 4.0 / 9.0).abs() < 1e-12);
        assert!((without_wait(1.0, 0.3) - 1.0).abs() < 1e-12);
        assert!(without_wait(3.0, 0.9).is_finite());
    }
}
