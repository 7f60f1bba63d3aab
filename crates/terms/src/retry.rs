//! Terms of retries: after which errors, how long after them, and until when.

use serde::{Deserialize, Serialize};

/// The rule by which a client tries a failed transaction again, in place of pgbench's own. Each try is a
/// transaction of its own in a ledger and in a history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetryPolicy {
    /// The pause before the next try; none for no further try.
    pub pause: Option<RetryPause>,
    /// SQLSTATEs after which it is tried again, or their first characters: `53` is all of class 53.
    pub errors: Vec<String>,
    /// The end of all tries.
    pub give_up: GiveUp,
}

/// The pause between the failure of a transaction and its next try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryPause {
    /// Always as long, in microseconds.
    Fixed(u64),
    /// Any time between 0 and a bound that doubles with each try, all equally likely ("full jitter": Brooker,
    /// Exponential Backoff And Jitter, 2015).
    Exponential {
        /// The first bound, in microseconds.
        first_us: u64,
        /// The largest bound, in microseconds.
        most_us: u64,
    },
}

/// The end of all tries of a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GiveUp {
    /// Tries at most; none for no limit.
    pub tries: Option<u32>,
    /// Time since the transaction was due after which no try of it begins, the first one included; microseconds.
    pub after_us: Option<u64>,
}
