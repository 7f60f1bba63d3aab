//! Claims that no run of a study can decide, found before the hours are spent.

use stats::HEADLINE_ROUNDS_MIN;

use crate::claim::About;
use crate::folder::Folder;
use crate::problem::Problem;
use crate::profile::Profile;
use crate::study::Study;

/// The claims about a value that have too few rounds for an interval in every profile that makes
/// them, each at its place in the file. None for a folder that is no study.
#[must_use]
pub fn never_judged(folder: &Folder) -> Vec<Problem> {
    // The most rounds that a claim has in any profile, by its place.
    let mut found: Vec<(Problem, u32)> = Vec::new();
    // Figures of profile smoke mean nothing, and no claim expects a verdict from it.
    let studies = [Profile::Quick, Profile::Full].map(|profile| Study::parse(folder, profile));
    for study in studies.iter().flatten() {
        for claim in &study.claims {
            let About::Value { value, .. } = &claim.about else { continue };
            let rounds = value.references().iter().map(|one| study.points[one.point].rounds);
            let rounds = rounds.min().unwrap_or(0);
            match found.iter_mut().find(|(known, _)| known.span == claim.span) {
                Some((_, most)) => *most = rounds.max(*most),
                None => {
                    let file = Folder::STUDY.to_owned();
                    let (span, message) = (claim.span.clone(), String::new());
                    found.push((Problem { file, span, message, hint: None }, rounds));
                }
            }
        }
    }
    found.retain(|(_, rounds)| (*rounds as usize) < HEADLINE_ROUNDS_MIN);
    let problems = found.into_iter().map(|(problem, rounds)| {
        let plural = if rounds == 1 { "round" } else { "rounds" };
        let message = format!(
            "no profile can judge this claim: it has {rounds} {plural} at most, and a verdict \
             takes {HEADLINE_ROUNDS_MIN}"
        );
        let hint = format!(
            "write rounds = {{ smoke = 1, quick = {HEADLINE_ROUNDS_MIN}, full = \
             {HEADLINE_ROUNDS_MIN} }}, or more, in the scenarios that it speaks of"
        );
        Problem { message, hint: Some(hint), ..problem }
    });
    problems.collect()
}
