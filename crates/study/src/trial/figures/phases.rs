//! Connecting, disconnecting, the window's length, and what the generator cost.

use check::TrialFigure;
use spec::metrics;

use super::evidence::{Evidence, ms};
use super::latency::{CONNECT, latency};

pub(super) fn phases(evidence: &Evidence<'_>) -> Vec<TrialFigure> {
    let (outcome, window) = (evidence.outcome, evidence.window);
    let (connecting, generator) = (&outcome.connecting, &outcome.generator);
    let figure = |metric, value| TrialFigure::new(metric, "", value);
    let mut figures = vec![
        figure(&metrics::CONNECT_S, connecting.length_ns as f64 / 1e9),
        figure(&metrics::CONNECT_FAILURES, connecting.failures.values().sum::<u64>() as f64),
        figure(&metrics::CONNECT_GENERATOR_CPU_S, connecting.generator_cpu_ns as f64 / 1e9),
        figure(&metrics::DISCONNECT_S, outcome.disconnecting.length_ns as f64 / 1e9),
        figure(&metrics::WARMUP_S, window.open.since(window.load_began) as f64 / 1e9),
        figure(&metrics::WINDOW_S, window.seconds()),
        figure(&metrics::GENERATOR_CORES, generator.cpu_ns as f64 / 1e9 / window.seconds()),
        figure(&metrics::GENERATOR_BUSY_MAX, generator.busy_share_max),
        figure(&metrics::LOOP_LAG_P99_MS, ms(generator.lag_p99_ns as f64)),
        figure(&metrics::LOOP_LAG_MAX_MS, ms(generator.lag_max_ns as f64)),
        figure(&metrics::LOOP_LAG_SHARE, generator.lag_share),
    ];
    figures.extend(latency(&connecting.latency, CONNECT, ""));
    let share = generator.run_delay_share;
    figures.extend(share.map(|share| figure(&metrics::GENERATOR_RUN_DELAY_SHARE, share)));
    figures
}

/// Each generator process by itself, where several share the load.
pub(super) fn generators(evidence: &Evidence<'_>) -> Vec<TrialFigure> {
    let generators = &evidence.outcome.generators;
    let several = (1..).zip(generators).filter(|_| generators.len() > 1);
    let figures = several.flat_map(|(number, generator)| {
        let scope = format!("generator {number}");
        let published = generator.published_way;
        let transactions = published.transactions as f64;
        let cores = generator.cpu_ns as f64 / 1e9 / evidence.window.seconds();
        [
            TrialFigure::new(&metrics::TRANSACTIONS_TOTAL, &scope, transactions),
            TrialFigure::new(&metrics::TPS_PUBLISHED, &scope, transactions / published.seconds),
            TrialFigure::new(&metrics::GENERATOR_CORES, &scope, cores),
        ]
    });
    figures.collect()
}
