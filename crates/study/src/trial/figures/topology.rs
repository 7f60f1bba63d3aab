//! Figures of the parts of a topology: standbys that took places, buckets that moved.

use spec::metrics;

use super::evidence::{Evidence, Figures, ms};
use crate::trial::death::Death;
use crate::trial::replication;

/// Time until another standby was in the place of one that had gone.
pub(super) fn handovers(evidence: &Evidence<'_>, figures: &mut Figures) {
    let takeovers = &evidence.readings.takeovers;
    for node in &evidence.point.topology.nodes {
        let standbys = evidence.point.topology.standbys(&node.name);
        let is_mine = |death: &&Death| standbys.iter().any(|standby| standby.name == death.node);
        let deaths = || evidence.metered.deaths.iter().filter(is_mine);
        if let Some(ns) = replication::handover_ns(&node.name, deaths(), takeovers) {
            figures.set(&metrics::SYNC_HANDOVER_MS, &node.name, ms(ns as f64));
        }
        if let Some(ns) = replication::return_ns(&node.name, deaths(), takeovers) {
            figures.set(&metrics::SYNC_RETURN_MS, &node.name, ms(ns as f64));
        }
    }
}

/// What the links let pass before the clients came.
pub(super) fn crossings(evidence: &Evidence<'_>, figures: &mut Figures) {
    for crossing in evidence.crossings {
        figures.set(&metrics::LINK_ROUND_TRIP_MS, &crossing.link, crossing.round_trip_ms);
        let bytes_per_s = crossing.bytes_per_s.unwrap_or(f64::NAN);
        figures.set(&metrics::LINK_CARRIES_BYTES, &crossing.link, bytes_per_s);
    }
}

/// Time that servers took to recover from the death of one of their processes. Where a limit on
/// their I/O ended with the window before that, it is a lower bound.
pub(super) fn crashes(evidence: &Evidence<'_>, figures: &mut Figures) {
    for crash in &evidence.metered.crashes {
        let is_at_least = crash.until > evidence.window.close;
        let seconds = crash.recovery.as_secs_f64();
        figures.set_bounded(&metrics::CRASH_RECOVERY_S, &crash.node, seconds, is_at_least);
    }
}

/// Buckets that moved between the nodes of a cluster, and the distribution of its rows.
pub(super) fn sharding(evidence: &Evidence<'_>, figures: &mut Figures) {
    if let Some(moved) = &evidence.metered.moved {
        figures.set(&metrics::MOVED_BUCKETS, "", moved.buckets as f64);
        figures.set(&metrics::MOVED_ROWS, "", moved.rows as f64);
        figures.set(&metrics::MOVED_BYTES, "", moved.bytes as f64);
        figures.set(&metrics::REBALANCE_S, "", moved.seconds);
        if let Some((longest, p99)) = moved.fence_ms() {
            figures.set(&metrics::FENCE_MAX_MS, "", longest);
            figures.set(&metrics::FENCE_P99_MS, "", p99);
        }
    }
}
