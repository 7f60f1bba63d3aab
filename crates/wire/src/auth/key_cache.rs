//! SCRAM keys already derived.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::ScramKeys;
use crate::Password;

/// The most entries kept. A server gives a user always the same salt, so this is a bound on users;
/// a hostile one that gives each login another salt only makes the cache start afresh.
const ENTRIES_LIMIT: usize = 65_536;

/// SCRAM keys by password, salt and iterations. One per lane, or one behind a lock.
#[derive(Default)]
pub struct KeyCache {
    keys: HashMap<Given, Arc<ScramKeys>>,
}

#[derive(PartialEq, Eq, Hash)]
struct Given {
    password: Password,
    salt: Vec<u8>,
    iterations: u32,
}

impl KeyCache {
    /// An empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// The keys for these, derived at the first call only. The caller bounds `iterations`.
    pub fn keys(&mut self, password: &str, salt: &[u8], iterations: u32) -> Arc<ScramKeys> {
        if self.keys.len() >= ENTRIES_LIMIT {
            self.keys.clear();
        }
        let given = Given { password: Password::from(password), salt: salt.to_vec(), iterations };
        let derive = || Arc::new(ScramKeys::derive(password, salt, iterations));
        Arc::clone(self.keys.entry(given).or_insert_with(derive))
    }

    /// Number of derivations that are kept.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// True if nothing has been derived yet.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

impl fmt::Debug for KeyCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyCache({} entries)", self.keys.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_derivation_per_password_salt_and_iterations() {
        let mut cache = KeyCache::new();
        let first = cache.keys("p", b"salt", 2);
        assert!(Arc::ptr_eq(&first, &cache.keys("p", b"salt", 2)));
        for (password, salt, iterations) in
            [("q", b"salt", 2), ("p", b"tlas", 2), ("p", b"salt", 3)]
        {
            assert_ne!(first, cache.keys(password, salt, iterations));
        }
        assert_eq!(cache.len(), 4);
    }
}
