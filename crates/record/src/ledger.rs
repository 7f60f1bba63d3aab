//! The ledger: what clients know of every write, and the check of a database against it.
//!
//! A client runs its transactions strictly one after another and writes into the database who it
//! is, a sequence number, and a value of a hash chain. Beside the database, in a file, it notes that
//! it intends to run the transaction before anything of it is sent, and how it ended when it has
//! heard. Whatever happens to the servers in between, the rows that are there afterwards must be
//! ones that the clients account for.
//!
//! Reading order: [`LedgerEntry`] is one line of the file, [`HashChain`] makes the values, [`Ledger`] is what
//! the files of a load say, [`check`] compares it with [`LedgerRows`] and gives [`LedgerFindings`].
//!
//! Limits: a transaction is what stands between the intent and the outcome; a script that commits
//! in the middle of it cannot be held to all or nothing. The chain finds what was changed by
//! accident, not from a writer who can compute it, too.

mod chain;
mod check;
mod cover;
mod entry;
mod findings;
mod givers;
mod history;
mod limits;
mod look;
mod restored;
mod seen;

pub use chain::HashChain;
pub use check::{LedgerRow, LedgerRows, check, check_unless};
pub use cover::{CommitCover, UncoveredCommits};
pub use entry::{LedgerEntry, LedgerKnowledge, LedgerWrite, ReadRow, header_line};
pub use findings::{LedgerAnomaly, LedgerExample, LedgerFindings};
pub use givers::{SILENCE_NS_MAX, SplitAcknowledgements};
pub use history::{Ledger, LedgerOutcome, LedgerTransaction, SUFFIX};
pub use limits::{ASSUMES, NEVER_LOOKS_AT};
pub use look::{AcknowledgingServer, ServerLook};
pub use restored::{BoundedMoment, RestoredFindings, UndecidedTransaction, check_restored};
pub use seen::check_seen;

#[cfg(test)]
mod tests;
