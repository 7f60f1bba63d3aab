//! Figures of the parts of a topology: standbys that took places, buckets that moved.

use check::TrialFigure;
use spec::metrics;

use super::evidence::{Evidence, ms};
use crate::trial::replication;
use measure::NodeDeath;

/// Time until another standby was in the place of one that had gone.
pub(super) fn handovers(evidence: &Evidence<'_>) -> Vec<TrialFigure> {
    let takeovers = &evidence.readings.takeovers;
    let figures = evidence.point.topology.nodes.iter().flat_map(|node| {
        let standbys = evidence.point.topology.standbys(&node.name);
        let is_mine =
            |death: &&NodeDeath| standbys.iter().any(|standby| standby.name == death.node);
        let deaths = || evidence.metered.ends.deaths.iter().filter(is_mine);
        let name = &node.name;
        let times = [
            (&metrics::SYNC_HANDOVER_MS, replication::handover_ns(name, deaths(), takeovers)),
            (&metrics::SYNC_RETURN_MS, replication::return_ns(name, deaths(), takeovers)),
        ];
        times
            .into_iter()
            .filter_map(move |(metric, ns)| Some(TrialFigure::new(metric, name, ms(ns? as f64))))
    });
    figures.collect()
}

/// What the links let pass before the clients came.
pub(super) fn crossings(evidence: &Evidence<'_>) -> Vec<TrialFigure> {
    let figures = evidence.crossings.iter().flat_map(|crossing| {
        let carries = crossing.bytes_per_s;
        let carries = carries
            .map(|rate| TrialFigure::new(&metrics::LINK_CARRIES_BYTES, &crossing.link, rate));
        let round_trip_ms = crossing.round_trip_ms;
        [TrialFigure::new(&metrics::LINK_ROUND_TRIP_MS, &crossing.link, round_trip_ms)]
            .into_iter()
            .chain(carries)
    });
    figures.collect()
}

/// Time that servers took to recover from the death of one of their processes. Where a limit on
/// their I/O ended with the window before that, it is a lower bound.
pub(super) fn crashes(evidence: &Evidence<'_>) -> Vec<TrialFigure> {
    let figures = evidence.metered.crashes.iter().map(|crash| {
        let is_at_least = crash.until > evidence.window.close;
        let seconds = crash.recovery.as_secs_f64();
        TrialFigure::bounded(&metrics::CRASH_RECOVERY_S, &crash.node, seconds, is_at_least)
    });
    figures.collect()
}

/// Buckets that moved between the nodes of a cluster, and the distribution of its rows.
pub(super) fn sharding(evidence: &Evidence<'_>) -> Vec<TrialFigure> {
    let Some(moved) = &evidence.metered.moved else { return Vec::new() };
    let figure = |metric, value| TrialFigure::new(metric, "", value);
    let mut figures = vec![
        figure(&metrics::MOVED_BUCKETS, moved.buckets as f64),
        figure(&metrics::MOVED_ROWS, moved.rows as f64),
        figure(&metrics::MOVED_BYTES, moved.bytes as f64),
        figure(&metrics::REBALANCE_S, moved.seconds),
    ];
    if let Some((longest, p99)) = moved.fence_ms() {
        figures.push(figure(&metrics::FENCE_MAX_MS, longest));
        figures.push(figure(&metrics::FENCE_P99_MS, p99));
    }
    figures
}
