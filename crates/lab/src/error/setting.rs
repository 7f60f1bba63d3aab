//! Errors of a setting.

use crate::version::Version;

/// The fault of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum SettingFault {
    #[error("is not the name of a setting")]
    NotAName,
    #[error("is managed by the lab")]
    OfTheLab,
    #[error("has a zero byte in its value")]
    ZeroByte,
    /// Its value would be more than one line of a file that has one line for each.
    #[error("has a line break in its value")]
    LineBreak,
}

/// A name or value that a server does not take.
#[derive(Debug, thiserror::Error)]
#[error("PostgreSQL {version} does not take a setting: {why}")]
pub struct RefusedSetting {
    /// Its version.
    pub version: Version,
    /// In its words.
    pub why: String,
}
