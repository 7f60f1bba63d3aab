//! One finished stretch of the clients' time.

use serde::{Deserialize, Serialize};
use stats::{IntervalSummary, LatencyHistogram};

use crate::{MeasuredWindow, Moment, TransactionCounts};

/// Counts of one workload's clients in one interval, usually a second: all lanes and generators
/// merged. A transaction belongs to the interval in which it ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadInterval {
    /// Time at which it began.
    pub start: Moment,
    /// Length in nanoseconds; the last one of a window may be short.
    pub length_ns: u64,
    /// Index of the workload within its scenario.
    pub workload: usize,
    /// Transactions by the way they ended.
    pub counts: TransactionCounts,
    /// Latency of the successful transactions: in an open loop from the moment at which they were
    /// due, in a closed loop from the first send.
    #[serde(with = "crate::histogram_text")]
    pub latency: LatencyHistogram,
    /// Open loop: the same from the first send.
    #[serde(with = "crate::histogram_text")]
    pub service: LatencyHistogram,
    /// Open loop: how far behind schedule transactions started.
    #[serde(with = "crate::histogram_text")]
    pub lag: LatencyHistogram,
    /// Open loop: transactions due but not started when the interval ended.
    pub backlog: u64,
    /// Closed loop in blocks: how long a client took from one end to the next.
    #[serde(default, skip_serializing_if = "BlockCycles::is_empty")]
    pub cycles: BlockCycles,
}

/// The intervals of a window, the workloads of each together, as [`stats::steady_state`] judges them. `intervals` are in the
/// order of time. Of an interval that the window's end cuts short, half or more is enough: it counts for a whole one.
#[must_use]
pub fn summaries(
    intervals: &[LoadInterval],
    window: MeasuredWindow,
    interval_ms: u64,
) -> Vec<IntervalSummary> {
    let whole_ns = interval_ms * 1_000_000;
    let mut summaries: Vec<IntervalSummary> = Vec::new();
    let mut last = None;
    for interval in intervals {
        let is_inside = interval.start >= window.open && interval.start < window.close;
        if !is_inside || interval.length_ns * 2 < whole_ns {
            continue;
        }
        let whole = whole_ns as f64 / interval.length_ns as f64;
        let own = IntervalSummary {
            transactions: interval.counts.transactions as f64 * whole,
            latency_sum_ns: interval.latency.sum_ns() as f64 * whole,
            backlog: interval.backlog as f64,
        };
        match summaries.last_mut() {
            Some(sum) if last == Some(interval.start) => {
                sum.transactions += own.transactions;
                sum.latency_sum_ns += own.latency_sum_ns;
                sum.backlog += own.backlog;
            }
            _ => summaries.push(own),
        }
        last = Some(interval.start);
    }
    summaries
}

/// Cycles of clients in blocks: from the end of a transaction to the end of the next one.
///
/// All clients begin at once with a block and stop at once with it. Transactions in a block's length are
/// therefore more than a server would do in as much time, by up to one for each client; cycles are not
/// longer or shorter for that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockCycles {
    /// Transactions that were a client's first in a block: no cycle ends with them.
    pub first: u64,
    /// Cycles that ended well.
    pub ended: u64,
    /// Their time, and that of those that failed, in nanoseconds.
    pub ns: u64,
    /// How many of these took [`BlockCycles::LONG_NS`] or longer.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub long: u64,
    /// Their time, in nanoseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub long_ns: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl BlockCycles {
    /// From here on, a cycle may be a standstill of the server.
    pub const LONG_NS: u64 = 1_000_000_000;

    /// Adds a cycle that ended after so many nanoseconds, well or not.
    pub fn note(&mut self, ns: u64, is_good: bool) {
        self.ended += u64::from(is_good);
        self.ns += ns;
        if ns >= BlockCycles::LONG_NS {
            self.long += 1;
            self.long_ns += ns;
        }
    }

    /// True if there were no blocks, or no transactions in them.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == BlockCycles::default()
    }

    /// Adds others.
    pub fn add(&mut self, other: &BlockCycles) {
        self.first += other.first;
        self.ended += other.ended;
        self.ns += other.ns;
        self.long += other.long;
        self.long_ns += other.long_ns;
    }
}
