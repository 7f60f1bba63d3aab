//! Evidence in the reads of one list.
//!
//! A list is read with all its history: the longest read is the order of its versions, and every other
//! read must be a prefix of it. Version `n` is the list of the first `n` elements.

use crate::evidence::{Dependency, Evidence, ListTail};
use crate::fate::Fates;
use crate::index::{KeyUse, Map};
use crate::{
    ElementList, FaultKind, History, HistoryFault, IsolationAnomaly, Key, Operation,
    TransactionOutcome,
};

/// Acknowledged appends that no read shows are later than all that was read. Violations are looked for
/// with so many of them, the ones that ended first; that a level holds is shown with all of them.
const UNSEEN_MAX: usize = 16;

/// Versions of a list.
pub(crate) struct ListVersions {
    /// Writer of each element; none for one that nobody wrote.
    pub(crate) owners: Vec<Option<Write>>,
    /// Reads of committed transactions without their own appends, and the version that each saw.
    pub(crate) reads: Vec<(u32, usize)>,
    /// Appends of committed transactions, and the version that each made; none where no read shows it.
    pub(crate) appends: Vec<(u32, Option<usize>)>,
}

/// A value that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    pub(crate) transaction: u32,
    /// Writes of the key by its transaction before it.
    before: u32,
    /// The transaction wrote the key no more.
    is_last: bool,
}

/// A read without what its own transaction had appended.
struct Read {
    transaction: u32,
    list: ElementList,
    /// True if its transaction appended to the list afterwards.
    is_written: bool,
}

/// A read as it was.
struct Whole {
    transaction: u32,
    list: ElementList,
    /// The number of elements at its end that its own transaction had appended.
    own: usize,
}

/// State of the judgement of one list.
pub(crate) struct ListJudge<'h, 'e> {
    pub(crate) history: &'h History,
    fates: &'h Fates,
    pub(crate) key: Key,
    pub(crate) evidence: &'e mut Evidence,
    writes: Map<i64, Write>,
    /// Readers whose read is known to be no list that can have been there.
    unsound: Map<u32, ()>,
    /// Values may have been written of which no line tells.
    lacks_lines: bool,
}

impl<'h, 'e> ListJudge<'h, 'e> {
    pub(crate) fn new(
        history: &'h History,
        fates: &'h Fates,
        key: Key,
        evidence: &'e mut Evidence,
    ) -> Self {
        let (writes, unsound) = (Map::default(), Map::default());
        let lacks_lines = history.lacks_lines();
        ListJudge { history, fates, key, evidence, writes, unsound, lacks_lines }
    }

    /// Judges a list. None where its values are not unique.
    pub(crate) fn judge(mut self, uses: &[KeyUse]) -> Option<ListVersions> {
        self.collect_writes(uses)?;
        let (reads, mut whole) = self.reads(uses);
        // The longest that is sound; the sort is stable, so the first one of a length is.
        whole.sort_by_key(|read| std::cmp::Reverse(read.list.len()));
        let longest = whole
            .iter()
            .find(|read| self.is_sound(read.transaction, self.history.elements(read.list)))
            .map(|read| read.list);
        let order = longest.map_or(&[][..], |list| self.history.elements(list));
        let owners: Vec<Option<Write>> =
            order.iter().map(|value| self.writes.get(value).copied()).collect();
        let versions = self.versions(&reads, longest, order, owners);
        self.own_places(&whole, order);
        self.own_order(&versions.owners);
        self.future_reads(&versions);
        self.dependencies(&versions);
        self.observed(&versions);
        self.aborted(&versions.owners, order);
        self.lost_updates(&reads, &versions.reads);
        Some(versions)
    }

    fn outcome(&self, transaction: u32) -> TransactionOutcome {
        self.fates.of(transaction)
    }

    fn name(&self) -> i64 {
        self.history.key(self.key).1
    }

    fn collect_writes(&mut self, uses: &[KeyUse]) -> Option<()> {
        for (at, one) in uses.iter().enumerate() {
            let Operation::Append { value, .. } =
                self.history.all_operations()[one.operation as usize]
            else {
                continue;
            };
            let mine = uses[at + 1..].iter().take_while(|x| x.transaction == one.transaction);
            let is_last = !mine
                .map(|x| self.history.all_operations()[x.operation as usize])
                .any(|operation| matches!(operation, Operation::Append { .. }));
            let transaction = one.transaction;
            let before = self.writes_before(uses, at);
            let write = Write { transaction, before, is_last };
            if self.writes.insert(value, write).is_some() {
                let transaction = &self.history.transactions()[one.transaction as usize];
                let (file, line) = self.history.place(transaction);
                let what = FaultKind::WrittenTwice { key: self.name(), value };
                self.evidence.faults.push(HistoryFault { file: file.to_owned(), line, what });
                return None;
            }
        }
        Some(())
    }

    /// Appends of the same transaction before the one at this place.
    fn writes_before(&self, uses: &[KeyUse], at: usize) -> u32 {
        let mine = uses[..at].iter().rev().take_while(|x| x.transaction == uses[at].transaction);
        let is_append = |one: &&KeyUse| {
            matches!(
                self.history.all_operations()[one.operation as usize],
                Operation::Append { .. }
            )
        };
        mine.filter(is_append).count() as u32
    }

    /// The reads of committed transactions: without their own appends, and whole. A transaction must
    /// not contradict itself.
    fn reads(&mut self, uses: &[KeyUse]) -> (Vec<Read>, Vec<Whole>) {
        let history = self.history;
        let (mut reads, mut whole): (Vec<Read>, Vec<_>) = (Vec::new(), Vec::new());
        for mine in uses.chunk_by(|one, next| one.transaction == next.transaction) {
            let transaction = mine[0].transaction;
            if self.outcome(transaction) != TransactionOutcome::Committed {
                continue;
            }
            let first = reads.len();
            let mut own: Vec<i64> = Vec::new();
            for one in mine {
                let list = match history.all_operations()[one.operation as usize] {
                    Operation::Append { value, .. } => {
                        own.push(value);
                        reads[first..].iter_mut().for_each(|read| read.is_written = true);
                        continue;
                    }
                    Operation::ReadList { list, .. } => list,
                    _ => continue,
                };
                let read = history.elements(list);
                let Some(elements) = read.strip_suffix(own.as_slice()) else {
                    let name = self.name();
                    self.evidence.see(IsolationAnomaly::OwnWriteUnseen, &[transaction], || {
                        format!(
                            "{{0}} appended {} to list {name} and then read {}",
                            shown(&own),
                            shown(read)
                        )
                    });
                    continue;
                };
                whole.push(Whole { transaction, list, own: own.len() });
                let last = reads[first..].last();
                if let Some(last) = last.filter(|last| history.elements(last.list) != elements) {
                    let (name, last) = (self.name(), history.elements(last.list));
                    self.evidence.see(IsolationAnomaly::Internal, &[transaction], || {
                        let (before, after) = (shown(last), shown(elements));
                        format!("{{0}} read list {name} twice: first {before}, then {after}")
                    });
                } else if last.is_some() {
                    continue;
                }
                let list = list.prefix(elements.len());
                reads.push(Read { transaction, list, is_written: false });
            }
        }
        (reads, whole)
    }

    /// True if every element of a read was written, and stands there once.
    fn is_sound(&mut self, reader: u32, elements: &[i64]) -> bool {
        if self.unsound.contains_key(&reader) {
            return false;
        }
        let mut seen: Map<i64, ()> = Map::default();
        let (name, mut is_sound) = (self.name(), true);
        for value in elements {
            if !self.writes.contains_key(value) && self.lacks_lines {
                self.evidence.unexplained += 1;
            } else if !self.writes.contains_key(value) {
                is_sound = false;
                self.evidence.see(IsolationAnomaly::UnwrittenRead, &[reader], || {
                    format!("{{0}} read {value} in list {name}, which nobody wrote")
                });
            } else if seen.insert(*value, ()).is_some() {
                is_sound = false;
                self.evidence.see(IsolationAnomaly::DuplicateElements, &[reader], || {
                    format!("{{0}} read {value} twice in list {name}: {}", shown(elements))
                });
            }
        }
        if !is_sound {
            self.unsound.insert(reader, ());
        }
        is_sound
    }

    fn versions(
        &mut self,
        reads: &[Read],
        longest: Option<ElementList>,
        order: &[i64],
        owners: Vec<Option<Write>>,
    ) -> ListVersions {
        let mut placed = Vec::with_capacity(reads.len());
        for read in reads {
            let Read { transaction, list, .. } = *read;
            let is_of_trunk = longest.is_some_and(|longest| longest.extends(list));
            if is_of_trunk || order.starts_with(self.history.elements(list)) {
                placed.push((transaction, list.len()));
                continue;
            }
            self.stray(transaction, self.history.elements(list), order);
        }
        let mut places: Map<i64, usize> = Map::default();
        places.extend(order.iter().enumerate().map(|(at, value)| (*value, at)));
        let committed = self
            .writes
            .iter()
            .filter(|(_, write)| self.outcome(write.transaction) == TransactionOutcome::Committed);
        let mut appends: Vec<(u32, Option<usize>)> = committed
            .map(|(value, write)| (write.transaction, places.get(value).map(|at| at + 1)))
            .collect();
        appends.sort_unstable();
        ListVersions { owners, reads: placed, appends }
    }

    /// Reads of what their transaction had appended, at another place than it has for others.
    fn own_places(&mut self, whole: &[Whole], order: &[i64]) {
        for read in whole.iter().filter(|read| read.own > 0) {
            let elements = self.history.elements(read.list);
            let base = &elements[..elements.len() - read.own];
            if order.starts_with(base) && !order.starts_with(elements) {
                self.stray(read.transaction, elements, order);
            }
        }
    }

    /// Appends of one transaction that stand in another order than it made them, or of which an earlier one
    /// is not there.
    fn own_order(&mut self, owners: &[Option<Write>]) {
        let (name, mut counts): (i64, Map<u32, u32>) = (self.name(), Map::default());
        for Write { transaction, before, .. } in owners.iter().flatten() {
            let count = counts.entry(*transaction).or_default();
            if *before != *count {
                self.evidence.see(IsolationAnomaly::IncompatibleOrder, &[*transaction], || {
                    format!("list {name} does not hold what {{0}} appended in its order")
                });
            }
            *count += 1;
        }
    }

    /// Reads, each without what its transaction had appended by then, that hold what it appended.
    fn future_reads(&mut self, versions: &ListVersions) {
        let name = self.name();
        for (reader, version) in &versions.reads {
            let from = versions.appends.partition_point(|append| append.0 < *reader);
            let own = versions.appends[from..].iter().take_while(|append| append.0 == *reader);
            // An append makes the version of its own place.
            let mut places = own.filter_map(|append| append.1);
            if places.any(|place| place <= *version) {
                self.evidence.see(IsolationAnomaly::FutureRead, &[*reader], || {
                    format!("{{0}} read in list {name} what it appended only afterwards")
                });
            }
        }
    }

    /// A read that is no prefix of the order of versions.
    fn stray(&mut self, reader: u32, elements: &[i64], order: &[i64]) {
        if !self.is_sound(reader, elements) {
            return;
        }
        let name = self.name();
        let common = elements.iter().zip(order).take_while(|(one, other)| one == other).count();
        let other = order.get(common).and_then(|value| self.writes.get(value));
        let own = elements.get(common).and_then(|value| self.writes.get(value));
        let mut seen = vec![reader];
        seen.extend([own, other].into_iter().flatten().map(|write| write.transaction));
        self.evidence.see(IsolationAnomaly::IncompatibleOrder, &seen, || {
            format!(
                "{{0}} read list {name} as {}, others as {}",
                shown(elements),
                shown(&order[..order.len().min(common + 4)])
            )
        });
        for value in elements {
            let Some(write) = self.writes.get(value).copied() else { continue };
            if self.outcome(write.transaction) == TransactionOutcome::Failed {
                self.evidence.see(IsolationAnomaly::G1a, &[reader, write.transaction], || {
                    format!("{{0}} read {value} in list {name}; {{1}}, which appended it, failed")
                });
            }
        }
        if let Some(last) = elements.last().and_then(|value| self.writes.get(value)) {
            self.evidence.edge(last.transaction, reader, self.key, Dependency::Read);
        }
    }

    fn dependencies(&mut self, versions: &ListVersions) {
        let key = self.key;
        let is_there =
            |write: &&Write| self.outcome(write.transaction) != TransactionOutcome::Failed;
        let owners: Vec<Option<u32>> = versions
            .owners
            .iter()
            .map(|owner| owner.as_ref().filter(is_there).map(|write| write.transaction))
            .collect();
        let chain: Vec<u32> = owners.iter().copied().flatten().collect();
        for pair in chain.windows(2) {
            self.evidence.edge(pair[0], pair[1], key, Dependency::Write);
        }
        let mut unseen: Vec<u32> =
            versions.appends.iter().filter(|one| one.1.is_none()).map(|one| one.0).collect();
        unseen.sort_by_key(|one| self.history.transactions()[*one as usize].ended);
        unseen.dedup();
        if unseen.len() > 1 {
            let at_end = versions.reads.iter().filter(|(_, version)| *version >= owners.len());
            let readers = at_end.map(|(reader, _)| *reader).collect();
            let (last, unseen) = (chain.last().copied(), unseen.clone());
            self.evidence.tails.push(ListTail { key, last, readers, unseen });
        }
        unseen.truncate(UNSEEN_MAX);
        for later in &unseen {
            if let Some(last) = chain.last() {
                self.evidence.edge(*last, *later, key, Dependency::Write);
            }
        }
        let next: Vec<Option<u32>> = next_owners(&owners);
        let aborted = versions.owners.iter().enumerate().find_map(|(at, owner)| {
            let write = (*owner)?;
            (self.outcome(write.transaction) == TransactionOutcome::Failed).then_some((at, write))
        });
        for (reader, version) in &versions.reads {
            let (reader, version) = (*reader, *version);
            if let Some(write) = version.checked_sub(1).and_then(|at| versions.owners[at]) {
                if let Some((_, failed)) = aborted.filter(|(at, _)| *at < version) {
                    self.read_aborted(reader, failed);
                }
                self.read_from(reader, write);
            }
            match next.get(version).copied().flatten() {
                Some(next) => self.evidence.edge(reader, next, key, Dependency::Anti),
                None => {
                    for later in &unseen {
                        self.evidence.edge(reader, *later, key, Dependency::Anti);
                    }
                }
            }
        }
    }

    /// Counts the appends, and those that a transaction read which had not made them.
    fn observed(&mut self, versions: &ListVersions) {
        let read = versions.reads.iter().map(|(_, version)| *version).max().unwrap_or(0); // No read.
        let is_read = |append: &&(u32, Option<usize>)| append.1.is_some_and(|at| at <= read);
        self.evidence.observed.writes += versions.appends.len() as u64;
        self.evidence.observed.read += versions.appends.iter().filter(is_read).count() as u64;
    }

    fn read_aborted(&mut self, reader: u32, Write { transaction, .. }: Write) {
        let name = self.name();
        self.evidence.see(IsolationAnomaly::G1a, &[reader, transaction], || {
            format!("{{0}} read in list {name} what {{1}} appended; {{1}} failed")
        });
    }

    fn read_from(&mut self, reader: u32, write: Write) {
        let (writer, name) = (write.transaction, self.name());
        if writer == reader || self.outcome(writer) == TransactionOutcome::Failed {
            return;
        }
        if !write.is_last {
            self.evidence.see(IsolationAnomaly::G1b, &[reader, writer], || {
                format!(
                    "{{0}} read list {name} between two appends of {{1}}, which it made before it \
                     committed"
                )
            });
        }
        self.evidence.read_edge(self.history, writer, reader, self.key);
    }

    /// Elements of aborted transactions behind which committed ones appended.
    fn aborted(&mut self, owners: &[Option<Write>], order: &[i64]) {
        let is = |owner: &Option<Write>, outcome| {
            owner.is_some_and(|write| self.outcome(write.transaction) == outcome)
        };
        let mut found = Vec::new();
        let mut later = None;
        for (at, owner) in owners.iter().enumerate().rev() {
            if is(owner, TransactionOutcome::Committed) {
                later = *owner;
            }
            if let (true, Some(later), Some(write)) =
                (is(owner, TransactionOutcome::Failed), later, owner)
            {
                found.push((at, write.transaction, later.transaction));
            }
        }
        let name = self.name();
        for (at, aborted, later) in found {
            self.evidence.see(IsolationAnomaly::DirtyUpdate, &[later, aborted], || {
                let value = order[at];
                format!(
                    "{{0}} appended to list {name} behind {value}, which {{1}} appended; {{1}} failed"
                )
            });
        }
    }

    fn lost_updates(&mut self, reads: &[Read], placed: &[(u32, usize)]) {
        let mut writers: Map<u32, ()> = Map::default();
        writers
            .extend(reads.iter().filter(|read| read.is_written).map(|one| (one.transaction, ())));
        let mut bases: Vec<(usize, u32)> = placed
            .iter()
            .filter(|(reader, _)| writers.contains_key(reader))
            .map(|(reader, version)| (*version, *reader))
            .collect();
        bases.sort_unstable();
        bases.dedup();
        for same in bases.chunk_by(|one, next| one.0 == next.0) {
            self.evidence
                .see_lost_updates(same, || format!("list {}", self.history.key(self.key).1));
        }
    }
}

/// For each place, the owner of the first element from there on that has one.
fn next_owners(owners: &[Option<u32>]) -> Vec<Option<u32>> {
    let mut next = vec![None; owners.len()];
    let mut later = None;
    for (at, owner) in owners.iter().enumerate().rev() {
        later = owner.or(later);
        next[at] = later;
    }
    next
}

/// A list as a person reads it; of a long one, its end.
pub(crate) fn shown(elements: &[i64]) -> String {
    const MOST: usize = 8;
    let (dots, tail) = match elements.len().checked_sub(MOST) {
        Some(cut) if cut > 0 => ("… ", &elements[cut..]),
        _ => ("", elements),
    };
    let words: Vec<String> = tail.iter().map(i64::to_string).collect();
    format!("[{dots}{}]", words.join(" "))
}
