//! Judges a history.

use std::collections::BTreeMap;

use crate::cycles::{Cycles, Dependencies};
use crate::doubt::{CLOCK_BOUND_MAX_NS, LevelDoubt};
use crate::evidence::{Evidence, ObservedWrites};
use crate::fate::Fates;
use crate::index::Index;
use crate::lists::ListJudge;
use crate::proof::{self, KnownOrder, ProvedLevels};
use crate::registers::RegisterJudge;
use crate::staleness::{self, ReadStaleness};
use crate::witness::{self, AnomalyWitness};
use crate::{
    CycleKind, CycleOrder, FaultKind, History, HistoryFault, IsolationAnomaly, IsolationLevel,
    ObjectKind, Operation, TransactionOutcome, orders, sessions,
};

/// Findings about a history.
#[derive(Clone, Debug, Default)]
pub struct HistoryFindings {
    /// The anomalies, and how often each was found.
    pub anomalies: BTreeMap<IsolationAnomaly, u64>,
    /// The smallest witnesses of each.
    pub witnesses: Vec<AnomalyWitness>,
    /// Searches were given up: there may be more than was counted, and smaller witnesses.
    pub is_partial: bool,
    /// Faults of the history, and what is not judged because of them.
    pub faults: Vec<HistoryFault>,
    /// Ages of the reads of each workload, in the order of [`History::groups`]. Empty where it
    /// cannot be told.
    pub staleness: Vec<ReadStaleness>,
    /// Transactions by their outcomes.
    pub counted: OutcomeCounts,
    /// Writes, and how many of them others read.
    pub observed: ObservedWrites,
    /// Keys the order of whose versions nothing tells.
    unordered_keys: usize,
    /// The levels that were shown with a guess of that order.
    proved: ProvedLevels,
    /// Reads of values that nobody is known to have written, which were not judged.
    unexplained: u64,
    /// Transactions whose moments have a bound of more than [`CLOCK_BOUND_MAX_NS`], where they are more than few.
    unclocked: Option<u64>,
}

/// Transactions by their outcomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutcomeCounts {
    /// Acknowledged.
    pub committed: u64,
    /// Failed.
    pub failed: u64,
    /// How many have an unknown outcome.
    pub unknown: u64,
    /// Reads of committed transactions.
    pub reads: u64,
    /// Writes of committed transactions.
    pub writes: u64,
}

/// The answer for one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelJudgement {
    /// Enough was seen, all of it was judged, and an order of all versions shows the level.
    Holds,
    /// Something was.
    Violated,
    /// Nothing was found, and that shows nothing: [`HistoryFindings::doubts`] says why.
    CannotTell,
}

impl HistoryFindings {
    /// The anomalies that a level forbids, with their counts.
    pub fn forbidden(
        &self,
        level: IsolationLevel,
    ) -> impl Iterator<Item = (IsolationAnomaly, u64)> {
        let counts = self.anomalies.iter().map(|(anomaly, count)| (*anomaly, *count));
        counts.filter(move |(anomaly, _)| level.forbids(*anomaly))
    }

    /// Judges whether the history may come from a database that provides a level. That nothing was found is
    /// never enough for "holds".
    pub fn judge(&self, level: IsolationLevel) -> LevelJudgement {
        match (self.forbidden(level).next(), self.doubts(level).is_empty()) {
            (Some(_), _) => LevelJudgement::Violated,
            (None, false) => LevelJudgement::CannotTell,
            (None, true) => LevelJudgement::Holds,
        }
    }

    /// The reasons for which a level cannot be said to hold where nothing was found.
    pub fn doubts(&self, level: IsolationLevel) -> Vec<LevelDoubt> {
        let has = |is: fn(&FaultKind) -> bool| self.faults.iter().any(|fault| is(&fault.what));
        let is_incomplete = self.unexplained > 0
            || has(|wrong| match wrong {
                FaultKind::ClocksApart { .. } => false,
                // Nobody knows how many lines a file had that is cut.
                FaultKind::CutOff | FaultKind::FileMissing => true,
                FaultKind::Line(_) | FaultKind::Gap { .. } | FaultKind::WrittenTwice { .. } => true,
            });
        let is_strict = level == IsolationLevel::StrictSerializable;
        let are_apart = is_strict && has(|wrong| matches!(wrong, FaultKind::ClocksApart { .. }));
        let has_order = self.unordered_keys == 0 || self.proved.has(level);
        let doubts = [
            (self.counted.committed == 0).then_some(LevelDoubt::NothingCommitted),
            self.observed.doubt(level >= IsolationLevel::Serializable),
            is_incomplete.then_some(LevelDoubt::Incomplete),
            are_apart.then_some(LevelDoubt::ClocksApart),
            self.unclocked
                .filter(|_| is_strict)
                .map(|transactions| LevelDoubt::ClocksUnknown { transactions }),
            (!has_order).then_some(LevelDoubt::NoOrder { keys: self.unordered_keys }),
        ];
        doubts.into_iter().flatten().collect()
    }

    /// The number of an anomaly.
    pub fn count(&self, anomaly: IsolationAnomaly) -> u64 {
        // An anomaly that was never seen has no entry.
        self.anomalies.get(&anomaly).copied().unwrap_or(0)
    }

    /// The number of cycles of one kind, whatever order they need.
    pub fn cycles(&self, cycle: CycleKind) -> u64 {
        [CycleOrder::Data, CycleOrder::Process, CycleOrder::Realtime]
            .map(|order| self.count(IsolationAnomaly::Cycle(cycle, order)))
            .iter()
            .sum()
    }
}

/// Judges a history: the time that this takes grows with its length.
pub fn check(history: &History) -> HistoryFindings {
    let mut evidence = Evidence::default();
    let (counted, unclocked) = (counted(history), unclocked(history));
    let mut findings = HistoryFindings { counted, unclocked, ..HistoryFindings::default() };
    let index = Index::of(history);
    let fates = Fates::new(history, &index);
    let mut lists = Lists::new(history, &fates);
    for key in 0..history.keys() as u32 {
        match history.key(key).0 {
            ObjectKind::List => lists.one(key, &index, &mut evidence),
            ObjectKind::Register => {
                RegisterJudge::new(history, &fates, key, &mut evidence).judge(index.uses(key));
            }
        }
    }
    drop(index);
    accounts(history, &fates, &mut evidence);
    (findings.observed, findings.unexplained) = (evidence.observed, evidence.unexplained);
    findings.unordered_keys = proof::unordered_keys(&evidence);
    findings.faults.extend_from_slice(history.faults());
    findings.faults.append(&mut evidence.faults);
    let clocks = evidence.clocks;
    let mut cycles = Cycles::default();
    findings.proved = find_cycles(history, &fates, &mut evidence, &mut cycles);
    let Lists { mut staleness, sessions, .. } = lists;
    match clocks {
        None => {
            evidence.absorb(sessions);
            staleness.iter_mut().for_each(ReadStaleness::sort);
            findings.staleness = staleness;
        }
        Some((ns, reader)) => {
            let (file, line) = history.place(&history.transactions()[reader as usize]);
            let what = FaultKind::ClocksApart { ns };
            findings.faults.push(HistoryFault { file: file.to_owned(), line, what });
        }
    }
    gather(history, &evidence, &cycles, &mut findings);
    findings
}

/// Transactions whose moments do not tell what came before them; none where they are a tenth of all or fewer.
fn unclocked(history: &History) -> Option<u64> {
    let all = history.transactions();
    let unclocked = all.iter().filter(|one| one.bound > CLOCK_BOUND_MAX_NS).count();
    (10 * unclocked > all.len()).then_some(unclocked as u64)
}

/// Findings from lists besides dependencies; they count only if clocks agree.
struct Lists<'h> {
    history: &'h History,
    fates: &'h Fates,
    staleness: Vec<ReadStaleness>,
    sessions: Evidence,
}

impl<'h> Lists<'h> {
    fn new(history: &'h History, fates: &'h Fates) -> Lists<'h> {
        let staleness = vec![ReadStaleness::default(); history.groups().len()];
        Lists { history, fates, staleness, sessions: Evidence::default() }
    }

    fn one(&mut self, key: u32, index: &Index, evidence: &mut Evidence) {
        let judge = ListJudge::new(self.history, self.fates, key, evidence);
        if let Some(list) = judge.judge(index.uses(key)) {
            sessions::judge(self.history, key, &list, &mut self.sessions);
            staleness::measure(self.history, &list, &mut self.staleness);
        }
    }
}

/// Finds the cycles of what is known, and shows levels where some order is not known.
fn find_cycles(
    history: &History,
    fates: &Fates,
    evidence: &mut Evidence,
    cycles: &mut Cycles,
) -> ProvedLevels {
    let transactions = history.transactions().len();
    let mut edges = std::mem::take(&mut evidence.edges);
    let of_data = edges.len();
    cycles.find(&Dependencies::new(transactions, &edges));
    edges.append(&mut evidence.by_client);
    let processes = orders::of_processes(history, fates);
    if evidence.clocks.is_none() {
        edges.append(&mut evidence.by_time);
        let of_time = edges.len();
        // The order of a client is a part of that of time, unless clocks have bounds.
        if history.transactions().iter().any(|one| one.bound > 0) {
            edges.extend_from_slice(&processes);
        }
        orders::find_realtime(cycles, &Dependencies::new(transactions, &edges), history);
        edges.truncate(of_time);
    }
    let inferred = edges.len();
    edges.extend(processes);
    let all = Dependencies::new(transactions, &edges);
    orders::find_processes(cycles, &all);
    orders::find_inferred(cycles, &all, &edges[of_data..inferred]);
    match proof::needs_proof(evidence) {
        false => ProvedLevels::everything(),
        true => proof::prove(&KnownOrder {
            history,
            fates,
            data: &edges[..of_data],
            strict: &edges[of_data..],
            registers: &evidence.registers,
            tails: &evidence.tails,
        }),
    }
}

fn counted(history: &History) -> OutcomeCounts {
    let mut counted = OutcomeCounts::default();
    for transaction in history.transactions() {
        match transaction.outcome {
            TransactionOutcome::Committed => counted.committed += 1,
            TransactionOutcome::Failed => counted.failed += 1,
            TransactionOutcome::Unknown => counted.unknown += 1,
        }
        if transaction.outcome == TransactionOutcome::Committed {
            let operations = history.operations(transaction);
            let is_write = |one: &&Operation| {
                matches!(one, Operation::Append { .. } | Operation::Write { .. })
            };
            let writes = operations.iter().filter(is_write).count();
            counted.writes += writes as u64;
            counted.reads += (operations.len() - writes) as u64;
        }
    }
    counted
}

/// Snapshots of all accounts, each of which must have the sum that transfers keep.
fn accounts(history: &History, fates: &Fates, evidence: &mut Evidence) {
    let mut first = None;
    for (number, transaction) in (0..).zip(history.transactions()) {
        if !fates.is_committed(number) {
            continue;
        }
        for operation in history.operations(transaction) {
            let Operation::ReadAccounts { total, balances } = *operation else { continue };
            evidence.observed.snapshots += 1;
            let seen = history.elements(balances);
            evidence.observed.snapshots_differ |= *first.get_or_insert(seen) != seen;
            let sum = witness::sum(seen);
            if sum != i128::from(total) {
                evidence.see(IsolationAnomaly::WrongTotal, &[number], || {
                    format!("{{0}} read balances of {sum} in all, and not {total}")
                });
            }
        }
    }
}

fn gather(history: &History, evidence: &Evidence, cycles: &Cycles, findings: &mut HistoryFindings) {
    findings.anomalies = evidence.counts.clone();
    let seen = evidence.sightings.iter().map(|one| AnomalyWitness::of_sighting(history, one));
    findings.witnesses.extend(seen);
    for found in &cycles.found {
        // What the lists have shown is counted there.
        if evidence.counts.contains_key(&found.anomaly) {
            continue;
        }
        findings.anomalies.insert(found.anomaly, found.count);
        let smallest = found.smallest.iter();
        findings
            .witnesses
            .extend(smallest.map(|cycle| AnomalyWitness::of_cycle(history, found.anomaly, cycle)));
    }
    findings.witnesses.sort_by_key(|witness| (witness.anomaly, witness.transactions.len()));
    findings.is_partial = cycles.is_partial;
}
