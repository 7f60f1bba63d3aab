//! Judgement of every claim of a study.

use record::{AttemptEnding, PairingAttempt, PlannedTrial, Trial};
use spec::{Claim, ClaimExpression, ClaimKind, ClaimSubject, Study, StudyProfile};
use stats::{Expectation, HEADLINE_ROUNDS_MIN};

use crate::claim_verdict::{ClaimFinding, ClaimMeasurement, ClaimVerdict, Verdict};
use crate::every::TrialQuestion;
use crate::harm::{self, HarmCount};
use crate::name::trial_name;
use crate::noise::{self, MetricNoise};
use crate::{against, answer, control, doubt, every, family, left_out, paired, protocol, value};

/// Everything that a study has answered so far.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyVerdicts {
    /// The answer in one sentence.
    pub answer: String,
    /// Harm that clients suffered, whatever the study claims: it stands before everything else.
    pub harm: Vec<HarmCount>,
    /// One verdict for each claim, in the study's order.
    pub claims: Vec<ClaimVerdict>,
    /// By how much this machine differs from itself, for each metric that is compared; empty below
    /// two rounds.
    pub noise: Vec<MetricNoise>,
    /// Attempts whose figures were left out, and why.
    pub discarded: Vec<DiscardedAttempt>,
    /// The case against the run as a whole, whatever its claims say: attempts that broke and for which a
    /// server may be to blame, crashes that nobody asked for, and checks that failed. No gate is passed with any.
    pub against: Vec<String>,
}

impl StudyVerdicts {
    /// The claims that are about what this run has planned: those that `--only` left out are not among
    /// them.
    pub fn asked(&self) -> impl Iterator<Item = &ClaimVerdict> {
        self.claims.iter().filter(|claim| !claim.is_left_out())
    }

    /// Those of them that this profile can judge: what a reader is shown.
    pub fn judged(&self) -> impl Iterator<Item = &ClaimVerdict> {
        self.asked().filter(|claim| claim.measured != ClaimMeasurement::BeyondProfile)
    }

    /// Says how many claims have no verdict because of `--only` or of the profile; nothing where none is.
    #[must_use]
    pub fn left_out_words(&self) -> Option<String> {
        let asked = self.asked().count();
        let counted = |count: usize, why: &str| match count {
            0 => None,
            1 => Some(format!("1 claim is {why}")),
            count => Some(format!("{count} claims are {why}")),
        };
        let left_out = counted(self.claims.len() - asked, "about points that this run left out");
        let beyond =
            counted(asked - self.judged().count(), "judged by profile quick, not by smoke");
        let words: Vec<String> = left_out.into_iter().chain(beyond).collect();
        (!words.is_empty()).then(|| words.join("; "))
    }
}

/// An attempt whose figures were left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscardedAttempt {
    /// The trial's number.
    pub number: usize,
    /// Number of the attempt at this trial, from 1.
    pub attempt: usize,
    /// Name of the point that it ran.
    pub name: String,
    /// `void`, `skipped` or `failed`.
    pub status: &'static str,
    /// The reason.
    pub why: String,
}

/// Judges every claim of a run. `plan` is the run's, as its record has it
/// ([`record::RecordHeader::plan`]): what was planned and not run keeps claims about trials open. `pairs`
/// is what was measured in pairs.
pub fn judge(
    study: &Study,
    plan: &[PlannedTrial],
    trials: &[Trial],
    pairs: &[PairingAttempt],
) -> StudyVerdicts {
    let mut judgement = judge_at(paired::CONFIDENCE, study, plan, trials, pairs);
    leave_to_larger_profiles(study, &mut judgement.claims);
    judgement
}

/// The same with another confidence of the intervals of pairs.
pub(crate) fn judge_at(
    confidence: f64,
    study: &Study,
    plan: &[PlannedTrial],
    trials: &[Trial],
    pairs: &[PairingAttempt],
) -> StudyVerdicts {
    let found = |claim| found(confidence, study, claim, plan, trials, pairs);
    let (mut claims, p_values): (Vec<ClaimVerdict>, Vec<Option<f64>>) =
        study.claims.iter().map(found).unzip();
    family::correct(&mut claims, &p_values);
    control::doubt(study, plan, &mut claims);
    StudyVerdicts {
        answer: answer::answer(study, &claims, trials),
        harm: harm::harms(trials),
        claims,
        noise: noise::noise(study, trials),
        discarded: trials.iter().filter_map(discarded).collect(),
        against: against::against(study, trials, pairs),
    }
}

/// Leaves the claims about values of a smoke run to the larger profiles: one round or a few seconds of pairs
/// give no interval. A claim that has a verdict all the same keeps it.
pub(crate) fn leave_to_larger_profiles(study: &Study, claims: &mut [ClaimVerdict]) {
    if study.profile != StudyProfile::Smoke {
        return;
    }
    let is_too_little = |measured: &ClaimMeasurement| match measured {
        ClaimMeasurement::Nothing => true,
        ClaimMeasurement::Value { interval, .. } => interval.n < HEADLINE_ROUNDS_MIN,
        ClaimMeasurement::LeftOut
        | ClaimMeasurement::BeyondProfile
        | ClaimMeasurement::Pairs { .. }
        | ClaimMeasurement::Count { .. } => false,
    };
    let is_beyond = |claim: &&mut ClaimVerdict| {
        claim.kind == ClaimKind::Finding
            && !claim.expected.is_empty()
            && claim.verdict == Verdict::CannotTell
            && is_too_little(&claim.measured)
    };
    for claim in claims.iter_mut().filter(is_beyond) {
        claim.measured = ClaimMeasurement::BeyondProfile;
    }
}

/// Judges one claim by itself on the trials so far, whatever is still to be run.
pub fn judge_claim(
    study: &Study,
    claim: &Claim,
    trials: &[Trial],
    pairs: &[PairingAttempt],
) -> ClaimVerdict {
    found(paired::CONFIDENCE, study, claim, &[], trials, pairs).0
}

/// A claim by itself, and the p-value that goes with its verdict.
fn found(
    confidence: f64,
    study: &Study,
    claim: &Claim,
    plan: &[PlannedTrial],
    trials: &[Trial],
    pairs: &[PairingAttempt],
) -> (ClaimVerdict, Option<f64>) {
    let (expected, mut found) = match &claim.about {
        about if left_out::is_left_out(study, claim, plan) => {
            let expected = match about {
                ClaimSubject::Value { expect, .. } => expect.to_string(),
                ClaimSubject::Every { .. } => String::new(),
            };
            (expected, ClaimFinding::left_out())
        }
        ClaimSubject::Value { value, expect, pairs: None } => {
            (expect.to_string(), value::judge(study, value, *expect, plan, trials))
        }
        ClaimSubject::Value { value, expect, pairs: Some(_) } => {
            let by_pairs = paired::judge(confidence, study, value, *expect, pairs);
            let missing = paired::missing(study, value, pairs);
            let found =
                missing.and_then(|why| by_trials(study, value, *expect, (plan, trials), &why));
            (expect.to_string(), found.unwrap_or(by_pairs))
        }
        ClaimSubject::Every { quantifier, condition, of, points } => {
            let question = TrialQuestion { study, quantifier: *quantifier, condition, of, points };
            let mut found = every::judge(question, plan, trials);
            found.doubt(doubt::of_condition(study, condition, of, points, trials));
            (String::new(), found)
        }
    };
    if let ClaimSubject::Value { value, .. } = &claim.about {
        protocol::tell(study, value, &mut found);
    }
    let ClaimFinding { measured, verdict, why, p } = found;
    let judged = ClaimVerdict {
        says: claim.says.clone(),
        kind: claim.kind,
        rank: claim.rank,
        expected,
        published: claim.published,
        note: claim.note.clone(),
        measured,
        needs_harm: harm::needs_harm(claim),
        verdict,
        alone: verdict,
        why,
    };
    (judged, p)
}

/// The same value by whole trials, where it was not measured in pairs; none where those have none.
fn by_trials(
    study: &Study,
    value: &ClaimExpression,
    expect: Expectation,
    (plan, trials): (&[PlannedTrial], &[Trial]),
    why: &str,
) -> Option<ClaimFinding> {
    let mut found = value::judge(study, value, expect, plan, trials);
    matches!(found.measured, ClaimMeasurement::Value { .. }).then_some(())?;
    let said = format!("in whole trials, because {why}");
    found.why = match found.why.is_empty() {
        true => said,
        false => format!("{said}; {}", found.why),
    };
    Some(found)
}

fn discarded(trial: &Trial) -> Option<DiscardedAttempt> {
    (trial.ending != AttemptEnding::Done).then(|| DiscardedAttempt {
        number: trial.number,
        attempt: trial.attempt,
        name: trial_name(trial),
        status: trial.ending.word(),
        why: trial.ending.why().to_owned(),
    })
}
