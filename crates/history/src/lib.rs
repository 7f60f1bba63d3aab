//! Histories of transactions, and what isolation they show.
//!
//! Clients note what they wrote and what they read. From that alone [`check`] infers which transaction
//! must have come before which: it wrote a version before the other one (ww), the other one read what
//! it wrote (wr), it read what the other one overwrote (rw). A cycle of such dependencies has no order
//! in which the transactions can have run one by one; the kinds of its dependencies name the anomaly
//! and the isolation level that forbids it. After A. Adya ("Weak Consistency", 1999), A. Cerone
//! and A. Gotsman ("Analysing Snapshot Isolation", 2018) and K. Kingsbury and P. Alvaro ("Elle", 2020).
//!
//! Reading order: [`History`] holds transactions, [`file`] reads and writes them, [`check`] judges them
//! and gives [`HistoryFindings`] with the smallest [`AnomalyWitness`] of each [`IsolationAnomaly`]; a [`IsolationLevel`] says which
//! anomalies it forbids. [`export`] writes a history as other checkers read it.
//!
//! That nothing was found is never enough for "holds": something must have been written and read, nothing
//! may be missing ([`LevelDoubt`]), and where nothing tells the order of versions, one must be found that shows
//! the level. [`ASSUMES`] and [`NEVER_LOOKS_AT`] say what no judgement can show.

mod anomaly;
mod check;
mod components;
mod cycles;
mod doubt;
mod evidence;
mod fate;
mod fault;
mod history;
mod index;
mod level;
mod lists;
mod orders;
mod proof;
mod registers;
mod scope;
mod search;
mod sessions;
mod staleness;
mod uses_in_time;
mod witness;

pub mod export;
pub mod file;

pub use anomaly::{CycleKind, CycleOrder, IsolationAnomaly};
pub use check::{HistoryFindings, LevelJudgement, OutcomeCounts, check};
pub use doubt::{CLOCK_BOUND_MAX_NS, LevelDoubt, READ_PERCENT_LEAST};
pub use evidence::ObservedWrites;
pub use fault::{FaultKind, HistoryFault};
pub use history::{
    ElementList, History, HistorySession, HistoryTransaction, HistoryWorkload, Key, ObjectKind,
    Operation, TooLong, TransactionOutcome,
};
pub use level::{IsolationLevel, NotALevel};
pub use scope::{ASSUMES, NEVER_LOOKS_AT};
pub use staleness::ReadStaleness;
pub use witness::{AnomalyWitness, CycleLink, WitnessTransaction};
