//! A value and where it is expected.
//!
//! Rounds are the unit: all trials of a round were run near each other, so what a whole round has
//! in common cancels in the round's own value. A ratio of two figures has Student's interval on
//! the logarithms of the rounds' ratios, or the signed-rank interval where a round stands apart
//! ([`stats::centre`]). Where one side of a round is zero, which has no logarithm, the ratio is the
//! median of the rounds' ratios with the interval of the exact sign test, so that a round in which
//! a server completed nothing counts as what it is. Any other expression has the median of the rounds' values with the interval
//! of the exact sign test: its noise is one-sided as a rule (stalls only slow), and of the six to
//! twenty rounds of a study no method finds the mean then, while the median's interval covers
//! whatever the distribution is. (Percentiles of a bootstrap over rounds, tried before, covered
//! 91 % with two-peaked noise and six rounds.)

use std::collections::{BTreeMap, BTreeSet};

use record::{AttemptEnding, PlannedTrial, Trial};
use spec::{ClaimExpression, DataReset, Study, metrics};
use stats::serial::{self, SerialDependence};
use stats::{
    ConfidenceInterval, Expectation, HEADLINE_ROUNDS_MIN, NoInterval, centre, ratio, sample,
    sign_test,
};

use crate::attempts::{self, AttemptChoice};
use crate::claim_verdict::{ClaimFinding, ClaimMeasurement, Verdict};
use crate::delay;
use crate::doubt;
use crate::gaps::RoundGaps;
use crate::paired;
use crate::rounds::RoundValues;
use terms::{figure, figure_with_interval};

/// The confidence of every interval.
const CONFIDENCE: f64 = 0.95;

/// Judges a value by itself, whatever else the study claims: over all trials that count, and again
/// over each other choice of attempts that differs (see [`AttemptChoice`]). Where two verdicts differ, it
/// cannot be told: the verdict may come from the choice.
pub(crate) fn judge(
    study: &Study,
    expression: &ClaimExpression,
    expect: Expectation,
    plan: &[PlannedTrial],
    trials: &[Trial],
) -> ClaimFinding {
    let points = points(expression);
    let own = |trial: &&Trial| {
        let point = study.point(&trial.variant, &trial.scenario, &trial.axes);
        point.is_some_and(|point| points.contains(&point))
    };
    let mut found = judge_chosen(study, expression, expect, trials, AttemptChoice::Counted);
    for chosen in attempts::others(trials.iter().filter(own)) {
        let other = judge_chosen(study, expression, expect, trials, chosen);
        let agrees = match &other.measured {
            // A stall in every round leaves no steady one to compare with: the stalls are the
            // result.
            ClaimMeasurement::Nothing if chosen == AttemptChoice::Steady => true,
            // Steady rounds too few for a verdict of their own must lie where the verdict says.
            ClaimMeasurement::Value { interval, .. } if interval.n < HEADLINE_ROUNDS_MIN => {
                lies(expect, interval) == found.verdict
            }
            _ => other.verdict == found.verdict,
        };
        if agrees || found.verdict == Verdict::CannotTell {
            continue;
        }
        let why = format!(
            "{}: {}; {}: {}",
            AttemptChoice::Counted.words(),
            described(&found),
            chosen.words(),
            described(&other)
        );
        found.why = if found.why.is_empty() { why } else { format!("{why}; {}", found.why) };
        found.verdict = Verdict::CannotTell;
    }
    survive(study, expression, expect, plan, trials, &mut found);
    stand_still(study, expression, trials, &mut found);
    may_be_few(expect, expression, &mut found);
    without_delay(study, expression, expect, trials, &mut found);
    found
}

/// Takes back what is said of a quotient if it is not the same without the generator's own delay, where that is
/// computed ([`delay`]).
fn without_delay(
    study: &Study,
    expression: &ClaimExpression,
    expect: Expectation,
    trials: &[Trial],
    found: &mut ClaimFinding,
) {
    // Only a value has an interval that the delay can move.
    let ClaimMeasurement::Value { interval, .. } = &found.measured else { return };
    if found.verdict == Verdict::CannotTell || !delay::is_computed(expression) {
        return;
    }
    let is_pulled = paired::is_pulled(expect, found.verdict, interval);
    for case in delay::cases(study, expression, is_pulled, trials) {
        let other = judge_chosen(study, expression, expect, &case.trials, AttemptChoice::Counted);
        if other.verdict != found.verdict {
            found.doubt(vec![format!("{}: {} without that", case.says, described(&other))]);
            return;
        }
    }
}

/// Takes back what only the rounds that are whole say: where a server failed or a planned round is
/// missing, it must be the same with those rounds counted as nothing.
fn survive(
    study: &Study,
    expression: &ClaimExpression,
    expect: Expectation,
    plan: &[PlannedTrial],
    trials: &[Trial],
    found: &mut ClaimFinding,
) {
    let gaps = RoundGaps::of(study, expression.references(), plan, trials);
    if gaps.words.is_empty() || found.verdict == Verdict::CannotTell {
        return;
    }
    let is_same = |rows: Vec<Vec<f64>>| {
        let rounds = RoundValues { rows, incomplete: 0, at_least: Vec::new() };
        let per_round = expression.evaluate(rounds.rows.iter().map(Vec::as_slice));
        let independent = are_restarted(study, expression);
        let estimate = Estimate::of(expression, &rounds, &per_round, independent);
        let interval = estimate.as_ref().map(|one| &one.interval).map_err(|why| *why);
        let verdict = match expect.judge(interval, HEADLINE_ROUNDS_MIN) {
            stats::ExpectationVerdict::Holds => Verdict::Holds,
            stats::ExpectationVerdict::DoesNotHold => Verdict::DoesNotHold,
            stats::ExpectationVerdict::CannotTell(_) => Verdict::CannotTell,
        };
        verdict == found.verdict
    };
    let stands = gaps.filled().into_iter().all(is_same);
    let words = gaps.words.join("; ");
    let why = match stands {
        true => format!("{words}: the verdict is the same with that counted as nothing"),
        false => format!(
            "{words}: {} without that, but not with that counted as nothing",
            found.verdict.words()
        ),
    };
    if !stands {
        found.verdict = Verdict::CannotTell;
    }
    found.why = if found.why.is_empty() { why } else { format!("{why}; {}", found.why) };
}

/// Below this share of its median, a rate of a round is a standstill.
const STANDSTILL: f64 = 0.5;

/// Refuses that a quotient holds where a side stood still in some rounds: the middle of the rounds
/// does not see it.
fn stand_still(
    study: &Study,
    expression: &ClaimExpression,
    trials: &[Trial],
    found: &mut ClaimFinding,
) {
    if expression.ratio().is_none() || found.verdict != Verdict::Holds {
        return;
    }
    let rounds = RoundValues::collect(study, expression.references(), trials);
    for (index, reference) in expression.references().iter().enumerate() {
        if !reference.metric.is_speed() || reference.metric.is_latency() {
            continue;
        }
        let values: Vec<f64> = rounds.rows.iter().map(|row| row[index]).collect();
        // Without a median, no round can be below half of it.
        let median = sample::median(&values).unwrap_or(0.0);
        let still: Vec<&f64> = values.iter().filter(|one| **one < STANDSTILL * median).collect();
        if let Some(least) = still.iter().copied().min_by(|one, other| one.total_cmp(other)) {
            let why = format!(
                "{} of {} was below half of its median ({}) in {} of {} rounds, {} at the least: \
                 the rounds' middle does not say what a user gets",
                reference.metric.name,
                study.points[reference.point].name,
                figure(median),
                still.len(),
                values.len(),
                figure(*least)
            );
            found.doubt(vec![why]);
        }
    }
}

/// Refuses that a quotient holds where a few rounds are unlike the others, and it would not with as many of them as these
/// rounds leave open: an interval that is not moved by them does not see what they cost.
fn may_be_few(expect: Expectation, expression: &ClaimExpression, found: &mut ClaimFinding) {
    // Only a value has an interval that a few rounds can move.
    let ClaimMeasurement::Value { interval, per_round } = &found.measured else { return };
    if expression.ratio().is_none() || found.verdict != Verdict::Holds {
        return;
    }
    let is_inside =
        |value: f64| lies(expect, &ConfidenceInterval::exact(value, 1)) == Verdict::Holds;
    let logs: Vec<f64> = per_round.iter().map(|one| one.ln()).collect();
    let unlike = sample::unlike(&logs).into_iter().map(|(round, _)| per_round[round]);
    let mut unlike: Vec<f64> = unlike.filter(|value| !is_inside(*value)).collect();
    unlike.sort_by(f64::total_cmp);
    // Without a round that is unlike the others, none can decide.
    let Some(worst) = unlike.first().copied() else { return };
    let (few, all) = (unlike.len() as u64, per_round.len() as u64);
    let share = stats::failure_rate::rate_upper_bound(few, all, CONFIDENCE).unwrap_or(1.0);
    let mean = (1.0 - share) * interval.point + share * worst;
    if !is_inside(mean) {
        let why = format!(
            "{few} of {all} rounds had {}, which up to {} of all rounds may have: the mean of all may be {}",
            figure(worst),
            terms::percent(share),
            figure(mean)
        );
        found.doubt(vec![why]);
    }
}

/// True if the servers are restarted before each trial, as they are if topologies take turns: then
/// the machine causes what rounds have in common beyond their own, and both sides meet it.
fn are_restarted(study: &Study, expression: &ClaimExpression) -> bool {
    let own = || points(expression).into_iter().map(|point| &study.points[point]);
    let first = study.points.first().map(|point| &point.topology);
    let take_turns = study.points.iter().any(|point| Some(&point.topology) != first);
    take_turns || own().all(|point| point.data.reset != DataReset::Keep)
}

/// Position of an interval, however few rounds it rests on.
fn lies(expect: Expectation, interval: &ConfidenceInterval) -> Verdict {
    match expect.judge(Ok(interval), 1) {
        stats::ExpectationVerdict::Holds => Verdict::Holds,
        stats::ExpectationVerdict::DoesNotHold => Verdict::DoesNotHold,
        stats::ExpectationVerdict::CannotTell(_) => Verdict::CannotTell,
    }
}

/// The points that an expression speaks of.
fn points(expression: &ClaimExpression) -> BTreeSet<usize> {
    expression.references().iter().map(|reference| reference.point).collect()
}

/// A verdict and the interval that it rests on.
fn described(found: &ClaimFinding) -> String {
    match &found.measured {
        ClaimMeasurement::Value {
            interval: ConfidenceInterval { point, low, high, .. }, ..
        } => {
            let (value, range) = figure_with_interval(*point, *low, *high);
            format!("{}, {value} {range}", found.verdict.words())
        }
        ClaimMeasurement::Nothing
        | ClaimMeasurement::LeftOut
        | ClaimMeasurement::BeyondProfile
        | ClaimMeasurement::Pairs { .. }
        | ClaimMeasurement::Count { .. } => found.verdict.words().to_owned(),
    }
}

fn judge_chosen(
    study: &Study,
    expression: &ClaimExpression,
    expect: Expectation,
    trials: &[Trial],
    which: AttemptChoice,
) -> ClaimFinding {
    let rounds = RoundValues::of(study, expression.references(), trials, which);
    if rounds.rows.is_empty() {
        let why = missing(study, expression, trials);
        return ClaimFinding {
            measured: ClaimMeasurement::Nothing,
            verdict: Verdict::CannotTell,
            why,
            p: None,
        };
    }
    let per_round = expression.evaluate(rounds.rows.iter().map(Vec::as_slice));
    let independent = are_restarted(study, expression);
    let estimate = Estimate::of(expression, &rounds, &per_round, independent);
    let interval = estimate.as_ref().map(|estimate| &estimate.interval).map_err(|why| *why);
    let judged = expect.judge(interval, HEADLINE_ROUNDS_MIN);
    let mut reasons = match judged {
        stats::ExpectationVerdict::CannotTell(doubt) => vec![doubt.to_string()],
        _ => Vec::new(),
    };
    if let Some(drift) = estimate.as_ref().ok().and_then(|estimate| estimate.drift) {
        let why = match drift.is_seen {
            true => format!(
                "rounds resemble their neighbours (lag-1 autocorrelation {:.2})",
                drift.autocorrelation
            ),
            false => {
                "the servers ran on from round to round, which may depend on each other".to_owned()
            }
        };
        reasons.push(format!(
            "{why}: the interval is {:.1} times as wide as it would be for independent rounds",
            drift.widening
        ));
    }
    if rounds.incomplete > 0 {
        let plural = if rounds.incomplete == 1 { "round is" } else { "rounds are" };
        reasons.push(format!("{} {plural} incomplete", rounds.incomplete));
    }
    let mut limits = doubt::limits(study, expression, trials);
    if let Some((first, others)) = rounds.at_least.split_first() {
        let more = if others.is_empty() { "" } else { ", and others" };
        limits.push(format!(
            "what had not ended at the close is longer than it is known ({first}{more})"
        ));
    }
    let verdict = match judged {
        _ if !limits.is_empty() => Verdict::CannotTell,
        stats::ExpectationVerdict::Holds => Verdict::Holds,
        stats::ExpectationVerdict::DoesNotHold => Verdict::DoesNotHold,
        stats::ExpectationVerdict::CannotTell(_) => Verdict::CannotTell,
    };
    reasons.extend(limits);
    reasons.extend(checkpoints(study, expression, trials));
    let judgeable = estimate.as_ref().ok().filter(|one| one.interval.n >= HEADLINE_ROUNDS_MIN);
    let p = judgeable.map(|estimate| estimate.p_value(expect));
    let measured = match estimate {
        Ok(estimate) => ClaimMeasurement::Value { interval: estimate.interval, per_round },
        Err(_) => ClaimMeasurement::Nothing,
    };
    ClaimFinding { measured, verdict, why: reasons.join("; "), p }
}

/// A value and its interval, where there is anything to compute it from.
pub(crate) fn estimate(
    study: &Study,
    expression: &ClaimExpression,
    trials: &[Trial],
) -> Option<ConfidenceInterval> {
    let rounds = RoundValues::collect(study, expression.references(), trials);
    let per_round = expression.evaluate(rounds.rows.iter().map(Vec::as_slice));
    let independent = are_restarted(study, expression);
    Estimate::of(expression, &rounds, &per_round, independent)
        .ok()
        .map(|estimate| estimate.interval)
}

/// A value over rounds, and what its interval was made from.
struct Estimate {
    interval: ConfidenceInterval,
    /// Dependence between rounds, for which the interval has been widened.
    drift: Option<SerialDependence>,
    /// The rounds' values on the scale.
    values: Vec<f64>,
    scale: Scale,
}

/// Scale on which an interval is computed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scale {
    /// The values themselves.
    Value,
    /// The logarithms of ratios.
    Log,
    /// The shares of ratios of which one side may be zero; see [`ratio::shares`].
    Share,
}

impl Scale {
    /// The rounds' values on the scale that an expression has.
    fn of(
        expression: &ClaimExpression,
        rounds: &RoundValues,
        per_round: &[f64],
    ) -> Result<(Scale, Vec<f64>), NoInterval> {
        let Some((numerator, denominator)) = expression.ratio() else {
            return Ok((Scale::Value, per_round.to_vec()));
        };
        let column =
            |index: usize| -> Vec<f64> { rounds.rows.iter().map(|row| row[index]).collect() };
        let (above, below) = (column(numerator), column(denominator));
        match ratio::log_ratios(&above, &below) {
            Err(NoInterval::NotPositive) => Ok((Scale::Share, ratio::shares(&above, &below)?)),
            logs => Ok((Scale::Log, logs?)),
        }
    }

    /// A value on this scale; of a ratio not above zero, its lowest end.
    fn scaled(self, value: f64) -> f64 {
        match self {
            Scale::Value => value,
            Scale::Log if value <= 0.0 => f64::NEG_INFINITY,
            Scale::Log => value.ln(),
            Scale::Share if value <= 0.0 => 0.0,
            Scale::Share if value.is_infinite() => 1.0,
            Scale::Share => value / (1.0 + value),
        }
    }

    /// The value of what is on this scale.
    fn value(self, scaled: f64) -> f64 {
        match self {
            Scale::Value => scaled,
            Scale::Log => scaled.exp(),
            Scale::Share => ratio::of_share(scaled),
        }
    }
}

impl Estimate {
    fn of(
        expression: &ClaimExpression,
        rounds: &RoundValues,
        per_round: &[f64],
        are_independent: bool,
    ) -> Result<Estimate, NoInterval> {
        let (scale, values) = Scale::of(expression, rounds, per_round)?;
        let (interval, drift) = match values.len() < HEADLINE_ROUNDS_MIN {
            true => {
                let middle = if scale == Scale::Log { sample::mean } else { sample::median };
                let range =
                    middle(&values).and_then(|point| ConfidenceInterval::range(point, &values));
                (range.ok_or(NoInterval::NotFinite)?, None)
            }
            false => {
                let of_rounds = match scale {
                    Scale::Log => centre::interval,
                    Scale::Value | Scale::Share => sign_test::median_interval,
                };
                let interval = of_rounds(&values, CONFIDENCE)?;
                let drift = serial::drift(&values, are_independent);
                (drift.map_or(interval, |drift| interval.widened(drift.widening)), drift)
            }
        };
        let interval = interval.map(|bound| scale.value(bound));
        Ok(Estimate { interval, drift, values, scale })
    }

    /// Smallest error probability at which the verdict would stand; see [`Expectation::p_value`].
    fn p_value(&self, expect: Expectation) -> f64 {
        let widening = self.drift.map_or(1.0, |drift| drift.widening);
        let point = self.scale.scaled(self.interval.point);
        expect.p_value(self.interval.point, |bound, equal| {
            let bound = self.scale.scaled(bound);
            if bound.is_infinite() {
                return 0.0;
            }
            // A wider interval excludes a bound where the narrow one excludes a nearer one.
            let nearer = point + (bound - point) / widening;
            match self.scale {
                Scale::Log => centre::p_value(&self.values, nearer),
                Scale::Value | Scale::Share => sign_test::median_p(&self.values, nearer, equal),
            }
        })
    }
}

/// Warning that compared windows differ in the number of checkpoints inside them, since a
/// checkpoint costs throughput.
fn checkpoints(study: &Study, expression: &ClaimExpression, trials: &[Trial]) -> Option<String> {
    let points = points(expression);
    let mut by_round: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| trial.ending == AttemptEnding::Done) {
        let point = study.point(&trial.variant, &trial.scenario, &trial.axes);
        if !point.is_some_and(|point| points.contains(&point)) {
            continue;
        }
        if let Some(scopes) = trial.scopes(&metrics::CHECKPOINTS) {
            let most = scopes.values().copied().fold(0.0, f64::max);
            by_round.entry(trial.round).or_default().insert(most as u64);
        }
    }
    let differ = by_round.values().filter(|counts| counts.len() > 1).count();
    let all = by_round.len();
    (differ > 0).then(|| {
        format!(
            "compared windows hold different numbers of checkpoints in {differ} of {all} rounds"
        )
    })
}

/// Trials that lack a value, and the value.
fn missing(study: &Study, expression: &ClaimExpression, trials: &[Trial]) -> String {
    for reference in expression.references() {
        let alone = RoundValues::collect(study, std::slice::from_ref(reference), trials);
        if alone.rows.is_empty() {
            let name = &study.points[reference.point].name;
            return format!("no trial of {name} has {}", reference.metric.name);
        }
    }
    "no round has all of it".to_owned()
}
