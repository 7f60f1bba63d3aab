//! Last known state of each list in a file, so that it need not be repeated.

use std::collections::HashMap;

/// Lists are forgotten when there are more.
const LISTS_MAX: usize = 4096;

/// The last elements of each list in a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Lists {
    last: HashMap<i64, Vec<i64>>,
}

impl Lists {
    /// The number of first elements that `list` shares with what was said last of it. `list` is said
    /// last from now on.
    pub(super) fn replace(&mut self, key: i64, list: &[i64]) -> usize {
        let last = self.last.entry(key).or_default();
        let common = last.iter().zip(list).take_while(|(one, other)| one == other).count();
        last.truncate(common);
        last.extend_from_slice(&list[common..]);
        common
    }

    pub(super) fn is_full(&self) -> bool {
        self.last.len() >= LISTS_MAX
    }

    pub(super) fn clear(&mut self) {
        self.last.clear();
    }
}
