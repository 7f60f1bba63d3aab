//! Connecting, disconnecting, the window's length, and what the generator cost.

use spec::metrics;

use super::evidence::{Evidence, Figures, ms};
use super::latency::{CONNECT, latency};

pub(super) fn phases(evidence: &Evidence<'_>, figures: &mut Figures) {
    let (outcome, window) = (evidence.outcome, evidence.window);
    let connecting = &outcome.connecting;
    figures.set(&metrics::CONNECT_S, "", connecting.length_ns as f64 / 1e9);
    latency(&connecting.latency, CONNECT, "", figures);
    figures.set(&metrics::CONNECT_FAILURES, "", connecting.failures.values().sum::<u64>() as f64);
    figures.set(&metrics::CONNECT_GENERATOR_CPU_S, "", connecting.generator_cpu_ns as f64 / 1e9);
    figures.set(&metrics::DISCONNECT_S, "", outcome.disconnecting.length_ns as f64 / 1e9);
    figures.set(&metrics::WARMUP_S, "", window.open.since(window.load_began) as f64 / 1e9);
    figures.set(&metrics::WINDOW_S, "", window.seconds());
    let generator = &outcome.generator;
    figures.set(&metrics::GENERATOR_CORES, "", generator.cpu_ns as f64 / 1e9 / window.seconds());
    figures.set(&metrics::GENERATOR_BUSY_MAX, "", generator.busy_share_max);
    figures.set(&metrics::LOOP_LAG_P99_MS, "", ms(generator.lag_p99_ns as f64));
    figures.set(&metrics::LOOP_LAG_MAX_MS, "", ms(generator.lag_max_ns as f64));
    figures.set(&metrics::LOOP_LAG_SHARE, "", generator.lag_share);
    if let Some(share) = generator.run_delay_share {
        figures.set(&metrics::GENERATOR_RUN_DELAY_SHARE, "", share);
    }
}

/// Each generator process by itself, where several share the load.
pub(super) fn generators(evidence: &Evidence<'_>, figures: &mut Figures) {
    let generators = &evidence.outcome.generators;
    for (number, generator) in (1..).zip(generators).filter(|_| generators.len() > 1) {
        let scope = format!("generator {number}");
        let published = generator.published_way;
        figures.set(&metrics::TRANSACTIONS_TOTAL, &scope, published.transactions as f64);
        figures.set(
            &metrics::TPS_PUBLISHED,
            &scope,
            published.transactions as f64 / published.seconds,
        );
        let cpu_s = generator.cpu_ns as f64 / 1e9;
        figures.set(&metrics::GENERATOR_CORES, &scope, cpu_s / evidence.window.seconds());
    }
}
