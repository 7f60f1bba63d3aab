//! Controls: where the means of a scenario did not do what they must, its other results prove
//! nothing.

use std::collections::BTreeSet;

use spec::{About, ClaimKind, Study};

use crate::claim_verdict::{ClaimVerdict, Verdict};

/// Takes back what was said to hold about trials or figures of a scenario whose control does not hold; what
/// went wrong in spite of that stays said.
pub(crate) fn doubt(study: &Study, verdicts: &mut [ClaimVerdict]) {
    let controls: Vec<(String, BTreeSet<&str>)> = study
        .claims
        .iter()
        .zip(verdicts.iter())
        .filter(|(claim, judged)| {
            claim.kind == ClaimKind::Control && judged.verdict != Verdict::Holds
        })
        .map(|(claim, judged)| (why(&claim.says, judged), scenarios(study, &claim.about)))
        .collect();
    for (claim, judged) in study.claims.iter().zip(verdicts) {
        if claim.kind == ClaimKind::Control || judged.verdict != Verdict::Holds {
            continue;
        }
        let own = scenarios(study, &claim.about);
        let failed = controls.iter().find(|(_, scenarios)| !scenarios.is_disjoint(&own));
        if let Some((why, _)) = failed {
            judged.verdict = Verdict::CannotTell;
            judged.why.clone_from(why);
        }
    }
}

/// The reason why a claim that rests on this control cannot be told.
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

/// The scenarios whose trials or figures a claim speaks of.
fn scenarios<'s>(study: &'s Study, about: &About) -> BTreeSet<&'s str> {
    match about {
        About::Value { value, .. } => {
            let points = value.references().iter().map(|one| &study.points[one.point]);
            points.map(|point| point.name.scenario.as_str()).collect()
        }
        About::Every { points, .. } => {
            points.iter().map(|point| study.points[*point].name.scenario.as_str()).collect()
        }
    }
}
