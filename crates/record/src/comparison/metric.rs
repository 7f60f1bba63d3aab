//! The figures of a comparison.

use serde::{Deserialize, Serialize};

/// Metric that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparedMetric {
    /// Transactions a second while a side has its block.
    Throughput,
    /// Median latency.
    P50,
    /// 95th percentile of latency.
    P95,
    /// 99th percentile of latency.
    P99,
    /// CPU time of the server's processes for each transaction.
    Cpu,
    /// Context switches of the server's processes for each transaction.
    ContextSwitches,
    /// WAL written for each transaction.
    Wal,
    /// Blocks found in shared buffers for each transaction.
    BuffersHit,
    /// Blocks read from the operating system for each transaction.
    BuffersRead,
    /// Bytes written to temporary files for each transaction.
    TempBytes,
}

impl ComparedMetric {
    /// All, in the order of the report.
    pub const ALL: [ComparedMetric; 10] = [
        ComparedMetric::Throughput,
        ComparedMetric::P50,
        ComparedMetric::P95,
        ComparedMetric::P99,
        ComparedMetric::Cpu,
        ComparedMetric::ContextSwitches,
        ComparedMetric::Wal,
        ComparedMetric::BuffersHit,
        ComparedMetric::BuffersRead,
        ComparedMetric::TempBytes,
    ];

    /// The figures that the answer rests on, the one that it begins with first. Their intervals hold
    /// together (Bonferroni).
    pub const DECIDING: [ComparedMetric; 2] = [ComparedMetric::Throughput, ComparedMetric::P99];

    /// The same where both sides are asked for one rate, which says nothing of either.
    pub const DECIDING_AT_A_RATE: [ComparedMetric; 2] = [ComparedMetric::P50, ComparedMetric::P99];

    /// The deciding figures of a load with this rate.
    #[must_use]
    pub fn deciding(rate: Option<f64>) -> [ComparedMetric; 2] {
        if rate.is_some() { ComparedMetric::DECIDING_AT_A_RATE } else { ComparedMetric::DECIDING }
    }

    /// The figure of pairs that is meant by a metric of the catalogue.
    #[must_use]
    pub fn of(metric: &spec::Metric) -> Option<ComparedMetric> {
        ComparedMetric::ALL.into_iter().find(|one| one.catalogued() == Some(metric))
    }

    /// The metric of the catalogue that it is; none where no claim can speak of it.
    #[must_use]
    pub fn catalogued(self) -> Option<&'static spec::Metric> {
        use spec::metrics::{
            LATENCY_P50_MS, LATENCY_P95_MS, LATENCY_P99_MS, SERVER_CPU_US_PER_TX, TPS,
        };
        match self {
            ComparedMetric::Throughput => Some(&TPS),
            ComparedMetric::P50 => Some(&LATENCY_P50_MS),
            ComparedMetric::P95 => Some(&LATENCY_P95_MS),
            ComparedMetric::P99 => Some(&LATENCY_P99_MS),
            ComparedMetric::Cpu => Some(&SERVER_CPU_US_PER_TX),
            _ => None,
        }
    }

    /// The name in files: `throughput`, `p99`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ComparedMetric::Throughput => "throughput",
            ComparedMetric::P50 => "p50",
            ComparedMetric::P95 => "p95",
            ComparedMetric::P99 => "p99",
            ComparedMetric::Cpu => "cpu",
            ComparedMetric::ContextSwitches => "context_switches",
            ComparedMetric::Wal => "wal",
            ComparedMetric::BuffersHit => "buffers_hit",
            ComparedMetric::BuffersRead => "buffers_read",
            ComparedMetric::TempBytes => "temp_bytes",
        }
    }

    /// A column's head.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            ComparedMetric::Throughput => "tps",
            other => other.name(),
        }
    }

    /// In a sentence.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            ComparedMetric::Throughput => "throughput",
            ComparedMetric::P50 => "median latency",
            ComparedMetric::P95 => "95th percentile of latency",
            ComparedMetric::P99 => "99th percentile of latency",
            ComparedMetric::Cpu => "server CPU time per transaction",
            ComparedMetric::ContextSwitches => "context switches per transaction",
            ComparedMetric::Wal => "WAL per transaction",
            ComparedMetric::BuffersHit => "buffers hit per transaction",
            ComparedMetric::BuffersRead => "buffers read per transaction",
            ComparedMetric::TempBytes => "temporary files per transaction",
        }
    }

    /// The unit of a side's figure.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            ComparedMetric::Throughput => "1/s",
            ComparedMetric::P50 | ComparedMetric::P95 | ComparedMetric::P99 => "ms",
            ComparedMetric::Cpu => "µs",
            ComparedMetric::ContextSwitches => "switches",
            ComparedMetric::Wal | ComparedMetric::TempBytes => "bytes",
            ComparedMetric::BuffersHit | ComparedMetric::BuffersRead => "blocks",
        }
    }

    /// The amount for a transaction below which it counts as nothing: no transaction does so little, and a
    /// server does more by itself.
    #[must_use]
    pub fn negligible(self) -> f64 {
        match self {
            ComparedMetric::Wal => 16.0,
            ComparedMetric::BuffersHit | ComparedMetric::BuffersRead => 0.01,
            ComparedMetric::TempBytes => 1.0,
            _ => 0.0,
        }
    }

    /// True for what a server also does by itself, such as writing WAL when no client asks for it.
    #[must_use]
    pub fn has_background(self) -> bool {
        matches!(
            self,
            ComparedMetric::Wal
                | ComparedMetric::BuffersHit
                | ComparedMetric::BuffersRead
                | ComparedMetric::TempBytes
        )
    }

    /// The figure of that name in files, with `tps` for throughput.
    #[must_use]
    pub fn named(name: &str) -> Option<ComparedMetric> {
        ComparedMetric::ALL.into_iter().find(|one| one.name() == name || one.label() == name)
    }

    /// True if more is better. Of a hit there is no better or worse: a block that was not hit was read.
    #[must_use]
    pub fn higher_is_better(self) -> bool {
        self == ComparedMetric::Throughput
    }

    /// The share of transactions that are at most as slow, of a latency.
    #[must_use]
    pub fn quantile(self) -> Option<f64> {
        match self {
            ComparedMetric::P50 => Some(0.5),
            ComparedMetric::P95 => Some(0.95),
            ComparedMetric::P99 => Some(0.99),
            _ => None,
        }
    }

    /// Transactions of each side that a unit of observation needs: with fewer than 20 beyond a quantile, it
    /// is close to the maximum and jumps. Of few transactions the median is no extreme one.
    #[must_use]
    pub fn samples_min(self) -> u64 {
        match self.quantile() {
            Some(quantile) if quantile > 0.5 => (20.0 / (1.0 - quantile)).round() as u64,
            _ => 1,
        }
    }
}
