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

use check::TrialFigure;

use clients::{clients, whole};
use phases::{generators, phases};
use servers::{cpu, samples, server, warmth};
use statements::statements;
use topology::{crashes, crossings, handovers, sharding};

pub(crate) use evidence::Evidence;

/// All figures that this trial has a value for.
pub(crate) fn all(evidence: &Evidence<'_>) -> Vec<TrialFigure> {
    let workloads = &evidence.outcome.workloads;
    let whole = whole(workloads);
    let transactions = whole.as_ref().map_or(0, |whole| whole.counts.transactions);
    let total = whole.as_ref().map_or(0, |whole| whole.counts_total.transactions);
    let mut figures = samples(evidence);
    for (index, workload) in workloads.iter().enumerate() {
        figures.extend(clients(evidence, Some(index), workload, &workload.name));
    }
    figures.extend(whole.iter().flat_map(|whole| clients(evidence, None, whole, "")));
    figures.extend(statements(workloads));
    figures.extend(phases(evidence));
    figures.extend(generators(evidence));
    figures.extend(cpu(evidence, transactions));
    figures.extend(server(evidence, total));
    figures.extend(warmth(evidence));
    figures.extend(crossings(evidence));
    figures.extend(handovers(evidence));
    figures.extend(crashes(evidence));
    figures.extend(sharding(evidence));
    figures
}
