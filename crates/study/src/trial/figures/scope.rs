//! Scope of a figure, and the samples of the window.

use spec::Metric;

use super::evidence::Evidence;

pub(super) fn mean_of(evidence: &Evidence<'_>, metric: &Metric, node: &str) -> Option<f64> {
    let values: Vec<f64> = inside(evidence)
        .filter(|sample| sample.is_of(metric) && sample.node == node && sample.label.is_empty())
        .map(|sample| sample.value)
        .collect();
    stats::sample::mean(&values)
}

pub(super) fn inside<'a>(evidence: &'a Evidence<'_>) -> impl Iterator<Item = &'a record::Sample> {
    let window = evidence.window;
    let samples = evidence.readings.samples.iter();
    samples.filter(move |sample| sample.at > window.open && sample.at <= window.close)
}

/// A node's own scope; and the trial's, if it is the only node.
pub(super) fn scopes(evidence: &Evidence<'_>, node: &str) -> Vec<String> {
    let nodes = &evidence.point.topology.nodes;
    match nodes.as_slice() {
        [only] if only.name == node => vec![node.to_owned(), String::new()],
        _ => vec![node.to_owned()],
    }
}

pub(super) fn label_scope(evidence: &Evidence<'_>, node: &str, label: &str) -> String {
    match evidence.point.topology.nodes.as_slice() {
        [only] if only.name == node => label.to_owned(),
        _ => format!("{node}/{label}"),
    }
}
