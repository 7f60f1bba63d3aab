//! Reasons for which a level cannot be said to hold, although nothing that it forbids was found.

use std::fmt;

use crate::evidence::ObservedWrites;

/// The least share of the writes that another transaction must have read, in percent. With fewer, nearly
/// all of what a database may have done wrong was seen by nobody.
pub const READ_PERCENT_LEAST: u64 = 10;

/// A bound of a clock, in nanoseconds, beyond which the moments of a transaction do not tell what came before it.
pub const CLOCK_BOUND_MAX_NS: u64 = 5_000_000;

/// A reason for which a level cannot be said to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelDoubt {
    /// No transaction was committed.
    NothingCommitted,
    /// Nothing that anybody wrote was read by another transaction.
    NothingRead {
        /// The writes of committed transactions.
        writes: u64,
    },
    /// Few of the writes were read by another transaction.
    FewRead {
        /// Those that were.
        read: u64,
        /// All of them.
        writes: u64,
    },
    /// All balances were read, and they were the same each time: no transfer was seen.
    NothingMoved,
    /// Only balances were read: they show their sum, and no order of transactions.
    OnlyBalances,
    /// Lines or files are missing, or a value was written twice.
    Incomplete,
    /// The clocks of clients are apart.
    ClocksApart,
    /// The clocks of more than a tenth of the transactions are not known well enough to tell which came before which.
    ClocksUnknown {
        /// The number of such transactions.
        transactions: u64,
    },
    /// Nothing tells the order of the versions of some keys, and none was found that shows the level.
    NoOrder {
        /// The number of such keys.
        keys: usize,
    },
}

impl ObservedWrites {
    /// The share of the writes that another transaction read. None without writes.
    pub fn read_share(&self) -> Option<f64> {
        (self.writes > 0).then(|| self.read as f64 / self.writes as f64)
    }

    /// Why too little was observed, if it was.
    pub(crate) fn doubt(&self, is_order_asked: bool) -> Option<LevelDoubt> {
        let ObservedWrites { writes, read, snapshots, snapshots_differ } = *self;
        match (writes, snapshots) {
            (0, 1..) if !snapshots_differ => Some(LevelDoubt::NothingMoved),
            (0, 1..) => is_order_asked.then_some(LevelDoubt::OnlyBalances),
            _ if read == 0 => Some(LevelDoubt::NothingRead { writes }),
            _ if read * 100 < writes * READ_PERCENT_LEAST => {
                Some(LevelDoubt::FewRead { read, writes })
            }
            _ => None,
        }
    }
}

impl fmt::Display for ObservedWrites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ObservedWrites { writes, read, snapshots, .. } = self;
        match self.read_share() {
            Some(share) => {
                let percent = share * 100.0;
                write!(f, "other transactions read {read} of {writes} writes ({percent:.0} %)")
            }
            None => write!(f, "no write was noted, and all balances were read {snapshots} times"),
        }
    }
}

impl fmt::Display for LevelDoubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LevelDoubt::NothingCommitted => f.write_str("no transaction was committed"),
            LevelDoubt::NothingRead { writes } => {
                write!(f, "no transaction read any of the {writes} writes of others")
            }
            LevelDoubt::FewRead { read, writes } => write!(
                f,
                "other transactions read {read} of {writes} writes, which is less than \
                 {READ_PERCENT_LEAST} %"
            ),
            LevelDoubt::NothingMoved => {
                f.write_str("all balances were the same in each read: no transfer was seen")
            }
            LevelDoubt::OnlyBalances => f.write_str(
                "only balances were read, which show their sum and no order of transactions",
            ),
            LevelDoubt::Incomplete => f.write_str(
                "not everything could be judged: lines or files are missing, or a value was \
                 written twice",
            ),
            LevelDoubt::ClocksApart => f.write_str("the clocks of the clients are apart"),
            LevelDoubt::ClocksUnknown { transactions } => write!(
                f,
                "the clocks of {transactions} transactions are not known within {} ms, so that little \
                 of their order in time was looked at",
                CLOCK_BOUND_MAX_NS / 1_000_000
            ),
            LevelDoubt::NoOrder { keys } => write!(
                f,
                "nothing tells the order of the versions of {keys} keys, and no order of them was \
                 found in which it holds"
            ),
        }
    }
}
