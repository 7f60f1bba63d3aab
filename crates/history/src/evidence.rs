//! Evidence in a history: dependencies, and anomalies that need no cycle.

use std::collections::BTreeMap;

use crate::{Anomaly, Fault, History, Key};

/// The reason why one transaction comes before another one.
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
pub(crate) struct Sighting {
    pub(crate) anomaly: Anomaly,
    /// The transactions, those that explain it first.
    pub(crate) transactions: Vec<u32>,
    /// The explanation; `{0}` stands for the first of the transactions, and so on.
    pub(crate) why: String,
}

/// Examples kept of each anomaly.
const EXAMPLES: usize = 3;

/// Everything that is inferred from a history.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    pub(crate) edges: Vec<Edge>,
    pub(crate) counts: BTreeMap<Anomaly, u64>,
    pub(crate) sightings: Vec<Sighting>,
    pub(crate) faults: Vec<Fault>,
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
        let begun = history.transactions()[writer as usize].begun;
        let ended = history.transactions()[reader as usize].ended;
        if begun > ended && self.clocks.is_none_or(|(most, _)| begun - ended > most) {
            self.clocks = Some((begun - ended, reader));
        }
        self.edge(writer, reader, key, Dependency::Read);
    }

    /// Counts an anomaly; `transactions` and words are made of the first ones only.
    pub(crate) fn see(
        &mut self,
        anomaly: Anomaly,
        transactions: &[u32],
        why: impl FnOnce() -> String,
    ) {
        let count = self.counts.entry(anomaly).or_default();
        *count += 1;
        if *count <= EXAMPLES as u64 {
            let transactions = transactions.to_vec();
            self.sightings.push(Sighting { anomaly, transactions, why: why() });
        }
    }

    /// Adds what was seen elsewhere of other anomalies.
    pub(crate) fn absorb(&mut self, other: Evidence) {
        self.counts.extend(other.counts);
        self.sightings.extend(other.sightings);
    }
}
