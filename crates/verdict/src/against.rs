//! The case against a run as a whole: something broke that may have been a server's fault, or a check
//! failed, and no claim need speak of it.

use record::{AttemptEnding, PairingAttempt, Trial, VoidKind};
use spec::Study;

use crate::every::{failed_words, marred};
use crate::failed_check::failed_checks;
use crate::name::trial_name;

/// The case against a run, one sentence for each thing that stands against an attempt.
pub(crate) fn against(study: &Study, trials: &[Trial], pairs: &[PairingAttempt]) -> Vec<String> {
    let of_trial = |trial: &Trial| {
        let name = trial_name(trial);
        let attempt = match trial.attempt {
            0 | 1 => String::new(),
            attempt => format!(", attempt {attempt}"),
        };
        let name = format!("trial {}{attempt} ({name})", trial.number);
        let broke = match (stands_against(&trial.ending), marred(study, trial)) {
            (true, _) => match &trial.ending {
                failed @ AttemptEnding::Failed(_) => {
                    Some(format!("{name} {}", failed_words(failed)))
                }
                ending => Some(format!("{name} {}: {}", word(ending), ending.headline())),
            },
            (false, Some(why)) => Some(format!("{name} {why}")),
            (false, None) => None,
        };
        let failed = failed_checks(study, trial).map(|why| format!("{name} {why}"));
        broke.into_iter().chain(failed)
    };
    let of_pairs = |paired: &PairingAttempt| {
        stands_against(&paired.ending).then(|| {
            let PairingAttempt { above, scenario, ending, .. } = paired;
            let [below_side, above_side] = paired.sides();
            let place = match (above == &paired.below, &paired.below_scenario) {
                (true, _) => above.clone(),
                (false, None) => scenario.clone(),
                (false, Some(below)) => format!("{scenario}, {below}"),
            };
            let (word, why) = (word(ending), ending.headline());
            format!("pairs of {above_side} and {below_side} ({place}) {word}: {why}")
        })
    };
    trials.iter().flat_map(of_trial).chain(pairs.iter().filter_map(of_pairs)).collect()
}

/// True if an attempt may have shown something bad that no figure tells. An action without an effect
/// makes a trial void, and says nothing against a server.
fn stands_against(ending: &AttemptEnding) -> bool {
    match ending {
        AttemptEnding::Void(reason) => reason.kind == VoidKind::AllFailed,
        ending => ending.stays_open(),
    }
}

fn word(ending: &AttemptEnding) -> &'static str {
    match ending {
        AttemptEnding::Interrupted(_) => "was interrupted",
        AttemptEnding::Void(_) => "is void",
        _ => "failed",
    }
}
