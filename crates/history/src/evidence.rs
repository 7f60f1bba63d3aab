//! Evidence in a history: dependencies, and anomalies that need no cycle.

use std::collections::BTreeMap;

use crate::registers::UnorderedRegister;
use crate::{History, HistoryFault, IsolationAnomaly, Key};

/// Why one transaction comes before another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Dependency {
    /// It wrote an earlier version.
    Write,
    /// The other one read what it wrote.
    Read,
    /// The other one wrote a later version than it had read.
    Anti,
    /// The same client ran it before.
    Process,
    /// It had ended before the other one began.
    Realtime,
}

/// One transaction comes before another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) key: Key,
    pub(crate) dependency: Dependency,
}

/// An anomaly that was seen without a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AnomalySighting {
    pub(crate) anomaly: IsolationAnomaly,
    /// The transactions, those that explain it first.
    pub(crate) transactions: Vec<u32>,
    /// The explanation; `{0}` stands for the first of the transactions, and so on.
    pub(crate) why: String,
}

/// Examples kept of each anomaly.
const EXAMPLES: usize = 3;

/// A list some of whose appends no read shows: they come after everything that was read, in an order that
/// nothing tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListTail {
    pub(crate) key: Key,
    /// The writer of the last element that was read.
    pub(crate) last: Option<u32>,
    /// The transactions that read all that anybody read.
    pub(crate) readers: Vec<u32>,
    /// The transactions whose appends no read shows.
    pub(crate) unseen: Vec<u32>,
}

/// Writes that were acknowledged or read, and how many of them somebody else read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObservedWrites {
    /// The appends and the writes of registers.
    pub writes: u64,
    /// Those of them that another transaction read.
    pub read: u64,
    /// Reads of all balances at once.
    pub snapshots: u64,
    /// Whether two of these reads differ: money was moved.
    pub snapshots_differ: bool,
}

/// Everything that is inferred from a history.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    pub(crate) edges: Vec<Edge>,
    /// Dependencies that follow only where the order of each client counts.
    pub(crate) by_client: Vec<Edge>,
    /// Dependencies that follow only where the order of time counts.
    pub(crate) by_time: Vec<Edge>,
    /// Registers, the order of whose versions is in part a guess.
    pub(crate) registers: Vec<UnorderedRegister>,
    /// Lists, the order of whose last versions is a guess.
    pub(crate) tails: Vec<ListTail>,
    pub(crate) observed: ObservedWrites,
    /// Reads of values that nobody is known to have written, in a history that lacks lines.
    pub(crate) unexplained: u64,
    pub(crate) counts: BTreeMap<IsolationAnomaly, u64>,
    pub(crate) sightings: Vec<AnomalySighting>,
    pub(crate) faults: Vec<HistoryFault>,
    /// By how much, at least, a value was read before the transaction that wrote it began, and the
    /// transaction that read it.
    pub(crate) clocks: Option<(u64, u32)>,
}

impl Evidence {
    pub(crate) fn edge(&mut self, from: u32, to: u32, key: Key, dependency: Dependency) {
        if from != to {
            self.edges.push(Edge { from, to, key, dependency });
        }
    }

    /// One transaction read what another one wrote. It cannot have done so before that one began: if
    /// their clients say so, their clocks are apart.
    pub(crate) fn read_edge(&mut self, history: &History, writer: u32, reader: u32, key: Key) {
        let begun = history.transactions()[writer as usize].earliest();
        let ended = history.transactions()[reader as usize].latest();
        if begun > ended && self.clocks.is_none_or(|(most, _)| begun - ended > most) {
            self.clocks = Some((begun - ended, reader));
        }
        self.edge(writer, reader, key, Dependency::Read);
    }

    /// Transactions that read one version and wrote the key: all but one of the updates are lost.
    pub(crate) fn see_lost_updates<V>(&mut self, same: &[(V, u32)], what: impl Fn() -> String) {
        for pair in same.windows(2) {
            self.see(IsolationAnomaly::LostUpdate, &[pair[0].1, pair[1].1], || {
                format!("{{0}} and {{1}} read the same version of {} and both wrote it", what())
            });
        }
    }

    /// Counts an anomaly; `transactions` and words are made of the first ones only.
    pub(crate) fn see(
        &mut self,
        anomaly: IsolationAnomaly,
        transactions: &[u32],
        why: impl FnOnce() -> String,
    ) {
        let count = self.counts.entry(anomaly).or_default();
        *count += 1;
        if *count <= EXAMPLES as u64 {
            let transactions = transactions.to_vec();
            self.sightings.push(AnomalySighting { anomaly, transactions, why: why() });
        }
    }

    /// Adds what was seen elsewhere of other anomalies.
    pub(crate) fn absorb(&mut self, other: Evidence) {
        self.counts.extend(other.counts);
        self.sightings.extend(other.sightings);
    }
}
