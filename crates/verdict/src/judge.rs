//! What can be said about every claim of a study.

use std::collections::BTreeMap;

use record::{Ending, Fault, PlannedTrial, Trial};
use spec::{About, Claim, ClaimKind, Quantifier, Study};

use crate::every::Question;
use crate::noise::{self, Noise};
use crate::{answer, control, doubt, every, family, value};

/// Everything that a study has answered so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The answer in one sentence.
    pub answer: String,
    /// One verdict for each claim, in the study's order.
    pub claims: Vec<ClaimVerdict>,
    /// By how much this machine differs from itself, for each metric that is compared; empty below
    /// two rounds.
    pub noise: Vec<Noise>,
    /// Attempts whose figures were left out, and why.
    pub discarded: Vec<Discarded>,
}

/// A claim and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimVerdict {
    /// The claim in words.
    pub says: String,
    /// Whether it must hold everywhere.
    pub kind: ClaimKind,
    /// Where the value is expected, as text; empty for what is true of every trial.
    pub expected: String,
    /// What was published.
    pub published: Option<f64>,
    /// A condition or a doubt that the study itself states.
    pub note: String,
    /// What was found.
    pub measured: Measured,
    /// The verdict, all claims of the study considered.
    pub verdict: Verdict,
    /// What the claim's own figures say, were it the study's only claim about a value. Differs from
    /// the verdict where that does not stand the correction for several claims.
    pub alone: Verdict,
    /// Why nobody can tell, or which trial failed; empty where the figures say enough.
    pub why: String,
}

/// What a verdict rests on.
#[derive(Clone, Debug, PartialEq)]
pub enum Measured {
    /// Nothing yet.
    Nothing,
    /// A value over rounds.
    Value {
        /// The value, its interval, how that was found, and how many rounds there are.
        interval: stats::Interval,
        /// The value on each round by itself, in the order of the rounds; NaN where it has none.
        per_round: Vec<f64>,
    },
    /// Trials counted.
    Count {
        /// Whether every trial must show it, or one is enough.
        quantifier: Quantifier,
        /// Trials in which it could be seen.
        trials: u64,
        /// Those in which it was not so.
        failures: u64,
        /// The rate of failures that these trials do not rule out, at 95 %: 3/n for none.
        rate_max: f64,
    },
}

/// What was measured in numbers, for tables and programs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// The value; of counted trials the share in which it was so.
    pub measured: Option<f64>,
    /// The lower bound of its interval.
    pub low: Option<f64>,
    /// The upper bound; none for counted trials, whose bound is one-sided.
    pub high: Option<f64>,
    /// What the interval promises, 0 to 1.
    pub confidence: Option<f64>,
    /// How the interval was found; empty without one.
    pub method: &'static str,
    /// Rounds, or trials that were counted.
    pub n: Option<u64>,
}

impl Measured {
    /// Of counted trials: in how many it was so. What every trial must show and what one trial is
    /// enough for read differently.
    #[must_use]
    pub fn counted(&self) -> Option<String> {
        let Measured::Count { quantifier, trials, failures, .. } = *self else { return None };
        Some(match (quantifier, trials - failures) {
            (Quantifier::Some, 0) => format!("seen in none of {trials}"),
            (Quantifier::Some, seen) => format!("seen in {seen} of {trials}"),
            (Quantifier::Every, 1) if trials == 1 => "in the one trial".to_owned(),
            (Quantifier::Every, so) if so == trials => format!("in all {trials} trials"),
            (Quantifier::Every, _) => format!("not in {failures} of {trials}"),
        })
    }

    /// In numbers; those that do not exist, infinite ones included, are none.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        match self {
            Measured::Nothing => Figures::default(),
            Measured::Value { interval, .. } => Figures {
                measured: finite(interval.point),
                low: finite(interval.low),
                high: finite(interval.high),
                confidence: finite(interval.confidence),
                method: interval.method.name(),
                n: Some(interval.n as u64),
            },
            Measured::Count { trials, failures, rate_max, .. } => Figures {
                measured: finite(1.0 - *failures as f64 / *trials as f64),
                low: finite(1.0 - rate_max),
                high: None,
                confidence: Some(0.95),
                method: "counted; one-sided bound",
                n: Some(*trials),
            },
        }
    }
}

/// A verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The interval lies inside what is expected.
    Holds,
    /// The interval lies outside.
    DoesNotHold,
    /// It straddles, rests on too little, or the rig itself was the limit.
    CannotTell,
}

/// An attempt whose figures were left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discarded {
    /// Its trial's number.
    pub number: usize,
    /// Which attempt at it this is, from 1.
    pub attempt: usize,
    /// What it ran.
    pub name: String,
    /// `void`, `skipped` or `failed`.
    pub status: &'static str,
    /// Why.
    pub why: String,
}

impl Verdict {
    /// The verdict in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::DoesNotHold => "does not hold",
            Verdict::CannotTell => "cannot tell",
        }
    }
}

/// Judges every claim of a run. `plan` is the run's, as its record has it
/// ([`record::Header::plan`]): what was planned and not run keeps claims about trials open.
#[must_use]
pub fn judge(study: &Study, plan: &[PlannedTrial], trials: &[Trial]) -> Judgement {
    let (mut claims, p_values): (Vec<ClaimVerdict>, Vec<Option<f64>>) =
        study.claims.iter().map(|claim| found(study, claim, plan, trials)).unzip();
    family::correct(&mut claims, &p_values);
    control::doubt(study, &mut claims);
    Judgement {
        answer: answer::answer(study, claims.first(), trials),
        claims,
        noise: noise::noise(study, trials),
        discarded: trials.iter().filter_map(discarded).collect(),
    }
}

/// Judges one claim by itself on the trials so far, whatever is still to be run.
#[must_use]
pub fn judge_claim(study: &Study, claim: &Claim, trials: &[Trial]) -> ClaimVerdict {
    found(study, claim, &[], trials).0
}

/// A claim by itself, and the p-value that goes with its verdict.
fn found(
    study: &Study,
    claim: &Claim,
    plan: &[PlannedTrial],
    trials: &[Trial],
) -> (ClaimVerdict, Option<f64>) {
    let (expected, found) = match &claim.about {
        About::Value { value, expect } => {
            (expect.to_string(), value::judge(study, value, *expect, trials))
        }
        About::Every { quantifier, condition, of, points } => {
            let question = Question { quantifier: *quantifier, condition, of, points };
            let mut found = every::judge(study, question, plan, trials);
            found.doubt(doubt::of_condition(study, condition, of, points, trials));
            (String::new(), found)
        }
    };
    let Found { measured, verdict, why, p } = found;
    let judged = ClaimVerdict {
        says: claim.says.clone(),
        kind: claim.kind,
        expected,
        published: claim.published,
        note: claim.note.clone(),
        measured,
        verdict,
        alone: verdict,
        why,
    };
    (judged, p)
}

/// What a kind of claim finds.
pub(crate) struct Found {
    pub(crate) measured: Measured,
    pub(crate) verdict: Verdict,
    pub(crate) why: String,
    /// Of a value that has an interval: how much would have to be wrong for the verdict to be.
    pub(crate) p: Option<f64>,
}

impl Found {
    /// Takes back what rests on doubtful figures.
    fn doubt(&mut self, reasons: Vec<String>) {
        if reasons.is_empty() {
            return;
        }
        self.verdict = Verdict::CannotTell;
        let all = (!self.why.is_empty()).then(|| self.why.clone()).into_iter().chain(reasons);
        self.why = all.collect::<Vec<_>>().join("; ");
    }
}

fn discarded(trial: &Trial) -> Option<Discarded> {
    (trial.ending != Ending::Done).then(|| Discarded {
        number: trial.number,
        attempt: trial.attempt,
        name: trial_name(trial),
        status: trial.ending.word(),
        why: trial.ending.why().to_owned(),
    })
}

/// What an attempt is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptUse {
    /// Its figures are the trial's.
    pub figures: bool,
    /// Why, for people.
    pub why: &'static str,
}

/// What each attempt is used for, in the order of `trials`.
#[must_use]
pub fn uses(trials: &[Trial]) -> Vec<AttemptUse> {
    let is_first_complete = |trial: &Trial| {
        let same = trials.iter().filter(|other| other.number == trial.number);
        let first = same.filter(|other| other.ending.is_complete()).map(|other| other.attempt);
        first.min() == Some(trial.attempt)
    };
    let of = |trial: &Trial| match &trial.ending {
        Ending::Done if trial.is_steady() => AttemptUse { figures: true, why: "its figures count" },
        Ending::Done => AttemptUse {
            figures: true,
            why: "its figures count; values are computed a second time without it",
        },
        ending if ending.is_unsteady() && is_first_complete(trial) => AttemptUse {
            figures: false,
            why: "not steady: its figures count where values are computed a second time from the \
                  first complete attempt of each trial; what it shows counts for every trial's \
                  claims",
        },
        ending if ending.is_unsteady() => AttemptUse {
            figures: false,
            why: "not steady: no figures; what it shows counts for every trial's claims",
        },
        Ending::Void(_) => AttemptUse {
            figures: false,
            why: "not what was asked for: it can refute a claim, not support one",
        },
        Ending::Skipped(_) => AttemptUse { figures: false, why: "not run" },
        Ending::Failed(reason) => AttemptUse {
            figures: false,
            why: match reason.kind {
                Fault::Server => {
                    "a server's fault: no claim about these trials holds, whatever later attempts \
                     show"
                }
                Fault::Rig => "the rig's fault: a later attempt may make up for it",
                Fault::Unknown => {
                    "it may have been a server's fault: no claim about these trials holds, \
                     whatever later attempts show"
                }
            },
        },
    };
    trials.iter().map(of).collect()
}

/// `variant/scenario axis=value`.
pub(crate) fn trial_name(trial: &Trial) -> String {
    point_name(&trial.variant, &trial.scenario, &trial.axes)
}

/// The same of what a trial is one of.
pub(crate) fn point_name(variant: &str, scenario: &str, axes: &BTreeMap<String, String>) -> String {
    let axes: Vec<String> = axes.iter().map(|(axis, value)| format!("{axis}={value}")).collect();
    format!("{variant}/{scenario} {}", axes.join(",")).trim_end().to_owned()
}
