//! State of standbys as their primary shows it.

/// One row of `pg_stat_replication`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replication {
    /// The standby's application_name.
    pub standby: String,
    /// startup, catchup, streaming, backup or stopping.
    pub state: String,
    /// async, potential, sync or quorum.
    pub sync_state: String,
}
