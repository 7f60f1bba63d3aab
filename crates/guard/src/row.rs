//! The rows that a server answers the guard's questions with, as JSON.

use serde::Deserialize;

use crate::asked;
use crate::error::Error;
use crate::look::{Lsn, PrimaryState, SyncState, WalSenderRow};
use crate::manager::ManagerTraces;
use crate::rights::GrantedRights;

/// Facts that are asked for once a connection.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ConnectionFacts {
    pub(crate) version_num: u32,
    pub(crate) version: String,
    pub(crate) system_identifier: String,
    pub(crate) in_recovery: bool,
    /// None on a standby.
    pub(crate) timeline: Option<u32>,
    pub(crate) setting: String,
    /// `pg_settings.source` of the setting, and the file.
    pub(crate) source: String,
    pub(crate) file: Option<String>,
    /// The guard's mark, as it is in force; empty when there is none.
    pub(crate) mark: String,
    /// Start of the postmaster.
    pub(crate) started_at: String,
    pub(crate) alter_system_is_off: bool,
    /// The value for sessions that set none.
    pub(crate) synchronous_commit: String,
    /// True if the server runs on another machine.
    pub(crate) is_remote: bool,
    pub(crate) rights: GrantedRights,
    pub(crate) traces: ManagerTraces,
}

/// One look at a server.
#[derive(Debug)]
pub(crate) enum ServerObservation {
    /// It is a standby.
    Standby,
    Primary(PrimaryState),
}

#[derive(Deserialize)]
struct Row {
    in_recovery: bool,
    setting: String,
    loaded_at: String,
    wal: Option<String>,
    checkpointer: Option<String>,
    standbys: Vec<StandbyRow>,
    waiting: Vec<String>,
}

#[derive(Deserialize)]
struct StandbyRow {
    pid: i32,
    name: String,
    state: Option<String>,
    flush: Option<String>,
    replay: Option<String>,
    /// None where the role may not see it.
    sync_state: Option<SyncState>,
}

impl ConnectionFacts {
    /// Reads the server's answer.
    pub(crate) fn read(text: &str) -> Result<ConnectionFacts, String> {
        serde_json::from_str(text).map_err(|why| why.to_string())
    }
}

impl ServerObservation {
    /// Reads the server's answer.
    pub(crate) fn read(doing: &'static str, text: &str) -> Result<ServerObservation, Error> {
        let row: Row = serde_json::from_str(text)
            .map_err(|why| Error::Server { doing, why: why.to_string() })?;
        let lsn = |text: Option<String>| text.and_then(|text| text.parse::<Lsn>().ok());
        let Some(wal) = lsn(row.wal).filter(|_| !row.in_recovery) else {
            return Ok(ServerObservation::Standby);
        };
        let standbys = row.standbys.into_iter().map(|one| WalSenderRow {
            pid: one.pid,
            name: one.name,
            // One that is told to stop confirms what it has until it has it all.
            streams: matches!(one.state.as_deref(), Some("streaming" | "stopping")),
            flush: lsn(one.flush),
            replay: lsn(one.replay),
            sync_state: one.sync_state.unwrap_or(SyncState::Async),
        });
        let settings_are_read = matches!(
            row.checkpointer.as_deref(),
            Some("CheckpointerMain" | "CheckpointWriteDelay")
        );
        Ok(ServerObservation::Primary(PrimaryState {
            setting: asked::read(&row.setting)?,
            loaded_at: row.loaded_at,
            wal,
            standbys: standbys.collect(),
            waiting: row.waiting,
            settings_are_read,
        }))
    }
}
