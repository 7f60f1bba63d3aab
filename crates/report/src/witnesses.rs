//! Anomalies in the histories of clients: the smallest witness of each in all trials.

use record::{Trial, WitnessPicture};

use crate::plot::cycle_plot;
use crate::view::WitnessBlock;

/// The anomalies of all trials, each once.
pub(crate) fn witnesses(trials: &[Trial]) -> Vec<WitnessBlock> {
    let sight = verdict::client_sight(trials);
    sight.anomalies.into_iter().map(|(trial, witness)| block(trial, witness)).collect()
}

fn block(trial: &Trial, witness: &WitnessPicture) -> WitnessBlock {
    let Trial { number, variant, scenario, .. } = trial;
    let transactions = (1..).zip(&witness.transactions);
    let mut links: Vec<String> = witness
        .links
        .iter()
        .map(|link| format!("T{} -{}-> T{}: {}", link.from + 1, link.name, link.to + 1, link.why))
        .collect();
    if !witness.why.is_empty() {
        links.push(witness.why.clone());
    }
    WitnessBlock {
        title: format!("History: {}", witness.anomaly),
        note: format!("{}; trial {number}, {variant}/{scenario}", witness.meaning),
        plot: cycle_plot(witness),
        transactions: transactions
            .map(|(number, seen)| format!("T{number}: {}: {}", seen.who, seen.did.join(", ")))
            .collect(),
        links,
    }
}
