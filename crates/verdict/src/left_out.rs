//! Claims about points that a run left out, as with `--only`.

use std::collections::BTreeSet;

use record::PlannedTrial;
use spec::{Claim, ClaimSubject, Study};

use crate::every;

/// Points that a run has planned trials of; none where its record does not say what was planned.
pub(crate) fn planned(study: &Study, plan: &[PlannedTrial]) -> Option<BTreeSet<usize>> {
    let points =
        plan.iter().filter_map(|trial| study.point(&trial.variant, &trial.scenario, &trial.axes));
    (!plan.is_empty()).then(|| points.collect())
}

/// True if the run left out what a claim speaks of: one point of a value, or every point whose trials
/// it asks.
pub(crate) fn is_left_out(study: &Study, claim: &Claim, plan: &[PlannedTrial]) -> bool {
    let Some(planned) = planned(study, plan) else { return false };
    match &claim.about {
        ClaimSubject::Value { value, .. } => {
            value.references().iter().any(|one| !planned.contains(&one.point))
        }
        ClaimSubject::Every { condition, points, .. } => {
            let asked = every::asked(study, condition, points);
            !asked.is_empty() && asked.iter().all(|point| !planned.contains(point))
        }
    }
}
