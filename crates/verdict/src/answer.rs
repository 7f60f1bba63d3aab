//! The answer in one sentence, from the study's own words and the first claim's verdict.

use spec::Study;

use crate::judge::{ClaimVerdict, Measured, Verdict};
use crate::number::number;

/// The answer. A study without words of its own answers with its first claim.
pub(crate) fn answer(study: &Study, headline: Option<&ClaimVerdict>) -> String {
    let Some(headline) = headline else {
        return "The study claims nothing; see what was measured.".to_owned();
    };
    let (value, interval, n) = match &headline.measured {
        Measured::Value { interval, .. } if interval.n == 1 => {
            (number(interval.point), "(one round, no interval)".to_owned(), "1".to_owned())
        }
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
    let published = headline.published.map_or("nothing".to_owned(), |value| value.to_string());
    let (low, high) = match &headline.measured {
        Measured::Value { interval, .. } => (number(interval.low), number(interval.high)),
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
