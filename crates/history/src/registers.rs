//! Evidence in the reads of one register.
//!
//! A register shows only its last value. That one version follows another one is known where one
//! transaction read the one and then wrote the other, and where one transaction wrote both. Where the
//! order of time or of clients counts, more is known ([`crate::uses_in_time`]); the rest is a guess
//! ([`crate::proof`]).

use crate::components::{Components, Graph};
use crate::evidence::{Dependency, Evidence};
use crate::fate::Fates;
use crate::index::{KeyUse, Map};
use crate::{
    FaultKind, History, HistoryFault, IsolationAnomaly, Key, Operation, TransactionOutcome,
    uses_in_time,
};

/// Writers that are taken as later than a read of nothing, where none is known to come first.
const FIRST_MAX: usize = 16;

/// A version: the number of its value among the values of the register; 0 is no value.
pub(crate) type Version = u32;

/// A register of which nothing tells the order of all versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnorderedRegister {
    pub(crate) key: Key,
    /// The transaction that left each version when it committed; none of the first version, of those that
    /// their own transaction overwrote, and of those that are not known to be committed.
    pub(crate) writers: Vec<Option<u32>>,
    /// Reads of committed transactions, in the order of versions.
    pub(crate) reads: Vec<(Version, u32)>,
}

impl UnorderedRegister {
    /// The transactions that read a version.
    pub(crate) fn readers(&self, version: Version) -> impl Iterator<Item = u32> {
        let from = self.reads.partition_point(|read| read.0 < version);
        let of = self.reads[from..].iter().take_while(move |read| read.0 == version);
        of.map(|read| read.1)
    }
}

/// A write of a register.
#[derive(Clone, Copy, Debug)]
struct Write {
    transaction: u32,
    is_last: bool,
}

pub(crate) struct RegisterJudge<'h, 'e> {
    history: &'h History,
    fates: &'h Fates,
    key: Key,
    evidence: &'e mut Evidence,
    numbers: Map<i64, Version>,
    /// The write of each version; none of the first.
    writes: Vec<Option<Write>>,
    values: Vec<i64>,
    /// Pairs of versions: one, and one that follows it.
    follows: Vec<(Version, Version)>,
    /// Reads of committed transactions of what others wrote, and whether each wrote it afterwards.
    reads: Vec<(Version, u32, bool)>,
}

impl<'h, 'e> RegisterJudge<'h, 'e> {
    pub(crate) fn new(
        history: &'h History,
        fates: &'h Fates,
        key: Key,
        evidence: &'e mut Evidence,
    ) -> Self {
        RegisterJudge {
            history,
            fates,
            key,
            evidence,
            numbers: Map::default(),
            writes: vec![None],
            values: vec![0],
            follows: Vec::new(),
            reads: Vec::new(),
        }
    }

    /// Judges a register, unless its values are not unique.
    pub(crate) fn judge(mut self, uses: &[KeyUse]) {
        if self.collect_writes(uses).is_none() {
            return;
        }
        for mine in uses.chunk_by(|one, next| one.transaction == next.transaction) {
            if self.outcome(mine[0].transaction) == TransactionOutcome::Committed {
                self.one_transaction(mine);
            }
        }
        self.follows.sort_unstable();
        self.follows.dedup();
        let ordered = self.are_ordered();
        self.dependencies(uses, ordered);
        self.lost_updates();
        let register = self.register();
        let is_read = |version: &Version| {
            let writer = register.writers[*version as usize];
            writer.is_some() && register.readers(*version).any(|reader| Some(reader) != writer)
        };
        let versions = 0..register.writers.len() as Version;
        self.evidence.observed.writes += register.writers.iter().flatten().count() as u64;
        self.evidence.observed.read += versions.filter(is_read).count() as u64;
        if ordered && !self.is_chain() {
            uses_in_time::infer(self.history, &register, self.evidence);
            self.evidence.registers.push(register);
        }
    }

    fn outcome(&self, transaction: u32) -> TransactionOutcome {
        self.fates.of(transaction)
    }

    fn register(&self) -> UnorderedRegister {
        let left = |write: &Write| write.is_last && self.fates.is_committed(write.transaction);
        let writers = self.writes.iter().map(|write| write.filter(left));
        let writers = writers.map(|write| write.map(|write| write.transaction)).collect();
        let reads = self.reads.iter().map(|(version, reader, _)| (*version, *reader));
        let mut reads: Vec<(Version, u32)> = reads.collect();
        reads.sort_unstable();
        reads.dedup();
        UnorderedRegister { key: self.key, writers, reads }
    }

    /// True if each version has one that follows it, from no value to the last one.
    fn is_chain(&self) -> bool {
        let later = Graph::new(self.writes.len(), || self.follows.iter().copied());
        let (mut version, mut length) = (0, 1);
        while let [next] = later.leaving(version) {
            (version, length) = (*next, length + 1);
        }
        later.leaving(version).is_empty() && length == self.writes.len()
    }

    fn name(&self) -> i64 {
        self.history.key(self.key).1
    }

    fn operation(&self, one: &KeyUse) -> Operation {
        self.history.all_operations()[one.operation as usize]
    }

    fn collect_writes(&mut self, uses: &[KeyUse]) -> Option<()> {
        for (at, one) in uses.iter().enumerate() {
            let Operation::Write { value, .. } = self.operation(one) else { continue };
            let transaction = one.transaction;
            let mine = uses[at + 1..].iter().take_while(|other| other.transaction == transaction);
            let is_last = !mine
                .map(|other| self.operation(other))
                .any(|x| matches!(x, Operation::Write { .. }));
            if self.numbers.insert(value, self.writes.len() as Version).is_some() {
                let transaction = &self.history.transactions()[transaction as usize];
                let (file, line) = self.history.place(transaction);
                let what = FaultKind::WrittenTwice { key: self.name(), value };
                self.evidence.faults.push(HistoryFault { file: file.to_owned(), line, what });
                return None;
            }
            self.writes.push(Some(Write { transaction, is_last }));
            self.values.push(value);
        }
        Some(())
    }

    fn shown(&self, version: Version) -> String {
        match version {
            0 => "nothing".to_owned(),
            _ => self.values[version as usize].to_string(),
        }
    }

    fn one_transaction(&mut self, mine: &[KeyUse]) {
        let (transaction, name) = (mine[0].transaction, self.name());
        let (mut current, mut is_own) = (None, false);
        let first = self.reads.len();
        for one in mine {
            let read = match self.operation(one) {
                Operation::Write { value, .. } => {
                    let version = self.numbers[&value];
                    if let Some(before) = current {
                        self.follows.push((before, version));
                    }
                    self.reads[first..].iter_mut().for_each(|(.., is_written)| *is_written = true);
                    (current, is_own) = (Some(version), true);
                    continue;
                }
                Operation::Read { value, .. } => match self.numbers.get(&value) {
                    Some(version) => *version,
                    None if self.history.lacks_lines() => {
                        self.evidence.unexplained += 1;
                        (current, is_own) = (None, false);
                        continue;
                    }
                    None => {
                        self.evidence.see(IsolationAnomaly::UnwrittenRead, &[transaction], || {
                            format!("{{0}} read {value} in register {name}, which nobody wrote")
                        });
                        continue;
                    }
                },
                Operation::ReadNothing { .. } => 0,
                _ => continue,
            };
            let of_own = self.writes[read as usize].is_some_and(|x| x.transaction == transaction);
            match current {
                Some(current) if current == read => continue,
                _ if of_own && !is_own => {
                    self.evidence.see(IsolationAnomaly::FutureRead, &[transaction], || {
                        format!("{{0}} read in register {name} what it wrote only afterwards")
                    });
                }
                Some(current) => {
                    let [current, read] = [self.shown(current), self.shown(read)];
                    let (anomaly, did) = match is_own {
                        true => (IsolationAnomaly::OwnWriteUnseen, "wrote"),
                        false => (IsolationAnomaly::Internal, "read"),
                    };
                    self.evidence.see(anomaly, &[transaction], || {
                        format!("{{0}} {did} {current} in register {name} and then read {read}")
                    });
                }
                None => {}
            }
            self.reads.push((read, transaction, false));
            (current, is_own) = (Some(read), false);
        }
    }

    /// True if no version follows itself.
    fn are_ordered(&mut self) -> bool {
        let graph = Graph::new(self.writes.len(), || self.follows.iter().copied());
        let components = Components::new(&graph, Some);
        if !components.has_circle() {
            return true;
        }
        let circle = (0..self.writes.len() as Version).find(|one| components.is_in_circle(*one));
        let members = (0..self.writes.len() as Version)
            .filter(|one| circle.is_some_and(|circle| components.join(*one, circle)));
        let members: Vec<Version> = members.collect();
        let values: Vec<String> = members.iter().map(|one| self.shown(*one)).collect();
        let writers = members.iter().filter_map(|one| self.writes[*one as usize]);
        let writers: Vec<u32> = writers.map(|write| write.transaction).take(4).collect();
        let name = self.name();
        self.evidence.see(IsolationAnomaly::CyclicVersions, &writers, || {
            format!(
                "each of the versions {} of register {name} follows the others",
                values.join(", ")
            )
        });
        false
    }

    fn dependencies(&mut self, uses: &[KeyUse], are_ordered: bool) {
        let (key, name) = (self.key, self.name());
        let reads = std::mem::take(&mut self.reads);
        for (version, reader, _) in &reads {
            let (reader, Some(write)) = (*reader, self.writes[*version as usize]) else { continue };
            let writer = write.transaction;
            if writer == reader {
                continue;
            }
            let value = self.values[*version as usize];
            if self.outcome(writer) == TransactionOutcome::Failed {
                self.evidence.see(IsolationAnomaly::G1a, &[reader, writer], || {
                    format!("{{0}} read {value} in register {name}; {{1}}, which wrote it, failed")
                });
                continue;
            }
            if !write.is_last {
                self.evidence.see(IsolationAnomaly::G1b, &[reader, writer], || {
                    format!("{{0}} read {value} in register {name}; {{1}} overwrote it itself")
                });
            }
            self.evidence.read_edge(self.history, writer, reader, key);
        }
        if are_ordered {
            self.order(uses, &reads);
        }
        self.reads = reads;
    }

    fn order(&mut self, uses: &[KeyUse], reads: &[(Version, u32, bool)]) {
        let key = self.key;
        let later = Graph::new(self.writes.len(), || self.follows.iter().copied());
        let is_there =
            |write: &Write| self.outcome(write.transaction) != TransactionOutcome::Failed;
        let writers = self.writes.iter().map(|write| write.filter(is_there));
        let writers: Vec<Option<u32>> =
            writers.map(|write| write.map(|write| write.transaction)).collect();
        let there = |version: Version| writers[version as usize];
        for (before, after) in &self.follows {
            if let (Some(before), Some(after)) = (there(*before), there(*after)) {
                self.evidence.edge(before, after, key, Dependency::Write);
            }
            let aborted = self.writes[*before as usize]
                .filter(|write| self.outcome(write.transaction) == TransactionOutcome::Failed);
            if let (Some(aborted), Some(after)) = (aborted, there(*after)) {
                let (name, value) = (self.name(), self.shown(*before));
                self.evidence.see(IsolationAnomaly::DirtyUpdate, &[after, aborted.transaction], || {
                    format!("{{0}} overwrote {value} in register {name}, which {{1}} wrote; {{1}} failed")
                });
            }
        }
        let firsts = if later.leaving(0).is_empty() { self.firsts(uses) } else { Vec::new() };
        for (version, reader, _) in reads {
            for next in later.leaving(*version) {
                if let Some(next) = there(*next) {
                    self.evidence.edge(*reader, next, key, Dependency::Anti);
                }
            }
            if *version == 0 {
                for writer in &firsts {
                    self.evidence.edge(*reader, *writer, key, Dependency::Anti);
                }
            }
        }
    }

    /// Committed writers of a register that comes from nothing: those that ended first.
    fn firsts(&self, uses: &[KeyUse]) -> Vec<u32> {
        let writes =
            uses.iter().filter(|one| matches!(self.operation(one), Operation::Write { .. }));
        let committed = writes
            .map(|one| one.transaction)
            .filter(|transaction| self.outcome(*transaction) == TransactionOutcome::Committed);
        let mut writers: Vec<u32> = committed.collect();
        writers.dedup();
        writers.sort_by_key(|one| self.history.transactions()[*one as usize].ended);
        writers.truncate(FIRST_MAX);
        writers
    }

    fn lost_updates(&mut self) {
        let written = self.reads.iter().filter(|(.., is_written)| *is_written);
        let mut bases: Vec<(Version, u32)> =
            written.map(|(version, reader, _)| (*version, *reader)).collect();
        bases.sort_unstable();
        bases.dedup();
        for same in bases.chunk_by(|one, next| one.0 == next.0) {
            self.evidence
                .see_lost_updates(same, || format!("register {}", self.history.key(self.key).1));
        }
    }
}
