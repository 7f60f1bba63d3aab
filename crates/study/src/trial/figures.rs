//! The catalogue's figures of one trial, made of everything that was measured in it.
//!
//! A figure is filed under its metric and a scope: empty for the trial as a whole, else a
//! workload, a node, a statement or a generator process (`generator 1`). A label within a metric
//! (a device, a wait event) stands for its scope, behind the node's name where there are several
//! nodes.

mod clients;
mod course;
mod evidence;
mod latency;
mod phases;
mod scope;
mod servers;
mod statements;
mod topology;

use clients::{clients, whole};
use phases::{generators, phases};
use servers::{cpu, samples, server, warmth};
use statements::statements;
use topology::{crashes, crossings, handovers, sharding};

pub(crate) use evidence::{Evidence, Figures};

/// All figures that this trial has a value for.
pub(crate) fn all(evidence: &Evidence<'_>) -> Figures {
    let mut figures = Figures::default();
    samples(evidence, &mut figures);
    let whole = whole(&evidence.outcome.workloads);
    for (index, workload) in evidence.outcome.workloads.iter().enumerate() {
        clients(evidence, Some(index), workload, &workload.name, &mut figures);
    }
    if let Some(whole) = &whole {
        clients(evidence, None, whole, "", &mut figures);
    }
    statements(&evidence.outcome.workloads, &mut figures);
    phases(evidence, &mut figures);
    generators(evidence, &mut figures);
    let transactions = whole.as_ref().map_or(0, |whole| whole.counts.transactions);
    cpu(evidence, transactions, &mut figures);
    let total = whole.as_ref().map_or(0, |whole| whole.counts_total.transactions);
    server(evidence, total, &mut figures);
    warmth(evidence, &mut figures);
    crossings(evidence, &mut figures);
    handovers(evidence, &mut figures);
    crashes(evidence, &mut figures);
    sharding(evidence, &mut figures);
    figures
}
