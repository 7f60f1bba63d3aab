//! One finished stretch of the clients' time.

use serde::{Deserialize, Serialize};
use stats::Latency;

use crate::{Counts, Moment};

/// Counts of one workload's clients in one interval, usually a second: all lanes and generators
/// merged. A transaction belongs to the interval in which it ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Time at which it began.
    pub start: Moment,
    /// Length in nanoseconds; the last one of a window may be short.
    pub length_ns: u64,
    /// Index of the workload within its scenario.
    pub workload: usize,
    /// Transactions by the way they ended.
    pub counts: Counts,
    /// Latency of the successful transactions: in an open loop from the moment at which they were
    /// due, in a closed loop from the first send.
    #[serde(with = "crate::histogram_text")]
    pub latency: Latency,
    /// Open loop: the same from the first send.
    #[serde(with = "crate::histogram_text")]
    pub service: Latency,
    /// Open loop: how far behind schedule transactions started.
    #[serde(with = "crate::histogram_text")]
    pub lag: Latency,
    /// Open loop: transactions due but not started when the interval ended.
    pub backlog: u64,
}
