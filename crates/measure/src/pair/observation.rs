//! Observations of both sides: octet by octet, and from one restart to the next.

use std::collections::BTreeMap;

use record::comparison::{
    ComparedMetric, OCTET_PAIRS, RareEvents, SideBackgroundWork, SideStandstills,
};
use record::{BlockCycles, TransactionCounts};
use stats::LatencyHistogram;
use stats::failed_share::TrialCluster;

use crate::pair::pilot::BlockShape;

/// Observations of one side in one octet: four blocks of its own.
#[derive(Clone, Debug, Default)]
pub struct SideObservation {
    /// Transactions that ended well.
    pub transactions: u64,
    /// What each of its workloads did, which run together.
    pub by_workload: Vec<WorkloadObservation>,
    /// Transactions of the block that leads in, if it was this side's: of them only `used` knows.
    pub lead: u64,
    /// Transactions that failed, retries left aside.
    pub failures: u64,
    /// Those of the block that leads in.
    pub lead_failures: u64,
    /// Their latency.
    pub latency: LatencyHistogram,
    /// Time during which it began transactions, in seconds.
    pub seconds: f64,
    /// Blocks so far.
    pub blocks: usize,
    /// Transactions and seconds of its first and last block, and of the two between.
    pub split: [(f64, f64); 2],
    /// The use of resources by its server over the whole octet, in the unit of the metric; nothing where
    /// it cannot be read.
    pub used: BTreeMap<ComparedMetric, f64>,
    /// The activity of its servers besides the load.
    pub background: SideBackgroundWork,
    /// The standstills, without the seconds in which it worked.
    pub standstills: SideStandstills,
}

/// What one workload of a side did.
#[derive(Clone, Copy, Debug, Default)]
pub struct WorkloadObservation {
    /// Transactions that ended well.
    pub transactions: u64,
    /// The clients; 0 where its cycles are not known.
    pub clients: u32,
    /// Cycles of its clients, in a closed loop.
    pub cycles: BlockCycles,
}

impl WorkloadObservation {
    /// Transactions a second of its clients while they are busy: their number divided by the mean time from
    /// one end of a transaction to the next of the same client. None where no client had two transactions in
    /// a block.
    ///
    /// All clients count, however many of them began in a block: the wait of one that began in none is in the
    /// time of its cycle.
    fn speed(&self) -> Option<f64> {
        self.speed_of(self.cycles.ended, self.cycles.ns)
    }

    /// The same without the cycles in which a server may have stood still.
    fn working_speed(&self) -> Option<f64> {
        let BlockCycles { ended, ns, long, long_ns, .. } = self.cycles;
        self.speed_of(ended.saturating_sub(long), ns.saturating_sub(long_ns))
    }

    fn speed_of(&self, ended: u64, ns: u64) -> Option<f64> {
        (ended > 0 && ns > 0).then(|| f64::from(self.clients) * ended as f64 / (ns as f64 / 1e9))
    }

    fn add(&mut self, other: &WorkloadObservation) {
        self.transactions += other.transactions;
        self.clients = self.clients.max(other.clients);
        self.cycles.add(&other.cycles);
    }
}

impl SideObservation {
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
        let (transactions, seconds) = self.done();
        transactions / seconds
    }

    /// Transactions, and the seconds that it took for them: of the cycles of its clients, where they have
    /// any, and else of its turns.
    pub(crate) fn done(&self) -> (f64, f64) {
        self.done_at(WorkloadObservation::speed)
    }

    /// The same without the time of standstills.
    pub(crate) fn worked(&self) -> (f64, f64) {
        match self.standstills.seen {
            0 => self.done(),
            _ => self.done_at(WorkloadObservation::working_speed),
        }
    }

    fn done_at(&self, speed: fn(&WorkloadObservation) -> Option<f64>) -> (f64, f64) {
        let speeds = self.by_workload.iter().map(speed);
        let ended: u64 = self.by_workload.iter().map(|part| part.cycles.ended).sum();
        match speeds.sum::<Option<f64>>() {
            Some(speed) if speed > 0.0 => (ended as f64, ended as f64 / speed),
            _ => (self.transactions as f64, if self.seconds > 0.0 { self.seconds } else { 1.0 }),
        }
    }

    /// Adds what its workload at this position did. `clients` and `cycles` are those of blocks.
    pub(crate) fn add(
        &mut self,
        position: usize,
        counts: &TransactionCounts,
        latency: &LatencyHistogram,
        (clients, cycles): (u32, BlockCycles),
    ) {
        self.transactions += counts.transactions;
        self.failures += counts.failed();
        self.latency.merge(latency);
        let len = self.by_workload.len().max(position + 1);
        self.by_workload.resize(len, WorkloadObservation::default());
        let transactions = counts.transactions;
        self.by_workload[position].add(&WorkloadObservation { transactions, clients, cycles });
    }

    /// Transactions a second of its own turns, by the workload at this position.
    pub(crate) fn rate_of(&self, position: usize) -> f64 {
        // A workload of which no block was added has done nothing.
        let part = self.by_workload.get(position).copied().unwrap_or_default();
        let of_turns =
            part.transactions as f64 / if self.seconds > 0.0 { self.seconds } else { 1.0 };
        part.speed().unwrap_or(of_turns)
    }

    /// Adds a block of this many transactions to one of the two parts of its side's blocks.
    pub(crate) fn add_block(&mut self, transactions: u64, seconds: f64, part: usize) {
        let part = &mut self.split[part];
        *part = (part.0 + transactions as f64, part.1 + seconds);
        self.seconds += seconds;
        self.blocks += 1;
    }

    fn absorb(&mut self, other: &SideObservation) {
        self.seconds += other.seconds;
        self.blocks += other.blocks;
        for (part, more) in self.split.iter_mut().zip(other.split) {
            *part = (part.0 + more.0, part.1 + more.1);
        }
        self.transactions += other.transactions;
        let len = self.by_workload.len().max(other.by_workload.len());
        self.by_workload.resize(len, WorkloadObservation::default());
        for (sum, more) in self.by_workload.iter_mut().zip(&other.by_workload) {
            sum.add(more);
        }
        self.lead += other.lead;
        self.failures += other.failures;
        self.lead_failures += other.lead_failures;
        self.latency.merge(&other.latency);
        // What could not be read in a part is not known of the whole.
        self.used.retain(|metric, _| other.used.contains_key(metric));
        for (metric, used) in &mut self.used {
            *used += other.used.get(metric).expect("what the other part lacks was left out");
        }
        self.background = SideBackgroundWork::of([self.background, other.background]);
        self.standstills.add(&other.standstills);
    }

    /// Counts a standstill if half of these clients or more waited for long, at the same time: so many transactions for
    /// so many nanoseconds together. `cycles` are of those that worked when it began.
    fn note_standstill(
        &mut self,
        clients: u64,
        cycles: BlockCycles,
        (waited, waited_ns): (u64, u64),
    ) {
        let are_most = |waited: u64| waited > 0 && waited * 2 >= clients;
        let seconds = |ns: u64, count: u64| ns as f64 / 1e9 / count.max(1) as f64;
        if !are_most(waited.max(cycles.long)) {
            return;
        }
        let longest_s = seconds(waited_ns, waited).max(seconds(cycles.long_ns, cycles.long));
        let mut seen = SideStandstills { seen: 1, longest_s, ..SideStandstills::default() };
        if are_most(cycles.long) {
            (seen.began, seen.seconds) = (1, seconds(cycles.long_ns, clients));
        }
        self.standstills.add(&seen);
    }
}

/// One octet of blocks, or several.
#[derive(Clone, Debug, Default)]
pub struct BlockOctet {
    /// A, then B.
    pub sides: [SideObservation; 2],
}

/// Observations from one restart to the next: the unit of observation.
#[derive(Clone, Debug, Default)]
pub struct RestartSegment {
    /// The first octet, its third and so on, and the others: what both have in common is lasting.
    pub parts: [BlockOctet; 2],
    /// Number of octets, or of quads of single turns.
    pub octets: usize,
    /// Number of octets that were planned.
    pub planned: usize,
    /// Transactions and seconds of A and of B in the first half of the planned octets and in the second; one in the middle
    /// is in neither.
    pub halves: [[(f64, f64); 2]; 2],
    /// Number of pairs of neighbouring blocks.
    pub pairs: usize,
    /// True if the sides had exchanged their files.
    pub is_exchanged: bool,
}

impl RestartSegment {
    /// Adds an octet that is over, with its pairs.
    pub(crate) fn add(&mut self, octet: &BlockOctet, pairs: usize) {
        self.pairs += pairs;
        let half = self.planned / 2;
        let is_in = [self.octets < half, self.octets >= self.planned - half];
        for (sums, _) in self.halves.iter_mut().zip(is_in).filter(|(_, is_in)| *is_in) {
            for (sum, side) in sums.iter_mut().zip(&octet.sides) {
                let (transactions, seconds) = side.worked();
                *sum = (sum.0 + transactions, sum.1 + seconds);
            }
        }
        let part = &mut self.parts[self.octets % 2];
        match self.octets {
            0 | 1 => *part = octet.clone(),
            _ => part.absorb(octet),
        }
        self.octets += 1;
    }

    /// Adds the time of transactions that stood still when the segment ended, of the workload at this position
    /// of a side: no end tells for how long. `ages` are those of all that had not ended; the ones that
    /// began within the last block are left out. Of the time, only the observed turns of their side count.
    pub(crate) fn add_open(
        &mut self,
        (side, position): (usize, usize),
        ages: &LatencyHistogram,
        shape: BlockShape,
    ) {
        // Without an octet nothing was observed.
        let Some(last) = self.octets.checked_sub(1) else { return };
        let workloads = &mut self.parts[last % 2].sides[side].by_workload;
        // Without a block of it nothing was observed of this workload.
        let Some(part) = workloads.get_mut(position) else { return };
        let of_its_turns = OCTET_PAIRS as f64 * shape.active_s() / shape.octet_s();
        let still_ns = ages.sum_from_ns(shape.length_ms * 1_000_000 + 1);
        let of_its_turns_ns = (still_ns as f64 * of_its_turns) as u64;
        part.cycles.ns += of_its_turns_ns;
        let waited = ages.count_from(BlockCycles::LONG_NS);
        let clients = u64::from(part.clients);
        if waited > 0 && waited * 2 >= clients {
            part.cycles.long_ns += of_its_turns_ns;
            let half = &mut self.parts[last % 2].sides[side];
            half.standstills.add(&SideStandstills {
                began: 1,
                seconds: of_its_turns_ns as f64 / 1e9 / clients as f64,
                seen: 1,
                longest_s: ages.sum_from_ns(BlockCycles::LONG_NS) as f64 / 1e9 / waited as f64,
                worked_s: 0.0,
            });
        }
    }

    pub(crate) fn whole(&self) -> BlockOctet {
        let mut whole = self.parts[0].clone();
        if self.octets > 1 {
            whole.absorb(&self.parts[1]);
        }
        whole
    }
}

impl BlockOctet {
    /// Adds what others have shown.
    pub(crate) fn absorb(&mut self, other: &BlockOctet) {
        for (half, other) in self.sides.iter_mut().zip(&other.sides) {
            half.absorb(other);
        }
    }

    /// Adds a block that is over: one cell for each workload, first those of A. `clients` has how many each
    /// workload of A and of B has. `turn` is the side whose block it was, for so many seconds.
    pub(crate) fn add(
        &mut self,
        cells: &[record::LoadInterval],
        clients: &[Vec<u32>; 2],
        turn: usize,
        seconds: f64,
    ) {
        let of_a = clients[0].len();
        let own = cells.iter().filter(|cell| side_of(cell.workload, of_a).0 == turn);
        let transactions = own.map(|cell| cell.counts.transactions).sum();
        let half = &mut self.sides[turn];
        let is_inner = half.blocks != 0 && half.blocks != OCTET_PAIRS - 1;
        half.add_block(transactions, seconds, usize::from(is_inner));
        for cell in cells {
            let (side, position) = side_of(cell.workload, of_a);
            let cycles = (clients[side][position], cell.cycles);
            self.sides[side].add(position, &cell.counts, &cell.latency, cycles);
        }
        self.note_standstills(cells, clients);
    }

    /// Counts a standstill of a side that ended in this block.
    fn note_standstills(&mut self, cells: &[record::LoadInterval], clients: &[Vec<u32>; 2]) {
        let of_a = clients[0].len();
        for (side, clients) in clients.iter().enumerate() {
            let (mut cycles, mut waited) = (BlockCycles::default(), (0, 0));
            for cell in cells.iter().filter(|cell| side_of(cell.workload, of_a).0 == side) {
                cycles.add(&cell.cycles);
                waited.0 += cell.latency.count_from(BlockCycles::LONG_NS);
                waited.1 += cell.latency.sum_from_ns(BlockCycles::LONG_NS);
            }
            let clients = clients.iter().map(|clients| u64::from(*clients)).sum();
            self.sides[side].note_standstill(clients, cycles, waited);
        }
    }

    /// Adds the block that leads in, of which only the transactions and failures count.
    pub(crate) fn lead_in(&mut self, cells: &[record::LoadInterval], of_a: usize) {
        for cell in cells {
            let half = &mut self.sides[side_of(cell.workload, of_a).0];
            half.lead += cell.counts.transactions;
            half.lead_failures += cell.counts.failed();
        }
    }

    /// The activity of each side's servers besides the load.
    pub(crate) fn background(&self) -> [SideBackgroundWork; 2] {
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
pub(crate) fn transactions_min(octets: &[BlockOctet]) -> u64 {
    let of =
        |side: usize| -> u64 { octets.iter().map(|octet| octet.sides[side].transactions).sum() };
    of(0).min(of(1))
}

/// The rare events of these segments, of servers that were restarted before each, or never.
pub(crate) fn rare(segments: &[BlockOctet], are_restarted: bool, oldest_s: f64) -> RareEvents {
    let of = |side: usize| {
        let mut all = SideStandstills::default();
        for segment in segments {
            let half = &segment.sides[side];
            all.add(&half.standstills);
            all.worked_s += half.worked().1;
        }
        all
    };
    let standstills = [of(0), of(1)];
    if !are_restarted {
        return RareEvents { standstills, oldest_s, ..RareEvents::default() };
    }
    let unlike = unlike(segments);
    let unlike_by = unlike.iter().copied().fold(0.0, f64::max);
    let restarts = segments.len();
    RareEvents { standstills, restarts, unlike: unlike.len(), unlike_by, oldest_s }
}

/// By how much the segments that are unlike the others are so, as shares.
fn unlike(segments: &[BlockOctet]) -> Vec<f64> {
    let log = |segment: &BlockOctet| {
        let [a, b] = segment.sides.each_ref().map(|half| half.worked());
        ((b.0 / b.1) / (a.0 / a.1)).ln()
    };
    let logs: Vec<f64> = segments.iter().map(log).filter(|log| log.is_finite()).collect();
    stats::sample::unlike(&logs).into_iter().map(|(_, apart)| -(-apart).exp_m1()).collect()
}

/// The activity of each side's servers besides the load.
pub(crate) fn background(octets: &[BlockOctet]) -> [SideBackgroundWork; 2] {
    [0, 1]
        .map(|side| SideBackgroundWork::of(octets.iter().map(|octet| octet.sides[side].background)))
}

/// The failures of A and of B among the transactions of each segment.
pub(crate) fn failures(segments: &[BlockOctet]) -> [Vec<TrialCluster>; 2] {
    [0, 1].map(|side| {
        let of = |segment: &BlockOctet| {
            let half = &segment.sides[side];
            let failures = half.failures + half.lead_failures;
            TrialCluster { failures, trials: half.transactions + half.lead + failures }
        };
        segments.iter().map(of).collect()
    })
}

/// The share of failures in all of them; 0 of none.
pub(crate) fn share(clusters: &[TrialCluster]) -> f64 {
    let failures: u64 = clusters.iter().map(|one| one.failures).sum();
    let trials: u64 = clusters.iter().map(|one| one.trials).sum();
    if trials == 0 { 0.0 } else { failures as f64 / trials as f64 }
}

#[cfg(test)]
mod simulation;

#[cfg(test)]
mod tests {
    use record::{LoadInterval, TransactionCounts};

    use super::*;

    /// What clients did in a block: all began once with it, and took as long from one end to the next.
    fn block(clients: u64, ended: u64, cycle_ms: u64) -> LoadInterval {
        LoadInterval {
            counts: TransactionCounts { transactions: ended, ..TransactionCounts::default() },
            cycles: BlockCycles {
                first: clients,
                ended: ended - clients,
                ns: (ended - clients) * cycle_ms * 1_000_000,
                ..BlockCycles::default()
            },
            ..LoadInterval::default()
        }
    }

    #[test]
    fn a_rate_does_not_depend_on_what_begins_with_the_block() {
        let check = |clients: u64, ended: u64, cycle_ms: u64, expected: f64| {
            let mut octet = BlockOctet::default();
            for _ in 0..4 {
                octet.add(&[block(clients, ended, cycle_ms)], &[vec![10], vec![]], 0, 0.5);
            }
            let rate = octet.sides[0].rate();
            assert!((rate - expected).abs() < 1e-6, "{clients} {ended} {cycle_ms}: {rate}");
        };
        // One after the other, 5 ms each: 100 in 500 ms, and the 10 that have begun by then.
        check(10, 110, 50, 200.0);
        // All at once, 50 ms each: 10 of each client.
        check(10, 100, 50, 200.0);
        // A client whose first transaction fills the block says nothing of its next one.
        check(10, 10, 50, 20.0);
    }

    #[test]
    fn workloads_that_run_together_have_a_rate_each() {
        let mut octet = BlockOctet::default();
        let second = LoadInterval { workload: 1, ..block(4, 24, 100) };
        octet.add(&[block(10, 110, 50), second], &[vec![10, 4], vec![]], 0, 0.5);
        let half = &octet.sides[0];
        let seen = [half.rate_of(0), half.rate_of(1), half.rate()];
        for (seen, expected) in seen.into_iter().zip([200.0, 40.0, 240.0]) {
            assert!((seen - expected).abs() < 1e-6, "{seen} {expected}");
        }
    }
}
