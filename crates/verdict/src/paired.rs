//! A value that was measured in pairs, and where it is expected.
//!
//! Octets of blocks are the unit of replication. The interval is a confidence sequence
//! ([`stats::sequence`]), which stays valid although measuring stopped when it was narrow enough.
//! It is computed again from the record's series, so that the verdict rests on what was observed.

use record::comparison::{Metric, OCTET_PAIRS, Stop};
use record::{Conditions, Ending, Fault, Generator, Paired, Series};
use spec::{Expression, Study};
use stats::{Expectation, HEADLINE_ROUNDS_MIN, Interval, sequence};

use crate::claim_verdict::{Found, Measured, Verdict};
use crate::doubt::STEAL_PCT_MAX;

/// A side of which more transactions fail does other work.
const FAILED_SHARE_MAX: f64 = 0.01;

/// The confidence of every interval.
const CONFIDENCE: f64 = 0.95;

/// Why a quotient was not measured in pairs: this machine has no room for both points' servers, or
/// the pairs are not there. None where they were, or were tried.
pub(crate) fn missing(study: &Study, value: &Expression, pairs: &[Paired]) -> Option<String> {
    let (above, below) = value.ratio()?;
    let (above, below) = (value.references()[above].point, value.references()[below].point);
    let is_meant = |paired: &&Paired| {
        let point = |variant| study.point(variant, &paired.scenario, &paired.axes);
        point(&paired.above) == Some(above) && point(&paired.below) == Some(below)
    };
    match pairs.iter().filter(is_meant).max_by_key(|paired| paired.attempt) {
        None => Some("no pairs were measured".to_owned()),
        Some(Paired { ending: ending @ Ending::Skipped(_), .. }) => Some(ending.why().to_owned()),
        Some(_) => None,
    }
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
    let is_meant = |paired: &&Paired| {
        let point = |variant| study.point(variant, &paired.scenario, &paired.axes);
        point(&paired.above) == Some(above.point) && point(&paired.below) == Some(below.point)
    };
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
        let needed = OCTET_PAIRS * sequence::OBSERVATIONS_MIN;
        return nothing(format!(
            "{} pairs are too few; an interval takes {needed} or more",
            paired.pairs
        ));
    };
    // A confidence sequence is as wide as few observations make it: no number of them is too few.
    let verdict = match expect.judge(Ok(&interval), HEADLINE_ROUNDS_MIN) {
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
    let mut doubts = doubts(paired, above.metric.is_latency());
    let died = |paired: &&Paired| matches!(&paired.ending, Ending::Failed(why) if why.kind == Fault::Server);
    if let Some(earlier) = pairs.iter().filter(is_meant).find(died) {
        let (attempt, why) = (earlier.attempt, earlier.ending.why());
        doubts.push(format!("a server failed in attempt {attempt}: {why}"));
    }
    found.doubt(doubts);
    found
}

fn interval(series: &Series, confidence: f64) -> Result<Interval, stats::NoInterval> {
    sequence::ratio(&series.above, &series.below, confidence, series.tuned_for)
}

fn p_value(series: &Series, bound: f64) -> f64 {
    sequence::ratio_p(&series.above, &series.below, bound, series.tuned_for).unwrap_or(1.0)
}

/// What makes figures of pairs doubtful; the bounds are those of whole trials.
fn doubts(paired: &Paired, is_latency: bool) -> Vec<String> {
    let Conditions { busy_share_max, run_delay_share_max, steal_share, .. } = paired.conditions;
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let mut doubts = Vec::new();
    if busy_share_max > Generator::BUSY_SHARE_MAX {
        doubts.push(format!("the generator was the limit: {} busy", percent(busy_share_max)));
    }
    if is_latency && run_delay_share_max > Generator::RUN_DELAY_SHARE_MAX {
        let share = percent(run_delay_share_max);
        doubts.push(format!("the generator waited for a CPU: {share} of what its clients waited"));
    }
    if steal_share * 100.0 > STEAL_PCT_MAX {
        let share = percent(steal_share);
        doubts.push(format!("the hypervisor gave {share} of the machine's CPU to others"));
    }
    if paired.conditions.is_rate_missed {
        doubts.push(
            "a side did not reach its rate: latencies depend on how long it was loaded".to_owned(),
        );
    }
    if paired.conditions.failed_share_max > FAILED_SHARE_MAX {
        let share = paired.conditions.failed_share_max * 100.0;
        doubts.push(format!("{share:.1} % of a side's transactions failed"));
    }
    if paired.stop == Some(Stop::Died) {
        doubts.push("a client of a side failed".to_owned());
    }
    doubts
}
