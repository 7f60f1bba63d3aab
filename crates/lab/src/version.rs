//! The version of a PostgreSQL or PgBouncer.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The oldest major version that the rig drives.
pub(crate) const MAJOR_MIN: u32 = server::least_version::LAB;

/// A version, as in "15.20" or "19devel".
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Version {
    /// The major version.
    pub major: u32,
    /// The minor version; 0 before the first release.
    pub minor: u32,
    /// The version as it calls itself.
    pub text: String,
}

impl Version {
    /// Reads what `postgres --version` says.
    pub fn parse(said: &str) -> Option<Self> {
        Self::of(said.split_once("(PostgreSQL)")?.1.split_whitespace().next()?)
    }

    /// True if it begins with `wanted`, as 1.18.0 does with "1.18".
    pub(crate) fn is_of(&self, wanted: &str) -> bool {
        let rest = self.text.strip_prefix(wanted);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
    }

    /// Reads a version's text.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let digits = |text: &str| {
            let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            (text[..end].parse().ok(), text[end..].to_owned())
        };
        let (major, rest) = digits(text);
        // A version before its release, as 18beta1, has no minor number.
        let minor = rest.strip_prefix('.').and_then(|rest| digits(rest).0).unwrap_or(0);
        Some(Self { major: major?, minor, text: text.to_owned() })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
