//! Fates of transactions, as far as what others read shows them.

use std::collections::hash_map::Entry;

use crate::index::{Index, Map};
use crate::{History, Operation, TransactionOutcome};

/// The outcome of each transaction. One of which its client heard nothing has committed if a transaction
/// that has committed read what it wrote.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fates {
    of: Vec<TransactionOutcome>,
}

impl Fates {
    pub(crate) fn new(history: &History, index: &Index) -> Fates {
        let of = history.transactions().iter().map(|one| one.outcome).collect();
        let mut fates = Fates { of };
        if fates.of.contains(&TransactionOutcome::Unknown) {
            fates.follow_reads(history, &unknown_writers(history, index));
        }
        fates
    }

    pub(crate) fn of(&self, transaction: u32) -> TransactionOutcome {
        self.of[transaction as usize]
    }

    pub(crate) fn is_committed(&self, transaction: u32) -> bool {
        self.of(transaction) == TransactionOutcome::Committed
    }

    fn follow_reads(&mut self, history: &History, writers: &Map<(u32, i64), u32>) {
        let is_committed =
            |number: &u32| self.of[*number as usize] == TransactionOutcome::Committed;
        let mut left: Vec<u32> = (0..self.of.len() as u32).filter(is_committed).collect();
        // How much of each trunk was followed: the reads of it are its beginnings.
        let mut followed = vec![0; history.trunks()];
        while let Some(reader) = left.pop() {
            let operations = history.operations(&history.transactions()[reader as usize]);
            for operation in operations {
                let (key, values) = match operation {
                    Operation::ReadList { key, list } => {
                        let elements = history.elements(*list);
                        let done = followed.get_mut(list.trunk() as usize);
                        // A list that is no version of another one has no trunk, and all of it is followed.
                        let from = done.map_or(0, |done| {
                            let from = elements.len().min(*done);
                            *done = elements.len().max(*done);
                            from
                        });
                        (*key, &elements[from..])
                    }
                    Operation::Read { key, value } => (*key, std::slice::from_ref(value)),
                    _ => continue,
                };
                for value in values {
                    let Some(writer) = writers.get(&(key, *value)) else { continue };
                    let fate = &mut self.of[*writer as usize];
                    if *fate == TransactionOutcome::Unknown {
                        *fate = TransactionOutcome::Committed;
                        left.push(*writer);
                    }
                }
            }
        }
    }
}

/// The writers of unknown outcome of each value. A value that was written twice to its key shows nothing.
fn unknown_writers(history: &History, index: &Index) -> Map<(u32, i64), u32> {
    let mut writers = Map::default();
    let outcome = |transaction: u32| history.transactions()[transaction as usize].outcome;
    for key in 0..history.keys() as u32 {
        let uses = index.uses(key);
        if !uses.iter().any(|one| outcome(one.transaction) == TransactionOutcome::Unknown) {
            continue;
        }
        let mut values: Map<i64, Option<u32>> = Map::default();
        for one in uses {
            let (Operation::Append { value, .. } | Operation::Write { value, .. }) =
                history.all_operations()[one.operation as usize]
            else {
                continue;
            };
            match values.entry(value) {
                Entry::Vacant(free) => _ = free.insert(Some(one.transaction)),
                Entry::Occupied(mut taken) => _ = taken.insert(None),
            }
        }
        let unique = values.into_iter().filter_map(|(value, writer)| Some((value, writer?)));
        let unknown = unique.filter(|(_, writer)| outcome(*writer) == TransactionOutcome::Unknown);
        writers.extend(unknown.map(|(value, writer)| ((key, value), writer)));
    }
    writers
}
