//! Claims of a study, and its answer.

use std::ops::Range;
use std::sync::Arc;

use stats::Expectation;

use crate::expect;
use crate::expression::{ClaimExpression, Fault, Target, TrialCondition};
use crate::fields::Fields;
use crate::folder::StudyFolder;
use crate::headline::ClaimRank;
use crate::pairs::PairSettings;
use crate::problem::{Problems, nearest};
use crate::profile::StudyProfile;
use crate::value::Value;

/// Something that is claimed about results.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// In words.
    pub says: String,
    /// Subject of the claim.
    pub about: ClaimSubject,
    /// The published figure, if there is one.
    pub published: Option<f64>,
    /// Kind of the claim, which says if it must hold everywhere.
    pub kind: ClaimKind,
    /// The rank among the study's claims.
    pub rank: ClaimRank,
    /// Of a control: the trials after which a study stops where it has not held by then; none for
    /// all that are planned.
    pub within: Option<usize>,
    /// A condition under which it was stated, or a doubt, to be shown beside the verdict.
    pub note: String,
    /// Bytes of study.toml where it stands, the same in every profile.
    pub span: Range<usize>,
}

/// Subject of a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum ClaimSubject {
    /// A number made of results, and the interval in which it is expected.
    Value {
        /// The number.
        value: ClaimExpression,
        /// Range in which it is expected.
        expect: Expectation,
        /// Settings for measuring its points in pairs; none for whole trials.
        pairs: Option<PairSettings>,
    },
    /// Something that is true of trials.
    Every {
        /// Of how many.
        quantifier: Quantifier,
        /// The condition that is true.
        condition: TrialCondition,
        /// The workload or node whose figures are meant; empty for those of the whole trial.
        of: String,
        /// Indices of the points whose trials it speaks of.
        points: Vec<usize>,
    },
}

/// In how many trials a condition is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Quantifier {
    /// In every trial.
    Every,
    /// In one trial at least.
    Some,
}

/// Kind of a claim, which says if it must hold everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClaimKind {
    /// A published or stated fact, which may well not hold here.
    Finding,
    /// A condition that must hold everywhere: nothing lost, counts equal. Fails a gate.
    Invariant,
    /// Proof that the means of a scenario work: a fault that must do harm where nothing is
    /// protected from it. If it does not hold, no other claim about trials of its scenarios does,
    /// and a run of the study stops. Fails a gate.
    Control,
}

/// The answer in one sentence, chosen by the first claim's verdict. `{value}`, `{low}`, `{high}`,
/// `{interval}`, `{published}` and `{n}` are filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyAnswer {
    /// If the first claim holds.
    pub holds: String,
    /// If it does not.
    pub fails: String,
    /// If it cannot be told.
    pub unsure: String,
    /// Sentences that are added to it, whatever the verdict.
    pub adds: Vec<AnswerAddition>,
    /// The limits of the answer, in a sentence that stands last; empty for none.
    pub limits: String,
}

/// A sentence that is added to the answer where its value was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerAddition {
    /// The sentence; `{value}`, `{low}`, `{high}`, `{interval}` and `{n}` are filled in.
    pub says: String,
    /// The value.
    pub value: ClaimExpression,
}

impl ClaimSubject {
    /// The number that it speaks of; none for what is true of trials.
    pub fn value(&self) -> Option<&ClaimExpression> {
        match self {
            ClaimSubject::Value { value, .. } => Some(value),
            ClaimSubject::Every { .. } => None,
        }
    }
}

impl ClaimKind {
    /// The name in study.toml.
    pub fn name(self) -> &'static str {
        match self {
            ClaimKind::Finding => "finding",
            ClaimKind::Invariant => "invariant",
            ClaimKind::Control => "control",
        }
    }
}

impl Claim {
    /// Reads one claim; `None` if it is not made in this profile, or is wrong.
    pub(crate) fn parse(
        value: &Value,
        text: &str,
        profile: StudyProfile,
        targets: &Arc<[Target]>,
        problems: &Problems,
    ) -> Option<Claim> {
        let fields = Fields::of("a claim", value, problems)?;
        let made = made_in(&fields, profile);
        let source = ["value", "every", "some"].iter().find_map(|key| fields.value(key));
        let span = fields.span().clone();
        let source = source.and_then(|value| crate::fields::text("value", value, problems));
        // A claim without a value is a problem of its own.
        let says = fields.text("says").or(source).unwrap_or_default().to_owned();
        let published = fields.number("published");
        let kind = fields.choice("kind", KINDS).unwrap_or(ClaimKind::Finding);
        let within = fields.integer("within", 1..=TRIALS_MAX);
        if let (Some(within), true) = (fields.value("within"), kind != ClaimKind::Control) {
            let hint = "it says after how many trials a control that does not hold stops the study";
            problems.hinted(&within.span, "within belongs to kind = \"control\"", hint);
        }
        let is_headline = fields.boolean("headline").unwrap_or(false);
        let rank = if is_headline { ClaimRank::Headline } else { ClaimRank::Alike };
        let note = fields.text("note").unwrap_or_default().to_owned(); // Not every claim has a note.
        let about = about(&fields, text, made, targets);
        fields.finish();
        about.map(|about| Claim { says, about, published, kind, rank, within, note, span })
    }

    /// The statement of a claim that this profile does not make, where the profile has the points that the claim
    /// speaks of.
    pub(crate) fn of_another_profile(
        value: &Value,
        text: &str,
        profile: StudyProfile,
        targets: &Arc<[Target]>,
    ) -> Option<ClaimSubject> {
        // Problems of the claim are reported where it is made.
        let problems = Problems::of(StudyFolder::STUDY);
        let fields = Fields::of("a claim", value, &problems)?;
        if made_in(&fields, profile) {
            return None;
        }
        about(&fields, text, true, targets).filter(|_| problems.is_empty())
    }
}

impl StudyAnswer {
    /// Names that may stand in braces.
    const NAMES: [&str; 6] = ["value", "low", "high", "interval", "published", "n"];

    pub(crate) fn parse(
        value: &Value,
        text: &str,
        profile: StudyProfile,
        targets: &Arc<[Target]>,
        problems: &Problems,
    ) -> Option<StudyAnswer> {
        let fields = Fields::of("answer", value, problems)?;
        let sentence = |key| sentence(&fields, key);
        let adds = fields.list("adds").iter();
        let adds =
            adds.filter_map(|one| AnswerAddition::parse(one, text, profile, targets, problems));
        let answer = StudyAnswer {
            holds: sentence("holds"),
            fails: sentence("fails"),
            unsure: sentence("unsure"),
            adds: adds.collect(),
            limits: fields.text("limits").unwrap_or_default().to_owned(), // May be left out.
        };
        fields.finish();
        Some(answer)
    }
}

impl AnswerAddition {
    /// Reads one; `None` if it is not made in this profile, or is wrong.
    fn parse(
        value: &Value,
        text: &str,
        profile: StudyProfile,
        targets: &Arc<[Target]>,
        problems: &Problems,
    ) -> Option<AnswerAddition> {
        let fields = Fields::of("what an answer adds", value, problems)?;
        let made = made_in(&fields, profile);
        let says = sentence(&fields, "says");
        fields.required("value");
        let written = fields.value("value");
        let source = written.and_then(|value| crate::fields::text("value", value, problems));
        fields.finish();
        let (written, source) = written.zip(source).filter(|_| made)?;
        let expression = ClaimExpression::parse(source, targets);
        let value = expression.map_err(|f| report(f, source, written, text, problems)).ok()?;
        Some(AnswerAddition { says, value })
    }
}

/// A sentence of an answer, whose names in braces exist.
fn sentence(fields: &Fields<'_>, key: &'static str) -> String {
    fields.required(key);
    let sentence = fields.text(key).unwrap_or_default(); // That it is missing was said.
    for name in names_in(sentence).filter(|name| !StudyAnswer::NAMES.contains(name)) {
        let span = fields.value(key).map_or(fields.span(), |value| &value.span);
        let message = format!("an answer has no {{{name}}}");
        match nearest(name, &StudyAnswer::NAMES) {
            Some(hint) => fields.problems.hinted(span, message, hint),
            None => fields.problems.add(span, message),
        }
    }
    sentence.to_owned()
}

/// Names in braces in a sentence.
fn names_in(sentence: &str) -> impl Iterator<Item = &str> {
    sentence.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0))
}

/// True if something with a `profiles` list is part of this profile.
pub(crate) fn made_in(fields: &Fields<'_>, profile: StudyProfile) -> bool {
    let listed = fields.list("profiles");
    let words: Vec<(&str, StudyProfile)> = StudyProfile::ALL.map(|p| (p.name(), p)).to_vec();
    let named = listed
        .iter()
        .filter_map(|value| crate::fields::choice("profiles", value, &words, fields.problems));
    listed.is_empty() || named.into_iter().any(|named| named == profile)
}

fn about(
    fields: &Fields<'_>,
    text: &str,
    made: bool,
    targets: &Arc<[Target]>,
) -> Option<ClaimSubject> {
    let problems = fields.problems;
    let (value, every) = (fields.value("value"), fields.value("every"));
    let (every, quantifier) = match (every, fields.value("some")) {
        (every @ Some(_), None) => (every, Quantifier::Every),
        (None, some) => (some, Quantifier::Some),
        (Some(_), Some(some)) => {
            problems.add(&some.span, "a claim has either every or some");
            return None;
        }
    };
    let (expect, trials) = (fields.value("expect"), fields.entry("trials"));
    let of = fields.value("of");
    let pairs = fields.value("pairs");
    if let (Some(pairs), None) = (pairs, value) {
        problems.add(&pairs.span, "pairs belongs to value");
    }
    match (value, every) {
        (Some(value), None) => {
            if let Some(trials) = trials {
                problems.add(&trials.key_span, "trials belongs to every and some, not to value");
            }
            if let Some(of) = of {
                problems.hinted(
                    &of.span,
                    "of belongs to every",
                    "write 'variant/scenario/WORKLOAD'",
                );
            }
            let needs_expect =
                || problems.hinted(fields.span(), "a claim needs expect", expect::HINT);
            if expect.is_none() && pairs.is_none() {
                needs_expect();
                return None;
            }
            let written = expect.map(|expect| {
                let expected = expect::parse(crate::fields::text("expect", expect, problems)?);
                if let Err(why) = &expected {
                    problems.hinted(&expect.span, why.clone(), expect::HINT);
                }
                expected.ok()
            });
            if !made {
                return None;
            }
            let source = crate::fields::text("value", value, problems)?;
            let expression = ClaimExpression::parse(source, targets);
            let expression = expression.map_err(|f| report(f, source, value, text, problems));
            let pairs = pairs.and_then(|pairs| PairSettings::parse(pairs, problems));
            let value = expression.ok()?;
            let expect = match written {
                Some(expect) => expect?,
                None => {
                    // The first metric of a value that is no quotient decides.
                    let (above, _) = value.ratio().unwrap_or_default();
                    let of_pairs =
                        pairs.and_then(|one| one.expected(value.references()[above].metric));
                    if of_pairs.is_none() {
                        needs_expect();
                    }
                    of_pairs?
                }
            };
            Some(ClaimSubject::Value { value, expect, pairs })
        }
        (None, Some(every)) => {
            if let Some(expect) = expect {
                problems.add(&expect.span, "a condition is true or false and expects nothing more");
            }
            let key = if quantifier == Quantifier::Every { "every" } else { "some" };
            let source = crate::fields::text(key, every, problems)?;
            let condition = TrialCondition::parse(source);
            let condition = condition.map_err(|f| report(f, source, every, text, problems));
            let pattern = fields.text("trials").unwrap_or_default(); // Every name fits an empty pattern.
            let points: Vec<usize> = targets
                .iter()
                .enumerate()
                .filter_map(|(point, target)| target.name.fits(pattern).then_some(point))
                .collect();
            if made && points.is_empty() {
                let message = format!("no trial of this profile fits \"{pattern}\"");
                problems.add(trials.map_or(fields.span(), |entry| &entry.value.span), message);
            }
            let of = fields.text("of").unwrap_or_default().to_owned(); // An empty scope is the whole trial.
            check_part(of.as_str(), fields, points.iter().map(|point| &targets[*point]));
            made.then_some(ClaimSubject::Every {
                quantifier,
                condition: condition.ok()?,
                of,
                points,
            })
        }
        _ => {
            let hint = "value = an expression with expect, every or some = a condition";
            problems.hinted(fields.span(), "a claim needs either value, every or some", hint);
            None
        }
    }
}

/// Points at the field `of` where one of these points has no such part; nothing is wrong without a part.
pub(crate) fn check_part<'t>(
    of: &str,
    fields: &Fields<'_>,
    points: impl Iterator<Item = &'t Target>,
) {
    for target in points.filter(|_| !of.is_empty()) {
        let named = || target.workloads.iter().chain(&target.nodes).chain(&target.queries);
        let parts = || named().map(String::as_str);
        if !parts().any(|part| part == of) {
            let span = fields.value("of").map_or(fields.span(), |value| &value.span);
            fields.problems.unknown(span, &format!("part of {}:", target.name), of, parts());
        }
    }
}

/// Points at the place inside study.toml where an expression is wrong.
pub(crate) fn report(fault: Fault, source: &str, value: &Value, text: &str, problems: &Problems) {
    let quoted = &text[value.span.clone()];
    // A string without escapes stands in the file as it is, one or three quotes in.
    let offset = quoted.find(source).map(|at| value.span.start + at);
    let span: Range<usize> = match (offset, fault.span) {
        (Some(offset), Some(inner)) if inner.end <= source.len() && !inner.is_empty() => {
            whole_characters(text, offset + inner.start..offset + inner.end)
        }
        _ => value.span.clone(),
    };
    match fault.hint {
        Some(hint) => problems.hinted(&span, fault.message, hint),
        None => problems.add(&span, fault.message),
    }
}

/// The span, widened to whole characters: minijinja points at single bytes.
fn whole_characters(text: &str, span: Range<usize>) -> Range<usize> {
    let start = (0..=span.start).rev().find(|at| text.is_char_boundary(*at));
    let end = (span.end..=text.len()).find(|at| text.is_char_boundary(*at));
    // The beginning and the end of a text are boundaries.
    start.unwrap_or(0)..end.unwrap_or(text.len())
}

/// More trials than a study has time for.
const TRIALS_MAX: usize = 10_000;

const KINDS: &[(&str, ClaimKind)] = &[
    ("finding", ClaimKind::Finding),
    ("invariant", ClaimKind::Invariant),
    ("control", ClaimKind::Control),
];
