//! State that a guard leaves for the next one, and for those who ask: one small file, replaced
//! whole.
//!
//! What was asked for is not kept here but in the server, beside the setting that it explains: the
//! two cannot part, whatever is restored from a backup or started elsewhere.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::directory::Directory;
use crate::error::{Error, file};
use crate::look::Lsn;

/// State that a guard leaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardState {
    /// The cluster's, from `pg_control_system()`.
    pub system_identifier: String,
    /// The guard's process.
    pub pid: u32,
    /// Time at which this was written, RFC 3339.
    pub at: String,
    /// The setting that the operator asks for.
    pub asked: String,
    /// The setting that was in force.
    pub in_force: String,
    /// The primary's timeline; none in the state of an older guard.
    pub timeline: Option<u32>,
    /// Up to where commits were confirmed as asked.
    pub confirmed_lsn: Option<String>,
    /// Number of times that the setting was raised too early lately.
    pub flaps: u32,
    /// The guard's last action, in words.
    pub last: String,
}

impl GuardState {
    /// Replaces the state in a directory that is there. A power cut right after it may leave the one
    /// before.
    pub fn replace(&self, directory: &Path) -> Result<(), Error> {
        self.save(&Directory::look(directory)?)
    }

    /// Up to where commits were confirmed as asked, on this timeline.
    pub(crate) fn confirmed(&self, timeline: u32) -> Option<Lsn> {
        let confirmed = self.confirmed_lsn.as_ref().filter(|_| self.timeline == Some(timeline))?;
        confirmed.parse().ok()
    }

    pub(crate) fn save(&self, directory: &Directory) -> Result<(), Error> {
        let write = || {
            let mut text = serde_json::to_vec_pretty(self)?;
            text.push(b'\n');
            directory.replace(STATE, &text)
        };
        write().map_err(file("writing", &directory.path.join(STATE)))
    }
}

/// Reads the state of a directory; there need not be one.
pub fn load(directory: &Path) -> Result<Option<GuardState>, Error> {
    Directory::there(directory)?.map_or(Ok(None), |directory| read(&directory))
}

pub(crate) fn read(directory: &Directory) -> Result<Option<GuardState>, Error> {
    let Some(text) = directory.read(STATE)? else { return Ok(None) };
    let state = serde_json::from_str(&text);
    state
        .map(Some)
        .map_err(|why| Error::Content { path: directory.path.join(STATE), why: why.to_string() })
}

const STATE: &str = "state.json";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_of_another_timeline_is_not_taken() {
        let check = |timeline: &str, expected: Option<u64>| {
            let text = format!(
                r#"{{"system_identifier":"7","pid":1,"at":"","asked":"a","in_force":"a",{timeline}
                "confirmed_lsn":"0/10","flaps":2,"last":""}}"#
            );
            let state: GuardState = serde_json::from_str(&text).unwrap();
            assert_eq!(state.confirmed(3), expected.map(Lsn::from), "{timeline}");
        };
        check("\"timeline\":3,", Some(16));
        check("\"timeline\":2,", None);
        // An older guard's.
        check("", None);
    }
}
