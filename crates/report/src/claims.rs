//! The answer, and every claim with its verdict.

use record::RecordHeader;
use spec::{Claim, ClaimSubject, Quantifier, Study, StudyProfile, metrics};
use stats::IntervalMethod;
use terms::counted;
use verdict::{ClaimMeasurement, ClaimVerdict, NoiseSource, StudyVerdicts, Verdict};

use crate::comparison::{capitalised, title};
use crate::marked::Marked;
use crate::number;
use crate::plot::{ClaimPlot, claim_plot};
use crate::view::{Answer, ClaimRow, Outcome, Table, Tally};

/// The answer and how sure it is.
pub(crate) fn answer(study: &Study, judgement: &StudyVerdicts, header: &RecordHeader) -> Answer {
    let headline = judgement.asked().next();
    let mut sure: Vec<String> = Vec::new();
    // The claims of profile smoke have rows of their own; no answer rests on them.
    let is_answer = study.profile != StudyProfile::Smoke || header.comparison.is_some();
    let of_answer = headline.filter(|_| is_answer);
    if let Some(comparison) = &header.comparison {
        sure.extend(comparison.sides_words());
        sure.extend(
            comparison.point.as_ref().map(|it| format!("The load is that of {}.", it.words())),
        );
        sure.extend(header.notes.iter().cloned());
    }
    match of_answer.map(|claim| &claim.measured) {
        Some(ClaimMeasurement::Value { interval, per_round }) => {
            let (_, range) = number::with_interval(interval.point, interval.low, interval.high);
            // A range has no verdict: why it has none says how few rounds there are.
            if interval.method != IntervalMethod::Range {
                sure.push(format!(
                    "{} interval {range} from {} rounds ({}).",
                    number::percent(interval.confidence),
                    interval.n,
                    interval.method.name()
                ));
            }
            sure.extend(each_round(per_round));
        }
        // The answer of a comparison has its interval, which holds together with others.
        Some(ClaimMeasurement::Pairs { interval, pairs }) if header.comparison.is_none() => {
            let (_, range) = number::with_interval(interval.point, interval.low, interval.high);
            sure.push(format!(
                "{} interval {range} from {} of blocks ({}).",
                number::percent(interval.confidence),
                counted(*pairs as u64, "pair"),
                interval.method.name()
            ));
        }
        Some(ClaimMeasurement::Count { quantifier, trials, failures, rates }) => {
            let seen = match quantifier {
                Quantifier::Every => {
                    format!("{} in {}", counted(*failures, "failure"), counted(*trials, "trial"))
                }
                Quantifier::Some => {
                    format!("Seen in {} of {}", trials - failures, counted(*trials, "trial"))
                }
            };
            sure.push(match (failures, bound(rates.1)) {
                (0, Some(rate)) if *quantifier == Quantifier::Every => {
                    format!("{seen}; a rate above {rate} is ruled out at 95 %.")
                }
                (0, None) if *quantifier == Quantifier::Every => format!("{seen}, {TOO_FEW}."),
                _ => format!("{seen}; {}.", rates_not_ruled_out(*quantifier, *rates)),
            });
        }
        _ => {}
    }
    let why = of_answer.map(|claim| claim.why.as_str()).filter(|why| !why.is_empty());
    sure.extend(why.map(|why| match sure.is_empty() {
        true => format!("{}.", capitalised(why)),
        false => format!("But: {why}."),
    }));
    let mark = of_answer.map_or(Outcome::Unsure, outcome);
    Answer { mark, sentence: judgement.answer.clone(), sure, noise: noise(judgement) }
}

/// By how much the same throughput differs from itself, and what that means for a reader.
pub(crate) fn noise(judgement: &StudyVerdicts) -> Option<String> {
    let noise = judgement.noise.iter().find(|noise| noise.metric == &metrics::TPS)?;
    let [one, means] = noise.words();
    let basis = match noise.source {
        NoiseSource::Twin { .. } => "one point was measured twice in every round".to_owned(),
        NoiseSource::Rounds { points } => {
            format!("from the spread between rounds of {}", plural(points, "point"))
        }
    };
    let is_paired = |claim: &ClaimVerdict| matches!(claim.measured, ClaimMeasurement::Pairs { .. });
    let place = match judgement.claims.iter().any(is_paired) {
        true => "in whole trials here",
        false => "here",
    };
    Some(format!(
        "Differences below {means} cannot be seen {place}: so much do two means of {} of the same \
         throughput differ on this machine, single measurements by {one} ({basis}).",
        plural(noise.rounds, "round"),
    ))
}

/// The noise of each metric, as a table; none where nothing was measured twice.
pub(crate) fn noise_table(study: &Study, judgement: &StudyVerdicts) -> Option<Table> {
    let columns = ["", "#One measurement", "#Two means", "#Rounds", "Taken from"];
    let note = "by how much the same thing differs from itself, at 95 %: one measurement from \
                another, and the means of as many rounds as were run";
    let mut table = Table::new("What this machine cannot resolve", note, &columns);
    for noise in &judgement.noise {
        let [one, means] = noise.words();
        table.row([
            title(noise.metric),
            one,
            means,
            noise.rounds.to_string(),
            match noise.source {
                NoiseSource::Twin { point } => {
                    format!("{}, measured twice in each round", study.points[point].name)
                }
                NoiseSource::Rounds { points } => {
                    format!("the spread between rounds of {}", plural(points, "point"))
                }
            },
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// Number of claims for each outcome.
pub(crate) fn tallies(judgement: &StudyVerdicts) -> Vec<Tally> {
    let marks = [
        (Outcome::Holds, "holds", "hold"),
        (Outcome::Fails, "does not hold", "do not hold"),
        (Outcome::Harm, "saw harm, as expected", "saw harm, as expected"),
        (Outcome::Unsure, "undecided", "undecided"),
    ];
    let tallies = marks.map(|(mark, one, many)| {
        let count = judgement.judged().filter(|c| outcome(c) == mark).count();
        Tally { mark, count, words: if count == 1 { one } else { many } }
    });
    tallies.into_iter().filter(|tally| tally.count > 0).collect()
}

/// Every claim that the run can judge, in the study's order.
pub(crate) fn rows(study: &Study, judgement: &StudyVerdicts) -> Vec<ClaimRow> {
    // Beyond those of the study are the ones that a comparison has of its own.
    let claims = study.claims.iter().map(Some).chain(std::iter::repeat(None));
    let is_shown = |judged: &ClaimVerdict| {
        !judged.is_left_out() && judged.measured != ClaimMeasurement::BeyondProfile
    };
    let shown = claims.zip(&judgement.claims).filter(|(_, judged)| is_shown(judged));
    shown.map(|(claim, judged)| row(claim, judged)).collect()
}

/// The verdict on a claim as a mark.
pub(crate) fn outcome(claim: &ClaimVerdict) -> Outcome {
    match claim.verdict {
        Verdict::Holds if claim.saw_harm() => Outcome::Harm,
        Verdict::Holds => Outcome::Holds,
        Verdict::DoesNotHold => Outcome::Fails,
        Verdict::CannotTell => Outcome::Unsure,
    }
}

fn row(claim: Option<&Claim>, judged: &ClaimVerdict) -> ClaimRow {
    let code = match claim.map(|claim| &claim.about) {
        None => String::new(),
        Some(ClaimSubject::Value { value, .. }) => {
            format!("{} {}", value.source(), judged.expected)
        }
        Some(ClaimSubject::Every { quantifier, condition, of, .. }) => {
            let trials = match quantifier {
                Quantifier::Every => "every trial",
                Quantifier::Some => "some trial",
            };
            let of = if of.is_empty() { String::new() } else { format!(", {of}") };
            format!("{trials}{of}: {}", condition.source())
        }
    };
    let [here, interval, n, basis] = measured(&judged.measured);
    let published = judged.published.map_or("–".to_owned(), number::as_written);
    ClaimRow {
        mark: outcome(judged),
        says: judged.says.clone(),
        plot: claim
            .map_or(String::new(), |claim| plot(claim, judged, &here, &interval, &published)),
        code,
        kind: judged.label(),
        published,
        here,
        interval,
        n,
        basis,
        note: Marked::new(&judged.note),
        why: judged.why.clone(),
    }
}

/// Cells of a measured claim: the figure, its interval, the number of rounds or trials that both
/// rest on, and the meaning of that number. A claim about some trial needs only one trial that
/// shows it: the others are no failures.
pub(crate) fn measured(measured: &ClaimMeasurement) -> [String; 4] {
    let (figure, range, n, basis) = match measured {
        ClaimMeasurement::Nothing | ClaimMeasurement::LeftOut | ClaimMeasurement::BeyondProfile => {
            ("–".to_owned(), String::new(), "–".to_owned(), String::new())
        }
        ClaimMeasurement::Value { interval, .. } if interval.n == 1 => {
            let basis = "one round".to_owned();
            (number::figure(interval.point), String::new(), "1".to_owned(), basis)
        }
        ClaimMeasurement::Value { interval, .. } => {
            let (middle, range) =
                number::with_interval(interval.point, interval.low, interval.high);
            let basis = format!("n {}, {}", interval.n, interval.method.name());
            (middle, range, interval.n.to_string(), basis)
        }
        ClaimMeasurement::Pairs { interval, pairs } => {
            let (middle, range) =
                number::with_interval(interval.point, interval.low, interval.high);
            let basis = format!("{}, {}", counted(*pairs as u64, "pair"), interval.method.name());
            (middle, range, pairs.to_string(), basis)
        }
        ClaimMeasurement::Count { quantifier, trials, failures, rates } => {
            let interval = rates_not_ruled_out(*quantifier, *rates);
            let basis = match (quantifier, failures) {
                (Quantifier::Some, not_seen) if not_seen == trials => String::new(),
                (Quantifier::Some, _) => format!("one is enough; {interval}"),
                (Quantifier::Every, 0) => match bound(rates.1) {
                    Some(rate) => format!("more than {rate} failing is ruled out"),
                    None => TOO_FEW.to_owned(),
                },
                (Quantifier::Every, _) => format!("expected in all {trials}; {interval}"),
            };
            // Where nothing was counted, the cell stays empty, and the basis says why.
            let figure = measured.counted().unwrap_or_default();
            (figure, String::new(), trials.to_string(), basis)
        }
    };
    [figure, range, n, basis]
}

/// The failure rate that is ruled out, where so many trials rule out any.
fn bound(rate_max: f64) -> Option<String> {
    (rate_max < 1.0).then(|| number::percent(rate_max))
}

/// The rates of trials that show what is asked for or fail to, as far as they are not ruled out.
fn rates_not_ruled_out(quantifier: Quantifier, (low, high): (f64, f64)) -> String {
    let (what, low, high) = match quantifier {
        Quantifier::Every => ("failing", low, high),
        Quantifier::Some => ("showing it", 1.0 - high, 1.0 - low),
    };
    format!("{what} at a rate of {} to {} (95 %)", number::percent(low), number::percent(high))
}

const TOO_FEW: &str = "too few to rule out any rate";

fn plot(claim: &Claim, judged: &ClaimVerdict, here: &str, range: &str, published: &str) -> String {
    let ClaimSubject::Value { expect, .. } = &claim.about else { return String::new() };
    let (ClaimMeasurement::Value { interval, .. } | ClaimMeasurement::Pairs { interval, .. }) =
        &judged.measured
    else {
        return String::new();
    };
    let finite = [interval.low, interval.point, interval.high].iter().all(|v| v.is_finite());
    if !finite {
        return String::new();
    }
    let plot = ClaimPlot {
        measured: (interval.low, interval.point, interval.high),
        expected: expect.range(),
        published: judged.published,
    };
    // Figures and signs only; the one sign that an attribute cannot hold is written in words.
    let expected = judged.expected.replace('<', "below ").replace('>', "above ");
    claim_plot(
        &plot,
        &format!("measured {here} {range}, expected {expected}, published {published}"),
    )
}

/// The rounds by themselves, so that one that stands apart is seen.
fn each_round(per_round: &[f64]) -> Option<String> {
    let finite: Vec<f64> = per_round.iter().copied().filter(|value| value.is_finite()).collect();
    let low = finite.iter().copied().reduce(f64::min)?;
    let high = finite.iter().copied().reduce(f64::max)?;
    let (low, high) = (number::figure(low), number::figure(high));
    (finite.len() > 1).then(|| format!("The rounds by themselves lie between {low} and {high}."))
}

/// `1 round`, `6 rounds`.
pub(crate) fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
