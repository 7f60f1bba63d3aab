//! Controls of a run under way: where a fault does no harm though nothing is protected from it,
//! further trials of it would prove nothing.

use std::collections::BTreeSet;

use record::Trial;
use spec::{Claim, ClaimKind, ClaimSubject, Quantifier, ScheduledTrial, Study};
use verdict::{ClaimMeasurement, ClaimVerdict, Verdict};

/// Message about the first control that has had its trials and does not hold.
pub(crate) fn failed(study: &Study, plan: &[ScheduledTrial], done: &[Trial]) -> Option<String> {
    let controls = study.claims.iter().filter(|claim| claim.kind == ClaimKind::Control);
    let mut failed = controls.filter_map(|claim| {
        let ran = ran(study, claim, done);
        let judged = verdict::judge_claim(study, claim, done, &[]);
        (!has_done_harm(&judged) && has_had_its_trials(claim, plan, ran, judged.verdict)).then(|| {
            let says = &claim.says;
            if ran == 1 {
                return format!(
                    "control \"{says}\" failed in one trial, which may be chance: run it again; if it fails again, this \
                     machine cannot reproduce the fault: give it a longer or heavier load to harm, or another disk (TMPDIR)"
                );
            }
            format!(
                "control \"{says}\" failed after {ran} trials: this machine cannot reproduce the \
                 fault; give it a longer or heavier load to harm, or another disk (TMPDIR)"
            )
        })
    });
    failed.next()
}

/// True if a trial showed what the control claims, even if another trial keeps the claim open.
fn has_done_harm(judged: &ClaimVerdict) -> bool {
    let is_seen = matches!(judged.measured, ClaimMeasurement::Count { trials, failures, .. } if failures < trials);
    judged.verdict == Verdict::Holds || (judged.verdict == Verdict::CannotTell && is_seen)
}

fn has_had_its_trials(
    claim: &Claim,
    plan: &[ScheduledTrial],
    ran: usize,
    verdict: Verdict,
) -> bool {
    let ClaimSubject::Every { quantifier, points, .. } = &claim.about else { return false };
    let planned = plan.iter().filter(|planned| points.contains(&planned.point)).count();
    match quantifier {
        Quantifier::Some => ran > 0 && ran >= claim.within.unwrap_or(planned).min(planned),
        // One trial is enough to show that it is not so.
        Quantifier::Every => verdict == Verdict::DoesNotHold,
    }
}

/// Trials of a claim that are over and show something: an action without an effect shows nothing.
fn ran(study: &Study, claim: &Claim, done: &[Trial]) -> usize {
    let ClaimSubject::Every { points, .. } = &claim.about else { return 0 };
    let is_its = |trial: &&Trial| {
        let point = study.point(&trial.variant, &trial.scenario, &trial.axes);
        trial.ending.is_complete() && point.is_some_and(|point| points.contains(&point))
    };
    let numbers = done.iter().filter(is_its).map(|trial| trial.number);
    numbers.collect::<BTreeSet<usize>>().len()
}
