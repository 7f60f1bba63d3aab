//! Figures of tables and of autovacuum, in a window or a part of it.

use std::collections::{BTreeMap, BTreeSet};

use check::TrialFigure;
use record::{MarkKind, MeasuredWindow, Sample};
use spec::{Metric, metrics};
use stats::TimeSlope;

use super::evidence::Evidence;
use super::scope::{label_scope, scopes};

/// What became of each table, and the runs of autovacuum, in a part of the window.
pub(super) fn tables(evidence: &Evidence<'_>, part: MeasuredWindow) -> Vec<TrialFigure> {
    let read = evidence.readings.samples.iter();
    let inside: Vec<&Sample> =
        read.filter(|sample| sample.at > part.open && sample.at <= part.close).collect();
    let of = |metric: &Metric| -> BTreeMap<(&str, &str), Vec<&Sample>> {
        let mut series: BTreeMap<_, Vec<&Sample>> = BTreeMap::new();
        for sample in inside.iter().filter(|sample| sample.is_of(metric)) {
            series.entry((sample.node.as_str(), sample.label.as_str())).or_default().push(sample);
        }
        series
    };
    let mut figures = Vec::new();
    let hot = of(&metrics::TABLE_HOT_UPDATES);
    for ((node, table), updates) in of(&metrics::TABLE_UPDATES) {
        let sum = |samples: &[&Sample]| samples.iter().map(|sample| sample.value).sum::<f64>();
        let (all, scope) = (sum(&updates), label_scope(evidence, node, table));
        // A table without updates has no share; a value that is not finite is not filed.
        if let Some(hot) = hot.get(&(node, table)) {
            figures.push(TrialFigure::new(&metrics::HOT_SHARE, &scope, sum(hot) / all));
        }
    }
    for ((node, table), readings) in of(&metrics::DEAD_TUPLES) {
        figures.extend(slope(&readings, &label_scope(evidence, node, table)));
    }
    let nodes: BTreeSet<&str> = inside.iter().map(|sample| sample.node.as_str()).collect();
    let nodes = nodes.into_iter().filter(|node| evidence.readings.deltas.contains_key(*node));
    for node in nodes {
        let runs = evidence.readings.marks.iter().filter(|mark| {
            let ended = mark.at.plus_ns(mark.length_ns);
            let is_inside = ended > part.open && ended <= part.close;
            mark.kind == MarkKind::Autovacuum && mark.node == node && is_inside
        });
        let lengths: Vec<f64> = runs.map(|mark| mark.length_ns as f64 / 1e9).collect();
        for scope in scopes(evidence, node) {
            let figure = |metric, value| TrialFigure::new(metric, &scope, value);
            figures.push(figure(&metrics::AUTOVACUUM_RUNS, lengths.len() as f64));
            figures.push(figure(&metrics::AUTOVACUUM_S, lengths.iter().sum()));
        }
    }
    figures
}

/// The change of dead rows an hour, with the ends of its interval.
fn slope(readings: &[&Sample], scope: &str) -> Vec<TrialFigure> {
    let (Some(first), Some(last)) = (readings.first(), readings.last()) else { return Vec::new() };
    let interval_s = last.at.since(first.at) as f64 / 1e9 / (readings.len() - 1).max(1) as f64;
    let values: Vec<f64> = readings.iter().map(|sample| sample.value).collect();
    let Some(slope) = TimeSlope::of(&values, interval_s, 0.95) else { return Vec::new() };
    let (low, high) = slope.bounds();
    let figures = [
        (&metrics::DEAD_TUPLES_SLOPE, slope.an_hour),
        (&metrics::DEAD_TUPLES_SLOPE_LOW, low),
        (&metrics::DEAD_TUPLES_SLOPE_HIGH, high),
    ];
    figures.map(|(metric, value)| TrialFigure::new(metric, scope, value)).into()
}
