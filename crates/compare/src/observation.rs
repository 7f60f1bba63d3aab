//! What blocks have shown of both sides: octet by octet, and from one restart to the next.

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
    /// Those of the block that leads in.
    pub lead_failures: u64,
    /// Their latency.
    pub latency: Latency,
    /// What its server used over the whole octet, in the unit of the metric; nothing where it cannot
    /// be read.
    pub used: BTreeMap<Metric, f64>,
    /// What its servers did besides the load.
    pub background: Background,
}

impl Half {
    /// Observed transactions, those that failed included.
    pub(crate) fn all(&self) -> u64 {
        self.latency.count() + self.failures
    }

    /// A quantile of latency. What failed would have taken longer than anything that ended well, as
    /// far as a client can tell: none where the quantile lies among those.
    pub(crate) fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        let share = quantile * self.all() as f64 / self.latency.count() as f64;
        (share <= 1.0).then(|| self.latency.quantile_ns(share)).flatten()
    }

    fn absorb(&mut self, other: &Half) {
        self.transactions += other.transactions;
        self.lead += other.lead;
        self.failures += other.failures;
        self.lead_failures += other.lead_failures;
        self.latency.merge(&other.latency);
        // What could not be read in a part is not known of the whole.
        self.used.retain(|metric, _| other.used.contains_key(metric));
        for (metric, used) in &mut self.used {
            *used += other.used.get(metric).copied().unwrap_or_default();
        }
        self.background = Background::of([self.background, other.background]);
    }
}

/// One octet of blocks, or several.
#[derive(Clone, Debug, Default)]
pub struct Octet {
    /// A, then B.
    pub sides: [Half; 2],
}

/// What was measured from one restart to the next: the unit of observation.
#[derive(Clone, Debug, Default)]
pub struct Segment {
    /// Its first octet, its third and so on, and the others: what both have in common is lasting.
    pub parts: [Octet; 2],
    /// How many octets it has.
    pub octets: usize,
    /// Whether the sides had exchanged their files.
    pub is_exchanged: bool,
}

impl Segment {
    /// Adds an octet that is over.
    pub(crate) fn add(&mut self, octet: &Octet) {
        let part = &mut self.parts[self.octets % 2];
        match self.octets {
            0 | 1 => *part = octet.clone(),
            _ => part.absorb(octet),
        }
        self.octets += 1;
    }

    /// All of it.
    pub(crate) fn whole(&self) -> Octet {
        let mut whole = self.parts[0].clone();
        if self.octets > 1 {
            whole.absorb(&self.parts[1]);
        }
        whole
    }
}

impl Octet {
    /// Adds what others have shown.
    pub(crate) fn absorb(&mut self, other: &Octet) {
        for (half, other) in self.sides.iter_mut().zip(&other.sides) {
            half.absorb(other);
        }
    }

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
            half.lead_failures += cell.counts.failed();
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

/// The share of failed transactions of A and of B.
pub(crate) fn failed_shares(octets: &[Octet]) -> [f64; 2] {
    [0, 1].map(|side| {
        let halves = || octets.iter().map(|octet| &octet.sides[side]);
        let failures: u64 = halves().map(|half| half.failures + half.lead_failures).sum();
        let all = halves().map(|half| half.transactions + half.lead).sum::<u64>() + failures;
        if all == 0 { 0.0 } else { failures as f64 / all as f64 }
    })
}
