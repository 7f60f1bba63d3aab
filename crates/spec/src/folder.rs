//! A study's folder, as data: this crate opens no files.

use std::collections::BTreeMap;

/// A study's folder. A caller that may read files passes it in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StudyFolder {
    /// The name, which is the study's.
    pub name: String,
    /// File name → text; names are relative to the folder, with `/` between parts.
    pub files: BTreeMap<String, String>,
    /// True if some users may not read it or a file of it: then a copy must not be readable by all
    /// users either.
    pub is_private: bool,
}

impl StudyFolder {
    /// The file that makes a folder a study.
    pub const STUDY: &'static str = "study.toml";
    /// The figures that were published, if any were.
    pub const PUBLISHED: &'static str = "published.csv";
}
