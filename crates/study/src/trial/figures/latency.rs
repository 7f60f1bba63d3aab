//! The figures of a distribution of latencies.

use check::TrialFigure;
use spec::{Metric, metrics};
use stats::LatencyHistogram;

use super::evidence::ms;

/// The metrics of one kind of latency and how each is taken.
pub(super) type Names = &'static [(&'static Metric, Take)];

#[derive(Clone, Copy)]
pub(super) enum Take {
    Mean,
    Stddev,
    Quantile(f64),
    Max,
}

pub(super) const LATENCY: Names =
    &[(&metrics::LATENCY_MEAN_MS, Take::Mean), (&metrics::LATENCY_STDDEV_MS, Take::Stddev)];
pub(super) const PERCENTILES: &[(&Metric, f64)] = &[
    (&metrics::LATENCY_P50_MS, 0.5),
    (&metrics::LATENCY_P90_MS, 0.9),
    (&metrics::LATENCY_P95_MS, 0.95),
    (&metrics::LATENCY_P99_MS, 0.99),
    (&metrics::LATENCY_P999_MS, 0.999),
];
pub(super) const SERVICE: Names = &[
    (&metrics::SERVICE_MEAN_MS, Take::Mean),
    (&metrics::SERVICE_STDDEV_MS, Take::Stddev),
    (&metrics::SERVICE_P50_MS, Take::Quantile(0.5)),
    (&metrics::SERVICE_P90_MS, Take::Quantile(0.9)),
    (&metrics::SERVICE_P95_MS, Take::Quantile(0.95)),
    (&metrics::SERVICE_P99_MS, Take::Quantile(0.99)),
    (&metrics::SERVICE_P999_MS, Take::Quantile(0.999)),
    (&metrics::SERVICE_MAX_MS, Take::Max),
];
pub(super) const LAG: Names = &[
    (&metrics::LAG_MEAN_MS, Take::Mean),
    (&metrics::LAG_P99_MS, Take::Quantile(0.99)),
    (&metrics::LAG_MAX_MS, Take::Max),
];
pub(super) const STATEMENT: Names = &[
    (&metrics::STATEMENT_MEAN_MS, Take::Mean),
    (&metrics::STATEMENT_STDDEV_MS, Take::Stddev),
    (&metrics::STATEMENT_P50_MS, Take::Quantile(0.5)),
    (&metrics::STATEMENT_P99_MS, Take::Quantile(0.99)),
];
pub(super) const CONNECT: Names =
    &[(&metrics::CONNECT_MEAN_MS, Take::Mean), (&metrics::CONNECT_P99_MS, Take::Quantile(0.99))];

/// The figures of a distribution; none of an empty one.
pub(super) fn latency(latency: &LatencyHistogram, names: Names, scope: &str) -> Vec<TrialFigure> {
    let figures = names.iter().filter_map(|(metric, take)| {
        let ns = match take {
            Take::Mean => latency.mean_ns(),
            Take::Stddev => latency.stddev_ns(),
            Take::Quantile(quantile) => latency.quantile_ns(*quantile).map(|ns| ns as f64),
            Take::Max => latency.max_ns().map(|ns| ns as f64),
        };
        Some(TrialFigure::new(metric, scope, ms(ns?)))
    });
    figures.collect()
}
