//! The more claims decide, the more verdicts come out by chance: what is left of each headline claim
//! when all of them are judged together.

use stats::FAMILY_ERROR;

use crate::claim_verdict::{ClaimVerdict, Verdict};

/// Takes back the verdicts that do not stand Holm's correction over the headline claims about values
/// that could be judged. `p_values` has one for each claim that could; a family of one needs no
/// correction. What a claim's own interval says stays in `alone`.
pub(crate) fn correct(claims: &mut [ClaimVerdict], p_values: &[Option<f64>]) {
    let headlines = claims.iter_mut().zip(p_values).filter(|(claim, _)| claim.rank.is_corrected());
    let (mut claims, family): (Vec<&mut ClaimVerdict>, Vec<f64>) =
        headlines.filter_map(|(claim, p)| Some((claim, (*p)?))).unzip();
    if family.len() < 2 {
        return;
    }
    for (claim, adjusted) in claims.iter_mut().zip(stats::holm(&family)) {
        if claim.verdict == Verdict::CannotTell || adjusted <= FAMILY_ERROR {
            continue;
        }
        let why = format!(
            "{} by its own interval, but not among {} headline claims (Holm: p {adjusted:.2})",
            claim.verdict.words(),
            family.len()
        );
        claim.verdict = Verdict::CannotTell;
        claim.why = match claim.why.is_empty() {
            true => why,
            false => format!("{why}; {}", claim.why),
        };
    }
}
