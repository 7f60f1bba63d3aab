//! Controls: where the means of a scenario did not do what they must, its other results prove
//! nothing.

use std::collections::BTreeSet;

use record::PlannedTrial;
use spec::{ClaimKind, ClaimSubject, Metric, Study, metrics};

use crate::claim_verdict::{ClaimVerdict, Verdict};
use crate::left_out;

/// Takes back what was said to hold about trials or figures of a scenario whose control does not hold; what
/// went wrong in spite of that stays said. A claim rests on the controls of those of its scenarios that the run
/// has planned, and one that says only what there was to judge rests on none.
pub(crate) fn doubt(study: &Study, plan: &[PlannedTrial], verdicts: &mut [ClaimVerdict]) {
    let planned = left_out::planned(study, plan);
    let is_planned = |point: usize| planned.as_ref().is_none_or(|all| all.contains(&point));
    let controls: Vec<(String, BTreeSet<&str>)> = study
        .claims
        .iter()
        .zip(verdicts.iter())
        .filter(|(claim, judged)| {
            claim.kind == ClaimKind::Control && judged.verdict != Verdict::Holds
        })
        .map(|(claim, judged)| {
            // A control whose own trials were left out shows nothing of its scenario's others.
            (why(&claim.says, judged), scenarios(study, &claim.about, |_| true))
        })
        .collect();
    for (claim, judged) in study.claims.iter().zip(verdicts) {
        let is_open = claim.kind != ClaimKind::Control && judged.verdict == Verdict::Holds;
        if !is_open || is_about_evidence(&claim.about) {
            continue;
        }
        let own = scenarios(study, &claim.about, is_planned);
        let failed = controls.iter().find(|(_, scenarios)| !scenarios.is_disjoint(&own));
        if let Some((why, _)) = failed {
            judged.verdict = Verdict::CannotTell;
            judged.why.clone_from(why);
        }
    }
}

/// Why a claim that rests on this control cannot be told.
fn why(says: &str, control: &ClaimVerdict) -> String {
    match control.verdict {
        Verdict::DoesNotHold => {
            format!("control \"{says}\" failed: this machine cannot reproduce the fault")
        }
        _ => format!(
            "nothing shows that the fault does harm here: control \"{says}\": {}",
            control.why
        ),
    }
}

/// True of a claim that says what there was to judge, and nothing of what the judgement found.
fn is_about_evidence(about: &ClaimSubject) -> bool {
    let ClaimSubject::Every { condition, .. } = about else { return false };
    let is_evidence = |metric: &&Metric| EVIDENCE.iter().any(|one| one.name == metric.name);
    condition.metrics().iter().all(is_evidence)
}

/// What ledgers and histories had to judge, and what of it could not be judged.
const EVIDENCE: [&Metric; 9] = [
    &metrics::LEDGER_INTENDED,
    &metrics::LEDGER_ACKNOWLEDGED,
    &metrics::LEDGER_UNJUDGED,
    &metrics::HISTORY_COMMITTED,
    &metrics::HISTORY_FAILED,
    &metrics::HISTORY_UNKNOWN,
    &metrics::HISTORY_READS,
    &metrics::HISTORY_READ_SHARE,
    &metrics::HISTORY_UNJUDGED,
];

/// The scenarios of those meant points whose trials or figures a claim speaks of.
fn scenarios<'s>(
    study: &'s Study,
    about: &ClaimSubject,
    is_meant: impl Fn(usize) -> bool,
) -> BTreeSet<&'s str> {
    let points: Vec<usize> = match about {
        ClaimSubject::Value { value, .. } => {
            value.references().iter().map(|one| one.point).collect()
        }
        ClaimSubject::Every { points, .. } => points.clone(),
    };
    let meant = points.into_iter().filter(|point| is_meant(*point));
    meant.map(|point| study.points[point].name.scenario.as_str()).collect()
}
