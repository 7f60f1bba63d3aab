//! The slowest transactions of a load, in bounded memory.

use serde::{Deserialize, Serialize};

/// A slow transaction. Times are nanoseconds since the run began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Fields", into = "Fields")]
pub struct SlowTransaction {
    /// Process id of its server session, as the server told it to the client.
    pub backend: i32,
    /// The moment at which it should have started.
    pub scheduled: u64,
    /// The moment at which it did.
    pub began: u64,
    /// The moment at which its last answer was read.
    pub ended: u64,
}

/// A [`SlowTransaction`] as a generator process hands it over: thousands of them, so without names.
type Fields = (i32, u64, u64, u64);

impl From<Fields> for SlowTransaction {
    fn from((backend, scheduled, began, ended): Fields) -> SlowTransaction {
        SlowTransaction { backend, scheduled, began, ended }
    }
}

impl From<SlowTransaction> for Fields {
    fn from(slow: SlowTransaction) -> Fields {
        (slow.backend, slow.scheduled, slow.began, slow.ended)
    }
}

impl SlowTransaction {
    /// The latency, from the moment at which it should have started.
    pub fn latency_ns(&self) -> u64 {
        self.ended.saturating_sub(self.scheduled)
    }
}

/// The slowest transactions of a workload: all those that took longer than [`SlowestTransactions::floor_ns`], which
/// rises when there are too many.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowestTransactions {
    kept: Vec<SlowTransaction>,
    floor_ns: u64,
}

/// Transactions of one lane that are kept: the slowest hundredth of a million and more.
const KEPT_MAX: usize = 1 << 14;

impl SlowestTransactions {
    /// Latency above which every transaction is kept. The lower half of those kept is dropped when
    /// their number reaches the limit, so this costs a comparison in most transactions.
    pub fn floor_ns(&self) -> u64 {
        self.floor_ns
    }

    /// The transactions, in no order.
    pub fn kept(&self) -> &[SlowTransaction] {
        &self.kept
    }

    /// Takes a transaction if it is slow.
    pub fn take(&mut self, slow: SlowTransaction) {
        if slow.latency_ns() <= self.floor_ns {
            return;
        }
        self.kept.push(slow);
        if self.kept.len() >= KEPT_MAX {
            let middle = self.kept.len() / 2;
            self.kept.select_nth_unstable_by_key(middle, SlowTransaction::latency_ns);
            self.raise(self.kept[middle].latency_ns());
        }
    }

    /// Adds those of another lane. Above the higher floor both are whole.
    pub fn merge(&mut self, other: SlowestTransactions) {
        self.kept.extend(other.kept);
        self.raise(self.floor_ns.max(other.floor_ns));
    }

    /// Those that ended at a moment or later.
    #[must_use]
    pub fn ended_since(mut self, moment: u64) -> SlowestTransactions {
        self.kept.retain(|slow| slow.ended >= moment);
        self
    }

    fn raise(&mut self, floor_ns: u64) {
        self.floor_ns = floor_ns;
        self.kept.retain(|slow| slow.latency_ns() > floor_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slow(latency_ns: u64) -> SlowTransaction {
        SlowTransaction { backend: 1, scheduled: 5, began: 5, ended: 5 + latency_ns }
    }

    #[test]
    fn every_transaction_above_the_floor_is_kept() {
        let mut prng = stats::Prng::new(7);
        let mut all: Vec<u64> = (0..200_000).map(|_| prng.next_u64() % 1_000_000).collect();
        let mut lanes = [SlowestTransactions::default(), SlowestTransactions::default()];
        for (index, latency) in all.iter().enumerate() {
            lanes[index % 2].take(slow(*latency));
        }
        let [mut whole, other] = lanes;
        whole.merge(other);
        let mut kept: Vec<u64> = whole.kept().iter().map(SlowTransaction::latency_ns).collect();
        kept.sort_unstable();
        all.retain(|latency| *latency > whole.floor_ns());
        all.sort_unstable();
        assert_eq!(kept, all);
        assert!((8_000..2 * KEPT_MAX).contains(&kept.len()), "{}", kept.len());
    }
}
