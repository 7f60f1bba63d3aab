//! Observations of both sides: octet by octet, and from one restart to the next.

use std::collections::BTreeMap;

use record::Counts;
use record::comparison::{Background, Metric, OCTET_PAIRS};
use stats::Latency;

/// Observations of one side in one octet: four blocks of its own.
#[derive(Clone, Debug, Default)]
pub struct Half {
    /// Transactions that ended well.
    pub transactions: u64,
    /// The transactions of each of its workloads, which run together.
    pub by_workload: Vec<u64>,
    /// Transactions of the block that leads in, if it was this side's: of them only `used` knows.
    pub lead: u64,
    /// Transactions that failed, retries left aside.
    pub failures: u64,
    /// Those of the block that leads in.
    pub lead_failures: u64,
    /// Their latency.
    pub latency: Latency,
    /// Time during which it began transactions, in seconds.
    pub seconds: f64,
    /// Turns so far, where blocks are turns.
    pub turns: usize,
    /// Transactions and seconds of its first and last block, and of the two between.
    pub split: [(f64, f64); 2],
    /// The use of resources by its server over the whole octet, in the unit of the metric; nothing where
    /// it cannot be read.
    pub used: BTreeMap<Metric, f64>,
    /// The activity of its servers besides the load.
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

    /// Transactions a second of its own turns; transactions where turns have no length.
    pub(crate) fn rate(&self) -> f64 {
        self.transactions as f64 / if self.seconds > 0.0 { self.seconds } else { 1.0 }
    }

    /// Adds what its workload at this position did.
    pub(crate) fn add(&mut self, position: usize, counts: &Counts, latency: &Latency) {
        self.transactions += counts.transactions;
        self.failures += counts.failed();
        self.latency.merge(latency);
        let len = self.by_workload.len().max(position + 1);
        self.by_workload.resize(len, 0);
        self.by_workload[position] += counts.transactions;
    }

    /// Transactions a second of its own turns, by the workload at this position.
    pub(crate) fn rate_of(&self, position: usize) -> f64 {
        let transactions = self.by_workload.get(position).copied().unwrap_or_default();
        transactions as f64 / if self.seconds > 0.0 { self.seconds } else { 1.0 }
    }

    /// Adds a block of this many transactions to one of the two parts of its side's blocks.
    pub(crate) fn add_block(&mut self, transactions: u64, seconds: f64, part: usize) {
        let part = &mut self.split[part];
        *part = (part.0 + transactions as f64, part.1 + seconds);
        self.seconds += seconds;
    }

    fn absorb(&mut self, other: &Half) {
        self.seconds += other.seconds;
        for (part, more) in self.split.iter_mut().zip(other.split) {
            *part = (part.0 + more.0, part.1 + more.1);
        }
        self.transactions += other.transactions;
        let len = self.by_workload.len().max(other.by_workload.len());
        self.by_workload.resize(len, 0);
        for (sum, more) in self.by_workload.iter_mut().zip(&other.by_workload) {
            *sum += more;
        }
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

/// Observations from one restart to the next: the unit of observation.
#[derive(Clone, Debug, Default)]
pub struct Segment {
    /// Its first octet, its third and so on, and the others: what both have in common is lasting.
    pub parts: [Octet; 2],
    /// Number of octets, or of quads of single turns.
    pub octets: usize,
    /// Number of pairs of neighbouring blocks.
    pub pairs: usize,
    /// True if the sides had exchanged their files.
    pub is_exchanged: bool,
}

impl Segment {
    /// Adds an octet that is over, with its pairs.
    pub(crate) fn add(&mut self, octet: &Octet, pairs: usize) {
        self.pairs += pairs;
        let part = &mut self.parts[self.octets % 2];
        match self.octets {
            0 | 1 => *part = octet.clone(),
            _ => part.absorb(octet),
        }
        self.octets += 1;
    }

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

    /// Adds a block that is over: one cell for each workload, of which A has the first so many. `turn` is
    /// the side whose block it was, for so many seconds.
    pub(crate) fn add(
        &mut self,
        cells: &[record::Interval],
        of_a: usize,
        turn: usize,
        seconds: f64,
    ) {
        let own = cells.iter().filter(|cell| side_of(cell.workload, of_a).0 == turn);
        let transactions = own.map(|cell| cell.counts.transactions).sum();
        let half = &mut self.sides[turn];
        let number = (half.seconds / seconds).round() as usize;
        let is_inner = number != 0 && number != OCTET_PAIRS - 1;
        half.add_block(transactions, seconds, usize::from(is_inner));
        for cell in cells {
            let (side, position) = side_of(cell.workload, of_a);
            self.sides[side].add(position, &cell.counts, &cell.latency);
        }
    }

    /// Adds the block that leads in, of which only the transactions and failures count.
    pub(crate) fn lead_in(&mut self, cells: &[record::Interval], of_a: usize) {
        for cell in cells {
            let half = &mut self.sides[side_of(cell.workload, of_a).0];
            half.lead += cell.counts.transactions;
            half.lead_failures += cell.counts.failed();
        }
    }

    /// The activity of each side's servers besides the load.
    pub(crate) fn background(&self) -> [Background; 2] {
        self.sides.each_ref().map(|half| half.background)
    }

    /// Throughput of B ÷ A; none where A did nothing.
    pub(crate) fn ratio(&self) -> Option<f64> {
        let [a, b] = &self.sides;
        (a.transactions > 0).then(|| b.rate() / a.rate())
    }
}

/// The side of a workload, and its position among those of its side, where A has the first so many.
pub(crate) fn side_of(workload: usize, of_a: usize) -> (usize, usize) {
    match workload.checked_sub(of_a) {
        None => (0, workload),
        Some(position) => (1, position),
    }
}

/// Transactions of the side that has done fewer.
pub(crate) fn transactions_min(octets: &[Octet]) -> u64 {
    let of =
        |side: usize| -> u64 { octets.iter().map(|octet| octet.sides[side].transactions).sum() };
    of(0).min(of(1))
}

/// The activity of each side's servers besides the load.
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
