//! A record of `pgrig compare`: its answer, and what decides besides the claims of its study.

use record::comparison::{Figure, Metric, Ratio, Verdict as Seen};
use record::{Comparison, Conditions, Doubt, Header, Paired, Trial};
use spec::{ClaimKind, Rank, Study};
use stats::sequence::OBSERVATIONS_MIN;

use crate::claim_verdict::{ClaimVerdict, Measured, Verdict};
use crate::judge::{Judgement, judge_at};
use crate::paired::CONFIDENCE;

/// Judges a record. One of `pgrig compare` also decides by figures that claims cannot speak of, and by the
/// transactions that failed; it has an answer of its own.
#[must_use]
pub fn judge_record(
    study: &Study,
    header: &Header,
    trials: &[Trial],
    pairs: &[Paired],
) -> Judgement {
    let compared = header.comparison.as_ref().zip(pairs.last());
    // The figures that decide hold together: each claim has the interval that its figure has.
    let ratio = compared.and_then(|(comparison, paired)| {
        paired.shown.figure(comparison.headline())?.b_over_a.as_ref()
    });
    let confidence = ratio.map_or(CONFIDENCE, |ratio| ratio.confidence);
    let mut judgement = judge_at(confidence, study, &header.plan, trials, pairs);
    if let Some((comparison, paired)) = compared {
        judgement.answer = answer(comparison, paired);
        let others = comparison.decides.iter().filter(|one| one.catalogued().is_none());
        judgement.claims.extend(others.map(|one| by_figure(comparison, paired, *one)));
        judgement.claims.push(of_failures(&paired.shown.conditions));
    }
    judgement
}

/// The verdict on a figure that no claim can speak of, by its own interval.
fn by_figure(comparison: &Comparison, paired: &Paired, metric: Metric) -> ClaimVerdict {
    let figure = paired.shown.figure(metric);
    let verdict = match figure.map(|figure| figure.verdict) {
        Some(Seen::Better | Seen::Equal) => Verdict::Holds,
        Some(Seen::Worse)
            if figure.is_some_and(|one| one.is_worse_beyond(comparison.threshold)) =>
        {
            Verdict::DoesNotHold
        }
        _ => Verdict::CannotTell,
    };
    let ratio = figure.and_then(|figure| figure.b_over_a.as_ref());
    let why =
        ratio.map_or("too few samples".to_owned(), |ratio| format!("B ÷ A: {}", ratio.words()));
    invariant(comparison.says(metric), verdict, why)
}

/// A side of which more transactions fail does less work.
fn of_failures(conditions: &Conditions) -> ClaimVerdict {
    let [a, b] = conditions.failed_shares.map(|share| share * 100.0);
    let verdict = if conditions.fails_more() { Verdict::DoesNotHold } else { Verdict::Holds };
    let says = "no more transactions of B fail than of A".to_owned();
    invariant(says, verdict, format!("{a:.2} % of A's, {b:.2} % of B's"))
}

fn invariant(says: String, verdict: Verdict, why: String) -> ClaimVerdict {
    ClaimVerdict {
        says,
        kind: ClaimKind::Invariant,
        rank: Rank::Aside,
        expected: String::new(),
        published: None,
        note: String::new(),
        measured: Measured::Nothing,
        verdict,
        alone: verdict,
        why,
    }
}

/// The answer, in a sentence or two. It rests on intervals that hold together.
fn answer(comparison: &Comparison, paired: &Paired) -> String {
    let shown = &paired.shown;
    let (renewal, segments) = (shown.instances.renewal, shown.instances.segments);
    let segments = match (renewal.restarts(), segments) {
        (true, 1) => "1 restart".to_owned(),
        (true, n) => format!("{n} restarts"),
        (false, 1) => "1 segment".to_owned(),
        (false, n) => format!("{n} segments"),
    };
    let pairs = format!("{segments}, {} pairs, {}", shown.pairs, terms::duration(shown.seconds));
    let headline = comparison.headline();
    let Some((figure, ratio)) = with_ratio(paired, headline) else {
        return match headline.quantile() {
            None => format!(
                "Cannot tell: {pairs} are too few. An interval takes {OBSERVATIONS_MIN} {}.",
                if renewal.restarts() { "restarts" } else { "segments" },
            ),
            Some(_) => format!(
                "Cannot tell: {pairs} hold too few transactions. An interval of the {} takes {} of \
                 each side.",
                headline.words(),
                headline.samples_min() * OBSERVATIONS_MIN as u64
            ),
        };
    };
    let seen = format!("{} of A's {} ({pairs})", ratio.words(), headline.words());
    let percent = comparison.threshold * 100.0;
    let rate = comparison.rate.map(|rate| format!(" at {rate} transactions a second"));
    let rate = rate.unwrap_or_default();
    let first = match figure.verdict {
        Seen::Better => format!("B is faster{rate}: {seen}."),
        Seen::Worse => format!("B is slower{rate}: {seen}."),
        Seen::Equal => format!("B is as fast as A{rate} within {percent} %: {seen}."),
        Seen::CannotTell => match figure.refusal(&shown.conditions).map(Doubt::words) {
            Some(doubt) => {
                format!("Cannot tell whether B is faster or slower{rate}, for {doubt}: {seen}.")
            }
            None => format!(
                "Cannot tell whether B is faster or slower{rate}: {seen}. The interval is ±{:.1} %{}.",
                ratio.half_width() * 100.0,
                would_tell(ratio, comparison.threshold, shown.seconds),
            ),
        },
    };
    let others = comparison.decides.iter().skip(1);
    let further = |metric: &Metric| further(paired, *metric, comparison.threshold);
    first + &others.filter_map(further).collect::<String>()
}

fn with_ratio(paired: &Paired, metric: Metric) -> Option<(&Figure, &Ratio)> {
    let figure = paired.shown.figure(metric)?;
    Some((figure, figure.b_over_a.as_ref()?))
}

/// The time that would decide, if the quotient is what it seems: either 1 or the threshold is then outside
/// of the interval, whichever is farther away. The width falls with the square root of the time. Empty
/// where the interval is narrow enough already, and something else stands in the way.
fn would_tell(ratio: &Ratio, threshold: f64, seconds: f64) -> String {
    let difference = ratio.value.ln().abs();
    let room = difference.max(threshold.ln_1p() - difference);
    let times = (ratio.half_width() / room).powi(2);
    if times <= 1.0 || !times.is_finite() {
        return String::new();
    }
    let minutes = (times * seconds / 60.0).ceil();
    format!(", and about {} would tell", terms::duration(minutes * 60.0))
}

/// The sentence about a further figure that decides; none where it is equal.
fn further(paired: &Paired, metric: Metric, threshold: f64) -> Option<String> {
    let words = metric.words();
    let Some((figure, ratio)) = with_ratio(paired, metric) else {
        let failed = paired.shown.conditions.failed_share_max;
        let is_hidden = metric.quantile().is_some_and(|quantile| failed > 1.0 - quantile);
        return Some(match is_hidden {
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
            let ratio = Ratio { value, low, high, confidence: 0.975, n: 20, method };
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
