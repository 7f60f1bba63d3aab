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
pub(super) mod of_phases;
mod overload;
mod phases;
mod scope;
mod servers;
mod statements;
mod tables;
mod topology;

use check::TrialFigure;

use clients::{clients, whole};
use of_phases::by_phase;
use overload::{goodput_by_phase, overload, sqlstates};
use phases::{generators, phases};
use servers::{cpu, samples, server, warmth};
use statements::statements;
use tables::tables;
use topology::{crashes, crossings, handovers, sharding};

pub(crate) use evidence::Evidence;

/// All figures that this trial has a value for.
pub(crate) fn all(evidence: &Evidence<'_>) -> Vec<TrialFigure> {
    let workloads = &evidence.outcome.workloads;
    let whole = whole(workloads);
    // Without a workload no transaction ended.
    let transactions = whole.as_ref().map_or(0, |whole| whole.counts.transactions);
    let total = whole.as_ref().map_or(0, |whole| whole.counts_total.transactions); // As above.
    let mut figures = samples(evidence);
    for (index, workload) in workloads.iter().enumerate() {
        figures.extend(clients(evidence, Some(index), workload, &workload.name));
    }
    figures.extend(whole.iter().flat_map(|whole| clients(evidence, None, whole, "")));
    for (index, workload) in workloads.iter().enumerate() {
        figures.extend(overload(evidence, Some(index), workload, &workload.name));
    }
    figures.extend(whole.iter().flat_map(|whole| overload(evidence, None, whole, "")));
    figures.extend(whole.iter().flat_map(sqlstates));
    figures.extend(statements(workloads));
    figures.extend(phases(evidence));
    if !evidence.point.phases.is_empty() {
        figures.extend(tables(evidence, evidence.window));
        figures.extend(by_phase(evidence));
        figures.extend(goodput_by_phase(evidence));
    }
    figures.extend(generators(evidence));
    // Without a workload nothing was done.
    let good = whole.as_ref().map_or(0, |whole| whole.counts.good());
    figures.extend(cpu(evidence, transactions, good));
    figures.extend(server(evidence, total));
    figures.extend(warmth(evidence));
    figures.extend(crossings(evidence));
    figures.extend(handovers(evidence));
    figures.extend(crashes(evidence));
    figures.extend(sharding(evidence));
    figures
}
