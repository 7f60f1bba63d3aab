//! What can be said about every claim of a study.

use record::{Status, Trial};
use spec::{About, Claim, ClaimKind, Study};

use crate::noise::{self, Noise};
use crate::{answer, control, every, value};

/// Everything that a study has answered so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The answer in one sentence.
    pub answer: String,
    /// One verdict for each claim, in the study's order.
    pub claims: Vec<ClaimVerdict>,
    /// By how much this machine differs from itself; none below two rounds.
    pub noise: Option<Noise>,
    /// Trials that were left out, and why.
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
    /// The verdict.
    pub verdict: Verdict,
    /// Why nobody can tell, or which trial failed; empty where the figures say enough.
    pub why: String,
}

/// What a verdict rests on.
#[derive(Clone, Debug, PartialEq)]
pub enum Measured {
    /// Nothing yet.
    Nothing,
    /// A value, recomputed on resampled rounds.
    Value {
        /// The value on all rounds, its interval, and how many rounds there are.
        interval: stats::Interval,
        /// The value on each round by itself, in the order of the rounds; NaN where it has none.
        per_round: Vec<f64>,
    },
    /// Trials counted.
    Count {
        /// Trials in which it could be seen.
        trials: u64,
        /// Those in which it was not so.
        failures: u64,
        /// The rate of failures that these trials do not rule out, at 95 %: 3/n for none.
        rate_max: f64,
    },
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

/// A trial that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discarded {
    /// Its number.
    pub number: usize,
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

/// Judges every claim on the trials that there are, be it in the middle of a run.
#[must_use]
pub fn judge(study: &Study, trials: &[Trial]) -> Judgement {
    let mut claims: Vec<ClaimVerdict> =
        study.claims.iter().map(|claim| judge_claim(study, claim, trials)).collect();
    control::doubt(study, &mut claims);
    Judgement {
        answer: answer::answer(study, claims.first()),
        claims,
        noise: noise::noise(study, trials),
        discarded: trials.iter().filter_map(discarded).collect(),
    }
}

/// Judges one claim.
#[must_use]
pub fn judge_claim(study: &Study, claim: &Claim, trials: &[Trial]) -> ClaimVerdict {
    let (expected, found) = match &claim.about {
        About::Value { value, expect } => {
            (expect.to_string(), value::judge(study, value, *expect, trials))
        }
        About::Every { quantifier, condition, of, points } => {
            let found = every::judge(study, *quantifier, condition, of, points, trials);
            (String::new(), found)
        }
    };
    let Found { measured, verdict, why } = found;
    ClaimVerdict {
        says: claim.says.clone(),
        kind: claim.kind,
        expected,
        published: claim.published,
        note: claim.note.clone(),
        measured,
        verdict,
        why,
    }
}

/// What a kind of claim finds.
pub(crate) struct Found {
    pub(crate) measured: Measured,
    pub(crate) verdict: Verdict,
    pub(crate) why: String,
}

fn discarded(trial: &Trial) -> Option<Discarded> {
    let (status, why) = match &trial.status {
        Status::Done => return None,
        Status::Void(why) => ("void", why),
        Status::Skipped(why) => ("skipped", why),
        Status::Failed(why) => ("failed", why),
    };
    Some(Discarded { number: trial.number, name: trial_name(trial), status, why: why.clone() })
}

/// `variant/scenario axis=value`.
pub(crate) fn trial_name(trial: &Trial) -> String {
    let axes: Vec<String> =
        trial.axes.iter().map(|(axis, value)| format!("{axis}={value}")).collect();
    let name = format!("{}/{} {}", trial.variant, trial.scenario, axes.join(","));
    name.trim_end().to_owned()
}
