//! What clients saw, whatever the study claims: their errors by SQLSTATE, and the anomalies of their histories.

use std::collections::BTreeMap;

use record::{Trial, WitnessPicture};
use terms::grouped;

use crate::name::trial_name;

/// What clients saw in all attempts of a run.
#[derive(Clone, Debug, Default)]
pub struct ClientSight<'t> {
    /// Errors by SQLSTATE, over their whole life, retried ones included.
    pub errors: BTreeMap<&'t str, u64>,
    /// The anomalies of their histories, each once: the trial with the smallest witness of it, and the witness.
    pub anomalies: Vec<(&'t Trial, &'t WitnessPicture)>,
}

/// What the clients of all attempts saw.
#[must_use]
pub fn client_sight(trials: &[Trial]) -> ClientSight<'_> {
    let mut sight = ClientSight::default();
    for trial in trials {
        for (state, count) in trial.workloads.iter().flat_map(|one| &one.counts_total.errors) {
            *sight.errors.entry(state).or_default() += count;
        }
        for witness in &trial.witnesses {
            let known = sight.anomalies.iter_mut().find(|(_, one)| one.anomaly == witness.anomaly);
            match known {
                Some(known) if known.1.transactions.len() <= witness.transactions.len() => {}
                Some(known) => *known = (trial, witness),
                None => sight.anomalies.push((trial, witness)),
            }
        }
    }
    sight
}

impl ClientSight<'_> {
    /// In sentences: the errors that came most often, and a sentence for each anomaly.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let mut errors: Vec<(&str, u64)> = self.errors.iter().map(|(k, v)| (*k, *v)).collect();
        errors.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let shown = errors.iter().take(ERRORS_SHOWN_MAX);
        let mut words: Vec<String> =
            shown.map(|(state, count)| format!("{state} × {}", grouped(*count))).collect();
        if errors.len() > ERRORS_SHOWN_MAX {
            words.push(format!("{} more SQLSTATEs", errors.len() - ERRORS_SHOWN_MAX));
        }
        let errors = (!words.is_empty())
            .then(|| format!("errors that clients got, by SQLSTATE: {}", words.join(", ")));
        let anomalies = self.anomalies.iter().map(|(trial, witness)| {
            let WitnessPicture { anomaly, meaning, why, .. } = witness;
            let (number, name) = (trial.number, trial_name(trial));
            let why = if why.is_empty() { String::new() } else { format!("; {why}") };
            format!("anomaly {anomaly} ({meaning}): trial {number}, {name}{why}")
        });
        errors.into_iter().chain(anomalies).collect()
    }
}

/// SQLSTATEs that a sentence names.
const ERRORS_SHOWN_MAX: usize = 8;
