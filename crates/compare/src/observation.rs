//! What one quad of blocks has shown of both sides.

use stats::Latency;

/// What one side did in one quad: two blocks of its own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Half {
    /// Transactions that ended well.
    pub(crate) transactions: u64,
    /// Transactions that failed, retries left aside.
    pub(crate) failures: u64,
    /// Their latency.
    pub(crate) latency: Latency,
    /// CPU time of the server's processes over the whole quad, in nanoseconds; none where the
    /// server is not on this machine.
    pub(crate) cpu_ns: Option<u64>,
    /// WAL written over the whole quad, in bytes.
    pub(crate) wal_bytes: Option<u64>,
}

/// One quad: the unit of observation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quad {
    /// A, then B.
    pub(crate) sides: [Half; 2],
}

impl Quad {
    /// Adds a block that is over: one cell for each workload, which is a side.
    pub(crate) fn add(&mut self, cells: &[record::Interval]) {
        for cell in cells {
            let half = &mut self.sides[cell.workload];
            half.transactions += cell.counts.transactions;
            half.failures += cell.counts.failed();
            half.latency.merge(&cell.latency);
        }
    }
}
