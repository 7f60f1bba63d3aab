//! Judges a history.

use std::collections::BTreeMap;

use crate::cycles::{Cycles, Dependencies};
use crate::evidence::Evidence;
use crate::index::Index;
use crate::lists::ListJudge;
use crate::registers::RegisterJudge;
use crate::staleness::{self, Staleness};
use crate::witness::{self, Witness};
use crate::{
    Anomaly, Cycle, Fault, History, Kind, Level, Operation, Order, Outcome, Wrong, orders, sessions,
};

/// Findings about a history.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The anomalies, and how often each was found.
    pub anomalies: BTreeMap<Anomaly, u64>,
    /// The smallest witnesses of each.
    pub witnesses: Vec<Witness>,
    /// Searches were given up: there may be more than was counted, and smaller witnesses.
    pub is_partial: bool,
    /// Faults of the history, and what is not judged because of them.
    pub faults: Vec<Fault>,
    /// Ages of the reads of each workload, in the order of [`History::groups`]. Empty where it
    /// cannot be told.
    pub staleness: Vec<Staleness>,
    /// Transactions by their outcomes.
    pub counted: Counted,
}

/// Transactions by their outcomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Acknowledged.
    pub committed: u64,
    /// Failed.
    pub failed: u64,
    /// Of unknown outcome.
    pub unknown: u64,
    /// Reads of committed transactions.
    pub reads: u64,
    /// Writes of committed transactions.
    pub writes: u64,
}

/// The answer for one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Nothing was found that the level forbids.
    Holds,
    /// Something was.
    Violated,
    /// Nothing was found, and not everything could be judged.
    CannotTell,
}

impl Findings {
    /// The anomalies that a level forbids, with their counts.
    pub fn forbidden(&self, level: Level) -> impl Iterator<Item = (Anomaly, u64)> {
        let counts = self.anomalies.iter().map(|(anomaly, count)| (*anomaly, *count));
        counts.filter(move |(anomaly, _)| level.forbids(*anomaly))
    }

    /// Judges whether the history may come from a database that provides a level.
    pub fn judge(&self, level: Level) -> Judgement {
        let is_missing = self.faults.iter().any(|fault| match fault.what {
            Wrong::CutOff => false,
            Wrong::ClocksApart { .. } => level == Level::StrictSerializable,
            Wrong::Line(_) | Wrong::WrittenTwice { .. } => true,
        });
        match (self.forbidden(level).next(), is_missing || self.counted.committed == 0) {
            (Some(_), _) => Judgement::Violated,
            (None, true) => Judgement::CannotTell,
            (None, false) => Judgement::Holds,
        }
    }

    /// The number of an anomaly.
    pub fn count(&self, anomaly: Anomaly) -> u64 {
        self.anomalies.get(&anomaly).copied().unwrap_or(0)
    }

    /// The number of cycles of one kind, whatever order they need.
    pub fn cycles(&self, cycle: Cycle) -> u64 {
        [Order::Data, Order::Process, Order::Realtime]
            .map(|order| self.count(Anomaly::Cycle(cycle, order)))
            .iter()
            .sum()
    }
}

/// Judges a history: the time that this takes grows with its length.
pub fn check(history: &History) -> Findings {
    let mut evidence = Evidence::default();
    let mut findings = Findings { counted: counted(history), ..Findings::default() };
    let mut lists = Lists::new(history);
    let index = Index::of(history);
    for key in 0..history.keys() as u32 {
        match history.key(key).0 {
            Kind::List => lists.one(key, &index, &mut evidence),
            Kind::Register => {
                RegisterJudge::new(history, key, &mut evidence).judge(index.uses(key));
            }
        }
    }
    drop(index);
    accounts(history, &mut evidence);
    findings.faults.extend_from_slice(history.faults());
    findings.faults.append(&mut evidence.faults);
    let clocks = evidence.clocks;
    let mut cycles = Cycles::default();
    find_cycles(history, &mut evidence, &mut cycles);
    let Lists { mut staleness, sessions, .. } = lists;
    match clocks {
        None => {
            evidence.absorb(sessions);
            staleness.iter_mut().for_each(Staleness::sort);
            findings.staleness = staleness;
        }
        Some((ns, reader)) => {
            let (file, line) = history.place(&history.transactions()[reader as usize]);
            let what = Wrong::ClocksApart { ns };
            findings.faults.push(Fault { file: file.to_owned(), line, what });
        }
    }
    gather(history, &evidence, &cycles, &mut findings);
    findings
}

/// Findings from lists besides dependencies; they count only if clocks agree.
struct Lists<'h> {
    history: &'h History,
    staleness: Vec<Staleness>,
    sessions: Evidence,
}

impl<'h> Lists<'h> {
    fn new(history: &'h History) -> Lists<'h> {
        let staleness = vec![Staleness::default(); history.groups().len()];
        Lists { history, staleness, sessions: Evidence::default() }
    }

    fn one(&mut self, key: u32, index: &Index, evidence: &mut Evidence) {
        let judge = ListJudge::new(self.history, key, evidence);
        if let Some(list) = judge.judge(index.uses(key)) {
            sessions::judge(self.history, key, &list, &mut self.sessions);
            staleness::measure(self.history, &list, &mut self.staleness);
        }
    }
}

fn find_cycles(history: &History, evidence: &mut Evidence, cycles: &mut Cycles) {
    let transactions = history.transactions().len();
    let mut edges = std::mem::take(&mut evidence.edges);
    {
        let data = Dependencies::new(transactions, &edges);
        cycles.find(&data);
        if evidence.clocks.is_none() {
            orders::find_realtime(cycles, &data, history);
        }
    }
    edges.extend(orders::of_processes(history));
    orders::find_processes(cycles, &Dependencies::new(transactions, &edges));
}

fn counted(history: &History) -> Counted {
    let mut counted = Counted::default();
    for transaction in history.transactions() {
        match transaction.outcome {
            Outcome::Committed => counted.committed += 1,
            Outcome::Failed => counted.failed += 1,
            Outcome::Unknown => counted.unknown += 1,
        }
        if transaction.outcome == Outcome::Committed {
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
fn accounts(history: &History, evidence: &mut Evidence) {
    for (number, transaction) in (0..).zip(history.transactions()) {
        if transaction.outcome != Outcome::Committed {
            continue;
        }
        for operation in history.operations(transaction) {
            let Operation::ReadAccounts { total, balances } = *operation else { continue };
            let sum = witness::sum(history.elements(balances));
            if sum != i128::from(total) {
                evidence.see(Anomaly::WrongTotal, &[number], || {
                    format!("{{0}} read balances of {sum} in all, and not {total}")
                });
            }
        }
    }
}

fn gather(history: &History, evidence: &Evidence, cycles: &Cycles, findings: &mut Findings) {
    findings.anomalies = evidence.counts.clone();
    let seen = evidence.sightings.iter().map(|one| Witness::of_sighting(history, one));
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
            .extend(smallest.map(|cycle| Witness::of_cycle(history, found.anomaly, cycle)));
    }
    findings.witnesses.sort_by_key(|witness| (witness.anomaly, witness.transactions.len()));
    findings.is_partial = cycles.is_partial;
}
