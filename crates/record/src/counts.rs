//! Counts of transactions by the way they ended.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Errors by SQLSTATE (five characters; `08006` also stands for a connection that the operating
/// system closed).
pub type SqlStateCounts = BTreeMap<String, u64>;

/// Counts of one workload's transactions by the way they ended, over the span that the holder
/// names.
///
/// The classes are pgbench's: `transactions` are the successful ones; `skipped`, and the three
/// kinds of failure, are not among them. A transaction that fails when time is over, so that it is
/// not tried again, is in none of them; its errors are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransactionCounts {
    /// Transactions that ended well.
    pub transactions: u64,
    /// Transactions never started because they were already later than the latency limit.
    pub skipped: u64,
    /// Transactions that were retried at least once, whatever became of them.
    pub retried: u64,
    /// Retries in all.
    pub retries: u64,
    /// Transactions given up after a serialization failure (40001).
    pub serialization_failures: u64,
    /// Transactions given up after a deadlock (40P01).
    pub deadlock_failures: u64,
    /// Transactions given up after any other error.
    pub other_failures: u64,
    /// Successful transactions over the latency limit.
    pub late: u64,
    /// Successful transactions that ended after their deadline; 0 where the workload has none.
    #[serde(default)]
    pub missed: u64,
    /// Connections lost and made again.
    pub reconnects: u64,
    /// Clients that gave up for good.
    pub aborted_clients: u64,
    /// Every error that the server or the network gave, by SQLSTATE, retried ones included.
    pub errors: SqlStateCounts,
}

impl TransactionCounts {
    /// Transactions that ended well within their deadline; without a deadline, all that ended well.
    pub fn good(&self) -> u64 {
        self.transactions.saturating_sub(self.missed)
    }

    /// Transactions that ended in failure.
    pub fn failed(&self) -> u64 {
        self.serialization_failures + self.deadlock_failures + self.other_failures
    }

    /// True if all of them fit into sums: no load of centuries counts further.
    pub(crate) fn are_sound(&self) -> bool {
        let Self { transactions, skipped, retried, retries, late, reconnects, .. } = self;
        let Self { serialization_failures, deadlock_failures, other_failures, .. } = self;
        let Self { aborted_clients, errors, missed, .. } = self;
        let failures = [serialization_failures, deadlock_failures, other_failures, missed];
        let others = [transactions, skipped, retried, retries, late, reconnects, aborted_clients];
        failures.into_iter().chain(others).chain(errors.values()).all(|count| *count <= COUNT_MAX)
    }

    /// Adds the counts of another lane, second or generator.
    pub fn add(&mut self, other: &TransactionCounts) {
        self.transactions += other.transactions;
        self.skipped += other.skipped;
        self.retried += other.retried;
        self.retries += other.retries;
        self.serialization_failures += other.serialization_failures;
        self.deadlock_failures += other.deadlock_failures;
        self.other_failures += other.other_failures;
        self.late += other.late;
        self.missed += other.missed;
        self.reconnects += other.reconnects;
        self.aborted_clients += other.aborted_clients;
        for (state, n) in &other.errors {
            *self.errors.entry(state.clone()).or_default() += n;
        }
    }
}

/// 17 · 10¹², of which half a million can be added.
pub(crate) const COUNT_MAX: u64 = 1 << 44;
