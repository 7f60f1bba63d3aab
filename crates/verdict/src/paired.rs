//! A value that was measured in pairs, and where it is expected.
//!
//! What was measured from one restart of the servers to the next is the unit of replication. The interval is a confidence sequence
//! ([`stats::sequence`]), which stays valid although measuring stopped when it was narrow enough.
//! It is computed again from the record's series, so that the verdict rests on what was observed.

use record::comparison::{Metric, Stop};
use record::{Ending, Paired, Series, Sort};
use spec::{Expression, Study};
use stats::{Expectation, Interval, sequence};

use crate::claim_verdict::{Found, Measured, Verdict};

/// The confidence of every interval.
const CONFIDENCE: f64 = 0.95;

/// The reason why a quotient was not measured in pairs although its study asks for them: this machine has no
/// room for the servers of both points. None where pairs were tried, or are not there yet.
pub(crate) fn missing(study: &Study, value: &Expression, pairs: &[Paired]) -> Option<String> {
    let (above, below) = value.ratio()?;
    let (above, below) = (value.references()[above].point, value.references()[below].point);
    let is_meant = |paired: &&Paired| is_of(study, paired, [above, below]);
    // What one attempt found is not undone by another one that was skipped.
    let mut why = None;
    for paired in pairs.iter().filter(is_meant) {
        let Ending::Skipped(_) = &paired.ending else { return None };
        why = Some(paired.ending.why().to_owned());
    }
    why
}

/// True if these are the pairs of the point of a numerator and that of a denominator.
fn is_of(study: &Study, paired: &Paired, [above, below]: [usize; 2]) -> bool {
    let point = |variant, scenario| study.point(variant, scenario, &paired.axes);
    point(&paired.above, &paired.scenario) == Some(above)
        && point(&paired.below, paired.scenario_below()) == Some(below)
}

/// Judges a quotient of two figures by the pairs of its points.
pub(crate) fn judge(
    study: &Study,
    value: &Expression,
    expect: Expectation,
    pairs: &[Paired],
) -> Found {
    let nothing = |why: String| Found {
        measured: Measured::Nothing,
        verdict: Verdict::CannotTell,
        why,
        p: None,
    };
    let Some((above, below)) = value.ratio() else {
        return nothing("it is no quotient of two figures".to_owned());
    };
    let (above, below) = (&value.references()[above], &value.references()[below]);
    let is_meant = |paired: &&Paired| is_of(study, paired, [above.point, below.point]);
    let Some(paired) = pairs.iter().filter(is_meant).max_by_key(|paired| paired.attempt) else {
        let (above, below) = (&study.points[above.point].name, &study.points[below.point].name);
        return nothing(format!("{above} and {below} were not measured in pairs"));
    };
    if paired.ending != Ending::Done {
        return nothing(paired.ending.why().to_owned());
    }
    let series = Metric::of(above.metric).and_then(|metric| paired.series(metric));
    let interval = series.map(|series| interval(series, CONFIDENCE));
    let Some((series, Ok(interval))) = series.zip(interval) else {
        return nothing(format!(
            "{} segments are too few; an interval takes {} or more, each with enough transactions",
            paired.instances.segments,
            sequence::OBSERVATIONS_MIN
        ));
    };
    // A confidence sequence is as wide as few observations make it: no number of them is too few.
    let verdict = match expect.judge(Ok(&interval), 1) {
        stats::Verdict::Holds => Verdict::Holds,
        stats::Verdict::DoesNotHold => Verdict::DoesNotHold,
        stats::Verdict::CannotTell(_) => Verdict::CannotTell,
    };
    let p = expect.p_value(interval.point, |bound| p_value(series, bound));
    let mut found = Found {
        why: match verdict {
            Verdict::CannotTell => "the interval reaches over the bound".to_owned(),
            Verdict::Holds | Verdict::DoesNotHold => String::new(),
        },
        measured: Measured::Pairs { interval, pairs: paired.pairs },
        verdict,
        p: Some(p),
    };
    let mut doubts = doubts(paired, above.metric.is_latency(), expect, verdict);
    let is_open = |paired: &&Paired| paired.ending.stays_open();
    if let Some(earlier) = pairs.iter().filter(is_meant).find(is_open) {
        let (attempt, why) = (earlier.attempt, earlier.ending.why());
        let word = match earlier.ending {
            Ending::Interrupted(_) => "was interrupted",
            _ => "failed",
        };
        doubts.push(format!("attempt {attempt} {word}: {why}"));
    }
    found.doubt(doubts);
    found
}

fn interval(series: &Series, confidence: f64) -> Result<Interval, stats::NoInterval> {
    sequence::ratio(&series.above, &series.below, confidence)
}

fn p_value(series: &Series, bound: f64) -> f64 {
    sequence::ratio_p(&series.above, &series.below, bound).unwrap_or(1.0)
}

/// Doubts about figures of pairs: the same as those of `pgrig compare`.
fn doubts(paired: &Paired, is_latency: bool, expect: Expectation, verdict: Verdict) -> Vec<String> {
    let sort = if is_latency { Sort::Latency } else { Sort::Rate };
    let is_near_one = is_near_one(expect, verdict);
    let doubts = paired.conditions.doubts().into_iter();
    let mut doubts: Vec<String> =
        doubts.filter(|doubt| doubt.refuses(sort, is_near_one)).map(record::Doubt::words).collect();
    if paired.stop == Some(Stop::Died) {
        doubts.push("a client of a side failed".to_owned());
    }
    doubts
}

/// True if a verdict on a quotient may be false if the quotient is further away from 1 than it
/// seems.
pub(crate) fn is_near_one(expect: Expectation, verdict: Verdict) -> bool {
    let (from, to) = expect.range();
    let expects_one = from <= 1.0 && 1.0 <= to;
    match verdict {
        // A range that does not reach over 1 may be left on its far side.
        Verdict::Holds => expects_one || (to.is_finite() && from > 1.0) || (from > 0.0 && to < 1.0),
        Verdict::DoesNotHold => !expects_one,
        Verdict::CannotTell => false,
    }
}
