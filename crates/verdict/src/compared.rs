//! A record of `pgrig compare`: its answer, and what decides besides the claims of its study.

use record::comparison::{
    ComparedMetric, ComparisonFigure, FigureVerdict as Seen, MetricRatio, ProductionForecast,
    ServerDifference, StatementComparison, StatementVerdict, WorkComparison,
};
use record::{
    Comparison, FailedMore, FigureDoubt, MeasuringConditions, PairingAttempt, RecordHeader, Trial,
};
use spec::{ClaimKind, ClaimRank, Study};
use stats::sequence::OBSERVATIONS_MIN;
use stats::{ConfidenceInterval, Expectation};

use crate::claim_verdict::{ClaimMeasurement, ClaimVerdict, Verdict};
use crate::judge::{StudyVerdicts, judge_at, leave_to_larger_profiles};
use crate::paired::{CONFIDENCE, JudgedPair, verdict_of};

/// Judges a record. One of `pgrig compare` also decides by figures that claims cannot speak of, and by the
/// transactions that failed; it has an answer of its own.
#[must_use]
pub fn judge_record(
    study: &Study,
    header: &RecordHeader,
    trials: &[Trial],
    pairs: &[PairingAttempt],
) -> StudyVerdicts {
    let compared = header.comparison.as_ref().zip(pairs.last());
    // The figures that decide hold together: each claim has the confidence that they have.
    let confidence = compared.map_or(CONFIDENCE, |(comparison, _)| comparison.confidence_of_each());
    let mut judgement = judge_at(confidence, study, &header.plan, trials, pairs);
    if let Some((comparison, paired)) = compared {
        let conditions = &paired.shown.conditions;
        judgement.answer = answer(comparison, paired);
        if conditions.failed_more() == FailedMore::Shown {
            let words = conditions.failures_words();
            judgement.answer =
                format!("More transactions fail on B: {words}. {}", judgement.answer);
        }
        if let Some(first) = paired.shown.work.differences.first() {
            judgement.answer = format!(
                "B does something else than A: {first}. No speed of the whole is compared."
            );
        }
        if let Some(words) = ground_words(&paired.shown.ground) {
            judgement.answer = match paired.shown.work.differences.is_empty() {
                true => words,
                false => format!("{} {words}", judgement.answer),
            };
        }
        judgement.answer.push_str(&statements_words(&paired.shown.statements));
        if let Some(forecast) = &paired.shown.production {
            judgement.answer = with_forecast(&judgement.answer, forecast);
        }
        let (claimed, others): (Vec<ComparedMetric>, Vec<ComparedMetric>) =
            comparison.decides.iter().partition(|metric| metric.catalogued().is_some());
        for (claim, metric) in judgement.claims.iter_mut().zip(claimed.iter().copied()) {
            if let ClaimMeasurement::Pairs { interval, .. } = &claim.measured
                && claim.verdict != Verdict::CannotTell
                && let Some(why) = below_floor(comparison, paired, metric, interval.point)
                    .or_else(|| not_excluded(comparison, paired, metric, (interval, claim.verdict)))
            {
                (claim.verdict, claim.alone) = (Verdict::CannotTell, Verdict::CannotTell);
                claim.why = why;
            }
        }
        // A percentile that is out of reach does not hide what can be told: it is named, and fails no gate.
        if judgement.claims.iter().any(|claim| claim.verdict != Verdict::CannotTell) {
            let claims = judgement.claims.iter_mut().zip(claimed);
            for (claim, _) in claims.filter(|(_, metric)| is_out_of_reach(paired, *metric)) {
                claim.kind = ClaimKind::Finding;
            }
        }
        let others = others.into_iter().map(|metric| by_figure(comparison, paired, metric));
        judgement.claims.extend(others);
        judgement.claims.push(of_failures(conditions));
        judgement.claims.push(of_work(&paired.shown.work));
        judgement.claims.extend(paired.shown.statements.iter().map(of_statement));
    } else {
        leave_to_larger_profiles(study, &mut judgement.claims);
    }
    judgement
}

/// The answer where the sides differ in what no option names; none where they do not.
fn ground_words(ground: &[ServerDifference]) -> Option<String> {
    let first = ground.first()?;
    let mut names: Vec<&str> = ground.iter().map(|one| one.name.as_str()).collect();
    names.dedup();
    let more = match ground.len() {
        1 => String::new(),
        all => format!(", and {} more", terms::counted(all as u64 - 1, "difference")),
    };
    let them = if ground.len() == 1 { "it" } else { "them" };
    let level = ground.iter().find_map(|one| one.level.as_ref());
    let level =
        level.map_or(String::new(), |level| format!("make both sides alike ({level}), or "));
    Some(format!(
        "Cannot tell what B is like: {}{more}, and no option names {them}. Next: {level}say that it is meant: \
         --differs {}.",
        first.words(),
        names.join(",")
    ))
}

/// Why nothing is said of a quotient near 1: identical servers may differ by as much here, and by
/// more than the threshold.
fn below_floor(
    comparison: &Comparison,
    paired: &PairingAttempt,
    metric: ComparedMetric,
    ratio: f64,
) -> Option<String> {
    let floor = paired.shown.instances.floor(metric);
    (comparison.threshold < floor && ratio.ln().abs() < floor.ln_1p()).then(|| {
        format!(
            "identical servers may differ by {:.1} % here, which is more than the threshold",
            floor * 100.0
        )
    })
}

/// Why nothing is said of throughput although its interval is clear: what was not seen may change it, or
/// something that was seen.
fn not_excluded(
    comparison: &Comparison,
    paired: &PairingAttempt,
    metric: ComparedMetric,
    (interval, verdict): (&ConfidenceInterval, Verdict),
) -> Option<String> {
    if metric != ComparedMetric::Throughput {
        return None;
    }
    let shown = &paired.shown;
    let ConfidenceInterval { point: value, low, high, confidence, n, .. } = *interval;
    let ratio = MetricRatio { value, low, high, confidence, n, method: String::new() };
    // Rare events are not known where transactions are too long for them: no loss by them is
    // claimed.
    let loss = shown.rare.map_or(0.0, |rare| rare.loss_max(1));
    let is_within_all = low * (1.0 - loss) >= 1.0 / (1.0 + comparison.threshold);
    let seen = match verdict {
        Verdict::CannotTell => Seen::CannotTell,
        Verdict::DoesNotHold => Seen::Worse,
        // However rare what was not seen is, B is not worse.
        Verdict::Holds if low > 1.0 || is_within_all => Seen::Better,
        Verdict::Holds => Seen::Equal,
    };
    let (threshold, horizon_s) = (comparison.threshold, comparison.horizon_s);
    shown.reservation(seen, &ratio, threshold, horizon_s).map(|one| one.words())
}

/// The verdict on a figure that no claim can speak of, by its own interval.
fn by_figure(
    comparison: &Comparison,
    paired: &PairingAttempt,
    metric: ComparedMetric,
) -> ClaimVerdict {
    let (verdict, why) = match paired.shown.figure(metric) {
        Some(figure) => judged_figure(comparison, paired, figure),
        None => (Verdict::CannotTell, "it could not be read".to_owned()),
    };
    invariant(comparison.says(metric), verdict, why)
}

fn of_ratio(ratio: &MetricRatio) -> ConfidenceInterval {
    let MetricRatio { value: point, low, high, confidence, n, .. } = *ratio;
    ConfidenceInterval {
        point,
        low,
        high,
        confidence,
        n,
        method: stats::IntervalMethod::ConfidenceSequence,
    }
}

fn judged_figure(
    comparison: &Comparison,
    paired: &PairingAttempt,
    figure: &ComparisonFigure,
) -> (Verdict, String) {
    let (metric, threshold) = (figure.metric, comparison.threshold);
    let expect = match metric.higher_is_better() {
        true => Expectation::AtLeast(1.0 / (1.0 + threshold)),
        false => Expectation::AtMost(1.0 + threshold),
    };
    let (interval, words) = match &figure.b_over_a {
        Some(ratio) => (of_ratio(ratio), format!("B ÷ A: {}", ratio.words())),
        None if figure.is_of_nothing() => {
            (ConfidenceInterval::exact(1.0, 1), figure.lacking().to_owned())
        }
        None => return (Verdict::CannotTell, figure.lacking().to_owned()),
    };
    let verdict = verdict_of(expect, &interval);
    let mut doubts = JudgedPair { paired, metric, expect, interval, verdict }.doubts();
    if figure.b_over_a.is_some() {
        doubts.extend(below_floor(comparison, paired, metric, interval.point));
        // What differs for a transaction was as much on both in the same time.
        let is_told_apart = !interval.contains(1.0);
        if metric.has_background() && is_told_apart && figure.verdict == Seen::CannotTell {
            doubts.push("the difference may be background work of the servers".to_owned());
        }
    }
    match doubts.is_empty() {
        true => (verdict, words),
        false => (Verdict::CannotTell, format!("{words}; {}", doubts.join("; "))),
    }
}

/// A side of which more transactions fail does less work.
fn of_failures(conditions: &MeasuringConditions) -> ClaimVerdict {
    let verdict = match conditions.failed_more() {
        FailedMore::Shown => Verdict::DoesNotHold,
        FailedMore::NotShown => Verdict::Holds,
        FailedMore::Unknown => Verdict::CannotTell,
    };
    let says = "no more transactions of B fail than of A".to_owned();
    invariant(says, verdict, conditions.failures_words())
}

/// A side that does something else with the same statements has no speed to compare. What could not be compared
/// fails no gate.
fn of_work(work: &WorkComparison) -> ClaimVerdict {
    let says = "B does the same as A with the same statements".to_owned();
    let unjudged = work.not_judged.join("; ");
    match (work.differences.is_empty(), work.is_compared()) {
        (false, _) => invariant(says, Verdict::DoesNotHold, work.differences.join("; ")),
        (true, true) => {
            let why =
                if unjudged.is_empty() { work.words() } else { work.words() + "; " + &unjudged };
            invariant(says, Verdict::Holds, why)
        }
        (true, false) => {
            let why = if unjudged.is_empty() { work.words() } else { unjudged };
            ClaimVerdict { kind: ClaimKind::Finding, ..invariant(says, Verdict::CannotTell, why) }
        }
    }
}

/// No statement of a mixed load may be slower or do something else, however fast the mix is. What cannot be told fails
/// no gate.
fn of_statement(statement: &StatementComparison) -> ClaimVerdict {
    let says = format!("{} does the same on B and takes no longer", statement.script);
    let times = || match (&statement.alone.mean, &statement.alone.median) {
        (Some(mean), Some(median)) => {
            format!("B ÷ A, by itself: mean {}, median {}", mean.words(), median.words())
        }
        _ => "it ran in too few restarts on both sides".to_owned(),
    };
    let mut why = statement.why.clone().unwrap_or_else(times);
    if let Some(reason) = &statement.reason {
        why = format!("{why}; {}", reason.words());
    }
    match statement.verdict {
        StatementVerdict::CannotTell => {
            ClaimVerdict { kind: ClaimKind::Finding, ..invariant(says, Verdict::CannotTell, why) }
        }
        verdict if verdict.is_worse() => invariant(says, Verdict::DoesNotHold, why),
        _ => invariant(says, Verdict::Holds, why),
    }
}

/// What is said of the statements of a mixed load, with the first ones by name: a sentence behind the answer.
fn statements_words(statements: &[StatementComparison]) -> String {
    if statements.is_empty() {
        return String::new();
    }
    let part = |verdict: StatementVerdict, is: &str, are: &str| {
        let all: Vec<_> = statements.iter().filter(|one| one.verdict == verdict).collect();
        let named = all.iter().take(NAMED_MAX).map(|one| {
            let ratio =
                one.alone.mean.as_ref().filter(|_| {
                    matches!(verdict, StatementVerdict::Slower | StatementVerdict::Faster)
                });
            let times = ratio.map_or(String::new(), |ratio| format!(" {:.2}×", ratio.value));
            format!("{}{times}", one.script)
        });
        let mut named: Vec<String> = named.collect();
        if all.len() > NAMED_MAX {
            named.push("…".to_owned());
        }
        let is_named = !matches!(verdict, StatementVerdict::Equal | StatementVerdict::CannotTell);
        let named = match is_named {
            true => format!(" ({})", named.join(", ")),
            false => String::new(),
        };
        (!all.is_empty())
            .then(|| format!("{} {}{named}", all.len(), if all.len() == 1 { is } else { are }))
    };
    let parts = [
        part(StatementVerdict::DifferentResults, "does something else", "do something else"),
        part(StatementVerdict::Fails, "fails on B", "fail on B"),
        part(StatementVerdict::DoesNotEnd, "does not end on B", "do not end on B"),
        part(StatementVerdict::Slower, "is slower", "are slower"),
        part(StatementVerdict::Faster, "is faster", "are faster"),
        part(StatementVerdict::Equal, "is equal", "are equal"),
        part(StatementVerdict::CannotTell, "cannot be told", "cannot be told"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let scripts = terms::counted(statements.len() as u64, "script");
    let decided = statements.iter().filter(|one| one.verdict != StatementVerdict::CannotTell);
    let share: f64 = decided.map(|one| one.time).sum();
    // Nothing ran together where all scripts but one fail.
    let share = match statements.iter().any(|one| one.time > 0.0) {
        true => format!(" {:.0} % of A's time is decided.", share * 100.0),
        false => String::new(),
    };
    format!(" Of {scripts}, each by itself: {}.{share}", parts.join(", "))
}

/// An answer with what B would need for production's statements.
fn with_forecast(answer: &str, forecast: &ProductionForecast) -> String {
    let [covered, measured] = [forecast.covered, forecast.measured].map(terms::percent);
    if forecast.covered < ProductionForecast::COVERED_MIN {
        return format!(
            "The scripts cover {covered} of production's time: this is no answer for the whole. {answer}"
        );
    }
    match &forecast.time {
        Some(time) => format!(
            "{answer} The scripts cover {covered} of production's time; for {measured} of it B needs {} of the time of A.",
            time.words()
        ),
        None => format!(
            "{answer} The scripts cover {covered} of production's time; too few restarts say what B needs for it."
        ),
    }
}

/// Statements that an answer names.
const NAMED_MAX: usize = 3;

fn invariant(says: String, verdict: Verdict, why: String) -> ClaimVerdict {
    ClaimVerdict {
        says,
        kind: ClaimKind::Invariant,
        rank: ClaimRank::Aside,
        expected: String::new(),
        published: None,
        note: String::new(),
        measured: ClaimMeasurement::Nothing,
        needs_harm: false,
        verdict,
        alone: verdict,
        why,
    }
}

/// The answer, in a sentence or two. It rests on intervals that hold together.
fn answer(comparison: &Comparison, paired: &PairingAttempt) -> String {
    let shown = &paired.shown;
    let (renewal, segments) = (shown.instances.renewal, shown.instances.segments);
    let unit = if renewal.restarts() { "restart" } else { "segment" };
    let segments = terms::counted(segments as u64, unit);
    let pairs = terms::counted(shown.pairs as u64, "pair");
    let pairs = format!("{segments}, {pairs}, {}", terms::duration(shown.seconds));
    let crowd = shown.conditions.crowd().map(FigureDoubt::words);
    let headline = comparison.headline();
    let Some((figure, ratio)) = with_ratio(paired, headline) else {
        let is_none = |one: &&ComparisonFigure| one.is_of_nothing() || one.is_of_one_side();
        if let Some(figure) = shown.figure(headline).filter(is_none) {
            return of_none(figure, &pairs) + &further_words(comparison, paired);
        }
        let others = crowd.map_or(String::new(), |words| format!(" Note that {words}."));
        let why = match headline.quantile() {
            None if shown.instances.segments >= OBSERVATIONS_MIN => {
                format!("Cannot tell: {pairs} differ so much that nothing can be said.")
            }
            None => format!(
                "Cannot tell: {pairs} are too few. An interval takes {OBSERVATIONS_MIN} {unit}s.",
            ),
            Some(_) => format!(
                "Cannot tell: {pairs} hold too few transactions. An interval of the {} takes {} of \
                 each side.",
                headline.words(),
                headline.samples_min() * OBSERVATIONS_MIN as u64
            ),
        };
        return why + &others;
    };
    let seen = format!("{} of A's {} ({pairs})", ratio.words(), headline.words());
    let percent = comparison.threshold * 100.0;
    let [a, b] = comparison.names();
    let rate = comparison.rate.map(|rate| format!(" at {rate} transactions a second"));
    // Without a rate, the sentence does not speak of one.
    let rate = rate.unwrap_or_default();
    let first = match figure.verdict {
        Seen::Better => format!("{b} is faster than {a}{rate}: {seen}."),
        Seen::Worse => format!("{b} is slower than {a}{rate}: {seen}."),
        Seen::Equal => format!("{b} is as fast as {a}{rate} within {percent} %: {seen}."),
        Seen::CannotTell => {
            let doubt =
                figure.refusal(&shown.conditions, comparison.threshold).map(FigureDoubt::words);
            match doubt.or_else(|| reserved(comparison, paired, figure)) {
                Some(doubt) => {
                    format!(
                        "Cannot tell whether {b} is faster or slower than {a}{rate}, for {doubt}: {seen}."
                    )
                }
                None => format!(
                    "Cannot tell whether {b} is faster or slower than {a}{rate}: {seen}. The interval is ±{:.1} %{}.",
                    ratio.half_width() * 100.0,
                    // How long it takes depends on them.
                    crowd.map_or_else(
                        || would_tell(ratio, comparison.threshold, shown.seconds),
                        |words| format!("; {words}"),
                    ),
                ),
            }
        }
    };
    first + &further_words(comparison, paired)
}

/// The reservation that keeps throughput from being judged, which its interval alone would.
fn reserved(
    comparison: &Comparison,
    paired: &PairingAttempt,
    figure: &ComparisonFigure,
) -> Option<String> {
    let ratio = figure.b_over_a.as_ref().filter(|_| figure.metric == ComparedMetric::Throughput)?;
    let seen = match () {
        () if ratio.is_within(comparison.threshold) => Seen::Equal,
        () if ratio.low > 1.0 => Seen::Better,
        () if ratio.high < 1.0 => Seen::Worse,
        () => return None,
    };
    let (threshold, horizon_s) = (comparison.threshold, comparison.horizon_s);
    paired.shown.reservation(seen, ratio, threshold, horizon_s).map(|one| one.words())
}

/// The sentences about the further figures that decide.
fn further_words(comparison: &Comparison, paired: &PairingAttempt) -> String {
    let others = comparison.decides.iter().skip(1);
    others.filter_map(|metric| further(paired, *metric, comparison.threshold)).collect()
}

/// The answer about a figure that has no quotient because a side shows none of it, or both next to none.
fn of_none(figure: &ComparisonFigure, pairs: &str) -> String {
    let (words, sides) = (figure.metric.words(), of_sides(figure));
    match figure.is_of_nothing() {
        true => format!("Both sides have next to nothing of {words}: {sides} ({pairs})."),
        false => format!(
            "Cannot tell by how much B differs. The {words} has no quotient: {sides} ({pairs})."
        ),
    }
}

/// `0 bytes on A, 1,048,576 bytes on B`
fn of_sides(figure: &ComparisonFigure) -> String {
    let [a, b] = [figure.a, figure.b].map(terms::figure);
    format!("{a} {unit} on A, {b} {unit} on B", unit = figure.unit)
}

fn with_ratio(
    paired: &PairingAttempt,
    metric: ComparedMetric,
) -> Option<(&ComparisonFigure, &MetricRatio)> {
    let figure = paired.shown.figure(metric)?;
    Some((figure, figure.b_over_a.as_ref()?))
}

/// The time that would decide, if the quotient is what it seems: either 1 or the threshold is then outside
/// of the interval, whichever is farther away. The width falls with the square root of the time. Empty
/// where the interval is narrow enough already, and something else stands in the way.
fn would_tell(ratio: &MetricRatio, threshold: f64, seconds: f64) -> String {
    let difference = ratio.value.ln().abs();
    let room = difference.max(threshold.ln_1p() - difference);
    let times = (ratio.half_width() / room).powi(2);
    if times <= 1.0 || !times.is_finite() {
        return String::new();
    }
    let minutes = (times * seconds / 60.0).ceil();
    format!(", and about {} would tell", terms::duration(minutes * 60.0))
}

/// True for a percentile that lies among the transactions that failed.
fn is_hidden(paired: &PairingAttempt, metric: ComparedMetric) -> bool {
    let failed = paired.shown.conditions.failed_share_max;
    metric.quantile().is_some_and(|quantile| failed > 1.0 - quantile)
}

/// True for a percentile that both sides have too few transactions for.
fn is_out_of_reach(paired: &PairingAttempt, metric: ComparedMetric) -> bool {
    let figure = paired.shown.figure(metric);
    let is_without = figure
        .is_none_or(|one| one.b_over_a.is_none() && !one.is_of_nothing() && !one.is_of_one_side());
    metric.quantile().is_some() && is_without && !is_hidden(paired, metric)
}

/// The sentence about a further figure that decides; none where it is equal.
fn further(paired: &PairingAttempt, metric: ComparedMetric, threshold: f64) -> Option<String> {
    let words = metric.words();
    let Some((figure, ratio)) = with_ratio(paired, metric) else {
        match paired.shown.figure(metric) {
            Some(figure) if figure.is_of_nothing() => return None,
            Some(figure) if figure.is_of_one_side() => {
                return Some(format!(" The {words} has no quotient: {}.", of_sides(figure)));
            }
            _ => {}
        }
        return Some(match is_hidden(paired, metric) {
            true => format!(" So many transactions failed that the {words} is not known."),
            false => format!(" Too few transactions for the {words}."),
        });
    };
    let (interval, ratio) = (ratio, ratio.words());
    let is_lower = match figure.verdict {
        Seen::Better => !metric.higher_is_better(),
        Seen::Worse => metric.higher_is_better(),
        Seen::Equal => return None,
        Seen::CannotTell => {
            let time = would_tell(interval, threshold, paired.shown.seconds);
            return Some(format!(" The {words} cannot be told: {ratio}{time}."));
        }
    };
    let which = if is_lower { "lower" } else { "higher" };
    Some(format!(" The {words} is {which} on B: {ratio}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_that_would_tell_is_that_of_an_interval_which_leaves_1_or_the_threshold_out() {
        let check = |[value, low, high]: [f64; 3], expected: &str| {
            let method = "sequence".to_owned();
            let ratio = MetricRatio { value, low, high, confidence: 0.975, n: 20, method };
            assert_eq!(would_tell(&ratio, 0.03, 120.0), expected, "{value} [{low}, {high}]");
        };
        // Twice as wide as the threshold is away.
        check([1.0, 1.0 / 1.06, 1.06], ", and about 8 min would tell");
        // As far from 1 as a half of the half-width.
        check([1.1, 1.1 / 1.2, 1.1 * 1.2], ", and about 8 min would tell");
        // In the middle between both it takes longest.
        check([1.015, 1.015 / 1.03, 1.015 * 1.03], ", and about 8 min would tell");
        // Doubts may stand in the way of a narrow one.
        check([1.0, 0.99, 1.01], "");
    }
}
