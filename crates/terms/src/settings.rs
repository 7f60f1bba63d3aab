//! Settings of a server or of a session.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Settings of a server or a session by name. As to the server, the case of names does not matter, nor does the
/// order; of several values for one name the last one holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "BTreeMap<String, String>")]
pub struct Settings(BTreeMap<String, String>);

impl Settings {
    /// No settings: everything as initdb leaves it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets one, in the place of the value that it had.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into().to_ascii_lowercase(), value.into());
    }

    /// Removes one; it is then as initdb leaves it.
    pub fn unset(&mut self, name: &str) {
        self.0.remove(&name.to_ascii_lowercase());
    }

    /// The value of one, if it is set.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        self.0.get(&name.to_ascii_lowercase()).map(String::as_str)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl From<BTreeMap<String, String>> for Settings {
    fn from(pairs: BTreeMap<String, String>) -> Settings {
        Settings::from_iter(pairs)
    }
}

impl IntoIterator for Settings {
    type Item = (String, String);
    type IntoIter = std::collections::btree_map::IntoIter<String, String>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<N: Into<String>, V: Into<String>> Extend<(N, V)> for Settings {
    fn extend<T: IntoIterator<Item = (N, V)>>(&mut self, pairs: T) {
        pairs.into_iter().for_each(|(name, value)| self.set(name, value));
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Settings {
    fn from_iter<T: IntoIterator<Item = (N, V)>>(pairs: T) -> Self {
        let mut settings = Self::new();
        settings.extend(pairs);
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_case_of_a_name_does_not_matter() {
        let mut settings = Settings::from_iter([("work_mem", "1MB"), ("Work_Mem", "2MB")]);
        assert_eq!(settings.iter().collect::<Vec<_>>(), [("work_mem", "2MB")]);
        assert_eq!(settings.value("WORK_MEM"), Some("2MB"));
        settings.unset("WORK_mem");
        assert_eq!(settings, Settings::new());
    }
}
