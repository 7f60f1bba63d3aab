//! The answer to the study's question: its own words, filled in from the first claim's verdict and
//! from what else was measured, and what it does not show.

use record::Trial;
use spec::{AnswerAddition, Study, StudyProfile};
use stats::ConfidenceInterval;

use crate::claim_verdict::{ClaimMeasurement, ClaimVerdict, Verdict};
use crate::value;
use terms::{figure, figure_with_interval};

/// The answer of profile smoke.
const SMOKE: &str = "A check of the rig, not an answer: profile quick gives one.";

/// The answer, what the study adds to it, and what it says of its limits.
pub(crate) fn answer(study: &Study, claims: &[ClaimVerdict], trials: &[Trial]) -> String {
    if study.profile == StudyProfile::Smoke {
        return SMOKE.to_owned();
    }
    let first = first_sentence(study, claims);
    let words = study.answer.iter();
    let added = words.clone().flat_map(|answer| &answer.adds);
    let added = added.filter_map(|one| filled_in(one, &measured(study, one, claims, trials)?));
    let limits = words.map(|answer| answer.limits.clone()).filter(|limits| !limits.is_empty());
    let sentences = [first].into_iter().chain(added).chain(limits);
    sentences.collect::<Vec<String>>().join(" ")
}

/// The value of an added sentence: from pairs where a claim about the same value was measured in them, else
/// from whole trials. None where nothing was measured.
fn measured(
    study: &Study,
    added: &AnswerAddition,
    claims: &[ClaimVerdict],
    trials: &[Trial],
) -> Option<ConfidenceInterval> {
    let of_pairs = study.claims.iter().zip(claims).find_map(|(claim, judged)| {
        let is_meant = claim.about.value().is_some_and(|value| value == &added.value);
        match &judged.measured {
            ClaimMeasurement::Pairs { interval, .. } if is_meant => Some(*interval),
            _ => None,
        }
    });
    of_pairs.or_else(|| value::estimate(study, &added.value, trials))
}

/// A sentence of measured figures.
fn filled_in(added: &AnswerAddition, interval: &ConfidenceInterval) -> Option<String> {
    let ConfidenceInterval { point, low, high, n, .. } = *interval;
    point.is_finite().then_some(())?;
    let (value, range) = match n {
        1 => (figure(point), "(one round)".to_owned()),
        _ => figure_with_interval(point, low, high),
    };
    let sentence = added.says.replace("{value}", &value);
    let sentence = sentence.replace("{interval}", &range).replace("{n}", &n.to_string());
    Some(sentence.replace("{low}", &figure(low)).replace("{high}", &figure(high)))
}

/// Without the sentences that name what was published, where nothing was.
fn without_published(template: &str) -> String {
    let sentences = template.split_inclusive(". ");
    let kept = sentences.filter(|sentence| !sentence.contains("{published}"));
    kept.collect::<String>().trim_end().to_owned()
}

/// The study's words about its first claim. A study without words of its own, or whose first claim the
/// run left out, answers with the first claim that is left.
fn first_sentence(study: &Study, claims: &[ClaimVerdict]) -> String {
    let Some(headline) = claims.iter().find(|claim| !claim.is_left_out()) else {
        return match claims {
            [] => "The study claims nothing; see what was measured.".to_owned(),
            _ => "This run left out what the study's claims are about; see what was measured."
                .to_owned(),
        };
    };
    let is_first = claims.first().is_some_and(|first| !first.is_left_out());
    let (value, interval, n) = match &headline.measured {
        ClaimMeasurement::Value { interval, .. } if interval.n == 1 => {
            (figure(interval.point), "(one round)".to_owned(), "1".to_owned())
        }
        ClaimMeasurement::Pairs { interval, pairs } => {
            let (value, range) = figure_with_interval(interval.point, interval.low, interval.high);
            (value, range, pairs.to_string())
        }
        ClaimMeasurement::Value { interval, .. } => {
            let (value, range) = figure_with_interval(interval.point, interval.low, interval.high);
            (value, range, interval.n.to_string())
        }
        ClaimMeasurement::Count { trials, failures, .. } => {
            (format!("{}", trials - failures), format!("of {trials}"), trials.to_string())
        }
        ClaimMeasurement::Nothing | ClaimMeasurement::LeftOut | ClaimMeasurement::BeyondProfile => {
            return match headline.why.as_str() {
                "" => "Cannot tell yet.".to_owned(),
                why => format!("Cannot tell: {why}."),
            };
        }
    };
    let Some(words) = study.answer.as_ref().filter(|_| is_first) else {
        let verdict = headline.words();
        let measured = headline.measured.counted().unwrap_or(format!("{value} {interval}"));
        return format!("“{}” {verdict}: {measured}.", headline.says);
    };
    let template = match headline.verdict {
        Verdict::Holds => &words.holds,
        Verdict::DoesNotHold => &words.fails,
        Verdict::CannotTell => &words.unsure,
    };
    let template = match headline.published {
        Some(_) => template.clone(),
        None => without_published(template),
    };
    let published = headline.published.map_or_else(String::new, |value| value.to_string());
    let (low, high) = match &headline.measured {
        ClaimMeasurement::Value { interval, .. } | ClaimMeasurement::Pairs { interval, .. } => {
            (figure(interval.low), figure(interval.high))
        }
        _ => (String::new(), String::new()),
    };
    template
        .replace("{value}", &value)
        .replace("{interval}", &interval)
        .replace("{low}", &low)
        .replace("{high}", &high)
        .replace("{published}", &published)
        .replace("{n}", &n)
}
