//! The operations of a history by their keys.

use std::hash::{BuildHasherDefault, Hasher};

use crate::{History, Key};

/// A map whose keys are numbers of this program's own making.
pub(crate) type Map<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<KeyHasher>>;

/// Multiplies and folds: values are mostly consecutive, and nobody chooses them to collide.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number ^ 0x9e37_79b9_7f4a_7c15)
            * u128::from(0xd6e8_feb8_6659_fd93_u64);
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_i64(&mut self, number: i64) {
        self.write_u64(number.cast_unsigned());
    }
}

/// An operation on a key: its transaction, and its place among all operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyUse {
    pub(crate) transaction: u32,
    pub(crate) operation: u32,
}

/// The operations of each key. Those of one transaction are side by side, in their order.
pub(crate) struct Index {
    starts: Vec<u32>,
    uses: Vec<KeyUse>,
}

impl Index {
    pub(crate) fn of(history: &History) -> Index {
        let mut starts = vec![0; history.keys() + 1];
        for key in history.all_operations().iter().filter_map(|operation| operation.key()) {
            starts[key as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next: Vec<u32> = starts.clone();
        let none = KeyUse { transaction: 0, operation: 0 };
        let mut uses = vec![none; *starts.last().unwrap_or(&0) as usize];
        for (number, transaction) in (0..).zip(history.transactions()) {
            let operations = (transaction.first..).zip(history.operations(transaction));
            for (operation, what) in operations {
                if let Some(key) = what.key() {
                    let place = &mut next[key as usize];
                    uses[*place as usize] = KeyUse { transaction: number, operation };
                    *place += 1;
                }
            }
        }
        Index { starts, uses }
    }

    pub(crate) fn uses(&self, key: Key) -> &[KeyUse] {
        let [start, end] = [self.starts[key as usize], self.starts[key as usize + 1]];
        &self.uses[start as usize..end as usize]
    }
}
