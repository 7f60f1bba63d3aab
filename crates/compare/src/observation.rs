//! What one octet of blocks has shown of both sides.

use std::collections::BTreeMap;

use record::comparison::Metric;
use stats::Latency;

/// What one side did in one octet: four blocks of its own.
#[derive(Clone, Debug, Default)]
pub struct Half {
    /// Transactions that ended well.
    pub transactions: u64,
    /// Transactions that failed, retries left aside.
    pub failures: u64,
    /// Their latency.
    pub latency: Latency,
    /// What its server used over the whole octet, in the unit of the metric; nothing where it cannot
    /// be read.
    pub used: BTreeMap<Metric, f64>,
}

/// One octet: the unit of observation.
#[derive(Clone, Debug, Default)]
pub struct Octet {
    /// A, then B.
    pub sides: [Half; 2],
}

impl Octet {
    /// Adds a block that is over: one cell for each workload, which is a side.
    pub(crate) fn add(&mut self, cells: &[record::Interval]) {
        for cell in cells {
            let half = &mut self.sides[cell.workload];
            half.transactions += cell.counts.transactions;
            half.failures += cell.counts.failed();
            half.latency.merge(&cell.latency);
        }
    }

    /// Throughput of B ÷ A; none where A did nothing.
    pub(crate) fn ratio(&self) -> Option<f64> {
        let [a, b] = &self.sides;
        (a.transactions > 0).then(|| b.transactions as f64 / a.transactions as f64)
    }
}
