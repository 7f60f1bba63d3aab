//! The answer in one sentence, from the study's own words and the first claim's verdict.

use record::Trial;
use spec::{Added, Study};

use crate::claim_verdict::{ClaimVerdict, Measured, Verdict};
use crate::number::number;
use crate::value;

/// The answer, and what the study adds to it.
pub(crate) fn answer(study: &Study, headline: Option<&ClaimVerdict>, trials: &[Trial]) -> String {
    let first = first_sentence(study, headline);
    let adds = study.answer.iter().flat_map(|answer| &answer.adds);
    let added = adds.filter_map(|one| added(study, one, trials));
    [first].into_iter().chain(added).collect::<Vec<String>>().join(" ")
}

/// A sentence of measured figures; none where nothing was measured.
fn added(study: &Study, added: &Added, trials: &[Trial]) -> Option<String> {
    let interval = value::estimate(study, &added.value, trials)?;
    let range = match interval.n {
        1 => "(one round)".to_owned(),
        _ => format!("[{}, {}]", number(interval.low), number(interval.high)),
    };
    let sentence = added.says.replace("{value}", &number(interval.point));
    let sentence = sentence.replace("{interval}", &range).replace("{n}", &interval.n.to_string());
    Some(sentence.replace("{low}", &number(interval.low)).replace("{high}", &number(interval.high)))
}

/// Without the sentences that name what was published, where nothing was.
fn without_published(template: &str) -> String {
    let sentences = template.split_inclusive(". ");
    let kept = sentences.filter(|sentence| !sentence.contains("{published}"));
    kept.collect::<String>().trim_end().to_owned()
}

/// A study without words of its own answers with its first claim.
fn first_sentence(study: &Study, headline: Option<&ClaimVerdict>) -> String {
    let Some(headline) = headline else {
        return "The study claims nothing; see what was measured.".to_owned();
    };
    let (value, interval, n) = match &headline.measured {
        Measured::Value { interval, .. } if interval.n == 1 => {
            (number(interval.point), "(one round, no interval)".to_owned(), "1".to_owned())
        }
        Measured::Pairs { interval, pairs } => (
            number(interval.point),
            format!("[{}, {}]", number(interval.low), number(interval.high)),
            pairs.to_string(),
        ),
        Measured::Value { interval, .. } => (
            number(interval.point),
            format!("[{}, {}]", number(interval.low), number(interval.high)),
            interval.n.to_string(),
        ),
        Measured::Count { trials, failures, .. } => {
            (format!("{}", trials - failures), format!("of {trials}"), trials.to_string())
        }
        Measured::Nothing => {
            return match headline.why.as_str() {
                "" => "Cannot tell yet.".to_owned(),
                why => format!("Cannot tell: {why}."),
            };
        }
    };
    let Some(words) = &study.answer else {
        let verdict = headline.verdict.words();
        return format!("“{}” {verdict}: {value} {interval}.", headline.says);
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
        Measured::Value { interval, .. } | Measured::Pairs { interval, .. } => {
            (number(interval.low), number(interval.high))
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
