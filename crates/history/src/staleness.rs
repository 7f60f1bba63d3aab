//! The age of what was read, list by list, as the clients can tell.
//!
//! A read lacks an append that another client knew to be committed before the read began. It is stale
//! since the first such append was acknowledged. Where the clocks of two clients have a bound, it is the
//! least age that they leave.

use crate::History;
use crate::lists::ListVersions;

/// Appends that are checked for one read: the count of missing ones goes no further.
const LOOKED_AT_MAX: usize = 4_096;

/// Appends side by side that were not acknowledged yet, behind which none is expected that was.
const OPEN_MAX: usize = 64;

/// Ages of the reads of one workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadStaleness {
    /// For how long a newer version had been acknowledged when each read began, in nanoseconds,
    /// ascending; 0 where there was none.
    ages_ns: Vec<u64>,
    /// Number of acknowledged transactions that each read lacked, ascending.
    lacking: Vec<u32>,
}

impl ReadStaleness {
    /// The number of reads.
    pub fn reads(&self) -> usize {
        self.ages_ns.len()
    }

    /// The number of reads that lacked an acknowledged transaction.
    pub fn stale(&self) -> usize {
        self.lacking.iter().filter(|count| **count > 0).count()
    }

    /// The age that so large a share of the reads do not exceed, in nanoseconds. None without reads.
    pub fn age_ns(&self, share: f64) -> Option<u64> {
        quantile(&self.ages_ns, share)
    }

    /// The number of transactions that so large a share of the reads do not lack more of.
    pub fn lacking(&self, share: f64) -> Option<u32> {
        quantile(&self.lacking, share)
    }

    fn add(&mut self, age_ns: u64, lacking: u32) {
        self.ages_ns.push(age_ns);
        self.lacking.push(lacking);
    }

    pub(crate) fn sort(&mut self) {
        self.ages_ns.sort_unstable();
        self.lacking.sort_unstable();
    }
}

/// The smallest value that at least this share of the values does not exceed.
fn quantile<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    let rank = (share.clamp(0.0, 1.0) * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// Adds the reads of one list to those of their workloads.
pub(crate) fn measure(history: &History, list: &ListVersions, groups: &mut [ReadStaleness]) {
    let ended = |transaction: u32| history.transactions()[transaction as usize].latest();
    let mut order: Vec<u32> = Vec::with_capacity(list.owners.len());
    order.extend(list.owners.iter().map(|owner| owner.map_or(u32::MAX, |write| write.transaction)));
    order.extend(list.appends.iter().filter(|one| one.1.is_none()).map(|one| one.0));
    for (reader, version) in &list.reads {
        let transaction = &history.transactions()[*reader as usize];
        let begun = transaction.earliest();
        let (mut lacking, mut first, mut open) = (0, u64::MAX, 0);
        let mut last = u32::MAX;
        let missing = order[*version..].iter().take(LOOKED_AT_MAX);
        for owner in missing.copied().filter(|owner| *owner != u32::MAX) {
            if ended(owner) < begun {
                lacking += u32::from(owner != last);
                first = first.min(ended(owner));
                (open, last) = (0, owner);
            } else {
                open += 1;
                if open > OPEN_MAX {
                    break;
                }
            }
        }
        let age = if lacking > 0 { begun - first } else { 0 };
        let group = history.session(transaction).group as usize;
        groups[group].add(age, lacking);
    }
}
