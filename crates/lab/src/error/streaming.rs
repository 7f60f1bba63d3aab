//! Errors that keep a standby from its primary. Boxed in [`super::Error`], which would be three
//! times as large with them in it, in every result of the lab.

use std::time::Duration;

use super::tail;
use crate::replication::Replication;

/// A standby does not stream, or not in the role that it should have.
#[derive(Debug, thiserror::Error)]
#[error(
    "waiting for standby {standby} of node {primary}: {} after {} s{}",
    self.state(), .waited.as_secs_f32(), tail(.log)
)]
pub struct NotStreaming {
    /// The standby.
    pub standby: String,
    /// Its primary.
    pub primary: String,
    /// The sync_state that it should have, where that matters.
    pub expected: Option<String>,
    /// Last state of it that the primary showed.
    pub seen: Option<Replication>,
    /// The time that it was given.
    pub waited: Duration,
    /// The end of the standby's log.
    pub log: String,
}

impl NotStreaming {
    fn state(&self) -> String {
        match (&self.seen, &self.expected) {
            (None, _) => "it is not connected".to_owned(),
            (Some(seen), Some(expected)) if seen.state == "streaming" => {
                format!("it is {} and not {expected}", seen.sync_state)
            }
            (Some(seen), _) => format!("it is in state {} and not streaming", seen.state),
        }
    }

    pub(super) fn hint(&self) -> Option<String> {
        match (&self.seen, &self.expected) {
            (None, _) => hint(&self.log),
            (Some(_), Some(_)) => Some("see synchronous_standby_names of the primary".into()),
            (Some(_), None) => None,
        }
    }
}

/// A standby did not replay the primary's WAL in time.
#[derive(Debug, thiserror::Error)]
#[error(
    "waiting for standby {standby} of node {primary}: it has replayed up to {replayed} and \
     not up to {target} after {} s{}", .waited.as_secs_f32(), tail(.log)
)]
pub struct StreamingLag {
    /// The standby.
    pub standby: String,
    /// Its primary.
    pub primary: String,
    /// Position of the primary when the waiting began.
    pub target: String,
    /// Position of the standby at its end.
    pub replayed: String,
    /// The time that it was given.
    pub waited: Duration,
    /// The end of the standby's log.
    pub log: String,
}

/// Next step for the usual reasons why a standby does not stream, recognised by the words of its
/// log or of pg_basebackup.
pub(super) fn hint(log: &str) -> Option<String> {
    let hints = [
        ("number of requested standby connections exceeds", "raise max_wal_senders"),
        ("all replication slots are in use", "raise max_replication_slots"),
        ("requested WAL segment", "the primary has removed it: make the standby anew"),
        ("does not exist", "make its replication slot, or make the standby anew from a backup"),
        ("insufficient parameter settings", "give the standby the primary's max_connections etc."),
        ("no pg_hba.conf entry for replication", "allow replication in the primary's pg_hba.conf"),
        ("Connection refused", "start the primary, or heal the link"),
        ("No such file or directory", "start the primary, or heal the link"),
        ("timeline", "the primary was promoted or restored: make the standby anew"),
    ];
    hints.iter().find(|(words, _)| log.contains(words)).map(|(_, hint)| (*hint).to_owned())
}
