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
//! and gives [`Findings`] with the smallest [`Witness`] of each [`Anomaly`]; a [`Level`] says which
//! anomalies it forbids. [`export`] writes a history as other checkers read it.
//!
//! Limits: dependencies on predicates (phantoms) are not inferred; of registers only the versions whose
//! order a transaction shows by reading before it writes are ordered.

mod anomaly;
mod check;
mod components;
mod cycles;
mod evidence;
mod fault;
mod history;
mod index;
mod level;
mod lists;
mod orders;
mod registers;
mod search;
mod sessions;
mod staleness;
mod witness;

pub mod export;
pub mod file;

pub use anomaly::{Anomaly, Cycle, Order};
pub use check::{Counted, Findings, Judgement, check};
pub use fault::{Fault, Wrong};
pub use history::{
    Group, History, Key, Kind, List, Operation, Outcome, Session, TooLong, Transaction,
};
pub use level::{Level, NotALevel};
pub use staleness::Staleness;
pub use witness::{Link, Seen, Witness};
