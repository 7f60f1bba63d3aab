//! The guarantees of sessions, list by list: monotonic reads, and read your writes.

use crate::evidence::Evidence;
use crate::index::Map;
use crate::lists::ListVersions;
use crate::{History, IsolationAnomaly, Key, TransactionOutcome};

/// Versions of a list that a client has read and written.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// The largest version that it has read, and where.
    read: (usize, u32),
    /// The largest version that it has made, and where.
    written: (usize, u32),
}

/// Something that a client did, in the order of its transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Act {
    client: u32,
    number: u64,
    transaction: u32,
    /// A read comes before a write of the same transaction, since it saw nothing of that write.
    is_write: bool,
    version: usize,
}

/// Judges what the sessions of a history saw of one list. An acknowledged append that no read shows is
/// one that its own client has not read, too.
pub(crate) fn judge(history: &History, key: Key, list: &ListVersions, evidence: &mut Evidence) {
    let act = |transaction: u32, version: usize, is_write: bool| {
        let one = &history.transactions()[transaction as usize];
        let client = history.session(one).client;
        Act { client, number: one.number, transaction, is_write, version }
    };
    let reads = list.reads.iter().map(|(reader, version)| act(*reader, *version, false));
    let appends = list
        .appends
        .iter()
        .map(|(writer, version)| act(*writer, version.unwrap_or(list.owners.len() + 1), true));
    let mut acts: Vec<Act> = reads.chain(appends).collect();
    acts.sort_unstable();
    let is_acknowledged = |transaction: u32| {
        history.transactions()[transaction as usize].outcome == TransactionOutcome::Committed
    };
    let mut clients: Map<u32, Known> = Map::default();
    let name = history.key(key).1;
    for act in acts {
        let known = clients.entry(act.client).or_default();
        let Act { transaction, version, is_write, .. } = act;
        if is_write {
            // One of which its client heard nothing may have committed after what the client did next.
            if is_acknowledged(transaction) {
                known.written = known.written.max((version, transaction));
            }
            continue;
        }
        let Known { read, written } = *known;
        if version < read.0 && transaction != read.1 {
            evidence.see(IsolationAnomaly::MonotonicReads, &[transaction, read.1], || {
                format!(
                    "{{0}} read {version} elements of list {name}, {{1}} of the same client had read {} \
                     before",
                    read.0
                )
            });
        }
        if version < written.0 && transaction != written.1 {
            evidence.see(IsolationAnomaly::ReadYourWrites, &[transaction, written.1], || {
                format!("{{0}} read list {name} without what {{1}} of the same client had appended")
            });
        }
        if is_acknowledged(transaction) {
            known.read = known.read.max((version, transaction));
        }
    }
}
