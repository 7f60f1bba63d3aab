//! The more claims a study makes, the more verdicts come out by chance: what is left of each when
//! all of them are judged together.

use stats::FAMILY_ERROR;

use crate::claim_verdict::{ClaimVerdict, Verdict};

/// Takes back the verdicts that do not stand Holm's correction over all values that could be
/// judged. `p_values` has one for each claim that could; a family of one needs no correction. What
/// a claim's own interval says stays in `alone`.
pub(crate) fn correct(claims: &mut [ClaimVerdict], p_values: &[Option<f64>]) {
    let family: Vec<f64> = p_values.iter().copied().flatten().collect();
    if family.len() < 2 {
        return;
    }
    let mut adjusted = stats::holm(&family).into_iter();
    for (claim, p) in claims.iter_mut().zip(p_values) {
        let Some(adjusted) = p.and_then(|_| adjusted.next()) else { continue };
        if claim.verdict == Verdict::CannotTell || adjusted <= FAMILY_ERROR {
            continue;
        }
        let why = format!(
            "{} by itself, but not among the study's {} claims about values (p {adjusted:.2} \
             after Holm's correction)",
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
