//! What one octet of blocks has shown of both sides.

use std::collections::BTreeMap;

use record::comparison::{Background, Metric};
use stats::Latency;

/// What one side did in one octet: four blocks of its own.
#[derive(Clone, Debug, Default)]
pub struct Half {
    /// Transactions that ended well.
    pub transactions: u64,
    /// Transactions of the block that leads in, if it was this side's: of them only `used` knows.
    pub lead: u64,
    /// Transactions that failed, retries left aside.
    pub failures: u64,
    /// Their latency.
    pub latency: Latency,
    /// What its server used over the whole octet, in the unit of the metric; nothing where it cannot
    /// be read.
    pub used: BTreeMap<Metric, f64>,
    /// What its servers did besides the load.
    pub background: Background,
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

    /// Adds the block that leads in, of which only the transactions and failures count.
    pub(crate) fn lead_in(&mut self, cells: &[record::Interval]) {
        for cell in cells {
            let half = &mut self.sides[cell.workload];
            half.lead += cell.counts.transactions;
            half.failures += cell.counts.failed();
        }
    }

    /// What the servers of each side did besides the load.
    pub(crate) fn background(&self) -> [Background; 2] {
        self.sides.each_ref().map(|half| half.background)
    }

    /// Throughput of B ÷ A; none where A did nothing.
    pub(crate) fn ratio(&self) -> Option<f64> {
        let [a, b] = &self.sides;
        (a.transactions > 0).then(|| b.transactions as f64 / a.transactions as f64)
    }
}

/// Transactions of the side that has done fewer.
pub(crate) fn transactions_min(octets: &[Octet]) -> u64 {
    let of =
        |side: usize| -> u64 { octets.iter().map(|octet| octet.sides[side].transactions).sum() };
    of(0).min(of(1))
}

/// What the servers of each side did besides the load.
pub(crate) fn background(octets: &[Octet]) -> [Background; 2] {
    [0, 1].map(|side| Background::of(octets.iter().map(|octet| octet.sides[side].background)))
}

/// The larger share of failed transactions of both sides.
pub(crate) fn failed_share_max(octets: &[Octet]) -> f64 {
    let share = |side: usize| {
        let halves = || octets.iter().map(|octet| &octet.sides[side]);
        let failures: u64 = halves().map(|half| half.failures).sum();
        let all = halves().map(|half| half.transactions + half.lead).sum::<u64>() + failures;
        if all == 0 { 0.0 } else { failures as f64 / all as f64 }
    };
    share(0).max(share(1))
}
