//! A history: what clients did to a database, and what they saw.

use std::collections::HashMap;
use std::fmt;

use crate::fault::HistoryFault;

/// A workload of which clients keep a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryWorkload {
    /// The server that its clients speak to.
    pub server: String,
    /// The isolation level that they ask for.
    pub isolation: String,
    /// The name.
    pub workload: String,
}

/// A connection of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistorySession {
    /// The client.
    pub client: u32,
    /// The index of its workload.
    pub group: u32,
    /// The process of the server that it spoke to, as the server or a pooler told; 0 for none.
    pub backend: i32,
    /// The index of the file that tells of it.
    pub file: u32,
}

/// Outcome of a transaction, as far as its client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionOutcome {
    /// It was acknowledged.
    Committed,
    /// It has not happened.
    Failed,
    /// Nothing was heard of it.
    Unknown,
}

/// A transaction of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryTransaction {
    /// The index of the session that it ran in.
    pub session: u32,
    /// The index of its first operation.
    pub first: u32,
    /// The number of its operations.
    pub operations: u32,
    /// The outcome.
    pub outcome: TransactionOutcome,
    /// The line at which its file tells of its beginning, from 1; 0 for none.
    pub line: u32,
    /// Number among its client's transactions, from 1.
    pub number: u64,
    /// Time at which its client was about to send it, in nanoseconds since the start of the run.
    pub begun: u64,
    /// Time at which its client heard of its end; the largest number if it did not.
    pub ended: u64,
    /// Nanoseconds by which the two times may differ from those of the clock of the run; 0 where a
    /// client's clock is that clock.
    pub bound: u64,
}

impl HistoryTransaction {
    /// The earliest time on the clock of the run at which it may have begun.
    pub(crate) fn earliest(&self) -> u64 {
        self.begun.saturating_sub(self.bound)
    }

    /// The latest time on the clock of the run at which its client may have heard of its end.
    pub(crate) fn latest(&self) -> u64 {
        self.ended.saturating_add(self.bound)
    }
}

/// A key of a list or of a register, as an index into [`History::key`].
pub type Key = u32;

/// One operation of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Operation {
    /// Append an element to a list.
    Append { key: Key, value: i64 },
    /// Read a list.
    ReadList { key: Key, list: ElementList },
    /// Write a register.
    Write { key: Key, value: i64 },
    /// Read a register.
    Read { key: Key, value: i64 },
    /// Read a register that has no value.
    ReadNothing { key: Key },
    /// Read the balances of all accounts at once.
    ReadAccounts {
        /// The sum that all transfers keep.
        total: i64,
        balances: ElementList,
    },
}

/// Elements that were read: [`History::elements`] has them.
///
/// Reads of one list are mostly prefixes of each other. These are kept once, as a trunk of which each
/// read is a beginning: many reads of one long list need no more room than the longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElementList {
    trunk: u32,
    start: u32,
    length: u32,
}

impl ElementList {
    /// The first elements of it.
    pub(crate) fn prefix(self, length: usize) -> ElementList {
        ElementList { length: self.length.min(length as u32), ..self }
    }

    /// True if it is known to begin with the other one, because both are parts of one trunk.
    pub(crate) fn extends(self, other: ElementList) -> bool {
        (self.trunk, self.start) == (other.trunk, other.start) && self.length >= other.length
    }

    /// The trunk that it is a beginning of.
    pub(crate) fn trunk(self) -> u32 {
        self.trunk
    }

    /// The number of its elements.
    pub fn len(self) -> usize {
        self.length as usize
    }

    /// True if it has none.
    pub fn is_empty(self) -> bool {
        self.length == 0
    }
}

/// Kind of object that a key names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ObjectKind {
    /// A list.
    List,
    /// A register.
    Register,
}

/// Transactions with their operations, and what was wrong with what told of them.
#[derive(Clone, Debug, Default)]
pub struct History {
    files: Vec<String>,
    groups: Vec<HistoryWorkload>,
    sessions: Vec<HistorySession>,
    transactions: Vec<HistoryTransaction>,
    operations: Vec<Operation>,
    /// Elements of lists that are no versions of one another.
    single: Vec<i64>,
    trunks: Vec<Vec<i64>>,
    /// The trunk of each key to which a read was added last.
    newest: Vec<Option<u32>>,
    /// The number of files that the load wrote, as one of them tells.
    files_written: Option<u64>,
    keys: Vec<(ObjectKind, i64)>,
    numbers: HashMap<(ObjectKind, i64), Key>,
    faults: Vec<HistoryFault>,
}

/// More than a history can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it has more than 4294967295 {0}; split the history by its keys")]
pub struct TooLong(pub(crate) &'static str);

impl History {
    /// The workloads.
    pub fn groups(&self) -> &[HistoryWorkload] {
        &self.groups
    }

    /// The connections.
    pub fn sessions(&self) -> &[HistorySession] {
        &self.sessions
    }

    /// The transactions.
    pub fn transactions(&self) -> &[HistoryTransaction] {
        &self.transactions
    }

    /// Gives all moments a bound of so many nanoseconds at least: a clock was found out later to have been that far off.
    pub fn widen_bounds(&mut self, least_ns: u64) {
        for transaction in &mut self.transactions {
            transaction.bound = transaction.bound.max(least_ns);
        }
    }

    /// Faults of the files that it was read from.
    pub fn faults(&self) -> &[HistoryFault] {
        &self.faults
    }

    /// All operations, those of each transaction side by side.
    pub(crate) fn all_operations(&self) -> &[Operation] {
        &self.operations
    }

    /// The operations of a transaction.
    pub fn operations(&self, transaction: &HistoryTransaction) -> &[Operation] {
        let first = transaction.first as usize;
        &self.operations[first..first + transaction.operations as usize]
    }

    /// Elements that were read.
    pub fn elements(&self, list: ElementList) -> &[i64] {
        let all = self.trunks.get(list.trunk as usize).unwrap_or(&self.single);
        &all[list.start as usize..][..list.length as usize]
    }

    /// The number of elements that are kept of all that were read.
    pub fn elements_kept(&self) -> usize {
        self.single.len() + self.trunks.iter().map(Vec::len).sum::<usize>()
    }

    /// The number of trunks of lists.
    pub(crate) fn trunks(&self) -> usize {
        self.trunks.len()
    }

    /// The kind of a key, and its name in the database.
    pub fn key(&self, key: Key) -> (ObjectKind, i64) {
        self.keys[key as usize]
    }

    /// The number of keys.
    pub fn keys(&self) -> usize {
        self.keys.len()
    }

    /// The session of a transaction.
    pub fn session(&self, transaction: &HistoryTransaction) -> &HistorySession {
        &self.sessions[transaction.session as usize]
    }

    /// The workload of a transaction.
    pub fn group(&self, transaction: &HistoryTransaction) -> &HistoryWorkload {
        &self.groups[self.session(transaction).group as usize]
    }

    /// The names of the files.
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// Adds a file; its index.
    pub fn add_file(&mut self, name: &str) -> u32 {
        self.files.push(name.to_owned());
        (self.files.len() - 1) as u32
    }

    /// The file and the line that tell of the beginning of a transaction.
    pub fn place(&self, transaction: &HistoryTransaction) -> (&str, u64) {
        let file = self.files.get(self.session(transaction).file as usize);
        (file.map_or("", String::as_str), u64::from(transaction.line))
    }

    /// Adds a workload, unless it is there; its index.
    pub fn add_group(&mut self, group: HistoryWorkload) -> u32 {
        let known = self.groups.iter().position(|other| *other == group);
        known.unwrap_or_else(|| {
            self.groups.push(group);
            self.groups.len() - 1
        }) as u32
    }

    /// Adds a connection; its index.
    pub fn add_session(&mut self, session: HistorySession) -> u32 {
        self.sessions.push(session);
        (self.sessions.len() - 1) as u32
    }

    /// The index of a key.
    pub fn intern(&mut self, kind: ObjectKind, name: i64) -> Key {
        *self.numbers.entry((kind, name)).or_insert_with(|| {
            self.keys.push((kind, name));
            (self.keys.len() - 1) as Key
        })
    }

    /// Keeps elements that are no version of a list.
    pub fn add_list(&mut self, elements: &[i64]) -> Result<ElementList, TooLong> {
        let start = u32::try_from(self.single.len()).map_err(|_| TooLong("elements read"))?;
        let length = u32::try_from(elements.len()).map_err(|_| TooLong("elements read"))?;
        self.single.extend_from_slice(elements);
        Ok(ElementList { trunk: u32::MAX, start, length })
    }

    /// Keeps a read of a list: the first `common` elements of an earlier one of the same key, and then
    /// `rest`.
    pub fn add_read(
        &mut self,
        key: Key,
        earlier: Option<ElementList>,
        common: usize,
        rest: &[i64],
    ) -> Result<ElementList, TooLong> {
        if self.newest.len() <= key as usize {
            self.newest.resize(key as usize + 1, None);
        }
        let length =
            u32::try_from(common + rest.len()).map_err(|_| TooLong("elements of a list"))?;
        let earlier = earlier.filter(|_| common > 0).map(|list| list.trunk);
        if let Some(trunk) = earlier.or(self.newest[key as usize]) {
            let all = &mut self.trunks[trunk as usize];
            let same =
                all[common..].iter().zip(rest).take_while(|(one, other)| one == other).count();
            if same == rest.len() || common + same == all.len() {
                all.extend_from_slice(&rest[same..]);
                return Ok(ElementList { trunk, start: 0, length });
            }
        }
        let mut all = match earlier {
            Some(trunk) => self.trunks[trunk as usize][..common].to_vec(),
            None => Vec::new(),
        };
        all.extend_from_slice(rest);
        let trunk = u32::try_from(self.trunks.len()).map_err(|_| TooLong("lists"))?;
        self.trunks.push(all);
        self.newest[key as usize] = Some(trunk);
        Ok(ElementList { trunk, start: 0, length })
    }

    /// Notes how many files the load wrote.
    pub fn expect_files(&mut self, files: u64) {
        self.files_written = Some(files);
    }

    /// The number of files that the load wrote; none where no file tells.
    pub fn files_written(&self) -> Option<u64> {
        self.files_written
    }

    /// True if lines or files are missing that may have told of writes: a value that nobody is known
    /// to have written may have been written all the same.
    pub fn lacks_lines(&self) -> bool {
        self.faults.iter().any(|fault| fault.what.loses_lines())
    }

    /// Adds a transaction with its operations; what `transaction` says of their place is ignored.
    pub fn add(
        &mut self,
        transaction: HistoryTransaction,
        operations: &[Operation],
    ) -> Result<(), TooLong> {
        let room = u32::MAX as usize;
        if self.operations.len() + operations.len() > room || self.transactions.len() >= room {
            return Err(TooLong("operations"));
        }
        let first = self.operations.len() as u32;
        let transaction =
            HistoryTransaction { first, operations: operations.len() as u32, ..transaction };
        self.operations.extend_from_slice(operations);
        self.transactions.push(transaction);
        Ok(())
    }

    /// Notes what was wrong.
    pub fn blame(&mut self, fault: HistoryFault) {
        self.faults.push(fault);
    }
}

impl Operation {
    /// The key, where it has one.
    pub fn key(&self) -> Option<Key> {
        match *self {
            Operation::Append { key, .. }
            | Operation::ReadList { key, .. }
            | Operation::Write { key, .. }
            | Operation::Read { key, .. }
            | Operation::ReadNothing { key } => Some(key),
            Operation::ReadAccounts { .. } => None,
        }
    }
}

impl fmt::Display for TransactionOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TransactionOutcome::Committed => "committed",
            TransactionOutcome::Failed => "failed",
            TransactionOutcome::Unknown => "unknown",
        })
    }
}
