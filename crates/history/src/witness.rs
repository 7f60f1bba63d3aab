//! An anomaly as a person reads it: the transactions, what they read and wrote, and when.

use std::fmt;

use crate::evidence::{AnomalySighting, Dependency};
use crate::lists::shown;
use crate::search::CycleStep;
use crate::{
    History, HistoryWorkload, IsolationAnomaly, ObjectKind, Operation, TransactionOutcome,
};

/// The transactions that show an anomaly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnomalyWitness {
    /// The anomaly that they show.
    pub anomaly: IsolationAnomaly,
    /// The transactions, in the order of their names: T1, T2, …
    pub transactions: Vec<WitnessTransaction>,
    /// The dependencies of a cycle, from each transaction to the next one; none of other anomalies.
    pub links: Vec<CycleLink>,
    /// The explanation of an anomaly that is no cycle.
    pub why: String,
    /// Of a cycle T1 -rw-> T2 -wr-> T3 -rw-> T1 in which T3 only reads: T3, as an index. It is the anomaly of a
    /// read-only transaction (A. Fekete, E. O'Neil and P. O'Neil, 2004).
    pub reader: Option<usize>,
}

/// A transaction of a witness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WitnessTransaction {
    /// The client.
    pub client: u32,
    /// Number among its client's transactions.
    pub number: u64,
    /// The process of the server that ran it; 0 for none that is known.
    pub backend: i32,
    /// The server, the isolation level and the workload.
    pub group: HistoryWorkload,
    /// Time at which it began, in nanoseconds since the start of the run.
    pub begun: u64,
    /// Time at which its client heard of its end; none if it did not.
    pub ended: Option<u64>,
    /// The outcome.
    pub outcome: TransactionOutcome,
    /// The operations, in their order.
    pub operations: Vec<String>,
}

/// A dependency of a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CycleLink {
    /// The transaction that comes first, as an index.
    pub from: usize,
    /// The one that comes after it.
    pub to: usize,
    /// The short name: ww, wr, rw, process, realtime.
    pub name: &'static str,
    /// The reason.
    pub why: String,
}

/// Operations shown of one transaction.
const OPERATIONS_MAX: usize = 12;

impl AnomalyWitness {
    pub(crate) fn of_sighting(history: &History, sighting: &AnomalySighting) -> AnomalyWitness {
        let mut transactions = sighting.transactions.clone();
        transactions.dedup();
        let mut why = sighting.why.clone();
        for at in 0..transactions.len() {
            why = why.replace(&format!("{{{at}}}"), &format!("T{}", at + 1));
        }
        AnomalyWitness {
            anomaly: sighting.anomaly,
            transactions: transactions.iter().map(|one| seen(history, *one)).collect(),
            links: Vec::new(),
            why,
            reader: None,
        }
    }

    pub(crate) fn of_cycle(
        history: &History,
        anomaly: IsolationAnomaly,
        cycle: &[CycleStep],
    ) -> AnomalyWitness {
        // Time runs from the first name on.
        let begun = |step: &CycleStep| history.transactions()[step.transaction as usize].begun;
        let first =
            (0..cycle.len()).min_by_key(|at| begun(&cycle[*at])).expect("a cycle has a step");
        let mut cycle = cycle.to_vec();
        cycle.rotate_left(first);
        let links = (0..cycle.len()).map(|from| {
            let to = (from + 1) % cycle.len();
            let why = reason(history, cycle[from], cycle[to].transaction, from, to);
            CycleLink { from, to, name: cycle[from].dependency.name(), why }
        });
        AnomalyWitness {
            anomaly,
            links: links.collect(),
            transactions: cycle.iter().map(|step| seen(history, step.transaction)).collect(),
            why: String::new(),
            reader: reader(history, &cycle),
        }
    }
}

/// The transaction that only reads, if a cycle has the shape of its anomaly.
fn reader(history: &History, cycle: &[CycleStep]) -> Option<usize> {
    let read = cycle.iter().position(|step| step.dependency == Dependency::Read)?;
    let reader = (read + 1) % cycle.len();
    let is_anti = |at: usize| cycle[at % cycle.len()].dependency == Dependency::Anti;
    let transaction = &history.transactions()[cycle[reader].transaction as usize];
    let is_write = |operation: &Operation| {
        matches!(operation, Operation::Append { .. } | Operation::Write { .. })
    };
    let only_reads = !history.operations(transaction).iter().any(is_write);
    (cycle.len() == 3 && is_anti(read + 1) && is_anti(read + 2) && only_reads).then_some(reader)
}

fn seen(history: &History, number: u32) -> WitnessTransaction {
    let transaction = &history.transactions()[number as usize];
    let session = history.session(transaction);
    let operations = history.operations(transaction);
    let mut words: Vec<String> =
        operations.iter().take(OPERATIONS_MAX).map(|one| in_words(history, one)).collect();
    if let Some(more) = operations.len().checked_sub(OPERATIONS_MAX).filter(|more| *more > 0) {
        words.push(format!("and {more} more"));
    }
    WitnessTransaction {
        client: session.client,
        number: transaction.number,
        backend: session.backend,
        group: history.group(transaction).clone(),
        begun: transaction.begun,
        ended: Some(transaction.ended).filter(|ended| *ended != u64::MAX),
        outcome: transaction.outcome,
        operations: words,
    }
}

fn in_words(history: &History, operation: &Operation) -> String {
    let name = |key| history.key(key).1;
    match *operation {
        Operation::Append { key, value } => format!("append {value} to {}", name(key)),
        Operation::ReadList { key, list } => {
            format!("read {} = {}", name(key), shown(history.elements(list)))
        }
        Operation::Write { key, value } => format!("write {} = {value}", name(key)),
        Operation::Read { key, value } => format!("read {} = {value}", name(key)),
        Operation::ReadNothing { key } => format!("read {} = nothing", name(key)),
        Operation::ReadAccounts { total, balances } => {
            let sum = sum(history.elements(balances));
            format!("read all balances: {sum} in all, {total} expected")
        }
    }
}

pub(crate) fn sum(balances: &[i64]) -> i128 {
    balances.iter().map(|balance| i128::from(*balance)).sum()
}

/// Why one transaction comes before the next one of its cycle.
fn reason(history: &History, step: CycleStep, next: u32, from: usize, to: usize) -> String {
    let (kind, key) = match step.dependency {
        Dependency::Process | Dependency::Realtime => (ObjectKind::List, 0),
        _ => history.key(step.key),
    };
    let what = match kind {
        ObjectKind::List => format!("list {key}"),
        ObjectKind::Register => format!("register {key}"),
    };
    let [one, other] = [from + 1, to + 1].map(|number| format!("T{number}"));
    let [mine, theirs] = [step.transaction, next].map(|number| {
        let transaction = &history.transactions()[number as usize];
        history
            .operations(transaction)
            .iter()
            .filter(|operation| operation.key() == Some(step.key))
            .collect::<Vec<_>>()
    });
    let written = |operations: &[&Operation]| {
        let values: Vec<i64> = operations
            .iter()
            .filter_map(|operation| match operation {
                Operation::Append { value, .. } | Operation::Write { value, .. } => Some(*value),
                _ => None,
            })
            .collect();
        shown(&values)
    };
    let read = |operations: &[&Operation]| {
        let read = operations.iter().find_map(|operation| match **operation {
            Operation::ReadList { list, .. } => Some(shown(history.elements(list))),
            Operation::Read { value, .. } => Some(value.to_string()),
            Operation::ReadNothing { .. } => Some("nothing".to_owned()),
            _ => None,
        });
        read.expect("a dependency on a read is one of a transaction that read the key")
    };
    match step.dependency {
        Dependency::Write => {
            let (before, after) = (written(&mine), written(&theirs));
            format!("{one} wrote {before} to {what}, and {other} wrote {after} after it")
        }
        Dependency::Read => {
            let (written, read) = (written(&mine), read(&theirs));
            format!("{other} read {read} in {what}, of which {one} wrote {written}")
        }
        Dependency::Anti => {
            let (read, written) = (read(&mine), written(&theirs));
            format!("{one} read {read} in {what}, which lacks {written} of {other}")
        }
        Dependency::Process => format!("the same client ran {one} before {other}"),
        Dependency::Realtime => {
            let [ended, begun] = [
                history.transactions()[step.transaction as usize].ended,
                history.transactions()[next as usize].begun,
            ];
            let ms = begun.saturating_sub(ended) as f64 / 1e6;
            format!("{one} had ended {ms:.3} ms before {other} began")
        }
    }
}

impl Dependency {
    fn name(self) -> &'static str {
        match self {
            Dependency::Write => "ww",
            Dependency::Read => "wr",
            Dependency::Anti => "rw",
            Dependency::Process => "process",
            Dependency::Realtime => "realtime",
        }
    }
}

impl fmt::Display for WitnessTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WitnessTransaction {
            client,
            number,
            backend,
            group,
            begun,
            ended,
            outcome,
            operations,
        } = self;
        write!(f, "client {client} transaction {number} on {}", group.server)?;
        if *backend != 0 {
            write!(f, " (backend {backend})")?;
        }
        write!(f, ", {}", seconds(*begun))?;
        match ended {
            Some(ended) => write!(f, " to {}", seconds(*ended))?,
            None => f.write_str(" on")?,
        }
        write!(f, ", {outcome}: {}", operations.join(", "))
    }
}

fn seconds(ns: u64) -> String {
    format!("{}.{:06} s", ns / 1_000_000_000, ns / 1_000 % 1_000_000)
}

impl fmt::Display for AnomalyWitness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.anomaly, self.anomaly.meaning())?;
        for (number, transaction) in (1..).zip(&self.transactions) {
            write!(f, "\n  T{number} is {transaction}")?;
        }
        for CycleLink { from, to, name, why } in &self.links {
            write!(f, "\n  T{} -{name}-> T{}: {why}", from + 1, to + 1)?;
        }
        match self.why.as_str() {
            "" => Ok(()),
            why => write!(f, "\n  {why}"),
        }
    }
}
