//! A name and what it means to a reader.

/// A name and what it means to a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedItem {
    /// The name.
    pub name: String,
    /// In words; empty where the name says enough.
    pub says: String,
}

impl NamedItem {
    /// Text to show: the words, or the name.
    pub fn label(&self) -> &str {
        if self.says.is_empty() { &self.name } else { &self.says }
    }
}
