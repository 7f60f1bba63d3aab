//! Variable names and their slots.
//!
//! All scripts of a workload share one [`VariableNames`], so that a name means the same slot in each of
//! them and a session's variables are an array. Names are bytes, as pgbench's are.

use std::borrow::Cow;
use std::collections::HashMap;

/// The place of a variable in every [`crate::Variables`] of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VariableSlot(u32);

impl VariableSlot {
    /// `:client_id`, which pgbench sets for each client.
    pub const CLIENT_ID: VariableSlot = VariableSlot(0);
    /// `:scale`, which pgbench sets from `-s` or from the number of branches.
    pub const SCALE: VariableSlot = VariableSlot(1);
    /// `:random_seed`, the seed that the run started from.
    pub const RANDOM_SEED: VariableSlot = VariableSlot(2);
    /// `:default_seed`, the seed of `hash()` and `permute()` where none is given.
    pub const DEFAULT_SEED: VariableSlot = VariableSlot(3);

    /// The slot as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The interner that all scripts of a workload share: name → slot.
#[derive(Debug, Clone)]
pub struct VariableNames {
    slots: HashMap<Box<[u8]>, VariableSlot>,
    names: Vec<Box<[u8]>>,
}

impl VariableNames {
    /// An interner that knows only pgbench's automatic variables.
    pub fn new() -> VariableNames {
        let mut names = VariableNames { slots: HashMap::new(), names: Vec::new() };
        for automatic in ["client_id", "scale", "random_seed", "default_seed"] {
            names.intern(automatic);
        }
        names
    }

    /// The slot of `name`, a new one if the name was not known.
    pub fn intern(&mut self, name: impl AsRef<[u8]>) -> VariableSlot {
        let name = name.as_ref();
        if let Some(slot) = self.slots.get(name) {
            return *slot;
        }
        let slot =
            VariableSlot(u32::try_from(self.names.len()).expect("fewer than 2^32 variable names"));
        self.slots.insert(name.into(), slot);
        self.names.push(name.into());
        slot
    }

    /// The slot of `name` if any script mentions it. A name without a slot can be ignored: no
    /// script could read its value.
    pub fn slot(&self, name: impl AsRef<[u8]>) -> Option<VariableSlot> {
        self.slots.get(name.as_ref()).copied()
    }

    /// The name behind `slot`, for messages.
    pub fn name(&self, slot: VariableSlot) -> Cow<'_, str> {
        self.names
            .get(slot.index())
            .map_or(Cow::Borrowed("?"), |name| String::from_utf8_lossy(name))
    }

    /// Number of slots.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Never true: the automatic variables are always there.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

impl Default for VariableNames {
    fn default() -> VariableNames {
        VariableNames::new()
    }
}

/// True if `name` can be a variable: an ASCII letter, `_` or any byte above 127, then the same or
/// digits. A leading digit is not allowed, so that `'12:34:56'` in SQL stays what it is.
pub fn is_variable_name(name: impl AsRef<[u8]>) -> bool {
    let name = name.as_ref();
    !name.is_empty() && variable_name_length(name) == name.len()
}

/// Number of bytes at the start of `text` that form a variable name; 0 if none do.
pub(crate) fn variable_name_length(text: &[u8]) -> usize {
    match text.first() {
        Some(first) if is_name_start(*first) => {
            1 + text[1..].iter().take_while(|byte| is_name_byte(**byte)).count()
        }
        _ => 0,
    }
}

pub(crate) fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 128
}

pub(crate) fn is_name_byte(byte: u8) -> bool {
    is_name_start(byte) || byte.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn automatic_variables_have_fixed_slots() {
        let names = VariableNames::new();
        assert_eq!(names.slot("client_id"), Some(VariableSlot::CLIENT_ID));
        assert_eq!(names.slot("scale"), Some(VariableSlot::SCALE));
        assert_eq!(names.slot("random_seed"), Some(VariableSlot::RANDOM_SEED));
        assert_eq!(names.slot("default_seed"), Some(VariableSlot::DEFAULT_SEED));
    }

    #[test]
    fn a_name_has_one_slot_however_often_it_is_interned() {
        let mut names = VariableNames::new();
        let aid = names.intern("aid");
        let bid = names.intern("bid");
        assert_eq!(names.intern("aid"), aid);
        assert_ne!(aid, bid);
        assert_eq!(names.name(aid), "aid");
        assert_eq!(names.slot("cid"), None);
    }

    #[test]
    fn names_follow_pgbench() {
        for good in ["a", "_", "A9_", "é", "aid2"] {
            assert!(is_variable_name(good), "{good}");
        }
        for bad in ["", "1a", "a-b", "a b", "$a"] {
            assert!(!is_variable_name(bad), "{bad}");
        }
    }
}
