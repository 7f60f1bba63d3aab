//! A value and where it is expected.
//!
//! The value is computed from means over rounds. Its interval comes from resampling rounds, all
//! trials of a round together: rounds are the blocks in which trials were interleaved, so what a
//! whole round has in common cancels (research on interleaved trials: Abedi and Brecht, 2017).

use record::Trial;
use spec::{Expression, Study};
use stats::{Doubt, Expectation, HEADLINE_ROUNDS_MIN, Interval, RESAMPLES, Resamples};

use crate::doubt;
use crate::judge::{Found, Measured, Verdict};
use crate::rounds::Rounds;

/// The confidence of every interval.
const CONFIDENCE: f64 = 0.95;

/// Judges a value.
pub(crate) fn judge(
    study: &Study,
    expression: &Expression,
    expect: Expectation,
    trials: &[Trial],
) -> Found {
    let rounds = Rounds::collect(study, expression.references(), trials);
    if rounds.rows.is_empty() {
        let why = missing(study, expression, trials);
        return Found { measured: Measured::Nothing, verdict: Verdict::CannotTell, why };
    }
    let per_round = expression.evaluate(rounds.rows.iter().map(Vec::as_slice));
    let interval = interval(expression, &rounds, study.seed);
    let judged = expect.judge(interval.as_ref().map_err(|why| *why), HEADLINE_ROUNDS_MIN);
    let mut reasons = match judged {
        stats::Verdict::CannotTell(doubt) => vec![worded(doubt)],
        _ => Vec::new(),
    };
    if rounds.incomplete > 0 {
        let plural = if rounds.incomplete == 1 { "round is" } else { "rounds are" };
        reasons.push(format!("{} {plural} incomplete", rounds.incomplete));
    }
    let limits = doubt::limits(study, expression.references(), trials);
    let verdict = match judged {
        _ if !limits.is_empty() => Verdict::CannotTell,
        stats::Verdict::Holds => Verdict::Holds,
        stats::Verdict::DoesNotHold => Verdict::DoesNotHold,
        stats::Verdict::CannotTell(_) => Verdict::CannotTell,
    };
    reasons.extend(limits);
    let measured = match interval {
        Ok(interval) => Measured::Value { interval, per_round },
        Err(_) => Measured::Nothing,
    };
    Found { measured, verdict, why: reasons.join("; ") }
}

/// A value and its interval, where there is anything to compute it from.
pub(crate) fn estimate(
    study: &Study,
    expression: &Expression,
    trials: &[Trial],
) -> Option<Interval> {
    let rounds = Rounds::collect(study, expression.references(), trials);
    (!rounds.rows.is_empty()).then(|| interval(expression, &rounds, study.seed).ok()).flatten()
}

/// The value on all rounds, and its interval.
fn interval(
    expression: &Expression,
    rounds: &Rounds,
    seed: u64,
) -> Result<Interval, stats::NoInterval> {
    let n = rounds.rows.len();
    let resamples = Resamples::new(n, RESAMPLES, seed);
    let all: Vec<usize> = (0..n).collect();
    let means: Vec<Vec<f64>> = std::iter::once(all.as_slice())
        .chain(resamples.iter())
        .map(|chosen| rounds.means(chosen))
        .collect();
    let values = expression.evaluate(means.iter().map(Vec::as_slice));
    let (point, resampled) = (values[0], &values[1..]);
    stats::bootstrap::expanded_percentile(point, resampled, n, CONFIDENCE)
}

fn worded(doubt: Doubt) -> String {
    match doubt {
        Doubt::TooFewRounds { n, needed } => {
            format!("{n} of the {needed} rounds that a verdict takes")
        }
        other => other.to_string(),
    }
}

/// Which trials have nothing to say, and about what.
fn missing(study: &Study, expression: &Expression, trials: &[Trial]) -> String {
    for reference in expression.references() {
        let alone = Rounds::collect(study, std::slice::from_ref(reference), trials);
        if alone.rows.is_empty() {
            let name = &study.points[reference.point].name;
            return format!("no trial of {name} has {}", reference.metric.name);
        }
    }
    "no round has all of it".to_owned()
}
